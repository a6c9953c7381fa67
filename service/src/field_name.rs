//! The names of the fields that messages about rules contain. The versions of the management API
//! name some fields differently.

/// A version of the management API with names of its own for fields. GraphQL has the names of
/// version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiVersion {
    One,
    Two,
}

/// The name of a field in each version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldName {
    one: &'static str,
    two: &'static str,
}

impl FieldName {
    const fn new(one: &'static str, two: &'static str) -> FieldName {
        FieldName { one, two }
    }

    /// Returns the name in a version.
    pub(crate) fn of(self, version: ApiVersion) -> &'static str {
        match version {
            ApiVersion::One => self.one,
            ApiVersion::Two => self.two,
        }
    }
}

impl From<&'static str> for FieldName {
    /// Returns a field with the same name in each version.
    fn from(name: &'static str) -> FieldName {
        FieldName::new(name, name)
    }
}

pub(crate) const CONTAINER_DISK: FieldName = FieldName::new("containerDiskInGb", "disk");
pub(crate) const CPU_FLAVOR: FieldName = FieldName::new("cpuFlavorIds", "cpu.id");
pub(crate) const DATA_CENTER: FieldName = FieldName::new("dataCenterId", "dataCenter");
pub(crate) const DOCKER_ARGS: FieldName = FieldName::new("dockerArgs", "args");
pub(crate) const EXECUTION_TIMEOUT: FieldName = FieldName::new("executionTimeoutMs", "timeout");
pub(crate) const GPU_COUNT: FieldName = FieldName::new("gpuCount", "gpu.count");
pub(crate) const GPU_POOLS: FieldName = FieldName::new("gpuIds", "gpu.pools");
pub(crate) const GPU_TYPES: FieldName = FieldName::new("gpuTypeIds", "gpu");
pub(crate) const IDLE_TIMEOUT: FieldName = FieldName::new("idleTimeout", "workers.idleTimeout");
pub(crate) const IMAGE: FieldName = FieldName::new("imageName", "image");
pub(crate) const NETWORK_MOUNT_PATH: FieldName =
    FieldName::new("volumeMountPath", "mounts.network[0].path");
pub(crate) const REGISTRY: FieldName = FieldName::new("container registry auth", "registry");
pub(crate) const SCALER_TYPE: FieldName = FieldName::new("scalerType", "scaling.type");
pub(crate) const VCPU_COUNT: FieldName = FieldName::new("vcpuCount", "cpu.vcpuCount");
pub(crate) const VOLUME_MOUNT_PATH: FieldName =
    FieldName::new("volumeMountPath", "mounts.persistent.path");
pub(crate) const VOLUME_SIZE: FieldName = FieldName::new("volumeInGb", "mounts.persistent.size");
pub(crate) const WORKERS_MAX: FieldName = FieldName::new("workersMax", "workers.max");
pub(crate) const WORKERS_MIN: FieldName = FieldName::new("workersMin", "workers.min");

/// Returns the name of the value that an endpoint scales by.
pub(crate) fn scaler_value(scaler_type: &str) -> FieldName {
    let two = match scaler_type {
        "REQUEST_COUNT" => "scaling.requestCount",
        _ => "scaling.queueDelay",
    };
    FieldName::new("scalerValue", two)
}
