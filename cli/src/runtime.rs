//! The runtime of the process: commands that wait for something run in it.

use std::pin::{Pin, pin};

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

/// One function for the works of all commands: the runtime is compiled once, not for each.
fn run_to_the_end(work: Pin<&mut dyn Future<Output = ()>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::caused("cannot start", &error))?;
    runtime.block_on(work);
    runtime.shutdown_background();
    Ok(())
}
