//! The command line: it parses arguments, calls the functions of other crates, renders their results, and
//! returns an exit status.
//!
//! Each command is one file in `commands`. It gets its arguments parsed from [`args`], leaves decisions to
//! other crates, and returns a [`error::Status`]. Only [`output`] prints in this workspace, and only this
//! file ends the process, except after a second request to stop ([`signals`]).

mod args;
mod bounded_request;
mod checks;
mod child_service;
mod commands;
#[cfg(debug_assertions)]
mod crash_injection;
mod data_reader;
mod descriptor_source;
#[cfg(test)]
mod docs;
mod environment;
mod error;
mod folder;
mod jobs;
mod json_answer;
mod locations;
mod log;
mod modules;
mod move_blocks;
mod named_files;
mod output;
mod planning;
mod policy_files;
mod providers;
mod resolved;
mod running;
mod runtime;
mod serverless_settings;
mod signals;
mod spec_files;
mod spec_text;
mod stop_request;
mod store_location;
mod stored_state;
mod system;
#[cfg(test)]
mod terraform_comparison;
mod threads;
mod variables;
mod write_all;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;

use engine::diagnostics::{Diagnostic, Diagnostics, Sources};

use crate::args::{Cli, Command};
use crate::error::Status;
use crate::json_answer::Answer;
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

/// Runs this process as a part of a worker, if the service started it as such; else returns `None`.
fn worker() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    match args.next()?.to_str()? {
        commands::serve::ECHO_WORKER => Some(service::echo_worker_main()),
        commands::serve::WORKER_GUARD => Some(service::worker_guard_main(args.collect())),
        _ => None,
    }
}

fn run(cli: &Cli) -> Status {
    let output = Arc::new(Output::new(cli.color, cli.quiet));
    let result = log::begin(cli.verbose, usual_log(cli)).and_then(|()| commands::run(cli, &output));
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

/// Returns the level at which a command logs without being asked. Only the service logs then: its events.
fn usual_log(cli: &Cli) -> Option<log::LevelFilter> {
    let Command::Serve(serve) = &cli.command else { return None };
    let level = if cli.quiet { log::LevelFilter::ERROR } else { log::LevelFilter::INFO };
    serve.command.is_none().then_some(level)
}

/// Returns the first sentence of a message about wrong usage: the argument, and the mistake.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    text.strip_prefix("error: ").map_or(text.clone(), ToOwned::to_owned)
}

/// Returns what to write instead of an option of another tool, for the first argument that is one.
fn option_of_another_tool(args: impl Iterator<Item = String>) -> Option<String> {
    args.skip(1).take_while(|arg| arg != "--").find_map(|arg| {
        let (name, value) =
            arg.split_once('=').map_or((&*arg, None), |(name, it)| (name, Some(it)));
        let word = name.trim_start_matches('-');
        let is_option = name.len() > word.len();
        let ours = match word {
            _ if !is_option => return None,
            "auto-approve" => return Some("use `--yes` in place of `-auto-approve`".to_owned()),
            "var" | "var-file" | "out" | "target" | "replace" | "refresh-only" | "destroy"
            | "parallelism" | "lock-timeout" | "json" | "exclude" => word,
            "refresh" => return Some("use `--no-refresh` in place of `-refresh=false`".to_owned()),
            "detailed-exitcode" => word,
            _ => return None,
        };
        // An option with two hyphens may be one of Plumb's own that is used in a wrong way.
        let is_ours = name.starts_with("--");
        let shown = value.filter(|_| !word.starts_with("var")).map(|it| format!(" {it}"));
        let form = shown.unwrap_or_default();
        (!is_ours).then(|| format!("options have two hyphens: use `--{ours}{form}`"))
    })
}

/// Returns what to use in place of a command of another tool, if the first word of the arguments is one.
fn command_of_another_tool(args: impl Iterator<Item = String>) -> Option<String> {
    let word = args.skip(1).find(|arg| !arg.starts_with('-'))?;
    let ours = match &*word {
        "taint" => "use `plumb apply --replace ADDRESS`",
        "refresh" => "use `plumb apply --refresh-only`, or `plumb drift`, which only reports",
        "get" => "use `plumb init`, which fetches modules and descriptors",
        "workspace" | "env" => "use a folder for each environment: `plumb -C DIR plan`",
        "force-unlock" => {
            "a lock that was left behind needs no unlocking; `plumb unlock` ends a run that hangs"
        }
        "login" | "logout" => "keys of APIs and of the state come from environment variables",
        "providers" => {
            "use `plumb schema` for resource types, `plumb provider list` for descriptors"
        }
        _ => return None,
    };
    Some(format!("{ours}; docs/from-terraform.md has the other commands"))
}

