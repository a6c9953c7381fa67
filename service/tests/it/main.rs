//! Tests of the service over real sockets.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails where it stands")]

mod balancer;
mod browser;
mod console;
mod containers;
mod description;
mod entrances;
mod graphql;
mod harness;
mod hostile;
mod jobs;
mod keys;
mod killed;
mod kills;
mod limits;
mod management;
mod mishaps;
mod operations;
mod pods;
mod pods_graphql;
mod pods_v2;
mod running;
mod runs;
mod scaling;
mod sdk;
mod telling;
mod v2;
mod v2_problems;
