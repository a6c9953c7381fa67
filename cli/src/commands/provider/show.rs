//! `plumb provider show`: the types of a provider, their calls and their attributes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use engine::diagnostics::{FileId, nearest};
use engine::schema::ProviderSchema;
use provider_http::Descriptor;
use render::safe;

use super::descriptor_file;
use crate::args::{ProviderShow, SpecArgs};
use crate::commands::schema::type_text;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::{providers, resolved, stored_state};

/// The beginning of the name of a descriptor that comes with Plumb.
const CATALOG: &str = "catalog:";

/// A provider to show.
struct Shown {
    schema: Arc<ProviderSchema>,
    /// The descriptor; `None` if the provider has none, and so its calls are not known.
    descriptor: Option<Descriptor>,
}

pub(super) fn run(
    base: &Path,
    args: &ProviderShow,
    output: &Output,
) -> Result<Status, CommandError> {
    let Some(shown) = find(base, &args.provider, output)? else { return Ok(Status::Failed) };
    let types = &shown.schema.types;
    if let Some(wanted) = args.ty.as_ref().filter(|wanted| !types.contains_key(wanted.as_str())) {
        let error = CommandError::new(format!("{} has no type `{wanted}`", args.provider));
        return Err(match nearest(wanted, types.keys().map(|name| &**name)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("`plumb provider show {}` shows all", args.provider)),
        });
    }
    let wanted = types.values().filter(|ty| args.ty.as_ref().is_none_or(|name| **name == *ty.name));
    let texts: Vec<String> = wanted
        .map(|ty| {
            let text = type_text(ty);
            let calls = shown.descriptor.as_ref().map(|descriptor| calls(descriptor, &ty.name));
            with_calls(&text, &calls.unwrap_or_default())
        })
        .collect();
    let text = texts.join("\n");
    let lines: Vec<_> = text.lines().map(safe::whole).collect();
    output.data(&(lines.join("\n") + "\n"));
    Ok(Status::Done)
}

/// Finds a provider by its name or the path of its descriptor. Returns `None` if a descriptor has mistakes,
/// which are shown.
fn find(base: &Path, name: &str, output: &Output) -> Result<Option<Shown>, CommandError> {
    if let Some(text) = name.strip_prefix(CATALOG).and_then(provider_http::catalog) {
        return Ok(provider_http::load(text, FileId(0)).0.map(described));
    }
    if name == provider_serverless::NAME {
        return Ok(provider_serverless::read().ok().map(described));
    }
    if name.contains('/') || Path::new(name).extension().is_some() {
        let file = descriptor_file::read(base, Path::new(name))?;
        output.diagnostics(&file.diagnostics, &file.sources);
        return Ok(file.descriptor.map(described));
    }
    let mut known = providers::known_schemas()?;
    let folder = Folder::new(base, None)?;
    if folder.spec_if_any()?.is_some() {
        let spec = SpecArgs { unset: true, ..SpecArgs::default() };
        known.extend(
            resolved::read(&folder, base, &spec, &stored_state::no_state())?.schemas().clone(),
        );
    }
    if let Some(schema) = known.get(name) {
        return Ok(Some(Shown { schema: schema.clone(), descriptor: None }));
    }
    let catalog: Vec<String> =
        provider_http::catalog_names().map(|name| format!("{CATALOG}{name}")).collect();
    let names = known.keys().map(|name| &**name).chain(catalog.iter().map(String::as_str));
    let error = CommandError::new(format!("there is no provider `{name}`"));
    let near = nearest(name, names).map(str::to_owned);
    let near =
        near.or_else(|| catalog.iter().find(|it| it.ends_with(&format!(":{name}"))).cloned());
    Err(match near {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("`plumb provider list` lists all; a descriptor is named by its path"),
    })
}

fn described(descriptor: Descriptor) -> Shown {
    Shown { schema: Arc::new(descriptor.schema()), descriptor: Some(descriptor) }
}

/// Returns the calls of a type, one per line.
fn calls(descriptor: &Descriptor, ty: &str) -> String {
    let Some(outline) = descriptor.outline(ty) else { return String::new() };
    let mut text = String::from("\nCalls:\n");
    let width = outline.calls.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(6);
    for (name, call) in &outline.calls {
        let _ = writeln!(text, "  {name:width$}  {call}");
    }
    if let Some(parent) = &outline.parent {
        let _ = writeln!(text, "  {:width$}  {parent}", "parent");
    }
    text
}

/// Returns the text of a type with its calls before its attributes.
fn with_calls(text: &str, calls: &str) -> String {
    match text.find("\n\nAttributes:") {
        Some(at) => format!("{}\n{calls}{}", &text[..at], &text[at + 1..]),
        None => format!("{text}{calls}"),
    }
}
