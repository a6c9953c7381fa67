//! The memory that all bodies of requests and answers together may take.
//!
//! A small body or answer takes no share. A larger one takes a share, and waits if none is left.
//! The wait is short: shares are held by slow clients, and the time limits on slow clients end
//! those soon.

use std::sync::Arc;
use std::sync::LazyLock;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::problem::{Kind, Problem};

/// The whole budget, in units of [`UNIT`] bytes.
const UNITS: usize = 256 << 10;
const UNIT: usize = 1 << 10;

/// The most bytes of a body that takes no share.
const SMALL: usize = 64 << 10;

/// The bytes by which a share grows, so that small frames do not each ask for more.
const STEP: usize = 64 << 10;

/// The budget. It bounds the memory of this process, so all services in one process have the same
/// one.
static BUDGET: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(UNITS)));

/// The memory that one request holds. It goes back to the budget when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare {
    held: Option<OwnedSemaphorePermit>,
}

impl MemoryShare {
    /// Grows the share until it covers so many bytes. Waits for free memory until the given time.
    pub(crate) async fn grow_to(&mut self, bytes: usize, until: Instant) -> Result<(), Problem> {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * UNIT;
        if bytes <= SMALL || bytes <= held {
            return Ok(());
        }
        let more = (bytes - held).div_ceil(STEP) * STEP / UNIT;
        let units = u32::try_from(more).unwrap_or(u32::MAX);
        let asked = Arc::clone(&BUDGET).acquire_many_owned(units);
        let Ok(Ok(permit)) = timeout_at(until, asked).await else {
            let message = "too many large requests at once; try again";
            return Err(Problem::new(Kind::Unavailable, message));
        };
        match &mut self.held {
            Some(held) => held.merge(permit),
            None => self.held = Some(permit),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_is_large_waits_and_what_is_small_does_not() {
        let soon = || Instant::now() + Duration::from_millis(500);
        let (mut first, mut second, mut small) =
            <(MemoryShare, MemoryShare, MemoryShare)>::default();
        first.grow_to(100_000, soon()).await.unwrap();
        first.grow_to(UNITS * UNIT, soon()).await.unwrap();
        let refused = second.grow_to(SMALL + 1, soon()).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Unavailable);
        small.grow_to(SMALL, soon()).await.unwrap();
        let waiting = tokio::spawn(async move {
            second.grow_to(SMALL + 1, soon()).await.unwrap();
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(first);
        waiting.await.unwrap();
    }
}
