//! Attributes that a call sends although they do not change, because the API takes whole objects and resets
//! what is left out. Somebody may have changed one of them since the plan read the object, and the call must
//! not undo that. So the object is read again right before the call, and the call sends the new values.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::{ProgramKind, Started};
use engine::plan::{Change, agree};
use engine::schema::{Sends, TypeSchema};
use engine::value::{Attributes, Value};
use provider_port::{Error, Provider};

use super::StepContext;
use super::call::InFlight;
use super::delete_inputs::read_own;
use crate::clock::{Clock, Moment};

/// The time after a read within which its values may be sent. It is long enough for a read and a call at an
/// API that throttles to one request in some seconds.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// The attributes that a call sends unchanged, with their values as the plan saw them.
pub(super) struct Unchanged {
    before: Arc<Attributes>,
    names: BTreeSet<Name>,
    key: SealKey,
    /// The moment when the last reads began, by the plan or by a later comparison with it; `None` if nothing
    /// was read.
    looked_at: Option<Moment>,
    clock: Clock,
    settle: Duration,
}

/// The attributes that a call sends, with the values of one read.
pub(super) struct Look {
    pub(super) sent: Arc<Attributes>,
    /// The moment when the read began.
    pub(super) began: Moment,
}

impl StepContext<'_> {
    /// Returns the attributes that a call sends unchanged; `None` if the call does not send the whole object.
    pub(super) fn unchanged(&self, flight: &InFlight, change: &Change) -> Option<Unchanged> {
        let before = change.before.clone().filter(|_| sends_whole_object(flight))?;
        let changed = &flight.sent.changed;
        let stays = |name: &&Name| !changed.contains(*name) && is_lasting(&flight.schema, name);
        let names = flight.sent.desired.keys().filter(stays).cloned().collect();
        let key = self.snapshot.seal_key.clone();
        let looked_at = self.input.looked_at.clone();
        let (clock, settle) = (self.input.host.clock(), flight.provider.settle());
        Some(Unchanged { before, names, key, looked_at, clock, settle })
    }
}

fn sends_whole_object(flight: &InFlight) -> bool {
    let phase = flight.started.phase;
    let model = flight.schema.phase(phase);
    phase.kind == ProgramKind::Update
        && phase.calls()
        && model.is_some_and(|model| model.sends == Sends::All)
}

/// Returns true if the value of a read replaces the planned value of an attribute. A volatile attribute is
/// sent as the plan saw it, because an API may refuse a version that it did not give. A hidden attribute is
/// never shown, so a value of it in an answer is not believed.
fn is_lasting(schema: &TypeSchema, name: &Name) -> bool {
    let is_volatile = schema.attributes.get(name).is_some_and(|attribute| attribute.volatile);
    !is_volatile && !schema.is_hidden(name)
}

impl Unchanged {
    /// Returns the values of the plan while they are no older than the provider's settle time. A read within
    /// that time may lag behind and show older values than the plan has.
    pub(super) fn as_planned(&self, desired: &Arc<Attributes>) -> Option<Look> {
        let began = self.looked_at.clone().filter(|began| began.elapsed() <= self.settle)?;
        Some(Look { sent: desired.clone(), began })
    }

    /// Returns the time after the begin of a read for which its values count as current. It is at least the
    /// provider's settle time, because a read may lag behind by that time.
    pub(super) fn fresh_for(&self) -> Duration {
        self.settle.max(FRESH_FOR)
    }

    /// Reads the object and returns the attributes that a call sends, with the values that changed since the
    /// plan.
    pub(super) async fn look(
        &self,
        provider: &Arc<dyn Provider>,
        started: &Started,
        desired: &Arc<Attributes>,
    ) -> Result<Look, Error> {
        let began = self.clock.moment();
        let now = read_own(provider, started).await?;
        let is_news = |(name, now): &(Name, Value)| {
            // An answer leaves out an attribute without a value: it is null.
            let before = self.before.get(name).unwrap_or(&Value::Null);
            self.names.contains(name) && !agree(now, before, &self.key)
        };
        let mut news = now.into_iter().filter(is_news).peekable();
        if news.peek().is_none() {
            return Ok(Look { sent: desired.clone(), began });
        }
        let mut sent = Attributes::clone(desired);
        sent.extend(news);
        Ok(Look { sent: Arc::new(sent), began })
    }
}
