//! What can be typed: the commands, their options, and their help.

pub(crate) mod job;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "plumb",
    version,
    about = "Keeps infrastructure true to its spec",
    long_about = "Keeps infrastructure true to its spec: a declarative spec is compared with the \
                  state and with what is live, turned into a plan that people review, and applied \
                  exactly as reviewed.",
    after_help = "Begin with `plumb init`, then `plumb plan`, then `plumb apply`.",
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// The folder to work in, as if started there
    #[arg(
        short = 'C',
        global = true,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true,
        help_heading = "Everywhere"
    )]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) base: PathBuf,
    /// When to colour; the variable `NO_COLOR` is respected
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "auto|always|never",
        default_value_t = Color::Auto,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Everywhere"
    )]
    pub(crate) color: Color,
    /// Say less: only errors, and data
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Everywhere")]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a small working spec
    #[command(after_help = "Examples:\n  plumb init\n  plumb init environments/dev")]
    Init(FolderArg),
    /// Check the spec without calling anything
    #[command(
        after_help = "Examples:\n  plumb validate\n  plumb validate --var env=prod environments/prod"
    )]
    Validate(Validate),
    /// Show what would be done, and why
    #[command(
        after_help = "Examples:\n  plumb plan\n  plumb plan --out plan.json --detailed-exitcode\n  plumb plan --format markdown > comment.md\n  plumb plan --target 'endpoint.chat[eu]'"
    )]
    Plan(Plan),
    /// Do what a plan shows
    #[command(
        after_help = "Examples:\n  plumb apply\n  plumb apply --yes --var env=prod\n  plumb apply plan.json\n\nWith a plan file, exactly that plan is applied, or nothing, on the current folder (or the one\nof -C), which must be the one that it was made of."
    )]
    Apply(Apply),
    /// Take everything away again
    #[command(after_help = "Examples:\n  plumb destroy\n  plumb destroy --yes environments/dev")]
    Destroy(Destroy),
    /// Take an object that exists over into the state
    #[command(
        after_help = "Examples:\n  plumb import network_volume.models agv6w2qcg7\n  plumb import 'endpoint.chat[eu]' jpnw0v75y3qoql\n\nThe spec must have the resource. Nothing is called that changes anything; what the next plan\nwould change is shown. For review first, write an [[import]] block into the spec instead."
    )]
    Import(Import),
    /// Show what changed outside
    #[command(
        after_help = "Examples:\n  plumb drift\n  plumb drift --json\n\nExit status 2 when something changed."
    )]
    Drift(Drift),
    /// Show the state, or a saved plan
    #[command(after_help = "Examples:\n  plumb show\n  plumb show plan.json\n  plumb show --json")]
    Show(Show),
    /// Print the outputs of the last apply
    #[command(
        after_help = "Examples:\n  plumb output\n  plumb output chat_url --raw\n  plumb output --json"
    )]
    Output(OutputArgs),
    /// Look at the state, and edit it
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb state list\n  plumb state show 'value.a[eu]'\n  plumb state mv value.a value.b\n  plumb state rm value.old"
    )]
    State(State),
    /// Decide what is in doubt
    #[command(
        after_help = "Examples:\n  plumb resolve\n  plumb resolve endpoint.chat --adopt abc123\n  plumb resolve endpoint.chat --absent\n\nWithout an address, shows what is in doubt."
    )]
    Resolve(Resolve),
    /// Take the lock from a run that stands still, or say when it ends
    #[command(
        after_help = "Examples:\n  plumb unlock 5f0c2a9be1d34c77\n\nNo lock has to be taken away: each ends by itself with the run that holds it, at once where the state is files\nor a database, and after some silence where it is objects. The next apply takes it then.\n\nIn a database a process that stands still keeps the lock. There this command drives the run out: what it still\nwrites is refused, it calls nothing more, and the next apply looks up what it had under way. Of a lock of\nanother kind it says who holds it, and when it ends."
    )]
    Unlock(Unlock),
    /// Run the checks of the spec against what is live
    #[command(
        after_help = "Examples:\n  plumb check\n  plumb check --json environments/prod\n\nExit status 1 when a check fails. A check's job runs for real, for 90 seconds at most unless the\ncheck says otherwise."
    )]
    Check(Check),
    /// Submit jobs to endpoints, and look after them
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb job run endpoint.chat '{\"prompt\": \"hi\"}'\n  plumb job health endpoint.chat\n  plumb job status endpoint.chat 724907fe-0b3d-4f3c-u1\n\nENDPOINT is an address of the state, such as 'endpoint.chat[eu]', or an endpoint's id."
    )]
    Job(job::Job),
    /// Run the serverless compute service on this machine
    #[command(
        after_help = "Examples:\n  plumb serve\n  plumb serve --listen 127.0.0.1:8080 --data /tmp/service\n\nThe first lines on stdout name the addresses and the key, as environment variables."
    )]
    Serve(Serve),
    /// Describe the resource types
    #[command(after_help = "Examples:\n  plumb schema\n  plumb schema --type value")]
    Schema(Schema),
    /// Print a completion script
    #[command(
        after_help = "Examples:\n  plumb completions bash > ~/.local/share/bash-completion/completions/plumb\n  plumb completions fish > ~/.config/fish/completions/plumb.fish"
    )]
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the version
    #[command(after_help = "Examples:\n  plumb version")]
    Version,
}

