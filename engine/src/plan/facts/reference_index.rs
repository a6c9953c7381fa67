//! References to the objects that a plan deletes: the user of each object, the attributes that name it, and
//! the certainty of the reference.
//!
//! Two rules apply. A reference that remains after the plan forbids the delete of its target, if the API
//! refuses to delete an object that is named there. A reference that the plan removes orders the delete after
//! the step that removes it.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::address::{Address, Name};
use crate::plan::draft::Draft;
use crate::plan::facts::references::{each_text, has_text};
use crate::plan::{Action, Change};
use crate::schema::Presence;
use crate::sorted::Set;
use crate::state::Snapshot;

/// The certainty that an object is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Certainty {
    /// An attribute of the user has the id, and there is no dependency: it may be the id of another object,
    /// or a name.
    Guessed,
    /// The user will use the object, or once used it and may not have let go of it.
    Assumed,
    /// The state has the dependency.
    Recorded,
    /// An attribute of the user has the id, and there is a dependency.
    Named,
    /// An attribute has the id, and the API keeps an object from being deleted while it is named there.
    Held,
}

/// A reference of one draft's live object to an object that the plan deletes.
#[derive(Debug)]
pub(in crate::plan) struct Reference<'d> {
    /// The index of the draft that refers.
    pub(in crate::plan) user: usize,
    /// The index of the draft that deletes the object.
    pub(in crate::plan) used: usize,
    /// The certainty by dependencies alone; none if only attributes show the reference.
    dependency: Option<Certainty>,
    /// The attributes of the user's live object that have the id.
    attributes: BTreeMap<&'d Name, Naming>,
}

/// An attribute that has the id of an object.
#[derive(Clone, Copy, Debug)]
struct Naming {
    /// True if the API refuses to delete an object that is named in the attribute.
    holds: bool,
    /// True if only the API sets the attribute: an id in it may be that of a user of the object.
    is_computed: bool,
    /// True if the attribute has the id after the plan, too.
    survives: bool,
}

impl<'d> Reference<'d> {
    /// Returns the attributes that forbid the delete: they name the object now and after the plan.
    pub(in crate::plan) fn surviving(&self) -> impl Iterator<Item = &'d Name> {
        let survives = |(_, naming): &(&&'d Name, &Naming)| naming.holds && naming.survives;
        self.attributes.iter().filter(survives).map(|(name, _)| *name)
    }

    /// Returns the first attribute that keeps the API from deleting the object now.
    pub(in crate::plan) fn holding(&self) -> Option<&'d Name> {
        let mut attributes = self.attributes.iter();
        attributes.find(|(_, naming)| naming.holds).map(|(name, _)| *name)
    }

    /// Returns the attributes that have the id of the object now.
    pub(in crate::plan) fn naming(&self) -> impl Iterator<Item = &'d Name> {
        self.attributes.keys().copied()
    }

    /// Returns the evidence that the delete has to wait for the user; none if there is none. An object that
    /// was put aside may name an object that its address has let go of since.
    pub(in crate::plan) fn evidence(&self, drafts: &[Draft]) -> Option<Certainty> {
        if drafts[self.user].change.deposed {
            return Some(Certainty::Assumed);
        }
        let is_given = self.attributes.values().any(|naming| !naming.is_computed);
        let is_other = drafts[self.user].change.address != drafts[self.used].change.address;
        self.dependency.or((is_given && is_other).then_some(Certainty::Guessed))
    }

    /// Returns the certainty of a wait, given the evidence for it.
    pub(in crate::plan) fn certainty(&self, evidence: Certainty) -> Certainty {
        match evidence {
            _ if self.holding().is_some() => Certainty::Held,
            Certainty::Guessed => evidence,
            _ if !self.attributes.is_empty() => Certainty::Named,
            _ => evidence,
        }
    }
}

/// All references to the objects that a plan deletes, by the draft that deletes and the draft that
/// refers.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReferenceIndex<'d>(BTreeMap<(usize, usize), Reference<'d>>);

impl<'d> ReferenceIndex<'d> {
    /// Collects the references from the dependencies of the state, those of the plan, and the live
    /// attributes.
    pub(in crate::plan) fn new(drafts: &'d [Draft], snapshot: &Snapshot) -> Self {
        let mut index = Self::default();
        if drafts.iter().any(Draft::is_deleted) {
            index.add_dependencies(drafts, snapshot);
            index.add_attributes(drafts);
        }
        index
    }

