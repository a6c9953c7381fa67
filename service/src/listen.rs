//! The accept loop and the connections.
//!
//! Written over hyper's connections because two things are needed that a ready-made server does
//! not give: cutting a connection without an answer, and bounds on slow clients.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::gate::Cut;

/// How long a client may take to send the head of a request, idle time between two included. It
/// is longer than clients keep idle connections (90 seconds is usual): the one that closes first
/// should be the one that sends.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);

/// The pause after the system refused a connection, for want of descriptors most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on request")]
struct CutOnRequest;

/// Serves connections until the service drains, then lets running requests finish for a while.
pub(crate) async fn serve(app: &Arc<App>, listener: TcpListener, router: Router) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = app.draining.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(Arc::clone(app), stream, router.clone()));
            }
            Err(error) if lost_before_accept(&error) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(app: Arc<App>, stream: TcpStream, router: Router) {
    // Small answers must not wait for the acknowledgement of the one before.
    drop(stream.set_nodelay(true));
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let answer = router.call(request.map(Body::new));
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<Cut>().is_some() {
                return Err(CutOnRequest);
            }
            Ok(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = serving.as_mut() => return,
        () = app.draining.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    drop(tokio::time::timeout(app.options.timing.drain, serving).await);
}

fn lost_before_accept(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
