//! The place of the cursor in a TOML text.

use std::ops::{ControlFlow, Range};

use super::inside;
use super::outline::{Part, Segment, line_end, scan, segments};

/// The place of the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The path of the table that the cursor is in: its header, and the keys of tables inside.
    pub(crate) table: Vec<String>,
    /// The keys that this table has beside the one at the cursor, as far as they are found.
    pub(crate) given: Vec<String>,
    /// The keys below the header.
    pub(crate) header_keys: Vec<String>,
    /// The part of the table at the cursor.
    pub(crate) place: Place,
}

/// A part of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// A comment, or nothing.
    #[default]
    Nothing,
    /// A header, up to the word at the cursor, which may be empty.
    Header(Vec<Segment>),
    /// A key, or a place for one.
    Key(Range<usize>),
    /// The value of a key, outside of a text.
    Value { key: String, word: Range<usize> },
    /// The text of a value, without its quotes.
    Text { key: String, content: Range<usize>, is_basic: bool },
}

/// The place of an offset in a text.
pub(crate) fn cursor(text: &str, offset: usize) -> Cursor {
    let mut found = Finder { text, offset, cursor: None, header: None, given: Vec::new() };
    scan(text, &mut |part| found.part(part));
    found.into_cursor()
}

struct Finder<'t> {
    text: &'t str,
    offset: usize,
    cursor: Option<Cursor>,
    /// The last header before the cursor.
    header: Option<Range<usize>>,
    /// The keys below it.
    given: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn part(&mut self, part: Part) -> ControlFlow<()> {
        let offset = self.offset;
        match part {
            Part::Header { inside, end, .. } => {
                if inside.start > offset {
                    return ControlFlow::Break(());
                }
                self.given.clear();
                self.cursor = None;
                if offset <= inside.end {
                    self.cursor = Some(in_header(self.text, &inside, offset));
                    return ControlFlow::Break(());
                }
                if offset <= end {
                    // Between the brackets.
                    self.cursor = Some(Cursor::default());
                    return ControlFlow::Break(());
                }
                self.header = Some(inside);
            }
            Part::Pair { key, value } => {
                if (key.start..=key.end).contains(&offset) {
                    self.cursor = Some(in_key(self.text, &key, offset));
                    return ControlFlow::Continue(());
                }
                if let Some(value) =
                    value.filter(|value| (value.start..=value.end).contains(&offset))
                {
                    self.cursor = Some(in_value(self.text, &key, &value, offset));
                }
                self.given.push(key);
            }
        }
        ControlFlow::Continue(())
    }

    fn into_cursor(self) -> Cursor {
        let mut cursor = self.cursor.unwrap_or_else(|| between(self.text, self.offset));
        if matches!(cursor.place, Place::Header(_)) {
            return cursor;
        }
        let header = self.header.map(|inside| names(segments(self.text, inside)));
        let first = |key| segments(self.text, key).into_iter().next();
        let keys: Vec<String> =
            self.given.into_iter().filter_map(first).map(|it| it.name).collect();
        let is_own = cursor.table.is_empty();
        cursor.table = [header.unwrap_or_default(), cursor.table].concat();
        if is_own && matches!(cursor.place, Place::Key(_)) {
            cursor.given.clone_from(&keys);
        }
        cursor.header_keys = keys;
        cursor
    }
}

fn names(segments: Vec<Segment>) -> Vec<String> {
    segments.into_iter().map(|segment| segment.name).collect()
}

fn in_header(text: &str, inside: &Range<usize>, offset: usize) -> Cursor {
    let mut path = segments(text, inside.clone());
    let here = path.iter().position(|segment| offset <= segment.range.end);
    path.truncate(here.map_or(path.len(), |here| here + 1));
    Cursor { place: Place::Header(path), ..Cursor::default() }
}

/// In the key of a line; the names before its dots are tables.
fn in_key(text: &str, key: &Range<usize>, offset: usize) -> Cursor {
    let mut path = segments(text, key.clone());
    let here = path.iter().position(|it| offset <= it.range.end).unwrap_or(path.len() - 1);
    path.truncate(here + 1);
    let word = path.pop().map_or(offset..offset, |segment| segment.range);
    Cursor { table: names(path), place: Place::Key(word), ..Cursor::default() }
}

