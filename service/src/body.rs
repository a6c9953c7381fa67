//! The body of a request, read within bounds of size, time and memory.

use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, timeout, timeout_at};

use crate::memory_budget::MemoryShare;
use crate::problem::{Kind, Problem};

/// The largest body that the management APIs take.
pub(crate) const BODY_MAX: usize = 1 << 20;

/// The time for a client to send a body. For each [`PACE`] bytes there is a second more.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The slowest pace of a body, in bytes a second.
const PACE: usize = 64 << 10;

/// The longest time, and the most bytes, for which the service reads a refused body and throws it
/// away. If it closed the connection at once, a client that still writes would lose the connection
/// before it has read the answer.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);
const DISCARD_MAX: usize = 256 << 20;

/// A body with its share of the memory.
#[derive(Debug, Default)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    _share: MemoryShare,
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body up to a limit in bytes. A body that announces more is refused without being read.
pub(crate) async fn read(mut body: Body, limit: usize) -> Result<Received, Problem> {
    let too_large = || {
        let size = match limit >> 20 {
            0 => format!("{limit} bytes"),
            megabytes => format!("{megabytes} MB"),
        };
        Problem::new(Kind::TooLarge, format!("the request body is larger than {size}"))
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let (began, mut bytes, mut share) = (Instant::now(), Vec::new(), MemoryShare::default());
    loop {
        let pace = Duration::from_secs((bytes.len() / PACE) as u64);
        let due = began + BODY_TIMEOUT + pace;
        let late = |_| Problem::new(Kind::TimedOut, "the request body did not arrive in time");
        let Some(frame) = timeout_at(due, body.frame()).await.map_err(late)? else { break };
        let unreadable = |_| Problem::invalid("the request body could not be read");
        let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(too_large());
        }
        share.grow_to(bytes.len() + data.len(), due).await?;
        bytes.extend_from_slice(&data);
    }
    Ok(Received { bytes, _share: share })
}

/// The body of a request as it comes from the connection. When this is dropped, the unread rest is
/// read and thrown away within [`DISCARD_TIMEOUT`] and [`DISCARD_MAX`].
pub(crate) struct Lingering {
    body: Option<Incoming>,
    /// True if the client waits for `100 Continue` before it sends the body, and has not got it
    /// yet.
    is_held_back: bool,
}

impl Lingering {
    pub(crate) fn new(body: Incoming, is_held_back: bool) -> Lingering {
        Lingering { body: Some(body), is_held_back }
    }
}

impl hyper::body::Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_held_back = false;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(hyper::body::Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let left = self.body.take().filter(|body| !hyper::body::Body::is_end_stream(body));
        if let (Some(body), false) = (left, self.is_held_back) {
            tokio::spawn(timeout(DISCARD_TIMEOUT, discard(body)));
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await
        && read < DISCARD_MAX
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}
