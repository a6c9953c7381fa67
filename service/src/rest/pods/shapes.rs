//! The forms of pods in requests and answers.

use crate::catalog::{self, CUDA_VERSIONS, DATA_CENTERS, GPUS_MAX, POD_CPU_FLAVORS};
use crate::description::shape::{
    Field, NO_ZERO, NOT_BLANK, Shape, any, count, environment, flag, integer, list as list_of, may,
    must, named, number, object, one_of, text, texts,
};
use crate::pods::model::CLOUDS;
use crate::resources::name;
use crate::resources::template::PORT;

pub(super) fn body() -> Shape {
    let gpu_types: Vec<&'static str> = catalog::known_gpu_types().collect();
    let priority = || one_of(&["availability", "custom"]);
    let body = object([
        may("allowedCudaVersions", list_of(one_of(CUDA_VERSIONS))),
        may("cloudType", one_of(CLOUDS)),
        may("computeType", one_of(&["GPU", "CPU"])),
        may("countryCodes", texts()),
        may("cpuFlavorIds", list_of(one_of(POD_CPU_FLAVORS)).note("The first one is taken")),
        may("cpuFlavorPriority", priority()),
        may("dataCenterIds", list_of(one_of(DATA_CENTERS)).note("The first one is taken")),
        may("dataCenterPriority", priority()),
        may("gpuCount", integer().between(1, GPUS_MAX)),
        may("gpuTypeIds", list_of(one_of(&gpu_types)).note("The first one is taken")),
        may("gpuTypePriority", priority()),
        may("interruptible", flag()),
        may("minDiskBandwidthMBps", number()),
        may("minDownloadMbps", number()),
        may("minUploadMbps", number()),
        may("minRAMPerGPU", count()),
        may("minVCPUPerGPU", count().at_least(1)),
        may("networkVolumeId", text().or_null().note("In the place of a volume of its own")),
        may("supportPublicIp", flag()),
        may("templateId", text().note("Its settings are copied once")),
        may("vcpuCount", count().at_least(1).note("Without GPUs")),
    ]);
    named("PodCreateInput", body.and(settings()).null_is_absent())
}

pub(super) fn change() -> Shape {
    named("PodUpdateInput", object(settings()).null_is_absent())
}

/// Returns the settings that can be given on create and on change.
fn settings() -> Vec<Field> {
    let command = || list_of(text().like(NO_ZERO));
    vec![
        may("containerDiskInGb", count().note("Empty after each start")),
        may("containerRegistryAuthId", text().or_null()),
        may("dockerEntrypoint", command()),
        may("dockerStartCmd", command()),
        may("env", environment()),
        may("globalNetworking", flag()),
        may("imageName", text().like(NOT_BLANK).note("Required without a template")),
        may("locked", flag().note("A locked pod cannot be stopped or reset")),
        may("name", name()),
        may("ports", list_of(text().like(PORT))),
        may("volumeInGb", count().note("Its own volume; 0 for none. It cannot become less")),
        may("volumeMountPath", text()),
    ]
}

pub(super) fn pod_shape() -> Shape {
    let gpu = object([
        must("id", text()),
        must("count", count()),
        must("displayName", text()),
        must("securePrice", number()),
        must("communityPrice", number()),
    ]);
    let machine = object([
        must("dataCenterId", text()),
        must("location", text()),
        must("gpuTypeId", text().or_null()),
        must("cpuTypeId", text().or_null()),
        must("secureCloud", flag()),
    ]);
    let volume = object([
        must("id", text()),
        must("name", text()),
        must("size", count()),
        must("dataCenterId", text()),
    ]);
    let pod = object([
        must("id", text()),
        must("name", text()),
        must("consumerUserId", text()),
        must("desiredStatus", one_of(&["RUNNING", "EXITED", "TERMINATED"])),
        must("image", text()),
        must("dockerEntrypoint", texts()),
        must("dockerStartCmd", texts()),
        must("env", environment()),
        must("ports", texts()),
        must("containerDiskInGb", count()),
        must("containerRegistryAuthId", text().or_null()),
        must("volumeInGb", count()),
        must("volumeMountPath", text()),
        must("volumeEncrypted", flag()),
        must("gpu", gpu.or_null()),
        must("cpuFlavorId", text().or_null()),
        must("vcpuCount", count()),
        must("memoryInGb", count()),
        must("machineId", text()),
        must("costPerHr", number()),
        must("adjustedCostPerHr", number()),
        must("interruptible", flag()),
        must("locked", flag()),
        must("templateId", text().or_null()),
        must("endpointId", text().or_null()),
        must("aiApiId", text().or_null()),
        must("slsVersion", integer().or_null()),
        must("lastStartedAt", text()),
        must("lastStatusChange", text()),
        must("publicIp", text().or_null()),
        must(
            "portMappings",
            any().note("Each port with the port of this machine; null if it does not run"),
        ),
        may("machine", machine),
        may("networkVolume", volume.or_null()),
        may("template", super::super::templates::template_shape().or_null()),
        may("savingsPlans", list_of(any())),
    ]);
    named("Pod", pod)
}
