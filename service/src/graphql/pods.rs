//! Pods as GraphQL shows them. The only ones of this service are the workers of endpoints, of which
//! little is known in the words of a pod: the rest is null.

use juniper::{GraphQLInputObject, GraphQLObject, graphql_object};

use super::Ctx;

/// A pod.
pub(super) struct PodView {
    pub(super) id: String,
    pub(super) desired_status: String,
}

/// Which pod.
#[derive(GraphQLInputObject)]
pub(super) struct PodFilter {
    pod_id: String,
}

/// The present condition of a running pod.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntime {
    uptime_in_seconds: Option<i32>,
    ports: Option<Vec<PodRuntimePort>>,
    gpus: Option<Vec<PodRuntimeGpu>>,
}

/// A port of a running pod.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntimePort {
    ip: Option<String>,
    is_ip_public: Option<bool>,
    private_port: Option<i32>,
    public_port: Option<i32>,
    #[graphql(name = "type")]
    kind: Option<String>,
}

/// A GPU of a running pod.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntimeGpu {
    id: Option<String>,
    gpu_util_percent: Option<i32>,
    memory_util_percent: Option<i32>,
}

/// The machine that a pod runs on.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodMachineInfo {
    pod_host_id: Option<String>,
    gpu_display_name: Option<String>,
    location: Option<String>,
}

#[graphql_object(context = Ctx, name = "Pod")]
impl PodView {
    fn id(&self) -> &str {
        &self.id
    }

    fn desired_status(&self) -> &str {
        &self.desired_status
    }

    fn name() -> Option<String> {
        None
    }

    fn image_name() -> Option<String> {
        None
    }

    fn pod_type() -> Option<String> {
        None
    }

    fn cost_per_hr() -> Option<f64> {
        None
    }

    fn adjusted_cost_per_hr() -> Option<f64> {
        None
    }

    fn container_disk_in_gb() -> Option<i32> {
        None
    }

    fn volume_in_gb() -> Option<i32> {
        None
    }

    fn volume_mount_path() -> Option<String> {
        None
    }

    fn memory_in_gb() -> Option<i32> {
        None
    }

    fn vcpu_count() -> Option<i32> {
        None
    }

    fn gpu_count() -> Option<i32> {
        None
    }

    fn docker_args() -> Option<String> {
        None
    }

    fn docker_id() -> Option<String> {
        None
    }

    fn env() -> Option<Vec<String>> {
        None
    }

    fn port() -> Option<i32> {
        None
    }

    fn ports() -> Option<String> {
        None
    }

    fn last_status_change() -> Option<String> {
        None
    }

    fn last_started_at() -> Option<String> {
        None
    }

    fn uptime_seconds() -> Option<i32> {
        None
    }

    fn machine_id() -> Option<String> {
        None
    }

    fn template_id() -> Option<String> {
        None
    }

    fn network_volume_id() -> Option<String> {
        None
    }

    fn runtime() -> Option<PodRuntime> {
        None
    }

    fn machine() -> Option<PodMachineInfo> {
        None
    }
}
