//! Checks: they read decided changes and report.

pub(super) mod budget;
pub(super) mod kept;
pub(super) mod let_go;
pub(super) mod lifecycle;
pub(super) mod names;
pub(super) mod renamed;
pub mod rules;
pub(super) mod unmanaged;
