//! Permits to send: no mutating request goes out whose record is older than a few seconds.
//!
//! A call may wait its turn, or be tried again for minutes, and meanwhile another run may have
//! taken over. Whoever sends asks first; when too long has gone by since the run last wrote
//! something, it writes another record, which fails if it was driven out, and a stopped run says
//! no.

use std::sync::Mutex;

use async_trait::async_trait;
use provider_port::{Error, Kind, SendPermit};
use tokio::sync::{mpsc, oneshot};

use super::Run;
use crate::ApplyError;
use crate::clock::Moment;
use crate::timing::SEND_WITHIN;

/// A request to the run. The answer is a moment at which the run still had its place, if it goes
/// on.
type PermitRequest = oneshot::Sender<Option<Moment>>;

/// Both ends of the way from calls to the run that they belong to.
pub(super) struct PermitIssuer {
    requests: mpsc::UnboundedSender<PermitRequest>,
    asked: mpsc::UnboundedReceiver<PermitRequest>,
}

impl PermitIssuer {
    pub(super) fn new() -> Self {
        let (requests, asked) = mpsc::unbounded_channel();
        Self { requests, asked }
    }

    /// The leave of a call whose record was written at `since` or later.
    pub(super) fn permit(&self, since: Moment) -> RunPermit {
        RunPermit { since: Mutex::new(since), requests: self.requests.clone() }
    }

    /// The next request. Never ends: the run has a sender of its own.
    pub(super) async fn request(&mut self) -> Option<PermitRequest> {
        self.asked.recv().await
    }

    /// The requests that wait already.
    fn waiting(&mut self) -> Vec<PermitRequest> {
        std::iter::from_fn(|| self.asked.try_recv().ok()).collect()
    }
}

/// The permit of one call.
pub(super) struct RunPermit {
    since: Mutex<Moment>,
    requests: mpsc::UnboundedSender<PermitRequest>,
}

impl RunPermit {
    fn is_fresh(&self) -> bool {
        let since = self.since.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        since.elapsed() <= SEND_WITHIN
    }
}

#[async_trait]
impl SendPermit for RunPermit {
    async fn ask(&self) -> Result<(), Error> {
        while !self.is_fresh() {
            let (request, answer) = oneshot::channel();
            let asked = self.requests.send(request).is_ok();
            let Some(Ok(Some(since))) = (if asked { Some(answer.await) } else { None }) else {
                return Err(Error::new(Kind::NotSent, "it was not sent: the run was stopped")
                    .help("apply again: what is left to do is planned anew"));
            };
            *self.since.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = since;
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Answers a call that asks whether it may still go out, and all others that do: one record
    /// is enough for them.
    pub(super) async fn grant_permits(&mut self, first: PermitRequest) -> Result<(), ApplyError> {
        let mut requests = self.calls.permits.waiting();
        requests.push(first);
        let since = self.confirm().await?;
        for request in requests {
            // A call that no longer waits for the answer was given up.
            request.send(since.clone()).ok();
        }
        Ok(())
    }
}
