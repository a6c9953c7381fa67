//! `/pods`

mod shapes;
mod shown;

use axum::http::StatusCode;
use axum::response::Response;
use rusqlite::Connection;
use serde_json::Value;

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{flag, list as list_of, one_of, text, texts};
use crate::pods::change::{self, Action};
use crate::pods::model::{Pod, PodInput};
use crate::problem::{Kind, Problem};
use crate::resources::template::TemplateInput;
use crate::store::{Tx, objects};
use shapes::{body, change as change_shape, pod_shape};
use shown::expanded;

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/pods/{id}";
    vec![
        filtered(expandable(op::get("/pods", "ListPods", "List pods", list)))
            .gives(200, list_of(pod_shape())),
        op::post("/pods", "CreatePod", "Create a pod and start it", create)
            .takes(body())
            .gives(201, pod_shape()),
        expandable(op::get(ONE, "GetPod", "Find a pod", read)).gives(200, pod_shape()),
        op::patch(ONE, "UpdatePod", "Change a pod; it gets another process", update)
            .takes(change_shape())
            .gives(200, pod_shape()),
        op::post("/pods/{id}/update", "UpdatePodByPost", "Change a pod, without PATCH", update)
            .takes(change_shape())
            .gives(200, pod_shape()),
        op::delete(ONE, "DeletePod", "Delete a pod with its volume", delete).gives_nothing(204),
        op::post("/pods/{id}/start", "StartPod", "Start a pod that is stopped", start)
            .gives(200, pod_shape()),
        op::post("/pods/{id}/stop", "StopPod", "Stop a pod; its volume stays", stop)
            .gives(200, pod_shape()),
        op::post("/pods/{id}/restart", "RestartPod", "Restart a pod that runs", restart)
            .gives(200, pod_shape()),
        op::post("/pods/{id}/reset", "ResetPod", "Empty the container disk of a pod", reset)
            .gives(200, pod_shape()),
    ]
}

fn expandable(operation: Operation) -> Operation {
    operation
        .query("includeMachine", flag().note("Add its machine"))
        .query("includeNetworkVolume", flag().note("Add its network volume"))
        .query("includeSavingsPlans", flag().note("Add its savings plans: there are none"))
        .query("includeTemplate", flag().note("Add the template that it was made from"))
        .query("includeWorkers", flag().note("Changes nothing: workers stand with their endpoint"))
}

fn filtered(operation: Operation) -> Operation {
    operation
        .query("computeType", one_of(&["GPU", "CPU"]))
        .query("cpuFlavorId", texts())
        .query("dataCenterId", texts())
        .query("desiredStatus", one_of(&["RUNNING", "EXITED", "TERMINATED"]))
        .query("endpointId", text().note("No pod belongs to an endpoint"))
        .query("gpuTypeId", texts())
        .query("id", text())
        .query("imageName", text())
        .query("name", text())
        .query("networkVolumeId", text())
        .query("templateId", text())
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Pod>(conn, stale_ms);
    let mut pods = request.app.store.read(read).await?;
    pods.retain(|pod| is_asked_for(&request, pod));
    let shown = expanded(&request, pods).await?;
    Ok(answer::listed(&request.app, shown))
}

/// Returns true if the filters of a request select a pod.
fn is_asked_for(request: &RestRequest, pod: &Pod) -> bool {
    let is = |name: &str, value: Option<&str>| {
        request.parameter(name).is_none_or(|wanted| Some(wanted.as_str()) == value)
    };
    let is_one_of = |name: &str, value: Option<&str>| {
        let wanted = request.parameters(name);
        wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|one| one == value))
    };
    is("computeType", Some(&pod.compute_type))
        && is_one_of("cpuFlavorId", pod.cpu_flavor_id.as_deref())
        && is_one_of("dataCenterId", Some(&pod.data_center_id))
        && is("desiredStatus", Some(pod.desired_status.name()))
        && is("endpointId", None)
        && is_one_of("gpuTypeId", pod.gpu_type_id.as_deref())
        && is("id", Some(&pod.id))
        && is("imageName", Some(&pod.container.image_name))
        && is("name", Some(&pod.name))
        && is("networkVolumeId", pod.network_volume_id.as_deref())
        && is("templateId", pod.template_id.as_deref())
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let input = input(request.fields()?)?;
    let pod = request.app.change_pods(move |tx| change::create(tx, input)).await?;
    request.entry.object(&pod.id);
    request.app.say(&format!("pod {} made", pod.id));
    Ok(answer::json_response(StatusCode::CREATED, &one(&request, pod).await?))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let id = request.id.clone();
    let pod = request.app.store.read(move |conn| objects::get::<Pod>(conn, &id)).await?;
    Ok(answer::shown(&request.app, one(&request, pod).await?))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, input) = (request.id.clone(), change_of(request.fields()?)?);
    let write = move |tx: &Tx<'_>| change::update(tx, &id, input);
    let pod = request.app.change_pods(write).await.map_err(plain)?;
    request.app.say(&format!("pod {} changed", pod.id));
    Ok(answer::updated(&request.app, one(&request, pod).await?))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    request.app.delete_pod(&request.id).await?;
    Ok(answer::deleted())
}

