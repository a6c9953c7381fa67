//! Load balancing endpoints: requests go to the HTTP servers of their workers, under
//! `/lb/<endpoint>/<path>` and at the host `<endpoint>.localhost`.
//!
//! A request goes to the healthy worker with the fewest requests ([`rotation`]), or to the one that
//! it names ([`affinity`]), and waits if there is none. Its bytes are passed on as they come
//! ([`proxy`]): neither bodies nor the bytes of an upgraded connection ([`tunnel`]) are collected
//! in memory. The workers and their health checks belong to the fleet ([`crate::workers`]).

mod affinity;
mod capped_body;
mod headers;
pub(crate) mod host;
mod proxy;
mod refusal;
mod rotation;
mod tunnel;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;

use crate::app::App;
use crate::faults::Call;
use crate::gate::{self, guarded};
use crate::keys::{Access, Interface};
use crate::problem::Problem;
use crate::resources::endpoint::Endpoint;
use crate::store::objects;
use affinity::Affinity;
use refusal::Refusal;
pub(crate) use rotation::Balancer;

/// The prefix of the paths.
const PREFIX: &str = "/lb/";

/// Returns the router of load balancing endpoints.
pub(crate) fn router() -> Router<Arc<App>> {
    let paths = ["/lb/{endpoint}", "/lb/{endpoint}/", "/lb/{endpoint}/{*path}"];
    paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(serve)))
}

/// Answers a request to an endpoint.
async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let method = request.method();
    let path = gate::whole_path(&request);
    let entry = app.access.entry(method.as_str(), &path);
    let call = Call {
        operations: vec![format!("{method} /lb")],
        literal: format!("{method} {path}"),
        mutating: method != Method::GET && method != Method::HEAD,
        list: false,
        internal: false,
    };
    entry.call(&call);
    let response = match admit(&app, &request) {
        Ok(()) => {
            let mishap = app.faults.strike(&call);
            let answer = async { pass(&app, request).await.unwrap_or_else(Refusal::into_response) };
            guarded(&mishap, answer).await
        }
        Err(problem) => Refusal::from(problem).into_response(),
    };
    gate::finished(&entry, response)
}

/// Refuses a request whose key does not allow it. Every request counts as one that changes
/// something, because only the worker knows whether it does.
fn admit(app: &App, request: &Request) -> Result<(), Problem> {
    let principal = app.keys.authenticate(Interface::Rest, request.headers(), request.uri())?;
    let (endpoint, _) = target(request.uri().path());
    let (interface, endpoint) = (Interface::Jobs, Some(endpoint));
    principal.permit(Access { interface, changes: true, endpoint })
}

/// Passes a request to a worker, as soon as a worker takes it.
async fn pass(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (id, _) = target(request.uri().path());
    check_endpoint(app, id).await?;
    proxy::check_length(request.headers())?;
    let affinity = Affinity::of(request.headers())?;
    let slot = rotation::worker_for(app, id, &affinity).await?;
    proxy::forward(app, slot, request).await
}

/// Returns the id of the endpoint, and the path for its worker.
fn target(path: &str) -> (&str, &str) {
    let rest = path.strip_prefix(PREFIX).unwrap_or_default();
    rest.find('/').map_or((rest, "/"), |end| rest.split_at(end))
}

/// Refuses an id that belongs to no load balancing endpoint.
async fn check_endpoint(app: &Arc<App>, id: &str) -> Result<(), Refusal> {
    let is_balanced = if let Some(wanted) = app.fleet.wanted(id) {
        wanted.endpoint.is_balanced()
    } else {
        // The fleet may not know an endpoint yet that was made a moment ago, so the store is asked.
        let id = id.to_owned();
        let read = move |conn: &rusqlite::Connection| objects::get::<Endpoint>(conn, &id);
        app.store.read(read).await?.is_balanced()
    };
    if is_balanced {
        return Ok(());
    }
    let message = format!("this endpoint has a queue: send its jobs to {}/{id}/run", app.queue_url);
    Err(Refusal::from(Problem::invalid(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_worker_is_what_follows_the_endpoint() {
        assert_eq!(target("/lb/abc"), ("abc", "/"));
        assert_eq!(target("/lb/abc/"), ("abc", "/"));
        assert_eq!(target("/lb/abc//a%2Fb/"), ("abc", "//a%2Fb/"));
    }
}
