//! Errors of the TOML parser as diagnostics.
//!
//! The parser reports only the second place of a duplicate. The first place is searched in the text here,
//! because this case is rare.

use std::collections::BTreeSet;

use super::diagnostics as say;
use super::{NESTING_MAX, span};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, Source, Span};

/// A place in a text, in bytes.
type Place = std::ops::Range<usize>;

/// The number of errors of one file that are shown.
const ERRORS_MAX: usize = 50;

/// The least length of a piece of a file, in bytes.
const PIECE_MIN: usize = 64 * 1024;

/// The result of a walk over the bytes of a file before the parser runs.
pub(super) struct Scan {
    /// The first place where brackets are nested deeper than [`NESTING_MAX`]; none if there is none.
    pub(super) too_deep: Option<usize>,
    /// The approximate number of values: each needs far more memory than its text.
    pub(super) values: usize,
    /// The places at which the file may be cut: headers of blocks, with some distance between them.
    pub(super) cuts: Vec<usize>,
}

/// Scans a file before it is parsed, so that a hostile text costs no more than one pass.
pub(super) fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let mut scan = Scan { too_deep: None, values: 0, cuts: Vec::new() };
    let (mut at, mut depth, mut last_cut, mut only_headers) = (0, 0_usize, 0, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'[' if depth == 0 && (at == 0 || bytes[at - 1] == b'\n') => {
                only_headers.get_or_insert(true);
                if at - last_cut >= PIECE_MIN && is_block_header(&text[at..]) {
                    scan.cuts.push(at);
                    last_cut = at;
                }
                depth += 1;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => at = comment_end(bytes, at),
            b'"' | b'\'' => at = string_end(bytes, at),
            // A key before any header may open any table, so no piece can be read on its own.
            b'=' => {
                only_headers.get_or_insert(false);
                scan.values += 1;
            }
            b',' => scan.values += 1,
            _ => {}
        }
        if depth > NESTING_MAX {
            scan.too_deep = Some(at);
            return scan;
        }
        at += 1;
    }
    if only_headers != Some(true) {
        scan.cuts.clear();
    }
    scan
}

/// Returns true if a line opens a block itself, not a table inside one.
fn is_block_header(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let plain = |byte| is_name_byte(byte) || byte == b'.';
    let parts = name.bytes().filter(|byte| *byte == b'.').count() + 1;
    let wanted = match name.split('.').next() {
        Some("resource") => 3,
        Some("variable" | "provider" | "output" | "check" | "policy") => 2,
        _ => return false,
    };
    name.bytes().all(plain) && parts == wanted
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| start + end)
}

/// Returns the last byte of the string that begins at `start`; a single-line string ends with its line.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let long = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if long { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' if quote == b'"' => at += 1,
            b'\n' if !long => return at,
            byte if byte == quote && !long => return at,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 2,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Turns the parser's errors for one file into diagnostics. Returns true if something could not be read; a
/// duplicate could.
pub(super) fn report(
    file: FileId,
    source: &Source,
    errors: &[toml::de::Error],
    diagnostics: &mut Diagnostics,
) -> bool {
    let text = &*source.text;
    let (mut torn, mut again, mut lines) = (false, None, BTreeSet::new());
    // The parser finds errors in several passes, so they need sorting.
    let mut errors: Vec<_> = errors.iter().collect();
    errors.sort_by_key(|error| error.span().map(|range| range.start));
    for error in errors.iter().take(ERRORS_MAX) {
        let range = error.span().unwrap_or(0..0);
        let is_duplicate = error.message() == "duplicate key";
        torn |= !is_duplicate;
        // For the parser, one mistake in a line is often several.
        if !is_duplicate && error.span().is_some() && !lines.insert(line_start(text, range.start)) {
            continue;
        }
        if !is_duplicate && is_hcl(line_of(text, range.start)) {
            // The rest of such a file is not TOML either.
            let line = line_start(text, range.start);
            let end = line + line_of(text, range.start).trim_end().len();
            diagnostics.push(say::hcl(span(file, line..end)));
            return true;
        }
        if is_duplicate && is_header(text, range.start) {
            again = Some(range.start);
            diagnostics.push(duplicate_header(file, text, range));
        } else if !is_duplicate {
            diagnostics.push(mistake(file, text, error));
        } else if !again.is_some_and(|start| same_block(text, start, range.start)) {
            // Without this, the parser merges two blocks and reports their keys as duplicates.
            diagnostics.push(duplicate_key(file, text, range));
        }
    }
    if errors.len() > ERRORS_MAX {
        torn = true;
        diagnostics.push(say::more_errors(&source.path, errors.len() - ERRORS_MAX));
    }
    torn
}

