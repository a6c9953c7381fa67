//! The commands below `plumb provider`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::shared::Form;

/// `plumb provider`.
#[derive(Debug, Subcommand)]
pub(crate) enum Provider {
    /// List the providers that come with Plumb, and those of the spec
    #[command(after_help = "Examples:\n  plumb provider list\n  plumb provider list --json")]
    List(Form),
    /// Show the types of a provider: calls and attributes
    #[command(
        after_help = "Examples:\n  plumb provider show serverless\n  plumb provider show catalog:powerdns --type zone\n  plumb provider show ./acme.provider.toml"
    )]
    Show(ProviderShow),
    /// Check a descriptor
    #[command(after_help = "Examples:\n  plumb provider check acme.provider.toml")]
    Check {
        /// The descriptor
        #[arg(value_name = "DESCRIPTOR", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Write a descriptor from an `OpenAPI` document
    #[command(
        after_help = "Examples:\n  plumb provider from-openapi openapi.json --output acme.provider.toml\n  plumb provider from-openapi swagger.yaml --type zone --type record > dns.provider.toml\n\nThe document is one of OpenAPI 3 or Swagger 2, in JSON or YAML. The descriptor loads as it is; what the document does not tell is marked `# to prove`. Types and attributes that are left out are listed with the reason, on stderr."
    )]
    FromOpenapi(FromOpenapi),
    /// Try a descriptor against a server: make, read, change and delete objects
    #[command(
        after_help = "Examples:\n  plumb provider test acme.provider.toml --against http://127.0.0.1:9000\n  plumb provider test catalog:powerdns --against http://127.0.0.1:8081/api/v1/servers/localhost --values values.toml\n\nObjects of all types, or of those given, are made, and deleted at the end. What a killed run left is deleted by the next one: NAME.objects.jsonl, in this folder, has the objects that are not deleted yet. Use an account with nothing of value in it.\n\nvalues.toml has a table for each type, with the attributes that the objects are made with, such as `[record]`, and `[record.change]` for the update. `\"${zone.id}\"` is an attribute of the zone that was made."
    )]
    Test(ProviderTest),
    /// Find out on a server what a descriptor marks `# to prove`, and write it down
    #[command(
        after_help = "Examples:\n  plumb provider prove acme.provider.toml --against http://127.0.0.1:9000 --values values.toml\n\nObjects are made for it and deleted at the end, as by `plumb provider test`. Settled marks are removed from the descriptor, and what follows from them is changed there; comments and order stay. The marks that are left are listed with the reason. Facts without a mark are told too: delays, refusals and limits of calls."
    )]
    Prove(Trial),
}

/// `plumb provider test`.
#[derive(Debug, Args)]
pub(crate) struct ProviderTest {
    #[command(flatten)]
    pub(crate) trial: Trial,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// A descriptor, and a server to try it on.
#[derive(Debug, Args)]
pub(crate) struct Trial {
    /// The path of a descriptor; for `test`, also `catalog:NAME`
    #[arg(value_name = "DESCRIPTOR")]
    pub(crate) descriptor: String,
    /// The address of the server
    #[arg(long, value_name = "URL")]
    pub(crate) against: String,
    /// Only this type, and those above it; may be given more than once
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// A file with values for attributes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) values: Option<PathBuf>,
    /// Delete what a killed run left, and make nothing
    #[arg(long)]
    pub(crate) clean: bool,
}

/// `plumb provider show`.
#[derive(Debug, Args)]
pub(crate) struct ProviderShow {
    /// `builtin`, `serverless`, a provider of the spec, `catalog:NAME`, or the path of a descriptor
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: String,
    /// One type; without one, all
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) ty: Option<String>,
}

/// `plumb provider from-openapi`.
#[derive(Debug, Args)]
pub(crate) struct FromOpenapi {
    /// The document
    #[arg(value_name = "DOCUMENT", value_hint = ValueHint::FilePath)]
    pub(crate) document: PathBuf,
    /// Only this type, and those above it; may be given more than once
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// The name of the provider; without one, it follows from the title of the document
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The file to write, which must not exist; without one, the descriptor goes to stdout
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}
