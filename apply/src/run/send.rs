//! The sending of one call: missing values are read, a permit is asked for, and the call is sent.
//!
//! The values that a call repeats of its object are read a moment before. That read takes time, and a call
//! may be held back and repeated for minutes. If the values have become too old, no permit is given; the
//! object is read again, and the call, of which nothing was sent, begins once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::Started;
use engine::value::Attributes;
use provider_port::{Call, Error, Kind, Notice, Provider, Reply, Secrets, SendPermit};

use super::Answer;
use super::call::SentAttributes;
use super::delete_inputs::read_for;
use super::permit::RunPermit;
use super::refresh_before_write::Unchanged;
use crate::clock::Moment;

/// The maximum number of reads of an object for one call. If each read is slow, the last one must do: a read
/// takes the turn of another call at an API that throttles.
const LOOKS_MAX: usize = 3;

/// A call whose intent is durable.
pub(super) struct Sending<P> {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) started: Started,
    pub(super) sent: SentAttributes,
    pub(super) live: Option<Attributes>,
    /// The attributes that the call sends unchanged, if it sends the whole object.
    pub(super) unchanged: Option<Unchanged>,
    pub(super) secrets: Secrets,
    pub(super) permit: RunPermit,
    /// The receiver of notices about what the call waits for.
    pub(super) progress: P,
}

/// The attributes that were sent, and the result.
type Sent = (Arc<Attributes>, Result<Reply, Error>);

impl<P: Fn(Notice) + Send + Sync> Sending<P> {
    /// Sends the call.
    pub(super) async fn go(self) -> Answer {
        let gone = match &self.unchanged {
            Some(unchanged) => self.go_as_it_is(unchanged).await,
            None => self.go_with_what_it_lacks().await,
        };
        // If the read before the call failed, nothing was sent.
        let (sent, result) = gone.unwrap_or_else(|error| (self.sent.desired.clone(), Err(error)));
        Answer::called(sent, result)
    }

    /// Sends the call with the secrets that only the API has.
    async fn go_with_what_it_lacks(&self) -> Result<Sent, Error> {
        let SentAttributes { desired, readable, .. } = &self.sent;
        let sent = read_for(&self.provider, &self.started, readable, desired).await?;
        Ok(self.go_with(sent, &self.permit).await)
    }

    /// Sends the call with the current values of its object. The plan's own read is used within the settle
    /// time.
    async fn go_as_it_is(&self, unchanged: &Unchanged) -> Result<Sent, Error> {
        let mut looks = 0;
        let mut planned = unchanged.as_planned(&self.sent.desired);
        loop {
            let look = if let Some(look) = planned.take() {
                look
            } else {
                looks += 1;
                unchanged.look(&self.provider, &self.started, &self.sent.desired).await?
            };
            let within = if looks < LOOKS_MAX { unchanged.fresh_for() } else { Duration::MAX };
            let permit = FreshPermit::new(&self.permit, &look.began, within);
            let gone = self.go_with(look.sent, &permit).await;
            if !permit.kept_back(&gone.1) {
                return Ok(gone);
            }
        }
    }

    /// Asks for a permit and sends the call. Not every provider asks itself, and this process may have stood
    /// still since the record was written.
    async fn go_with(&self, sent: Arc<Attributes>, permit: &dyn SendPermit) -> Sent {
        let call = Call {
            ty: &self.started.address.block.ty,
            phase: self.started.phase,
            id: self.started.object.as_ref(),
            nonce: self.started.nonce.as_ref(),
            desired: &sent,
            live: self.live.as_ref(),
            changed: &self.sent.changed,
            secrets: &self.secrets,
            permit,
            progress: &self.progress,
        };
        let result = match permit.ask().await {
            Ok(()) => self.provider.perform(&call).await,
            Err(error) => Err(error),
        };
        (sent, result)
    }
}

/// A permit that is given only while the values to send are recent.
struct FreshPermit<'a> {
    permit: &'a RunPermit,
    seen: &'a Moment,
    within: Duration,
    is_kept_back: AtomicBool,
}

impl<'a> FreshPermit<'a> {
    fn new(permit: &'a RunPermit, seen: &'a Moment, within: Duration) -> Self {
        Self { permit, seen, within, is_kept_back: AtomicBool::new(false) }
    }

    /// Returns true if a call ended because this permit found its values too old, and nothing of it was sent.
    fn kept_back(&self, result: &Result<Reply, Error>) -> bool {
        let nothing_sent = result.as_ref().is_err_and(|error| error.kind == Kind::NotSent);
        nothing_sent && self.is_kept_back.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl SendPermit for FreshPermit<'_> {
    async fn ask(&self) -> Result<(), Error> {
        self.permit.ask().await?;
        if self.seen.elapsed() <= self.within {
            return Ok(());
        }
        self.is_kept_back.store(true, Ordering::Relaxed);
        Err(Error::new(Kind::NotSent, "it was not sent: what it sends was seen too long ago")
            .help("apply again: what is left to do is planned anew"))
    }
}
