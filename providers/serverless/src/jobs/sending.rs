//! The state of a request that changes something. A caller that gives the request up before its answer must
//! know if the service may have received it.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use provider_port::{Error, Kind, SendPermit};

/// The state of a request without an answer.
#[derive(Debug, Default)]
pub struct Sending {
    out: AtomicBool,
    closed: AtomicBool,
}

impl Sending {
    /// Returns true if the service may have the request: not before it is sent, and not during the pause
    /// after a refusal.
    pub fn is_out(&self) -> bool {
        self.out.load(Ordering::SeqCst)
    }

    /// Prevents any further sending of the request.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Records that the service refused the request, which is going to be sent again.
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
