//! Pods as GraphQL shows them. The workers of endpoints are shown as pods too, with null in most
//! fields.

use juniper::{FieldResult, GraphQLInputObject, GraphQLObject, graphql_object};
use rusqlite::Connection;

use super::{Ctx, int};
use crate::billing::{dollars, pod_price};
use crate::catalog::gpus;
use crate::clock::iso;
use crate::pods::model::Pod;
use crate::pods::status::{ADDRESS, Condition, Status};
use crate::store::objects;

/// A pod.
pub(super) struct PodView {
    id: String,
    desired_status: String,
    /// The pod; `None` for the worker of an endpoint.
    pod: Option<Pod>,
}

impl PodView {
    /// Returns the view of a pod.
    pub(super) fn of(pod: Pod) -> PodView {
        let desired_status = pod.desired_status.name().to_owned();
        PodView { id: pod.id.clone(), desired_status, pod: Some(pod) }
    }

    /// Returns the view of a worker of an endpoint.
    pub(super) fn of_worker(id: String, desired_status: &str) -> PodView {
        PodView { id, desired_status: desired_status.to_owned(), pod: None }
    }

    /// Returns the condition of the pod; `None` for the worker of an endpoint.
    fn condition(&self, context: &Ctx) -> Option<Condition> {
        self.pod.as_ref().map(|pod| context.app.pod_runner.condition(pod))
    }

    fn shown<T>(&self, part: impl FnOnce(&Pod) -> T) -> Option<T> {
        self.pod.as_ref().map(part)
    }
}

/// Reads a pod by its id; returns `None` if there is none.
pub(super) async fn find(context: &Ctx, id: String) -> FieldResult<Option<PodView>> {
    let read = move |conn: &Connection| objects::find::<Pod>(conn, &id);
    Ok(context.app.store.read(read).await?.map(PodView::of))
}

/// The pod to show.
#[derive(GraphQLInputObject)]
pub(super) struct PodFilter {
    pub(super) pod_id: String,
}

/// The present condition of a running pod.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntime {
    uptime_in_seconds: Option<i32>,
    ports: Option<Vec<PodRuntimePort>>,
    gpus: Option<Vec<PodRuntimeGpu>>,
    container: Option<PodRuntimeContainer>,
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

/// A GPU of a running pod. Its load is not measured.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntimeGpu {
    id: Option<String>,
    gpu_util_percent: Option<i32>,
    memory_util_percent: Option<i32>,
}

/// The container of a running pod. Its load is not measured.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodRuntimeContainer {
    cpu_percent: Option<i32>,
    memory_percent: Option<i32>,
}

/// The machine that a pod runs on.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct PodMachineInfo {
    pod_host_id: Option<String>,
    gpu_display_name: Option<String>,
    gpu_type_id: Option<String>,
    location: Option<String>,
    data_center_id: Option<String>,
}

impl PodRuntime {
    fn of(pod: &Pod, condition: Condition) -> PodRuntime {
        let ports = condition.ports.into_iter().map(|port| PodRuntimePort {
            ip: Some(ADDRESS.to_owned()),
            // Clients reach the pod at this address.
            is_ip_public: Some(true),
            private_port: Some(i32::from(port.private)),
            public_port: Some(i32::from(port.public)),
            kind: Some(port.protocol),
        });
        let gpus = (0..pod.gpu_count).map(|number| PodRuntimeGpu {
            id: Some(format!("{}-gpu-{number}", pod.id)),
            gpu_util_percent: None,
            memory_util_percent: None,
        });
        PodRuntime {
            uptime_in_seconds: Some(int(condition.uptime)),
            ports: Some(ports.collect()),
            gpus: Some(gpus.collect()),
            container: Some(PodRuntimeContainer { cpu_percent: None, memory_percent: None }),
        }
    }
}

#[graphql_object(context = Ctx, name = "Pod")]
impl PodView {
    fn id(&self) -> &str {
        &self.id
    }

    fn desired_status(&self) -> &str {
        &self.desired_status
    }

