//! The names of sensitive attributes, by which secrets are found that are not known here.
//!
//! A refusal may show the object as it is, with a token that the API generated, or with the previous
//! password. Only the names of the attributes show that these are secrets.

use std::collections::BTreeSet;

use engine::stored::from_json;
use engine::value::{Attributes, Path, Value};
use provider_port::Secrets;
use serde_json::Value as Json;

use crate::descriptor::model::TypeModel;

/// The most bytes of secrets in an answer that are searched for in its message.
const BYTES_MAX: usize = 16 << 10;

/// The names of sensitive attributes on the wire, normalised so that all spellings of a name are equal.
#[derive(Clone, Default)]
pub(crate) struct SecretNames(BTreeSet<String>);

impl SecretNames {
    /// Collects the names of the sensitive attributes of a type, and of the attributes that are secrets of
    /// this object.
    pub(crate) fn of(model: &TypeModel, secrets: &Secrets, live: &Attributes) -> Self {
        let mut names = Self::default();
        for (name, attribute) in &model.attributes {
            let is_secret = attribute.schema.sensitive
                || secrets.places.touches(&Path::attribute(name.clone()))
                || live.get(name).is_some_and(Value::holds_sealed);
            if !is_secret {
                continue;
            }
            let paths =
                attribute.wires.values().flat_map(|shape| [&shape.read_at, &shape.write_at]);
            let wires = paths.flatten().filter_map(|path| path.last());
            names.0.extend(wires.map(|wire| spelled(wire)));
        }
        names
    }

    /// Returns the values under these names anywhere in a body; none if they are too many to search for.
    pub(crate) fn values(&self, body: &Json) -> Option<Vec<Value>> {
        let mut found = Vec::new();
        if !self.0.is_empty() {
            self.collect(body, &mut found);
        }
        let bytes: usize = found.iter().map(|item| item.to_string().len()).sum();
        (bytes <= BYTES_MAX).then(|| found.into_iter().map(from_json).collect())
    }

    fn collect<'a>(&self, body: &'a Json, found: &mut Vec<&'a Json>) {
        match body {
            Json::Object(entries) => {
                for (name, item) in entries {
                    if self.0.contains(&spelled(name)) {
                        found.push(item);
                    } else {
                        self.collect(item, found);
                    }
                }
            }
            Json::Array(items) => items.iter().for_each(|item| self.collect(item, found)),
            _ => {}
        }
    }

    /// Returns the part of a text before the first value that follows one of these names; none if there is no
    /// such value. A server may print an object in any notation: `"token": "…"`, `token='…'`, `token:…`,
    /// `<token>…`. The end of the value is not known: it may contain quotes, spaces and line breaks.
    pub(super) fn before_value<'t>(&self, words: &'t str) -> Option<&'t str> {
        let mut rest = words;
        while let Some((before, word, after)) = next_word(rest) {
            if self.0.contains(&spelled(word)) {
                let is_tag = before.ends_with('<') || before.ends_with("&lt;");
                let value = if is_tag { Some(after) } else { value(after) };
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    return Some(&words[..words.len() - value.len()]);
                }
            }
            rest = after;
        }
        None
    }
}

/// Returns a name in a form in which `clientSecret`, `client_secret` and `Client-Secret` are equal.
fn spelled(name: &str) -> String {
    name.chars().filter(|letter| is_inside(*letter)).flat_map(char::to_lowercase).collect()
}

fn is_inside(letter: char) -> bool {
    !matches!(letter, '_' | '-')
}

/// Splits a text into the part before its next word, the word, and the rest.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || !is_inside(letter);
    let start = text.find(is_part)?;
    let (before, from) = text.split_at(start);
    let (word, after) = from.split_at(from.find(|letter| !is_part(letter)).unwrap_or(from.len()));
    Some((before, word, after))
}

