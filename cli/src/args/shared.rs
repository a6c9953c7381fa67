//! The arguments that several commands have, and their parsers.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Args, ValueEnum, ValueHint};

/// The argument of a command that takes only a folder.
#[derive(Debug, Args)]
pub(crate) struct FolderArg {
    /// The folder of the spec
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

/// Values for the variables of a spec, and the choice of the service on this machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpecArgs {
    /// Set a variable: text for a string variable, else a TOML or JSON value
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = Assignment, help_heading = "Variables")]
    pub(crate) variables: Vec<(String, String)>,
    /// Read variables from a TOML or JSON file
    #[arg(long = "var-file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Variables")]
    pub(crate) variable_files: Vec<PathBuf>,
    /// Use the service on this machine, whatever the spec and the environment say
    #[arg(long, help_heading = "Variables")]
    pub(crate) local: bool,
    /// True for a command that looks at a spec without values: a variable without a value counts as unknown.
    #[arg(skip)]
    pub(crate) unset: bool,
    /// The policy folders of commands that take [`PolicyArgs`].
    #[arg(skip)]
    pub(crate) policies: Vec<PathBuf>,
    /// True for a command that asks for objects of all types, whatever types the spec has. Such a command
    /// also works without a spec.
    #[arg(skip)]
    pub(crate) all_types: bool,
}

/// The policies that are added to those of the spec.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PolicyArgs {
    /// Hold the plan against the policies in the *.toml files of this folder, too
    #[arg(long = "policy", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Planning")]
    pub(crate) policies: Vec<PathBuf>,
}

/// The resources that a plan is about, and the values of variables: the options of every command that
/// compares a spec with the live objects.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
    /// Only this resource and what it depends on; in a destroy, what depends on it
    #[arg(long, value_name = "ADDRESS", help_heading = "Planning")]
    pub(crate) target: Vec<String>,
    /// Not this resource, and not what depends on it
    #[arg(long, value_name = "ADDRESS", help_heading = "Planning")]
    pub(crate) exclude: Vec<String>,
}

impl Selection {
    /// Returns true if the selection may leave resources out.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.target.is_empty() || !self.exclude.is_empty()
    }
}

/// The options for the calls of a run and for its lock.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Pace {
    /// The maximum number of calls under way at once
    #[arg(long, value_name = "N", value_parser = parallelism, help_heading = "Planning")]
    pub(crate) parallelism: Option<usize>,
    /// The longest time to wait for another run to end, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", hide_default_value = true, help_heading = "Planning")]
    pub(crate) lock_timeout: Duration,
}

/// The format of a printed plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// For people
    Text,
    /// A plan, for a comment on a pull request
    Markdown,
    /// For programs
    Json,
}

/// The options for printing a plan.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanForm {
    /// The output format
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    format: PlanFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// List the steps, too
    #[arg(long)]
    pub(crate) steps: bool,
}

impl PlanForm {
    /// Returns the format, from `--format` or from `--json`.
    pub(crate) fn format(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }
}

/// The options for printing text or JSON.
#[derive(Clone, Debug, Args)]
pub(crate) struct Form {
    /// The output format
    #[arg(long, value_enum, default_value_t = FormName::Text)]
    format: FormName,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Form {
    /// Returns true if the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.format == FormName::Json
    }
}

/// The format of other output: text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Reads `NAME=VALUE`. A message about a mistake does not repeat the argument: if the name is missing, all of
/// it may be a secret, and messages about wrong usage end up in logs.
#[derive(Clone, Copy)]
struct Assignment;

impl TypedValueParser for Assignment {
    type Value = (String, String);

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let read = value.to_str().ok_or_else(|| "it is not UTF-8 text".to_owned());
        read.and_then(assignment).map_err(|why| {
            let what = format!("a value of '--var <NAME=VALUE>' cannot be read: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, what).with_cmd(command)
        })
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("there is no `=`: write NAME=VALUE, such as --var env=prod")?;
    if name.trim().is_empty() {
        return Err("there is no name before the `=`: write NAME=VALUE".to_owned());
    }
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(super) fn parallelism(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("write a number from 1 to 1024".to_owned()),
    }
}

/// Reads `500ms`, `30s`, `5m`, `1h`, `7d`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let is_number = text.chars().all(|c| c.is_ascii_digit());
    let seconds = is_number.then(|| format!("{text}s"));
    engine::duration::parse(seconds.as_deref().unwrap_or(text))
        .ok_or_else(|| "write a time such as 30s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_a_name_is_not_repeated() {
        use clap::Parser as _;
        let read = |given: &str| {
            crate::args::Cli::try_parse_from(["plumb", "plan", "--json", "--var", given])
        };
        for given in ["hunter2", "=hunter2"] {
            let said = read(given).unwrap_err().to_string();
            assert!(said.contains("--var") && said.contains("write NAME=VALUE"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
        assert!(read("a=hunter2").is_ok());
    }

    #[test]
    fn times() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("7d"), Ok(Duration::from_hours(168)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for wrong in ["", "s", "-1s", "5w", "99999999999999999999", "18446744073709551615h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
