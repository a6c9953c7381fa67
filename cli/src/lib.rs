//! The command line.

use std::process::ExitCode;

/// Runs the command line of this process and returns its exit status.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
