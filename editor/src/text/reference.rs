//! The reference or the call at the cursor, in the expressions of a text.

use std::ops::Range;

/// A name in an expression, with what it is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The expression before the last dot, such as `value.a["x"]`; empty at the beginning of a reference.
    pub(crate) base: String,
    /// The name, as far as it stands before the cursor.
    pub(crate) typed: String,
    /// The whole name.
    pub(crate) name: String,
    /// The place of the whole name.
    pub(crate) range: Range<usize>,
    /// The names behind the next dots.
    pub(crate) next: Vec<String>,
    /// True if an opening bracket of a call follows.
    pub(crate) is_call: bool,
}

impl Reference {
    /// The expression up to the end of the name.
    pub(crate) fn text(&self) -> String {
        if self.base.is_empty() {
            self.name.clone()
        } else {
            format!("{}.{}", self.base, self.name)
        }
    }

    /// So many of the names behind it, each with its dot.
    pub(crate) fn behind(&self, count: usize) -> String {
        self.next.iter().take(count).fold(String::new(), |text, name| text + "." + name)
    }
}

/// The thing that the cursor is in.
#[derive(Clone, Copy)]
enum Mode {
    /// Text, in which `${` begins an expression; true if a quote ends it.
    Text { is_quoted: bool },
    /// An expression, with the number of braces that are open in it.
    Expression { braces: usize },
}

/// The reference at an offset in the content of a TOML string; none outside of expressions. With `is_expression`, all of
/// the content is one.
pub(crate) fn at(
    text: &str,
    content: Range<usize>,
    offset: usize,
    is_basic: bool,
    is_expression: bool,
) -> Option<Reference> {
    if !is_in_expression(text.get(content.start..offset)?, is_basic, is_expression) {
        return None;
    }
    let start = offset - name_before(&text[content.start..offset]);
    let rest = text.get(offset..content.end)?;
    let end = offset + name_after(rest);
    let name = text[start..end].to_owned();
    let behind = &text[end..content.end];
    let next = names_behind(behind);
    let base_start = base_start(&text.as_bytes()[..start], content.start);
    let base = text[base_start..start].strip_suffix('.').unwrap_or_default();
    let base = if is_basic { base.replace("\\\"", "\"") } else { base.to_owned() };
    Some(Reference {
        base,
        typed: text[start..offset].to_owned(),
        name,
        range: start..end,
        next,
        is_call: behind.starts_with('('),
    })
}

/// The names at the beginning of a text, each behind a dot; two at the most.
fn names_behind(mut text: &str) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(rest) = text.strip_prefix('.').filter(|_| names.len() < 2) {
        let (name, behind) = rest.split_at(name_after(rest));
        if name.is_empty() {
            break;
        }
        names.push(name.to_owned());
        text = behind;
    }
    names
}

/// Returns true if what follows the text is a part of an expression.
fn is_in_expression(before: &str, is_basic: bool, is_expression: bool) -> bool {
    let bytes = before.as_bytes();
    let first = if is_expression {
        Mode::Expression { braces: 0 }
    } else {
        Mode::Text { is_quoted: false }
    };
    let mut modes = vec![first];
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let is_inside = modes.len() > 1;
        let Some(mode) = modes.last_mut() else { break };
        let rest = &bytes[at..];
        let quote =
            if is_basic && rest.starts_with(b"\\\"") { 2 } else { usize::from(*byte == b'"') };
        let opens = rest.starts_with(b"${") || rest.starts_with(b"%{");
        let length = match mode {
            Mode::Text { .. } if rest.starts_with(b"$${") || rest.starts_with(b"%%{") => 3,
            Mode::Text { .. } | Mode::Expression { .. } if opens => {
                modes.push(Mode::Expression { braces: 0 });
                2
            }
            Mode::Text { is_quoted: true } if quote > 0 => {
                modes.pop();
                quote
            }
            Mode::Expression { .. } if quote > 0 => {
                modes.push(Mode::Text { is_quoted: true });
                quote
            }
            Mode::Expression { braces } if *byte == b'{' => {
                *braces += 1;
                1
            }
            Mode::Expression { braces } if *byte == b'}' && *braces > 0 => {
                *braces -= 1;
                1
            }
            Mode::Expression { .. } if *byte == b'}' && is_inside => {
                modes.pop();
                1
            }
            _ => 1,
        };
        at += length;
    }
    matches!(modes.last(), Some(Mode::Expression { .. }))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn name_before(text: &str) -> usize {
    text.bytes().rev().take_while(|byte| is_name(*byte)).count()
}

fn name_after(text: &str) -> usize {
    text.bytes().take_while(|byte| is_name(*byte)).count()
}

/// The place where the expression before a last dot begins: names, and what stands in brackets behind them.
fn base_start(before: &[u8], least: usize) -> usize {
    let mut at = before.len();
    while at > least && before[at - 1] == b'.' {
        let mut start = at - 1;
        while start > least && matches!(before[start - 1], b']' | b')') {
            match opening(before, start - 1, least) {
                Some(open) => start = open,
                None => return at,
            }
        }
        let name_end = start;
        while start > least && (is_name(before[start - 1]) || before[start - 1] == b'*') {
            start -= 1;
        }
        if start == name_end {
            return at;
        }
        at = start;
    }
    at
}

/// The opening bracket for a closing one.
fn opening(bytes: &[u8], closing: usize, least: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (least..=closing).rev() {
        match bytes[at] {
            b']' | b')' => depth += 1,
            b'[' | b'(' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base and the name at the mark `|`; empty outside of expressions.
    fn reference(marked: &str, is_basic: bool, is_expression: bool) -> String {
        let offset = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let found = at(&text, 0..text.len(), offset, is_basic, is_expression);
        found.map_or(String::new(), |found| format!("{} . {}", found.base, found.name))
    }

    #[test]
    fn names_with_what_stands_before_them() {
        let in_text = |marked: &str| reference(marked, true, false);
        assert_eq!(in_text("a ${va|r.x} b"), " . var");
        assert_eq!(in_text("${value.a[\\\"x|\\\"].y}"), "");
        assert_eq!(in_text("${value.a[\\\"x\\\"].y|}"), "value.a[\"x\"] . y");
        assert_eq!(in_text("${upper(endpoint.chat[each.key].|)}"), "endpoint.chat[each.key] . ");
        assert_eq!(in_text("${values(value.a)[*].i|d}"), "values(value.a)[*] . id");
        assert_eq!(in_text("${ { a = va| } }"), " . va");
        assert_eq!(in_text("${value.a[*].i|}"), "value.a[*] . i");
    }

    #[test]
    fn names_behind_the_cursor() {
        let text = "${da.ta.ty.name.id}";
        let found = at(text, 0..text.len(), 3, true, false).unwrap();
        assert_eq!((found.text(), found.behind(2)), ("da".to_owned(), ".ta.ty".to_owned()));
        assert_eq!(found.behind(0), "");
    }

    #[test]
    fn outside_of_expressions_is_nothing() {
        for text in ["va|r.x", "$${va|", "${var.x} va|", "${\"va|\"}", "%%{va|"] {
            assert_eq!(reference(text, false, false), "", "{text}");
        }
        assert_eq!(reference("${\"a ${va|}\"}", false, false), " . va");
        assert_eq!(reference("%{ if va|", false, false), " . va");
    }

    #[test]
    fn conditions_are_expressions_as_a_whole() {
        assert_eq!(reference("job.st| == 1", false, true), "job . st");
        assert_eq!(reference("job.x == \"va|\"", false, true), "");
        assert_eq!(reference("${job.st|}", false, true), "job . st");
    }
}