/// Only a folder.
#[derive(Debug, Args)]
pub(crate) struct FolderArg {
    /// The folder of the spec
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

/// Values for variables.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct VariableArgs {
    /// Set a variable: text for a string variable, else a TOML value
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = assignment, help_heading = "Variables")]
    pub(crate) variables: Vec<(String, String)>,
    /// Read variables from a TOML file
    #[arg(long = "var-file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Variables")]
    pub(crate) variable_files: Vec<PathBuf>,
}

/// Which resources a plan is about, and with what values: what every command takes that compares
/// a spec with what is live.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selection {
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
    /// Only this resource and what it depends on; in a destroy, what depends on it
    #[arg(long, value_name = "ADDRESS", help_heading = "Planning")]
    pub(crate) target: Vec<String>,
    /// Not this resource, and not what depends on it
    #[arg(long, value_name = "ADDRESS", help_heading = "Planning")]
    pub(crate) exclude: Vec<String>,
}

impl Selection {
    /// Whether it may leave something out.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.target.is_empty() || !self.exclude.is_empty()
    }
}

/// How a run goes about it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Pace {
    /// How many calls may be under way at once
    #[arg(long, value_name = "N", value_parser = parallelism, help_heading = "Planning")]
    pub(crate) parallelism: Option<usize>,
    /// How long to wait for another run to end, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", hide_default_value = true, help_heading = "Planning")]
    pub(crate) lock_timeout: Duration,
}

/// What every command takes that makes whatever plan is asked for.
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
    pub(crate) pace: Pace,
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
    pub(crate) variables: VariableArgs,
}

/// How a plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// For people
    Text,
    /// For a comment on a pull request
    Markdown,
    /// For programs
    Json,
}

/// `plumb plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Save the plan, to apply exactly it later
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) format: PlanFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// List the steps, too
    #[arg(long)]
    pub(crate) steps: bool,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
    #[command(flatten)]
    pub(crate) planning: Planning,
}

impl Plan {
    /// How to print it, whichever way it was said.
    pub(crate) fn format(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }
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

/// `plumb check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
}

/// How a run is confirmed and shown.
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

/// `plumb destroy`. Its plan is to take everything away: there is nothing to choose, but what of
/// it, so it does not know the options that would ask for another plan.
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
    pace: Pace,
}

impl Destroy {
    /// The plan that it asks for.
    pub(crate) fn planning(&self) -> Planning {
        Planning {
            selection: self.selection.clone(),
            no_refresh: self.no_refresh,
            destroy: true,
            pace: self.pace.clone(),
            ..Planning::default()
        }
    }
}

