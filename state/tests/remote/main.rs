//! The backends for other machines, against real servers.
#![cfg(any(feature = "postgres", feature = "object-store"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "object-store")]
mod doubts;
#[cfg(feature = "object-store")]
mod faulty;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "object-store")]
mod object;
#[cfg(feature = "postgres")]
mod postgres;
#[path = "../servers/mod.rs"]
mod servers;

use std::sync::atomic::{AtomicU32, Ordering};

use engine::config::settings::StateSettings;
use engine::value::Value;
use state::Holder;

/// Returns settings as a spec gives them.
fn settings(backend: &str, values: &[(&str, &str)]) -> StateSettings {
    let mut settings = StateSettings::file();
    settings.backend = backend.into();
    let nowhere = engine::config::span(engine::diagnostics::FileId(0), 0..0);
    for (key, value) in values {
        let value = value.parse().map_or_else(|_| Value::String((*value).into()), Value::Integer);
        settings.values.insert((*key).into(), (value, nowhere));
    }
    settings
}

fn holder(run: &str) -> Holder {
    Holder { run: run.to_owned(), command: "apply".to_owned(), pid: 7, ..Holder::default() }
}

/// Returns a name that no other test has.
fn name(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
