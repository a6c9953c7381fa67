//! Names and ids that creates in doubt may have given, or may give still.
//!
//! Nothing but the name, or the id that a spec chose, tells what such a create made. So nobody else takes it
//! meanwhile: whose the object is that bears it then, nobody could say.

use super::names::named;
use crate::address::Address;
use crate::digest::{Fingerprint, SealKey};
use crate::journal::Started;
use crate::spec::ResourceConfig;
use crate::state::Snapshot;
use crate::value::{Attributes, Value};

/// The creates in doubt that are known by a name or an id.
#[derive(Default)]
pub(super) struct Doubted<'a>(Vec<&'a Started>);

impl<'a> Doubted<'a> {
    /// Those of a state.
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        let started = snapshot.pending.values().map(|pending| &pending.started);
        let is_known = |it: &&Started| it.name.is_some() || it.secret_name.is_some();
        Self(started.filter(|it| it.makes_its_object() && is_known(it)).collect())
    }

    /// Whether there are none, which is so but for accidents.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whose create may give the name that an instance wants, and that its object, if it has one, does not
    /// bear yet.
    pub(super) fn giver(
        &self,
        (resource, address): (&ResourceConfig, &Address),
        (wanted, live): (&Attributes, Option<&Attributes>),
        key: &SealKey,
    ) -> Option<&'a Address> {
        let attribute = resource.schema.identity.chosen_attribute()?;
        let gives_it = |started: &Started| {
            started.provider == resource.provider
                && started.address.block.ty == address.block.ty
                && started.address != *address
                && wanted.get(attribute).is_some_and(|name| gives(started, name, key))
        };
        let giver = self.0.iter().find(|started| gives_it(started))?;
        let stays = named(live, attribute) == named(Some(wanted), attribute);
        (!stays).then_some(&giver.address)
    }
}

/// Whether a create gives this name.
fn gives(started: &Started, name: &Value, key: &SealKey) -> bool {
    let clear = match name {
        Value::String(text) => started.name.as_ref() == Some(text),
        Value::Integer(number) => started.name.as_deref() == Some(&*number.to_string()),
        _ => false,
    };
    let secret = started.secret_name.as_ref();
    clear || secret.is_some_and(|own| name.is_known() && Fingerprint::of(name, key) == *own)
}
