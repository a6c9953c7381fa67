//! Workers: processes on this machine that run the commands of templates, and serve the jobs and
//! requests of endpoints.
//!
//! The service knows a worker only by the worker's calls; nothing here looks inside of its process.
//! The addresses for these calls are in its environment. [`crate::jobs`] answers them.

pub(crate) mod container;
mod counts;
pub(crate) mod echo;
pub(crate) mod environment;
pub(crate) mod fleet;
pub(crate) mod guard;
mod health;
pub(crate) mod http_server;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod mounts;
pub(crate) mod ports;
pub(crate) mod process;
mod scale;
pub(crate) mod usage;
pub(crate) mod volumes;
pub(crate) mod worker;
