//! The arguments of the commands that show or edit the state.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use engine::journal::CallId;

use super::shared::{Form, PlanForm, SpecArgs};

/// `plumb show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A saved plan; without one, the state is shown
    #[arg(value_name = "PLANFILE", value_hint = ValueHint::FilePath)]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: PlanForm,
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
        /// The address of the resource
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
        after_help = "Examples:\n  plumb state migrate --from file\n  plumb state migrate --from old.toml\n\nChange `[state]` in the spec first; old.toml holds the previous block. The old place is marked as left, and nothing in it is removed."
    )]
    Migrate {
        /// The previous place: `file`, or a TOML file with the previous `[state]` block
        #[arg(long, value_name = "PLACE", value_hint = ValueHint::FilePath)]
        from: String,
    },
    /// Give objects other addresses
    #[command(
        after_help = "Examples:\n  plumb state mv value.a value.b\n  plumb state mv value.a 'value.a[eu]'\n  plumb state mv module.app module.web\n  plumb state mv 'value.*' 'module.app.value.*'\n  plumb state mv endpoint.chat --to ../chat\n\nA block goes with all its instances, a module with all that it holds; `*` is any name, and `[*]` any key. A [[moved]] block in the spec does the same, and is reviewed in the plan."
    )]
    Mv {
        /// The address that they have
        from: String,
        /// The address that they get; with --to, the same without one
        #[arg(value_name = "TO", required_unless_present = "folder")]
        to: Option<String>,
        /// Into the state of another folder
        #[arg(long = "to", value_name = "DIR", id = "folder", value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Forget objects; they stay where they are
    #[command(after_help = "Examples:\n  plumb state rm value.a 'value.b[eu]'")]
    Rm {
        /// The addresses of the resources
        #[arg(required = true)]
        addresses: Vec<String>,
    },
    /// Let a provider act on another service or account from now on
    #[command(
        after_help = "Examples:\n  plumb state relocate serverless\n\nThe state remembers which service and account each provider acted on, and a run on another one is refused. After \
                      this command, the next run may act on another one, and the state remembers that. Use it where the \
                      same objects are at another address, or are reached with another key."
    )]
    Relocate {
        /// The provider, as the message names it
        provider: String,
    },
    /// Print the state for a backup
    #[command(
        after_help = "Examples:\n  plumb state pull > state.json\n  plumb state pull --serial 41 > state.json\n\nThe state holds no secret in clear, but the key of its fingerprints: keep it to yourself."
    )]
    Pull {
        /// An older state that is kept: `plumb state history` lists their serials
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
    /// The address of the resource; without one, all calls in doubt are shown
    pub(crate) address: Option<String>,
    /// The object with this id is the one
    #[arg(long, value_name = "ID", requires = "address", conflicts_with = "absent")]
    pub(crate) adopt: Option<String>,
    /// There is no object
    #[arg(long, requires = "address")]
    pub(crate) absent: bool,
    /// Take that as said, without looking whether an object is there whose id is known
    #[arg(long, requires = "absent")]
    pub(crate) force: bool,
    /// The number of the call, if several calls about the resource are in doubt
    #[arg(long, value_name = "CALL", requires = "address")]
    pub(crate) call: Option<CallId>,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// `plumb unlock`.
#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// The run that holds the lock, as the message about it says
    #[arg(value_name = "ID")]
    pub(crate) run: String,
}
