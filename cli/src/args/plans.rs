//! The arguments of the commands that make a plan or run one.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::shared::{FolderArg, Form, Pace, PlanForm, PolicyArgs, Selection, SpecArgs, duration};

/// The options of the commands that make any kind of plan.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct Planning {
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Replace this resource even if it is as it should be
    #[arg(long, value_name = "ADDRESS", help_heading = "Planning")]
    pub(crate) replace: Vec<String>,
    /// Trust the state; look at nothing live
    #[arg(long, help_heading = "Planning")]
    pub(crate) no_refresh: bool,
    /// Only take what changed outside into the state
    #[arg(long, conflicts_with_all = ["no_refresh", "destroy", "replace"], help_heading = "Planning")]
    pub(crate) refresh_only: bool,
    /// Plan to take everything away
    #[arg(long, conflicts_with = "replace", help_heading = "Planning")]
    pub(crate) destroy: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) pace: Pace,
}

impl Planning {
    /// Returns the options for resolving the spec.
    pub(crate) fn spec(&self) -> SpecArgs {
        SpecArgs { policies: self.policy.policies.clone(), ..self.selection.spec.clone() }
    }
}

/// `plumb validate`.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Print the diagnostics as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// `plumb console`.
#[derive(Debug, Args)]
pub(crate) struct Console {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// `plumb graph`.
#[derive(Debug, Args)]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// The form to print it in
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(crate) format: GraphFormat,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// The form in which a graph is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For people
    Text,
    /// For Graphviz
    Dot,
    /// For a page of a repository
    Mermaid,
    /// A picture
    Svg,
}

/// `plumb test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The test files; without one, all
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `plumb plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Save the plan to a file, to apply exactly it later; overwrites only plan files
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: PlanForm,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
    /// Write the moves that the plan proposes into moves.plumb.toml, and plan with them
    #[arg(long)]
    pub(crate) write_moves: bool,
    #[command(flatten)]
    pub(crate) planning: Planning,
}

/// `plumb apply`.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The folder of the spec, or a saved plan
    #[arg(value_name = "DIR|PLANFILE", value_hint = ValueHint::AnyPath)]
    pub(crate) path: Option<PathBuf>,
    /// Do not run the checks of the spec afterwards
    #[arg(long)]
    pub(crate) no_checks: bool,
    #[command(flatten)]
    pub(crate) running: Running,
    #[command(flatten)]
    pub(crate) planning: Planning,
}

/// The options for confirming and showing a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Running {
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print events, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// List the steps, too
    #[arg(long)]
    pub(crate) steps: bool,
}

/// `plumb destroy`. Its plan always deletes everything, or a chosen part of that, so it has no options that
/// would ask for another plan.
#[derive(Debug, Args)]
pub(crate) struct Destroy {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    #[command(flatten)]
    pub(crate) running: Running,
    #[command(flatten)]
    selection: Selection,
    /// Trust the state; look at nothing live
    #[arg(long, help_heading = "Planning")]
    no_refresh: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    pace: Pace,
}

impl Destroy {
    /// Returns the options of the plan that the command makes.
    pub(crate) fn planning(&self) -> Planning {
        Planning {
            selection: self.selection.clone(),
            no_refresh: self.no_refresh,
            destroy: true,
            policy: self.policy.clone(),
            pace: self.pace.clone(),
            ..Planning::default()
        }
    }
}

/// `plumb drift`. It reads the live objects and changes nothing, so it has no options of other plans or of a
/// run.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Write what changed outside into the spec, where plain values make it
    #[arg(long)]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    selection: Selection,
}

impl Drift {
    /// Returns the options of the plan that the command makes.
    pub(crate) fn planning(&self) -> Planning {
        Planning { selection: self.selection.clone(), refresh_only: true, ..Planning::default() }
    }
}

/// `plumb import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The address of the resource in the spec
    pub(crate) address: String,
    /// The id of the object, as the API shows it
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
    /// The longest time to wait for another run to end, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", hide_default_value = true)]
    pub(crate) lock_timeout: Duration,
}

/// `plumb adopt`.
#[derive(Debug, Args)]
pub(crate) struct Adopt {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Only objects of this type; may be given more than once
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Only objects whose name matches, where `*` stands for any text and `?` for one character
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) matching: Option<String>,
    /// The file of the spec that is written, or added to
    #[arg(long, value_name = "FILE", default_value = "adopted.plumb.toml")]
    pub(crate) out: String,
    /// Print the spec, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
    /// The longest time to wait for another run to end, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", hide_default_value = true)]
    pub(crate) lock_timeout: Duration,
}

/// `plumb check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}
