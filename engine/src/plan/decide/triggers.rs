//! `lifecycle.replace_triggered_by`: the changes elsewhere that replace an instance.
//!
//! A reference to a resource fires when that object is updated or replaced. A reference to one of its
//! attributes fires when that attribute changes, or is no longer known because of the change, or when the
//! object is replaced. A volatile attribute counts as the whole object: a change of its value says nothing. A
//! create fires nothing: there was no earlier object that this instance could have been made with.
//!
//! The replace may fail, or be left out of the plan, after the change that fires it is done. So the state
//! keeps, with the object that is to be replaced, the fingerprint of the trigger's value before it fired. As
//! long as that object exists, the trigger fires whenever its value differs from that fingerprint.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::config::{Config, DataConfig, ResourceConfig};
use crate::digest::{Fingerprint, SealKey};
use crate::expression::Root;
use crate::expression::visit::roots;
use crate::journal::ProgramKind;
use crate::plan::Action;
use crate::plan::decide::diff;
use crate::plan::draft::Draft;
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::evaluate::trigger_references;
use crate::schema::TypeSchema;
use crate::sorted::Set;
use crate::state::{Object, ObjectId};
use crate::value::{Attributes, Value};

/// The decisions about the objects that triggers name, and about those that look-ups wait for.
#[derive(Default)]
pub(in crate::plan) struct Changing {
    /// The blocks that triggers or look-ups name. Decisions about other blocks are not kept.
    named: BTreeSet<Block>,
    sources: BTreeMap<Address, Source>,
}

/// The decision about one object that a trigger names.
struct Source {
    action: Action,
    object: Option<ObjectId>,
    before: Option<Arc<Attributes>>,
    after: Option<Arc<Attributes>>,
    managed: Set<Name>,
    schema: Arc<TypeSchema>,
}

impl Changing {
    /// Returns a record without decisions.
    pub(in crate::plan) fn new(config: &Config) -> Self {
        let mut named = BTreeSet::new();
        named.extend(config.data.values().flat_map(DataConfig::blocks_before).cloned());
        let triggers = config.resources.values().flat_map(|r| &r.lifecycle.replace_triggered_by);
        for trigger in triggers {
            roots(&trigger.expr, &mut |root, _| {
                if let Root::Resource(block) = root {
                    named.insert(block.clone());
                }
            });
        }
        Self { named, sources: BTreeMap::new() }
    }

    /// Returns true if the object of an address is created, changed or replaced; for a block with `for_each`,
    /// if one of its objects is.
    pub(in crate::plan) fn is_changing(&self, address: &Address) -> bool {
        let changes = [Action::Create, Action::Update, Action::Replace];
        self.named_by(address).any(|(_, source)| changes.contains(&source.action))
    }

    /// Remembers a decision.
    pub(in crate::plan) fn note(&mut self, draft: &Draft) {
        let change = &draft.change;
        if !self.named.contains(&change.address.block) {
            return;
        }
        // A change that finishes a create counts as a create.
        let finishes = draft.rest.is_some_and(|rest| rest.kind == ProgramKind::Create);
        let source = Source {
            action: if finishes { Action::Create } else { change.action },
            object: change.object.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            managed: change.managed.clone(),
            schema: draft.schema.clone(),
        };
        self.sources.insert(change.address.clone(), source);
    }

    /// Returns the decisions that a reference names: that about an instance, or those about all instances of
    /// a block with `for_each`.
    fn named_by<'a>(
        &'a self,
        address: &'a Address,
    ) -> impl Iterator<Item = (&'a Address, &'a Source)> {
        let all = address.key.is_none() && !self.sources.contains_key(address);
        let same = move |other: &Address| {
            if all { other.block == address.block } else { other == address }
        };
        self.sources.range(address..).take_while(move |(other, _)| same(other))
    }
}

impl Source {
    /// Returns true if the planned change of the object fires the trigger.
    fn changes(&self, attribute: Option<&Name>, key: &SealKey) -> bool {
        match (self.action, attribute.filter(|name| !self.is_volatile(name))) {
            (Action::Replace, _) | (Action::Update, None) => true,
            (Action::Update, Some(name)) => {
                let (Some(after), Some(before)) = (&self.after, &self.before) else { return true };
                let of = |object: &Attributes| object.get(name).cloned().unwrap_or(Value::Null);
                !diff::agree(&of(after), &of(before), key)
            }
            _ => false,
        }
    }

    /// Returns true if the object differs, or will differ, from what the fingerprint was made of.
    fn differs(&self, attribute: Option<&Name>, from: &Fingerprint, key: &SealKey) -> bool {
        match self.action {
            // The object will be another one.
            Action::Create | Action::Replace => true,
            action => match self.print(attribute, self.after.as_deref(), key) {
                Some(now) => now != *from,
                None => action == Action::Update,
            },
        }
    }

    /// Returns the fingerprint of the value that a reference names; none if the value is not known.
    fn print(
        &self,
        attribute: Option<&Name>,
        object: Option<&Attributes>,
        key: &SealKey,
    ) -> Option<Fingerprint> {
        let (id, object) = (self.object.as_ref()?, object?);
        let part = |name: &Name| object.get(name).cloned().unwrap_or(Value::Null);
        let value = if let Some(name) = attribute.filter(|name| !self.is_volatile(name)) {
            part(name)
        } else {
            let stable = self.managed.iter().filter(|name| !self.is_volatile(name));
            Value::map(stable.map(|name| (name.clone(), part(name))).collect())
        };
        let id = Value::String(id.0.clone());
        value.is_known().then(|| Fingerprint::of(&Value::list(vec![id, value]), key))
    }

    fn is_volatile(&self, name: &Name) -> bool {
        self.schema.attributes.get(name).is_some_and(|attribute| attribute.volatile)
    }
}

/// The triggers that fire for an instance, by their text. Each has the fingerprint of its value before it
/// fired; it is left out if the state has it already.
pub(in crate::plan) type Fired = BTreeMap<Name, Fingerprint>;

/// Returns the triggers that fire for an instance; none if no trigger fires. `current` is the object of the
/// instance.
pub(in crate::plan) fn fired(
    resource: &ResourceConfig,
    scope: &SpecScope<'_>,
    changing: &Changing,
    current: Option<&Object>,
    key: &SealKey,
) -> Option<Fired> {
    let mut fired = None;
    for (named, attribute) in trigger_references::all(resource, scope) {
        let attribute = attribute.as_ref();
        for (address, source) in changing.named_by(&named) {
            let name = text_of(address, attribute);
            let known = current.and_then(|object| object.made_with.get(&name));
            // A trigger that has the same value again as when it fired has not changed.
            let fires = known.map_or_else(
                || source.changes(attribute, key),
                |known| source.differs(attribute, known, key),
            );
            if !fires {
                continue;
            }
            let due = fired.get_or_insert_with(Fired::new);
            let before = || source.print(attribute, source.before.as_deref(), key);
            if let (None, Some(before)) = (known, before()) {
                due.insert(name, before);
            }
        }
    }
    fired
}

fn text_of(address: &Address, attribute: Option<&Name>) -> Name {
    match attribute {
        Some(attribute) => format!("{address}.{attribute}").into(),
        None => address.to_string().into(),
    }
}
