//! The text of a file as an editor has it: places in UTF-16, and the TOML around the cursor, however broken.

pub(crate) mod cursor;
pub(crate) mod inside;
pub(crate) mod outline;
pub(crate) mod reference;

use std::ops::Range;
use std::sync::Arc;

use lsp_types::{Position, TextDocumentContentChangeEvent};

/// A text with the places where its lines begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    content: Arc<str>,
    line_starts: Vec<usize>,
}

impl Text {
    pub(crate) fn new(content: impl Into<Arc<str>>) -> Self {
        let content = content.into();
        let newlines = content.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(newlines).collect();
        Self { content, line_starts }
    }

    pub(crate) fn content(&self) -> &Arc<str> {
        &self.content
    }

    /// The byte at a position; the nearest one where there is no such position.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.line_starts.get(line) else { return self.content.len() };
        let end = self.line_starts.get(line + 1).map_or(self.content.len(), |next| next - 1);
        let mut units = position.character as usize;
        for (at, c) in self.content[start..end].char_indices() {
            if units < c.len_utf16() {
                return start + at;
            }
            units -= c.len_utf16();
        }
        end
    }

    /// The position of a byte; of the last one where the text is shorter.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.content.len());
        let line = self.line_starts.partition_point(|start| *start <= offset) - 1;
        let start = self.line_starts[line];
        let before = self.content.get(start..offset).unwrap_or_default();
        let units: usize = before.chars().map(char::len_utf16).sum();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Position { line: number(line), character: number(units) }
    }

    pub(crate) fn range(&self, range: Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(range.start), end: self.position(range.end) }
    }

    /// With a change that the editor made.
    pub(crate) fn changed(&self, change: TextDocumentContentChangeEvent) -> Self {
        let Some(range) = change.range else { return Self::new(change.text) };
        let (start, end) = (self.offset(range.start), self.offset(range.end));
        let (start, end) = (start.min(end), start.max(end));
        let mut content = String::with_capacity(self.content.len() + change.text.len());
        content.push_str(&self.content[..start]);
        content.push_str(&change.text);
        content.push_str(&self.content[end..]);
        Self::new(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn positions_count_utf16_units() {
        let text = Text::new("a = \"é😀x\"\r\nb = 1");
        for (offset, position) in [(0, at(0, 0)), (7, at(0, 6)), (11, at(0, 8)), (15, at(1, 0))] {
            assert_eq!(text.position(offset), position);
            assert_eq!(text.offset(position), offset);
        }
        // Inside of a character, behind a line, behind the text.
        assert_eq!(text.offset(at(0, 7)), 7);
        assert_eq!(text.offset(at(0, 99)), 14);
        assert_eq!(text.offset(at(9, 0)), text.content().len());
        assert_eq!(text.position(999), at(1, 5));
    }

    #[test]
    fn changes_are_whole_or_of_a_range() {
        let change = |range, text: &str| TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.to_owned(),
        };
        let range = |start, end| Some(lsp_types::Range { start, end });
        let text = Text::new("a = 1\nb = 2\n");
        let text = text.changed(change(range(at(0, 4), at(1, 3)), "😀"));
        assert_eq!(&**text.content(), "a = 😀 2\n");
        let text = text.changed(change(range(at(0, 6), at(9, 9)), "\nx"));
        assert_eq!((&**text.content(), text.offset(at(1, 1))), ("a = 😀\nx", 10));
        // An editor that says an end before the start, or a place that is not there.
        let text = text.changed(change(range(at(1, 1), at(1, 0)), "y"));
        assert_eq!(&**text.content(), "a = 😀\ny");
        assert_eq!(&**text.changed(change(None, "z")).content(), "z");
    }
}