fn mistake(file: FileId, text: &str, error: &toml::de::Error) -> Diagnostic {
    let at = error.span().map(|range| span(file, range));
    match (error.message(), at) {
        ("recursion limit", _) => say::key_too_deep(long_key(file, text)),
        ("cannot recurse further; max recursion depth met", Some(at)) => {
            say::too_deep(at, NESTING_MAX)
        }
        (message, Some(at)) if cuts_expression(text, at) => {
            say::syntax(Some(at), message).help(say::QUOTES_HELP)
        }
        (message, Some(at)) => match bare_reference(text, at.start as usize) {
            Some(range) => say::bare_reference(span(file, range.clone()), &text[range]),
            None => say::syntax(Some(at), message),
        },
        (message, None) => say::syntax(None, message),
    }
}

/// Returns true if a line opens a block of HCL: `resource "type" "name" {`.
fn is_hcl(line: &str) -> bool {
    const BLOCKS: [&str; 12] = [
        "check",
        "data",
        "import",
        "locals",
        "module",
        "moved",
        "output",
        "provider",
        "removed",
        "resource",
        "terraform",
        "variable",
    ];
    let line = line.split('#').next().unwrap_or_default().trim();
    let Some(opened) = line.strip_suffix('{') else { return false };
    let mut words = opened.split_whitespace();
    let is_label = |word: &str| word.len() > 1 && word.starts_with('"') && word.ends_with('"');
    words.next().is_some_and(|word| BLOCKS.contains(&word)) && words.all(is_label)
}

/// Returns the reference in a line such as `template_id = template.worker.id`: names with dots between them.
fn bare_reference(text: &str, at: usize) -> Option<std::ops::Range<usize>> {
    let line = line_of(text, at);
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?;
    let start = line_start(text, at) + key.len() + 1 + (value.len() - value.trim_start().len());
    let value = value.trim();
    let mut parts = value.split('.');
    let is_name = |part: &str| {
        let name = part.split('[').next().unwrap_or_default();
        !name.is_empty()
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(is_name_byte)
    };
    let is_reference = parts.clone().count() > 1 && parts.all(is_name);
    is_reference.then_some(start..start + value.len())
}

/// Returns the line around a place, without its line break.
fn line_of(text: &str, at: usize) -> &str {
    text.get(line_start(text, at)..).and_then(|rest| rest.lines().next()).unwrap_or_default()
}

/// Returns true if the line begins an expression, and a quote inside it has ended its string.
fn cuts_expression(text: &str, at: Span) -> bool {
    let at = at.start as usize;
    let before = text.get(line_start(text, at)..at).unwrap_or_default();
    before.rfind("${").is_some_and(|start| {
        let rest = &before[start..];
        rest.contains('"') && !rest.contains('}')
    })
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

fn is_header(text: &str, at: usize) -> bool {
    text.get(line_start(text, at)..at).is_some_and(|before| before.trim_start().starts_with('['))
}

/// Returns true if no header stands between the header line at `header` and `at`.
fn same_block(text: &str, header: usize, at: usize) -> bool {
    header < at
        && text.get(header..at).is_some_and(|between| {
            between.split('\n').skip(1).all(|line| !line.trim_start().starts_with('['))
        })
}

/// A header line without brackets, blanks and comment.
fn header_name(line: &str) -> Option<String> {
    let inner = line.trim_start().strip_prefix('[')?.trim_start_matches('[');
    let (name, _) = inner.split_once(']')?;
    Some(name.split('.').map(str::trim).collect::<Vec<_>>().join("."))
}

/// Returns the error about a table that exists already; the parser gives the place of the last part of its
/// name.
fn duplicate_header(file: FileId, text: &str, range: Place) -> Diagnostic {
    let start = line_start(text, range.start);
    let line = text[start..].lines().next().unwrap_or_default();
    let name = header_name(line).unwrap_or_default();
    let own = header_place(line, start);
    let first = first_header(text, start, &name);
    let first = first.map(|first| span(file, first));
    say::declared_twice(&format!("`{}`", say::shown(&name)), span(file, own), first)
}

/// Returns the place of the header in a line that begins at `start`.
fn header_place(line: &str, start: usize) -> Place {
    // A comment after the header may contain other brackets.
    let end = line.find(']').map_or(line.len(), |end| end + 1);
    start + (line.len() - line.trim_start().len())..start + end
}

/// Returns the first place before `end` that declares the table `name`.
fn first_header(text: &str, end: usize, name: &str) -> Option<Place> {
    let mut start = 0;
    for line in text[..end].split_inclusive('\n') {
        if line.trim_start().starts_with('[') && header_name(line).as_deref() == Some(name) {
            return Some(header_place(line, start));
        }
        start += line.len();
    }
    // There is no such table, so it may be a key of the table around it.
    let (parent, key) = name.rsplit_once('.')?;
    let (mut inside, mut start) = (false, 0);
    for line in text[..end].split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            inside = header_name(line).as_deref() == Some(parent);
        } else if let Some(place) = key_of_line(line, key).filter(|_| inside) {
            return Some(place.start + start..place.end + start);
        }
        start += line.len();
    }
    None
}

