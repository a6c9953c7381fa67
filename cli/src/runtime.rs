//! The async runtime of the process. Commands that wait for something run in it.

use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::thread;

use crate::error::CommandError;

/// Runs a command that waits for something. Work that it left in the background, such as a question without
/// an answer, does not keep the process from ending.
pub(crate) fn wait_for<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let mut result = Err(CommandError::new("the runtime ended early"));
    run_to_the_end(pin!(async { result = work.await }))?;
    result
}

/// Checks that the system gives the process as many threads as the runtime needs, because the runtime panics
/// without them. The threads exist at the same time, as those of the runtime do.
fn check_threads() -> std::io::Result<()> {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let _closed = gate.lock();
        for _ in 0..count {
            thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()))?;
        }
        Ok(())
    })
}

/// Runs the work of any command. This function is not generic, so the runtime is compiled once and not for
/// each command.
fn run_to_the_end(work: Pin<&mut dyn Future<Output = ()>>) -> Result<(), CommandError> {
    check_threads().map_err(|error| CommandError::caused("cannot start a thread", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::caused("cannot start", &error))?;
    runtime.block_on(work);
    runtime.shutdown_background();
    Ok(())
}
