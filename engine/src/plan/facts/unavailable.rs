//! The secrets that no run has in clear: those that an API shows once, or never.
//!
//! The state keeps a fingerprint of a secret, so a plan can compare it, but a call cannot send it. If the API
//! does not show the secret again, only the run that made it had it in clear. A secret without a fingerprint,
//! because the answer that would show it was lost, is not null either: it is unknown in the planned object,
//! so that nothing is made without it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Name};
use crate::digest::Fingerprint;
use crate::expression::Expr;
use crate::plan::referred::each_in;
use crate::plan::{Action, Missing, Why};
use crate::schema::{Attribute, Presence, SeenIn, TypeSchema};
use crate::value::{Attributes, Value};

/// An object as it is planned, with its live and observed attributes.
pub(in crate::plan) struct PlannedObject<'a> {
    pub(in crate::plan) address: &'a Address,
    pub(in crate::plan) schema: &'a TypeSchema,
    pub(in crate::plan) action: Action,
    pub(in crate::plan) planned: &'a Attributes,
    /// The attributes that the state and a refresh know; none if there is no object yet.
    pub(in crate::plan) live: Option<&'a Attributes>,
    /// The attributes that a refresh saw; none if it did not look.
    pub(in crate::plan) observed: Option<&'a Attributes>,
}

impl PlannedObject<'_> {
    /// Returns the attributes of the object that no run has in clear.
    pub(in crate::plan) fn unavailable(&self) -> Vec<Missing> {
        let attributes = self.schema.attributes.iter();
        let missing = attributes.filter_map(|(name, attribute)| {
            Some(Missing {
                address: self.address.clone(),
                attribute: name.clone(),
                why: self.why(name, attribute)?,
                may_show: attribute.seen_in != SeenIn::Never,
            })
        });
        missing.collect()
    }

    fn why(&self, name: &Name, attribute: &Attribute) -> Option<Why> {
        let is_computed = attribute.presence == Presence::Computed;
        let is_never_shown = attribute.seen_in == SeenIn::Never;
        let is_made = matches!(self.action, Action::Create | Action::Replace);
        if is_made {
            return (is_computed && is_never_shown).then_some(Why::Never);
        }
        let live = self.live?;
        let planned = self.planned.get(name).unwrap_or(&Value::Null);
        let is_of_api = is_computed || attribute.server_default;
        if planned.is_null() && is_of_api && !live.contains_key(name) {
            return match (is_computed && is_never_shown, attribute.sensitive) {
                (true, _) => Some(Why::Never),
                (false, true) => Some(Why::Unshown),
                (false, false) => None,
            };
        }
        let is_shown =
            self.observed.and_then(|seen| seen.get(name)).is_some_and(|value| !value.is_null());
        let is_lost = !is_shown && (is_never_shown || self.observed.is_some());
        (planned.holds_sealed() && is_lost).then_some(Why::Fingerprint)
    }
}

/// The unavailable secrets of the objects that were planned so far.
#[derive(Debug, Default)]
pub(in crate::plan) struct UnavailableSecrets {
    all: BTreeMap<Address, Vec<Missing>>,
    by_fingerprint: BTreeMap<Fingerprint, Missing>,
}

impl UnavailableSecrets {
    /// Adds the unavailable secrets of one object; `planned` is the object as others see it.
    pub(in crate::plan) fn insert(&mut self, missing: Vec<Missing>, planned: &Value) {
        for one in missing {
            let value = planned.as_map().and_then(|attributes| attributes.get(&one.attribute));
            value.unwrap_or(&Value::Null).each_part(&mut |part| {
                if let Value::Sealed(sealed) = part {
                    self.by_fingerprint.insert(sealed.fingerprint.clone(), one.clone());
                }
            });
            self.all.entry(one.address.clone()).or_default().push(one);
        }
    }

    pub(in crate::plan) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the unavailable secrets that a value needs: it has the fingerprint of one, or is computed from
    /// one.
    pub(in crate::plan) fn behind(&self, value: &Value) -> Vec<Missing> {
        let mut found = BTreeMap::new();
        let mut add = |one: &Missing| {
            found.insert((one.address.clone(), one.attribute.clone()), one.clone());
        };
        value.each_part(&mut |part| match part {
            Value::Sealed(sealed) => {
                self.by_fingerprint.get(&sealed.fingerprint).into_iter().for_each(&mut add);
            }
            Value::Unknown(unknown) => {
                self.referred(&unknown.residual).into_iter().for_each(&mut add);
            }
            _ => {}
        });
        found.into_values().collect()
    }

    fn referred(&self, expr: &Expr) -> Vec<&Missing> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        each_in(expr, &mut |reference| {
            let of_block = self.all.range(reference.block.instance(None)..);
            let of_block = of_block.take_while(|(address, _)| address.block == *reference.block);
            let missing = of_block.flat_map(|(_, missing)| missing);
            found.extend(missing.filter(|one| reference.has(&one.address, &one.attribute)));
        });
        found
    }

    /// Returns a value with null for each value that no answer has shown. For outputs, which show what is
    /// known.
    pub(in crate::plan) fn without_unshown(&self, value: &Value) -> Value {
        let part = |item: &Value| self.without_unshown(item);
        match value {
            Value::Unknown(unknown) => {
                let is_it = |one: &&Missing| {
                    let slot = Expr::slot(&one.address, &one.attribute);
                    !one.has_fingerprint() && slot.kind == unknown.residual.kind
                };
                let found = self.referred(&unknown.residual);
                if found.iter().any(is_it) { Value::Null } else { value.clone() }
            }
            Value::List(items) => Value::list(items.iter().map(part).collect()),
            Value::Map(entries) => {
                Value::map(entries.iter().map(|(name, item)| (name.clone(), part(item))).collect())
            }
            _ => value.clone(),
        }
    }
}

/// Makes each attribute that no answer has shown unknown: null would mean that it has no value.
pub(in crate::plan) fn mark(
    missing: &[Missing],
    schema: &TypeSchema,
    planned: &mut Arc<Attributes>,
) {
    for Missing { address, attribute, .. } in missing.iter().filter(|one| !one.has_fingerprint()) {
        if let Some(known) = schema.attributes.get(attribute) {
            let slot = Value::unknown(known.ty.clone(), Expr::slot(address, attribute));
            Arc::make_mut(planned).insert(attribute.clone(), slot);
        }
    }
}

/// Returns the attributes of a planned object that no answer ever shows, and that stay although no run has
/// them in clear.
pub(in crate::plan) fn kept<'s>(
    schema: &'s TypeSchema,
    planned: &Attributes,
) -> impl Iterator<Item = &'s Name> {
    let is_kept = |(name, attribute): &(&Name, &Attribute)| {
        let value = planned.get(*name).unwrap_or(&Value::Null);
        let is_missing = value.is_null() && attribute.presence == Presence::Required;
        attribute.seen_in == SeenIn::Never && (value.holds_sealed() || is_missing)
    };
    schema.attributes.iter().filter(is_kept).map(|(name, _)| name)
}
