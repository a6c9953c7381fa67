//! `/containerregistryauth`: create, list, read, delete. There is no change over REST.

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::request::RestRequest;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{list as array, must, named, object, text};
use crate::problem::Problem;
use crate::resources::name;
use crate::resources::registry::{self, RegistryAuth, RegistryInput};
use crate::store::objects;

pub(super) fn operations() -> Vec<Operation> {
    const ALL: &str = "/containerregistryauth";
    const ONE: &str = "/containerregistryauth/{id}";
    let auth =
        || named("ContainerRegistryAuth", object([must("id", text()), must("name", text())]));
    let body = object([
        must("name", name()),
        must("username", text().at_least(1)),
        must("password", text().at_least(1).note("Write-only")),
    ]);
    vec![
        op::get(ALL, "ListContainerRegistryAuths", "List registry credentials", list)
            .gives(200, array(auth())),
        op::post(ALL, "CreateContainerRegistryAuth", "Create a registry credential", create)
            .takes(named("ContainerRegistryAuthCreateInput", body))
            .gives(200, auth()),
        op::get(ONE, "GetContainerRegistryAuth", "Find a registry credential", read)
            .gives(200, auth()),
        op::delete(ONE, "DeleteContainerRegistryAuth", "Delete a registry credential", delete)
            .gives_nothing(204),
    ]
}

pub(super) async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let input = RegistryInput {
        name: fields.text("name")?,
        username: fields.text("username")?,
        password: fields.text("password")?,
    };
    let auth = request.app.store.write(move |tx| registry::create(tx, input)).await?;
    request.entry.object(&auth.id);
    request.app.say(&format!("container registry auth {} made", auth.id));
    Ok(answer::created(&request.app, shape(&auth)))
}

pub(super) async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &rusqlite::Connection| objects::list::<RegistryAuth>(conn, stale_ms);
    let auths = request.app.store.read(read).await?;
    Ok(answer::listed(&request.app, auths.iter().map(shape).collect()))
}

pub(crate) async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let auth = request.app.store.read(move |conn| objects::get::<RegistryAuth>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shape(&auth)))
}

pub(crate) async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.write(move |tx| registry::delete(tx, &id)).await?;
    request.app.say(&format!("container registry auth {} removed", request.id));
    Ok(answer::deleted())
}

/// Returns a credential as JSON. Username and password are never shown.
pub(crate) fn shape(auth: &RegistryAuth) -> Value {
    json!({ "id": auth.id, "name": auth.name })
}
