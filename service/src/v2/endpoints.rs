//! `/v2/serverless`: endpoints with the settings of their workers, which are stored in a template
//! that belongs to the endpoint.

use axum::response::Response;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::container;
use crate::app::App;
use crate::catalog::{self, CPU_FLAVORS, CUDA_VERSIONS};
use crate::clock::iso;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Field, Shape, count, either, integer, list as list_of, may, must, named, number, object,
    one_of, text, texts,
};
use crate::ids;
use crate::problem::{Kind, Problem};
use crate::resources::endpoint::{
    self, Api, Endpoint, EndpointInput, FlashBoot, TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS,
};
use crate::resources::template::{Template, TemplateInput};
use crate::resources::volume::Volume;
use crate::resources::{self, gpu, name};
use crate::rest::answer;
use crate::rest::fields::Fields;
use crate::rest::request::RestRequest;
use crate::store::{Tx, objects};
use crate::workers::http_server::health_path;

const TYPES: &[&str] = &["QUEUE", "LOAD_BALANCER"];
const FLASHBOOT: &[&str] = &["OFF", "FLASHBOOT", "PRIORITY_FLASHBOOT"];

/// The execution timeout of an endpoint that is made without one, in milliseconds.
const TIMEOUT_MS: i64 = 300_000;

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/serverless/{id}";
    let listed = object([must("endpoints", list_of(endpoint_shape()))]);
    vec![
        op::get("/serverless", "listEndpoints", "List endpoints", list)
            .gives(200, named("ListEndpointsResponse", listed)),
        op::post("/serverless", "createEndpoint", "Create an endpoint", create)
            .takes(body())
            .gives(201, endpoint_shape()),
        op::get(ONE, "getEndpoint", "Get an endpoint", read).gives(200, endpoint_shape()),
        op::patch(ONE, "updateEndpoint", "Update an endpoint", update)
            .takes(change())
            .gives(200, endpoint_shape()),
        op::delete(ONE, "deleteEndpoint", "Delete an endpoint with its jobs", delete)
            .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([
        must("name", name()),
        must("type", one_of(TYPES).note("Cannot be changed")),
        must("scaling", scaling()),
    ]);
    let gpu = gpu(must("pools", pools()), one_of(CUDA_VERSIONS));
    named("CreateEndpointRequest", body.and(settings(gpu)).closed())
}

fn change() -> Shape {
    let change = object([may("name", name()), may("scaling", scaling())]);
    let none_or_cuda = [&[""], CUDA_VERSIONS].concat();
    let gpu = gpu(may("pools", pools()), one_of(&none_or_cuda));
    named("UpdateEndpointRequest", change.and(settings(gpu)).closed())
}

fn pools() -> Shape {
    list_of(one_of(&catalog::pools())).at_least(1)
}

fn gpu(pools: Field, min_cuda: Shape) -> Shape {
    let types: Vec<&'static str> = catalog::known_gpu_types().collect();
    object([
        pools,
        may("excludedTypes", list_of(one_of(&types)).unique()),
        may("count", count().at_least(1)),
        may("allowedCudaVersions", list_of(one_of(CUDA_VERSIONS))),
        may("minCudaVersion", min_cuda),
    ])
    .closed()
}

fn scaling() -> Shape {
    let delay = object([
        must("type", one_of(&["QUEUE_DELAY"])),
        must("queueDelay", number().from(0.5).note("Seconds")),
    ]);
    let requests = object([
        must("type", one_of(&["REQUEST_COUNT"])),
        must("requestCount", count().at_least(1)),
    ]);
    named("EndpointScaling", either([delay.closed(), requests.closed()]))
}

fn settings(gpu: Shape) -> Vec<Field> {
    let cpu =
        object([must("id", one_of(CPU_FLAVORS)), must("vcpuCount", integer().between(2, 32))]);
    let workers = object([
        may("min", count()),
        may("max", count()),
        may("idleTimeout", integer().between(1, 3600).note("Seconds")),
    ]);
    let mut settings = vec![
        may("image", container::image()),
        may("templateId", text().at_least(1).note("Copied once")),
        may("gpu", gpu),
        may("cpu", list_of(cpu.closed()).at_least(1).unique()),
        may("workers", workers.closed()),
        may("dataCenterIds", texts()),
        may("networkVolumes", texts().note("Ids, one for each data center")),
        may("timeout", integer().between(0, TIMEOUT_MAX_MS).note("Milliseconds; 0 is none")),
        may("flashboot", one_of(FLASHBOOT)),
    ];
    settings.extend(container::settings());
    settings
}

