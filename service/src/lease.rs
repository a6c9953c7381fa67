//! Leases: how the service knows that somebody still needs it.
//!
//! `GET /lease` holds its answer open for as long as the client keeps the connection. With
//! `until_idle` the service ends when the last lease closes, or when none arrives in time. Whether
//! a lease is granted and whether the service drains is decided under one lock, so a client is
//! either served or told to start another service, never caught between.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::Stream;
use tokio::time::{Interval, interval};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A line is sent so often, so that a dead peer is noticed.
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

    /// Grants a lease as the body of an answer; `None` once the service drains.
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

    /// Ends the wait for the first lease: drains when none has arrived.
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

/// One lease: a body without end. Dropped by the server when the connection closes.
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
