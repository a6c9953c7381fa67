//! Secrets: the key, and the masking of whatever a server says before people see it.

use std::fmt;

use engine::value::{Attributes, Value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::descriptor::model::TypeModel;

/// The longest excerpt of a server's words in an error, in characters.
const EXCERPT_MAX: usize = 200;
/// Shorter values are not masked: they would tear ordinary words apart.
const VALUE_MIN: usize = 4;

/// A key. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key in clear, for the one place that sends it and the one that digests it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Texts that must not be shown.
#[derive(Clone, Default)]
pub(crate) struct Mask(Vec<String>);

impl Mask {
    /// Masks the key.
    pub(crate) fn of_key(key: Option<&Key>) -> Self {
        let mut mask = Self::default();
        if let Some(key) = key.filter(|key| !key.0.is_empty()) {
            mask.0.push(key.0.clone());
            mask.0.push(utf8_percent_encode(&key.0, NON_ALPHANUMERIC).to_string());
        }
        mask.sort();
        mask
    }

    /// Masks the values of an object too, for a server may repeat what was sent. Its name and what
    /// comes from lists of allowed texts may be shown.
    #[must_use]
    pub(crate) fn with_object(&self, model: &TypeModel, object: &Attributes) -> Self {
        let mut mask = self.clone();
        for (name, value) in object {
            let listed = model
                .attributes
                .get(name)
                .is_some_and(|a| a.schema.constraint.one_of.is_some() && !a.schema.sensitive);
            if !listed && model.name_attribute.as_ref() != Some(name) && *name != model.key {
                mask.add(value);
            }
        }
        mask.sort();
        mask
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.chars().count() >= VALUE_MIN => {
                self.0.push(text.to_string());
                let escaped = serde_json::Value::from(&**text).to_string();
                self.0.push(escaped[1..escaped.len() - 1].to_owned());
            }
            Value::List(items) | Value::Set(items) => items.iter().for_each(|item| self.add(item)),
            Value::Map(entries) => entries.values().for_each(|item| self.add(item)),
            _ => {}
        }
    }

    /// The longest first, so no secret hides inside what is left of another.
    fn sort(&mut self) {
        self.0.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.0.dedup();
    }

    /// One line of at most 200 characters without secrets and control characters.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.0 {
            clean = clean.replace(secret.as_str(), "…");
        }
        let visible: String =
            clean.chars().map(|c| if c.is_control() || is_bidi(c) { ' ' } else { c }).collect();
        let words: Vec<&str> = visible.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(EXCERPT_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.trim_end_matches('.').to_owned(),
        }
    }
}

/// Characters that change the direction of text, and so what people read.
fn is_bidi(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_controls_do_not_come_through() {
        let key = Key::new("s3cr/et");
        assert_eq!(format!("{key:?}"), "Key(…)");
        let mask = Mask::of_key(Some(&key));
        assert_eq!(
            mask.clean("bad key s3cr/et, also s3cr%2Fet\n\u{1b}[31m\u{202e}here."),
            "bad key …, also … [31m here"
        );
    }

    #[test]
    fn excerpts_end() {
        let line = Mask::default().clean(&"ä".repeat(1000));
        assert_eq!(line.chars().count(), EXCERPT_MAX + 1);
    }
}