    /// Returns all references.
    pub(in crate::plan) fn iter(&self) -> impl Iterator<Item = &Reference<'d>> {
        self.0.values()
    }

    /// Returns the reference of one draft to the object that another one deletes.
    pub(in crate::plan) fn get(&self, used: usize, user: usize) -> Option<&Reference<'d>> {
        self.0.get(&(used, user))
    }

    /// Returns the addresses whose objects use an object that the plan deletes, by the address of the deleted
    /// object.
    pub(in crate::plan) fn users(&self, drafts: &[Draft]) -> BTreeMap<Address, BTreeSet<Address>> {
        let mut users: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for reference in self.iter().filter(|reference| reference.evidence(drafts).is_some()) {
            let [used, user] =
                [reference.used, reference.user].map(|at| &drafts[at].change.address);
            users.entry(used.clone()).or_default().insert(user.clone());
        }
        users
    }

    fn add_dependencies(&mut self, drafts: &'d [Draft], snapshot: &Snapshot) {
        let mut deleted: FxHashMap<&Address, Vec<usize>> = FxHashMap::default();
        for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| draft.is_deleted()) {
            deleted.entry(&draft.change.address).or_default().push(index);
        }
        let mut add = |user: usize, dependencies: &Set<Address>, certainty| {
            for used in dependencies.iter().filter_map(|on| deleted.get(on)).flatten() {
                self.of((*used, user)).dependency.get_or_insert(certainty);
            }
        };
        for (user, Draft { change, .. }) in drafts.iter().enumerate() {
            if let Some(entry) = snapshot.entries.get(&change.address) {
                add(user, &entry.dependencies, Certainty::Recorded);
            }
            add(user, &change.dependencies, Certainty::Assumed);
        }
    }

    fn add_attributes(&mut self, drafts: &'d [Draft]) {
        let mut by_id: FxHashMap<(&Name, &str), Vec<usize>> = FxHashMap::default();
        for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| draft.is_deleted()) {
            if let Some(id) = &draft.change.object {
                by_id.entry((&draft.change.provider, &id.0)).or_default().push(index);
            }
        }
        for (user, draft) in drafts.iter().enumerate() {
            for (name, value) in draft.change.before.iter().flat_map(|before| before.iter()) {
                each_text(value, &mut |text| {
                    let used = by_id.get(&(&draft.change.provider, text)).into_iter().flatten();
                    for &used in used.filter(|used| **used != user) {
                        let naming = naming(draft, name, (&drafts[used].change, text));
                        self.of((used, user)).attributes.insert(name, naming);
                    }
                });
            }
        }
    }

    fn of(&mut self, (used, user): (usize, usize)) -> &mut Reference<'d> {
        let reference = || Reference { user, used, dependency: None, attributes: BTreeMap::new() };
        self.0.entry((used, user)).or_insert_with(reference)
    }
}

/// Returns the kind of naming by an attribute of a user that has the id of an object.
fn naming(user: &Draft, name: &Name, (used, id): (&Change, &str)) -> Naming {
    let attribute = user.schema.attributes.get(name);
    let after = user.change.after.as_ref().and_then(|after| after.get(name));
    let is_kept = matches!(user.change.action, Action::NoOp | Action::Update | Action::Import);
    Naming {
        holds: attribute.is_some_and(|it| it.holds.as_ref() == Some(&used.address.block.ty)),
        is_computed: attribute.is_none_or(|it| it.presence == Presence::Computed),
        survives: user.is_forgotten()
            || (is_kept && after.is_some_and(|after| has_text(after, id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::SealKey;
    use crate::plan::facts::samples::{draft, holding_type};
    use crate::state::Entry;

    /// Returns the reference of draft 1 to the object that draft 0 deletes, in words.
    fn summary(drafts: &[Draft], snapshot: &Snapshot) -> String {
        let index = ReferenceIndex::new(drafts, snapshot);
        let Some(reference) = index.get(0, 1) else { return "none".to_owned() };
        let evidence = reference.evidence(drafts);
        let certainty = evidence.map(|evidence| reference.certainty(evidence));
        let survives = if reference.surviving().next().is_some() { ", survives" } else { "" };
        format!("{evidence:?} {certainty:?}{survives}").replace("Some", "").replace(['(', ')'], "")
    }

    /// In these drafts `holder` is the attribute by which the API keeps an object, `note` is any other
    /// attribute, and `shown` is computed.
    #[test]
    fn the_evidence_of_a_reference_decides_its_certainty() {
        for (action, before, after, depends, expected) in [
            ("noop", "note=x", "note=x", "", "none"),
            ("noop", "note=id-a", "note=id-a", "", "Guessed Guessed"),
            ("update", "note=id-a", "note=x", "state", "Recorded Named"),
            ("update", "note=x", "note=x", "state", "Recorded Recorded"),
            ("update", "note=x", "note=id-a", "plan", "Assumed Assumed"),
            ("update", "note=x", "note=x", "state plan", "Recorded Recorded"),
            ("noop", "shown=id-a", "shown=id-a", "", "None None"),
            ("update", "holder=id-a", "holder=x", "state", "Recorded Held"),
            ("update", "holder=id-a", "holder=id-a", "state", "Recorded Held, survives"),
            ("noop", "holder=id-a", "holder=id-a", "", "Guessed Held, survives"),
            ("delete", "holder=id-a", "", "state", "Recorded Held"),
            ("forget", "holder=id-a", "", "state", "Recorded Held, survives"),
        ] {
            let mut user = draft(holding_type(), action, "b", [Some(before), Some(after)]);
            let used = draft(holding_type(), "delete", "a", [Some("note=y"), None]);
            let key = SealKey::from_random([0; 32]);
            let mut snapshot = Snapshot::new("lineage".to_owned(), key);
            let dependencies: Set<Address> = [used.change.address.clone()].into_iter().collect();
            if depends.contains("plan") {
                user.change.dependencies = dependencies.clone();
            }
            if depends.contains("state") {
                let entry = Entry { dependencies, ..Entry::without_object("test".into()) };
                snapshot.entries.insert(user.change.address.clone(), entry);
            }
            assert_eq!(summary(&[used, user], &snapshot), expected, "{action} {before} {after}");
        }
    }
}
