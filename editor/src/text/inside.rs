//! The place of the cursor inside a value: of its lists, tables and texts, which may not be closed yet.

use super::cursor::{Cursor, Place};
use super::outline::{is_quote, line_end, string_end};

/// A list or a table that is open.
struct Frame {
    is_table: bool,
    /// The key whose value is being read; none in a list, and before a key's `=`.
    key: Option<String>,
    /// The place where the next key begins.
    key_start: usize,
    given: Vec<String>,
}

/// The place of an offset in a value of a key that begins at `start`.
pub(super) fn locate(text: &str, start: usize, offset: usize, key: String) -> Cursor {
    let mut walk = Walk { text, key, frames: Vec::new() };
    let bytes = text.as_bytes();
    let mut at = start;
    while at < offset {
        match bytes[at] {
            b'#' if line_end(bytes, at) >= offset => return Cursor::default(),
            b'#' => at = line_end(bytes, at),
            quote if is_quote(quote) => {
                let end = string_end(bytes, at);
                if let Some(place) = walk.in_string(at, end, offset) {
                    return walk.cursor(place);
                }
                at = end;
            }
            byte => {
                walk.step(byte, at);
                at += 1;
            }
        }
    }
    let place = walk.bare(offset);
    walk.cursor(place)
}

struct Walk<'t> {
    text: &'t str,
    key: String,
    frames: Vec<Frame>,
}

impl Walk<'_> {
    fn step(&mut self, byte: u8, at: usize) {
        match byte {
            b'{' | b'[' => self.frames.push(Frame {
                is_table: byte == b'{',
                key: None,
                key_start: at + 1,
                given: Vec::new(),
            }),
            b'}' | b']' => drop(self.frames.pop()),
            b',' => {
                if let Some(frame) = self.frames.last_mut().filter(|frame| frame.is_table) {
                    frame.given.extend(frame.key.take());
                    frame.key_start = at + 1;
                }
            }
            b'=' => {
                let text = self.text;
                let open = self.frames.last_mut().filter(|frame| frame.is_table);
                if let Some(frame) = open.filter(|frame| frame.key.is_none()) {
                    let key = text.get(frame.key_start..at).unwrap_or_default().trim();
                    frame.key = Some(key.trim_matches(['"', '\'']).to_owned());
                }
            }
            _ => {}
        }
    }

    /// Returns true where a key of a table may stand.
    fn wants_key(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.is_table && frame.key.is_none())
    }

    /// The name of the key whose value is being read.
    fn value_key(&self) -> String {
        let keys = self.frames.iter().rev().find_map(|frame| frame.key.clone());
        keys.unwrap_or_else(|| self.key.clone())
    }

    /// The place in a string, where the offset is in it.
    fn in_string(&self, start: usize, end: usize, offset: usize) -> Option<Place> {
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let quotes = if bytes[start..].starts_with(&[quote; 3]) { 3 } else { 1 };
        let is_closed = end - start >= 2 * quotes && bytes[..end].ends_with(&vec![quote; quotes]);
        let content = start + quotes..if is_closed { end - quotes } else { end };
        if !(content.start..=content.end).contains(&offset) {
            return None;
        }
        if self.wants_key() {
            return Some(Place::Key(start..end));
        }
        let key = self.value_key();
        Some(Place::Text { key, content, is_basic: quote == b'"' })
    }

    /// The place outside of a string.
    fn bare(&self, offset: usize) -> Place {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let before = &self.text[..offset];
        let start = before.trim_end_matches(is_word).len();
        let rest = &self.text[offset..];
        let end = offset + (rest.len() - rest.trim_start_matches(is_word).len());
        if self.wants_key() {
            return Place::Key(start..end);
        }
        Place::Value { key: self.value_key(), word: start..end }
    }

    /// The cursor at a place: tables around it are those whose keys have values that are tables.
    fn cursor(mut self, place: Place) -> Cursor {
        let is_key = matches!(place, Place::Key(_));
        let given = if is_key { self.frames.pop().map(|it| it.given) } else { None };
        let inner: Vec<String> = self.frames.iter_mut().filter_map(|it| it.key.take()).collect();
        let mut table = vec![self.key];
        table.extend(inner);
        if !is_key {
            // The last one is the key of the place itself.
            table.pop();
        }
        Cursor { table, given: given.unwrap_or_default(), place, ..Cursor::default() }
    }
}
