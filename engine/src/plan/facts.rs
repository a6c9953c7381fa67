//! Facts: what is computed once, before anything is decided.

pub(super) mod deferrals;
pub(super) mod doubted_names;
pub mod prior;
pub(super) mod redactor;
pub(super) mod references;
pub(super) mod selection;
pub(super) mod sensitivity;
pub(super) mod unavailable;
