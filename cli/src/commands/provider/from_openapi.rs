//! `plumb provider from-openapi`: writes a descriptor from an `OpenAPI` document.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use engine::address::is_name;
use engine::diagnostics::{FileId, Severity};
use provider_openapi::{Converted, Fault, Options, TypeFound, convert};
use render::safe;

use super::descriptor_file;
use crate::args::FromOpenapi;
use crate::error::{CommandError, Status};
use crate::output::Output;

/// The largest document that is read, in bytes.
const DOCUMENT_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn run(
    base: &Path,
    args: &FromOpenapi,
    output: &Output,
) -> Result<Status, CommandError> {
    if let Some(name) = args.name.as_ref().filter(|name| !is_name(name)) {
        let error = CommandError::new(format!("`{name}` is no name of a provider"));
        return Err(error.help("use a small letter, then small letters, digits, `_` and `-`"));
    }
    let text = descriptor_file::text(base, &args.document, DOCUMENT_MAX)?;
    let options = Options { types: args.types.clone(), provider: args.name.clone() };
    let converted = convert(&text, &options, &faults).map_err(|refusal| {
        CommandError::new(format!("{}: {}", args.document.display(), refusal.message))
            .help(refusal.help)
    })?;
    match &args.output {
        Some(path) => write_new(&base.join(path), path, &converted.text)?,
        None => output.data(&converted.text),
    }
    output.talk(&report(&converted, args.output.as_deref()));
    Ok(Status::Done)
}

/// Returns the mistakes that the loader of descriptors finds in the text.
fn faults(text: &str) -> Vec<Fault> {
    let (_, found) = provider_http::load(text, FileId(0));
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let fault = |diagnostic: &engine::diagnostics::Diagnostic| Fault {
        place: diagnostic.span.map_or(0..0, |span| span.start as usize..span.end as usize),
        message: match &diagnostic.label {
            Some(label) => format!("{}: {label}", diagnostic.summary),
            None => diagnostic.summary.clone(),
        },
    };
    errors.map(fault).collect()
}

/// Writes a new file. Fails if the file exists, as it may have been edited by hand.
fn write_new(path: &Path, shown: &Path, text: &str) -> Result<(), CommandError> {
    let file = std::fs::File::options().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let failed = CommandError::new(format!("cannot write {}: {error}", shown.display()));
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return failed.help("it may have been edited: move it away, or give another file");
        }
        failed
    })
}

/// Returns a table of the types that were found and those that were left out.
fn report(converted: &Converted, path: Option<&Path>) -> String {
    let types = &converted.types;
    let sum = |count: fn(&TypeFound) -> usize| types.iter().map(count).sum::<usize>();
    let mut text = String::new();
    let width = |text: fn(&TypeFound) -> &str| {
        types.iter().map(|ty| text(ty).chars().count()).max().unwrap_or_default()
    };
    let (names, paths) = (width(|ty| &ty.name).max(4), width(|ty| &ty.path).max(6));
    let _ = writeln!(text, "{:names$}  {:paths$}  attributes  typed  to prove", "type", "object");
    for ty in types {
        let (name, path) = (&ty.name, &ty.path);
        let (all, typed, marks) = (ty.attributes, ty.typed, ty.to_prove);
        let _ = writeln!(text, "{name:names$}  {path:paths$}  {all:10}  {typed:5}  {marks:8}");
    }
    if !converted.left_out.is_empty() {
        let parts = converted.left_out.iter().map(|left| left.part.chars().count());
        let parts = parts.max().unwrap_or_default().min(72);
        text.push_str("\nleft out:\n");
        for left in &converted.left_out {
            let _ = writeln!(text, "  {:parts$}  {}", left.part, left.reason);
        }
    }
    let to = path.map_or(String::new(), |path| format!("{}: ", path.display()));
    let _ = writeln!(
        text,
        "\n{to}provider {}: {}, {}, {} of them typed, {} to prove",
        converted.provider,
        counted(types.len(), "type"),
        counted(sum(|ty| ty.attributes), "attribute"),
        sum(|ty| ty.typed),
        sum(|ty| ty.to_prove),
    );
    let lines = text.lines().map(|line| safe::capped(line.trim_end(), 300) + "\n");
    lines.collect()
}

fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