/// `plumb import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Which resource of the spec it becomes
    pub(crate) address: String,
    /// Its id, as the API shows it
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
    /// How long to wait for another run to end, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s", hide_default_value = true)]
    pub(crate) lock_timeout: Duration,
}

/// `plumb drift`. It looks at what is live and changes nothing, so it has no options of another
/// plan, nor of a run.
#[derive(Debug, Args)]
pub(crate) struct Drift {
    #[command(flatten)]
    pub(crate) folder: FolderArg,
    #[command(flatten)]
    pub(crate) form: Form,
    #[command(flatten)]
    selection: Selection,
}

impl Drift {
    /// The plan that it asks for.
    pub(crate) fn planning(&self) -> Planning {
        Planning { selection: self.selection.clone(), refresh_only: true, ..Planning::default() }
    }
}

/// Text or JSON.
#[derive(Clone, Debug, Args)]
pub(crate) struct Form {
    /// How to print it
    #[arg(long, value_enum, default_value_t = FormName::Text)]
    format: FormName,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Form {
    /// Whether to print JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.format == FormName::Json
    }
}

/// Text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `plumb show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A saved plan; without one, the state is shown
    #[arg(value_name = "PLANFILE", value_hint = ValueHint::FilePath)]
    pub(crate) plan: Option<PathBuf>,
    /// How to print it (markdown: plans only)
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub(crate) format: PlanFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// List the steps of a plan, too
    #[arg(long)]
    pub(crate) steps: bool,
}

impl Show {
    /// How to print it, whichever way it was said.
    pub(crate) fn format(&self) -> PlanFormat {
        if self.json { PlanFormat::Json } else { self.format }
    }
}

/// `plumb output`.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// One output; without a name, all
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// Print the text itself: nothing quoted, no line end
    #[arg(long, requires = "name")]
    pub(crate) raw: bool,
}

/// `plumb state`.
#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// List the addresses, one a line
    #[command(after_help = "Examples:\n  plumb state list")]
    List,
    /// Show what an address stands for
    #[command(
        after_help = "Examples:\n  plumb state show value.a\n  plumb state show 'value.a[eu]' --json"
    )]
    Show {
        /// Which resource
        address: String,
        #[command(flatten)]
        form: Form,
    },
    /// Make the state where `[state]` says, for a first run
    #[command(
        after_help = "Examples:\n  plumb state init\n\nFiles beside the spec need none: their state is made by the first apply."
    )]
    Init,
    /// Move the state to where `[state]` says now
    #[command(
        after_help = "Examples:\n  plumb state migrate --from file\n  plumb state migrate --from old.toml\n\nChange `[state]` of the spec first; old.toml holds the block that was there before. The old place is\nmarked as left, and nothing of it is removed."
    )]
    Migrate {
        /// Where it was: `file`, or a TOML file with the `[state]` block of before
        #[arg(long, value_name = "PLACE", value_hint = ValueHint::FilePath)]
        from: String,
    },
    /// Give an object another address
    #[command(
        after_help = "Examples:\n  plumb state mv value.a value.b\n  plumb state mv value.a 'value.a[eu]'"
    )]
    Mv {
        /// The address that it has
        from: String,
        /// The address that it gets
        to: String,
    },
    /// Forget objects; they stay where they are
    #[command(after_help = "Examples:\n  plumb state rm value.a 'value.b[eu]'")]
    Rm {
        /// Which resources
        #[arg(required = true)]
        addresses: Vec<String>,
    },
    /// Print the state for a backup
    #[command(
        after_help = "Examples:\n  plumb state pull > state.json\n  plumb state pull --serial 41 > state.json\n\nThe state holds no secret in clear, but the key of its fingerprints: keep it to yourself."
    )]
    Pull {
        /// An older one that is kept: `plumb state history` lists them
        #[arg(long, value_name = "SERIAL")]
        serial: Option<u64>,
    },
    /// Put a state in place of the one that is there
    #[command(
        after_help = "Examples:\n  plumb state push state.json\n  plumb state push - < state.json"
    )]
    Push {
        /// The file that `plumb state pull` printed, or - for stdin
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Even if it is older, of another lineage, or what is there cannot be read
        #[arg(long)]
        force: bool,
    },
    /// Show which runs the journal tells of, and which older states are kept
    #[command(
        after_help = "Examples:\n  plumb state history\n\nThe journal begins anew with each snapshot; the last 20 snapshots are kept."
    )]
    History(Form),
    /// Show the records since the last snapshot
    #[command(after_help = "Examples:\n  plumb state journal\n  plumb state journal --json")]
    Journal(Form),
}

