//! `/endpoints`

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use super::templates;
use crate::app::App;
use crate::catalog;
use crate::clock::iso;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Field, Shape, count, environment, flag, integer, list as list_of, may, must, named, number,
    object, one_of, text, texts,
};
use crate::problem::Problem;
use crate::quirks::Quirk;
use crate::resources::endpoint::{
    self, Api, Endpoint, EndpointInput, FlashBoot, SCALER_VALUE_MIN, TIMEOUT_DEFAULT_MS,
    TIMEOUT_MAX_MS,
};
use crate::resources::template::Template;
use crate::resources::{self, name};
use crate::store::objects;

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/endpoints/{id}";
    let shown = |operation: Operation| {
        let with_template = operation.query("includeTemplate", flag().note("Add its template"));
        with_template.query("includeWorkers", flag().note("Add its workers"))
    };
    vec![
        shown(op::get("/endpoints", "ListEndpoints", "List endpoints", list))
            .gives(200, list_of(endpoint_shape())),
        op::post("/endpoints", "CreateEndpoint", "Create an endpoint", create)
            .takes(body())
            .gives(200, endpoint_shape()),
        shown(op::get(ONE, "GetEndpoint", "Find an endpoint", read)).gives(200, endpoint_shape()),
        op::patch(ONE, "UpdateEndpoint", "Change an endpoint", update)
            .takes(change())
            .gives(200, endpoint_shape()),
        op::post(
            "/endpoints/{id}/update",
            "UpdateEndpointByPost",
            "Change an endpoint, without PATCH",
            update,
        )
        .takes(change())
        .gives(200, endpoint_shape()),
        op::delete(ONE, "DeleteEndpoint", "Delete an endpoint with its jobs", delete)
            .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([must("name", name()), must("templateId", text())]);
    named("EndpointCreateInput", body.and(settings()).null_is_absent())
}

fn change() -> Shape {
    let change = object([may("name", name()), may("templateId", text())]);
    named("EndpointUpdateInput", change.and(settings()).null_is_absent())
}

fn settings() -> Vec<Field> {
    let gpu_types: Vec<&'static str> = catalog::known_gpu_types().collect();
    let cuda = || one_of(catalog::CUDA_VERSIONS);
    let none_or_cuda = [&[""], catalog::CUDA_VERSIONS].concat();
    vec![
        may("computeType", one_of(&["GPU", "CPU"]).note("Cannot be changed")),
        may("gpuTypeIds", list_of(one_of(&gpu_types)).note("The first available one is taken")),
        may("gpuCount", count().at_least(1)),
        may("cpuFlavorIds", list_of(one_of(catalog::CPU_FLAVORS))),
        may("vcpuCount", count().at_least(1)),
        may("workersMin", count()),
        may("workersMax", count()),
        may("idleTimeout", integer().between(1, 3600).note("Seconds")),
        may("scalerType", one_of(catalog::SCALER_TYPES)),
        may("scalerValue", number().from(SCALER_VALUE_MIN)),
        may("executionTimeoutMs", integer().between(0, TIMEOUT_MAX_MS)),
        may("flashboot", flag()),
        may("dataCenterIds", list_of(one_of(&catalog::locations()))),
        may("networkVolumeId", text().or_null()),
        may("networkVolumeIds", texts()),
        may("allowedCudaVersions", list_of(cuda())),
        may("minCudaVersion", one_of(&none_or_cuda).or_null()),
    ]
}

fn endpoint_shape() -> Shape {
    let worker =
        object([must("id", text()), must("desiredStatus", text()), must("endpointId", text())]);
    let endpoint = object([
        must("id", text()),
        must("name", text()),
        must("userId", text()),
        must("templateId", text()),
        must("computeType", one_of(&["GPU", "CPU"])),
        must("gpuTypeIds", texts()),
        must("gpuCount", count()),
        must("instanceIds", texts()),
        must("workersMin", count()),
        must("workersMax", count()),
        must("workersStandby", count()),
        must("idleTimeout", count()),
        must("scalerType", one_of(catalog::SCALER_TYPES)),
        must("scalerValue", number()),
        must("executionTimeoutMs", count()),
        must("flashboot", flag()),
        must("dataCenterIds", texts()),
        must("networkVolumeId", text().or_null()),
        must("networkVolumeIds", texts()),
        must("allowedCudaVersions", texts()),
        must("minCudaVersion", text().or_null()),
        must("env", environment()),
        must("version", integer()),
        must("createdAt", text()),
        may("template", templates::template_shape().or_null()),
        may("workers", list_of(worker)),
    ]);
    named("Endpoint", endpoint)
}

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

/// Fills in the fields that were left out, with the defaults of the real service.
fn fill(input: &mut EndpointInput) {
    input.gpu_type_ids.get_or_insert_with(catalog::gpu_types);
    input.flash_boot.get_or_insert(FlashBoot::Flashboot);
    input.locations.get_or_insert_with(|| catalog::DATA_CENTERS.join(","));
    fill_volumes(input);
}

/// Sets the list of volumes to the single given volume, unless a list is given.
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
        scaler_value: fields.number("scalerValue")?,
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

/// Returns the endpoint with the expansions that the client asked for.
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
        "scalerValue": resources::number(endpoint.scaler_value),
        "executionTimeoutMs": endpoint.execution_timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS),
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
