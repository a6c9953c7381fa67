//! The masker: it removes secrets from paths, errors, messages of an API and lines of the log.
//!
//! It masks three kinds of text:
//! - a *secret* (the key, and the sensitive values of a call) as a whole, in parts and in any encoding,
//!   because a server that refuses a call repeats the sent values in forms of its own;
//! - a *value* of an object if it appears without a change;
//! - the text after the *name* of a sensitive attribute, because the API may show secrets that are not known
//!   here.
//!
//! Masked text is for people. Plumb stores no text of a server.

mod forms;
mod names;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::value::{Attributes, Value};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use provider_port::Secrets;
use serde_json::Value as Json;

use self::forms::{SecretForms, decodings};
pub(crate) use self::names::SecretNames;
use crate::descriptor::model::TypeModel;
use crate::key::Key;

/// The longest line that is shown, in characters.
const LINE_MAX: usize = 200;
/// The length of the text that is searched and shown, in bytes.
const TEXT_MAX: usize = 16 << 10;
/// The longest form of a part of a secret that [`SecretForms`] searches for, in bytes.
const PART_BYTES_MAX: usize = 24;
/// The characters that begin data in a server's message, in various notations: `{"id": …`, `map[id:…`,
/// `id=…`, or further lines.
const DATA: [char; 5] = ['{', '[', '=', '\n', '\r'];
/// The text in place of a secret.
const MASKED: &str = "…";
/// The text in place of a message that contains a secret in an encoding.
const NOT_SHOWN: &str = "(its words are not shown: they repeat a secret)";
/// The shortest value that is masked, in characters: masking shorter ones would break ordinary words.
const VALUE_MIN: usize = 4;
/// The shortest secret that is masked, in characters.
const SECRET_MIN: usize = 3;

/// Masks the secrets of one call, of one provider or of one check.
#[derive(Clone, Default)]
pub struct Masker {
    secrets: Vec<Arc<str>>,
    values: BTreeSet<Arc<str>>,
    names: SecretNames,
    /// True if an answer contains more secrets than can be searched for; then no part of it is shown.
    hides_all: bool,
}

