//! References between the objects of the state: from an object to those that it was made from.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::plan::input::PlanInput;
use crate::schema::Presence;
use crate::state::{Entry, Object};
use crate::value::Value;

/// The references between the objects of a state, by its dependencies and the ids in stored
/// attributes.
pub(in crate::plan) struct StateReferences<'a> {
    input: PlanInput<'a>,
    /// The addresses of the objects with each id, computed when a reference is first asked for.
    by_id: OnceCell<BTreeMap<&'a str, Vec<&'a Address>>>,
}

impl<'a> StateReferences<'a> {
    pub(in crate::plan) fn new(input: &PlanInput<'a>) -> Self {
        Self { input: *input, by_id: OnceCell::new() }
    }

    /// Returns the entry of an address.
    pub(in crate::plan) fn entry(&self, address: &Address) -> Option<(&'a Address, &'a Entry)> {
        self.input.snapshot.entries.get_key_value(address)
    }

    /// Returns the objects of an address: its own, and those that were put aside.
    pub(in crate::plan) fn objects(&self, address: &Address) -> Vec<&'a Object> {
        self.entry(address).into_iter().flat_map(|(_, entry)| objects(entry)).collect()
    }

    /// Returns the objects that an object uses, each with its address.
    pub(in crate::plan) fn of(
        &self,
        address: &Address,
        object: &'a Object,
    ) -> Vec<(&'a Address, &'a Object)> {
        let dependencies = self.dependencies(address, object).into_iter();
        let used = dependencies.map(|on| (on, self.used(on, object)));
        used.flat_map(|(on, used)| used.into_iter().map(move |used| (on, used))).collect()
    }

    /// Returns the addresses that an object was made from. A deposed object may name an object that its
    /// address has let go of since. An attribute that the spec no longer gives keeps its old reference.
    fn dependencies(&self, address: &Address, object: &'a Object) -> BTreeSet<&'a Address> {
        let Some((_, entry)) = self.entry(address) else { return BTreeSet::new() };
        let mut dependencies: BTreeSet<&Address> = entry.dependencies.iter().collect();
        let is_current = is_current(entry, object);
        let by_id = self.by_id.get_or_init(|| self.by_id());
        for (name, value) in object.attributes.json.as_map().into_iter().flat_map(|map| map.iter())
        {
            // The references of the spec are among the dependencies.
            let is_given = is_current && object.managed.contains(&**name);
            if is_given || self.is_computed(address, entry, name) {
                continue;
            }
            each_text(value, &mut |text| {
                dependencies.extend(by_id.get(text).into_iter().flatten());
            });
        }
        dependencies.remove(address);
        dependencies
    }

    fn by_id(&self) -> BTreeMap<&'a str, Vec<&'a Address>> {
        let mut by_id: BTreeMap<&str, Vec<&Address>> = BTreeMap::new();
        for (address, entry) in &self.input.snapshot.entries {
            for object in objects(entry) {
                by_id.entry(&*object.id.0).or_default().push(address);
            }
        }
        by_id
    }

    /// Returns true if only the API sets an attribute: an id in it may be that of a user of the object.
    fn is_computed(&self, address: &Address, entry: &Entry, name: &str) -> bool {
        let schema = self.input.providers.get(&entry.provider);
        let ty = schema.and_then(|schema| schema.types.get(&address.block.ty));
        let attribute = ty.and_then(|ty| ty.attributes.get(name));
        attribute.is_some_and(|attribute| attribute.presence == Presence::Computed)
    }

    /// Returns the objects of a dependency that an object uses: those that it names, or all if it names none,
    /// because it may name them by something other than their ids.
    fn used(&self, dependency: &Address, object: &Object) -> Vec<&'a Object> {
        let all = self.objects(dependency);
        if all.len() < 2 {
            return all;
        }
        let is_named = |used: &&Object| has_text(&object.attributes.json, &used.id.0);
        let named: Vec<&Object> = all.iter().copied().filter(is_named).collect();
        if named.is_empty() { all } else { named }
    }
}

/// Returns the objects of an entry: the current one, and the deposed ones.
pub(in crate::plan) fn objects(entry: &Entry) -> impl Iterator<Item = &Object> {
    entry.current.iter().chain(&entry.deposed)
}

/// Returns true if an object is the current one of its entry.
pub(in crate::plan) fn is_current(entry: &Entry, object: &Object) -> bool {
    entry.current.as_ref().is_some_and(|current| current.id == object.id)
}

/// Returns true if a value is the text, or contains it.
pub(in crate::plan) fn has_text(value: &Value, text: &str) -> bool {
    let mut has = false;
    each_text(value, &mut |own| has |= own == text);
    has
}

/// Calls `visit` for each text in a value.
pub(in crate::plan) fn each_text<'v>(value: &'v Value, visit: &mut dyn FnMut(&'v str)) {
    match value {
        Value::String(text) => visit(text),
        Value::List(items) | Value::Set(items) => {
            for item in items.iter() {
                each_text(item, visit);
            }
        }
        Value::Map(entries) => {
            for item in entries.values() {
                each_text(item, visit);
            }
        }
        _ => {}
    }
}
