//! What a call sends although it does not change: an API that takes whole objects resets what is left
//! out. Somebody may have changed that since the plan looked, and it is not the plan's to take back: the
//! object is read once more right before, and what is news is sent as it is then.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::{ProgramKind, Started};
use engine::plan::{Change, agree};
use engine::schema::{Sends, TypeSchema};
use engine::value::{Attributes, Value};
use provider_port::{Error, Provider};

use super::parting::read_own;
use super::shown::is_hidden;
use super::{InFlight, Run};
use crate::prepare;

/// What a call sends of its object without changing it, as the plan saw it.
pub(super) struct Unchanged {
    before: Arc<Attributes>,
    names: BTreeSet<Name>,
    key: SealKey,
}

impl Run<'_> {
    /// What a call sends without changing it, where that may be another by now. A read is behind for as
    /// long as the provider settles: one that is made sooner may show what was there before the plan.
    pub(super) fn unchanged(&self, flight: &InFlight, change: &Change) -> Option<Unchanged> {
        let is_old = self.began.elapsed() > flight.provider.settle();
        let before = change.before.clone().filter(|_| is_old && sends_whole_object(flight))?;
        let changed = prepare::changed(change);
        let stays = |name: &&Name| !changed.contains(*name) && is_lasting(&flight.schema, name);
        let names = flight.desired.keys().filter(stays).cloned().collect();
        Some(Unchanged { before, names, key: self.session.snapshot().seal_key.clone() })
    }
}

fn sends_whole_object(flight: &InFlight) -> bool {
    let phase = flight.started.phase;
    let model = flight.schema.phase(phase);
    phase.kind == ProgramKind::Update
        && phase.calls()
        && model.is_some_and(|model| model.sends == Sends::All)
}

/// Whether a read tells what is to be sent of an attribute. What changes by itself goes out as the plan saw it,
/// for an API may refuse a version that is not its own; and what no answer shows is not believed when one does.
fn is_lasting(schema: &TypeSchema, name: &Name) -> bool {
    let is_volatile = schema.attributes.get(name).is_some_and(|attribute| attribute.volatile);
    !is_volatile && !is_hidden(schema, name)
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
            // What answers leave out while there is none is null.
            let before = self.before.get(name).unwrap_or(&Value::Null);
            self.names.contains(name) && !agree(now, before, &self.key)
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