impl Masker {
    /// Returns a masker of keys.
    pub(crate) fn of_keys<'k>(keys: impl IntoIterator<Item = &'k Key>) -> Self {
        Self::default().with_keys(keys)
    }

    /// Adds keys.
    #[must_use]
    pub(crate) fn with_keys<'k>(self, keys: impl IntoIterator<Item = &'k Key>) -> Self {
        let mut masker = self;
        for key in keys.into_iter().map(Key::reveal).filter(|key| !key.is_empty()) {
            masker.values.insert(key.into());
            masker.values.insert(utf8_percent_encode(key, NON_ALPHANUMERIC).to_string().into());
            masker.add_secret(&Value::string(key));
        }
        masker
    }

    /// Adds secrets.
    #[must_use]
    pub fn with_secrets(mut self, secrets: &[Value]) -> Self {
        for secret in secrets {
            self.add_secret(secret);
        }
        self
    }

    /// Adds the secrets that a call sends, and the secrets that they may be made of.
    #[must_use]
    pub(crate) fn with_secrets_of(mut self, secrets: &Secrets, sent: &Attributes) -> Self {
        for (_, value) in secrets.carried(sent) {
            self.add_secret(value);
            // A body of bytes carries what the text has in base64.
            let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                self.add_secret(&Value::string(text));
            }
        }
        self.with_secrets(&secrets.variables)
    }

    /// Adds the values of an object. Its name, its id, ids of other objects and texts from a list of allowed
    /// texts may be shown.
    #[must_use]
    pub(crate) fn with_object(mut self, model: &TypeModel, object: &Attributes) -> Self {
        for (name, value) in object {
            let is_public = model.attributes.get(name).is_some_and(|attribute| {
                let schema = &attribute.schema;
                let is_harmless = schema.constraint.one_of.is_some() || schema.holds.is_some();
                is_harmless && !schema.sensitive
            });
            if !is_public && model.name_attribute.as_ref() != Some(name) && *name != model.key {
                self.add_value(value);
            }
        }
        self
    }

    /// Sets the names of sensitive attributes.
    #[must_use]
    pub(crate) fn with_names(self, names: SecretNames) -> Self {
        Self { names, ..self }
    }

    /// Adds the secrets that an answer contains under the names of sensitive attributes, because its message
    /// may repeat them.
    #[must_use]
    pub(crate) fn with_body(&self, body: Option<&Json>) -> Self {
        let masker = self.clone();
        match body.map_or(Some(Vec::new()), |body| self.names.values(body)) {
            Some(secrets) => masker.with_secrets(&secrets),
            None => Self { hides_all: true, ..masker },
        }
    }

    fn add_secret(&mut self, value: &Value) {
        let mut add = |text: Arc<str>| {
            if text.chars().count() >= SECRET_MIN {
                self.secrets.push(text);
            }
        };
        match value {
            Value::String(text) => add(text.clone()),
            Value::Integer(number) => add(number.to_string().into()),
            Value::Float(number) => add(number.to_string().into()),
            Value::List(items) | Value::Set(items) => {
                items.iter().for_each(|item| self.add_secret(item));
            }
            Value::Map(entries) => entries.values().for_each(|item| self.add_secret(item)),
            // The values true and false reveal nothing by themselves.
            Value::Null | Value::Bool(_) | Value::Unknown(_) | Value::Sealed(_) => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.chars().count() >= VALUE_MIN => {
                let quoted = Json::from(&**text).to_string();
                self.values.insert(quoted[1..quoted.len() - 1].into());
                self.values.insert(text.clone());
            }
            Value::List(items) | Value::Set(items) => {
                items.iter().for_each(|item| self.add_value(item));
            }
            Value::Map(entries) => entries.values().for_each(|item| self.add_value(item)),
            _ => {}
        }
    }

    /// Returns a text with its secrets masked, up to 16 KiB of it. If a secret appears only after decoding
    /// the text, returns a fixed text, because the part to mask is not known.
    pub fn mask(&self, text: &str) -> String {
        if self.hides_all {
            return String::new();
        }
        // This bound includes the whole of a secret that begins before the end.
        let longest = self.values.iter().map(|value| value.len()).max().unwrap_or(0);
        let end = text.floor_char_boundary(TEXT_MAX + longest.max(PART_BYTES_MAX));
        // Names come first: the masking below may remove a word that is one of the names.
        let text = match self.names.before_value(&text[..end]) {
            Some(shown) => Cow::Owned(format!("{shown}{MASKED}")),
            None => Cow::Borrowed(&text[..end]),
        };
        let mut is_covered = vec![false; text.len()];
        for value in &self.values {
            for (start, found) in text.match_indices(&**value) {
                is_covered[start..start + found.len()].fill(true);
            }
        }
        if self.secrets.is_empty() {
            return without_covered(&text, &is_covered);
        }
        let forms = SecretForms::of(&self.secrets);
        forms.cover(&text, &mut is_covered);
        let masked = without_covered(&text, &is_covered);
        let shows = |decoded: &String| *decoded != masked && forms.are_in(decoded);
        if decodings(&masked).iter().any(shows) { NOT_SHOWN.to_owned() } else { masked }
    }

    /// Returns a text as one line of at most 200 characters, without secrets and control characters.
    pub(crate) fn line(&self, text: &str) -> String {
        line(&self.mask(text))
    }

    /// Returns the same line, but only up to the data in a server's message: an object in it may contain
    /// secrets that are not known here, for example of objects that Plumb does not manage.
    pub(crate) fn line_before_data(&self, text: &str) -> String {
        let masked = self.mask(text.trim_start());
        match masked.find(DATA) {
            Some(at) if masked[..at].trim().is_empty() => String::new(),
            Some(at) => format!("{}…", line(&masked[..at]).trim_end_matches('…')),
            None => line(&masked),
        }
    }
}

/// Returns a text up to the bound, with one mark in place of each covered part.
fn without_covered(text: &str, is_covered: &[bool]) -> String {
    let mut shown = String::with_capacity(text.len().min(TEXT_MAX));
    let mut was_covered = false;
    for (at, letter) in text.char_indices().take_while(|(at, _)| *at < TEXT_MAX) {
        match (is_covered[at], was_covered) {
            (false, _) => shown.push(letter),
            (true, false) => shown.push_str(MASKED),
            (true, true) => {}
        }
        was_covered = is_covered[at];
    }
    shown
}

