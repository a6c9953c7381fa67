//! The reader of TOML tables, key by key: a key that the code asks for is known, all others are mistakes.
//!
//! A [`Keys`] records the keys that were asked for, so that an unknown key is reported with the most similar
//! of them, and no code has to list the keys a second time.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics;

/// A TOML value with its place.
pub(super) type Node<'t> = &'t Spanned<DeValue<'t>>;

/// Collects the mistakes in one file.
pub(super) struct Reader {
    pub(super) file: FileId,
    pub(super) diagnostics: Diagnostics,
}

impl Reader {
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        engine::config::span(self.file, range)
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a value of the wrong form.
    pub(super) fn wrong(&mut self, node: Node<'_>, key: &str, wants: &str) {
        let span = self.span(node.span());
        let found = match node.get_ref().as_str() {
            Some(text) => format!("`{text}`"),
            None => node.get_ref().type_str().to_owned(),
        };
        self.push(diagnostics::wrong_value(span, key, wants, &found));
    }

    pub(super) fn table<'t>(&mut self, node: Node<'t>, key: &str) -> Option<&'t DeTable<'t>> {
        let table = node.get_ref().as_table();
        if table.is_none() {
            self.wrong(node, key, "a table");
        }
        table
    }

    pub(super) fn text<'t>(&mut self, node: Node<'t>, key: &str) -> Option<&'t str> {
        let text = node.get_ref().as_str();
        if text.is_none() {
            self.wrong(node, key, "a text");
        }
        text
    }

    /// Returns the nodes of a list; a value that is no list counts as a list with one item.
    pub(super) fn items(node: Node<'_>) -> Vec<Node<'_>> {
        match node.get_ref().as_array() {
            Some(array) => array.iter().collect(),
            None => vec![node],
        }
    }

    pub(super) fn texts(&mut self, node: Node<'_>, key: &str) -> Vec<String> {
        Self::items(node)
            .into_iter()
            .filter_map(|item| self.text(item, key).map(str::to_owned))
            .collect()
    }

    /// Reads a duration such as `"250ms"`, `"10s"` or `"5m"`.
    pub(super) fn duration(&mut self, node: Node<'_>, key: &str) -> Option<Duration> {
        let duration = node.get_ref().as_str().and_then(engine::duration::parse);
        if duration.is_none() {
            self.wrong(node, key, "a duration such as \"250ms\", \"10s\" or \"5m\"");
        }
        duration
    }

    /// Reads one of some words.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: Node<'_>,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(node, key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let span = self.span(node.span());
            self.push(diagnostics::unknown_word(span, key, text, &words));
        }
        found
    }

    /// Returns the value as JSON.
    pub(super) fn json(&mut self, node: Node<'_>, key: &str) -> Option<Json> {
        let json = to_json(node.get_ref());
        if json.is_none() {
            self.wrong(node, key, "a text, number, boolean, list or table");
        }
        json
    }
}

/// The keys of one table.
pub(super) struct Keys<'t> {
    table: &'t DeTable<'t>,
    /// A description of the table, such as "attribute `size`".
    what: String,
    /// The place that is shown if a key is missing.
    pub(super) header: Range<usize>,
    asked: BTreeSet<&'static str>,
}

impl<'t> Keys<'t> {
    pub(super) fn new(
        table: &'t DeTable<'t>,
        header: Range<usize>,
        what: impl Into<String>,
    ) -> Self {
        Self { table, what: what.into(), header, asked: BTreeSet::new() }
    }

    /// Returns the keys of a table node; reports any other node and returns none.
    pub(super) fn of(reader: &mut Reader, node: Node<'t>, what: &str) -> Option<Self> {
        let table = reader.table(node, what)?;
        Some(Self::new(table, node.span(), what))
    }

    pub(super) fn node(&mut self, key: &'static str) -> Option<Node<'t>> {
        self.asked.insert(key);
        self.table.get(key)
    }

    /// Returns a required key; reports it if it is missing.
    pub(super) fn must(&mut self, reader: &mut Reader, key: &'static str) -> Option<Node<'t>> {
        let node = self.node(key);
        if node.is_none() {
            let span = reader.span(self.header.clone());
            reader.push(diagnostics::missing_key(span, &self.what, key));
        }
        node
    }

    pub(super) fn text(&mut self, reader: &mut Reader, key: &'static str) -> Option<String> {
        let node = self.node(key)?;
        reader.text(node, key).map(str::to_owned)
    }

    pub(super) fn flag(&mut self, reader: &mut Reader, key: &'static str) -> bool {
        let Some(node) = self.node(key) else { return false };
        let flag = node.get_ref().as_bool();
        if flag.is_none() {
            reader.wrong(node, key, "true or false");
        }
        flag.unwrap_or(false)
    }

    pub(super) fn number(&mut self, reader: &mut Reader, key: &'static str) -> Option<f64> {
        let node = self.node(key)?;
        let number = to_json(node.get_ref()).and_then(|json| json.as_f64());
        if number.is_none() {
            reader.wrong(node, key, "a number");
        }
        number
    }

    pub(super) fn count(&mut self, reader: &mut Reader, key: &'static str) -> Option<usize> {
        let node = self.node(key)?;
        let number = to_json(node.get_ref()).and_then(|json| json.as_u64());
        let number = number.and_then(|number| usize::try_from(number).ok());
        if number.is_none() {
            reader.wrong(node, key, "a whole number, 0 or more");
        }
        number
    }

    pub(super) fn duration(&mut self, reader: &mut Reader, key: &'static str) -> Option<Duration> {
        let node = self.node(key)?;
        reader.duration(node, key)
    }

    /// Reports the keys that were not read.
    pub(super) fn finish(self, reader: &mut Reader) {
        for key in self.table.keys() {
            if !self.asked.contains(key.get_ref().as_ref()) {
                let span = reader.span(key.span());
                let known: Vec<&str> = self.asked.iter().copied().collect();
                reader.push(diagnostics::unknown_key(span, &self.what, key.get_ref(), &known));
            }
        }
    }
}

/// Returns the named tables of a table, such as `[type.<name>]`.
pub(super) fn named<'t>(
    reader: &mut Reader,
    node: Option<Node<'t>>,
    key: &str,
) -> Vec<(&'t str, Span, Node<'t>)> {
    let Some(table) = node.and_then(|node| reader.table(node, key)) else { return Vec::new() };
    let entry = |(name, node): (&'t Spanned<_>, Node<'t>)| {
        let text: &std::borrow::Cow<'t, str> = name.get_ref();
        (text.as_ref(), name.span(), node)
    };
    let entries: Vec<_> = table.iter().map(entry).collect();
    entries.into_iter().map(|(name, span, node)| (name, reader.span(span), node)).collect()
}

fn to_json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok()?.into()
        }
        DeValue::Float(number) => {
            Json::Number(serde_json::Number::from_f64(number.as_str().parse().ok()?)?)
        }
        DeValue::Boolean(value) => (*value).into(),
        DeValue::Datetime(_) => return None,
        DeValue::Array(items) => {
            items.iter().map(|item| to_json(item.get_ref())).collect::<Option<Vec<_>>>()?.into()
        }
        DeValue::Table(table) => table
            .iter()
            .map(|(key, item)| Some((key.get_ref().to_string(), to_json(item.get_ref())?)))
            .collect::<Option<serde_json::Map<_, _>>>()?
            .into(),
    })
}
