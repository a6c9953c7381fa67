//! `plumb completions`: a script that completes commands and options in a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{CommandError, Status};
use crate::output::Output;

#[expect(clippy::unnecessary_wraps, reason = "all commands look alike")]
pub(crate) fn run(shell: Shell, output: &Output) -> Result<Status, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plumb", &mut script);
    output.data(&String::from_utf8_lossy(&script));
    Ok(Status::Done)
}
