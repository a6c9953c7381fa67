//! `/v2/registries`: registry credentials, and delegations of repositories.

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::app::App;
use crate::clock::iso;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{Shape, list as list_of, may, must, named, object, text};
use crate::problem::Problem;
use crate::resources::delegation::{self, Delegation};
use crate::resources::name;
use crate::resources::registry::{self, RegistryAuth, RegistryInput};
use crate::rest::answer;
use crate::rest::registries::{delete, read, shape};
use crate::rest::request::RestRequest;
use crate::store::objects;

pub(super) fn operations() -> Vec<Operation> {
    const ALL: &str = "/registries";
    const ONE: &str = "/registries/{id}";
    const DELEGATIONS: &str = "/registries/delegations";
    let listed = object([must("registries", list_of(registry_shape()))]);
    let delegations = object([must("delegations", list_of(delegation_shape()))]);
    vec![
        op::get(ALL, "listRegistries", "List registry credentials", list)
            .gives(200, named("ListRegistriesResponse", listed)),
        op::post(ALL, "createRegistry", "Create a registry credential", create)
            .takes(body())
            .gives(201, registry_shape()),
        op::get(ONE, "getRegistry", "Get a registry credential", read).gives(200, registry_shape()),
        op::delete(ONE, "deleteRegistry", "Delete a registry credential", delete)
            .gives_nothing(204),
        op::get(DELEGATIONS, "listDelegations", "List delegations", list_delegations)
            .gives(200, named("ListDelegationsResponse", delegations)),
        op::post(DELEGATIONS, "createDelegation", "Create a delegation", create_delegation)
            .takes(delegation_body())
            .gives(201, delegation_shape()),
        op::delete(
            "/registries/delegations/{id}",
            "revokeDelegation",
            "Revoke a delegation",
            delete_delegation,
        )
        .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([
        must("name", name()),
        must("username", text().at_least(1).note("Write-only")),
        must("password", text().at_least(1).note("Write-only")),
    ]);
    named("CreateRegistryRequest", body.closed())
}

fn registry_shape() -> Shape {
    named("Registry", object([must("id", text()), must("name", text())]))
}

fn delegation_body() -> Shape {
    let body = object([
        must("resource", text().note("arn:aws:ecr:REGION:ACCOUNT:repository/NAME")),
        may("name", text().or_null()),
    ]);
    named("CreateDelegationRequest", body.closed())
}

fn delegation_shape() -> Shape {
    let delegation = object([
        must("id", text()),
        must("name", text().or_null()),
        must("delegatorUserId", text()),
        must("awsUser", text()),
        must("repository", text()),
        must("tag", text()),
        must("awsRegion", text()),
        must("dockerRegistryUri", text()),
        must("createdAt", text()),
    ]);
    named("EcrDelegation", delegation)
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let input = RegistryInput {
        name: fields.text("name")?,
        username: fields.text("username")?,
        password: fields.text("password")?,
    };
    let auth = request.app.store.write(move |tx| registry::create(tx, input)).await?;
    request.entry.object(&auth.id);
    request.app.say(&format!("container registry auth {} made", auth.id));
    Ok(super::created(&shape(&auth)))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<RegistryAuth>(conn, stale_ms);
    let auths = request.app.store.read(read).await?;
    Ok(super::listed(&request.app, "registries", auths.iter().map(shape).collect()))
}

async fn create_delegation(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let resource = fields.text("resource")?.unwrap_or_default();
    let name = fields.text("name")?;
    let write = move |tx: &crate::store::Tx<'_>| delegation::create(tx, &resource, name);
    let delegation = request.app.store.write(write).await?;
    request.entry.object(&delegation.id);
    Ok(super::created(&shown_delegation(&request.app, &delegation)))
}

async fn list_delegations(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Delegation>(conn, stale_ms);
    let found = request.app.store.read(read).await?;
    let delegations = found.iter().map(|one| shown_delegation(&request.app, one)).collect();
    Ok(super::listed(&request.app, "delegations", delegations))
}

async fn delete_delegation(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.store.write(move |tx| objects::delete::<Delegation>(tx, &id)).await?;
    Ok(answer::deleted())
}

fn shown_delegation(app: &App, delegation: &Delegation) -> Value {
    let (account, region) = (&delegation.aws_user, &delegation.aws_region);
    json!({
        "id": delegation.id,
        "name": delegation.name,
        "delegatorUserId": app.user_id(),
        "awsUser": account,
        "repository": delegation.repository,
        "tag": delegation.tag,
        "awsRegion": region,
        "dockerRegistryUri": format!("{account}.dkr.ecr.{region}.amazonaws.com"),
        "createdAt": iso(delegation.created_at),
    })
}
