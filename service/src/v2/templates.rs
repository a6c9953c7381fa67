//! `/v2/templates`

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::container;
use crate::catalog::{CATEGORIES, CUDA_VERSIONS};
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Field, Shape, flag, integer, list as list_of, may, must, named, object, one_of, text, texts,
};
use crate::problem::Problem;
use crate::resources::endpoint;
use crate::resources::name;
use crate::resources::template::{self, Template, TemplateInput, Update};
use crate::rest::answer;
use crate::rest::fields::Fields;
use crate::rest::request::RestRequest;
use crate::store::{Tx, objects};

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/templates/{id}";
    let listed = object([must("templates", list_of(template_shape()))]);
    vec![
        op::get("/templates", "listTemplates", "List templates", list)
            .gives(200, named("ListTemplatesResponse", listed)),
        op::post("/templates", "createTemplate", "Create a template", create)
            .takes(body())
            .gives(201, template_shape()),
        op::get(ONE, "getTemplate", "Get a template", read).gives(200, template_shape()),
        op::patch(ONE, "updateTemplate", "Update a template", update)
            .takes(change())
            .gives(200, template_shape()),
        op::delete(ONE, "deleteTemplate", "Delete a template that no endpoint uses", delete)
            .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([must("name", name()), must("image", container::image())]);
    named("CreateTemplateRequest", body.and(container::settings()).and(settings()).closed())
}

fn change() -> Shape {
    let change = object([may("name", name()), may("image", container::image())]);
    named("UpdateTemplateRequest", change.and(container::settings()).and(settings()).closed())
}

fn settings() -> Vec<Field> {
    vec![
        may("mounts", mounts(integer().between(10, i64::from(i32::MAX)))),
        may("serverless", flag()),
        may("public", flag()),
        may("category", one_of(CATEGORIES)),
        may("startSsh", flag()),
        may("startJupyter", flag()),
        may("allowedCudaVersions", list_of(one_of(CUDA_VERSIONS))),
    ]
}

fn mounts(size: Shape) -> Shape {
    let persistent = object([must("size", size.note("GB")), must("path", text())]);
    object([may("persistent", persistent.closed())]).closed()
}

pub(super) fn template_shape() -> Shape {
    let template = object([must("id", text()), must("name", text())]);
    let more = [
        must("mounts", mounts(integer())),
        must("serverless", flag()),
        must("public", flag()),
        must("category", one_of(CATEGORIES)),
        must("startSsh", flag()),
        must("startJupyter", flag()),
        must("allowedCudaVersions", texts()),
    ];
    named("Template", template.and(container::shown_fields()).and(more))
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut input = input(request.fields()?)?;
    // Settings that are left out are none in this version; in other APIs they have defaults.
    input.ports.get_or_insert_default();
    input.volume_in_gb.get_or_insert(0);
    input.start_ssh.get_or_insert(true);
    input.start_jupyter.get_or_insert(true);
    let template = request.app.store.write(move |tx| template::create(tx, input, None)).await?;
    request.entry.object(&template.id);
    request.app.say(&format!("template {} made", template.id));
    Ok(super::created(&shown(&template)))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Template>(conn, stale_ms);
    let mut templates = request.app.store.read(read).await?;
    // A template that belongs to an endpoint is shown as the endpoint's settings, not here.
    templates.retain(|template| template.bound_endpoint_id.is_none());
    Ok(super::listed(&request.app, "templates", templates.iter().map(shown).collect()))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let template = request.app.store.read(move |conn| objects::get::<Template>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shown(&template)))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, input) = (request.id.clone(), input(request.fields()?)?);
    let write = move |tx: &Tx<'_>| {
        let (old, new) = template::update(tx, &id, input, Update::Free)?;
        endpoint::roll_out(tx, &old, &new)?;
        Ok(new)
    };
    let template = request.app.change(write).await?;
    request.app.say(&format!("template {} changed", template.id));
    Ok(answer::shown(&request.app, shown(&template)))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let (id, delay_ms) = (request.id.clone(), request.app.quirks.template_delay_ms());
    request.app.store.write(move |tx| template::delete(tx, &id, delay_ms)).await?;
    request.app.say(&format!("template {} removed", request.id));
    Ok(answer::deleted())
}

fn input(mut fields: Fields) -> Result<TemplateInput, Problem> {
    let mut persistent = fields.object("mounts").and_then(|mut mounts| mounts.object("persistent"));
    let (size, path) = match &mut persistent {
        Some(mount) => (mount.integer("size")?, mount.text("path")?),
        None => (None, None),
    };
    Ok(TemplateInput {
        name: fields.text("name")?,
        volume_in_gb: size,
        volume_mount_path: path,
        is_serverless: fields.flag("serverless")?,
        is_public: fields.flag("public")?,
        category: fields.text("category")?,
        start_ssh: fields.flag("startSsh")?,
        start_jupyter: fields.flag("startJupyter")?,
        allowed_cuda_versions: fields.texts("allowedCudaVersions")?,
        ..container::read(&mut fields)?
    })
}

pub(super) fn shown(template: &Template) -> Value {
    let mounts = match template.volume_in_gb {
        0 => json!({}),
        size => json!({ "persistent": { "size": size, "path": template.volume_mount_path } }),
    };
    let mut shown = container::shown(template);
    let more = json!({
        "id": template.id,
        "name": template.name,
        "mounts": mounts,
        "serverless": template.is_serverless,
        "public": template.is_public,
        "category": template.category,
        "startSsh": template.start_ssh,
        "startJupyter": template.start_jupyter,
        "allowedCudaVersions": template.allowed_cuda_versions,
    });
    super::extend(&mut shown, more);
    shown
}
