//! Work that blocks the thread: file reads and writes, and the encoding of large states.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that blocks on the caller's thread.
///
/// Not with `spawn_blocking`, because the work borrows, and because an append must not be cut off half-way
/// when its future is dropped. On a runtime with many threads, the other tasks of this thread move to other
/// threads meanwhile. On a runtime with one thread, everything waits.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
