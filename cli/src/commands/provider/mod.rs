//! `plumb provider`: commands about the available providers, and about descriptors of new ones.

mod check;
mod descriptor_file;
mod from_openapi;
mod ledger;
mod list;
mod prove;
mod sample_values;
mod show;
mod test;
mod trial;

use std::path::Path;

use crate::args::Provider;
use crate::error::{CommandError, Status};
use crate::output::Output;

pub(crate) fn run(base: &Path, args: &Provider, output: &Output) -> Result<Status, CommandError> {
    match args {
        Provider::List(form) => list::run(base, form, output),
        Provider::Show(args) => show::run(base, args, output),
        Provider::Check { file } => check::run(base, file, output),
        Provider::FromOpenapi(args) => from_openapi::run(base, args, output),
        Provider::Test(args) => test::run(base, args, output),
        Provider::Prove(args) => prove::run(base, args, output),
    }
}
