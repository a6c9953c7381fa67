//! The choice of the program that an operation runs: the first program of the type whose `when` holds for the
//! object.
//!
//! Planning fixes the steps, so the answer to a `when` must be known while planning. If it depends on a value
//! that the API fills in, it is not known, and the ordinary program runs.

use crate::address::Block;
use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::{Expr, Root};
use crate::plan::evaluate::scope::AttributeScope;
use crate::schema::Program;
use crate::value::{Attributes, Datum, Paths, Value};

/// The name by which a `when` sees the object as it is now.
pub(in crate::plan) const OLD: &str = "old";

/// The objects that the `when` of a program sees.
#[derive(Clone, Copy)]
pub(in crate::plan) struct Judged<'a> {
    /// The object whose attributes a `when` names directly: the planned object, or the live one on a delete.
    attributes: Option<&'a Attributes>,
    /// The live object; none on a create.
    old: Option<&'a Attributes>,
}

impl<'a> Judged<'a> {
    /// Returns the view of an object that is made.
    pub(in crate::plan) fn made(planned: Option<&'a Attributes>) -> Self {
        Self { attributes: planned, old: None }
    }

    /// Returns the view of an object that changes.
    pub(in crate::plan) fn changed(
        live: Option<&'a Attributes>,
        planned: Option<&'a Attributes>,
    ) -> Self {
        Self { attributes: planned, old: live }
    }

    /// Returns the view of an object that stays as it is, or is deleted.
    pub(in crate::plan) fn live(live: Option<&'a Attributes>) -> Self {
        Self { attributes: live, old: live }
    }
}

/// Returns the index of the first program that applies to the object; none if no program does.
pub(in crate::plan) fn choose(programs: &[Program], judged: Judged<'_>) -> Option<usize> {
    programs.iter().position(|program| match &program.when {
        None => true,
        Some(when) => matches!(answer(when, judged), Some(Value::Bool(true))),
    })
}

/// Evaluates the `when` of a program for an object; returns none if it fails.
pub(in crate::plan) fn answer(when: &Expr, judged: Judged<'_>) -> Option<Value> {
    evaluate(when, &judged).ok().map(|datum| datum.value)
}

impl Scope for Judged<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Named(name) if &**name == OLD => {
                Ok(self.old.map_or(Value::Null, |old| Value::map(old.clone())).into())
            }
            root => self.attributes(|scope| scope.root(root)),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.attributes(|scope| scope.resource(block, key))
    }
}

impl Judged<'_> {
    fn attributes<T>(&self, see: impl FnOnce(&AttributeScope<'_>) -> T) -> T {
        let (empty, sensitive) = (Attributes::new(), Paths::none());
        let attributes = self.attributes.unwrap_or(&empty);
        see(&AttributeScope { attributes, sensitive: &sensitive })
    }
}
