//! Endpoints: the objects to which jobs or requests are sent, with the settings of their workers.

mod rules;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize, Serializer};

use super::template::{Template, TemplateInput, Update};
use super::{comma_list, gpu, non_empty, number, release, required, template};
use crate::catalog::DATA_CENTERS;
use crate::clock::now_ms;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};
use rules::check;

/// The longest execution timeout in milliseconds: seven days.
pub(crate) const TIMEOUT_MAX_MS: i64 = 604_800_000;

/// The execution timeout for the jobs of endpoints without one, in milliseconds.
pub(crate) const TIMEOUT_DEFAULT_MS: i64 = 600_000;

/// The least value of `scalerValue`.
pub(crate) const SCALER_VALUE_MIN: f64 = 0.001;

/// The speed with which workers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, juniper::GraphQLEnum)]
#[graphql(name = "FlashBootType")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum FlashBoot {
    /// Ordinary starts.
    Off,
    /// Faster cold starts.
    Flashboot,
    /// Faster cold starts with reserved capacity.
    PriorityFlashboot,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) template_id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) compute_type: String,
    pub(crate) gpu_ids: String,
    pub(crate) gpu_type_ids: Vec<String>,
    pub(crate) gpu_count: i64,
    pub(crate) cpu_flavor_ids: Vec<String>,
    pub(crate) instance_ids: Vec<String>,
    pub(crate) vcpu_count: i64,
    pub(crate) workers_min: i64,
    pub(crate) workers_max: i64,
    pub(crate) workers_standby: i64,
    pub(crate) workers_pfb_target: i64,
    pub(crate) idle_timeout: i64,
    pub(crate) scaler_type: String,
    #[serde(serialize_with = "as_number")]
    pub(crate) scaler_value: f64,
    pub(crate) execution_timeout_ms: Option<i64>,
    pub(crate) flash_boot: FlashBoot,
    pub(crate) locations: Option<String>,
    pub(crate) network_volume_id: Option<String>,
    pub(crate) network_volume_ids: Vec<String>,
    pub(crate) allowed_cuda_versions: Vec<String>,
    pub(crate) min_cuda_version: Option<String>,
    pub(crate) compliance: Vec<String>,
    pub(crate) model_references: Vec<String>,
    pub(crate) hub_release_id: Option<String>,
    pub(crate) flash_environment_id: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// The number of changes that replace workers.
    pub(crate) version: i64,
    pub(crate) created_at: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn as_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(serializer)
}

impl Endpoint {
    /// Returns true if requests go to the HTTP servers of the workers; false if the endpoint has a
    /// queue.
    pub(crate) fn is_balanced(&self) -> bool {
        self.kind == "LB"
    }

    /// Returns the ids of the volumes that the workers mount.
    pub(crate) fn volumes(&self) -> Vec<&str> {
        let mut volumes: Vec<&str> = self.network_volume_id.as_deref().into_iter().collect();
        let others = self.network_volume_ids.iter().map(String::as_str);
        volumes.extend(others.filter(|id| Some(*id) != self.network_volume_id.as_deref()));
        volumes
    }

    /// Returns the CPU instances for the workers: the named ones, else one of each flavour.
    pub(crate) fn instances(&self) -> Vec<String> {
        if !self.instance_ids.is_empty() {
            return self.instance_ids.clone();
        }
        self.cpu_flavor_ids.iter().map(|flavor| format!("{flavor}-{}", self.vcpu_count)).collect()
    }

    /// Returns the data centres among the locations.
    pub(crate) fn data_centers(&self) -> Vec<String> {
        let locations = comma_list(self.locations.as_deref().unwrap_or(""));
        locations.into_iter().filter(|id| DATA_CENTERS.contains(&id.as_str())).collect()
    }

    fn needs_new_workers(&self, old: &Endpoint) -> bool {
        self.template_id != old.template_id
            || self.gpu_type_ids != old.gpu_type_ids
            || self.gpu_count != old.gpu_count
            || self.instance_ids != old.instance_ids
            || self.locations != old.locations
            || self.volumes() != old.volumes()
            || self.allowed_cuda_versions != old.allowed_cuda_versions
            || self.min_cuda_version != old.min_cuda_version
            || self.flash_boot != old.flash_boot
            || self.model_references != old.model_references
            || self.env != old.env
    }
}

