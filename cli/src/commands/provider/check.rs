//! `plumb provider check`: shows the mistakes of a descriptor.

use std::path::Path;

use provider_http::Settings;

use super::descriptor_file;
use crate::environment;
use crate::error::{CommandError, Status};
use crate::output::Output;

pub(super) fn run(base: &Path, path: &Path, output: &Output) -> Result<Status, CommandError> {
    let file = descriptor_file::read(base, path)?;
    let mut found = file.diagnostics;
    if let Some(descriptor) = &file.descriptor {
        let settings = Settings::new(&environment::variable).beside_spec(true);
        found.extend(descriptor.foreign_keys(&settings));
    }
    output.diagnostics(&found, &file.sources);
    let Some(descriptor) = file.descriptor else { return Ok(Status::Failed) };
    let count = descriptor.schema().types.len();
    let types = if count == 1 { "type" } else { "types" };
    output.data(&format!("The descriptor is valid: {count} {types}.\n"));
    Ok(Status::Done)
}
