//! The JSON answer of a command that fails.
//!
//! A program that asked for JSON reads stdout, so these commands print an object on every exit. If a command
//! fails, the object has the same format, with the reason as diagnostics. Parts that were not computed are
//! null, never zero or an empty list, as those would look like a good result.

use std::ffi::OsString;

use clap::CommandFactory as _;
use engine::diagnostics::{Diagnostics, Sources};
use render::diagnostics::DiagnosticView;
use render::drift::DriftReport;
use render::json;
use render::view::PlanView;
use serde_json::json;

use crate::args::{Cli, Command, PlanFormat};

/// A format that a command answers in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A plan.
    Plan,
    /// The events of a run, which begin with its plan.
    Events,
    /// The changes outside Plumb.
    Drift,
    /// The results of the checks.
    Checks,
    /// The validity of a spec.
    Validity,
}

/// The options of every command that are followed by a value.
const WITH_WORD: [&str; 2] = ["-C", "--color"];

impl Answer {
    /// Returns the format that a command was asked for; `None` if people read the output, or if no format is
    /// defined for a failure.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        match command {
            Command::Plan(args) if args.form.format() == PlanFormat::Json => Some(Self::Plan),
            Command::Apply(args) if args.running.json => Some(Self::Events),
            Command::Destroy(args) if args.running.json => Some(Self::Events),
            Command::Drift(args) if args.form.is_json() => Some(Self::Drift),
            Command::Check(args) if args.json => Some(Self::Checks),
            Command::Validate(args) if args.json => Some(Self::Validity),
            _ => None,
        }
    }

    /// Returns the format that arguments ask for which could not be parsed.
    pub(crate) fn typed(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let args: Vec<_> = args.skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        let json = args.iter().any(|arg| arg == "--json" || arg == "--format=json")
            || args.windows(2).any(|pair| pair == ["--format", "json"]);
        match command_word(&args)?.as_str() {
            _ if !json => None,
            "plan" => Some(Self::Plan),
            "apply" | "destroy" => Some(Self::Events),
            "drift" => Some(Self::Drift),
            "check" => Some(Self::Checks),
            "validate" => Some(Self::Validity),
            _ => None,
        }
    }

    /// Returns the answer of a command that fails, with the reason.
    pub(crate) fn refused(self, diagnostics: &Diagnostics, sources: &Sources) -> String {
        let all = || DiagnosticView::all(diagnostics, sources);
        match self {
            Self::Plan => json::pretty(&PlanView::refused(sources, diagnostics)),
            Self::Events => planned(&PlanView::refused(sources, diagnostics)),
            Self::Drift => DriftReport::refused(all()).json(),
            Self::Checks => json::pretty(&json!({
                "format": "plumb-checks/1",
                "passed": null,
                "failed": null,
                "checks": null,
                "diagnostics": all(),
            })),
            Self::Validity => json::pretty(&json!({"valid": false, "diagnostics": all()})),
        }
    }
}

/// Returns the event with a plan, or with the reason why there is none.
pub(crate) fn planned(view: &PlanView<'_>) -> String {
    json::line(&json!({"event": "planned", "plan": view}))
}

/// Returns the first argument that is a command.
fn command_word(args: &[String]) -> Option<&String> {
    let cli = Cli::command();
    let is_command = |arg: &str| cli.get_subcommands().any(|command| command.get_name() == arg);
    let is_word = |at: usize| at == 0 || !WITH_WORD.contains(&args[at - 1].as_str());
    args.iter().enumerate().find(|(at, arg)| is_word(*at) && is_command(arg)).map(|(_, arg)| arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_recognised_in_wrong_arguments() {
        let typed = |text: &str| Answer::typed(text.split(' ').map(OsString::from));
        assert_eq!(typed("plumb plan --json --nonsense"), Some(Answer::Plan));
        assert_eq!(typed("plumb -C check plan --format json --nonsense"), Some(Answer::Plan));
        assert_eq!(typed("plumb --nonsense apply plan --json"), Some(Answer::Events));
        assert_eq!(typed("plumb destroy --json --refresh-only"), Some(Answer::Events));
        assert_eq!(typed("plumb drift --format=json --nonsense"), Some(Answer::Drift));
        assert_eq!(typed("plumb check --json a b"), Some(Answer::Checks));
        assert_eq!(typed("plumb validate --json a b"), Some(Answer::Validity));
        assert_eq!(typed("plumb plan --nonsense"), None);
        assert_eq!(typed("plumb show plan --json --nonsense"), None);
        assert_eq!(typed("plumb --json"), None);
    }

    #[test]
    fn what_was_not_looked_at_is_null() {
        let why = Diagnostics::from_iter([engine::diagnostics::Diagnostic::error("no")]);
        for (answer, absent) in
            [(Answer::Drift, &["drift"][..]), (Answer::Checks, &["passed", "failed", "checks"])]
        {
            let text = answer.refused(&why, &Sources::default());
            let said: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(said["diagnostics"][0]["summary"], "no", "{text}");
            assert!(absent.iter().all(|key| said[*key].is_null()), "{text}");
        }
    }
}
