//! `plumb version`.

use crate::error::{CommandError, Status};
use crate::output::Output;

#[expect(clippy::unnecessary_wraps, reason = "all commands look alike")]
pub(crate) fn run(output: &Output) -> Result<Status, CommandError> {
    output.data(concat!("plumb ", env!("CARGO_PKG_VERSION"), "\n"));
    Ok(Status::Done)
}
