//! The provider against the service on this machine; they share only the wire.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod endpoints;
mod jobs;
mod quirks;
mod rates;
mod refusals;
mod suite;
mod support;
mod version_two;
