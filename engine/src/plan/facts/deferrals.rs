//! Deferrals: objects that stay as they are although the spec may want something else.
//!
//! An object stays as it is when the plan leaves it out, when a call on it is in doubt, or when it
//! ignores changes of the attribute that names what it uses. An object that it uses is not deleted,
//! neither by a delete nor by the delete of a replace; and what stays for that reason uses objects
//! itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Address;
use crate::plan::facts::references::{StateReferences, is_current};
use crate::plan::facts::selection::needs;
use crate::plan::input::{PlanInput, Target};
use crate::plan::{Reason, Staying, Use};
use crate::state::{Object, ObjectId};

/// The reason for which nothing is done about an instance.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::plan) enum Deferral {
    /// A call on it, or on something that it depends on, is in doubt.
    InDoubt,
    /// The plan is not about it.
    LeftOut,
    /// Something that stays as it is uses it. In a box: every draft has room for a deferral, and few
    /// have this one.
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

/// The objects of the state that something goes on using, each with its first user.
#[derive(Default)]
pub(in crate::plan) struct UsedObjects(BTreeMap<Address, BTreeMap<ObjectId, Use>>);

impl UsedObjects {
    /// Finds the objects that are in use whatever is decided: by objects that a call in doubt is
    /// about or that refer to those, and by objects that the plan leaves out.
    ///
    /// Instances are not evaluated yet. So all that an object in doubt is made from counts as in
    /// use, and a reference with a computed key is one to each instance.
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
        // A replace decides for itself what becomes of an old object that is left out of the plan;
        // one that was begun and put its old object aside cannot.
        if input.snapshot.entries.values().any(|entry| !entry.deposed.is_empty()) {
            search.left_out(is_left_out);
        }
        search.used
    }

    /// Returns the user of an object, if something goes on using it.
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

/// A search for objects in use, from the objects that stay as they are.
pub(in crate::plan) struct Search<'s, 'a> {
    input: &'s PlanInput<'a>,
    references: StateReferences<'a>,
    pub(in crate::plan) used: UsedObjects,
    /// Objects that stay, and whose own references were not followed yet.
    open: Vec<(&'a Address, &'a Object, Staying)>,
    /// Returns true if the plan changes the object of an address as the spec says, so that it lets
    /// go of what it used.
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

    /// Marks what calls in doubt depend on: their objects may be there.
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

    /// Marks what the objects of the state use that the plan leaves out.
    pub(in crate::plan) fn left_out(&mut self, is_left_out: &dyn Fn(&Address) -> bool) {
        if !self.input.options.cover_all() {
            let entries = self.input.snapshot.entries.keys();
            self.stay(entries.filter(|address| is_left_out(address)), Staying::LeftOut);
        }
    }

    /// Marks what the objects of some addresses use.
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
