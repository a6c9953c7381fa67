//! Work that blocks the thread: file reads and writes, and the encoding of large states.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs work that blocks on the caller's thread.
///
/// Not `spawn_blocking`: the work borrows, and an append that is cut off half-way because its future
/// was dropped must not exist. On a runtime of many threads the other tasks of this thread move
/// elsewhere meanwhile. On a runtime of one thread everything waits, which is the price of such a
/// runtime.
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
