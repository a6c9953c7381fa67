//! What lists show: objects, and what is there and cannot be read.
//!
//! One object of a stranger that does not fit the descriptor keeps nobody from looking at the others.
//! What is ours is read by itself where a list does not show it, and that says what does not fit.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::schema::{Identity, OnChange, Presence};
use engine::state::ObjectId;
use engine::value::Attributes;
use provider_port::Object;
use serde_json::Value as Json;

use crate::classify::Failure;
use crate::descriptor::model::CallModel;
use crate::lenient;
use crate::objects::id_text;
use crate::reading::{Subject, unreadable};
use crate::wire::{at, decode};

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
    id: Option<ObjectId>,
    /// What it is called, where that is text.
    name: Option<String>,
    trouble: Failure,
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

impl Subject<'_> {
    /// What tells two items of lists from one another although they bear one id. Lists in pages may show an object
    /// twice, and lists that are joined do, changed meanwhile, but not in what never changes; one list
    /// shows it by one name.
    pub(crate) fn differs_in(
        &self,
        one: &Attributes,
        other: &Attributes,
        of_one_list: bool,
    ) -> Option<Name> {
        let named = if of_one_list { self.model.named_by_reads() } else { BTreeSet::new() };
        let is_lasting = |name: &Name| {
            named.contains(name)
                || self.schema.attributes.get(name).is_some_and(|attribute| {
                    attribute.presence != Presence::Computed
                        && attribute.on_change == OnChange::Replace
                        && !attribute.volatile
                })
        };
        // A list may leave out, or show as null, what another one shows.
        let differs = |name: &&Name| {
            let other = other.get(*name).filter(|other| !other.is_null());
            other.is_some_and(|other| !one[*name].is_null() && !other.same(&one[*name]))
        };
        one.keys().filter(|name| is_lasting(name)).find(differs).cloned()
    }

    /// Two objects under one id.
    pub(crate) fn ambiguous(&self, call: &CallModel, id: &ObjectId, differs: &Name) -> Failure {
        let key = &self.model.key;
        let reason =
            format!("it shows two objects whose `{key}` is {id}, and whose `{differs}` differ");
        unreadable(call, &reason).help(format!(
            "a key tells an object from all others in the list: in the descriptor, make one of both, with `key = \
             \"full_id\"` and `full_id = {{ type = \"string\", computed = true, wire = false, derived = \
             \"${{{differs}}}|${{{key}}}\" }}`"
        ))
    }

    /// An item that does not fit. Without an id it may be anybody's; where objects are not seen
    /// without the lists, that is an error.
    pub(crate) fn unfit(
        &self,
        call: &CallModel,
        item: &Json,
        reason: &str,
    ) -> Result<Unfit, Failure> {
        let part = |name| {
            let model = self.model.attributes.get(name)?;
            let path = model.wires.get(&call.api)?.read_at.as_ref()?;
            let part = at(item, path).filter(|part| lenient::trouble(part).is_none())?;
            Some(decode(part, &model.schema.ty, self.caller.api(&call.api).naming))
        };
        let id = part(&self.model.key).as_ref().and_then(id_text).map(ObjectId);
        let trouble = match &id {
            Some(id) => unreadable(call, &format!("{id} does not fit: {reason}")),
            None => unreadable(call, reason),
        };
        if id.is_none() && self.model.is_seen_by_lists() {
            return Err(trouble);
        }
        let named = match &self.model.identity {
            Identity::OneTimeName { attribute } | Identity::UniqueName { attribute } => {
                part(attribute)
            }
            _ => None,
        };
        let name = named.and_then(|name| name.as_str().map(str::to_owned));
        Ok(Unfit { id, name, trouble })
    }
}
