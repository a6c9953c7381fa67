//! Redaction of secrets that left their place: they are recognised by their text.
//!
//! A spec says in which place of an object a secret is, and the state records it. Another program that
//! changes the object does not respect that: it inserts an argument before the secret or renames a key, or a
//! server sorts a list or builds a text from it. So the [`SecretScanner`] first seals the recorded places of
//! an observed object. Then it seals each text that is known to be secret: one whose fingerprint the state
//! has for the object, and one that is or contains a secret that this run has in clear. If a secret left its
//! place and is not found again, it may have been made into another text, so new text of that attribute is
//! sealed, too.
//!
//! Numbers, and texts so short or common that they also mean other things, are secret only in their places.

use std::collections::BTreeSet;

use super::known_secrets::{KnownSecrets, is_telling};
use super::{seal_attributes, seal_part};
use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
use crate::value::{Attributes, Path, Paths, Segment, Value};

/// Seals the secrets in what an API shows.
#[derive(Clone, Copy)]
pub struct SecretScanner<'a> {
    key: &'a SealKey,
    secrets: &'a KnownSecrets,
}

impl<'a> SecretScanner<'a> {
    /// Returns a scanner with the key of a state, and the secrets that the run knows.
    pub fn new(key: &'a SealKey, secrets: &'a KnownSecrets) -> Self {
        Self { key, secrets }
    }

    /// The key.
    pub fn key(&self) -> &'a SealKey {
        self.key
    }

    /// The secrets that the run knows.
    pub fn secrets(&self) -> &'a KnownSecrets {
        self.secrets
    }

    /// Returns true if there is nothing to search for outside the places of an object.
    fn knows_none(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Seals the observed attributes of an object, at its sensitive places and wherever else a secret
    /// appears. `recorded` are the known attributes, sealed, the newest first: for each attribute, the first
    /// that has it counts.
    pub fn seal(&self, seen: &Attributes, places: &Paths, recorded: &[&Attributes]) -> Attributes {
        let sealed = seal_attributes(seen, places, self.key);
        let mut marks = BTreeSet::new();
        for value in recorded.iter().flat_map(|recorded| recorded.values()) {
            each_sealed(value, &mut Path::root(), &mut |_, mark| {
                marks.insert(mark);
            });
        }
        if marks.is_empty() && self.knows_none() {
            return sealed;
        }
        let seal = |(name, value): (&Name, &Value)| {
            let was: Vec<&Value> = recorded.iter().filter_map(|it| it.get(name)).collect();
            let clear = seen.get(name).unwrap_or(value);
            (name.clone(), self.attribute(value, clear, &was, &marks))
        };
        sealed.iter().map(seal).collect()
    }

    /// Seals the secrets of the run wherever they appear in a value.
    pub fn seal_value(&self, value: &Value) -> Value {
        self.seal_part_of(value, value)
    }

    /// Seals the secrets in a value of which a part is sealed already; `clear` is the value before that.
    pub fn seal_part_of(&self, value: &Value, clear: &Value) -> Value {
        let is_secret = |text: &str, _| self.secrets.are_in(text);
        self.where_it_stands(value, clear, &is_secret).unwrap_or_else(|| value.clone())
    }

    fn attribute(
        &self,
        value: &Value,
        clear: &Value,
        was: &[&Value],
        marks: &BTreeSet<&Fingerprint>,
    ) -> Value {
        let is_secret = |text: &str, _| self.secrets.are_in(text) || self.is_marked(text, marks);
        let sealed = self.where_it_stands(value, clear, &is_secret);
        let sealed = sealed.unwrap_or_else(|| value.clone());
        if !was.first().is_some_and(|was| has_lost_one(was, &sealed)) {
            return sealed;
        }
        let mut shown = BTreeSet::new();
        for was in was {
            clear_texts(was, &mut shown);
        }
        let is_new =
            |text: &str, stands: Stands| stands == Stands::AsValue && !shown.contains(text);
        self.where_it_stands(&sealed, clear, &is_new).unwrap_or(sealed)
    }

    fn is_marked(&self, text: &str, marks: &BTreeSet<&Fingerprint>) -> bool {
        !marks.is_empty()
            && is_telling(text)
            && marks.contains(&Fingerprint::of(&Value::string(text), self.key))
    }

    /// Returns the value with its secret texts sealed; none if it has no secret. A set that contains a secret
    /// is sealed as a whole. A map with a secret key is sealed as a whole, too, because a key cannot be
    /// sealed; then it is sealed as it was in `clear`, before anything in it was sealed.
    fn where_it_stands(
        &self,
        value: &Value,
        clear: &Value,
        is_secret: &dyn Fn(&str, Stands) -> bool,
    ) -> Option<Value> {
        match value {
            Value::String(text) => {
                is_secret(text, Stands::AsValue).then(|| seal_part(value, self.key))
            }
            Value::List(items) => {
                let clear = clear.as_items().unwrap_or(items);
                self.items(items, clear, is_secret).map(Value::list)
            }
            Value::Set(items) => {
                self.items(items, items, is_secret).map(|_| seal_part(clear, self.key))
            }
            Value::Map(entries) if entries.keys().any(|name| is_secret(name, Stands::AsName)) => {
                Some(seal_part(clear, self.key))
            }
            Value::Map(entries) => {
                let items: Vec<Value> = entries.values().cloned().collect();
                let clear = clear.as_map().unwrap_or(entries);
                let clear: Vec<Value> = clear.values().cloned().collect();
                let items = self.items(&items, &clear, is_secret)?;
                Some(Value::map(entries.keys().cloned().zip(items).collect()))
            }
            _ => None,
        }
    }

    fn items(
        &self,
        items: &[Value],
        clear: &[Value],
        is_secret: &dyn Fn(&str, Stands) -> bool,
    ) -> Option<Vec<Value>> {
        let mut sealed = None;
        for (index, (item, clear)) in items.iter().zip(clear).enumerate() {
            if let Some(item) = self.where_it_stands(item, clear, is_secret) {
                sealed.get_or_insert_with(|| items.to_vec())[index] = item;
            }
        }
        sealed
    }
}