/// Prints the message of the argument parser. Help and version exit with 0, every mistake exits with 1.
fn usage(error: &clap::Error) -> Status {
    let output = Output::new(args::Color::Auto, false);
    let text = error.render();
    if error.use_stderr() {
        if let Some(answer) = Answer::typed(std::env::args_os()) {
            let why = Diagnostic::error(first_sentence(&text.to_string()));
            output.refuse(answer, &Diagnostics::from_iter([why]), &Sources::default());
        }
        let help = match error.kind() {
            clap::error::ErrorKind::InvalidSubcommand => command_of_another_tool(std::env::args()),
            _ => option_of_another_tool(std::env::args()),
        };
        match help {
            Some(help) => {
                let message = first_sentence(&text.to_string());
                output.error(&error::CommandError::new(message).help(help));
            }
            None => output.usage(&text),
        }
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
    fn options_of_other_tools_are_named() {
        let hint = |text: &str| option_of_another_tool(text.split(' ').map(str::to_owned));
        let use_of = |text: &str| Some(format!("options have two hyphens: use `{text}`"));
        assert_eq!(hint("plumb plan -out=p.json"), use_of("--out p.json"));
        assert_eq!(hint("plumb plan -target=value.a"), use_of("--target value.a"));
        assert_eq!(hint("plumb plan -var a=hunter2"), use_of("--var"));
        assert_eq!(hint("plumb plan -var=a=hunter2"), use_of("--var"));
        let yes = Some("use `--yes` in place of `-auto-approve`".to_owned());
        assert_eq!(hint("plumb apply -auto-approve"), yes);
        assert_eq!(hint("plumb apply --auto-approve"), yes);
        assert_eq!(hint("plumb plan --out p.json --nonsense"), None);
    }

    #[test]
    fn options_of_other_tools_name_their_own() {
        let said = |arguments: &[&str]| {
            let arguments = ["plumb"].iter().chain(arguments).map(|word| (*word).to_owned());
            option_of_another_tool(arguments).unwrap_or_default()
        };
        for (typed, expected) in [
            (&["plan", "-out=plan.json"][..], "options have two hyphens: use `--out plan.json`"),
            (&["plan", "-target=value.a"], "options have two hyphens: use `--target value.a`"),
            (&["plan", "-var", "env=x"], "options have two hyphens: use `--var`"),
            (&["plan", "-var=token=hunter2"], "options have two hyphens: use `--var`"),
            (&["apply", "-auto-approve"], "use `--yes` in place of `-auto-approve`"),
            (&["apply", "--auto-approve"], "use `--yes` in place of `-auto-approve`"),
            (&["plan", "-refresh=false"], "use `--no-refresh` in place of `-refresh=false`"),
            (&["plan", "--out", "plan.json"], ""),
        ] {
            assert_eq!(said(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn commands_of_other_tools_name_their_own() {
        let guide = include_str!("../../docs/from-terraform.md");
        for (typed, ours) in [
            ("plumb taint value.a", "--replace ADDRESS"),
            ("plumb refresh", "plumb apply --refresh-only"),
            ("plumb get", "plumb init"),
            ("plumb -q workspace new dev", "folder for each environment"),
            ("plumb force-unlock 7", "plumb unlock"),
            ("plumb login", "environment variables"),
            ("plumb providers schema", "plumb schema"),
        ] {
            let error = Cli::try_parse_from(typed.split(' ')).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::InvalidSubcommand, "{typed}");
            let said = command_of_another_tool(typed.split(' ').map(str::to_owned));
            assert!(said.as_ref().is_some_and(|said| said.contains(ours)), "{typed}: {said:?}");
            assert!(guide.contains(ours), "{ours}");
        }
        let unknown = "plumb nonsense".split(' ').map(str::to_owned);
        assert_eq!(command_of_another_tool(unknown), None);
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
