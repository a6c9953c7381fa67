//! The serverless compute service on this machine.
//!
//! A real service behind real sockets: the REST management API under `/v1` and in its second
//! version under `/v2`, GraphQL at `/graphql`, the job API under `/v2/<endpoint>`, load balancing
//! under `/lb/<endpoint>`, and workers that are processes, all over one embedded durable store.
//! Every answered write is durable: a service that is killed at any moment continues at its next
//! start.
//!
//! The service shares no code with the client side of Plumb. They meet only in requests and
//! answers, so a mistake in one cannot hide a mistake in the other. The service prints nothing; its
//! caller passes a log. Mishaps ([`Fault`]) and departures from the documents ([`Quirk`]) happen on
//! request only.

mod access_log;
mod app;
mod auth;
mod balancer;
mod billing;
mod body;
mod catalog;
mod clock;
mod console;
mod cors;
mod description;
mod faults;
mod field_name;
mod gate;
mod graphql;
mod histogram;
mod idle;
mod ids;
mod jobs;
mod keys;
mod lease;
mod listen;
mod log;
mod memory_budget;
mod metrics;
mod options;
mod own_files;
mod pods;
mod problem;
mod quirks;
mod rate;
mod readiness;
mod request_id;
mod resources;
mod rest;
mod routes;
mod server;
mod stall_timeout;
mod store;
mod tls;
mod v2;
mod workers;

pub use cors::Origin;
pub use faults::{Fault, FaultError};
pub use keys::{Interface, KeyError, KeyRecord, Rights, create_key, list_keys, revoke_key};
pub use log::{Log, LogLevel, LogLine};
pub use options::{Options, Runtime, StreamFormat, Timing};
pub use own_files::{Strange, refuse_strange};
pub use quirks::{Quirk, QuirkError};
pub use rate::RateLimits;
pub use server::{Addresses, RunError, Server, StartError, start};
pub use store::StoreError;
pub use tls::{TlsError, TlsFiles};
pub use workers::container::EngineError;
pub use workers::echo::echo_worker_main;
pub use workers::environment::INHERITED;
pub use workers::guard::worker_guard_main;
pub use workers::limits::WorkerLimits;
