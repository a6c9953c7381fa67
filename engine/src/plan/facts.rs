//! Facts: values that are computed once, before anything is decided.

pub(super) mod deferrals;
pub(super) mod names;
pub mod prior;
pub(super) mod redactor;
pub(super) mod reference_index;
pub(super) mod references;
#[cfg(test)]
pub(in crate::plan) mod samples;
pub(super) mod selection;
pub(super) mod sensitivity;
pub(super) mod unavailable;
