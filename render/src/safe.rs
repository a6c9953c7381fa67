//! Foreign text made harmless.
//!
//! Names, error bodies, keys of `for_each`: all text from a spec, an API or a file passes through this module
//! before it is shown. So it can neither control a terminal nor hide in one, nor look like a line of Plumb or
//! like a command to a CI system. Invisible characters become visible; none is dropped. In addition,
//! renderers never begin a line with foreign text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The number of characters of one foreign text that are shown, unless a renderer gives another number.
pub const SHOWN_MAX: usize = 200;

/// Escapes a text, truncated to [`SHOWN_MAX`] characters.
pub fn text(foreign: &str) -> String {
    capped(foreign, SHOWN_MAX)
}

/// Escapes a text and truncates it to `max` characters, with the number of the others.
pub fn capped(foreign: &str, max: usize) -> String {
    let (head, rest) = cut(foreign, max);
    let mut safe = whole(head).into_owned();
    if rest > 0 {
        let _ = write!(safe, "… ({rest} more characters)");
    }
    safe
}

/// Escapes a text in full length.
pub fn whole(foreign: &str) -> Cow<'_, str> {
    if is_harmless(foreign) && !foreign.contains('#') {
        return Cow::Borrowed(foreign);
    }
    let mut safe = String::with_capacity(foreign.len() + 16);
    for (index, c) in foreign.char_indices() {
        if is_hidden(c) || is_ci_command(&foreign[index..], &safe) {
            escape(c, &mut safe);
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Escapes a line of TOML so that it stays TOML with the same meaning: an invisible character can only stand
/// in a string there.
pub fn toml(line: &str) -> Cow<'_, str> {
    if is_harmless(line) && !line.contains('#') {
        return Cow::Borrowed(line);
    }
    let mut safe = String::with_capacity(line.len() + 16);
    for (index, c) in line.char_indices() {
        if is_hidden(c) || is_ci_command(&line[index..], &safe) {
            let _ = match u32::from(c) {
                short @ 0..=0xffff => write!(safe, "\\u{short:04x}"),
                long => write!(safe, "\\U{long:08x}"),
            };
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Escapes a line of a text that is shown without a change, in full length. A line that begins with `::`,
/// which a CI system reads as a command after any number of spaces, gets another beginning.
pub fn line(foreign: &str) -> Cow<'_, str> {
    let safe = whole(foreign);
    let begins = safe.len() - safe.trim_start().len();
    match safe[begins..].strip_prefix("::") {
        Some(rest) => Cow::Owned(format!("{}\\u{{3a}}:{rest}", &safe[..begins])),
        None => safe,
    }
}

/// Escapes a text, puts it between double quotes, and truncates it to `max` characters.
pub fn quoted(foreign: &str, max: usize) -> String {
    let (head, rest) = cut(foreign, max);
    let mut safe = String::with_capacity(head.len() + 2);
    safe.push('"');
    for part in head.split_inclusive(['"', '\\']) {
        match part.strip_suffix(['"', '\\']) {
            Some(before) => {
                safe.push_str(&whole(before));
                safe.push('\\');
                safe.push_str(&part[before.len()..]);
            }
            None => safe.push_str(&whole(part)),
        }
    }
    safe.push('"');
    if rest > 0 {
        let _ = write!(safe, "… ({rest} more characters)");
    }
    safe
}

/// Returns true if a text has no hidden character. Most texts are ASCII, which is fast to check.
fn is_harmless(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.chars().any(is_hidden)
}

/// Returns the first `max` characters, and the number of the others.
fn cut(foreign: &str, max: usize) -> (&str, usize) {
    // A text has no more characters than bytes.
    if foreign.len() <= max {
        return (foreign, 0);
    }
    match foreign.char_indices().nth(max) {
        None => (foreign, 0),
        Some((end, _)) => (&foreign[..end], foreign[end..].chars().count()),
    }
}

fn escape(c: char, safe: &mut String) {
    match c {
        '\n' => safe.push_str("\\n"),
        '\r' => safe.push_str("\\r"),
        '\t' => safe.push_str("\\t"),
        other => {
            let _ = write!(safe, "\\u{{{:x}}}", other as u32);
        }
    }
}

/// Returns true for characters that control a terminal, reorder text, or are invisible.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true if `rest` begins with the second `#` of `##vso[`, `##teamcity[` or `##[`: CI systems read
/// these as commands in any place of a line.
pub(crate) fn is_ci_command(rest: &str, before: &str) -> bool {
    let Some(word) = rest.strip_prefix('#') else { return false };
    before.ends_with('#')
        && word.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_or_hides_becomes_visible() {
        for (foreign, safe) in [
            ("plain text, über", "plain text, über"),
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{1b}[2J", r"\u{1b}[2J"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("zero\u{200b}width", r"zero\u{200b}width"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
            ("##vso[task.setvariable]", r"#\u{23}vso[task.setvariable]"),
            ("x ##[group]", r"x #\u{23}[group]"),
            ("## a heading", "## a heading"),
        ] {
            assert_eq!(text(foreign), safe);
        }
    }

    #[test]
    fn a_line_is_no_command() {
        for (foreign, safe) in [
            ("::error::x", r"\u{3a}:error::x"),
            ("  ::stop-commands::x", r"  \u{3a}:stop-commands::x"),
            ("a ::b::", "a ::b::"),
            ("##[x", r"#\u{23}[x"),
            ("", ""),
        ] {
            assert_eq!(line(foreign), safe);
        }
    }

    #[test]
    fn toml_stays_toml() {
        for (line, safe) in [
            ("a = 1", "a = 1"),
            ("a = \"über\"", "a = \"über\""),
            ("a = \"\u{202e}b\u{e0041}\"", r#"a = "\u202eb\U000e0041""#),
            ("a = \"##[group]\"", r##"a = "#\u0023[group]""##),
        ] {
            assert_eq!(toml(line), safe);
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(capped("ääää", 2), "ää… (2 more characters)");
        assert_eq!(capped("ää", 2), "ää");
    }

    #[test]
    fn quotes_close_where_they_should() {
        assert_eq!(quoted(r#"a"b\c"#, 100), r#""a\"b\\c""#);
        assert_eq!(quoted("x\ny", 100), r#""x\ny""#);
        assert_eq!(quoted("abc", 2), r#""ab"… (1 more characters)"#);
    }

    #[test]
    fn nothing_that_acts_is_left_of_any_character() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let safe = whole(c.encode_utf8(&mut [0; 4])).into_owned();
            assert!(!safe.chars().any(|c| c.is_control() || is_hidden(c)), "{:x}", c as u32);
        }
    }
}
