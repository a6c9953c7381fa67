//! `/containerregistryauth`: made, listed, removed; never changed over REST.

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::ask::Ask;
use crate::problem::Problem;
use crate::resources::registry::{self, RegistryAuth, RegistryInput};
use crate::store::objects;

pub(super) async fn create(ask: Ask) -> Result<Response, Problem> {
    let mut fields = ask.fields()?;
    let input = RegistryInput {
        name: fields.text("name")?,
        username: fields.text("username")?,
        password: fields.text("password")?,
    };
    let auth = ask.app.store.write(move |tx| registry::create(tx, input)).await?;
    ask.entry.object(&auth.id);
    ask.app.say(&format!("container registry auth {} made", auth.id));
    Ok(answer::created(&ask.app, shape(&auth)))
}

pub(super) async fn list(ask: Ask) -> Result<Response, Problem> {
    let stale_ms = ask.stale_ms;
    let read = move |conn: &rusqlite::Connection| objects::list::<RegistryAuth>(conn, stale_ms);
    let auths = ask.app.store.read(read).await?;
    Ok(answer::listed(&ask.app, auths.iter().map(shape).collect()))
}

pub(super) async fn read(ask: Ask) -> Result<Response, Problem> {
    let id = ask.id.clone();
    let auth = ask.app.store.read(move |conn| objects::get::<RegistryAuth>(conn, &id)).await?;
    Ok(answer::shown(&ask.app, shape(&auth)))
}

pub(super) async fn delete(ask: Ask) -> Result<Response, Problem> {
    let id = ask.id.clone();
    ask.app.store.write(move |tx| registry::delete(tx, &id)).await?;
    ask.app.say(&format!("container registry auth {} removed", ask.id));
    Ok(answer::deleted())
}

/// Username and password are write-only.
fn shape(auth: &RegistryAuth) -> Value {
    json!({ "id": auth.id, "name": auth.name })
}
