//! The runtime of the process: commands that wait for something run in it.

use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::thread;

use crate::error::CommandError;

/// Runs what has to wait for something. Nothing that it left running in the background, such as a
/// question that nobody answered, keeps the process.
pub(crate) fn wait_for<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let mut result = Err(CommandError::new("the runtime ended early"));
    run_to_the_end(pin!(async { result = work.await }))?;
    result
}

/// Checks that the system gives the threads of the runtime, which panics without them. They run at the same
/// time, as the runtime's own do.
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

/// One function for the works of all commands: the runtime is compiled once, not for each.
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
