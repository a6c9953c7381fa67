//! Secrets that a step needs in the clear and the state keeps as fingerprints: computed again from
//! the plan's own expressions, else read from the API. They live for one run, in memory.

use engine::address::Address;
use engine::plan::{Change, lint};
use engine::value::{Attributes, Paths, Value};

use super::Run;
use crate::fill::known;

impl Run<'_> {
    /// Brings into the clear what the residuals of a change need and the state only fingerprints.
    pub(super) async fn reveal(&mut self, change: &Change) {
        let mut needed = lint::slots(change.after.iter().flat_map(|after| after.values()));
        for expr in change.secrets.values() {
            let unknown = Value::unknown(engine::types::Type::Any, expr.clone());
            needed.extend(lint::slots([&unknown]));
        }
        needed.remove(&change.address);
        for address in needed {
            if self.clear.contains_key(&address) || !self.holds_sealed(&address) {
                continue;
            }
            if let Some(attributes) = self.revealed(&address).await {
                self.clear.insert(address, attributes);
            }
        }
    }

    pub(super) fn holds_sealed(&self, address: &Address) -> bool {
        let entry = self.session.snapshot().entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        current.is_some_and(|object| !object.attributes.sealed.is_empty())
    }

    /// The secrets of an object: computed from its own spec, else read from the API.
    pub(super) async fn revealed(&self, address: &Address) -> Option<Attributes> {
        let change = self.input.plan.change(address)?;
        let (provider, schema) = self.provider(change)?;
        if !change.secrets.is_empty() {
            let scope = self.scope();
            let mut clear = Attributes::new();
            for (name, expr) in &change.secrets {
                clear.insert(name.clone(), known(expr, &scope).ok()?.value);
            }
            engine::plan::live::derive(&schema, &mut clear, &mut Paths::none());
            return Some(clear);
        }
        let id = change.object.as_ref()?;
        tokio::select! {
            // In this order, and not in a random one: nothing that is slow holds up a stop.
            biased;
            () = self.input.stop.cancelled() => None,
            object = provider.read(&address.block.ty, id) => Some(object.ok()?.attributes),
        }
    }
}
