//! Writes a value into a spec: as TOML that reads back as the same value.

use std::fmt::Write as _;

use crate::stored;
use crate::value::Value;

/// A number, a yes-or-no or a text as a spec has it; none for what is more than one line of it.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(string(text)),
        // JSON's are TOML's.
        Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
            Some(stored::to_json(value).to_string())
        }
        _ => None,
    }
}

/// A basic string of TOML. The texts of a spec are templates, so what begins an expression is escaped.
fn string(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for (index, c) in text.char_indices() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            '$' | '%' if text[index + 1..].starts_with('{') => written.extend([c, c]),
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
