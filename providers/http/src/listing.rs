//! What lists show: objects, and what is there and cannot be read.
//!
//! One object of a stranger that does not fit the descriptor keeps nobody from looking at the others.
//! What is ours is read by itself where a list does not show it, and that says what does not fit.

use std::collections::BTreeSet;

use engine::state::ObjectId;
use provider_port::Object;

use crate::classify::Failure;

/// What the lists of a type show.
#[derive(Clone, Default)]
pub(crate) struct Listing {
    pub(crate) objects: Vec<Object>,
    /// What cannot be read.
    pub(crate) unfit: Vec<Unfit>,
}

/// An item of a list that does not fit the descriptor.
#[derive(Clone)]
pub(crate) struct Unfit {
    pub(crate) id: Option<ObjectId>,
    /// What it is called, where that is text.
    pub(crate) name: Option<String>,
    /// Why it cannot be read.
    pub(crate) trouble: Failure,
}

impl Listing {
    /// Why an object cannot be read, if it is there and cannot.
    pub(crate) fn trouble_of(&self, id: &ObjectId) -> Option<&Failure> {
        let unfit = self.unfit.iter().find(|unfit| unfit.id.as_ref() == Some(id));
        unfit.map(|unfit| &unfit.trouble)
    }

    /// Adds an id that more than one object bears: which of them is whose, nobody can tell.
    pub(crate) fn add_ambiguous(&mut self, id: ObjectId, trouble: Failure) {
        self.unfit.push(Unfit { id: Some(id), name: None, trouble });
    }

    /// Whether an object is there, readable or not.
    pub(crate) fn shows(&self, id: &ObjectId) -> bool {
        self.objects.iter().any(|object| object.id == *id) || self.trouble_of(id).is_some()
    }

    /// The ids of what cannot be read.
    pub(crate) fn unfit_ids(&self) -> BTreeSet<ObjectId> {
        self.unfit.iter().filter_map(|unfit| unfit.id.clone()).collect()
    }

    /// Where nothing fits, and something shows no id, the descriptor is about another API.
    pub(crate) fn refuse_another_shape(&self) -> Result<(), Failure> {
        let nameless = self.unfit.iter().find(|unfit| unfit.id.is_none());
        match nameless.filter(|_| self.objects.is_empty()) {
            Some(unfit) => Err(unfit.trouble.clone()),
            None => Ok(()),
        }
    }

    /// Refuses to say that nothing bears a name where something does that cannot be read.
    pub(crate) fn refuse_unfit(&self, bears: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let bears = |unfit: &&Unfit| unfit.name.as_deref().is_some_and(&bears);
        self.unfit.iter().find(bears).map_or(Ok(()), |unfit| Err(unfit.trouble.clone()))
    }
}
