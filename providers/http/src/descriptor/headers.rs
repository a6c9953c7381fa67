//! Reads the `headers` of an API, a type or a phase.

use super::model::Header;
use super::reader::{Keys, Node, Reader, named};
use super::{diagnostics, texts};
use crate::client::is_header_name;
use crate::key_text::KeyText;

/// Reads the `headers` of a type or of a phase, with attributes in their values.
pub(super) fn filled(reader: &mut Reader, keys: &mut Keys<'_>) -> Vec<Header> {
    let mut headers = Vec::new();
    for (name, span, node) in named(reader, keys.node("headers"), "headers") {
        if !is_header_name(name) {
            reader.push(diagnostics::bad_header(span, name));
        }
        let value = texts::value_template(reader, node, name);
        headers.extend(value.map(|value| Header { name: name.to_owned(), value }));
    }
    headers
}

/// Reads the `headers` of an API, with keys in their values.
pub(super) fn with_keys(reader: &mut Reader, node: Node<'_>) -> Vec<(String, KeyText)> {
    let mut headers = Vec::new();
    for (name, span, node) in named(reader, Some(node), "headers") {
        if !is_header_name(name) {
            reader.push(diagnostics::bad_header(span, name));
        }
        let text = reader.text(node, name).map(str::to_owned);
        let text = text.and_then(|text| texts::key_text(reader, node, &text));
        headers.extend(text.map(|text| (name.to_owned(), text)));
    }
    headers
}
