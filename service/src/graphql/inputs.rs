//! The input types of GraphQL, and their conversion into the inputs of resources.

use std::collections::BTreeMap;

use juniper::GraphQLInputObject;

use crate::resources::comma_list;
use crate::resources::endpoint::{EndpointInput as Endpoint, FlashBoot};
use crate::resources::registry::RegistryInput;
use crate::resources::template::TemplateInput;

/// An environment variable: a name with its value.
#[derive(GraphQLInputObject)]
pub(super) struct EnvironmentVariableInput {
    key: String,
    value: String,
}

/// A network volume to mount.
#[derive(GraphQLInputObject)]
pub(super) struct NetworkVolumeIdInput {
    network_volume_id: String,
}

/// An endpoint. Fields that are left out of a change are reset, with few exceptions.
#[derive(GraphQLInputObject)]
pub(super) struct EndpointInput {
    pub(super) id: Option<String>,
    name: String,
    template_id: Option<String>,
    template: Option<SaveTemplateInput>,
    #[graphql(name = "type")]
    kind: Option<String>,
    gpu_ids: Option<String>,
    gpu_count: Option<i32>,
    instance_ids: Option<Vec<String>>,
    workers_min: Option<i32>,
    workers_max: Option<i32>,
    workers_standby: Option<i32>,
    #[graphql(name = "workersPFBTarget")]
    workers_pfb_target: Option<i32>,
    idle_timeout: Option<i32>,
    scaler_type: Option<String>,
    scaler_value: Option<f64>,
    execution_timeout_ms: Option<i32>,
    flash_boot_type: Option<FlashBoot>,
    locations: Option<String>,
    network_volume_id: Option<String>,
    network_volume_ids: Option<Vec<NetworkVolumeIdInput>>,
    allowed_cuda_versions: Option<String>,
    min_cuda_version: Option<String>,
    compliance: Option<Vec<String>>,
    model_references: Option<Vec<String>>,
    hub_release_id: Option<String>,
    flash_environment_id: Option<String>,
    env: Option<Vec<EnvironmentVariableInput>>,
}

impl EndpointInput {
    pub(super) fn into_resource(self) -> Endpoint {
        let volumes = |list: Vec<NetworkVolumeIdInput>| {
            list.into_iter().map(|item| item.network_volume_id).collect()
        };
        Endpoint {
            name: Some(self.name),
            template_id: self.template_id,
            template: self.template.map(SaveTemplateInput::into_resource),
            kind: self.kind,
            gpu_ids: self.gpu_ids,
            gpu_count: self.gpu_count.map(i64::from),
            instance_ids: self.instance_ids,
            workers_min: self.workers_min.map(i64::from),
            workers_max: self.workers_max.map(i64::from),
            workers_standby: self.workers_standby.map(i64::from),
            workers_pfb_target: self.workers_pfb_target.map(i64::from),
            idle_timeout: self.idle_timeout.map(i64::from),
            scaler_type: self.scaler_type,
            scaler_value: self.scaler_value,
            execution_timeout_ms: self.execution_timeout_ms.map(i64::from),
            flash_boot: self.flash_boot_type,
            locations: self.locations,
            network_volume_id: self.network_volume_id,
            network_volume_ids: self.network_volume_ids.map(volumes),
            allowed_cuda_versions: self.allowed_cuda_versions.as_deref().map(comma_list),
            min_cuda_version: self.min_cuda_version,
            compliance: self.compliance,
            model_references: self.model_references,
            hub_release_id: self.hub_release_id,
            flash_environment_id: self.flash_environment_id,
            env: self.env.map(environment),
            ..Endpoint::default()
        }
    }
}

