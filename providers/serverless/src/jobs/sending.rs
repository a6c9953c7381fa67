//! The state of a request that changes something: a caller that gives it up before its answer must know if it may
//! be with the service.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use provider_port::{Error, Kind, SendPermit};

/// The knowledge of a request without an answer.
#[derive(Debug, Default)]
pub struct Sending {
    out: AtomicBool,
    closed: AtomicBool,
}

impl Sending {
    /// Returns true if the service may have the request. Not so before it is sent, nor in the pause after
    /// the service refused it for a while.
    pub fn is_out(&self) -> bool {
        self.out.load(Ordering::SeqCst)
    }

    /// From here on it is not sent (again).
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// The service refused what was sent, and it is to be sent again.
    pub(super) fn came_back(&self) {
        self.out.store(false, Ordering::SeqCst);
    }
}

#[async_trait]
impl SendPermit for Sending {
    async fn ask(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::new(Kind::NotSent, "it was given up before it was sent"));
        }
        self.out.store(true, Ordering::SeqCst);
        Ok(())
    }
}
