//! The rules for every pod, no matter which API made it.

use super::model::{CLOUDS, Pod};
use crate::catalog::{self, DATA_CENTERS, POD_CPU_FLAVORS};
use crate::field_name::{CPU_FLAVOR, GPU_COUNT, NETWORK_MOUNT_PATH, VCPU_COUNT, VOLUME_MOUNT_PATH};
use crate::problem::Problem;
use crate::resources::volume::Volume;
use crate::resources::{check_name, check_one_of, check_range, gpu, template};
use crate::store::Tx;
use crate::store::objects;
use crate::workers::mounts::is_usable;

/// Checks the values of a pod, and the objects that it refers to.
pub(super) fn check(tx: &Tx<'_>, pod: &Pod) -> Result<(), Problem> {
    let any = i64::from(i32::MAX);
    check_name(&pod.name)?;
    check_one_of("computeType", &pod.compute_type, &["GPU", "CPU"])?;
    check_one_of("cloudType", &pod.cloud, CLOUDS)?;
    if let Some(id) = &pod.gpu_type_id {
        gpu::check_types(std::slice::from_ref(id))?;
        check_range(GPU_COUNT, pod.gpu_count, 1, catalog::GPUS_MAX)?;
    }
    if let Some(flavor) = &pod.cpu_flavor_id {
        check_one_of(CPU_FLAVOR, flavor, POD_CPU_FLAVORS)?;
    }
    check_range(VCPU_COUNT, pod.vcpu_count, 1, any)?;
    if pod.bid_per_gpu.is_some_and(|bid| bid < 0.0) {
        return Err(Problem::invalid("bidPerGpu must be at least 0"));
    }
    template::check_settings(tx, &pod.container)?;
    let path = &pod.container.volume_mount_path;
    if !is_usable(path.as_ref()) {
        let is_network = pod.network_volume_id.is_some();
        let field = if is_network { NETWORK_MOUNT_PATH } else { VOLUME_MOUNT_PATH };
        return Err(Problem::broken_rule(|version| {
            let field = field.of(version);
            format!("{field} must be an absolute path like \"/workspace\", not \"{path}\"")
        }));
    }
    Ok(())
}

/// Returns the data center of a pod: the one of its network volume, else the first given one.
pub(super) fn data_center(tx: &Tx<'_>, pod: &Pod, given: Vec<String>) -> Result<String, Problem> {
    given.iter().try_for_each(|id| check_one_of("dataCenterIds", id, DATA_CENTERS))?;
    let Some(id) = &pod.network_volume_id else {
        return Ok(given.into_iter().next().unwrap_or_else(|| DATA_CENTERS[0].to_owned()));
    };
    let volume = objects::find::<Volume>(tx.conn, id)?;
    let volume =
        volume.ok_or_else(|| Problem::invalid(format!("network volume \"{id}\" not found")))?;
    let place = volume.data_center_id;
    if !given.is_empty() && !given.contains(&place) {
        return Err(Problem::invalid(format!(
            "network volume \"{id}\" is in {place}, which is not among dataCenterIds"
        )));
    }
    Ok(place)
}