/// `plumb resolve`.
#[derive(Debug, Args)]
pub(crate) struct Resolve {
    /// Which resource; without one, what is in doubt is shown
    pub(crate) address: Option<String>,
    /// The object with this id is the one
    #[arg(long, value_name = "ID", requires = "address", conflicts_with = "absent")]
    pub(crate) adopt: Option<String>,
    /// There is no object
    #[arg(long, requires = "address")]
    pub(crate) absent: bool,
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
}

/// `plumb unlock`.
#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// The run that holds the lock, as the message about it says
    #[arg(value_name = "ID")]
    pub(crate) run: String,
}

/// `plumb serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen [default: 127.0.0.1, and the port of the last time or a free one]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// The folder of its data [default: .plumb/service]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// The key of the account; else one is made once and kept in the data folder
    #[arg(long, value_name = "KEY", env = "PLUMB_SERVICE_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// The form of the answers of /stream
    #[arg(long, value_name = "FORM", default_value = "array", value_parser = ["array", "object"])]
    pub(crate) stream_format: String,
    /// Departures of the real service from its documents to show, separated by commas: see docs/service.md
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) quirks: String,
    /// A mishap to make, such as op=saveEndpoint,nth=2,kind=lost: see docs/service.md
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,
    /// Requests a second that the management APIs take
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<u32>,
    /// The limit on the sum of the endpoints' `workers_max`
    #[arg(long, value_name = "N")]
    pub(crate) worker_quota: Option<u32>,
    /// Keep no access log
    #[arg(long)]
    pub(crate) no_access_log: bool,
    /// End when nobody needs it any more
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
}

/// `plumb schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// One resource type; without one, all are listed
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) ty: Option<String>,
    #[command(flatten)]
    pub(crate) form: Form,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("there is no `=`: write NAME=VALUE, such as --var env=prod")?;
    if name.trim().is_empty() {
        return Err("there is no name before the `=`: write NAME=VALUE".to_owned());
    }
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn parallelism(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("write a number from 1 to 1024".to_owned()),
    }
}

/// Reads `500ms`, `30s`, `5m`, `1h`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let fail = || "write a time such as 30s, 5m or 1h".to_owned();
    let number: u64 = text[..digits].parse().map_err(|_| fail())?;
    let ms = match &text[digits..] {
        "ms" => 1,
        "s" | "" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(fail()),
    };
    number.checked_mul(ms).map(Duration::from_millis).ok_or_else(fail)
}

/// Says whether arguments that could not be read ask for a plan as JSON: then a JSON object must
/// be printed even so.
pub(crate) fn wants_plan_json(args: impl Iterator<Item = OsString>) -> bool {
    let args: Vec<OsString> = args.skip(1).collect();
    let json = args.iter().any(|arg| arg == "--json" || arg == "--format=json")
        || args.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    json && args.iter().any(|arg| arg == "plan")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound_and_every_command_has_examples() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut open: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        while let Some(command) = open.pop() {
            if command.get_name() == "help" || command.is_hide_set() {
                continue;
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n  plumb "), "{}", command.get_name());
            open.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn times() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        for wrong in ["", "s", "-1s", "5d", "99999999999999999999", "18446744073709551615h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plan_as_json_is_recognised_in_wrong_arguments() {
        let wants = |text: &str| wants_plan_json(text.split(' ').map(OsString::from));
        assert!(wants("plumb plan --json --nonsense"));
        assert!(wants("plumb -C x plan --format json --nonsense"));
        assert!(!wants("plumb plan --nonsense"));
        assert!(!wants("plumb drift --json --nonsense"));
    }
}
