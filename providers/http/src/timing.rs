//! Times and bounds of calls.

use std::time::Duration;

/// Times and bounds of calls. The defaults suit APIs on the internet; tests shorten them.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The longest time to connect.
    pub connect: Duration,
    /// The longest time of a call, from its first byte to the last byte of the answer.
    pub total: Duration,
    /// The largest answer, in bytes.
    pub answer_bytes_max: usize,
    /// The number of attempts of a read.
    pub read_tries: u32,
    /// The number of attempts of a call that does not reach the server.
    pub connect_tries: u32,
    /// The longest time during which a read is repeated.
    pub read_patience: Duration,
    /// The longest time during which a call is repeated while the API asks to slow down.
    pub throttle_patience: Duration,
    /// The longest pause that an API may ask for.
    pub retry_after_max: Duration,
    /// The first pause between attempts; each further pause is twice as long.
    pub pause_first: Duration,
    /// The longest pause between attempts.
    pub pause_max: Duration,
    /// The first pause between reads in a wait.
    pub poll_first: Duration,
    /// The longest pause between reads in a wait.
    pub poll_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            // The permit for sending was given before. A connection that takes longer is tried again, with a
            // new permit.
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