async fn start(request: RestRequest) -> Result<Response, Problem> {
    act(request, Action::Start).await
}

async fn stop(request: RestRequest) -> Result<Response, Problem> {
    act(request, Action::Stop).await
}

async fn restart(request: RestRequest) -> Result<Response, Problem> {
    act(request, Action::Restart).await
}

async fn reset(request: RestRequest) -> Result<Response, Problem> {
    act(request, Action::Reset).await
}

async fn act(request: RestRequest, action: Action) -> Result<Response, Problem> {
    let pod = request.app.act_on_pod(&request.id, action).await.map_err(plain)?;
    Ok(answer::shown(&request.app, one(&request, pod).await?))
}

async fn one(request: &RestRequest, pod: Pod) -> Result<Value, Problem> {
    let shown = expanded(request, vec![pod]).await?;
    Ok(shown.into_iter().next().unwrap_or_default())
}

/// Turns a conflict into an invalid request, because this version has no status 409.
fn plain(mut problem: Problem) -> Problem {
    if problem.kind == Kind::Conflict {
        problem.kind = Kind::Invalid;
    }
    problem
}

fn input(mut fields: Fields) -> Result<PodInput, Problem> {
    // Settings of the placement are checked and ignored: there is only this machine.
    for name in ["minDiskBandwidthMBps", "minDownloadMbps", "minUploadMbps"] {
        fields.number(name)?;
    }
    for name in ["cpuFlavorPriority", "dataCenterPriority", "gpuTypePriority"] {
        fields.text(name)?;
    }
    fields.texts("countryCodes")?;
    fields.flag("supportPublicIp")?;
    let allowed_cuda_versions = fields.texts("allowedCudaVersions")?;
    let mut input = PodInput {
        compute_type: fields.text("computeType")?,
        cloud: fields.text("cloudType")?,
        gpu_type_ids: fields.texts("gpuTypeIds")?,
        gpu_count: fields.integer("gpuCount")?,
        cpu_flavor_ids: fields.texts("cpuFlavorIds")?,
        vcpu_count: fields.integer("vcpuCount")?,
        min_ram_per_gpu: fields.integer("minRAMPerGPU")?,
        min_vcpu_per_gpu: fields.integer("minVCPUPerGPU")?,
        data_center_ids: fields.texts("dataCenterIds")?,
        template_id: fields.text("templateId")?,
        network_volume_id: fields.nullable_text("networkVolumeId")?,
        interruptible: fields.flag("interruptible")?,
        ..change_of(fields)?
    };
    input.container.allowed_cuda_versions = allowed_cuda_versions;
    Ok(input)
}

fn change_of(mut fields: Fields) -> Result<PodInput, Problem> {
    Ok(PodInput {
        name: fields.text("name")?,
        locked: fields.flag("locked")?,
        global_networking: fields.flag("globalNetworking")?,
        container: TemplateInput {
            image_name: fields.text("imageName")?,
            container_disk_in_gb: fields.integer("containerDiskInGb")?,
            container_registry_auth_id: fields.nullable_text("containerRegistryAuthId")?,
            docker_entrypoint: fields.texts("dockerEntrypoint")?,
            docker_start_cmd: fields.texts("dockerStartCmd")?,
            env: fields.text_map("env")?,
            ports: fields.texts("ports")?,
            volume_in_gb: fields.integer("volumeInGb")?,
            volume_mount_path: fields.text("volumeMountPath")?,
            ..TemplateInput::default()
        },
        ..PodInput::default()
    })
}
