//! The items of lists that cannot be used as objects: two with one id, and items that do not fit the
//! descriptor.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::schema::{Identity, OnChange, Presence};
use engine::state::ObjectId;
use engine::value::Attributes;
use serde_json::Value as Json;

use crate::classify::Failure;
use crate::descriptor::model::CallModel;
use crate::listing::Unfit;
use crate::objects::id_text;
use crate::partial_json;
use crate::subject::{Subject, unreadable};
use crate::wire::{at, decode};

impl Subject<'_> {
    /// Returns the attribute in which two items with one id are two objects; none if they may be one. Lists
    /// with pages may show an object twice, and so do joined lists. The object may have changed in between,
    /// but not in attributes that never change. Within one list, the attributes that reads need do not differ
    /// either.
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
        // One list may leave out, or show as null, a value that another one shows.
        let differs = |name: &&Name| {
            let other = other.get(*name).filter(|other| !other.is_null());
            other.is_some_and(|other| !one[*name].is_null() && !other.same(&one[*name]))
        };
        one.keys().filter(|name| is_lasting(name)).find(differs).cloned()
    }

    /// Returns the failure of two objects with one id.
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

    /// Returns an item that does not fit. Without an id it may be any object; if objects are seen only in
    /// lists, that is an error.
    pub(crate) fn unfit(
        &self,
        call: &CallModel,
        item: &Json,
        reason: &str,
    ) -> Result<Unfit, Failure> {
        let part = |name| {
            let model = self.model.attributes.get(name)?;
            let path = model.wires.get(&call.api)?.read_at.as_ref()?;
            let part = at(item, path).filter(|part| partial_json::unreadable(part).is_none())?;
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
