//! What a call sends although it does not change: an API that takes whole objects resets what is left
//! out. Somebody may have changed that since the plan looked, and it is not the plan's to take back: the
//! object is read once more right before, and what is news is sent as it is then.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::{ProgramKind, Started};
use engine::plan::agree;
use engine::schema::{Sends, TypeSchema};
use engine::value::{Attributes, Value};
use provider_port::{Error, Provider};

use super::parting::read_own;
use super::{InFlight, Run};

/// What a call sends of its object without changing it, as it was when somebody last looked.
pub(super) struct Unchanged {
    before: Attributes,
    key: SealKey,
}

impl Run<'_> {
    /// What a call sends without changing it, where that may be another by now. A read is behind for as
    /// long as the provider settles: one that is made sooner may show what was there before the plan.
    pub(super) fn unchanged(
        &self,
        flight: &InFlight,
        changed: &BTreeSet<Name>,
        live: Option<&Attributes>,
    ) -> Option<Unchanged> {
        let is_old = self.began.elapsed() > flight.provider.settle();
        if !is_old || !sends_whole_object(flight) {
            return None;
        }
        let stays = |name: &Name| !changed.contains(name) && !is_volatile(&flight.schema, name);
        let live = live.into_iter().flatten().filter(|(name, _)| stays(name));
        let before = live.map(|(name, value)| (name.clone(), value.clone())).collect();
        Some(Unchanged { before, key: self.session.snapshot().seal_key.clone() })
    }
}

fn sends_whole_object(flight: &InFlight) -> bool {
    let phase = flight.started.phase;
    let model = flight.schema.phase(phase);
    phase.kind == ProgramKind::Update
        && phase.calls()
        && model.is_some_and(|model| model.sends == Sends::All)
}

/// What changes by itself goes out as the plan saw it: an API may refuse a version that is not its own.
fn is_volatile(schema: &TypeSchema, name: &Name) -> bool {
    schema.attributes.get(name).is_some_and(|attribute| attribute.volatile)
}

impl Unchanged {
    /// What a call sends, with what is news of its object.
    pub(super) async fn renewed(
        &self,
        provider: &Arc<dyn Provider>,
        started: &Started,
        desired: &Arc<Attributes>,
    ) -> Result<Arc<Attributes>, Error> {
        let now = read_own(provider, started).await?;
        let is_news = |(name, now): &(Name, Value)| {
            let before = self.before.get(name);
            desired.contains_key(name) && before.is_some_and(|it| !agree(now, it, &self.key))
        };
        let mut news = now.into_iter().filter(is_news).peekable();
        if news.peek().is_none() {
            return Ok(desired.clone());
        }
        let mut desired = Attributes::clone(desired);
        desired.extend(news);
        Ok(Arc::new(desired))
    }
}
