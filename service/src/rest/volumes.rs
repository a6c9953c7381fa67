//! `/networkvolumes`

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::ask::Ask;
use super::fields::Fields;
use crate::problem::Problem;
use crate::resources::volume::{self, Volume, VolumeInput};
use crate::store::objects;

pub(super) async fn create(ask: Ask) -> Result<Response, Problem> {
    let input = input(ask.fields()?)?;
    let volume = ask.app.store.write(move |tx| volume::create(tx, input)).await?;
    ask.entry.object(&volume.id);
    ask.app.say(&format!("network volume {} made", volume.id));
    Ok(answer::created(&ask.app, shape(&volume)))
}

pub(super) async fn list(ask: Ask) -> Result<Response, Problem> {
    let stale_ms = ask.stale_ms;
    let read = move |conn: &rusqlite::Connection| objects::list::<Volume>(conn, stale_ms);
    let volumes = ask.app.store.read(read).await?;
    Ok(answer::listed(&ask.app, volumes.iter().map(shape).collect()))
}

pub(super) async fn read(ask: Ask) -> Result<Response, Problem> {
    let id = ask.id.clone();
    let volume = ask.app.store.read(move |conn| objects::get::<Volume>(conn, &id)).await?;
    Ok(answer::shown(&ask.app, shape(&volume)))
}

pub(super) async fn update(ask: Ask) -> Result<Response, Problem> {
    let (id, input) = (ask.id.clone(), input(ask.fields()?)?);
    let volume = ask.app.store.write(move |tx| volume::update(tx, &id, input)).await?;
    ask.app.say(&format!("network volume {} changed", volume.id));
    Ok(answer::updated(&ask.app, shape(&volume)))
}

pub(super) async fn delete(ask: Ask) -> Result<Response, Problem> {
    let id = ask.id.clone();
    ask.app.store.write(move |tx| volume::delete(tx, &id)).await?;
    ask.app.volume_removed(&ask.id).await;
    Ok(answer::deleted())
}

fn input(mut fields: Fields) -> Result<VolumeInput, Problem> {
    Ok(VolumeInput {
        name: fields.text("name")?,
        size: fields.integer("size")?,
        data_center_id: fields.text("dataCenterId")?,
    })
}

fn shape(volume: &Volume) -> Value {
    json!({
        "id": volume.id,
        "name": volume.name,
        "size": volume.size,
        "dataCenterId": volume.data_center_id,
    })
}
