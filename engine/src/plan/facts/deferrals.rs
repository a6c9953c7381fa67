//! Deferrals: objects that stay as they are although the spec may want something else.
//!
//! An object stays as it is when the plan leaves it out, when a call on it is in doubt, or when it ignores
//! changes of the attribute that names an object that it uses. The used object is not deleted, neither by a
//! delete nor by the delete of a replace. It stays then, and keeps the objects that it uses itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::plan::facts::references::{StateReferences, is_current};
use crate::plan::facts::selection::needs;
use crate::plan::input::{PlanInput, Target};
use crate::plan::{Reason, Staying, Use};
use crate::state::{Object, ObjectId};

/// The reason that the plan does nothing about an instance.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::plan) enum Deferral {
    /// A call on the instance, or on one that it depends on, is in doubt.
    InDoubt,
    /// The plan does not cover the instance.
    LeftOut,
    /// Another object, which stays as it is, uses the instance's object. In a box: every draft has room for a
    /// deferral, and few have this one.
    StillUsed(Box<Use>),
}

impl Deferral {
    pub(in crate::plan) fn still_used(user: &Use) -> Self {
        Self::StillUsed(Box::new(user.clone()))
    }

    /// Returns the reason that a plan shows.
    pub(in crate::plan) fn reason(&self) -> Reason {
        match self {
            Self::InDoubt => Reason::InDoubt,
            Self::LeftOut => Reason::Untargeted,
            Self::StillUsed(user) => Reason::StillUsed(Use::clone(user)),
        }
    }
}

/// The objects of the state that another object goes on using, each with its first user.
#[derive(Default)]
pub(in crate::plan) struct UsedObjects(BTreeMap<Address, BTreeMap<ObjectId, Use>>);

impl UsedObjects {
    /// Finds the objects that stay in use, whatever is decided. Their users are objects that a call in doubt
    /// is about, objects that refer to those, and objects that the plan leaves out.
    ///
    /// Instances are not evaluated yet. So every object that an object in doubt is made from counts as used,
    /// and a reference with a computed key counts for each instance.
    pub(in crate::plan) fn before_deciding(
        input: &PlanInput<'_>,
        is_left_out: &dyn Fn(&Address) -> bool,
    ) -> Self {
        let follows = |address: &Address, why| {
            why != Staying::InDoubt && input.config.resources.contains_key(&address.block)
        };
        let in_doubt = in_doubt(input);
        let is_in_doubt = |address: &&Address| {
            in_doubt.contains(&Target::Instance(Address::clone(address)))
                || in_doubt.contains(&Target::Block(address.block.clone()))
        };
        let mut search = Search::new(input, &follows);
        search.doubts();
        if !in_doubt.is_empty() {
            search.stay(input.snapshot.entries.keys().filter(is_in_doubt), Staying::InDoubt);
        }
        // A replace decides later about an old object that is left out of the plan. A replace that an earlier
        // run began and that has put its old object aside cannot decide any more.
        if input.snapshot.entries.values().any(|entry| !entry.deposed.is_empty()) {
            search.left_out(is_left_out);
        }
        search.used
    }

    /// Returns the user of an object; none if no object goes on using it.
    pub(in crate::plan) fn user(&self, address: &Address, object: &ObjectId) -> Option<&Use> {
        self.0.get(address)?.get(object)
    }
}

/// Returns the resources that calls in doubt are about, and all that refer to those.
fn in_doubt(input: &PlanInput<'_>) -> BTreeSet<Target> {
    let doubts = input.snapshot.pending.values();
    let mut open: Vec<Target> =
        doubts.map(|pending| Target::Instance(pending.started.address.clone())).collect();
    let mut found = BTreeSet::new();
    while let Some(target) = open.pop() {
        if found.insert(target.clone()) {
            open.extend(needs::users(input.config, input.graph, &target));
        }
    }
    found
}

/// A search for used objects. It starts at the objects that stay as they are.
pub(in crate::plan) struct Search<'s, 'a> {
    input: &'s PlanInput<'a>,
    references: StateReferences<'a>,
    pub(in crate::plan) used: UsedObjects,
    /// The objects that stay, and whose own references were not followed yet.
    open: Vec<(&'a Address, &'a Object, Staying)>,
    /// A function that returns true if the plan changes the object of an address as the spec says, so that
    /// the object lets go of those that it used.
    follows: &'s dyn Fn(&Address, Staying) -> bool,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(in crate::plan) fn new(
        input: &'s PlanInput<'a>,
        follows: &'s dyn Fn(&Address, Staying) -> bool,
    ) -> Self {
        let references = StateReferences::new(input);
        Self { input, references, used: UsedObjects::default(), open: Vec::new(), follows }
    }

    /// Marks the objects that calls in doubt depend on: the objects of those calls may exist.
    pub(in crate::plan) fn doubts(&mut self) {
        for pending in self.input.snapshot.pending.values() {
            for dependency in &pending.started.dependencies {
                for object in self.references.objects(dependency) {
                    self.mark(dependency, object, &pending.started.address, Staying::InDoubt);
                }
            }
        }
        self.follow();
    }

    /// Marks the objects that objects outside the plan use.
    pub(in crate::plan) fn left_out(&mut self, is_left_out: &dyn Fn(&Address) -> bool) {
        if !self.input.options.cover_all() {
            let entries = self.input.snapshot.entries.keys();
            self.stay(entries.filter(|address| is_left_out(address)), Staying::LeftOut);
        }
    }

    /// Marks the objects that the objects of some addresses use.
    pub(in crate::plan) fn stay<'d>(
        &mut self,
        addresses: impl IntoIterator<Item = &'d Address>,
        why: Staying,
    ) {
        for address in addresses {
            let Some((address, _)) = self.references.entry(address) else { continue };
            let objects = self.references.objects(address).into_iter();
            self.open.extend(objects.map(|object| (address, object, why)));
        }
        self.follow();
    }

    /// Marks an object as used.
    pub(in crate::plan) fn mark(
        &mut self,
        address: &Address,
        object: &'a Object,
        by: &Address,
        why: Staying,
    ) {
        let Some((address, entry)) = self.references.entry(address) else { return };
        let users = self.used.0.entry(address.clone()).or_default();
        if users.contains_key(&object.id) {
            return;
        }
        users.insert(object.id.clone(), Use { by: by.clone(), why });
        if !is_current(entry, object) || !(self.follows)(address, why) {
            self.open.push((address, object, why));
        }
    }

    /// Follows the references of the objects that stay.
    pub(in crate::plan) fn follow(&mut self) {
        while let Some((address, object, why)) = self.open.pop() {
            for (used, target) in self.references.of(address, object) {
                self.mark(used, target, address, why);
            }
        }
    }
}
