//! The parser: text to [`Document`].
//!
//! It reports everything that can be reported without schemas or values: invalid TOML, unknown tables and
//! keys, invalid names, duplicates, and expressions that cannot be read. A mistake hides only the value that
//! contains it.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::convert::{Converter, File, Text};
use super::found::Found;
use super::{
    BYTES_MAX, Document, Item, RawBlock, Table, VALUES_MAX, diagnostics as say, keys,
    required_version, syntax,
};
use crate::address::{Block, Name, RESERVED_TYPES, is_name};
use crate::diagnostics::{Diagnostics, FileId, Source, Sources, Span};
use crate::work::{self, InTurn, Workers};

/// Parses the files of one spec into one document.
pub fn parse(sources: &Sources, files: &[FileId]) -> (Document, Diagnostics) {
    parse_with(sources, files, &InTurn)
}

/// Parses the files; the workers read the pieces of large files.
pub fn parse_with(
    sources: &Sources,
    files: &[FileId],
    workers: &dyn Workers,
) -> (Document, Diagnostics) {
    let texts: Vec<(FileId, &Source)> =
        files.iter().filter_map(|file| Some((*file, sources.get(*file)?))).collect();
    let bytes: usize = texts.iter().map(|(_, source)| source.text.len()).sum();
    if bytes > BYTES_MAX {
        let document = Document { torn: true, ..Document::default() };
        return (document, Diagnostics::from_iter([say::too_large(bytes, BYTES_MAX)]));
    }
    // If the pieces of a file leave something open, the parser of whole files decides.
    let read = read(&texts, true, workers).or_else(|| read(&texts, false, workers));
    let (document, diagnostics) = read.unwrap_or_default();
    match required_version::check(&document) {
        Some(refused) => (Document { torn: true, ..document }, Diagnostics::from_iter([refused])),
        None => (document, diagnostics),
    }
}

/// Returns the mistakes of a file as TOML, without regard to its meaning.
pub fn toml_mistakes(sources: &Sources, file: FileId) -> Diagnostics {
    let mut found = Found::default();
    let Some(source) = sources.get(file) else { return Diagnostics::new() };
    for piece in pieces(&[(file, source)], false, &mut found) {
        let (_, errors) = DeTable::parse_recoverable(&piece.source.text);
        syntax::report(file, source, &errors, &mut found.diagnostics);
    }
    found.diagnostics
}

/// Reads the files, in pieces if `in_pieces` is true: the parser then needs little memory, which saves most
/// of its time. None if pieces are not enough to judge a file.
fn read(
    texts: &[(FileId, &Source)],
    in_pieces: bool,
    workers: &dyn Workers,
) -> Option<(Document, Diagnostics)> {
    let mut found = Found::default();
    let pieces = pieces(texts, in_pieces, &mut found);
    let parts = work::map(workers, pieces.len(), |at| pieces[at].read());
    // A list that grows step by step would be copied often.
    found.resources.reserve(parts.iter().flatten().map(|part| part.resources.len()).sum());
    for part in parts {
        found.join(part?);
    }
    let (document, diagnostics, repeated) = found.into_document();
    (!in_pieces || !repeated).then_some((document, diagnostics))
}

/// A file, or a piece of one.
struct Piece<'a> {
    file: File<'a>,
    source: &'a Source,
    end: usize,
    is_whole: bool,
}

/// Returns the pieces to read; files that are refused are left out.
fn pieces<'a>(
    texts: &[(FileId, &'a Source)],
    in_pieces: bool,
    found: &mut Found,
) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut values = 0;
    for &(id, source) in texts {
        let mut scan = syntax::scan(&source.text);
        values += scan.values;
        let refused = if let Some(at) = scan.too_deep {
            Some(say::too_deep(syntax::place(id, at), super::NESTING_MAX))
        } else if values > VALUES_MAX {
            Some(say::too_many_values(&source.path, VALUES_MAX))
        } else {
            None
        };
        if let Some(diagnostic) = refused {
            found.torn = true;
            found.diagnostics.push(diagnostic);
            continue;
        }
        if !in_pieces {
            scan.cuts.clear();
        }
        let is_whole = scan.cuts.is_empty();
        let ends = scan.cuts.iter().copied().chain([source.text.len()]);
        let starts = std::iter::once(0).chain(scan.cuts.iter().copied());
        pieces.extend(starts.zip(ends).map(|(start, end)| {
            let file = File { id, text: &source.text, start };
            Piece { file, source, end, is_whole }
        }));
    }
    pieces
}

