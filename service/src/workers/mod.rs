//! Workers: processes on this machine that run what templates say and serve the jobs of endpoints.
//!
//! A worker is known by its calls alone; nothing here looks inside its process. What it needs to
//! call stands in its environment, and the calls themselves are answered by [`crate::jobs`].

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