/// Punctuation in the forms that HTML, URLs and JSON write.
const WRITTEN: [(&str, char); 13] = [
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&gt;", '>'),
    ("&#58;", ':'),
    ("&#61;", '='),
    ("%22", '"'),
    ("%27", '\''),
    ("%3a", ':'),
    ("%3d", '='),
    ("%20", ' '),
    ("\\u0022", '"'),
];

/// Returns the value that follows a name: the text after punctuation that separates the two. None if there is
/// none.
fn value(after: &str) -> Option<&str> {
    let (mut rest, mut is_separated) = (after, false);
    while let Some((sign, length)) = sign(rest) {
        is_separated |= matches!(sign, ':' | '=' | '>');
        rest = &rest[length..];
    }
    is_separated.then_some(rest)
}

/// Returns the punctuation character that a text begins with, and its length; none before a letter or a
/// digit.
fn sign(text: &str) -> Option<(char, usize)> {
    let begins = |written: &str| {
        text.get(..written.len()).is_some_and(|start| start.eq_ignore_ascii_case(written))
    };
    let written = WRITTEN.iter().find(|(written, _)| begins(written));
    written.map(|(written, sign)| (*sign, written.len())).or_else(|| {
        let first = text.chars().next().filter(|first| !first.is_alphanumeric())?;
        Some((first, first.len_utf8()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> SecretNames {
        SecretNames(["token", "clientsecret"].map(str::to_owned).into())
    }

    #[test]
    fn what_stands_under_a_secret_name_is_masked_in_any_notation() {
        for (words, shown) in [
            (r#"{"id": "1", "token": "tok-1", "size": 2}"#, r#"{"id": "1", "token": "…"#),
            (r#"cannot write {\"token\":\"tok-1\"}"#, r#"cannot write {\"token\":\"…"#),
            ("Gadget(id=1, token='tok-1', x=2)", "Gadget(id=1, token='…"),
            ("map[id:1 Token:tok-1 x:2]", "map[id:1 Token:…"),
            ("<Client-Secret>tok-1</Client-Secret>", "<Client-Secret…"),
            ("<token type=\"x\">tok-1</token>", "<token…"),
            ("id: 1\ntoken: |\n  tok\n  1\nx: 2", "id: 1\ntoken: |\n  …"),
            ("token: Bearer tok-1", "token: …"),
            ("?client_secret=tok;1&x=2", "?client_secret=…"),
            (":token => \"tok-1\"", ":token => \"…"),
            ("client_secret: [\"tok-1\", \"tok-2\"], x", "client_secret: [\"…"),
            ("&quot;token&quot;:&quot;tok-1", "&quot;token&quot;:&quot;…"),
            ("token%22%3A%22tok-1", "token%22%3A%22…"),
            ("**token**: tok-1", "**token**: …"),
            ("token != tok-1", "token != …"),
            ("token=", "token="),
        ] {
            assert_eq!(names().before_value(words), shown.strip_suffix('…'));
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for words in [
            "the token is too old",
            "tokens: 3, my_token: 4",
            "no such token, and no `token` (or \"token\") at all",
            "no such thing",
            "",
            "…é: =ü",
        ] {
            assert_eq!(names().before_value(words), None);
        }
        assert_eq!(SecretNames::default().before_value("token: x"), None);
    }

    #[test]
    fn secrets_are_found_anywhere_in_a_body() {
        let body =
            json!({"error": [{"current": {"Token": "a", "x": {"client-secret": ["b", 7]}}}]});
        let found = names().values(&body).unwrap();
        assert_eq!(format!("{found:?}"), r#"["a", ["b", 7]]"#);
        let many: Vec<Json> = (0..10_000).map(|number| json!({ "token": number })).collect();
        assert_eq!(names().values(&json!(many)), None);
        assert_eq!(names().values(&json!({ "token": "x".repeat(BYTES_MAX) })), None);
        assert_eq!(SecretNames::default().values(&json!(many)), Some(Vec::new()));
    }
}
