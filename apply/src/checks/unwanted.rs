//! What is not there because the spec does not want it: to a check it is null, as it is to the plan.
//!
//! What is there is seen as it is, wanted or not: a spec may have changed since it was applied.

use std::cell::Cell;

use engine::address::{Block, Name};
use engine::config::ResourceConfig;
use engine::config::for_each;
use engine::expression::Root;
use engine::expression::evaluate;
use engine::value::{Attributes, Datum, Value};

use super::CheckScope;

/// How many resources may be looked at for the sake of one: whether one is wanted may hang on others, and a chain
/// of those needs stack.
const DEPTH_MAX: usize = 64;

/// `each` of an instance.
#[derive(Clone, Copy)]
pub(super) struct Each<'a> {
    key: &'a Name,
    value: &'a Datum,
}

/// How deep in such a chain an evaluation is.
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
    /// Computes one level deeper; none where that is too deep.
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
    /// What stands for a resource that was looked for, given what was found.
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

    /// All instances of a block: those that are there, and null for those that are not wanted.
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

    /// The keys of a block's `for_each` with what stands there; none where they cannot be computed.
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