/// Returns one line of at most 200 characters without control characters.
fn line(text: &str) -> String {
    let visible: String =
        text.chars().map(|c| if c.is_control() || is_bidi(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.trim_end_matches('.').to_owned(),
    }
}

/// Returns true for characters that change the direction of text, and so the text that people read.
fn is_bidi(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::forms::PART;
    use super::*;

    fn masker(secrets: &[Value]) -> Masker {
        Masker::default().with_secrets(secrets)
    }

    #[test]
    fn secrets_show_in_no_form() {
        let secret = "P\"rt&<Canary>+7é";
        let masker = masker(&[Value::string(secret), Value::Integer(7_423_187_465)]);
        let base64 = |text: &str| STANDARD_NO_PAD.encode(text);
        let forms = [
            secret.to_owned(),
            secret.to_uppercase(),
            secret.to_lowercase(),
            serde_json::Value::from(secret).to_string(),
            percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC)
                .to_string(),
            secret.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
            secret.chars().map(|c| format!("&#{};", u32::from(c))).collect::<Vec<_>>().concat(),
            secret.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<Vec<_>>().concat(),
            secret[..9].to_owned(),
            secret[7..].to_owned(),
            base64(secret),
            base64(&format!("u:{secret}")),
            base64(&format!("user:{secret}")).replace('+', "-").replace('/', "_"),
            base64(&format!("me:{secret}@host")),
            secret.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat(),
            "7423187465".to_owned(),
            "-7423187465.0".to_owned(),
        ];
        let small: Vec<char> = secret.to_lowercase().chars().collect();
        for form in forms {
            let shown = masker.mask(&format!("the value {form} is bad"));
            assert!(!shown.contains(&form), "{form}: {shown}");
            let letters: Vec<char> = shown.to_lowercase().chars().collect();
            let part = letters.windows(PART).any(|part| small.windows(PART).any(|s| s == part));
            assert!(!part && !shown.contains("742318"), "{form}: {shown}");
        }
    }

    #[test]
    fn ordinary_words_stay() {
        let masker = masker(&[
            Value::string("hunter2-hunter2"),
            Value::string("ab"),
            Value::Bool(true),
            Value::Integer(42),
        ]);
        let words = "the name \"hunt\" is taken: true, 42 & more &copy; 100% \\ab \\";
        assert_eq!(masker.mask(words), words);
        assert_eq!(masker.mask("no Hunter2- here"), "no … here");
        assert_eq!(Masker::default().mask("as it is"), "as it is");
    }

    #[test]
    fn the_bytes_of_a_secret_in_base64_are_hidden() {
        let path = engine::value::Path::attribute("content");
        let secrets = Secrets { places: [path].into_iter().collect(), ..Secrets::default() };
        let sent =
            Attributes::from_iter([("content".into(), Value::string("aHVudGVyMi1zZWNyZXQ="))]);
        let masker = Masker::default().with_secrets_of(&secrets, &sent);
        let line = masker.line("bad body hunter2-secret");
        assert!(!line.contains("hunter2"), "{line}");
    }

    #[test]
    fn short_secrets_are_known_as_a_whole() {
        let masker = masker(&[Value::Integer(123), Value::string("ab12")]);
        assert_eq!(masker.mask("pin 123 or AB12, 12"), "pin … or …, 12");
    }

    /// A secret that is a long file is found in an error message that repeats a part of it.
    #[test]
    fn a_long_secret_is_found_in_words_that_repeat_a_part_of_it() {
        let secret: String = (0..20_000).map(|n| (n * 7919).to_string() + ",").collect();
        let masker = masker(&[Value::string(&*secret)]);
        let words = format!("it begins so: {}, and ends", &secret[100_000..100_040]);
        assert_eq!(masker.mask(&words), "it begins so: …, and ends");
    }

    #[test]
    fn keys_and_controls_do_not_come_through() {
        let key = Key::new("s3cr/et");
        assert_eq!(format!("{key:?}"), "Key(…)");
        let masker = Masker::of_keys(Some(&key));
        assert_eq!(
            masker.line("bad key s3cr/et, also s3cr%2Fet\n\u{1b}[31m\u{202e}here."),
            "bad key …, also … [31m here"
        );
    }

    #[test]
    fn a_key_shows_in_no_form() {
        let key = "Zq\"9sK/Canary7Xw_t+Pl";
        let masker = Masker::of_keys(Some(&Key::new(key)));
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
            let shown = masker.line(&format!("invalid credential: {form}"));
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
            assert_eq!(Masker::default().line_before_data(text), shown);
        }
    }

    #[test]
    fn no_half_of_a_secret_comes_through() {
        let masker = Masker::of_keys(Some(&Key::new("s3cret-".repeat(40))));
        for spaces in ((TEXT_MAX - 300)..(TEXT_MAX + 2000)).step_by(17) {
            let text = format!("{}{}", " ".repeat(spaces), "s3cret-".repeat(400));
            let shown = masker.line(&text);
            assert!(!shown.contains('s'), "{spaces}: {shown}");
        }
    }

    #[test]
    fn a_flood_is_no_work() {
        let words = "Value that a server repeats. ".repeat(1 << 20);
        let mut masker = Masker::default();
        (0..2000)
            .for_each(|number| masker.add_value(&Value::String(format!("secret {number}").into())));
        let begun = std::time::Instant::now();
        assert!(masker.line(&words).starts_with("Value that a server"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn excerpts_end() {
        let line = Masker::default().line(&"ä".repeat(1000));
        assert_eq!(line.chars().count(), LINE_MAX + 1);
    }
}