/// A whole template. Fields that are left out of a change are reset.
#[derive(GraphQLInputObject)]
pub(super) struct SaveTemplateInput {
    pub(super) id: Option<String>,
    name: Option<String>,
    image_name: Option<String>,
    category: Option<String>,
    container_disk_in_gb: Option<i32>,
    container_registry_auth_id: Option<String>,
    pub(super) docker_args: Option<String>,
    pub(super) env: Option<Vec<EnvironmentVariableInput>>,
    is_public: Option<bool>,
    is_serverless: Option<bool>,
    ports: Option<String>,
    readme: Option<String>,
    volume_in_gb: Option<i32>,
    volume_mount_path: Option<String>,
    start_ssh: Option<bool>,
    start_jupyter: Option<bool>,
    start_script: Option<String>,
}

impl SaveTemplateInput {
    pub(super) fn into_resource(self) -> TemplateInput {
        TemplateInput {
            name: self.name,
            image_name: self.image_name,
            category: self.category,
            container_disk_in_gb: self.container_disk_in_gb.map(i64::from),
            container_registry_auth_id: self.container_registry_auth_id,
            docker_args: self.docker_args,
            env: self.env.map(environment),
            is_public: self.is_public,
            is_serverless: self.is_serverless,
            ports: self.ports.as_deref().map(comma_list),
            readme: self.readme,
            volume_in_gb: self.volume_in_gb.map(i64::from),
            volume_mount_path: self.volume_mount_path,
            start_ssh: self.start_ssh,
            start_jupyter: self.start_jupyter,
            start_script: self.start_script,
            ..TemplateInput::default()
        }
    }
}

pub(super) fn environment(pairs: Vec<EnvironmentVariableInput>) -> BTreeMap<String, String> {
    pairs.into_iter().map(|pair| (pair.key, pair.value)).collect()
}

/// A new template for an endpoint.
#[derive(GraphQLInputObject)]
pub(super) struct UpdateEndpointTemplateInput {
    pub(super) endpoint_id: String,
    pub(super) template_id: String,
}

/// A new least number of workers for an endpoint.
#[derive(GraphQLInputObject)]
pub(super) struct UpdateEndpointWorkersMinInput {
    pub(super) endpoint_id: String,
    pub(super) worker_count: i32,
}

/// A new greatest number of workers for an endpoint.
#[derive(GraphQLInputObject)]
pub(super) struct UpdateEndpointWorkersMaxInput {
    pub(super) endpoint_id: String,
    pub(super) worker_count: i32,
}

/// A new registry credential.
#[derive(GraphQLInputObject)]
pub(super) struct SaveRegistryAuthInput {
    name: String,
    username: String,
    password: String,
}

impl SaveRegistryAuthInput {
    pub(super) fn into_resource(self) -> RegistryInput {
        RegistryInput {
            name: Some(self.name),
            username: Some(self.username),
            password: Some(self.password),
        }
    }
}

/// A new username and password for a registry credential.
#[derive(GraphQLInputObject)]
pub(super) struct UpdateRegistryAuthInput {
    pub(super) id: String,
    username: String,
    password: String,
}

impl UpdateRegistryAuthInput {
    pub(super) fn into_resource(self) -> RegistryInput {
        RegistryInput { name: None, username: Some(self.username), password: Some(self.password) }
    }
}

/// A new network volume.
#[derive(GraphQLInputObject)]
pub(super) struct CreateNetworkVolumeInput {
    pub(super) name: String,
    pub(super) size: i32,
    pub(super) data_center_id: String,
}

/// A change of a network volume.
#[derive(GraphQLInputObject)]
pub(super) struct UpdateNetworkVolumeInput {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) size: Option<i32>,
}

/// The network volume to delete.
#[derive(GraphQLInputObject)]
pub(super) struct DeleteNetworkVolumeInput {
    pub(super) id: String,
}

/// The settings of the account that can be changed.
#[derive(GraphQLInputObject)]
pub(super) struct UserSettingsInput {
    pub(super) pub_key: Option<String>,
}

/// A new secret.
#[derive(GraphQLInputObject)]
pub(super) struct SecretCreateInput {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) description: Option<String>,
}
