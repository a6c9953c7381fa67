//! Changes as server-sent events: one stream for the part of the state that a page shows.
//!
//! A stream sends the state of its topic at first, and again whenever it has changed. It reads the
//! state only after the previous event is on its way, so a client that reads slowly gets fewer
//! events and takes no more memory.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::session::SignedIn;
use super::snapshot::{self, Topic};
use super::{Console, Shared};
use crate::auth;
use crate::clock::now_ms;
use crate::problem::{Kind, Problem};

/// The shortest time between two reads of the state. A read that takes long is followed by a pause
/// of [`SHARE`] times its duration.
const PAUSE: Duration = Duration::from_millis(250);
const SHARE: u32 = 10;

/// The longest time without an event. Then a comment is sent, which tells the client that the
/// stream is alive.
const SILENCE: Duration = Duration::from_secs(5);

/// An open stream.
struct Feed {
    console: Arc<Console>,
    signed_in: SignedIn,
    topic: Topic,
    /// The digest of the last state that was sent; `None` before the first one.
    last: Option<u64>,
    spoke_at: Instant,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

/// `GET /console/events?topic=…`
pub(super) async fn follow(
    State(console): Shared,
    Extension(signed_in): Extension<SignedIn>,
    uri: Uri,
) -> Result<Response, Problem> {
    let topic = auth::query(&uri, "topic").and_then(|topic| Topic::parse(&topic));
    let topic = topic.ok_or_else(|| {
        Problem::invalid("topic must be endpoints, endpoint/ID or job/ENDPOINT/ID")
    })?;
    let permit = Arc::clone(&console.streams).try_acquire_owned().map_err(|_| {
        let message = "Too many pages follow this service. Close some, then reload.";
        Problem::new(Kind::Unavailable, message)
    })?;
    let feed = Feed {
        console,
        signed_in,
        topic,
        last: None,
        spoke_at: Instant::now(),
        is_over: false,
        _permit: permit,
    };
    let mut response = Response::new(Body::from_stream(stream::unfold(feed, next)));
    let media = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, media);
    Ok(response)
}

/// Returns the next event, or a comment after [`SILENCE`]; `None` at the end of the stream.
async fn next(mut feed: Feed) -> Option<(Result<Bytes, Infallible>, Feed)> {
    if feed.is_over {
        return None;
    }
    loop {
        let (app, began) = (Arc::clone(&feed.console.app), Instant::now());
        if app.draining.is_cancelled() || !feed.console.is_open(&feed.signed_in) {
            return None;
        }
        let event = match snapshot::take(&app, &feed.topic).await {
            Ok(state) => {
                let digest = digest(&state);
                let is_new = feed.last.replace(digest) != Some(digest);
                is_new.then(|| format!("data: {{\"now\":{},\"state\":{state}}}\n\n", now_ms()))
            }
            Err(problem) if problem.kind == Kind::NotFound => {
                feed.is_over = true;
                Some("event: gone\ndata: {}\n\n".to_owned())
            }
            // The store may answer at the next read.
            Err(_) => None,
        };
        let is_silent = feed.spoke_at.elapsed() > SILENCE;
        if let Some(text) = event.or_else(|| is_silent.then(|| ":\n\n".to_owned())) {
            feed.spoke_at = Instant::now();
            return Some((Ok(text.into()), feed));
        }
        tokio::select! {
            () = app.draining.cancelled() => return None,
            () = tokio::time::sleep(PAUSE.max(began.elapsed() * SHARE)) => {}
        }
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
