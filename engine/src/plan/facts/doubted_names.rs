//! Names and ids that nobody can have while a call is in doubt: creates that may have given them, or may
//! give them still, and deletes whose objects may still have them.
//!
//! Nothing but the name, or the id that a spec chose, tells what such a call was about. So nobody else takes it
//! meanwhile: whose the object is that bears it then, nobody could say.

use crate::address::Address;
use crate::config::ResourceConfig;
use crate::digest::{Fingerprint, SealKey};
use crate::journal::Started;
use crate::plan::check::names::named;
use crate::plan::decide::diff::agree;
use crate::plan::facts::prior::stored_attributes;
use crate::state::{Object, Snapshot};
use crate::value::{Attributes, Value};

/// The calls in doubt that are known by a name or an id.
pub(in crate::plan) struct Doubted<'a> {
    creates: Vec<&'a Started>,
    /// With what is to go.
    deletes: Vec<(&'a Started, &'a Object)>,
}

/// Who may have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Bearer<'a> {
    /// What its create makes, or made.
    Made(&'a Address),
    /// What its delete was to end.
    Going(&'a Address),
}

impl<'a> Doubted<'a> {
    /// Those of a state.
    pub(in crate::plan) fn of(snapshot: &'a Snapshot) -> Self {
        let started = || snapshot.pending.values().map(|pending| &pending.started);
        let is_known = |it: &&Started| it.name.is_some() || it.secret_name.is_some();
        let going = |it: &'a Started| {
            let object = snapshot.entries.get(&it.address)?.object(it.object.as_ref()?)?;
            it.ends_its_object().then_some((it, object))
        };
        Self {
            creates: started().filter(|it| it.makes_its_object() && is_known(it)).collect(),
            deletes: started().filter_map(going).collect(),
        }
    }

    /// Whether there are none, which is so but for accidents.
    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.creates.is_empty() && self.deletes.is_empty()
    }

    /// Who may have the name that an instance wants, and that its object, if it has one, does not bear yet.
    pub(in crate::plan) fn bearer(
        &self,
        (resource, address): (&ResourceConfig, &Address),
        (wanted, live): (&Attributes, Option<&Attributes>),
        key: &SealKey,
    ) -> Option<Bearer<'a>> {
        let attribute = resource.schema.identity.chosen_attribute()?;
        let name = wanted.get(attribute)?;
        let is_other = |started: &Started| {
            started.provider == resource.provider
                && started.address.block.ty == address.block.ty
                && started.address != *address
        };
        let made = self.creates.iter().find(|it| is_other(it) && gives(it, name, key));
        let bears = |object: &Object| {
            let known = stored_attributes(&object.attributes, &resource.schema).unwrap_or_default();
            known.get(attribute).is_some_and(|own| agree(name, own, key))
        };
        let going = || self.deletes.iter().find(|(it, object)| is_other(it) && bears(object));
        let bearer = made
            .map(|it| Bearer::Made(&it.address))
            .or_else(|| going().map(|(it, _)| Bearer::Going(&it.address)))?;
        let stays = named(live, attribute) == named(Some(wanted), attribute);
        (!stays).then_some(bearer)
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