fn endpoint_shape() -> Shape {
    let gpu = object([
        must("pools", texts()),
        may("excludedTypes", texts()),
        must("count", count()),
        must("allowedCudaVersions", texts()),
        must("minCudaVersion", text().or_null()),
    ]);
    let cpu = object([must("id", text()), must("vcpuCount", count()), must("memory", number())]);
    let workers = object([must("min", count()), must("max", count()), may("idleTimeout", count())]);
    let queue = ["run", "runSync", "status", "stream", "cancel", "retry", "purgeQueue", "health"];
    let queue = object(queue.map(|name| must(name, text()))).closed();
    let balanced = object([must("base", text()), must("health", text())]).closed();
    let scaling = object([
        must("type", one_of(catalog::SCALER_TYPES)),
        may("queueDelay", number()),
        may("requestCount", number()),
    ]);
    let endpoint = object([
        must("id", text()),
        must("name", text()),
        must("type", one_of(TYPES)),
        must("requestUrls", either([queue, balanced])),
        may("gpu", gpu),
        may("cpu", list_of(cpu)),
        must("workers", workers),
        must("scaling", scaling),
        must("dataCenterIds", texts()),
        must("networkVolumes", texts()),
        must("timeout", count()),
        must("flashboot", one_of(FLASHBOOT)),
        must("createdAt", text()),
    ]);
    named("Endpoint", endpoint.and(container::shown_fields()))
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let mut fields = request.fields()?;
    let asked = Asked::read(&mut fields)?;
    let kind = fields.text("type")?.unwrap_or_default();
    let is_queue = kind == "QUEUE";
    asked.check_scaling(is_queue, None)?;
    if asked.input.gpu_ids.is_some() == asked.input.instance_ids.is_some() {
        return Err(Problem::invalid("exactly one of gpu and cpu must be given"));
    }
    if asked.container.image_name.is_none() && asked.template_id.is_none() {
        return Err(Problem::invalid("image is required without templateId"));
    }
    let quota = request.app.options.worker_quota;
    let write = move |tx: &Tx<'_>| {
        let Asked { mut input, container, template_id } = asked;
        let base = template_id.as_deref().map(|id| serverless_template(tx, id)).transpose()?;
        let seeds = base.iter().map(|base| &base.allowed_cuda_versions);
        let mut seed =
            seeds.filter(|_| input.gpu_ids.is_some() && input.min_cuda_version.is_none());
        input.allowed_cuda_versions = input.allowed_cuda_versions.or(seed.next().cloned());
        input.kind = Some(if is_queue { "QB" } else { "LB" }.to_owned());
        input.idle_timeout.get_or_insert(10);
        input.execution_timeout_ms.get_or_insert(TIMEOUT_MS);
        check_volumes(tx, input.network_volume_ids.as_deref())?;
        let name = input.name.clone().unwrap_or_default();
        let own = own_template(&name, container, base.as_ref());
        container::check_size(&own)?;
        endpoint::create(tx, EndpointInput { template: Some(own), ..input }, Api::Rest, quota)
    };
    let made = request.app.change(write).await?;
    request.entry.object(&made.id);
    request.app.say(&format!("endpoint {} made", made.id));
    let (endpoint, template) = find(&request.app, made.id).await?;
    Ok(super::created(&shown(&request.app, &endpoint, template.as_ref())))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| {
        let endpoints = objects::list::<Endpoint>(conn, stale_ms)?;
        let with_template = |endpoint: Endpoint| {
            let template = objects::find::<Template>(conn, &endpoint.template_id)?;
            Ok((endpoint, template))
        };
        endpoints.into_iter().map(with_template).collect::<Result<Vec<_>, Problem>>()
    };
    let found = request.app.store.read(read).await?;
    let app = &request.app;
    let endpoints =
        found.iter().map(|(endpoint, template)| shown(app, endpoint, template.as_ref()));
    Ok(super::listed(app, "endpoints", endpoints.collect()))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let (endpoint, template) = find(&request.app, request.id.clone()).await?;
    Ok(answer::shown(&request.app, shown(&request.app, &endpoint, template.as_ref())))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, mut fields) = (request.id.clone(), request.fields()?);
    let asked = Asked::read(&mut fields)?;
    let quota = request.app.options.worker_quota;
    let write = move |tx: &Tx<'_>| {
        let old: Endpoint = objects::get(tx.conn, &id)?;
        asked.check_scaling(!old.is_balanced(), Some(&old))?;
        let is_cpu = old.compute_type == "CPU";
        if is_cpu && asked.names_gpu() || !is_cpu && asked.input.instance_ids.is_some() {
            return Err(Problem::invalid("an endpoint cannot change between gpu and cpu"));
        }
        check_volumes(tx, asked.input.network_volume_ids.as_deref())?;
        let names_container = asked.names_container();
        let Asked { mut input, container, template_id } = asked;
        if names_container {
            if container.env.is_some() || template_id.is_some() {
                input.env = Some(std::collections::BTreeMap::new());
            }
            let base = match template_id {
                Some(template) => Some(serverless_template(tx, &template)?),
                None => objects::find::<Template>(tx.conn, &old.template_id)?,
            };
            let mut own = own_template(&old.name, container, base.as_ref());
            container::check_size(&own)?;
            let current = objects::find::<Template>(tx.conn, &old.template_id)?;
            let bound = current.filter(|template| template.bound_endpoint_id.as_ref() == Some(&id));
            own.name = bound.map(|bound| bound.name).or(own.name);
            input.template = Some(own);
        }
        endpoint::update(tx, &id, input, Api::Rest, quota)
    };
    let (_, endpoint) = request.app.change(write).await?;
    request.app.say(&format!("endpoint {} changed", endpoint.id));
    let (endpoint, template) = find(&request.app, endpoint.id).await?;
    Ok(answer::shown(&request.app, shown(&request.app, &endpoint, template.as_ref())))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let (id, app) = (request.id.clone(), request.app.clone());
    request.app.change(move |tx| app.delete_endpoint(tx, &id, Api::Rest)).await?;
    request.app.say(&format!("endpoint {} removed", request.id));
    Ok(answer::deleted())
}

