//! The operating system for runs: the time, random bytes, and the identity of this process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use state::Holder;

/// The operating system for runs.
#[derive(Debug)]
pub(crate) struct System;

impl System {
    /// Returns the time, in milliseconds since 1970.
    pub(crate) fn now_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns random bytes.
    pub(crate) fn random() -> [u8; 32] {
        let mut bytes = [0; 32];
        // Without randomness, nonces and keys would repeat, and nothing would be safe.
        getrandom::fill(&mut bytes).expect("the operating system has random bytes");
        bytes
    }

    /// Returns the identity that this process gives when it takes a lock for `command`.
    pub(crate) fn holder(command: &str) -> Holder {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Holder {
            run: apply::run_name(&Self),
            command: command.to_owned(),
            user: variable("USER"),
            host: host.trim().to_owned(),
            pid: std::process::id(),
            since_ms: Self::now_ms(),
        }
    }
}

impl apply::Host for System {
    fn now_ms(&self) -> u64 {
        Self::now_ms()
    }

    fn clock(&self) -> apply::Clock {
        apply::Clock::new(Self::now_ms)
    }

    fn random(&self) -> [u8; 32] {
        Self::random()
    }
}
