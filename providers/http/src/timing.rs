//! Times and bounds of calls.

use std::time::Duration;

/// Times and bounds of calls. The defaults suit APIs on the internet; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long a call may take, from its first byte to the answer's last.
    pub total: Duration,
    /// How many bytes an answer may have.
    pub answer_bytes_max: usize,
    /// How often a read is tried.
    pub read_tries: u32,
    /// How often a call is tried that does not reach the server.
    pub connect_tries: u32,
    /// How long a read is tried again.
    pub read_patience: Duration,
    /// How long a call is tried again that the API asks to slow down.
    pub throttle_patience: Duration,
    /// The longest pause that an API may ask for.
    pub retry_after_max: Duration,
    /// The first pause between tries; each next is twice as long.
    pub pause_first: Duration,
    /// The longest pause between tries.
    pub pause_max: Duration,
    /// The first pause between looks at a condition.
    pub poll_first: Duration,
    /// The longest pause between looks at a condition.
    pub poll_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            // The permit to send is asked for before; what takes longer is tried again, with a new permit.
            connect: provider_port::SENT_AFTER_PERMIT,
            total: Duration::from_secs(90),
            answer_bytes_max: 64 * 1024 * 1024,
            read_tries: 8,
            connect_tries: 4,
            read_patience: Duration::from_mins(1),
            throttle_patience: Duration::from_mins(5),
            retry_after_max: Duration::from_mins(2),
            pause_first: Duration::from_millis(250),
            pause_max: Duration::from_secs(10),
            poll_first: Duration::from_millis(250),
            poll_max: Duration::from_secs(2),
        }
    }
}