/// The settings in a request.
struct Asked {
    input: EndpointInput,
    container: TemplateInput,
    template_id: Option<String>,
}

impl Asked {
    fn read(fields: &mut Fields) -> Result<Asked, Problem> {
        let volumes = fields.texts("networkVolumes")?;
        let first = volumes.as_ref().map(|ids| ids.first().cloned().unwrap_or_default());
        let mut input = EndpointInput {
            name: fields.text("name")?,
            locations: fields.texts("dataCenterIds")?.map(|ids| ids.join(",")),
            network_volume_id: first,
            network_volume_ids: volumes,
            execution_timeout_ms: fields.integer("timeout")?,
            flash_boot: fields.text("flashboot")?.as_deref().map(flash_boot),
            ..EndpointInput::default()
        };
        if let Some(mut workers) = fields.object("workers") {
            input.workers_min = workers.integer("min")?;
            input.workers_max = workers.integer("max")?;
            input.idle_timeout = workers.integer("idleTimeout")?;
        }
        if let Some(mut scaling) = fields.object("scaling") {
            input.scaler_type = scaling.text("type")?;
            let delay = scaling.number("queueDelay")?;
            input.scaler_value = delay.or(scaling.number("requestCount")?);
        }
        if let Some(gpu) = fields.object("gpu") {
            read_gpu(gpu, &mut input)?;
        }
        if let Some(cpu) = fields.objects("cpu") {
            let instances = cpu.into_iter().map(instance).collect::<Result<_, _>>()?;
            input.instance_ids = Some(instances);
        }
        let container = container::read(fields)?;
        Ok(Asked { input, container, template_id: fields.text("templateId")? })
    }

    /// Checks the scaling of a request. A load balancer must scale by requests, and a queue that
    /// scales by requests has no idle timeout.
    fn check_scaling(&self, is_queue: bool, old: Option<&Endpoint>) -> Result<(), Problem> {
        let refused = |why: &str| Err(Problem::new(Kind::Unprocessable, why));
        let before = old.map(|old| old.scaler_type.as_str());
        let counts = self.input.scaler_type.as_deref().or(before) == Some("REQUEST_COUNT");
        if !is_queue && !counts {
            return refused("scaling.type must be REQUEST_COUNT for a load balancing endpoint");
        }
        if is_queue && counts && self.input.idle_timeout.is_some() {
            return refused("workers.idleTimeout has no meaning for a queue with REQUEST_COUNT");
        }
        Ok(())
    }

    fn names_gpu(&self) -> bool {
        let EndpointInput { gpu_ids, gpu_count, allowed_cuda_versions, min_cuda_version, .. } =
            &self.input;
        gpu_ids.is_some()
            || gpu_count.is_some()
            || allowed_cuda_versions.is_some()
            || min_cuda_version.is_some()
    }

