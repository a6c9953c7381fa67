//! Reads texts that are looked up or filled in: sources, texts with keys, and templates of attributes.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::expression::Expr;
use engine::expression::parse::{Dialect, expression, template};
use engine::stored::from_json;

use super::diagnostics;
use super::model::{Source, WirePath};
use super::reader::{Keys, Node, Reader, named};
use crate::key_text::KeyText;
use crate::template::ValueTemplate;

/// The name of the key that `key` of a provider gives.
pub(super) const KEY: &str = "key";

/// Reads the sources of a text: `{ env = "X", setting = "x", default = "…" }`.
pub(super) fn source(reader: &mut Reader, node: Node<'_>, what: &str) -> Option<Source> {
    let mut keys = Keys::of(reader, node, what)?;
    let source = source_of(reader, &mut keys);
    keys.finish(reader);
    if what == KEY && source.default.is_some() {
        let span = reader.span(node.span());
        reader.push(diagnostics::key_in_descriptor(span));
    }
    Some(source)
}

/// Reads the sources of a text from a table that has other keys, too.
pub(super) fn source_of(reader: &mut Reader, keys: &mut Keys<'_>) -> Source {
    Source {
        env: keys.text(reader, "env"),
        setting: keys.text(reader, "setting"),
        default: keys.text(reader, "default"),
    }
}

/// Reads a text that may contain keys.
pub(super) fn key_text(reader: &mut Reader, node: Node<'_>, text: &str) -> Option<KeyText> {
    match KeyText::parse(text) {
        Ok(text) => Some(text),
        Err(reason) => {
            let span = reader.span(node.span());
            let help = "write it like \"Bearer ${key}\"";
            reader.push(diagnostics::misfit(span, "the text cannot be read", &reason, help));
            None
        }
    }
}

/// Reads `fields`: paths in a body with templates for their values.
pub(super) fn fields(reader: &mut Reader, keys: &mut Keys<'_>) -> Vec<(WirePath, ValueTemplate)> {
    let named = named(reader, keys.node("fields"), "fields");
    let field = |(name, _, node): (&str, _, _)| {
        let path = name.split('.').map(str::to_owned).collect();
        Some((path, value_template(reader, node, name)?))
    };
    named.into_iter().filter_map(field).collect()
}

/// Reads attributes with templates for their values.
pub(super) fn templates(
    reader: &mut Reader,
    node: Node<'_>,
    key: &str,
) -> BTreeMap<Name, ValueTemplate> {
    let named = named(reader, Some(node), key);
    named
        .into_iter()
        .filter_map(|(name, _, node)| Some((Name::from(name), value_template(reader, node, key)?)))
        .collect()
}

pub(super) fn value_template(
    reader: &mut Reader,
    node: Node<'_>,
    key: &str,
) -> Option<ValueTemplate> {
    let Some(text) = node.get_ref().as_str() else {
        return Some(ValueTemplate(Expr::literal(from_json(&reader.json(node, key)?))));
    };
    match ValueTemplate::parse(text) {
        Ok(template) => Some(template),
        Err(error) => {
            let span = reader.span(node.span());
            reader.push(diagnostics::bad_expression(span, &error));
            None
        }
    }
}

/// Reads a bare expression.
pub(super) fn bare(reader: &mut Reader, node: Node<'_>, key: &str) -> Option<Expr> {
    let text = reader.text(node, key)?;
    expression(text, Dialect::Names)
        .map_err(|error| {
            let span = reader.span(node.span());
            reader.push(diagnostics::bad_expression(span, &error));
        })
        .ok()
}

/// Reads a text with parts to fill in.
pub(super) fn filled(reader: &mut Reader, node: Node<'_>, key: &str) -> Option<Expr> {
    let text = reader.text(node, key)?;
    template(text, Dialect::Names)
        .map_err(|error| {
            let span = reader.span(node.span());
            reader.push(diagnostics::bad_expression(span, &error));
        })
        .ok()
}
