//! Evaluation: instances of `for_each` and their desired attributes, from the spec's expressions.

pub(super) mod desired;
mod for_each_provenance;
pub(super) mod gone;
pub(super) mod lifecycle;
pub(super) mod prior;
pub(super) mod scope;
pub(super) mod secret_inputs;
pub(super) mod trigger_references;

use self::scope::{LocalCache, Planned};

/// The results of an evaluation: the objects as expressions see them, and the locals.
#[derive(Default)]
pub(in crate::plan) struct Evaluation<'a> {
    pub(in crate::plan) planned: Planned<'a>,
    pub(in crate::plan) locals: LocalCache,
}