    fn names_container(&self) -> bool {
        let given = &self.container;
        self.template_id.is_some()
            || given.image_name.is_some()
            || given.docker_args.is_some()
            || given.docker_entrypoint.is_some()
            || given.docker_start_cmd.is_some()
            || given.container_disk_in_gb.is_some()
            || given.env.is_some()
            || given.ports.is_some()
            || given.container_registry_auth_id.is_some()
    }
}

fn read_gpu(mut gpu: Fields, input: &mut EndpointInput) -> Result<(), Problem> {
    let (pools, excluded) = (gpu.texts("pools")?, gpu.texts("excludedTypes")?);
    if pools.is_none() && excluded.is_some() {
        return Err(Problem::new(Kind::Unprocessable, "gpu.excludedTypes needs gpu.pools"));
    }
    if let Some(mut ids) = pools {
        ids.extend(excluded.into_iter().flatten().map(|id| format!("-{id}")));
        let ids = ids.join(",");
        if gpu::types_of(&ids).is_empty() {
            return Err(Problem::invalid("gpu.excludedTypes leaves no GPU type"));
        }
        input.gpu_ids = Some(ids);
    }
    input.gpu_count = gpu.integer("count")?;
    input.allowed_cuda_versions = gpu.texts("allowedCudaVersions")?;
    input.min_cuda_version = gpu.text("minCudaVersion")?;
    let named = input.allowed_cuda_versions.as_ref().is_some_and(|versions| !versions.is_empty());
    if named && input.min_cuda_version.as_ref().is_some_and(|version| !version.is_empty()) {
        return Err(Problem::invalid(
            "gpu.allowedCudaVersions and gpu.minCudaVersion cannot both be given",
        ));
    }
    Ok(())
}

/// Reads a CPU instance and returns its id, such as `cpu3c-2-4`: the flavor, the number of CPUs,
/// the gigabytes of memory.
fn instance(mut cpu: Fields) -> Result<String, Problem> {
    let flavor = cpu.text("id")?.unwrap_or_default();
    let count = cpu.integer("vcpuCount")?.unwrap_or(2);
    if count.count_ones() != 1 {
        return Err(Problem::invalid(format!("cpu.vcpuCount must be a power of two, not {count}")));
    }
    Ok(format!("{flavor}-{count}-{}", count * catalog::memory_per_vcpu(&flavor)))
}

fn flash_boot(text: &str) -> FlashBoot {
    match text {
        "FLASHBOOT" => FlashBoot::Flashboot,
        "PRIORITY_FLASHBOOT" => FlashBoot::PriorityFlashboot,
        _ => FlashBoot::Off,
    }
}

/// Returns the template with this id, if an endpoint can be made from it.
fn serverless_template(tx: &Tx<'_>, id: &str) -> Result<Template, Problem> {
    let template: Template = objects::get(tx.conn, id)?;
    if !template.is_serverless {
        let message = format!("template \"{}\" is not for serverless workers", template.name);
        return Err(Problem::new(Kind::Unprocessable, message));
    }
    Ok(template)
}

