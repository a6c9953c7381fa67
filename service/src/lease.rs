//! Leases, by which clients tell the service that they still need it.
//!
//! `GET /lease` holds its answer open for as long as the client keeps the connection. With
//! `until_idle` the service ends when the last lease closes, or when none arrives in time. Granting
//! a lease and starting to drain happen under one lock. So a client either gets a lease that
//! counts, or is refused and can start another service.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::Stream;
use tokio::time::{Interval, interval};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The time between two lines of a lease. A line that cannot be sent shows that the client is gone.
const BEAT: Duration = Duration::from_secs(15);

/// The leases of a running service.
pub(crate) struct Leases {
    state: Mutex<State>,
    until_idle: bool,
    /// Fires when the service begins to drain.
    draining: CancellationToken,
}

#[derive(Default)]
struct State {
    held: usize,
    ever: bool,
}

impl Leases {
    pub(crate) fn new(until_idle: bool, draining: CancellationToken) -> Leases {
        Leases { state: Mutex::default(), until_idle, draining }
    }

    /// Grants a lease, whose body becomes the answer; returns `None` once the service drains.
    pub(crate) fn grant(self: &Arc<Self>) -> Option<Body> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.draining.is_cancelled() {
            return None;
        }
        state.held += 1;
        state.ever = true;
        Some(Body::from_stream(Lease {
            draining: Box::pin(self.draining.clone().cancelled_owned()),
            beat: interval(BEAT),
            _held: Held(Arc::clone(self)),
        }))
    }

    /// Starts to drain if no lease was ever granted. Called when the wait for the first lease is
    /// over.
    pub(crate) fn first_lease_due(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.until_idle && !state.ever {
            self.draining.cancel();
        }
    }

    fn release(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.held -= 1;
        if self.until_idle && state.held == 0 {
            self.draining.cancel();
        }
    }
}

/// The body of an answer that ends only when the service drains. The server drops it when the
/// connection closes, which ends the lease.
struct Lease {
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
    beat: Interval,
    _held: Held,
}

struct Held(Arc<Leases>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Stream for Lease {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.draining.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        self.beat.poll_tick(cx).map(|_| Some(Ok(Bytes::from_static(b"\n"))))
    }
}
