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
    /// `token='…'`, `token:…`, `<token>…`. Where such a value ends nobody can tell: it may hold quotes,
    /// spaces and lines. So nothing that follows is shown.
    pub(crate) fn mask(&self, words: &str) -> String {
        let mut rest = words;
        while let Some((before, word, after)) = next_word(rest) {
            if self.0.contains(&spelled(word)) {
                let is_tag = before.ends_with('<') || before.ends_with("&lt;");
                let value = if is_tag { Some(after) } else { value(after) };
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    return format!("{}{MASKED}", &words[..words.len() - value.len()]);
                }
            }
            rest = after;
        }
        words.to_owned()
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

/// How signs look in pages, in addresses and in JSON.
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

/// The value that follows a name, if one does: what comes after signs of which one parts the two.
fn value(after: &str) -> Option<&str> {
    let (mut rest, mut is_parted) = (after, false);
    while let Some((sign, length)) = sign(rest) {
        is_parted |= matches!(sign, ':' | '=' | '>');
        rest = &rest[length..];
    }
    is_parted.then_some(rest)
}

/// The sign that a text begins with, and how long it is there; none where a letter or a digit is next.
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

    fn labels() -> Labels {
        Labels(["token", "clientsecret"].map(str::to_owned).into())
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
            assert_eq!(labels().mask(words), shown);
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
