//! The text of a value in a spec: TOML that reads back as the same value.

use std::fmt::Write as _;

use crate::address::Name;
use crate::stored;
use crate::value::Value;

/// Returns a value as TOML, on one line: lists and maps are inline. A null entry of a map is left out. None
/// for a value that no TOML literal expresses: null, unknown and sealed values.
pub(crate) fn value(value: &Value) -> Option<String> {
    match value {
        Value::List(items) | Value::Set(items) => {
            let items: Option<Vec<String>> = items.iter().map(self::value).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Value::Map(entries) => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            let entry = |(name, value): (&Name, &Value)| {
                Some(format!("{} = {}", key(name), self::value(value)?))
            };
            let entries: Option<Vec<String>> = entries.map(entry).collect();
            let entries = entries?.join(", ");
            Some(if entries.is_empty() { "{}".to_owned() } else { format!("{{ {entries} }}") })
        }
        other => scalar(other),
    }
}

/// Returns a TOML key: bare if possible. A key is no template.
pub(crate) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) {
        return name.to_owned();
    }
    quoted(name, false)
}

/// Returns an expression in a TOML string of a kind in which its text needs no escapes, if there is one.
pub(crate) fn expression(text: &str) -> String {
    let plain = |c: char| !c.is_control();
    match text {
        text if !text.contains(['"', '\\']) && text.chars().all(plain) => {
            format!("\"${{{text}}}\"")
        }
        text if !text.contains('\'') && text.chars().all(plain) => format!("'${{{text}}}'"),
        text => quoted(&format!("${{{text}}}"), false),
    }
}

/// Returns a number, a boolean or a text as TOML; none for other values.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(quoted(text, true)),
        // JSON and TOML write these in the same way.
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
            Some(stored::to_json(value).to_string())
        }
        _ => None,
    }
}

/// Returns a basic TOML string. The values of a spec are templates, so in a template the beginning of an
/// expression is escaped.
fn quoted(text: &str, is_template: bool) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for (index, c) in text.char_indices() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            '$' | '%' if is_template && text[index + 1..].starts_with('{') => {
                written.extend([c, c]);
            }
            c if c.is_control() => {
                let _ = write!(written, "\\u{:04x}", u32::from(c));
            }
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use crate::diagnostics::Sources;
    use crate::expression::Kind;

    /// Returns the value that the spec's own parser reads back.
    fn read(written: &str) -> Value {
        let mut sources = Sources::default();
        let file = sources.add("plumb.toml".to_owned(), format!("[local]\na = {written}\n"));
        let (document, diagnostics) = parse::parse(&sources, &[file]);
        assert!(!diagnostics.has_errors(), "{written}: {diagnostics:?}");
        match &document.locals.values().next().unwrap().value.expr.kind {
            Kind::Literal(value) => value.clone(),
            other => panic!("{written} is read as {other:?}"),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let every: String = (0..=0x2100).filter_map(char::from_u32).collect();
        let texts = [
            "",
            "plain",
            "a\"b\\c",
            "${x}",
            "$${x}",
            "$$${x}",
            "%{if}",
            "%%{",
            "$",
            "\u{7f}\u{1b}[2J",
            "'",
            "\u{e0041}",
            &every,
        ];
        let texts = texts.into_iter().map(Value::string);
        let others = [Value::Integer(-3), Value::Float(1.5e300), Value::Bool(true)];
        for value in texts.chain(others) {
            let written = scalar(&value).unwrap();
            assert!(!written.contains('\n'), "{written}");
            assert_eq!(read(&written), value, "{written}");
        }
        assert_eq!(scalar(&Value::Null), None);
        assert_eq!(scalar(&Value::list(Vec::new())), None);
    }
}