/// Returns the error about a key that its table has already. The first one is searched in the lines before
/// it.
fn duplicate_key(file: FileId, text: &str, range: Place) -> Diagnostic {
    let key = text.get(range.clone()).unwrap_or_default();
    let mut end = line_start(text, range.start);
    let mut first = None;
    while let Some(before) = text.get(..end.saturating_sub(1)).filter(|_| end > 0) {
        let start = line_start(before, before.len());
        let line = &before[start..];
        if let Some(place) = key_of_line(line, key) {
            first = Some(place.start + start..place.end + start);
        }
        if line.trim_start().starts_with('[') {
            break;
        }
        end = start;
    }
    let what = format!("`{}`", say::shown(key));
    say::declared_twice(&what, span(file, range), first.map(|range| span(file, range)))
}

/// Returns the place of the key in a line that gives it a value.
fn key_of_line(line: &str, key: &str) -> Option<Place> {
    let word = line.trim_start();
    let rest = word.strip_prefix(key)?.trim_start();
    let start = line.len() - word.len();
    rest.starts_with(['=', '.']).then(|| start..start + key.len())
}

/// Returns the line of the key that has too many parts; the parser does not give its place.
fn long_key(file: FileId, text: &str) -> Option<Span> {
    const PARTS_MAX: usize = 80;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let key = line.split('=').next().unwrap_or_default();
        if key.bytes().filter(|byte| *byte == b'.').count() >= PARTS_MAX {
            return Some(span(file, offset..offset + key.trim_end().len()));
        }
        offset += line.len();
    }
    None
}

/// The place of one byte.
pub(super) fn place(file: FileId, at: usize) -> Span {
    span(file, at..at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings_and_comments() {
        let deep = "[".repeat(NESTING_MAX + 1);
        assert_eq!(scan(&format!("a = {deep}")).too_deep, Some(4 + NESTING_MAX));
        for quiet in [
            format!("# {deep}\na = 1"),
            format!("a = '{deep}'"),
            format!("a = \"\\\"{deep}\""),
            format!("a = \"\"\"\\\"\"\" {deep}\"\"\""),
            format!("a = '''\n'{deep}'''"),
            "[a]\n".repeat(1000),
            format!("a = {}", "[".repeat(NESTING_MAX)),
        ] {
            assert_eq!(scan(&quiet).too_deep, None, "{quiet}");
        }
        // An unclosed string ends with its line.
        assert!(scan(&format!("a = \"x\nb = {deep}")).too_deep.is_some());
    }

    #[test]
    fn files_are_cut_only_at_blocks() {
        let filler = "# comment\n".repeat(PIECE_MIN / 10 + 1);
        let cuts = |first: &str, header: &str| {
            scan(&format!("{first}\n{filler}{header}\nx = 1\n")).cuts.len()
        };
        for header in ["[resource.value.a]", "[variable.x] # why", "[check.a-b]"] {
            assert_eq!(cuts("[local]", header), 1, "{header}");
            assert_eq!(cuts("x.y = 1", header), 0, "{header}");
            assert_eq!(cuts("[local]\nx = \"\"\"", header), 0, "{header}");
            assert_eq!(cuts("[local]\nx = [", header), 0, "{header}");
        }
        for header in [
            "[local]",
            "[resource.value.a.b]",
            "[[variable.x]]",
            "[resource.value.\"a\"]",
            "[zzz.a]",
        ] {
            assert_eq!(cuts("[local]", header), 0, "{header}");
        }
    }
}
