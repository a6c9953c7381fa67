//! One call on its way: what it lacks is read, leave is asked for, and it goes out.
//!
//! The parts of its object that it repeats were seen a moment before it goes out. A look takes its time, and a call may be
//! held back and sent again for minutes: once what was seen is too old, no leave is given, the object is looked at
//! anew, and the call begins once more, of which nothing was sent.

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

/// The number of looks at an object for one call. Where looks are slow each time, the last one must do: each takes the
/// turns of others at an API that throttles.
const LOOKS_MAX: usize = 3;

/// A call whose intent is durable.
pub(super) struct Sending<P> {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) started: Started,
    pub(super) sent: SentAttributes,
    pub(super) live: Option<Attributes>,
    /// The attributes of its object that it repeats.
    pub(super) unchanged: Option<Unchanged>,
    pub(super) secrets: Secrets,
    pub(super) permit: RunPermit,
    /// Told what it waits for.
    pub(super) progress: P,
}

/// The attributes that were sent, and the result.
type Sent = (Arc<Attributes>, Result<Reply, Error>);

impl<P: Fn(Notice) + Send + Sync> Sending<P> {
    /// Sends it.
    pub(super) async fn go(self) -> Answer {
        let gone = match &self.unchanged {
            Some(unchanged) => self.go_as_it_is(unchanged).await,
            None => self.go_with_what_it_lacks().await,
        };
        // Where what was to be read first could not be, nothing was sent.
        let (sent, result) = gone.unwrap_or_else(|error| (self.sent.desired.clone(), Err(error)));
        Answer::called(sent, result)
    }

    /// Sends it with the secrets that only the API knows.
    async fn go_with_what_it_lacks(&self) -> Result<Sent, Error> {
        let SentAttributes { desired, readable, .. } = &self.sent;
        let sent = read_for(&self.provider, &self.started, readable, desired).await?;
        Ok(self.go_with(sent, &self.permit).await)
    }

    /// Sends it with what its object has by then. The plan's own look does for as long as a read may be behind.
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

    /// Asks for leave, and sends it. Not every provider asks, and this process may have stood still since
    /// the record.
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

/// Permission for as long as what is sent was seen lately.
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

    /// Returns true if a call ended because it got no leave of this one's own, and nothing of it was sent.
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