impl Record for Endpoint {
    const KIND: &'static str = "endpoint";
    const NOUN: &'static str = "endpoint";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uses(&self) -> Vec<&str> {
        let mut uses = self.volumes();
        uses.push(&self.template_id);
        uses
    }
}

/// The settings of an endpoint that a client can give. `""` for an id or a text means none.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointInput {
    pub(crate) name: Option<String>,
    pub(crate) template_id: Option<String>,
    pub(crate) template: Option<TemplateInput>,
    pub(crate) kind: Option<String>,
    pub(crate) compute_type: Option<String>,
    pub(crate) gpu_ids: Option<String>,
    pub(crate) gpu_type_ids: Option<Vec<String>>,
    pub(crate) gpu_count: Option<i64>,
    pub(crate) cpu_flavor_ids: Option<Vec<String>>,
    pub(crate) instance_ids: Option<Vec<String>>,
    pub(crate) vcpu_count: Option<i64>,
    pub(crate) workers_min: Option<i64>,
    pub(crate) workers_max: Option<i64>,
    pub(crate) workers_standby: Option<i64>,
    pub(crate) workers_pfb_target: Option<i64>,
    pub(crate) idle_timeout: Option<i64>,
    pub(crate) scaler_type: Option<String>,
    pub(crate) scaler_value: Option<f64>,
    pub(crate) execution_timeout_ms: Option<i64>,
    pub(crate) flash_boot: Option<FlashBoot>,
    pub(crate) locations: Option<String>,
    pub(crate) network_volume_id: Option<String>,
    pub(crate) network_volume_ids: Option<Vec<String>>,
    pub(crate) allowed_cuda_versions: Option<Vec<String>>,
    pub(crate) min_cuda_version: Option<String>,
    pub(crate) compliance: Option<Vec<String>>,
    pub(crate) model_references: Option<Vec<String>>,
    pub(crate) hub_release_id: Option<String>,
    pub(crate) flash_environment_id: Option<String>,
    pub(crate) env: Option<BTreeMap<String, String>>,
}

/// The API of a request. The APIs differ in their defaults, and in the meaning of a field that is
/// left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// A field that is left out keeps its value.
    Rest,
    /// A field that is left out is reset, with few exceptions.
    GraphQl,
}

/// Makes an endpoint.
pub(crate) fn create(
    tx: &Tx<'_>,
    mut input: EndpointInput,
    api: Api,
    quota: Option<u32>,
) -> Result<Endpoint, Problem> {
    let mut endpoint = unset(api);
    input.name.as_ref().ok_or_else(|| required("name"))?;
    let has_hardware = input.gpu_ids.is_some() || input.instance_ids.is_some();
    if api == Api::GraphQl && !has_hardware {
        return Err(required("gpuIds"));
    }
    if let Some(inline) = take_template(&mut input)? {
        input.template_id = Some(template::create(tx, inline, Some(&endpoint.id))?.id);
    }
    input.template_id.as_ref().ok_or_else(|| required("templateId"))?;
    apply(&mut endpoint, input);
    check(tx, &endpoint, api, quota)?;
    objects::insert(tx, &endpoint)?;
    release::note(tx, &endpoint.id, endpoint.version, Vec::new())?;
    Ok(endpoint)
}

/// Changes an endpoint. Returns the endpoint before and after the change.
pub(crate) fn update(
    tx: &Tx<'_>,
    id: &str,
    mut input: EndpointInput,
    api: Api,
    quota: Option<u32>,
) -> Result<(Endpoint, Endpoint), Problem> {
    let mut old: Endpoint = objects::get(tx.conn, id)?;
    if input.compute_type.as_ref().is_some_and(|wanted| *wanted != old.compute_type) {
        return Err(Problem::invalid("computeType cannot be changed"));
    }
    if input.kind.as_ref().is_some_and(|wanted| *wanted != old.kind) {
        return Err(Problem::invalid("type cannot be changed"));
    }
    if let Some(inline) = take_template(&mut input)? {
        input.template_id = Some(save_bound(tx, &old, inline)?);
        // Saving the template may have raised the version of the endpoint. The write below must not
        // undo that.
        old = objects::get(tx.conn, id)?;
    }
    let mut new = match api {
        Api::Rest => old.clone(),
        Api::GraphQl => reset(&old),
    };
    apply(&mut new, input);
    check(tx, &new, api, quota)?;
    if new.needs_new_workers(&old) {
        new.version += 1;
        release::note(tx, id, new.version, release::differences(&old, &new, ""))?;
    }
    objects::update(tx, &new)?;
    Ok((old, new))
}

