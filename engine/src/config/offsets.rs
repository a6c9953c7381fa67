//! The conversion of places in a decoded TOML string to places in its file.
//!
//! Expressions are parsed from decoded text. If a string has no escape, the two differ by a constant. Else
//! the raw text is walked once, and each place where the difference changes is kept.

use crate::expression::Range;

/// A map from offsets in a decoded string to offsets in the file.
#[derive(Debug)]
pub(super) struct Offsets {
    jumps: Vec<Jump>,
}

/// A change of the difference: from `decoded` on, the text continues at `after`; the text before ended at
/// `before`.
#[derive(Debug)]
struct Jump {
    decoded: u32,
    before: u32,
    after: u32,
}

impl Offsets {
    /// Builds the map from the raw text of a TOML string, quotes included, that begins at `start` in its file
    /// and was decoded to `decoded` bytes.
    pub(super) fn of(raw: &str, start: u32, decoded: usize) -> Self {
        let quotes = Quotes::of(raw);
        let first = start + number(quotes.opening);
        let mut map = Self { jumps: vec![Jump { decoded: 0, before: first, after: first }] };
        if raw.len() != quotes.opening + decoded + quotes.closing {
            map.add_escapes(raw, start, &quotes);
        }
        map
    }

    /// Returns the place in the file for a place in the decoded text.
    pub(super) fn place(&self, range: Range) -> Range {
        let start = self.start(range.start);
        Range { start, end: self.end(range.end).max(start) }
    }

    fn start(&self, offset: u32) -> u32 {
        let next = self.jumps.partition_point(|jump| jump.decoded <= offset);
        let jump = &self.jumps[next.saturating_sub(1)];
        jump.after + (offset - jump.decoded)
    }

    // Bytes that are skipped after the last byte do not belong to it.
    fn end(&self, offset: u32) -> u32 {
        let next = self.jumps.partition_point(|jump| jump.decoded < offset);
        match self.jumps.get(next) {
            Some(jump) if jump.decoded == offset => jump.before,
            _ => self.start(offset),
        }
    }

    fn add_escapes(&mut self, raw: &str, start: u32, quotes: &Quotes) {
        let (mut at, mut decoded) = (quotes.opening, 0);
        let end = raw.len().saturating_sub(quotes.closing);
        while let Some(run) = raw.get(at..end).filter(|rest| !rest.is_empty()) {
            let plain = run.find('\\').unwrap_or(run.len());
            at += plain;
            decoded += plain;
            let Some(escape) = raw.get(at..end).and_then(escape) else { break };
            self.jumps.push(Jump {
                decoded: number(decoded + escape.decoded),
                before: start + number(at + escape.own),
                after: start + number(at + escape.raw),
            });
            decoded += escape.decoded;
            at += escape.raw;
        }
    }
}

/// The lengths of a string's delimiters. A newline right after the opening one belongs to it.
struct Quotes {
    opening: usize,
    closing: usize,
}

impl Quotes {
    fn of(raw: &str) -> Self {
        if !raw.starts_with(r#"""""#) && !raw.starts_with("'''") {
            return Self { opening: 1, closing: 1 };
        }
        let newline = match raw.get(3..) {
            Some(rest) if rest.starts_with("\r\n") => 2,
            Some(rest) if rest.starts_with('\n') => 1,
            _ => 0,
        };
        Self { opening: 3 + newline, closing: 3 }
    }
}

/// One escape: its length, the length of the part that stands for its text, and the length of its text.
struct Escape {
    raw: usize,
    own: usize,
    decoded: usize,
}

/// Reads the escape at the beginning of `text`; returns none at the end of the text.
fn escape(text: &str) -> Option<Escape> {
    let word = text.strip_prefix('\\')?;
    let digits = match word.chars().next()? {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        ' ' | '\t' | '\r' | '\n' => {
            let skipped = word.len() - word.trim_start_matches([' ', '\t', '\r', '\n']).len();
            return Some(Escape { raw: 1 + skipped, own: 0, decoded: 0 });
        }
        other => {
            let raw = 1 + other.len_utf8();
            return Some(Escape { raw, own: raw, decoded: 1 });
        }
    };
    let code = word.get(1..=digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let decoded = code.and_then(char::from_u32).map_or(1, char::len_utf8);
    Some(Escape { raw: 2 + digits, own: 2 + digits, decoded })
}

fn number(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds `<` and `>` in the decoded text of a TOML value, and shows the text of the file between their
    /// places.
    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let file = format!("key = {raw}\n");
        let value = toml::de::DeValue::parse(raw).unwrap();
        let text = value.get_ref().as_str().unwrap();
        let range = Range {
            start: number(text.find('<').unwrap()),
            end: number(text.find('>').unwrap() + 1),
        };
        let place = Offsets::of(raw, 6, text.len()).place(range);
        assert_eq!(&file[place.start as usize..place.end as usize], expected);
    }

    #[test]
    fn without_escapes() {
        check(r#""a <b> c""#, "<b>");
        check("'a <b> c'", "<b>");
        check("'''\n  <b>\n'''", "<b>");
        check("\"\"\"\r\n<b>\"\"\"", "<b>");
        check(r"'\ <b> \'", "<b>");
    }

    #[test]
    fn with_escapes() {
        check(r#""a\t\"<b>\"""#, "<b>");
        check(r#""\u00e9\U0001F600\x41<b\n>x""#, r"<b\n>");
        check("\"\"\"\n\\\n   \t\n  <b\\\n   >\\\n  c\"\"\"", "<b\\\n   >");
        check("\"\"\"\r\n\\\"a \\\r\n  <b>\\\r\n  c\"\"\"", "<b>");
        check(r#""\\<b\u003e""#, r"<b\u003e");
    }
}
