//! The accept loop and the connections.
//!
//! They are built on hyper's connections, because a ready-made server cannot cut a connection
//! without an answer, and has no bounds on slow clients. The module [`crate::idle`] bounds the
//! number of idle connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::EXPECT;
use futures_util::future::join_all;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::balancer::host;
use crate::body::Lingering;
use crate::gate::Cut;
use crate::idle::{Connection, Connections};
use crate::stall_timeout::StallTimeout;

/// The time for a client to send the head of a request, including the idle time before it. Clients
/// usually keep idle connections for 90 seconds. This time is longer, so that it is the client that
/// closes: it knows whether it is about to send.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);

/// The time for a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after the system refused a connection, most likely because no descriptor was left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The time for a request that was already on its way when its connection is closed to make room.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// The number of connections above which idle ones are closed, if the system sets no limit on
/// descriptors.
const CONNECTIONS_MAX: u64 = 100_000;

/// The most bytes that are buffered for a connection, without the answer's own buffers. The head of
/// a request must fit.
const BUFFER_MAX: usize = 128 << 10;

#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on request")]
struct CutOnRequest;

/// An address that clients connect to.
pub(crate) struct Entrance {
    /// The socket.
    pub(crate) listener: TcpListener,
    /// The TLS of the connections; `None` means plain HTTP.
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves connections until the service drains, then lets running requests finish for a while.
pub(crate) async fn serve(app: &Arc<App>, entrances: Vec<Entrance>, router: Router) {
    let (connections, all) = (TaskTracker::new(), Connections::new(room()));
    let accepting =
        entrances.into_iter().map(|entrance| accept(app, entrance, &connections, &all, &router));
    join_all(accepting).await;
    connections.close();
    connections.wait().await;
}

/// Accepts the connections of an entrance until the service drains.
async fn accept(
    app: &Arc<App>,
    Entrance { listener, tls }: Entrance,
    connections: &TaskTracker,
    all: &Arc<Connections>,
    router: &Router,
) {
    loop {
        let accepted = tokio::select! {
            () = app.draining.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (app, router, tls) = (Arc::clone(app), router.clone(), tls.clone());
                connections.spawn(greeted(app, all.opened(), stream, router, tls));
            }
            Err(error) if lost_before_accept(&error) => {}
            Err(_) => {
                all.end_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns the number of connections above which idle ones are closed: half of the descriptors,
/// because the workers and the store need the others.
fn room() -> usize {
    use rustix::process::{Resource, getrlimit};
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((descriptors / 2).min(CONNECTIONS_MAX)).unwrap_or(usize::MAX)
}

/// Serves a connection, with TLS after the handshake.
async fn greeted(
    app: Arc<App>,
    own: Arc<Connection>,
    stream: TcpStream,
    router: Router,
    tls: Option<TlsAcceptor>,
) {
    // A small answer must not wait until the client has acknowledged the previous one.
    drop(stream.set_nodelay(true));
    let stream = StallTimeout::new(stream, app.options.timing.stall);
    let Some(tls) = tls else { return connection(app, own, stream, router).await };
    let handshake = tokio::select! {
        () = app.draining.cancelled() => return,
        handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)) => handshake,
    };
    if let Ok(Ok(stream)) = handshake {
        connection(app, own, stream, router).await;
    }
}

async fn connection<S>(app: Arc<App>, own: Arc<Connection>, stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let router = TowerToHyperService::new(router);
    let users = Arc::clone(&own);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let is_held_back = request.headers().contains_key(EXPECT);
        let request = request.map(|body| Body::new(Lingering::new(body, is_held_back)));
        let request = host::resolved(request);
        let (used, answer) = (users.used(), router.call(request));
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<Cut>().is_some() {
                return Err(CutOnRequest);
            }
            Ok(response.map(|body| used.until_sent(body)))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(BUFFER_MAX);
    let mut serving =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let patience = tokio::select! {
        _ = serving.as_mut() => return,
        () = app.draining.cancelled() => app.options.timing.drain,
        () = own.ended() => LAST_MOMENT,
    };
    serving.as_mut().graceful_shutdown();
    while tokio::time::timeout(patience, serving.as_mut()).await.is_err() {
        // A request that came just before a connection is closed for room is still answered.
        if app.draining.is_cancelled() || !own.is_used() {
            return;
        }
    }
}

fn lost_before_accept(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
