//! Secrets: the key, and the masking of whatever a server says before people see it.

use std::fmt;

use engine::value::{Attributes, Value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use provider_port::Secrets;
use serde_json::Value as Json;

use crate::descriptor::model::TypeModel;
use crate::hidden::Hidden;
use crate::labels::Labels;

/// The longest excerpt of a server's words in an error, in characters.
const EXCERPT_MAX: usize = 200;
/// How much of a server's words is looked at: more would show nothing, and is replaced in once for
/// each secret.
const LOOKED_AT: usize = 16 << 10;
/// Where a server's words become data, however it prints them: `{"id": …`, `map[id:…`, `id=…`, or
/// lines below the first one.
const DATA: [char; 5] = ['{', '[', '=', '\n', '\r'];
/// What stands for a secret.
const MASKED: &str = "…";
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
pub(crate) struct Mask {
    /// The key, and values that are better not repeated: masked where they stand as they are.
    texts: Vec<String>,
    /// The key, and what is secret in the spec: not shown in part or in another form either.
    hidden: Hidden,
    /// The names under which secrets stand that are not known here.
    labels: Labels,
    /// True if an answer holds more secrets than can be looked for: nothing of it is shown.
    too_many: bool,
}

impl Mask {
    /// Masks the key.
    pub(crate) fn of_key(key: Option<&Key>) -> Self {
        let mut mask = Self::default();
        if let Some(key) = key.filter(|key| !key.0.is_empty()) {
            mask.texts.push(key.0.clone());
            mask.texts.push(utf8_percent_encode(&key.0, NON_ALPHANUMERIC).to_string());
            mask.hidden.add(&Value::string(&*key.0));
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
            // What is one of a list, or the id of another object, tells nothing.
            let told = model.attributes.get(name).is_some_and(|attribute| {
                let schema = &attribute.schema;
                let is_told = schema.constraint.one_of.is_some() || schema.holds.is_some();
                is_told && !schema.sensitive
            });
            if !told && model.name_attribute.as_ref() != Some(name) && *name != model.key {
                mask.add(value);
            }
        }
        mask.sort();
        mask
    }

    /// Hides what a call carries that is secret, and what that may be made of.
    #[must_use]
    pub(crate) fn with_secrets(mut self, secrets: &Secrets, sent: &Attributes) -> Self {
        secrets.carried(sent).for_each(|(_, value)| self.hidden.add(value));
        self.hiding(&secrets.variables)
    }

    /// Hides what stands under these names.
    #[must_use]
    pub(crate) fn with_labels(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// Hides the secrets of an answer wherever its words repeat them.
    #[must_use]
    pub(crate) fn with_body(&self, body: Option<&Json>) -> Self {
        let mask = self.clone();
        match body.map_or(Some(Vec::new()), |body| self.labels.values(body)) {
            Some(secrets) => mask.hiding(&secrets),
            None => Self { too_many: true, ..mask },
        }
    }

    /// Hides these values.
    #[must_use]
    pub(crate) fn hiding(mut self, secrets: &[Value]) -> Self {
        for value in secrets {
            self.hidden.add(value);
        }
        self
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.chars().count() >= VALUE_MIN => {
                self.texts.push(text.to_string());
                let escaped = serde_json::Value::from(&**text).to_string();
                self.texts.push(escaped[1..escaped.len() - 1].to_owned());
            }
            Value::List(items) | Value::Set(items) => items.iter().for_each(|item| self.add(item)),
            Value::Map(entries) => entries.values().for_each(|item| self.add(item)),
            _ => {}
        }
    }

    /// The longest first, so no secret hides inside what is left of another.
    fn sort(&mut self) {
        self.texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.texts.dedup();
    }

    /// The beginning of a text with its secrets masked. A secret that the cut goes through is not
    /// known again, so as much as it could be, masked in part, is left out.
    fn beginning(&self, text: &str) -> String {
        if self.too_many {
            return String::new();
        }
        let longest = self.texts.first().map_or(0, String::len) * MASKED.len();
        let seen = text.floor_char_boundary(LOOKED_AT + longest);
        // Names first: what is masked below may be a word that is one of them.
        let mut clean = self.labels.mask(&text[..seen]);
        for secret in &self.texts {
            clean = clean.replace(secret.as_str(), MASKED);
        }
        if seen < text.len() {
            clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(longest)));
        }
        self.hidden.hide(clean)
    }

    /// A text without its secrets, as long as it is no flood.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.beginning(text)
    }

    /// One line of at most 200 characters without secrets and control characters.
    pub(crate) fn clean(&self, text: &str) -> String {
        line(&self.beginning(text))
    }

    /// The same, and only up to where a server shows data: an object in it may hold secrets that
    /// nobody here knows, those of strangers among them.
    pub(crate) fn prose(&self, text: &str) -> String {
        let clean = self.beginning(text.trim_start());
        match clean.find(DATA) {
            Some(at) if clean[..at].trim().is_empty() => String::new(),
            Some(at) => format!("{}…", line(&clean[..at]).trim_end_matches('…')),
            None => line(&clean),
        }
    }
}

