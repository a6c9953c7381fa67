//! `/v2/tags`

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::description::operation::{self as op, Operation};
use crate::description::shape::{Shape, list as list_of, may, must, named, object, one_of, text};
use crate::problem::Problem;
use crate::resources::tag::{self, KINDS, Tag, Tagged};
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::objects;

/// The most characters of a key or a value.
const TEXT_MAX: usize = 191;

/// The most objects in one request.
const RESOURCES_MAX: usize = 100;

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/tags/{id}";
    const RESOURCE: &str = "/tags/{id}/resources/{type}/{resourceId}";
    let tagged = || object([must("type", one_of(KINDS)), must("id", text().at_least(1))]);
    let body = object([
        must("key", text().at_least(1).at_most(TEXT_MAX)),
        must("value", text().at_most(TEXT_MAX)),
        may("resources", list_of(tagged().closed()).at_most(RESOURCES_MAX)),
    ]);
    let listed = object([must("tags", list_of(tag_shape()))]);
    vec![
        op::get("/tags", "listTags", "List tags", list)
            .gives(200, named("ListTagsResponse", listed)),
        op::post("/tags", "createTag", "Create a tag", create)
            .takes(named("CreateTagRequest", body.closed()))
            .gives(201, tag_shape()),
        op::get(ONE, "getTag", "Get a tag", read).gives(200, tag_shape()),
        op::delete(ONE, "deleteTag", "Delete a tag", delete).gives_nothing(204),
        op::put(RESOURCE, "attachTag", "Put a tag on an object", attach).gives(200, tag_shape()),
        op::delete(RESOURCE, "detachTag", "Take a tag off an object", detach).gives_nothing(204),
    ]
}

fn tag_shape() -> Shape {
    let tagged = object([must("type", one_of(KINDS)), must("id", text())]);
    let tag = object([
        must("id", text()),
        must("key", text()),
        must("value", text()),
        must("resources", list_of(tagged)),
    ]);
    named("Tag", tag)
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Tag>(conn, stale_ms);
    let tags = request.app.store.read(read).await?;
    Ok(super::listed(&request.app, "tags", tags.iter().map(shown).collect()))
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let (key, value) = (fields.text("key")?, fields.text("value")?);
    let (key, value) = (key.unwrap_or_default(), value.unwrap_or_default());
    let mut resources = Vec::new();
    for mut tagged in fields.objects("resources").unwrap_or_default() {
        let (kind, id) = (tagged.text("type")?, tagged.text("id")?);
        resources.push(Tagged { kind: kind.unwrap_or_default(), id: id.unwrap_or_default() });
    }
    let write = move |tx: &crate::store::Tx<'_>| tag::create(tx, key, value, resources);
    let tag = request.app.store.write(write).await?;
    request.entry.object(&tag.id);
    Ok(super::created(&shown(&tag)))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let tag = request.app.store.read(move |conn| objects::get::<Tag>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shown(&tag)))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.write(move |tx| objects::delete::<Tag>(tx, &id)).await?;
    Ok(answer::deleted())
}

async fn attach(request: RestRequest) -> Result<Response, Problem> {
    let (id, tagged) = (request.id.clone(), tagged(&request)?);
    let tag = request.app.store.write(move |tx| tag::attach(tx, &id, tagged)).await?;
    Ok(answer::shown(&request.app, shown(&tag)))
}

async fn detach(request: RestRequest) -> Result<Response, Problem> {
    let (id, tagged) = (request.id.clone(), tagged(&request)?);
    request.app.store.write(move |tx| tag::detach(tx, &id, &tagged)).await?;
    Ok(answer::deleted())
}

/// Returns the object that the path names.
fn tagged(request: &RestRequest) -> Result<Tagged, Problem> {
    let (kind, id) = (request.place(1), request.place(2));
    if KINDS.contains(&kind) {
        return Ok(Tagged { kind: kind.to_owned(), id: id.to_owned() });
    }
    Err(Problem::not_found("type of resource"))
}

fn shown(tag: &Tag) -> Value {
    json!({ "id": tag.id, "key": tag.key, "value": tag.value, "resources": tag.resources })
}
