//! Attributes that a call sends although they do not change: an API that takes whole objects resets what is left
//! out. Somebody may have changed that since the plan looked, and it is not the plan's to take back: the
//! object is read once more right before, and what is news is sent as it is then.

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

/// Long enough for a look and a call at an API that takes one request in some seconds, as those do that throttle.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// The attributes that a call sends of its object without changing them, as the plan saw them.
pub(super) struct Unchanged {
    before: Arc<Attributes>,
    names: BTreeSet<Name>,
    key: SealKey,
    /// The moment when the plan, or whoever looked after it, began to look; `None` where nobody did.
    looked_at: Option<Moment>,
    clock: Clock,
    settle: Duration,
}

/// The attributes that a call sends, as a look shows them.
pub(super) struct Look {
    pub(super) sent: Arc<Attributes>,
    /// The moment when the look began.
    pub(super) began: Moment,
}

impl StepContext<'_> {
    /// Returns the attributes that a call sends without changing them.
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

/// Returns true if a read tells what is to be sent of an attribute. What changes by itself goes out as the plan saw it,
/// for an API may refuse a version that is not its own; and what no answer shows is not believed when one does.
fn is_lasting(schema: &TypeSchema, name: &Name) -> bool {
    let is_volatile = schema.attributes.get(name).is_some_and(|attribute| attribute.volatile);
    !is_volatile && !schema.is_hidden(name)
}

impl Unchanged {
    /// Returns what the plan would send, while that is young. A read is behind for as long as the provider settles: one that
    /// is made sooner may show what was there before the plan.
    pub(super) fn as_planned(&self, desired: &Arc<Attributes>) -> Option<Look> {
        let began = self.looked_at.clone().filter(|began| began.elapsed() <= self.settle)?;
        Some(Look { sent: desired.clone(), began })
    }

    /// Returns how long after a look began the object is taken to be as it was seen. A look may be behind by as long as the
    /// provider settles.
    pub(super) fn fresh_for(&self) -> Duration {
        self.settle.max(FRESH_FOR)
    }

    /// Returns what a call sends, with the news of its object.
    pub(super) async fn look(
        &self,
        provider: &Arc<dyn Provider>,
        started: &Started,
        desired: &Arc<Attributes>,
    ) -> Result<Look, Error> {
        let began = self.clock.moment();
        let now = read_own(provider, started).await?;
        let is_news = |(name, now): &(Name, Value)| {
            // What answers leave out while there is none is null.
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
