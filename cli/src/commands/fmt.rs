//! `plumb fmt`: formats the files of specs.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use editor::layout::laid_out;
use engine::config::{BYTES_MAX, is_spec_file, parse};
use engine::diagnostics::FileId;

use crate::args::Fmt;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::spec_files;
use crate::spec_text::{SpecText, inside};

/// The endings of the names of other files that Plumb reads beside a spec.
const OTHERS: [&str; 3] = [".vars.toml", ".test.toml", ".provider.toml"];

/// The path that stands for stdin and stdout.
const STREAM: &str = "-";

pub(crate) fn run(base: &Path, args: &Fmt, output: &Output) -> Result<Status, CommandError> {
    if args.paths.iter().any(|path| path.as_os_str() == STREAM) {
        return stream(args, output);
    }
    let mut paths = Vec::new();
    for path in &args.paths {
        add(&as_said(base, path), &mut paths)?;
    }
    if args.paths.is_empty() {
        add(base, &mut paths)?;
    }
    let mut status = Status::Done;
    for path in paths {
        status = status.or(match one(&path, args.check, output) {
            Ok(status) => status,
            Err(error) => {
                output.error(&error);
                Status::Failed
            }
        });
    }
    Ok(status)
}

/// Returns a path as seen from the current folder, without needless parts.
fn as_said(base: &Path, path: &Path) -> PathBuf {
    let path: PathBuf = base.join(path).components().collect();
    let inner = path.strip_prefix(".").ok().filter(|inner| !inner.as_os_str().is_empty());
    inner.map_or(path.clone(), Path::to_owned)
}

/// Adds a file, or the spec files in a folder and its subfolders.
fn add(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", path.display()), &error)
    };
    if !std::fs::metadata(path).map_err(cannot)?.is_dir() {
        paths.push(path.to_owned());
        return Ok(());
    }
    let before = paths.len();
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let (files, folders) = content(&folder).map_err(cannot)?;
        paths.extend(files);
        open.extend(folders.into_iter().rev());
    }
    if paths.len() == before {
        return Err(CommandError::new(format!("there is no spec in {}", path.display())).help(
            "a file of a spec is called `plumb.toml` or `NAME.plumb.toml`; others can be named",
        ));
    }
    Ok(())
}

/// Returns the spec files in a folder and its subfolders, each sorted. Leaves out hidden folders and links.
fn content(folder: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let name = name.to_string_lossy();
        let path = inside(folder, entry.file_name());
        if kind.is_dir() && !name.starts_with('.') {
            folders.push(path);
        } else if kind.is_file() && is_laid_out(&name) {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

fn is_laid_out(name: &str) -> bool {
    is_spec_file(name) || OTHERS.iter().any(|end| name.ends_with(end))
}

/// Formats one file, and prints its name if that changes something.
fn one(path: &Path, check: bool, output: &Output) -> Result<Status, CommandError> {
    let mut text = SpecText::default();
    let mut files = Vec::new();
    text.add_file(path, path, 0, &mut files)?;
    let Some((old, new)) = texts(&mut text, &files, output) else { return Ok(Status::Failed) };
    if *old == *new {
        return Ok(Status::Done);
    }
    if !check {
        spec_files::replace(path, Some(&old), &new)?;
    }
    output.data(&format!("{}\n", render::safe::text(&path.display().to_string())));
    Ok(if check { Status::Failed } else { Status::Done })
}

/// Formats stdin to stdout.
fn stream(args: &Fmt, output: &Output) -> Result<Status, CommandError> {
    if args.paths.len() > 1 {
        return Err(CommandError::new("`-` stands for stdin, and takes no other path beside it"));
    }
    let mut read = String::new();
    let most = BYTES_MAX as u64 + 1;
    let bytes = std::io::stdin().take(most).read_to_string(&mut read);
    let bytes = bytes.map_err(|error| CommandError::caused("cannot read stdin", &error))?;
    if bytes > BYTES_MAX {
        return Err(CommandError::new("stdin is larger than 32 MiB, which no spec is"));
    }
    let mut text = SpecText::default();
    let file = text.sources.add("stdin", read);
    let Some((old, new)) = texts(&mut text, &[file], output) else { return Ok(Status::Failed) };
    if !args.check {
        output.data(&new);
    }
    Ok(if args.check && *old != *new { Status::Failed } else { Status::Done })
}

/// Returns the text of the only file and its layout; `None` if the text is not TOML, which is reported.
fn texts(text: &mut SpecText, files: &[FileId], output: &Output) -> Option<(Arc<str>, String)> {
    for file in files {
        text.diagnostics.extend(parse::toml_mistakes(&text.sources, *file));
    }
    if text.diagnostics.has_errors() {
        output.diagnostics(&text.diagnostics, &text.sources);
        return None;
    }
    let old = text.sources.get(*files.first()?)?.text.clone();
    let new = laid_out(&old)?;
    Some((old, new))
}
