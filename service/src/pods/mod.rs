//! Pods: machines of their own, here one process each, which run what a template or a request says.
//!
//! [`model`] is the record in the store, [`change`] makes and changes it. [`runner`] keeps the
//! processes as the records want them, [`process`] is one of them, and [`status`] says what clients
//! see of both.

pub(crate) mod change;
pub(crate) mod folders;
pub(crate) mod model;
pub(crate) mod ports;
mod process;
mod rules;
pub(crate) mod run;
pub(crate) mod runner;
pub(crate) mod status;