impl Piece<'_> {
    /// Reads the piece; returns `None` if a piece of a file is not enough to judge it.
    fn read(&self) -> Option<Found> {
        let Self { file, source, end, is_whole } = *self;
        let mut reader = Reader::default();
        let (root, errors) = DeTable::parse_recoverable(&file.text[file.start..end]);
        if !errors.is_empty() {
            if !is_whole {
                return None;
            }
            let diagnostics = &mut reader.found.diagnostics;
            reader.found.torn = syntax::report(file.id, source, &errors, diagnostics);
        }
        root.get_ref().iter().for_each(|pair| reader.top(file, pair));
        Some(reader.found)
    }
}

/// A key and its value, as the TOML parser gives them.
type Pair<'t, 'i> = (&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>);

/// The tables that have been read so far.
#[derive(Default)]
struct Reader {
    found: Found,
    /// The names of attributes and types; they are few, and each is used often, so they are shared.
    names: BTreeSet<Name>,
}

impl File<'_> {
    fn key(self, key: &Spanned<DeString<'_>>) -> Span {
        self.span(key.span())
    }

    fn has_header(self, value: &Spanned<DeValue<'_>>) -> bool {
        let first = self.text.as_bytes().get(value.span().start + self.start);
        matches!(value.get_ref(), DeValue::Table(_)) && first == Some(&b'[')
    }

    /// Returns the header of a table, brackets included; the key if the table has no header.
    fn header(self, (key, value): Pair<'_, '_>) -> Span {
        if self.has_header(value) { self.span(value.span()) } else { self.key(key) }
    }
}

impl Reader {
    /// Records the header of a table above blocks.
    fn above(&mut self, file: File<'_>, name: String, value: &Spanned<DeValue<'_>>) {
        if file.has_header(value) {
            self.found.headers.push((file.id, name));
        }
    }

    /// Returns true if the line of a place was reported as unreadable.
    fn is_on_a_bad_line(&self, file: File<'_>, at: Span) -> bool {
        let line = |at: Span| syntax::line_start(file.text, at.start as usize);
        let said = self.found.diagnostics.iter().filter_map(|known| known.span);
        said.filter(|known| known.file == at.file).any(|known| line(known) == line(at))
    }

    fn top(&mut self, file: File<'_>, pair: Pair<'_, '_>) {
        let (key, value) = pair;
        let name = &**key.get_ref();
        if keys::table(name).is_none() {
            let at = file.header(pair);
            // If a header cannot be read, the keys of its table seem to belong to the table before it.
            if self.found.torn && self.is_on_a_bad_line(file, at) {
                return;
            }
            return self.found.diagnostics.push(say::unknown_table(name, at, keys::tables()));
        }
        if keys::table(name).is_some_and(|form| form.header == keys::Header::List) {
            return self.list(file, name, pair);
        }
        let DeValue::Table(table) = value.get_ref() else {
            let form = match name {
                "local" | "plumb" | "state" => format!("[{name}]"),
                "data" | "resource" => format!("[{name}.TYPE.NAME]"),
                _ => format!("[{name}.NAME]"),
            };
            return self.found.diagnostics.push(say::not_a_block(name, &form, file.header(pair)));
        };
        self.above(file, name.to_owned(), value);
        match name {
            "local" => self.locals(file, table),
            "data" => table.iter().for_each(|pair| self.typed(file, "data", pair)),
            "resource" => table.iter().for_each(|pair| self.typed(file, "resource", pair)),
            "plumb" | "state" => self.single(file, name, pair, table),
            kind => table.iter().for_each(|pair| self.named(file, kind, pair)),
        }
    }

    /// Reads `[plumb]` and `[state]`.
    fn single(&mut self, file: File<'_>, kind: &str, pair: Pair<'_, '_>, table: &DeTable<'_>) {
        let block = self.block(file, kind, file.header(pair), table);
        let blocks = match kind {
            "plumb" => &mut self.found.plumb,
            _ => &mut self.found.state,
        };
        blocks.push(((), block));
    }

    /// Reads `[[import]]`, `[[moved]]` and `[[removed]]`, of which there may be several.
    fn list(&mut self, file: File<'_>, kind: &str, pair: Pair<'_, '_>) {
        let form = &format!("[[{kind}]]");
        let DeValue::Array(blocks) = pair.1.get_ref() else {
            let at = file.header(pair);
            return self.found.diagnostics.push(say::not_a_block(kind, form, at));
        };
        for block in blocks {
            let at = file.span(block.span());
            let DeValue::Table(table) = block.get_ref() else {
                self.found.diagnostics.push(say::not_a_block(kind, form, at));
                continue;
            };
            let block = self.block(file, kind, at, table);
            let blocks = match kind {
                "moved" => &mut self.found.moved,
                "removed" => &mut self.found.removed,
                _ => &mut self.found.imports,
            };
            blocks.push(block);
        }
    }