/// Raises the version of every endpoint that uses a template, which replaces their workers. Does
/// nothing if workers run the same with both templates.
pub(crate) fn roll_out(tx: &Tx<'_>, old: &Template, new: &Template) -> Result<(), Problem> {
    if new.runs_like(old) {
        return Ok(());
    }
    for id in objects::users(tx.conn, &new.id)? {
        if let Some(mut endpoint) = objects::find::<Endpoint>(tx.conn, &id)? {
            endpoint.version += 1;
            objects::update(tx, &endpoint)?;
            let changed = release::differences(old, new, "template.");
            release::note(tx, &id, endpoint.version, changed)?;
        }
    }
    Ok(())
}

/// Returns the version of an endpoint; `None` if it does not exist. Workers of a lower version run
/// old settings.
pub(crate) fn version(conn: &Connection, id: &str) -> Result<Option<i64>, Problem> {
    let sql = "select body ->> '$.version' from objects where id = ?1 and kind = 'endpoint'";
    Ok(conn.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?)
}

/// Removes an endpoint, and the template that was made inside of it. Over GraphQL this is refused
/// unless the endpoint has been scaled to no workers.
pub(crate) fn delete(tx: &Tx<'_>, id: &str, api: Api) -> Result<(), Problem> {
    let endpoint: Endpoint = objects::get(tx.conn, id)?;
    let scaled_down = endpoint.workers_min == 0 && endpoint.workers_max == 0;
    if api == Api::GraphQl && !scaled_down {
        return Err(Problem::invalid(
            "workersMin and workersMax must both be set to 0 before the endpoint can be deleted",
        ));
    }
    objects::delete::<Endpoint>(tx, id)?;
    release::forget(tx, id)?;
    let bound = objects::find::<Template>(tx.conn, &endpoint.template_id)?
        .filter(|template| template.bound_endpoint_id.as_deref() == Some(id));
    if bound.is_some() && !objects::in_use(tx.conn, &endpoint.template_id)? {
        objects::delete::<Template>(tx, &endpoint.template_id)?;
    }
    Ok(())
}

fn take_template(input: &mut EndpointInput) -> Result<Option<TemplateInput>, Problem> {
    match (input.template.take(), &input.template_id) {
        (Some(_), Some(_)) => Err(Problem::invalid("templateId and template cannot both be given")),
        (inline, _) => Ok(inline),
    }
}

/// Saves an inline template in place of the one that belongs to the endpoint, else as a new one.
/// Returns its id.
fn save_bound(tx: &Tx<'_>, old: &Endpoint, inline: TemplateInput) -> Result<String, Problem> {
    let bound = objects::find::<Template>(tx.conn, &old.template_id)?
        .filter(|template| template.bound_endpoint_id.as_deref() == Some(old.id.as_str()));
    match bound {
        Some(bound) => {
            let (before, after) = template::update(tx, &bound.id, inline, Update::Whole)?;
            roll_out(tx, &before, &after)?;
            Ok(bound.id)
        }
        None => Ok(template::create(tx, inline, Some(&old.id))?.id),
    }
}

/// Returns an endpoint with the defaults of an API.
fn unset(api: Api) -> Endpoint {
    Endpoint {
        id: ids::endpoint(),
        name: String::new(),
        template_id: String::new(),
        kind: "QB".to_owned(),
        compute_type: "GPU".to_owned(),
        gpu_ids: String::new(),
        gpu_type_ids: Vec::new(),
        gpu_count: 1,
        cpu_flavor_ids: Vec::new(),
        instance_ids: Vec::new(),
        vcpu_count: 2,
        workers_min: 0,
        workers_max: 3,
        workers_standby: 1,
        workers_pfb_target: 0,
        idle_timeout: if api == Api::Rest { 5 } else { 10 },
        scaler_type: "QUEUE_DELAY".to_owned(),
        scaler_value: 4.0,
        execution_timeout_ms: None,
        flash_boot: FlashBoot::Off,
        locations: None,
        network_volume_id: None,
        network_volume_ids: Vec::new(),
        allowed_cuda_versions: Vec::new(),
        min_cuda_version: None,
        compliance: Vec::new(),
        model_references: Vec::new(),
        hub_release_id: None,
        flash_environment_id: None,
        env: BTreeMap::new(),
        version: 0,
        created_at: now_ms(),
    }
}

