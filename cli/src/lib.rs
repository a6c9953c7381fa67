//! The command line: arguments, to functions of other crates, to rendering, to an exit status.
//!
//! Each command is one file in `commands`; it parses nothing that [`args`] has not, decides
//! nothing that another crate can decide, and returns a [`error::Status`]. [`output`] is the only
//! place of the workspace that prints, and this file ends the process; only a second request to stop
//! ends it elsewhere ([`signals`]).

mod answer;
mod args;
mod checks;
mod child_service;
mod commands;
#[cfg(test)]
mod docs;
#[cfg(debug_assertions)]
mod dying;
mod environment;
mod error;
mod folder;
mod jobs;
mod locations;
mod named_files;
mod output;
mod place;
mod planning;
mod providers;
mod resolved;
mod running;
mod runtime;
mod sending;
mod signals;
mod spec_text;
mod stopping;
mod stored;
mod system;
mod threads;
mod variables;
mod whole;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;

use engine::diagnostics::{Diagnostic, Diagnostics, Sources};

use crate::answer::Answer;
use crate::args::Cli;
use crate::error::Status;
use crate::output::Output;

/// Runs the command line of this process and returns its exit status.
pub fn main() -> ExitCode {
    if let Some(status) = worker() {
        return status;
    }
    let status = match Cli::try_parse() {
        Ok(cli) => run(&cli),
        Err(error) => usage(&error),
    };
    ExitCode::from(status.code())
}

/// The lives of a worker's processes, which the service starts with this program.
fn worker() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        commands::serve::ECHO_WORKER => Some(service::echo_worker_main()),
        commands::serve::WORKER_GUARD => Some(service::worker_guard_main(args.collect())),
        _ => None,
    }
}

fn run(cli: &Cli) -> Status {
    let output = Arc::new(Output::new(cli.color, cli.quiet, cli.verbose));
    let result = commands::run(cli, &output);
    let status = result.unwrap_or_else(|error| {
        if let Some(answer) = Answer::of(&cli.command) {
            output.refuse(answer, &planning::as_diagnostics(&error), &Sources::default());
        }
        output.error(&error);
        error.status
    });
    output.finish();
    if output.lost() { status.or(Status::Failed) } else { status }
}

/// What a message about wrong usage says first: which argument, and what is wrong with it.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    text.strip_prefix("error: ").map_or(text.clone(), ToOwned::to_owned)
}

/// Help and version are answers; everything else is a mistake, and a mistake is exit status 1.
fn usage(error: &clap::Error) -> Status {
    let output = Output::new(args::Color::Auto, false, 0);
    let text = error.render();
    if error.use_stderr() {
        if let Some(answer) = Answer::typed(std::env::args_os()) {
            let why = Diagnostic::error(first_sentence(&text.to_string()));
            output.refuse(answer, &Diagnostics::from_iter([why]), &Sources::default());
        }
        output.usage(&text);
        return Status::Failed;
    }
    output.help(&text);
    output.finish();
    if output.lost() { Status::Failed } else { Status::Done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_takes_no_request_is_not_started() {
        assert!(Cli::try_parse_from(["plumb", "serve", "--rate", "0"]).is_err());
        assert!(Cli::try_parse_from(["plumb", "serve", "--rate", "1"]).is_ok());
    }

    #[test]
    fn wrong_usage_names_the_argument() {
        let said = |arguments: &[&str]| {
            let error = Cli::try_parse_from(arguments).err().map(|error| error.render());
            first_sentence(&error.map(|text| text.to_string()).unwrap_or_default())
        };
        assert_eq!(
            said(&["plumb", "plan", "--json", "--nonsense"]),
            "unexpected argument '--nonsense' found"
        );
        assert_eq!(
            said(&["plumb", "state", "mv", "value.a"]),
            "the following required arguments were not provided: <TO>"
        );
    }
}
