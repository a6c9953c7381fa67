//! Permits to send: no mutating request is sent whose record is older than a few seconds.
//!
//! A call may wait its turn or be repeated for minutes, and another run may take the lock in the meantime. So
//! each request asks for a permit first. If the last write of the run is too old, the run writes another
//! record, which fails if the run has lost the lock. A stopped run gives no permit.

use std::sync::Mutex;

use async_trait::async_trait;
use provider_port::{Error, Kind, SendPermit};
use tokio::sync::{mpsc, oneshot};

use super::Run;
use crate::ApplyError;
use crate::clock::Moment;
use crate::timing::SEND_WITHIN;

/// The sender for the answer to a request for a permit: a moment at which the run still had its lock, or
/// `None` if the run has stopped.
type PermitRequest = oneshot::Sender<Option<Moment>>;

/// Both ends of the channel from calls to their run.
pub(super) struct PermitIssuer {
    requests: mpsc::UnboundedSender<PermitRequest>,
    asked: mpsc::UnboundedReceiver<PermitRequest>,
}

impl PermitIssuer {
    pub(super) fn new() -> Self {
        let (requests, asked) = mpsc::unbounded_channel();
        Self { requests, asked }
    }

    /// Returns the permit of a call whose record was written at `since` or later.
    pub(super) fn permit(&self, since: Moment) -> RunPermit {
        RunPermit { since: Mutex::new(since), requests: self.requests.clone() }
    }

    /// Returns the next request. Waits for ever if none comes: the run holds a sender itself, so the channel
    /// stays open.
    pub(super) async fn request(&mut self) -> Option<PermitRequest> {
        self.asked.recv().await
    }

    /// Returns the requests that are waiting already.
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
    /// Answers a call that asks for a permit, and all others that ask at this moment: one record is enough
    /// for them.
    pub(super) async fn grant_permits(&mut self, first: PermitRequest) -> Result<(), ApplyError> {
        let mut requests = self.calls.permits.waiting();
        requests.push(first);
        let since = self.confirm().await?;
        for request in requests {
            // If sending fails, the call was given up.
            request.send(since.clone()).ok();
        }
        Ok(())
    }
}
