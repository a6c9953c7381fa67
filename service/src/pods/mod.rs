//! Pods: on the real service machines, here one process each, with the command of a template or a
//! request.
//!
//! [`model`] is the record in the store, [`change`] makes and changes it. [`runner`] starts and
//! ends processes as the records require. [`process`] is one process, and [`status`] is the
//! condition that clients see.

pub(crate) mod change;
pub(crate) mod folders;
pub(crate) mod model;
pub(crate) mod ports;
mod process;
mod rules;
pub(crate) mod run;
pub(crate) mod runner;
pub(crate) mod status;
