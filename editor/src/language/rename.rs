//! Rename: every place that names a symbol gets another name.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use engine::address::{Block, Name, is_name};
use engine::config::symbols::{Symbol, occurrences};
use engine::config::{Document, keys};
use engine::diagnostics::{Source, Span};
use lsp_types::{TextEdit, Url, WorkspaceEdit};

use super::places::{Places, nowhere};
use super::subject::{Subject, subject};
use super::{Known, Query};
use crate::text::Text;
use crate::text::outline::{Part, scan, segments};

/// The changes of a rename, and a message about them.
pub(crate) struct Rename {
    pub(crate) edit: WorkspaceEdit,
    pub(crate) message: Option<String>,
}

/// The place of the name at the cursor, if it can be renamed.
pub(crate) fn prepare(query: &Query<'_>) -> Option<lsp_types::Range> {
    let (Subject::Symbol(_), range) = subject(query)? else { return None };
    Some(query.text.range(range))
}

/// Gives the symbol at the cursor another name; says why it cannot.
pub(crate) fn rename(query: &Query<'_>, name: &str) -> Result<Rename, String> {
    let Some((Subject::Symbol(symbol), _)) = subject(query) else {
        return Err("there is nothing here that has a name of its own".to_owned());
    };
    if !is_name(name) {
        return Err(format!(
            "`{name}` is no name: begin with a small letter, then use small letters, digits, `_` and `-`"
        ));
    }
    let known = query.known;
    let document = known.latest.document();
    if document.torn {
        return Err("the spec cannot be read as a whole: mend it first".to_owned());
    }
    let Some(definition) = symbol.definition(document) else {
        return Err(format!("`{symbol}` is not declared in this folder"));
    };
    let new = with_name(&symbol, name);
    if new != symbol && new.definition(document).is_some() {
        return Err(format!("there is a `{new}` already"));
    }
    if let Symbol::Provider(name) = &symbol
        && is_named_after_its_kind(document, name)
    {
        return Err(format!("`{name}` says which provider it is: it has no other name"));
    }
    let sources = known.latest.sources();
    let places = Places::new(sources);
    let moved = moved_block(known, &symbol, &new);
    let mut edits: BTreeMap<PathBuf, Vec<lsp_types::Range>> = BTreeMap::new();
    let named = occurrences(document).into_iter().filter(|it| it.symbol == symbol);
    // A move to the old address goes on by the new block.
    for found in named.filter(|it| moved.is_none() || !is_in_move(document, it.span)) {
        let Some(place) = places.of(found.span, &symbol) else {
            return Err(format!("a place that names `{symbol}` spells it in an unusual way"));
        };
        edits.entry(place.path).or_default().push(place.range);
    }
    let source = sources.get(definition.file);
    // Tables inside its block have its name in their headers, too.
    if let Some(source) = source {
        edits.entry(PathBuf::from(&source.path)).or_default().extend(headers(source, &symbol));
    }
    let changes = edits.into_iter().map(|(path, ranges)| file_edits(&path, ranges, name));
    let mut changes: HashMap<Url, Vec<TextEdit>> = changes.collect();
    if let (Some(block), Some(source)) = (&moved, source) {
        changes.entry(address(Path::new(&source.path))).or_default().push(at_end(source, block));
    }
    let edit = WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    Ok(Rename { edit, message: moved.map(|_| message(&symbol)) })
}

fn address(path: &Path) -> Url {
    Url::from_file_path(path).unwrap_or_else(|()| nowhere())
}

fn file_edits(path: &Path, mut ranges: Vec<lsp_types::Range>, name: &str) -> (Url, Vec<TextEdit>) {
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup();
    let edit = |range| TextEdit { range, new_text: name.to_owned() };
    (address(path), ranges.into_iter().map(edit).collect())
}

/// The places of a symbol's name in the headers and keys of a file.
fn headers(source: &Source, symbol: &Symbol) -> Vec<lsp_types::Range> {
    let text = Text::new(source.text.clone());
    let path = symbol.path();
    let mut found = Vec::new();
    let mut header = Vec::new();
    scan(&source.text, &mut |part| {
        let own = match part {
            Part::Header { inside, .. } => {
                header = segments(&source.text, inside);
                header.clone()
            }
            Part::Pair { key, .. } => {
                let key = segments(&source.text, key);
                header.iter().cloned().chain(key).collect()
            }
        };
        let named = own
            .get(path.len() - 1)
            .filter(|_| own.iter().zip(&path).all(|(segment, name)| segment.name == **name));
        found.extend(named.map(|segment| {
            let quotes = usize::from(source.text[segment.range.clone()].starts_with(['"', '\'']));
            text.range(segment.range.start + quotes..segment.range.end - quotes)
        }));
        ControlFlow::Continue(())
    });
    found
}

fn with_name(symbol: &Symbol, name: &str) -> Symbol {
    match symbol {
        Symbol::Variable(_) => Symbol::Variable(name.into()),
        Symbol::Local(_) => Symbol::Local(name.into()),
        Symbol::Resource(block) => Symbol::Resource(Block { name: name.into(), ..block.clone() }),
        Symbol::Module(_) => Symbol::Module(name.into()),
        Symbol::Provider(_) => Symbol::Provider(name.into()),
        Symbol::Output(_) => Symbol::Output(name.into()),
        Symbol::Check(_) => Symbol::Check(name.into()),
    }
}

/// The block that moves what the state knows by the old name; none where it knows nothing by it.
fn moved_block(known: &Known, symbol: &Symbol, new: &Symbol) -> Option<String> {
    if symbol == new || !matches!(symbol, Symbol::Resource(_) | Symbol::Module(_)) {
        return None;
    }
    let mut addresses = known.state.as_deref()?.entries.keys();
    let is_known = addresses.any(|it| Symbol::of_address(&it.to_string()).as_ref() == Some(symbol));
    is_known.then(|| format!("[[moved]]\nfrom = \"{symbol}\"\nto = \"{new}\"\n"))
}

/// Returns true if a place is in a `[[moved]]` block.
fn is_in_move(document: &Document, place: Span) -> bool {
    let items = document.moved.iter().flat_map(|block| block.items.values());
    let mut spans = items.map(|item| item.value.span);
    spans.any(|it| it.file == place.file && it.start <= place.start && place.end <= it.end)
}

/// A block behind the last line of a file.
fn at_end(source: &Source, block: &str) -> TextEdit {
    let text = Text::new(source.text.clone());
    let end = source.text.len();
    let before = if source.text.ends_with('\n') { "\n" } else { "\n\n" };
    TextEdit { range: text.range(end..end), new_text: format!("{before}{block}") }
}

fn message(symbol: &Symbol) -> String {
    format!(
        "The state knows objects of `{symbol}`. A `[[moved]]` block at the end of the file keeps them; \
         remove it when every state of the spec was applied."
    )
}

/// Returns true if a provider has no descriptor, so that its name says which one it is.
fn is_named_after_its_kind(document: &Document, name: &Name) -> bool {
    let block = document.providers.get(name);
    let is_source = |key: &Name| keys::has(keys::PROVIDER_SOURCE, key);
    block.is_none_or(|block| !block.items.keys().any(is_source))
}
