//! The rules for every endpoint, no matter which API made or changed it.

use super::super::template::Template;
use super::super::volume::Volume;
use super::super::{check_env, check_name, check_one_of, check_range, comma_list, gpu, number};
use super::{Api, Endpoint, SCALER_VALUE_MIN, TIMEOUT_MAX_MS};
use crate::catalog::{
    CPU_FLAVORS, CUDA_VERSIONS, ENDPOINT_TYPES, REGIONS, SCALER_TYPES, locations,
};
use crate::field_name::{
    EXECUTION_TIMEOUT, GPU_COUNT, IDLE_TIMEOUT, SCALER_TYPE, VCPU_COUNT, WORKERS_MAX, WORKERS_MIN,
    scaler_value,
};
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects;

/// Checks the values of an endpoint, the objects that it refers to, and the account's quota.
pub(super) fn check(
    tx: &Tx<'_>,
    endpoint: &Endpoint,
    api: Api,
    quota: Option<u32>,
) -> Result<(), Problem> {
    check_values(endpoint, api)?;
    if objects::find::<Template>(tx.conn, &endpoint.template_id)?.is_none() {
        return Err(Problem::invalid(format!("template \"{}\" not found", endpoint.template_id)));
    }
    for id in endpoint.volumes() {
        if objects::find::<Volume>(tx.conn, id)?.is_none() {
            return Err(Problem::invalid(format!("network volume \"{id}\" not found")));
        }
    }
    let Some(quota) = quota.map(i64::from) else { return Ok(()) };
    let endpoints = objects::list::<Endpoint>(tx.conn, 0)?;
    let others = endpoints.iter().filter(|other| other.id != endpoint.id);
    if others.map(|other| other.workers_max).sum::<i64>() + endpoint.workers_max > quota {
        return Err(Problem::invalid(format!(
            "Your worker concurrency cannot go beyond the maximum limit of ({quota}). \
             Please contact support to raise it."
        )));
    }
    Ok(())
}

fn check_values(endpoint: &Endpoint, api: Api) -> Result<(), Problem> {
    let any = i64::from(i32::MAX);
    check_name(&endpoint.name)?;
    if api == Api::GraphQl && endpoint.name.chars().count() < 3 {
        return Err(Problem::invalid("name must have at least 3 characters"));
    }
    check_one_of("type", &endpoint.kind, ENDPOINT_TYPES)?;
    check_one_of("computeType", &endpoint.compute_type, &["GPU", "CPU"])?;
    gpu::check_pools(&endpoint.gpu_ids)?;
    gpu::check_types(&endpoint.gpu_type_ids)?;
    let flavors = &endpoint.cpu_flavor_ids;
    flavors.iter().try_for_each(|id| check_one_of("cpuFlavorIds", id, CPU_FLAVORS))?;
    check_range(GPU_COUNT, endpoint.gpu_count, 1, any)?;
    check_range(VCPU_COUNT, endpoint.vcpu_count, 1, any)?;
    check_range(WORKERS_MIN, endpoint.workers_min, 0, any)?;
    check_range(WORKERS_MAX, endpoint.workers_max, 0, any)?;
    check_range("workersStandby", endpoint.workers_standby, 0, any)?;
    if endpoint.workers_min > endpoint.workers_max {
        let (min, max) = (endpoint.workers_min, endpoint.workers_max);
        return Err(Problem::broken_rule(|version| {
            let (least, most) = (WORKERS_MIN.of(version), WORKERS_MAX.of(version));
            format!("{least} must not be greater than {most}: {min} > {max}")
        }));
    }
    check_env(&endpoint.env)?;
    check_range(IDLE_TIMEOUT, endpoint.idle_timeout, 1, 3600)?;
    check_one_of(SCALER_TYPE, &endpoint.scaler_type, SCALER_TYPES)?;
    if endpoint.scaler_value < SCALER_VALUE_MIN {
        let shown = number(endpoint.scaler_value);
        let field = scaler_value(&endpoint.scaler_type);
        return Err(Problem::broken_rule(|version| {
            format!("{} must be at least {SCALER_VALUE_MIN}, not {shown}", field.of(version))
        }));
    }
    let timeout_ms = endpoint.execution_timeout_ms.unwrap_or(0);
    check_range(EXECUTION_TIMEOUT, timeout_ms, 0, TIMEOUT_MAX_MS)?;
    for location in comma_list(endpoint.locations.as_deref().unwrap_or("")) {
        if !REGIONS.contains(&location.as_str()) {
            let field = if api == Api::Rest { "dataCenterIds" } else { "locations" };
            check_one_of(field, &location, &locations())?;
        }
    }
    let versions = &endpoint.allowed_cuda_versions;
    let versions = versions.iter().chain(&endpoint.min_cuda_version);
    versions.into_iter().try_for_each(|id| check_one_of("CUDA version", id, CUDA_VERSIONS))
}