fn in_value(text: &str, key: &Range<usize>, value: &Range<usize>, offset: usize) -> Cursor {
    let mut path = names(segments(text, key.clone()));
    let key = path.pop().unwrap_or_default();
    let inner = inside::locate(text, value.start, offset, key);
    Cursor { table: [path, inner.table].concat(), ..inner }
}

/// On a line of its own: a place for a key, or a comment.
fn between(text: &str, offset: usize) -> Cursor {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..line_end(text.as_bytes(), start)];
    let is_free = line.trim().is_empty();
    let place = if is_free { Place::Key(offset..offset) } else { Place::Nothing };
    Cursor { place, ..Cursor::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor at the mark `|`, on one line.
    fn at(marked: &str) -> String {
        let offset = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let Cursor { table, given, place, .. } = cursor(&text, offset);
        let shown = match place {
            Place::Nothing => "nothing".to_owned(),
            Place::Header(path) => {
                let path: Vec<_> = path.iter().map(|it| &*it.name).collect();
                format!("header {path:?}")
            }
            Place::Key(word) => format!("key <{}> beside {given:?}", &text[word]),
            Place::Value { key, word } => format!("value of {key} <{}>", &text[word]),
            Place::Text { key, content, is_basic } => {
                let kind = if is_basic { "basic" } else { "literal" };
                format!("{kind} text of {key} <{}>", &text[content])
            }
        };
        format!("{} {shown}", table.join("."))
    }

    #[test]
    fn headers() {
        assert_eq!(at("[res|"), r#" header ["res"]"#);
        assert_eq!(at("[resource.|]\nx = 1"), r#" header ["resource", ""]"#);
        assert_eq!(at("[resource.end|point.chat]"), r#" header ["resource", "endpoint"]"#);
        assert_eq!(at("[[imp|ort]]"), r#" header ["import"]"#);
        assert_eq!(at("[a] # x|"), "a nothing");
    }

    #[test]
    fn keys() {
        assert_eq!(at("[a.b]\nx = 1\n|\ny = 2\n[c]\nz = 1"), r#"a.b key <> beside ["x", "y"]"#);
        assert_eq!(at("[a]\nna|me\ny = 2"), r#"a key <name> beside ["y"]"#);
        assert_eq!(at("na|"), " key <na> beside []");
        assert_eq!(at("[a]\nl.re| = 1"), "a.l key <re> beside []");
        assert_eq!(at("[a]\nl = { re|, b = 1 }"), "a.l key <re> beside []");
        assert_eq!(at("[a]\nl = { b = 1, | }"), r#"a.l key <> beside ["b"]"#);
        assert_eq!(at("[a]\nl = [{ b = { c = 1 }, d| }]"), r#"a.l key <d> beside ["b"]"#);
        assert_eq!(at("# |\n[a]"), " nothing");
    }

    #[test]
    fn values_and_texts() {
        assert_eq!(at("[a]\nx = tr|"), "a value of x <tr>");
        assert_eq!(at("[a]\nx = |\ny = 1"), "a value of x <>");
        assert_eq!(at("[a]\nx = 1 # |"), "a nothing");
        assert_eq!(at("[a]\nx = \"${va|"), "a basic text of x <${va>");
        assert_eq!(at("[a]\nx = \"${va|}\" # y"), "a basic text of x <${va}>");
        assert_eq!(at("[a]\nx.y = { z = ['q', 'u|'] }"), "a.x.y literal text of z <u>");
        assert_eq!(at("[a]\nx = '''\nu|\n''' "), "a literal text of x <\nu\n>");
        assert_eq!(at("[a]\nx = \"\"|"), "a value of x <>");
        assert_eq!(at("[a]\nx = [\n  \"b\",\n  \"c|"), "a basic text of x <c>");
    }

    #[test]
    fn any_place_of_any_text_is_some_place() {
        let texts =
            ["[a.\"b\"]\nx = { y = \"${é}\", z = [1, '''\n", "]=\"[{'#\\\n.\n\"\"\"😀", "a=\"\\"];
        for text in texts {
            for offset in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                drop(cursor(text, offset));
            }
        }
    }
}
