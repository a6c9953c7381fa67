//! The search for the one object that has all the attributes that a look-up gives.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Name;
use crate::config::data::ID;
use crate::diagnostics::nearest;
use crate::digest::SealKey;
use crate::plan::decide::diff::agree;
use crate::plan::facts::prior::derive;
use crate::schema::TypeSchema;
use crate::state::ObjectId;
use crate::value::{Attributes, Value};

/// The objects of a type, by id, with secrets sealed.
pub(super) type Listed = BTreeMap<ObjectId, Attributes>;

/// One object of a list.
type Candidate<'l> = (&'l ObjectId, &'l Attributes);

/// An attribute that the object must have.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) name: Name,
    pub(super) value: Value,
    /// True if the value must not be shown.
    pub(super) is_secret: bool,
}

/// The reason that there is not exactly one object.
#[derive(Debug)]
pub(super) enum Miss {
    /// No object has all attributes.
    None {
        /// The number of objects that were looked at.
        listed: usize,
        /// The conditions in the order in which they were checked, each with the number of objects that it
        /// left; the last one left none.
        left: Vec<(Condition, usize)>,
        /// A similar value that objects have, and that was probably meant; none if there is none.
        near: Option<Name>,
    },
    /// Several objects have all attributes.
    Several {
        /// The ids of the objects, in order.
        ids: Vec<ObjectId>,
        /// The attributes in which these objects differ from one another.
        differ: Vec<Name>,
    },
}

/// The type of the object that is searched for.
pub(super) struct Sought<'s> {
    pub(super) schema: &'s TypeSchema,
    /// The key under which secrets are known.
    pub(super) key: &'s SealKey,
}

impl Sought<'_> {
    /// Returns the only object that has all attributes, or the reason that there is not exactly one.
    pub(super) fn find<'l>(
        &self,
        listed: &'l Listed,
        conditions: &[Condition],
    ) -> Result<Candidate<'l>, Miss> {
        let bears_all =
            |of: &Candidate<'l>| conditions.iter().all(|condition| self.bears(*of, condition));
        let mut matches = listed.iter().filter(bears_all);
        match (matches.next(), matches.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(self.nothing(listed, conditions)),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(matches).collect();
                Err(self.several(all))
            }
        }
    }

    fn bears(&self, (id, object): Candidate<'_>, condition: &Condition) -> bool {
        if &*condition.name == ID && !self.schema.attributes.contains_key(ID) {
            return condition.value.as_str() == Some(&*id.0);
        }
        agree(&condition.value, &self.value(object, &condition.name), self.key)
    }

    /// Returns the value of an attribute; null if an answer left it out.
    fn value(&self, object: &Attributes, name: &Name) -> Value {
        let attribute = self.schema.attributes.get(name);
        if attribute.is_some_and(|attribute| attribute.derived.is_some()) {
            let mut object = object.clone();
            derive(self.schema, &mut object, &mut self.schema.sensitive());
            return object.remove(name).unwrap_or(Value::Null);
        }
        object.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Returns the miss of a search without a result. The conditions that most objects meet come first.
    fn nothing(&self, listed: &Listed, conditions: &[Condition]) -> Miss {
        let met =
            |condition: &Condition| listed.iter().filter(|of| self.bears(*of, condition)).count();
        let mut order: Vec<(usize, &Condition)> =
            conditions.iter().map(|condition| (met(condition), condition)).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
        let mut candidates: Vec<Candidate<'_>> = listed.iter().collect();
        let (mut left, mut near) = (Vec::new(), None);
        for (_, condition) in order {
            if candidates.is_empty() {
                break;
            }
            near = self.near(&candidates, condition);
            candidates.retain(|of| self.bears(*of, condition));
            left.push((condition.clone(), candidates.len()));
        }
        Miss::None { listed: listed.len(), left, near }
    }

    /// Returns the similar value, among those of the objects, that was probably meant.
    fn near(&self, left: &[Candidate<'_>], condition: &Condition) -> Option<Name> {
        let word = condition.value.as_str().filter(|_| !condition.is_secret)?;
        let values: Vec<Value> =
            left.iter().map(|(_, object)| self.value(object, &condition.name)).collect();
        nearest(word, values.iter().filter_map(Value::as_str)).map(Name::from)
    }

    fn several(&self, all: Vec<Candidate<'_>>) -> Miss {
        let attributes = self.schema.attributes.iter();
        let shown = attributes.filter(|(_, it)| !it.sensitive && it.derived.is_none());
        let differ = shown.map(|(name, _)| name).filter(|name| {
            let values: Option<BTreeSet<String>> = all
                .iter()
                .map(|(_, object)| {
                    object.get(*name).filter(|it| !it.is_null() && !it.holds_sealed())
                })
                .map(|value| Some(crate::digest::canonical(value?)))
                .collect();
            values.is_some_and(|values| values.len() == all.len())
        });
        let differ = differ.cloned().collect();
        Miss::Several { ids: all.into_iter().map(|(id, _)| id.clone()).collect(), differ }
    }
}