    fn locals(&mut self, file: File<'_>, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = &**key.get_ref();
            if !self.good_name("local value", name, file.key(key)) {
                continue;
            }
            let item = self.item(file, (key, value), Text::Template);
            self.found.locals.push((Name::from(name), item));
        }
    }

    /// Reads `[variable.NAME]`, `[provider.NAME]`, `[output.NAME]`, `[check.NAME]`, `[module.NAME]`,
    /// `[policy.NAME]`.
    fn named(&mut self, file: File<'_>, kind: &str, pair: Pair<'_, '_>) {
        let (key, value) = pair;
        let name = &**key.get_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let (path, form) = (format!("{kind}.{name}"), format!("[{kind}.NAME]"));
            return self.found.diagnostics.push(say::not_a_block(&path, &form, file.header(pair)));
        };
        if !self.good_name(kind, name, file.key(key)) {
            return;
        }
        let block = self.block(file, kind, file.header(pair), table);
        let blocks = match kind {
            "variable" => &mut self.found.variables,
            "provider" => &mut self.found.providers,
            "output" => &mut self.found.outputs,
            "module" => &mut self.found.modules,
            "policy" => &mut self.found.policies,
            _ => &mut self.found.checks,
        };
        blocks.push((Name::from(name), block));
    }

    /// Reads `[resource.TYPE.…]` and `[data.TYPE.…]`.
    fn typed(&mut self, file: File<'_>, kind: &str, pair: Pair<'_, '_>) {
        let (key, value) = pair;
        let name = &**key.get_ref();
        let DeValue::Table(table) = value.get_ref() else {
            return self.not_typed(kind, name, file.header(pair));
        };
        if RESERVED_TYPES.contains(&name) {
            return self.found.diagnostics.push(say::reserved_type(name, file.key(key)));
        }
        if !self.good_name("resource type", name, file.key(key)) {
            return;
        }
        self.above(file, format!("{kind}.{name}"), value);
        let ty = self.intern(name);
        for pair in table {
            self.typed_block(file, (kind, &ty), pair);
        }
    }

    fn typed_block(&mut self, file: File<'_>, (kind, ty): (&str, &Name), pair: Pair<'_, '_>) {
        let (key, value) = pair;
        let name = &**key.get_ref();
        let DeValue::Table(table) = value.get_ref() else {
            return self.not_typed(kind, &format!("{ty}.{name}"), file.header(pair));
        };
        if !self.good_name(kind, name, file.key(key)) {
            return;
        }
        let block = self.block(file, kind, file.header(pair), table);
        match kind {
            "data" => self.found.data.push((Block::data(ty.clone(), name), block)),
            _ => self.found.resources.push((Block::new(ty.clone(), name), block)),
        }
    }

    fn not_typed(&mut self, kind: &str, name: &str, at: Span) {
        let (path, form) = (format!("{kind}.{name}"), format!("[{kind}.TYPE.NAME]"));
        self.found.diagnostics.push(say::not_a_block(&path, &form, at));
    }

    fn block(&mut self, file: File<'_>, kind: &str, header: Span, table: &DeTable<'_>) -> RawBlock {
        let closed = keys::table(kind).filter(|form| !form.is_open);
        let mut items = Table::with_capacity(table.len());
        for (key, value) in table {
            let name = &**key.get_ref();
            if let Some(form) = closed.filter(|form| !keys::has(form.keys, name)) {
                let (at, known) = (file.key(key), keys::names(form.keys));
                self.found.diagnostics.push(say::unknown_key(name, form.one, at, &known));
                continue;
            }
            let text = match (kind, name) {
                ("check" | "policy", "assert") => Text::Expression,
                ("variable", "validation") | ("output", "precondition") => Text::Conditions,
                ("resource" | "data", "lifecycle") => Text::Lifecycle,
                _ => Text::Template,
            };
            let item = self.item(file, (key, value), text);
            items.insert(self.intern(name), item);
        }
        RawBlock { header, items }
    }

    fn item(&mut self, file: File<'_>, (key, value): Pair<'_, '_>, text: Text) -> Item {
        let mut converter = Converter {
            file,
            files: &mut self.found.files,
            diagnostics: &mut self.found.diagnostics,
            broken: false,
        };
        let value = converter.value(value, text);
        if converter.broken {
            self.found.broken.insert(value.span);
        }
        Item { key: file.key(key), value }
    }

    fn good_name(&mut self, what: &str, name: &str, at: Span) -> bool {
        let good = is_name(name);
        if !good {
            self.found.diagnostics.push(say::bad_name(what, name, at));
        }
        good
    }

    fn intern(&mut self, name: &str) -> Name {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let name = Name::from(name);
        self.names.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests;
