//! The connection after an upgrade, usually a WebSocket: bytes are copied both ways without being
//! read.

use std::sync::Arc;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::time::{sleep, timeout};

use crate::app::App;

/// The time for one side to finish after the other side has ended its stream.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Joins two connections until one of them ends, and drops `kept` then. A service that drains cuts
/// the connection off, as it does with other requests.
pub(super) fn join<K: Send + 'static>(
    app: Arc<App>,
    client: OnUpgrade,
    worker: OnUpgrade,
    kept: K,
) {
    tokio::spawn(async move {
        let cut_off = async {
            app.draining.cancelled().await;
            sleep(app.options.timing.drain).await;
        };
        let joined = async {
            let (client, worker) = tokio::try_join!(client, worker).ok()?;
            exchange(TokioIo::new(client), TokioIo::new(worker)).await;
            Some(())
        };
        tokio::select! {
            _ = joined => {}
            () = cut_off => {}
        }
        drop(kept);
    });
}

/// Copies both ways until one side has ended its stream and the other had [`LAST_WORDS`] to finish.
async fn exchange(client: impl AsyncRead + AsyncWrite, worker: impl AsyncRead + AsyncWrite) {
    let (from_client, to_client) = split(client);
    let (from_worker, to_worker) = split(worker);
    let mut there = std::pin::pin!(pour(from_client, to_worker));
    let mut back = std::pin::pin!(pour(from_worker, to_client));
    tokio::select! {
        () = &mut there => drop(timeout(LAST_WORDS, back).await),
        () = &mut back => drop(timeout(LAST_WORDS, there).await),
    }
}

/// Copies one way. A side that broke off counts as ended.
async fn pour(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    drop(copy(&mut from, &mut to).await);
    drop(to.shutdown().await);
}
