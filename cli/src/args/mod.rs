//! The command line: the commands, their options, and their help. Each family of commands is a file.

pub(crate) mod job;
mod plans;
mod provider;
mod serve;
mod shared;
mod state;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

pub(crate) use plans::{
    Adopt, Apply, Check, Console, Destroy, Drift, Graph, GraphFormat, Import, Plan, Planning,
    Running, Test, Validate,
};
pub(crate) use provider::{FromOpenapi, Provider, ProviderShow, ProviderTest, Trial};
pub(crate) use serve::{KeyCommand, KeyCreate, Serve, ServeCommand, ServiceFolder};
pub(crate) use shared::{FolderArg, Form, PlanFormat, SpecArgs, duration};
pub(crate) use state::{OutputArgs, Resolve, Show, State, Unlock};

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
    /// The use of colour; the variable `NO_COLOR` is respected
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
    /// Log each request to an API: method, path, status and time; -vv also sizes
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Everywhere")]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The use of colour.
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
    /// Write a small working spec, or fetch the modules of the one that is there
    #[command(
        after_help = "Examples:\n  plumb init\n  plumb init environments/dev\n\nModules and descriptors from git repositories are fetched into .plumb/modules, and their digests written to plumb.lock. No other command fetches anything."
    )]
    Init(FolderArg),
    /// Check the spec without calling anything
    #[command(
        after_help = "Examples:\n  plumb validate\n  plumb validate --var env=prod environments/prod"
    )]
    Validate(Validate),
    /// Bring the files of specs into the one layout
    #[command(
        after_help = "Examples:\n  plumb fmt\n  plumb fmt --check environments modules\n  plumb fmt prod.vars.toml\n  plumb fmt - < plumb.toml\n\nIn a folder and below it, these files are brought into the layout: plumb.toml, *.plumb.toml, *.vars.toml, *.test.toml and *.provider.toml. Other files can be named. Each file that changes is named on stdout. Only blanks, line ends and blank lines change: texts, comments and their order stay."
    )]
    Fmt(Fmt),
    /// Show what would change, and why
    #[command(
        after_help = "Examples:\n  plumb plan\n  plumb plan --out plan.json --detailed-exitcode\n  plumb plan --format markdown > comment.md\n  plumb plan --target 'endpoint.chat[eu]'"
    )]
    Plan(Plan),
    /// Make the changes that a plan shows
    #[command(
        after_help = "Examples:\n  plumb apply\n  plumb apply --yes --var env=prod\n  plumb apply plan.json\n\nWith a plan file, exactly that plan is applied, or nothing. Run it in the folder that the plan was made for, or name that folder with -C."
    )]
    Apply(Apply),
    /// Delete everything that the state has
    #[command(after_help = "Examples:\n  plumb destroy\n  plumb destroy --yes environments/dev")]
    Destroy(Destroy),
    /// Import an existing object into the state
    #[command(
        after_help = "Examples:\n  plumb import network_volume.models agv6w2qcg7\n  plumb import 'endpoint.chat[eu]' jpnw0v75y3qoql\n\nThe spec must have the resource. The import changes nothing in the API, and shows what the next plan would change. To review it first, write an [[import]] block into the spec instead."
    )]
    Import(Import),
    /// Write the spec of what exists and no state knows, and take it over
    #[command(
        after_help = "Examples:\n  plumb adopt --dry-run\n  plumb adopt\n  plumb adopt --type endpoint --match 'chat-*' --yes\n\nThe spec goes into adopted.plumb.toml: ids of other objects become references, defaults are left out, secrets become variables, and alike objects share one for_each. The objects stay as they are, and the next plan is empty. Run it again, and it finds what has come since."
    )]
    Adopt(Adopt),
    /// Show what changed outside Plumb
    #[command(
        after_help = "Examples:\n  plumb drift\n  plumb drift --json\n  plumb drift --write\n\nExit status 2 when something changed.\n\nWith --write, each changed attribute that a plain value makes gets its live value in the spec; comments, order and expressions stay. The command says what it wrote, and for the rest what to change instead. Exit status 2 means then that something is left to change by hand."
    )]
    Drift(Drift),
    /// Show the state, or a saved plan
    #[command(after_help = "Examples:\n  plumb show\n  plumb show plan.json\n  plumb show --json")]
    Show(Show),
    /// Print the outputs of the last apply
    #[command(
        after_help = "Examples:\n  plumb output\n  plumb output chat_url --raw\n  plumb output --json\n\nOne that is sensitive cannot be asked for by name: the state has its fingerprint only."
    )]
    Output(OutputArgs),
    /// Show and edit the state
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb state list\n  plumb state show 'value.a[eu]'\n  plumb state mv value.a value.b\n  plumb state rm value.old"
    )]
    State(State),
    /// Decide about calls in doubt
    #[command(
        after_help = "Examples:\n  plumb resolve\n  plumb resolve endpoint.chat --adopt abc123\n  plumb resolve endpoint.chat --absent\n\nWithout an address, shows what is in doubt."
    )]
    Resolve(Resolve),
    /// End a run that hangs and holds the lock, or say when its lock ends
    #[command(
        after_help = "Examples:\n  plumb unlock 5f0c2a9be1d34c77\n\nA lock ends by itself with the run that holds it: at once where the state is in files or in a database, and \
                      after some silence where it is in an object store. The next apply takes it then.\n\nIn a database, a \
                      process that hangs keeps the lock. This command ends its run: its writes are refused, it makes no more \
                      calls, and the next apply looks up what it had under way. For other locks, this command says who holds \
                      the lock, and when it ends."
    )]
    Unlock(Unlock),
    /// Run the checks of the spec against what is live
    #[command(
        after_help = "Examples:\n  plumb check\n  plumb check --json environments/prod\n\nExit status 1 when a check fails. The job of a check runs for real, for at most 90 seconds unless the check says otherwise."
    )]
    Check(Check),
    /// Compute expressions over the variables, locals and the state
    #[command(
        after_help = "Examples:\n  plumb console\n  echo 'endpoint.chat.run_url' | plumb console\n  plumb console --var env=prod\n\nNothing is called: objects are as the state has them. Tab completes names; an empty line or Ctrl-D ends it. What is typed is kept in no file."
    )]
    Console(Console),
    /// Show which block of the spec comes after which
    #[command(
        after_help = "Examples:\n  plumb graph\n  plumb graph --format dot | dot -Tpng > graph.png\n  plumb graph --format svg > graph.svg"
    )]
    Graph(Graph),
    /// Run the tests of the spec against a throw-away service
    #[command(
        after_help = "Examples:\n  plumb test\n  plumb test tests/sizes.test.toml\n  plumb test --json\n\nTests are the files NAME.test.toml in the folder of the spec and in its folder `tests`. Each has an own state and an own service, which end with it. No key of the environment is used."
    )]
    Test(Test),
    /// Submit jobs to endpoints and follow them
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb job run endpoint.chat '{\"prompt\": \"hi\"}'\n  plumb job health endpoint.chat\n  plumb job status endpoint.chat 724907fe-0b3d-4f3c-u1\n\nENDPOINT is an address of the state, such as 'endpoint.chat[eu]', or an endpoint's id."
    )]
    Job(job::Job),
    /// Run the serverless compute service on this machine
    #[command(
        after_help = "Examples:\n  plumb serve\n  plumb serve --listen 127.0.0.1:8080 --data /tmp/service\n  plumb serve --print-env\n  plumb serve key create ci --only jobs\n\nThe addresses and the key of the running service are in `serve.json` in the folder of its data, which only its owner can read. With --print-env, they are also the first five lines on stdout."
    )]
    Serve(Box<Serve>),
    /// List, show, check and write descriptors of providers
    #[command(
        subcommand,
        after_help = "Examples:\n  plumb provider list\n  plumb provider show catalog:powerdns\n  plumb provider check acme.provider.toml\n  plumb provider from-openapi openapi.json --output acme.provider.toml"
    )]
    Provider(Provider),
    /// Run the language server for editors, over stdin and stdout
    #[command(
        after_help = "Examples:\n  plumb lsp\n\nAn editor starts it; docs/editors.md says how each is told. It calls no API and writes no file."
    )]
    Lsp,
    /// Describe the resource types
    #[command(
        after_help = "Examples:\n  plumb schema\n  plumb schema --type value\n  plumb schema --spec > plumb.schema.json\n\nKnows the types that come with Plumb; `plumb provider show NAME` describes those of other providers. With --spec, prints a JSON Schema of the spec, with the types of the providers that the spec declares, too. A first line `#:schema ./plumb.schema.json` in plumb.toml tells editors where it is."
    )]
    Schema(Schema),
    /// Print a completion script
    #[command(
        after_help = "Examples:\n  plumb completions bash > ~/.local/share/bash-completion/completions/plumb\n  plumb completions fish > ~/.config/fish/completions/plumb.fish"
    )]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the version
    #[command(after_help = "Examples:\n  plumb version")]
    Version,
}

/// `plumb fmt`.
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Files, or folders; without one, the folder of `-C`; `-` stands for stdin and stdout
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Change nothing: name the files that have another layout, and exit with 1
    #[arg(long)]
    pub(crate) check: bool,
}

/// `plumb schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// One resource type; without one, all are listed that come with Plumb
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) ty: Option<String>,
    /// The JSON Schema of the spec, for editors
    #[arg(long, conflicts_with_all = ["ty", "json"])]
    pub(crate) spec: bool,
    #[command(flatten)]
    pub(crate) form: Form,
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
}
