//! `/v2/account`: public keys for SSH, and secrets.

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::clock::iso;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    NOT_BLANK, Shape, list as list_of, may, must, named, object, text, texts,
};
use crate::problem::Problem;
use crate::resources::account;
use crate::resources::secret::{self, NAME, NAME_MAX, Secret};
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::objects;

pub(super) fn operations() -> Vec<Operation> {
    const KEYS: &str = "/account/ssh-keys";
    const SECRETS: &str = "/account/secrets";
    const SECRET: &str = "/account/secrets/{id}";
    let keys = || named("SshKeys", object([must("keys", texts())]));
    let new_keys = object([must("keys", list_of(text().like(NOT_BLANK)))]).closed();
    let listed = object([must("secrets", list_of(secret_shape()))]);
    let value = || text().at_least(1).note("Write-only");
    let body = object([
        must("name", text().at_most(NAME_MAX).like(NAME).note("Cannot be changed")),
        must("value", value()),
        may("description", text()),
    ]);
    let change = object([may("value", value()), may("description", text())]);
    vec![
        op::get(KEYS, "getSshKeys", "List the public keys of the account", read_keys)
            .gives(200, keys()),
        op::put(KEYS, "updateSshKeys", "Replace the public keys of the account", replace_keys)
            .takes(named("UpdateSshKeysRequest", new_keys))
            .gives(200, keys()),
        op::get(SECRETS, "listSecrets", "List secrets, without their values", list)
            .query("name", text().note("Only the secret with this name"))
            .gives(200, named("ListSecretsResponse", listed)),
        op::post(SECRETS, "createSecret", "Create a secret", create)
            .takes(named("CreateSecretRequest", body.closed()))
            .gives(201, secret_shape()),
        op::get(SECRET, "getSecret", "Get a secret, without its value", read)
            .gives(200, secret_shape()),
        op::patch(SECRET, "updateSecret", "Change the value of a secret", update)
            .takes(named("UpdateSecretRequest", change.closed().at_least(1)))
            .gives(200, secret_shape()),
        op::delete(SECRET, "deleteSecret", "Delete a secret", delete).gives_nothing(204),
    ]
}

fn secret_shape() -> Shape {
    let secret = object([
        must("id", text()),
        must("name", text()),
        must("description", text()),
        must("createdAt", text()),
        must("valueLastUpdatedAt", text()),
    ]);
    named("Secret", secret)
}

async fn read_keys(request: RestRequest) -> Result<Response, Problem> {
    let keys = request.app.store.read(account::ssh_keys).await?;
    Ok(answer::shown(&request.app, json!({ "keys": keys })))
}

async fn replace_keys(request: RestRequest) -> Result<Response, Problem> {
    let keys = request.fields()?.texts("keys")?.unwrap_or_default();
    let shown = json!({ "keys": keys });
    request.app.store.write(move |tx| account::set_ssh_keys(tx, keys)).await?;
    Ok(answer::shown(&request.app, shown))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Secret>(conn, stale_ms);
    let mut secrets = request.app.store.read(read).await?;
    if let Some(name) = request.parameter("name") {
        secrets.retain(|secret| secret.name == name);
    }
    Ok(super::listed(&request.app, "secrets", secrets.iter().map(shown).collect()))
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let (name, value) = (fields.text("name")?, fields.text("value")?);
    let (name, value) = (name.unwrap_or_default(), value.unwrap_or_default());
    let description = fields.text("description")?;
    let write = move |tx: &crate::store::Tx<'_>| secret::create(tx, name, value, description);
    let secret = request.app.change(write).await?;
    request.entry.object(&secret.id);
    request.app.say(&format!("secret {} made", secret.id));
    Ok(super::created(&shown(&secret)))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let secret = request.app.store.read(move |conn| objects::get::<Secret>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shown(&secret)))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, mut fields) = (request.id.clone(), request.fields()?);
    let (value, description) = (fields.text("value")?, fields.text("description")?);
    let write = move |tx: &crate::store::Tx<'_>| secret::update(tx, &id, value, description);
    let secret = request.app.change(write).await?;
    request.app.say(&format!("secret {} changed", secret.id));
    Ok(answer::shown(&request.app, shown(&secret)))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    request.app.change(move |tx| objects::delete::<Secret>(tx, &id)).await?;
    request.app.say(&format!("secret {} removed", request.id));
    Ok(answer::deleted())
}

fn shown(secret: &Secret) -> Value {
    json!({
        "id": secret.id,
        "name": secret.name,
        "description": secret.description,
        "createdAt": iso(secret.created_at),
        "valueLastUpdatedAt": iso(secret.value_set_at),
    })
}
