//! `plumb init`: writes a small working spec and a schema for editors. If there is a spec, keeps it and
//! fetches the repositories that it uses.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use engine::config::is_spec_file;
use engine::shell;

use editor::spec_schema::{FILE, FIRST_LINE};

use super::schema;
use crate::args::FolderArg;
use crate::error::{CommandError, Status};
use crate::modules;
use crate::output::Output;

/// The spec that is written: the quickstart of the examples.
const SPEC: &str = include_str!("../../../examples/quickstart/plumb.toml");

pub(crate) fn run(base: &Path, args: &FolderArg, output: &Output) -> Result<Status, CommandError> {
    let folder = args.folder.as_ref().map_or_else(|| base.to_owned(), |folder| base.join(folder));
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot write a spec into {}", folder.display()), &error)
    };
    std::fs::create_dir_all(&folder).map_err(fail)?;
    for entry in std::fs::read_dir(&folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let name = name.to_string_lossy();
        if is_spec_file(&name) {
            let fetched = modules::fetch(&folder, output)?;
            if fetched > 0 {
                output.talk(&format!("what the spec uses of {fetched} repositories is there\n"));
                return Ok(Status::Done);
            }
            let found = folder.join(&*name);
            return Err(CommandError::new(format!("there is a spec already: {}", found.display()))
                .help("`plumb validate` says whether it can be read; for another spec, give another folder: `plumb init DIR`"));
        }
    }
    let path = folder.join("plumb.toml");
    write_new(&path, &format!("{FIRST_LINE}\n{SPEC}")).map_err(fail)?;
    match write_new(&folder.join(FILE), &schema::of_every_spec()?) {
        // The user has a schema already, perhaps one of other providers. It stays.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        result => result.map_err(fail)?,
    }
    let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
    let shown = render::safe::text(&shown);
    let next = args
        .folder
        .as_ref()
        .map(|folder| format!(" {}", shell::quoted(&folder.display().to_string())));
    let next = next.unwrap_or_default();
    let next = render::safe::text(&next);
    output.talk(&format!("wrote {shown}; look at it, then run `plumb plan{next}`\n"));
    Ok(Status::Done)
}

/// Writes a new file. Fails if the file exists.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}