/// The way in which a text is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    AsValue,
    AsName,
}

/// Seals the parts that are sealed in `like` in the same place: the same object, seen by a run that knew more
/// secrets.
pub fn seal_like(value: &Value, like: &Value, key: &SealKey) -> Value {
    match (value, like) {
        (value, Value::Sealed(_)) => seal_part(value, key),
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others.iter());
            Value::list(pairs.map(|(item, other)| seal_like(item, other, key)).collect())
        }
        (Value::Map(entries), Value::Map(others)) => Value::map(
            entries
                .iter()
                .map(|(name, item)| match others.get(name) {
                    Some(other) => (name.clone(), seal_like(item, other, key)),
                    None => (name.clone(), item.clone()),
                })
                .collect(),
        ),
        (value, _) => value.clone(),
    }
}

/// Returns true if a secret that was sealed inside an attribute is not in it any more and was not replaced
/// under the same key.
fn has_lost_one(was: &Value, now: &Value) -> bool {
    let mut found = BTreeSet::new();
    each_sealed(now, &mut Path::root(), &mut |_, mark| {
        found.insert(mark);
    });
    let mut lost = false;
    each_sealed(was, &mut Path::root(), &mut |path, mark| {
        let by_key = !path.0.iter().any(|segment| matches!(segment, Segment::Index(_)));
        let is_replaced = || by_key && now.at(path).is_some_and(|part| !part.is_null());
        lost |= !path.0.is_empty() && !found.contains(mark) && !is_replaced();
    });
    lost
}

fn each_sealed<'a>(
    value: &'a Value,
    path: &mut Path,
    found: &mut dyn FnMut(&Path, &'a Fingerprint),
) {
    match value {
        Value::Sealed(sealed) => found(path, &sealed.fingerprint),
        Value::List(items) | Value::Set(items) => {
            for (index, item) in items.iter().enumerate() {
                path.0.push(index.into());
                each_sealed(item, path, found);
                path.0.pop();
            }
        }
        Value::Map(entries) => {
            for (name, item) in entries.iter() {
                path.0.push(name.clone().into());
                each_sealed(item, path, found);
                path.0.pop();
            }
        }
        _ => {}
    }
}

