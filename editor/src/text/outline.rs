//! The headers, keys and values of a TOML text, found without a parser: a text that is being typed is seldom whole.

use std::ops::{ControlFlow, Range};

/// A part of a text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The text in the brackets of a header.
    Header { inside: Range<usize>, is_list: bool, end: usize },
    /// A key, dots and all, and its value.
    Pair { key: Range<usize>, value: Option<Range<usize>> },
}

/// A part of a dotted key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The name, without quotes.
    pub(crate) name: String,
    /// Its place, with quotes.
    pub(crate) range: Range<usize>,
}

/// Calls `visit` for each part, in the order of the text, until it has seen enough.
pub(crate) fn scan(text: &str, visit: &mut dyn FnMut(Part) -> ControlFlow<()>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (part, end) = match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'#' => {
                at = line_end(bytes, at);
                continue;
            }
            b'[' => header(bytes, at),
            _ => pair(bytes, at),
        };
        if visit(part).is_break() {
            return;
        }
        at = end;
    }
}

fn header(bytes: &[u8], start: usize) -> (Part, usize) {
    let is_list = bytes.get(start + 1) == Some(&b'[');
    let first = start + 1 + usize::from(is_list);
    let line = line_end(bytes, first);
    let mut at = first;
    while at < line && bytes[at] != b']' && bytes[at] != b'#' {
        at = if is_quote(bytes[at]) { string_end(bytes, at) } else { at + 1 };
    }
    let at = at.min(line);
    let closing = 1 + usize::from(is_list && bytes.get(at + 1) == Some(&b']'));
    let end = if bytes.get(at) == Some(&b']') { at + closing } else { at };
    (Part::Header { inside: first..at, is_list, end }, line)
}

fn pair(bytes: &[u8], start: usize) -> (Part, usize) {
    let line = line_end(bytes, start);
    let mut at = start;
    while at < line && bytes[at] != b'=' && bytes[at] != b'#' {
        at = if is_quote(bytes[at]) { string_end(bytes, at) } else { at + 1 };
    }
    let at = at.min(line);
    let key = start..trimmed(bytes, start, at);
    if bytes.get(at) != Some(&b'=') {
        return (Part::Pair { key, value: None }, line);
    }
    let end = value_end(bytes, at + 1);
    (Part::Pair { key, value: Some(at + 1..end) }, end)
}

/// The end of a value: of its line, or of the line in which its last bracket closes. A line that can only be a header
/// ends a value whose brackets never close.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\n' if depth == 0 => return at,
            b'\n' if is_header_line(bytes, at + 1) => return at,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => {
                at = line_end(bytes, at);
                continue;
            }
            quote if is_quote(quote) => {
                at = string_end(bytes, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns true if a line is `[name.name]` or `[[name]]` and nothing else, which no line of a list is in practice.
fn is_header_line(bytes: &[u8], start: usize) -> bool {
    let line = &bytes[start..line_end(bytes, start)];
    let line = line.strip_prefix(b"[").unwrap_or_default();
    let line = line.strip_prefix(b"[").unwrap_or(line);
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.\"".contains(byte);
    let named = line.iter().take_while(|byte| name(byte)).count();
    let (word, rest) = line.split_at(named);
    let rest = rest.strip_prefix(b"]").map(|rest| rest.strip_prefix(b"]").unwrap_or(rest));
    let is_alone = rest.is_some_and(|rest| rest.trim_ascii().first().is_none_or(|it| *it == b'#'));
    is_alone
        && word.first().is_some_and(u8::is_ascii_lowercase)
        && ![&b"true"[..], b"false", b"inf", b"nan"].contains(&word)
}

/// The end of a string, behind its last quote; one of a single line ends with the line.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let is_basic = quote == b'"';
    let is_long = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if is_long { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if is_basic && (is_long || bytes.get(at + 1) != Some(&b'\n')) => at += 1,
            b'\n' if !is_long => return at,
            byte if byte == quote && !is_long => return at + 1,
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => {
                let more = bytes[at + 3..].iter().take(2).take_while(|it| **it == quote).count();
                return at + 3 + more;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The segments of a dotted key; an empty one where a name is yet to be typed.
pub(crate) fn segments(text: &str, range: Range<usize>) -> Vec<Segment> {
    let bytes = text.as_bytes();
    let mut segments = Vec::new();
    let mut start = range.start;
    loop {
        let mut at = start;
        while at < range.end && bytes[at] != b'.' {
            at = if is_quote(bytes[at]) { string_end(bytes, at).min(range.end) } else { at + 1 };
        }
        let raw = text.get(start..at).unwrap_or_default();
        let name = raw.trim();
        let first = start + (raw.len() - raw.trim_start().len());
        segments.push(Segment {
            name: name.trim_matches(['"', '\'']).to_owned(),
            range: first..first + name.len(),
        });
        if at >= range.end {
            return segments;
        }
        start = at + 1;
    }
}

/// The end of a line, before its line feed.
pub(crate) fn line_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| start + end)
}

fn trimmed(bytes: &[u8], start: usize, end: usize) -> usize {
    let space = bytes[start..end].iter().rev().take_while(|it| it.is_ascii_whitespace()).count();
    end - space
}

pub(crate) fn is_quote(byte: u8) -> bool {
    byte == b'"' || byte == b'\''
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts, one a line.
    fn shown(text: &str) -> String {
        let mut lines = Vec::new();
        scan(text, &mut |part| {
            lines.push(match part {
                Part::Header { inside, is_list, .. } => {
                    format!("{}[{}]", if is_list { "list " } else { "" }, &text[inside])
                }
                Part::Pair { key, value } => {
                    let value = value.map_or("", |value| &text[value]);
                    format!("{} ={value}", &text[key]).replace('\n', "\\n")
                }
            });
            ControlFlow::Continue(())
        });
        lines.join("\n")
    }

    #[test]
    fn parts_of_a_whole_text() {
        let text = "# [no]\n[a.\"b]\"] # x\nk = 1 # = 2\nl = [\n  { x = \"]\" }, # ]\n]\n[[i]]\nt = '''\n[no]\n'''\nu = \"\\\"[\"\nd.e = 2\n";
        insta::assert_snapshot!(shown(text), @r#"
        [a."b]"]
        k = 1 # = 2
        l = [\n  { x = "]" }, # ]\n]
        list [i]
        t = '''\n[no]\n'''
        u = "\"["
        d.e = 2
        "#);
    }

    #[test]
    fn a_text_that_is_being_typed() {
        insta::assert_snapshot!(shown("[resource.\nna\nx =\ny = \"${var.\nz = { a = [1,\n[plumb]\nq = [\n[1, 2],\n[a]\n"), @r#"
        [resource.]
        na =
        x =
        y = "${var.
        z = { a = [1,
        [plumb]
        q = [\n[1, 2],
        [a]
        "#);
        for broken in ["[", "[[", "=", "\"", "'''", "a = \"", "a = {", "]", "a.b.", "[a]]]", "\\"] {
            scan(broken, &mut |_| ControlFlow::Continue(()));
        }
    }

    #[test]
    fn segments_of_keys() {
        let names = |text: &str| {
            let all = segments(text, 0..text.len());
            all.iter().map(|it| format!("{}@{}", it.name, it.range.start)).collect::<Vec<_>>()
        };
        assert_eq!(names("a . \"b.c\".d"), ["a@0", "b.c@4", "d@10"]);
        assert_eq!(names("resource."), ["resource@0", "@9"]);
        assert_eq!(names(""), ["@0"]);
    }
}
