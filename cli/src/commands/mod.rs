//! The commands, one per file. Each takes its parsed arguments and returns an exit status.

mod adopt;
mod apply;
mod check;
mod completions;
mod console;
mod drift;
mod fmt;
mod graph;
mod import;
mod init;
mod job;
mod lsp;
mod output;
mod plan;
mod plan_file;
mod provider;
mod resolve;
mod saved_plan;
mod schema;
pub(crate) mod serve;
mod show;
mod state;
mod test;
mod unlock;
mod validate;
mod version;

use std::sync::Arc;

use crate::args::{Cli, Command};
use crate::error::{CommandError, Status};
use crate::output::Output;

/// Runs the command that was typed.
pub(crate) fn run(cli: &Cli, output: &Arc<Output>) -> Result<Status, CommandError> {
    let base = &cli.base;
    match &cli.command {
        Command::Init(args) => init::run(base, args, output),
        Command::Validate(args) => validate::run(base, args, output),
        Command::Fmt(args) => fmt::run(base, args, output),
        Command::Plan(args) => plan::run(base, args, output),
        Command::Apply(args) => apply::apply(base, args, output),
        Command::Destroy(args) => apply::destroy(base, args, output),
        Command::Adopt(args) => adopt::run(base, args, output),
        Command::Import(args) => import::run(base, args, output),
        Command::Drift(args) => drift::run(base, args, output),
        Command::Show(args) => show::run(base, args, output),
        Command::Output(args) => output::run(base, args, output),
        Command::State(args) => state::run(base, args, output),
        Command::Resolve(args) => resolve::run(base, args, output),
        Command::Unlock(args) => unlock::run(base, args, output),
        Command::Check(args) => check::run(base, args, output),
        Command::Console(args) => console::run(base, args, output),
        Command::Graph(args) => graph::run(base, args, output),
        Command::Test(args) => test::run(base, args, output),
        Command::Job(job) => job::run(base, job, output),
        Command::Serve(args) => serve::run(base, args, output),
        Command::Provider(args) => provider::run(base, args, output),
        Command::Lsp => lsp::run(),
        Command::Schema(args) => schema::run(base, args, output),
        Command::Completions { shell } => completions::run(*shell, output),
        Command::Version => version::run(output),
    }
}