fn clear_texts<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => drop(found.insert(text)),
        Value::List(items) | Value::Set(items) => {
            items.iter().for_each(|item| clear_texts(item, found));
        }
        Value::Map(entries) => entries.values().for_each(|item| clear_texts(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::agree;
    use crate::stored::{Stored, from_json};
    use crate::value::Datum;

    const SECRET: &str = "Hunter2-CANARY-77";

    fn attributes(json: &serde_json::Value) -> Attributes {
        from_json(json).as_map().unwrap().clone()
    }

    fn key() -> SealKey {
        SealKey::from_random([7; 32])
    }

    /// Returns the redacted form of `live`, an object that was recorded with the text in `[…]` sealed.
    fn rests(recorded: &serde_json::Value, live: &serde_json::Value, known: &[&str]) -> String {
        let key = key();
        let mut places = Paths::none();
        let mut was = attributes(recorded);
        mark(&Value::map(was.clone()), &Path::root(), &mut places);
        was = seal_attributes(&was, &places, &key);
        let known: Vec<Datum> = known.iter().map(|it| Datum::secret(Value::string(*it))).collect();
        let known = KnownSecrets::of(&known);
        let live = attributes(live);
        let sealed = SecretScanner::new(&key, &known).seal(&live, &places, &[&was]);
        // Whatever was sealed, the object still agrees with itself.
        for (name, value) in &live {
            assert!(agree(value, &sealed[name], &key), "{name}: {:?}", sealed[name]);
        }
        // A value that is sealed once stays sealed.
        let again =
            SecretScanner::new(&key, &KnownSecrets::default()).seal(&live, &places, &[&sealed]);
        assert_eq!(format!("{again:?}"), format!("{sealed:?}"));
        serde_json::to_string(&Stored::of_sealed(&Value::map(sealed))).unwrap()
    }

    fn mark(value: &Value, at: &Path, places: &mut Paths) {
        match value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(n, item)| mark(item, &at.join(n), places));
            }
            Value::Map(entries) => {
                entries.iter().for_each(|(name, it)| mark(it, &at.join(name.clone()), places));
            }
            Value::String(text) if &**text == SECRET => places.insert(at.clone()),
            _ => {}
        }
    }

    fn recorded() -> serde_json::Value {
        json!({
            "args": ["sleep", "--token", SECRET],
            "env": {"A": "1", "TOKEN": SECRET},
            "rows": [{"k": "TOKEN", "v": SECRET}, {"k": "B", "v": "2"}],
            "image": "img:1",
        })
    }

    /// Returns the object with some changes made outside Plumb.
    fn with(changes: &serde_json::Value) -> serde_json::Value {
        let mut live = recorded();
        for (name, value) in changes.as_object().unwrap() {
            live[name] = value.clone();
        }
        live
    }

    #[test]
    fn a_secret_that_moved_is_sealed_where_it_stands() {
        for changes in [
            json!({"args": ["env", "sleep", "--token", SECRET]}),
            json!({"args": ["--token", SECRET]}),
            json!({"args": [SECRET, "--token", "sleep"]}),
            json!({"args": ["sh", "-c", format!("sleep --token {SECRET}")]}),
            json!({"env": {"A": "1", "TOKEN_OLD": SECRET}}),
            json!({"env": {"A": SECRET, "TOKEN": "1"}}),
            json!({"env": {"A": "1", SECRET: "1"}}),
            json!({"env": {"A": "1", "TOKEN": SECRET, SECRET: "1"}}),
            json!({"rows": [{"k": "B", "v": "2"}, {"k": "TOKEN", "v": SECRET}]}),
            json!({"image": SECRET}),
        ] {
            // The text is found by its fingerprint alone, and also by its clear text.
            for known in [&[][..], &[SECRET]] {
                let text = rests(&recorded(), &with(&changes), known);
                assert!(!text.contains(SECRET), "{changes} {known:?}: {text}");
            }
        }
    }

    #[test]
    fn a_secret_of_the_run_is_sealed_inside_other_texts() {
        let readme = format!("token {SECRET}");
        let env = json!({"A": format!("x{SECRET}y"), "TOKEN": SECRET});
        for changes in [json!({"readme": readme}), json!({"env": env})] {
            let text = rests(&recorded(), &with(&changes), &[SECRET]);
            assert!(!text.contains(SECRET), "{changes}: {text}");
        }
        let text = rests(&json!({"readme": ""}), &json!({"readme": readme}), &[SECRET]);
        assert!(!text.contains(SECRET), "{text}");
    }

    /// If an attribute lost its secret, its new text is sealed, because it may be made of the secret, or be
    /// the next one.
    #[test]
    fn of_an_attribute_that_lost_its_secret_nothing_new_is_shown() {
        let next = "next-secret";
        let env = json!({"A": "1", "TOKEN_NEXT": next});
        for changes in [json!({"args": ["env", "sleep", "--token", next]}), json!({"env": env})] {
            let text = rests(&recorded(), &with(&changes), &[]);
            assert!(!text.contains(next), "{changes}: {text}");
            assert!(text.contains("sleep") && text.contains("img:1"), "{text}");
        }
        // A secret that was replaced under its key did not move.
        let env = json!({"A": "1", "TOKEN": next, "B": "a new one"});
        let text = rests(&recorded(), &with(&json!({"env": env})), &[]);
        assert!(!text.contains(next) && text.contains("a new one"), "{text}");
    }

    #[test]
    fn what_is_short_or_ordinary_is_shown_elsewhere() {
        let live = json!({
            "a": "abc", "b": "true", "c": "8080", "d": "/root/app", "e": ["FALSE", "xabcx"],
        });
        let known = ["abc", "true", "8080", "root", "false", ""];
        let text = rests(&json!({}), &live, &known);
        for shown in ["abc", "true", "8080", "/root/app", "FALSE", "xabcx"] {
            assert!(text.contains(&format!("\"{shown}\"")), "{shown}: {text}");
        }
        let live = json!({"a": "root", "b": "12345678"});
        let text = rests(&json!({}), &live, &["root", "12345678"]);
        assert!(!text.contains("root") && !text.contains("12345678"), "{text}");
    }

    #[test]
    fn an_object_without_secrets_is_taken_as_it_is() {
        let (key, none) = (key(), KnownSecrets::default());
        let live = attributes(&recorded());
        let recorded = [&live];
        assert_eq!(SecretScanner::new(&key, &none).seal(&live, &Paths::none(), &recorded), live);
    }

    #[test]
    fn who_knows_less_seals_what_another_sealed() {
        let (key, known) = (key(), KnownSecrets::of(&[Datum::secret(Value::string(SECRET))]));
        let live = attributes(&recorded());
        let sealed = SecretScanner::new(&key, &known).seal(&live, &Paths::none(), &[]);
        assert_ne!(sealed, live);
        let (live, sealed) = (Value::map(live), Value::map(sealed));
        assert_eq!(seal_like(&live, &sealed, &key), sealed);
        assert_eq!(seal_like(&live, &live, &key), live);
    }
}