/// One line of at most 200 characters without control characters.
fn line(text: &str) -> String {
    let visible: String =
        text.chars().map(|c| if c.is_control() || is_bidi(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(EXCERPT_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.trim_end_matches('.').to_owned(),
    }
}

/// Characters that change the direction of text, and so what people read.
fn is_bidi(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

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
    fn a_key_shows_in_no_form() {
        let key = "Zq\"9sK/Canary7Xw_t+Pl";
        let mask = Mask::of_key(Some(&Key::new(key)));
        for form in [
            key.to_uppercase(),
            key.to_lowercase(),
            serde_json::Value::from(key).to_string(),
            STANDARD.encode(key),
            STANDARD.encode(format!("user:{key}")),
            key.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat(),
            "Zq%229sK%2FCanary7Xw_t%2BPl".to_owned(),
            key.replace('"', "&quot;"),
            format!("{}****", &key[..14]),
            format!("****{}", &key[7..]),
        ] {
            let shown = mask.clean(&format!("invalid credential: {form}"));
            assert!(!shown.contains(form.trim_matches('*')), "{form}: {shown}");
            assert!(!shown.to_lowercase().contains("canary"), "{form}: {shown}");
        }
    }

    #[test]
    fn data_do_not_come_through() {
        for (text, shown) in [
            ("\n  no such project.", "no such project"),
            ("panic: cannot write [{\"id\": 1, \"token\": \"t\"}]", "panic: cannot write…"),
            ("row not valid: Gadget(id=1, token='t')", "row not valid: Gadget(id…"),
            ("[{\"token\": \"t\"}]", ""),
            ("boom\nid: 1\ntoken: t", "boom…"),
        ] {
            assert_eq!(Mask::default().prose(text), shown);
        }
    }

    #[test]
    fn no_half_of_a_secret_comes_through() {
        let mask = Mask::of_key(Some(&Key::new("s3cret-".repeat(40))));
        for spaces in ((LOOKED_AT - 300)..(LOOKED_AT + 2000)).step_by(17) {
            let text = format!("{}{}", " ".repeat(spaces), "s3cret-".repeat(400));
            let shown = mask.clean(&text);
            assert!(!shown.contains('s'), "{spaces}: {shown}");
        }
    }

    #[test]
    fn a_flood_is_no_work() {
        let words = "Value that a server repeats. ".repeat(1 << 20);
        let mut mask = Mask::default();
        (0..2000).for_each(|number| mask.add(&Value::String(format!("secret {number}").into())));
        mask.sort();
        let begun = std::time::Instant::now();
        assert!(mask.clean(&words).starts_with("Value that a server"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn excerpts_end() {
        let line = Mask::default().clean(&"ä".repeat(1000));
        assert_eq!(line.chars().count(), EXCERPT_MAX + 1);
    }
}
