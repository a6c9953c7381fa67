//! `/v2/pods`

mod requests;
mod shown;

use axum::response::Response;
use rusqlite::Connection;

use super::logs;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{flag, list as list_of, must, named, object, one_of};
use crate::pods::change::{self, Action};
use crate::pods::model::Pod;
use crate::problem::{Kind, Problem};
use crate::rest::answer;
use crate::rest::request::RestRequest;
use crate::store::{Tx, objects};
use requests::PodRequest;
use shown::{pod_shape, shown};

const ACTIONS: &[&str] = &["start", "stop", "restart", "terminate"];

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/pods/{id}";
    let listed = object([must("pods", list_of(pod_shape()))]);
    let action = object([must("action", one_of(ACTIONS))]).closed();
    vec![
        op::get("/pods", "listPods", "List pods", list)
            .query("includeClusterPods", flag().note("There are no clusters"))
            .gives(200, named("ListPodsResponse", listed)),
        op::post("/pods", "createPod", "Create a pod and start it", create)
            .takes(requests::body())
            .gives(201, pod_shape()),
        op::get(ONE, "getPod", "Get a pod", read).gives(200, pod_shape()),
        op::patch(ONE, "updatePod", "Update a pod", update)
            .takes(requests::change())
            .gives(200, pod_shape()),
        op::delete(ONE, "deletePod", "Terminate a pod; its volume goes with it", delete)
            .gives_nothing(204),
        op::post("/pods/{id}/action", "podAction", "Start, stop, restart or terminate a pod", act)
            .takes(named("PodActionRequest", action))
            .gives(200, pod_shape())
            .gives_nothing(204),
        logs::described(op::get(
            "/pods/{id}/logs",
            "getPodLogs",
            "Follow the output of a pod",
            logs::follow_pod,
        )),
    ]
}

async fn create(request: RestRequest) -> Result<Response, Problem> {
    let wanted = PodRequest::create(request.fields()?)?;
    let write = move |tx: &Tx<'_>| change::create(tx, wanted.into_create(tx)?);
    let pod = request.app.change_pods(write).await?;
    request.entry.object(&pod.id);
    request.app.say(&format!("pod {} made", pod.id));
    Ok(super::created(&shown(&request.app, &pod)))
}

async fn list(request: RestRequest) -> Result<Response, Problem> {
    let stale_ms = request.stale_ms;
    let read = move |conn: &Connection| objects::list::<Pod>(conn, stale_ms);
    let pods = request.app.store.read(read).await?;
    let shown = pods.iter().map(|pod| shown(&request.app, pod)).collect();
    Ok(super::listed(&request.app, "pods", shown))
}

async fn read(request: RestRequest) -> Result<Response, Problem> {
    let pod = find(&request).await?;
    Ok(answer::shown(&request.app, shown(&request.app, &pod)))
}

async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, wanted) = (request.id.clone(), PodRequest::change(request.fields()?)?);
    let write = move |tx: &Tx<'_>| {
        let old: Pod = objects::get(tx.conn, &id)?;
        change::update(tx, &id, wanted.into_change(tx, &old)?)
    };
    let pod = request.app.change_pods(write).await?;
    request.app.say(&format!("pod {} changed", pod.id));
    Ok(answer::shown(&request.app, shown(&request.app, &pod)))
}

async fn delete(request: RestRequest) -> Result<Response, Problem> {
    request.app.delete_pod(&request.id).await?;
    Ok(answer::deleted())
}

async fn act(request: RestRequest) -> Result<Response, Problem> {
    let wanted = request.fields()?.text("action")?.unwrap_or_default();
    let pod = find(&request).await?;
    let status = request.app.pod_runner.condition(&pod).status;
    if !status.actions().contains(&wanted.as_str()) {
        let message = format!(
            "a pod that is {} takes the actions {}, not {wanted}",
            status.name(),
            status.actions().join(" and ")
        );
        return Err(Problem::new(Kind::Conflict, message));
    }
    let action = match wanted.as_str() {
        "start" => Action::Start,
        "stop" => Action::Stop,
        "restart" => Action::Restart,
        _ => return delete(request).await,
    };
    let pod = request.app.act_on_pod(&request.id, action).await?;
    Ok(answer::shown(&request.app, shown(&request.app, &pod)))
}

async fn find(request: &RestRequest) -> Result<Pod, Problem> {
    let id = request.id.clone();
    request.app.store.read(move |conn: &Connection| objects::get::<Pod>(conn, &id)).await
}
