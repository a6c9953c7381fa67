//! The inputs of GraphQL's mutations of pods, and their conversion into the inputs of pods.

use juniper::{GraphQLEnum, GraphQLInputObject};

use super::inputs::{EnvironmentVariableInput, environment};
use crate::pods::model::{PodInput, with_nothing_more};
use crate::problem::Problem;
use crate::resources::template::TemplateInput;
use crate::resources::{comma_list, required};

/// The template that the Python SDK sends when its user chooses none. The vendor has this template,
/// and this service does not. It is not needed here: a pod without a command runs the built-in
/// server.
const VENDOR_TEMPLATE: &str = "runpod-ubuntu";

/// The tier of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, GraphQLEnum)]
pub(super) enum CloudTypeEnum {
    /// Any machine that is free; here the same as secure.
    All,
    /// Machines of the vendor.
    Secure,
    /// Machines of other owners.
    Community,
}

/// Defines the inputs of the mutations that make a pod: several GraphQL types with the same fields.
macro_rules! deploy_inputs {
    ($($(#[$about:meta])* $name:ident = $graphql:literal;)*) => {$(
        $(#[$about])*
        #[derive(GraphQLInputObject)]
        #[graphql(name = $graphql)]
        pub(super) struct $name {
            allowed_cuda_versions: Option<Vec<String>>,
            bid_per_gpu: Option<f64>,
            cloud_type: Option<CloudTypeEnum>,
            container_disk_in_gb: Option<i32>,
            container_registry_auth_id: Option<String>,
            country_code: Option<String>,
            data_center_id: Option<String>,
            deploy_cost: Option<f64>,
            docker_args: Option<String>,
            env: Option<Vec<EnvironmentVariableInput>>,
            global_network: Option<bool>,
            gpu_count: Option<i32>,
            gpu_type_id: Option<String>,
            gpu_type_id_list: Option<Vec<String>>,
            image_name: Option<String>,
            instance_id: Option<String>,
            min_download: Option<i32>,
            min_memory_in_gb: Option<i32>,
            min_upload: Option<i32>,
            min_vcpu_count: Option<i32>,
            name: Option<String>,
            network_volume_id: Option<String>,
            ports: Option<String>,
            start_jupyter: Option<bool>,
            start_ssh: Option<bool>,
            support_public_ip: Option<bool>,
            template_id: Option<String>,
            volume_in_gb: Option<i32>,
            volume_mount_path: Option<String>,
        }

        impl $name {
            /// Returns the pod that the input describes. An empty text counts as left out. Country,
            /// network speed and price are ignored, because there is only this machine.
            fn pod(self) -> PodInput {
                let gpu_type_ids = given(self.gpu_type_id).map(|id| vec![id]);
                PodInput {
                    name: given(self.name),
                    cloud: self.cloud_type.map(cloud),
                    gpu_type_ids: gpu_type_ids.or(self.gpu_type_id_list),
                    gpu_count: self.gpu_count.map(i64::from),
                    min_vcpu_per_gpu: per_gpu(self.min_vcpu_count, self.gpu_count),
                    min_ram_per_gpu: per_gpu(self.min_memory_in_gb, self.gpu_count),
                    bid_per_gpu: self.bid_per_gpu,
                    data_center_ids: given(self.data_center_id).map(|id| vec![id]),
                    global_networking: self.global_network,
                    network_volume_id: given(self.network_volume_id),
                    template_id: given(self.template_id).filter(|id| id != VENDOR_TEMPLATE),
                    container: TemplateInput {
                        image_name: given(self.image_name),
                        container_disk_in_gb: self.container_disk_in_gb.map(i64::from),
                        container_registry_auth_id: given(self.container_registry_auth_id),
                        docker_args: given(self.docker_args),
                        env: self.env.map(environment),
                        ports: given(self.ports).as_deref().map(comma_list),
                        start_jupyter: self.start_jupyter,
                        start_ssh: self.start_ssh,
                        volume_in_gb: self.volume_in_gb.map(i64::from),
                        volume_mount_path: given(self.volume_mount_path),
                        allowed_cuda_versions: self.allowed_cuda_versions,
                        ..TemplateInput::default()
                    },
                    ..PodInput::default()
                }
            }
        }
    )*};
}

deploy_inputs! {
    /// A pod with GPUs to be made.
    PodFindAndDeployOnDemandInput = "PodFindAndDeployOnDemandInput";
    /// A pod with GPUs and a bid to be made.
    PodRentInterruptableInput = "PodRentInterruptableInput";
    /// A pod without GPUs to be made.
    DeployCpuPodInput = "deployCpuPodInput";
}

/// Returns the share of each GPU of a number, rounded up.
fn per_gpu(number: Option<i32>, gpus: Option<i32>) -> Option<i64> {
    let gpus = i64::from(gpus.unwrap_or(1).max(1));
    number.map(|number| (i64::from(number) + gpus - 1) / gpus)
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn cloud(cloud: CloudTypeEnum) -> String {
    let name = if cloud == CloudTypeEnum::Community { "COMMUNITY" } else { "SECURE" };
    name.to_owned()
}

/// Returns the input. Without a template, ports and volumes that are left out are none, not the
/// defaults.
fn bare(input: PodInput) -> PodInput {
    let container = match &input.template_id {
        Some(_) => input.container,
        None => with_nothing_more(input.container),
    };
    PodInput { container, ..input }
}

impl PodFindAndDeployOnDemandInput {
    pub(super) fn into_resource(self) -> PodInput {
        bare(self.pod())
    }
}

impl PodRentInterruptableInput {
    pub(super) fn into_resource(self) -> Result<PodInput, Problem> {
        if self.bid_per_gpu.is_none() {
            return Err(required("bidPerGpu"));
        }
        Ok(PodInput { interruptible: Some(true), ..bare(self.pod()) })
    }
}

impl DeployCpuPodInput {
    pub(super) fn into_resource(self) -> Result<PodInput, Problem> {
        let instance = given(self.instance_id.clone()).unwrap_or_default();
        let mut parts = instance.split('-');
        let flavor = parts.next().filter(|flavor| !flavor.is_empty()).map(str::to_owned);
        let count = parts.next().map(|count| {
            let wrong = || {
                Problem::invalid(format!(
                    "instanceId must look like \"cpu3c-2-4\", not \"{instance}\""
                ))
            };
            count.parse::<i64>().map_err(|_| wrong())
        });
        Ok(PodInput {
            compute_type: Some("CPU".to_owned()),
            cpu_flavor_ids: flavor.map(|flavor| vec![flavor]),
            vcpu_count: count.transpose()?,
            ..bare(self.pod())
        })
    }
}

/// The pod to stop.
#[derive(GraphQLInputObject)]
pub(super) struct PodStopInput {
    pub(super) pod_id: String,
    increment_version: Option<bool>,
}

/// The pod to delete.
#[derive(GraphQLInputObject)]
pub(super) struct PodTerminateInput {
    pub(super) pod_id: String,
}

/// The pod to start, and the number of its GPUs.
#[derive(GraphQLInputObject)]
pub(super) struct PodResumeInput {
    pub(super) pod_id: String,
    pub(super) gpu_count: Option<i32>,
    sync_machine: Option<bool>,
}

/// The pod with a bid to start, with the new bid and the number of its GPUs.
#[derive(GraphQLInputObject)]
pub(super) struct PodBidResumeInput {
    pub(super) pod_id: String,
    pub(super) bid_per_gpu: f64,
    pub(super) gpu_count: Option<i32>,
}

/// The pod to reset. A hard reset does the same here.
#[derive(GraphQLInputObject)]
pub(super) struct PodResetInput {
    pub(super) pod_id: String,
    hard_reset: Option<bool>,
}

/// A change of a pod. Fields that are left out stay as they are.
#[derive(GraphQLInputObject)]
pub(super) struct PodEditJobInput {
    pub(super) pod_id: String,
    container_disk_in_gb: Option<i32>,
    container_registry_auth_id: Option<String>,
    docker_args: Option<String>,
    env: Option<Vec<EnvironmentVariableInput>>,
    image_name: Option<String>,
    ports: Option<String>,
    volume_in_gb: Option<i32>,
    volume_mount_path: Option<String>,
}

impl PodEditJobInput {
    pub(super) fn into_resource(self) -> PodInput {
        let container = TemplateInput {
            image_name: given(self.image_name),
            container_disk_in_gb: self.container_disk_in_gb.map(i64::from),
            container_registry_auth_id: self.container_registry_auth_id,
            docker_args: self.docker_args,
            env: self.env.map(environment),
            ports: self.ports.as_deref().map(comma_list),
            volume_in_gb: self.volume_in_gb.map(i64::from),
            volume_mount_path: given(self.volume_mount_path),
            ..TemplateInput::default()
        };
        PodInput { container, ..PodInput::default() }
    }
}
