//! `/endpoints`

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::app::App;
use crate::catalog;
use crate::clock::iso;
use crate::problem::Problem;
use crate::quirks::Quirk;
use crate::resources::endpoint::{self, Api, Endpoint, EndpointInput, FlashBoot};
use crate::resources::template::Template;
use crate::store::objects;

pub(super) async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut input = input(request.fields()?)?;
    if request.app.quirks.has(Quirk::ServerDefaults) {
        fill(&mut input);
    }
    let quota = request.app.options.worker_quota;
    let write = move |tx: &crate::store::Tx<'_>| endpoint::create(tx, input, Api::Rest, quota);
    let endpoint = request.app.change(write).await?;
    request.entry.object(&endpoint.id);
    request.app.say(&format!("endpoint {} made", endpoint.id));
    Ok(answer::created(&request.app, shape(&request.app, &endpoint)))
}

pub(super) async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Endpoint>(conn, stale_ms);
    let endpoints = request.app.store.read(read).await?;
    let mut shown = Vec::with_capacity(endpoints.len());
    for endpoint in &endpoints {
        shown.push(expanded(&request, endpoint).await?);
    }
    Ok(answer::listed(&request.app, shown))
}

pub(super) async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let endpoint = request.app.store.read(move |conn| objects::get::<Endpoint>(conn, &id)).await?;
    Ok(answer::shown(&request.app, expanded(&request, &endpoint).await?))
}

pub(super) async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, mut input) = (request.id.clone(), input(request.fields()?)?);
    if request.app.quirks.has(Quirk::ServerDefaults) {
        fill_volumes(&mut input);
    }
    let quota = request.app.options.worker_quota;
    let write = move |tx: &crate::store::Tx<'_>| endpoint::update(tx, &id, input, Api::Rest, quota);
    let (_, endpoint) = request.app.change(write).await?;
    request.app.say(&format!("endpoint {} changed", endpoint.id));
    Ok(answer::updated(&request.app, shape(&request.app, &endpoint)))
}

pub(super) async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let app = request.app.clone();
    request.app.change(move |tx| app.delete_endpoint(tx, &id, Api::Rest)).await?;
    request.app.say(&format!("endpoint {} removed", request.id));
    Ok(answer::deleted())
}

/// What the real service fills in when it was left out.
fn fill(input: &mut EndpointInput) {
    input.gpu_type_ids.get_or_insert_with(catalog::gpu_types);
    input.flash_boot.get_or_insert(FlashBoot::Flashboot);
    input.locations.get_or_insert_with(|| catalog::DATA_CENTERS.join(","));
    fill_volumes(input);
}

/// The list of volumes follows the one that is given.
fn fill_volumes(input: &mut EndpointInput) {
    if let (Some(id), None) = (&input.network_volume_id, &input.network_volume_ids) {
        input.network_volume_ids =
            Some(Some(id.clone()).filter(|id| !id.is_empty()).into_iter().collect());
    }
}

fn input(mut fields: Fields) -> Result<EndpointInput, Problem> {
    let flashboot = fields.flag("flashboot")?;
    let on_off = |on| if on { FlashBoot::Flashboot } else { FlashBoot::Off };
    Ok(EndpointInput {
        name: fields.text("name")?,
        template_id: fields.text("templateId")?,
        compute_type: fields.text("computeType")?,
        gpu_type_ids: fields.texts("gpuTypeIds")?,
        gpu_count: fields.integer("gpuCount")?,
        cpu_flavor_ids: fields.texts("cpuFlavorIds")?,
        vcpu_count: fields.integer("vcpuCount")?,
        workers_min: fields.integer("workersMin")?,
        workers_max: fields.integer("workersMax")?,
        idle_timeout: fields.integer("idleTimeout")?,
        scaler_type: fields.text("scalerType")?,
        scaler_value: fields.integer("scalerValue")?,
        execution_timeout_ms: fields.integer("executionTimeoutMs")?,
        flash_boot: flashboot.map(on_off),
        locations: fields.texts("dataCenterIds")?.map(|ids| ids.join(",")),
        network_volume_id: fields.nullable_text("networkVolumeId")?,
        network_volume_ids: fields.texts("networkVolumeIds")?,
        allowed_cuda_versions: fields.texts("allowedCudaVersions")?,
        min_cuda_version: fields.nullable_text("minCudaVersion")?,
        ..EndpointInput::default()
    })
}

/// The endpoint with the expansions that the client asked for.
async fn expanded(request: &RestRequest, endpoint: &Endpoint) -> Result<Value, Problem> {
    let mut value = shape(&request.app, endpoint);
    if request.wants("includeTemplate") {
        let id = endpoint.template_id.clone();
        let read = move |conn: &Connection| objects::find::<Template>(conn, &id);
        let template = request.app.store.read(read).await?;
        value["template"] = template.map_or(Value::Null, |template| template.to_rest());
    }
    if request.wants("includeWorkers") {
        let pods = request.app.pods(&endpoint.id);
        let shown = pods.iter().map(|pod| {
            json!({ "id": pod.id, "desiredStatus": pod.desired_status, "endpointId": endpoint.id })
        });
        value["workers"] = shown.collect();
    }
    Ok(value)
}

fn shape(app: &App, endpoint: &Endpoint) -> Value {
    let mut gpu_type_ids = endpoint.gpu_type_ids.clone();
    if app.quirks.has(Quirk::ShuffledLists) {
        answer::shuffle(&mut gpu_type_ids);
    }
    json!({
        "id": endpoint.id,
        "name": app.shown_name(endpoint),
        "userId": app.user_id(),
        "templateId": endpoint.template_id,
        "computeType": endpoint.compute_type,
        "gpuTypeIds": gpu_type_ids,
        "gpuCount": endpoint.gpu_count,
        "instanceIds": endpoint.instance_ids,
        "workersMin": endpoint.workers_min,
        "workersMax": endpoint.workers_max,
        "workersStandby": endpoint.workers_standby,
        "idleTimeout": endpoint.idle_timeout,
        "scalerType": endpoint.scaler_type,
        "scalerValue": endpoint.scaler_value,
        "executionTimeoutMs": endpoint.execution_timeout_ms,
        "flashboot": endpoint.flash_boot != FlashBoot::Off,
        "dataCenterIds": endpoint.data_centers(),
        "networkVolumeId": endpoint.network_volume_id,
        "networkVolumeIds": endpoint.network_volume_ids,
        "allowedCudaVersions": endpoint.allowed_cuda_versions,
        "minCudaVersion": endpoint.min_cuda_version,
        "env": endpoint.env,
        "version": endpoint.version,
        "createdAt": iso(endpoint.created_at),
    })
}