    fn name(&self) -> Option<String> {
        self.shown(|pod| pod.name.clone())
    }

    fn image_name(&self) -> Option<String> {
        self.shown(|pod| pod.container.image_name.clone())
    }

    /// `INTERRUPTABLE` for a pod with a bid, else `RESERVED`.
    fn pod_type(&self) -> Option<&str> {
        self.shown(|pod| if pod.interruptible { "INTERRUPTABLE" } else { "RESERVED" })
    }

    fn cost_per_hr(&self) -> Option<f64> {
        self.shown(|pod| dollars(pod_price(pod).nanos_per_hour))
    }

    fn adjusted_cost_per_hr(&self) -> Option<f64> {
        self.shown(|pod| dollars(pod_price(pod).nanos_per_hour))
    }

    fn container_disk_in_gb(&self) -> Option<i32> {
        self.shown(|pod| int(pod.container.container_disk_in_gb))
    }

    fn container_registry_auth_id(&self) -> Option<String> {
        self.pod.as_ref()?.container.container_registry_auth_id.clone()
    }

    fn volume_in_gb(&self) -> Option<i32> {
        self.shown(|pod| int(pod.container.volume_in_gb))
    }

    fn volume_mount_path(&self) -> Option<String> {
        self.shown(|pod| pod.container.volume_mount_path.clone())
    }

    fn memory_in_gb(&self) -> Option<i32> {
        self.shown(|pod| int(pod.memory))
    }

    fn vcpu_count(&self) -> Option<i32> {
        self.shown(|pod| int(pod.vcpu_count))
    }

    fn gpu_count(&self) -> Option<i32> {
        self.shown(|pod| int(pod.gpu_count))
    }

    fn docker_args(&self) -> Option<String> {
        self.shown(|pod| pod.container.docker_args.clone())
    }

    fn docker_id() -> Option<String> {
        None
    }

    /// The variables, each as `NAME=value`.
    fn env(&self) -> Option<Vec<String>> {
        let env = |pod: &Pod| pod.container.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
        self.shown(env)
    }

    fn port() -> Option<i32> {
        None
    }

    fn ports(&self) -> Option<String> {
        self.shown(|pod| pod.container.ports.join(","))
    }

    fn last_status_change(&self) -> Option<String> {
        self.shown(|pod| pod.last_status_change.clone())
    }

    fn last_started_at(&self) -> Option<String> {
        self.shown(|pod| iso(pod.started_at))
    }

    fn created_at(&self) -> Option<String> {
        self.shown(|pod| iso(pod.created_at))
    }

    fn uptime_seconds(&self, context: &Ctx) -> Option<i32> {
        self.condition(context).map(|condition| int(condition.uptime))
    }

    fn machine_id(&self) -> Option<&str> {
        self.shown(|_| "plumb")
    }

    fn template_id(&self) -> Option<String> {
        self.pod.as_ref()?.template_id.clone()
    }

    fn network_volume_id(&self) -> Option<String> {
        self.pod.as_ref()?.network_volume_id.clone()
    }

    fn locked(&self) -> Option<bool> {
        self.shown(|pod| pod.locked)
    }

    /// The condition of the running pod; null unless the pod runs.
    fn runtime(&self, context: &Ctx) -> Option<PodRuntime> {
        let condition = self.condition(context)?;
        let is_running = condition.status == Status::Running;
        self.pod.as_ref().filter(|_| is_running).map(|pod| PodRuntime::of(pod, condition))
    }

    fn machine(&self) -> Option<PodMachineInfo> {
        self.shown(|pod| PodMachineInfo {
            pod_host_id: Some(format!("{}-plumb", pod.id)),
            gpu_display_name: pod.gpu_type_id.as_deref().and_then(gpus::find).map(gpus::Gpu::name),
            gpu_type_id: pod.gpu_type_id.clone(),
            location: pod.data_center_id.split('-').next().map(str::to_owned),
            data_center_id: Some(pod.data_center_id.clone()),
        })
    }
}
