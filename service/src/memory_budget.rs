//! The memory that bodies and answers may take altogether, whatever clients do.
//!
//! A small body or answer takes none of it. A larger one takes its share and waits where none is left: those
//! who hold it are slow, and the bounds on slow clients end them soon.

use std::sync::Arc;
use std::sync::LazyLock;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::problem::{Kind, Problem};

/// All of it, in units of [`UNIT`].
const UNITS: usize = 256 << 10;
const UNIT: usize = 1 << 10;

/// The most bytes that take no share.
const SMALL: usize = 64 << 10;

/// A share grows in steps of so many bytes, so that small frames do not each ask for more.
const STEP: usize = 64 << 10;

/// It is the memory of this process, and so it is one for all services in it.
static BUDGET: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(UNITS)));

/// The memory that one request holds; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare {
    held: Option<OwnedSemaphorePermit>,
}

impl MemoryShare {
    /// Takes what so many bytes need, and waits for it until the given time.
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