/// Returns an endpoint that has only defaults, for tests.
#[cfg(test)]
pub(crate) fn blank() -> Endpoint {
    unset(Api::GraphQl)
}

/// Returns the endpoint that results from a `saveEndpoint` without any settings: as on the real
/// service, scaling and placement have their defaults, and all other settings are kept.
fn reset(old: &Endpoint) -> Endpoint {
    let unset = unset(Api::GraphQl);
    Endpoint {
        gpu_count: unset.gpu_count,
        workers_min: unset.workers_min,
        workers_max: unset.workers_max,
        workers_standby: unset.workers_standby,
        workers_pfb_target: unset.workers_pfb_target,
        idle_timeout: unset.idle_timeout,
        scaler_type: unset.scaler_type,
        scaler_value: unset.scaler_value,
        execution_timeout_ms: unset.execution_timeout_ms,
        flash_boot: unset.flash_boot,
        locations: unset.locations,
        network_volume_id: unset.network_volume_id,
        network_volume_ids: unset.network_volume_ids,
        ..old.clone()
    }
}

fn apply(endpoint: &mut Endpoint, input: EndpointInput) {
    fn set<T>(value: &mut T, wanted: Option<T>) {
        if let Some(wanted) = wanted {
            *value = wanted;
        }
    }
    set(&mut endpoint.name, input.name);
    set(&mut endpoint.template_id, input.template_id);
    set(&mut endpoint.kind, input.kind);
    set(&mut endpoint.compute_type, input.compute_type);
    set(&mut endpoint.gpu_count, input.gpu_count);
    set(&mut endpoint.cpu_flavor_ids, input.cpu_flavor_ids);
    set(&mut endpoint.vcpu_count, input.vcpu_count);
    set(&mut endpoint.workers_min, input.workers_min);
    set(&mut endpoint.workers_max, input.workers_max);
    set(&mut endpoint.workers_standby, input.workers_standby);
    set(&mut endpoint.workers_pfb_target, input.workers_pfb_target);
    set(&mut endpoint.idle_timeout, input.idle_timeout);
    set(&mut endpoint.scaler_type, input.scaler_type);
    set(&mut endpoint.scaler_value, input.scaler_value);
    set(&mut endpoint.execution_timeout_ms, input.execution_timeout_ms.map(Some));
    set(&mut endpoint.flash_boot, input.flash_boot);
    set(&mut endpoint.locations, input.locations.map(non_empty));
    set(&mut endpoint.network_volume_id, input.network_volume_id.map(non_empty));
    set(&mut endpoint.network_volume_ids, input.network_volume_ids);
    set(&mut endpoint.allowed_cuda_versions, input.allowed_cuda_versions);
    set(&mut endpoint.min_cuda_version, input.min_cuda_version.map(non_empty));
    set(&mut endpoint.compliance, input.compliance);
    set(&mut endpoint.model_references, input.model_references);
    set(&mut endpoint.hub_release_id, input.hub_release_id.map(non_empty));
    set(&mut endpoint.flash_environment_id, input.flash_environment_id.map(non_empty));
    set(&mut endpoint.env, input.env);
    if let Some(instance_ids) = input.instance_ids {
        if !instance_ids.is_empty() {
            "CPU".clone_into(&mut endpoint.compute_type);
        }
        endpoint.instance_ids = instance_ids;
    }
    if let Some(gpu_ids) = input.gpu_ids.filter(|gpu_ids| *gpu_ids != endpoint.gpu_ids) {
        endpoint.gpu_type_ids = gpu::types_of(&gpu_ids);
        endpoint.gpu_ids = gpu_ids;
    }
    if let Some(gpu_type_ids) = input.gpu_type_ids {
        endpoint.gpu_ids = gpu::pools_of(&gpu_type_ids);
        endpoint.gpu_type_ids = gpu_type_ids;
    }
}
