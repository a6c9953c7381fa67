//! Modules: specs that a spec calls.
//!
//! A module has no existence of its own in a plan. [`expand`](expand::expand) turns a document and the
//! modules that it calls into one flat document. The blocks of each instance stand in it under the path of
//! the instance; its inputs, locals and outputs become locals; and references get the names of the whole
//! spec. So a value passes from block to block, and no block waits for a whole module.

mod call;
mod diagnostics;
pub(super) mod expand;
mod instances;
pub mod outside_references;
mod references;
pub mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::diagnostics as say;
use super::Document;
use super::convert::file_path_mut;
use crate::config::ModuleSource;
use crate::config::modules::source::joined;
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::FileRequest;
use crate::expression::visit::change;
use crate::value::Value;

/// The most modules of a spec.
const MODULES_MAX: usize = 1000;

/// A module that a document calls, and the place of the call.
struct CalledModule {
    source: ModuleSource,
    at: Span,
}

/// A module as the shell read it: its document with the mistakes in it, or the reason that it cannot be read.
pub type ReadModule = Result<(Document, Diagnostics), String>;

/// Puts the modules that a document calls, and those that they call, into its library. `read` reads one
/// module.
pub fn load(
    document: &mut Document,
    read: &mut dyn FnMut(&ModuleSource) -> ReadModule,
) -> Diagnostics {
    let (mut open, mut diagnostics) = called(document, &ModuleSource::default());
    let mut library = BTreeMap::new();
    while let Some(CalledModule { source, at }) = open.pop() {
        if library.contains_key(&source) {
            continue;
        }
        if library.len() >= MODULES_MAX {
            diagnostics
                .push(say::unread(&format!("there are more than {MODULES_MAX} modules"), at));
            break;
        }
        match read(&source) {
            Err(reason) => diagnostics.push(say::unread(&reason, at)),
            Ok((module, found)) => {
                diagnostics.extend(found);
                let (more, found) = called(&module, &source);
                diagnostics.extend(found);
                open.extend(more);
                library.insert(source.clone(), Arc::new(placed(module, &source)));
            }
        }
    }
    document.torn |= library.values().any(|module| module.torn);
    document.library = library;
    diagnostics
}

/// The sources of all modules that a document and those of its library call, read or not.
pub fn sources(document: &Document) -> BTreeSet<ModuleSource> {
    let own = (ModuleSource::default(), document);
    let library = document.library.iter().map(|(source, module)| (source.clone(), &**module));
    let all = std::iter::once(own).chain(library);
    all.flat_map(|(from, document)| called(document, &from).0).map(|call| call.source).collect()
}

/// Returns the modules that a document calls, and the mistakes in the calls. The document itself has the
/// source `from`.
fn called(document: &Document, from: &ModuleSource) -> (Vec<CalledModule>, Diagnostics) {
    let (mut called, mut diagnostics) = (Vec::new(), Diagnostics::new());
    for raw in document.modules.values() {
        let at = raw.items.get("source").map_or(raw.header, |item| item.value.span);
        if document.broken.contains(&at) {
            continue;
        }
        match ModuleSource::of(raw, from) {
            Ok(source) => called.push(CalledModule { source, at }),
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
    }
    (called, diagnostics)
}

/// Returns the document of a module with the paths of its files relative to the folder of the spec.
fn placed(mut document: Document, source: &ModuleSource) -> Document {
    if document.files.is_empty() {
        return document;
    }
    let place = source.place();
    document.files =
        document.files.iter().map(|name| request(&place, name)).collect::<BTreeSet<_>>();
    for item in items_mut(&mut document) {
        change(&mut item.value.expr, &mut |part| {
            if let Some(path) = file_path_mut(part) {
                *path = Value::string(joined(&place, path.as_str().unwrap_or_default()));
            }
            true
        });
    }
    document
}

/// Returns the name of a file that a module asks for, or of the list of a folder, relative to the folder of
/// the spec.
fn request(place: &str, name: &str) -> String {
    let request = FileRequest::of_name(name);
    let path = joined(place, request.path());
    request.with_path(&path).name().unwrap_or(path)
}

/// Returns every `key = value` of a module.
fn items_mut(document: &mut Document) -> impl Iterator<Item = &mut super::Item> {
    let blocks = document.variables.values_mut().chain(document.outputs.values_mut());
    let blocks = blocks.chain(document.checks.values_mut()).chain(document.modules.values_mut());
    let blocks = blocks.chain(document.resources.values_mut()).chain(document.data.values_mut());
    blocks.flat_map(|block| block.items.values_mut()).chain(document.locals.values_mut())
}
