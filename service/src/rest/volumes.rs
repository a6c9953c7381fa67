//! `/networkvolumes`

use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::catalog::DATA_CENTERS;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Shape, integer, list as array, may, must, named, object, one_of, text,
};
use crate::problem::Problem;
use crate::resources::name;
use crate::resources::volume::{self, Volume, VolumeInput};
use crate::store::objects;

/// The most gigabytes that this version of the API takes.
const SIZE_MAX: i64 = 4000;

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/networkvolumes/{id}";
    vec![
        op::get("/networkvolumes", "ListNetworkVolumes", "List network volumes", list)
            .gives(200, array(shape_of())),
        op::post("/networkvolumes", "CreateNetworkVolume", "Create a network volume", create)
            .takes(body())
            .gives(200, shape_of()),
        op::get(ONE, "GetNetworkVolume", "Find a network volume", read).gives(200, shape_of()),
        op::patch(ONE, "UpdateNetworkVolume", "Change a network volume", update)
            .takes(change())
            .gives(200, shape_of()),
        op::post(
            "/networkvolumes/{id}/update",
            "UpdateNetworkVolumeByPost",
            "Change a network volume, without PATCH",
            update,
        )
        .takes(change())
        .gives(200, shape_of()),
        op::delete(
            ONE,
            "DeleteNetworkVolume",
            "Delete a network volume that nothing mounts",
            delete,
        )
        .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([
        must("name", name()),
        must("size", integer().between(0, SIZE_MAX).note("GB")),
        must("dataCenterId", one_of(DATA_CENTERS)),
    ]);
    named("NetworkVolumeCreateInput", body)
}

fn change() -> Shape {
    let change = object([
        may("name", name().note("Need not be unique")),
        may("size", integer().between(0, SIZE_MAX).note("GB; greater than the current size")),
        may("dataCenterId", text().note("Cannot be changed")),
    ]);
    named("NetworkVolumeUpdateInput", change.null_is_absent())
}

fn shape_of() -> Shape {
    let volume = object([
        must("id", text()),
        must("name", text()),
        must("size", integer().note("GB")),
        must("dataCenterId", text()),
    ]);
    named("NetworkVolume", volume)
}

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
        tier: None,
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
