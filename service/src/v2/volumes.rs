//! `/v2/network-volumes`

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Shape, integer, list as list_of, may, must, named, object, one_of, text,
};
use crate::problem::Problem;
use crate::resources::name;
use crate::resources::volume::{self, SIZE_MAX, TIERS, Volume, VolumeInput};
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::{Tx, objects};

/// The least gigabytes that this version of the API takes.
const SIZE_MIN: i64 = 10;

pub(super) fn operations() -> Vec<Operation> {
    const ALL: &str = "/network-volumes";
    const ONE: &str = "/network-volumes/{id}";
    let listed = object([must("networkVolumes", list_of(volume_shape()))]);
    vec![
        op::get(ALL, "listNetworkVolumes", "List network volumes", list)
            .gives(200, named("ListNetworkVolumesResponse", listed)),
        op::post(ALL, "createNetworkVolume", "Create a network volume", create)
            .takes(body())
            .gives(201, volume_shape()),
        op::get(ONE, "getNetworkVolume", "Get a network volume", read).gives(200, volume_shape()),
        op::patch(ONE, "updateNetworkVolume", "Update a network volume", update)
            .takes(change())
            .gives(200, volume_shape()),
        op::delete(ONE, "deleteNetworkVolume", "Delete a network volume", delete)
            .gives_nothing(204),
    ]
}

fn size() -> Shape {
    integer().between(SIZE_MIN, SIZE_MAX)
}

fn body() -> Shape {
    let body = object([
        must("name", name()),
        must("size", size().note("GB")),
        must("dataCenter", text().at_least(1).note("Cannot be changed")),
        may("type", one_of(TIERS).note("The tier of its storage. Cannot be changed")),
    ]);
    named("CreateNetworkVolumeRequest", body.closed())
}

fn change() -> Shape {
    let change =
        object([may("name", name()), may("size", size().note("GB; at least the current size"))]);
    named("UpdateNetworkVolumeRequest", change.closed().at_least(1))
}

fn volume_shape() -> Shape {
    let volume = object([
        must("id", text()),
        must("name", text()),
        must("size", integer().note("GB")),
        must("dataCenter", text()),
        must("type", one_of(TIERS)),
    ]);
    named("NetworkVolume", volume)
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let input = VolumeInput {
        name: fields.text("name")?,
        size: fields.integer("size")?,
        data_center_id: fields.text("dataCenter")?,
        tier: fields.text("type")?,
    };
    let volume = request.app.store.write(move |tx| volume::create(tx, input)).await?;
    request.entry.object(&volume.id);
    request.app.say(&format!("network volume {} made", volume.id));
    Ok(super::created(&shown(&volume)))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Volume>(conn, stale_ms);
    let volumes = request.app.store.read(read).await?;
    Ok(super::listed(&request.app, "networkVolumes", volumes.iter().map(shown).collect()))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let volume = request.app.store.read(move |conn| objects::get::<Volume>(conn, &id)).await?;
    Ok(answer::shown(&request.app, shown(&volume)))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, mut fields) = (request.id.clone(), request.fields()?);
    let (name, size) = (fields.text("name")?, fields.integer("size")?);
    let write = move |tx: &Tx<'_>| {
        let current = objects::get::<Volume>(tx.conn, &id)?.size;
        // Giving the present size is not an increase, but it is allowed.
        let size = size.filter(|size| *size != current);
        volume::update(tx, &id, VolumeInput { name, size, ..VolumeInput::default() })
    };
    let volume = request.app.store.write(write).await?;
    request.app.say(&format!("network volume {} changed", volume.id));
    Ok(answer::shown(&request.app, shown(&volume)))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    request.app.delete_volume(&request.id).await?;
    Ok(answer::deleted())
}

fn shown(volume: &Volume) -> Value {
    json!({
        "id": volume.id,
        "name": volume.name,
        "size": volume.size,
        "dataCenter": volume.data_center_id,
        "type": volume.tier,
    })
}
