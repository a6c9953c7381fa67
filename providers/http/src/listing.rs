//! The content of lists: objects, and items that cannot be read.
//!
//! An object that does not fit the descriptor does not hide the others: it may belong to someone else. If a
//! list does not show an object of the state, the object is read by itself, and that reports what does not
//! fit.

use std::collections::BTreeSet;

use engine::state::ObjectId;
use provider_port::Object;

use crate::classify::Failure;

/// The content of the lists of a type.
#[derive(Clone, Default)]
pub(crate) struct Listing {
    pub(crate) objects: Vec<Object>,
    /// The items that cannot be read.
    pub(crate) unfit: Vec<Unfit>,
}

/// An item of a list that does not fit the descriptor.
#[derive(Clone)]
pub(crate) struct Unfit {
    pub(crate) id: Option<ObjectId>,
    /// The name of the object; none if it is no text.
    pub(crate) name: Option<String>,
    /// The reason that it cannot be read.
    pub(crate) trouble: Failure,
}

impl Listing {
    /// Returns the reason that an object cannot be read; none if it is not listed, or can be read.
    pub(crate) fn trouble_of(&self, id: &ObjectId) -> Option<&Failure> {
        let unfit = self.unfit.iter().find(|unfit| unfit.id.as_ref() == Some(id));
        unfit.map(|unfit| &unfit.trouble)
    }

    /// Adds an id that more than one object has, so that none of them can be used.
    pub(crate) fn add_ambiguous(&mut self, id: ObjectId, trouble: Failure) {
        self.unfit.push(Unfit { id: Some(id), name: None, trouble });
    }

    /// Returns true if an object is listed, readable or not.
    pub(crate) fn shows(&self, id: &ObjectId) -> bool {
        self.objects.iter().any(|object| object.id == *id) || self.trouble_of(id).is_some()
    }

    /// Returns the ids of the objects that cannot be read.
    pub(crate) fn unfit_ids(&self) -> BTreeSet<ObjectId> {
        self.unfit.iter().filter_map(|unfit| unfit.id.clone()).collect()
    }

    /// Refuses lists in which no item fits and some item has no id: the descriptor is for another API.
    pub(crate) fn refuse_another_shape(&self) -> Result<(), Failure> {
        let nameless = self.unfit.iter().find(|unfit| unfit.id.is_none());
        match nameless.filter(|_| self.objects.is_empty()) {
            Some(unfit) => Err(unfit.trouble.clone()),
            None => Ok(()),
        }
    }

    /// Returns an error if an object that cannot be read has the name: then it is not known that no object
    /// has it.
    pub(crate) fn refuse_unfit(&self, has_name: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let has_name = |unfit: &&Unfit| unfit.name.as_deref().is_some_and(&has_name);
        self.unfit.iter().find(has_name).map_or(Ok(()), |unfit| Err(unfit.trouble.clone()))
    }
}