/// Makes the template that belongs to an endpoint: the given settings over those of the base.
fn own_template(
    endpoint: &str,
    mut given: TemplateInput,
    base: Option<&Template>,
) -> TemplateInput {
    if let (Some(base), Some(env)) = (base.filter(|base| base.is_serverless), &mut given.env) {
        let is_copied = base.bound_endpoint_id.is_none();
        let inherited = base.env.iter().filter(|_| is_copied);
        for (name, value) in inherited {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    let settings = base.map_or_else(
        || TemplateInput { ports: Some(given.ports.clone().unwrap_or_default()), ..given.clone() },
        |base| container::over(given.clone(), base),
    );
    TemplateInput {
        name: Some(format!("{endpoint}__template__{}", ids::short())),
        is_serverless: Some(true),
        volume_in_gb: Some(0),
        ..settings
    }
}

/// Refuses two volumes in one data center.
fn check_volumes(tx: &Tx<'_>, ids: Option<&[String]>) -> Result<(), Problem> {
    let mut places: Vec<String> = Vec::new();
    for id in ids.unwrap_or_default() {
        let Some(volume) = objects::find::<Volume>(tx.conn, id)? else { continue };
        if places.contains(&volume.data_center_id) {
            let message = format!("networkVolumes has two of {}", volume.data_center_id);
            return Err(Problem::invalid(message));
        }
        places.push(volume.data_center_id);
    }
    Ok(())
}

async fn find(app: &App, id: String) -> Result<(Endpoint, Option<Template>), Problem> {
    let read = move |conn: &Connection| {
        let endpoint: Endpoint = objects::get(conn, &id)?;
        let template = objects::find::<Template>(conn, &endpoint.template_id)?;
        Ok((endpoint, template))
    };
    app.store.read(read).await
}

fn shown(app: &App, endpoint: &Endpoint, template: Option<&Template>) -> Value {
    let mut shown = template.map_or_else(|| json!({}), container::shown);
    for (name, value) in &endpoint.env {
        shown["env"][name] = json!(value);
    }
    let is_queue = !endpoint.is_balanced();
    let more = json!({
        "id": endpoint.id,
        "name": app.shown_name(endpoint),
        "type": if is_queue { "QUEUE" } else { "LOAD_BALANCER" },
        "requestUrls": request_urls(app, endpoint, template),
        "workers": workers(endpoint, is_queue),
        "scaling": scaling_of(endpoint),
        "dataCenterIds": endpoint.data_centers(),
        "networkVolumes": endpoint.volumes(),
        "timeout": endpoint.execution_timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS),
        "flashboot": endpoint.flash_boot,
        "createdAt": iso(endpoint.created_at),
    });
    super::extend(&mut shown, more);
    if endpoint.compute_type == "CPU" {
        shown["cpu"] = endpoint.instances().iter().map(|instance| cpu(instance)).collect();
    } else {
        shown["gpu"] = gpu_of(endpoint);
    }
    shown
}

fn request_urls(app: &App, endpoint: &Endpoint, template: Option<&Template>) -> Value {
    const HEALTH_PATH: &str = "HEALTH_CHECK_PATH";
    let id = &endpoint.id;
    if endpoint.is_balanced() {
        let of_template = || template?.env.get(HEALTH_PATH);
        let path = endpoint.env.get(HEALTH_PATH).or_else(of_template).map(String::as_str);
        let base = format!("{}/lb/{id}", app.base_url());
        return json!({ "base": base, "health": format!("{base}{}", health_path(path)) });
    }
    let base = format!("{}/{id}", app.queue_url);
    json!({
        "run": format!("{base}/run"),
        "runSync": format!("{base}/runsync"),
        "status": format!("{base}/status/{{job_id}}"),
        "stream": format!("{base}/stream/{{job_id}}"),
        "cancel": format!("{base}/cancel/{{job_id}}"),
        "retry": format!("{base}/retry/{{job_id}}"),
        "purgeQueue": format!("{base}/purge-queue"),
        "health": format!("{base}/health"),
    })
}

fn workers(endpoint: &Endpoint, is_queue: bool) -> Value {
    let mut workers = json!({ "min": endpoint.workers_min, "max": endpoint.workers_max });
    if !is_queue || endpoint.scaler_type != "REQUEST_COUNT" {
        workers["idleTimeout"] = json!(endpoint.idle_timeout);
    }
    workers
}

fn scaling_of(endpoint: &Endpoint) -> Value {
    let value = if endpoint.scaler_type == "REQUEST_COUNT" { "requestCount" } else { "queueDelay" };
    json!({ "type": endpoint.scaler_type, value: resources::number(endpoint.scaler_value) })
}

/// Returns the GPU pools of an endpoint, and the types in them that the endpoint excludes.
fn gpu_of(endpoint: &Endpoint) -> Value {
    let pools = gpu::pools_of(&endpoint.gpu_type_ids);
    let excluded: Vec<_> = gpu::types_of(&pools)
        .into_iter()
        .filter(|id| !endpoint.gpu_type_ids.contains(id))
        .collect();
    let pools = crate::resources::comma_list(&pools);
    let mut shown = json!({
        "pools": pools,
        "count": endpoint.gpu_count,
        "allowedCudaVersions": endpoint.allowed_cuda_versions,
        "minCudaVersion": endpoint.min_cuda_version,
    });
    if !excluded.is_empty() {
        shown["excludedTypes"] = json!(excluded);
    }
    shown
}

fn cpu(instance: &str) -> Value {
    let mut parts = instance.split('-');
    let flavor = parts.next().unwrap_or_default();
    let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok());
    let count = number().unwrap_or(2);
    let memory = number().unwrap_or_else(|| count * catalog::memory_per_vcpu(flavor));
    json!({ "id": flavor, "vcpuCount": count, "memory": memory })
}
