//! The value of a resource that the spec disables and that has no object: null, as in a plan.
//!
//! An object that is there is shown even if the spec disables it: the spec may have changed since the last
//! apply.

use std::cell::Cell;

use engine::address::{Block, Name};
use engine::config::ResourceConfig;
use engine::config::for_each;
use engine::expression::Root;
use engine::expression::evaluate;
use engine::value::{Attributes, Datum, Value};

use super::CheckScope;

/// The maximum depth of evaluations that need one another. Whether a resource is disabled may depend on other
/// resources, and a chain of those needs stack.
const DEPTH_MAX: usize = 64;

/// `each` of an instance.
#[derive(Clone, Copy)]
pub(super) struct Each<'a> {
    key: &'a Name,
    value: &'a Datum,
}

/// The current depth of evaluations that need one another.
#[derive(Default)]
pub(super) struct Depth(Cell<usize>);

impl Each<'_> {
    /// The value of a root below `each`.
    pub(super) fn root(&self, root: &Root) -> Datum {
        match root {
            Root::EachKey => Datum::plain(Value::String(self.key.clone())),
            _ => self.value.clone(),
        }
    }
}

impl Depth {
    /// Computes one level deeper. Returns `None` if that exceeds [`DEPTH_MAX`].
    fn below<T>(&self, compute: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.0.get() >= DEPTH_MAX {
            return None;
        }
        self.0.set(self.0.get() + 1);
        let computed = compute();
        self.0.set(self.0.get() - 1);
        computed
    }
}

impl CheckScope<'_> {
    /// Returns the value of a resource: `found` if the resource was found, null if it was not and the spec
    /// disables it.
    pub(super) fn or_unwanted(
        &self,
        block: &Block,
        key: Option<&str>,
        found: Result<Datum, String>,
    ) -> Result<Datum, String> {
        let Some(resource) = self.config.resources.get(block) else { return found };
        match (key, &resource.for_each) {
            (None, None) => found.or_else(|why| null_if(self.is_disabled(resource, None), why)),
            (Some(key), Some(_)) => found.or_else(|why| {
                let instances = self.instances(resource).unwrap_or_default();
                let instance = instances.iter().find(|(name, _)| **name == *key);
                let each = instance.map(|(key, value)| Each { key, value });
                null_if(each.is_some() && self.is_disabled(resource, each), why)
            }),
            (None, Some(_)) => self.all(resource, found),
            (Some(_), None) => found,
        }
    }

    /// Returns all instances of a block: the objects of those that have one, and null for those that are
    /// disabled.
    fn all(
        &self,
        resource: &ResourceConfig,
        found: Result<Datum, String>,
    ) -> Result<Datum, String> {
        let Some(instances) = self.instances(resource) else { return found };
        let there = found.as_ref().ok().and_then(|datum| datum.value.as_map().cloned());
        let mut objects: Attributes = there.unwrap_or_default();
        let mut is_lacking = false;
        for (key, value) in &instances {
            if objects.contains_key(key) {
                continue;
            }
            if self.is_disabled(resource, Some(Each { key, value })) {
                objects.insert(key.clone(), Value::Null);
            } else {
                is_lacking = true;
            }
        }
        match found {
            Ok(datum) => Ok(Datum { value: Value::map(objects), ..datum }),
            Err(_) if !is_lacking => Ok(Datum::plain(Value::map(objects))),
            Err(why) => Err(why),
        }
    }

    /// Returns the keys of a block's `for_each` with their values; `None` if they cannot be computed.
    fn instances(&self, resource: &ResourceConfig) -> Option<Vec<(Name, Datum)>> {
        let for_each = resource.for_each.as_ref()?;
        self.depth.below(|| {
            let datum = evaluate::evaluate(&for_each.expr, &self.with_each(None)).ok()?;
            for_each::keys(&datum).ok()
        })
    }

    fn is_disabled(&self, resource: &ResourceConfig, each: Option<Each<'_>>) -> bool {
        let Some(enabled) = &resource.lifecycle.enabled else { return false };
        let enabled = self.depth.below(|| {
            let datum = evaluate::evaluate(&enabled.expr, &self.with_each(each)).ok()?;
            Some(datum.value)
        });
        matches!(enabled, Some(Value::Bool(false)))
    }
}

fn null_if(is_unwanted: bool, why: String) -> Result<Datum, String> {
    if is_unwanted { Ok(Datum::plain(Value::Null)) } else { Err(why) }
}
