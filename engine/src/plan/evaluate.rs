//! Evaluation: instances of `for_each` and their desired attributes, from the spec's expressions.

pub(super) mod desired;
mod for_each_provenance;
pub(super) mod scope;
