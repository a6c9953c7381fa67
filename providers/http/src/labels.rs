//! Secrets that nobody here knows, in a server's words: they are told by the names that they stand under.
//!
//! A refusal may show the object as it is, with a token that the API generated, or the password before
//! this one. Of those only fingerprints are known, and the schema says where they stand. What is known
//! is [`crate::hidden`]'s.

use std::collections::BTreeSet;

use engine::stored::from_json;
use engine::value::{Attributes, Path, Value};
use provider_port::Secrets;
use serde_json::Value as Json;

use crate::descriptor::model::TypeModel;

/// What stands for a secret.
const MASKED: &str = "…";
/// So much of secrets, in bytes, is looked for in a server's words; of an answer with more nothing is shown.
const BYTES_MAX: usize = 16 << 10;

/// The names that secrets stand under on the wire, however they are spelled.
#[derive(Clone, Default)]
pub(crate) struct Labels(BTreeSet<String>);

impl Labels {
    /// The names of a type's sensitive attributes, and of what is a secret of this object.
    pub(crate) fn of(model: &TypeModel, secrets: &Secrets, live: &Attributes) -> Self {
        let mut labels = Self::default();
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
            labels.0.extend(wires.map(|wire| spelled(wire)));
        }
        labels
    }

    /// What stands under these names anywhere in a body; nothing where that is too much to look for.
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

    /// Words without what stands under these names, however a server prints an object: `"token": "…"`,
    /// `token='…'`, `token:…`, `<token>…`.
    pub(crate) fn mask(&self, words: &str) -> String {
        let mut masked = String::with_capacity(words.len());
        let mut rest = words;
        while let Some((before, word, after)) = next_word(rest) {
            masked.push_str(before);
            masked.push_str(word);
            rest = after;
            let between = if self.0.contains(&spelled(word)) { separator(after) } else { None };
            if let Some(between) = between {
                let (separator, value) = after.split_at(between);
                masked.push_str(separator);
                let end = value_end(value);
                if end > 0 {
                    masked.push_str(MASKED);
                }
                rest = &value[end..];
            }
        }
        masked + rest
    }
}

/// A name without what tells `clientSecret`, `client_secret` and `Client-Secret` apart.
fn spelled(name: &str) -> String {
    name.chars().filter(|letter| is_inside(*letter)).flat_map(char::to_lowercase).collect()
}

fn is_inside(letter: char) -> bool {
    !matches!(letter, '_' | '-')
}

/// What stands before the next word, the word, and what follows.
fn next_word(text: &str) -> Option<(&str, &str, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || !is_inside(letter);
    let start = text.find(is_part)?;
    let (before, from) = text.split_at(start);
    let (word, after) = from.split_at(from.find(|letter| !is_part(letter)).unwrap_or(from.len()));
    Some((before, word, after))
}

/// How long what parts a name from its value is, if that is what follows.
fn separator(after: &str) -> Option<usize> {
    let quoted = after.trim_start_matches(['"', '\'', '`', '\\', ']']).trim_start();
    let value = quoted.strip_prefix([':', '=', '>'])?;
    Some(after.len() - value.trim_start_matches(['>', '=']).trim_start().len())
}

/// Where a value ends: at its quote, or where nothing more belongs to it. Of what holds more than one
/// value nothing that follows is told apart.
fn value_end(value: &str) -> usize {
    let inner = value.trim_start_matches('\\');
    let begin = value.len() - inner.len();
    let Some(first) = inner.chars().next() else { return value.len() };
    match first {
        '{' | '[' | '(' => value.len(),
        '"' | '\'' | '`' => {
            let text = &inner[1..];
            let is_end = |at: usize| begin > 0 || !text[..at].ends_with('\\');
            let end = text.match_indices(first).map(|(at, _)| at).find(|at| is_end(*at));
            end.map_or(value.len(), |at| begin + 1 + at)
        }
        _ => {
            let ends = |letter: char| letter.is_whitespace() || ",;)}]&<\"'".contains(letter);
            inner.find(ends).map_or(value.len(), |at| begin + at)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels() -> Labels {
        Labels(["token", "clientsecret"].map(str::to_owned).into())
    }

    #[test]
    fn what_stands_under_a_secret_name_is_masked_in_any_notation() {
        for (words, shown) in [
            (
                r#"{"id": "1", "token": "tok-1", "size": 2}"#,
                r#"{"id": "1", "token": …", "size": 2}"#,
            ),
            (r#"cannot write {\"token\":\"tok-1\"}"#, r#"cannot write {\"token\":…"}"#),
            (r#""token": "a\"tok-1", x"#, r#""token": …", x"#),
            ("Gadget(id=1, token='tok-1', x=2)", "Gadget(id=1, token=…', x=2)"),
            ("map[id:1 Token:tok-1 x:2]", "map[id:1 Token:… x:2]"),
            ("<Client-Secret>tok-1</Client-Secret>", "<Client-Secret>…</Client-Secret>"),
            ("id: 1\ntoken: tok-1\nx: 2", "id: 1\ntoken: …\nx: 2"),
            ("?client_secret=tok-1&x=2", "?client_secret=…&x=2"),
            (":token => \"tok-1\"", ":token => …\""),
            ("client_secret: [\"tok-1\", \"tok-2\"], x", "client_secret: …"),
            ("\"token\": \"tok-1", "\"token\": …"),
            ("token=", "token="),
        ] {
            assert_eq!(labels().mask(words), shown);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for words in
            ["the token is too old", "tokens: 3, my_token: 4", "no such thing", "", "…é: =ü"]
        {
            assert_eq!(labels().mask(words), words);
        }
        assert_eq!(Labels::default().mask("token: x"), "token: x");
    }

    #[test]
    fn secrets_are_found_anywhere_in_a_body() {
        let body =
            json!({"error": [{"current": {"Token": "a", "x": {"client-secret": ["b", 7]}}}]});
        let found = labels().values(&body).unwrap();
        assert_eq!(format!("{found:?}"), r#"["a", ["b", 7]]"#);
        let many: Vec<Json> = (0..10_000).map(|number| json!({ "token": number })).collect();
        assert_eq!(labels().values(&json!(many)), None);
        assert_eq!(labels().values(&json!({ "token": "x".repeat(BYTES_MAX) })), None);
        assert_eq!(Labels::default().values(&json!(many)), Some(Vec::new()));
    }
}
