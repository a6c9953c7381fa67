//! `/networkvolumes`

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::problem::Problem;
use crate::resources::volume::{self, Volume, VolumeInput};
use crate::store::objects;

pub(super) async fn create(request: RestRequest) -> Result<Response, Problem> {
    let input = input(request.fields()?)?;
    let volume = request.app.store.write(move |tx| volume::create(tx, input)).await?;
    request.entry.object(&volume.id);
    request.app.say(&format!("network volume {} made", volume.id));
    Ok(answer::created(&request.app, shape(&volume)))
}

pub(super) async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &rusqlite::Connection| objects::list::<Volume>(conn, stale_ms);
    let volumes = request.app.store.read(read).await?;
    Ok(answer::listed(&request.app, volumes.iter().map(shape).collect()))
}

pub(super) async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let volume = request.app.store.read(move |conn| objects::get::<Volume>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shape(&volume)))
}

pub(super) async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, input) = (request.id.clone(), input(request.fields()?)?);
    let volume = request.app.store.write(move |tx| volume::update(tx, &id, input)).await?;
    request.app.say(&format!("network volume {} changed", volume.id));
    Ok(answer::updated(&request.app, shape(&volume)))
}

pub(super) async fn delete(request: RestRequest) -> Result<Response, Problem> {
    request.app.delete_volume(&request.id).await?;
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
