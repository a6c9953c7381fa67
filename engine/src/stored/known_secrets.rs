//! The secrets that a run knows in clear, and the places where they appear in observed values: as a whole
//! text, or inside one.
//!
//! [`super::redact`] seals these places.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::value::{Attributes, Datum, Path, Paths, Segment, Value};

/// The fewest bytes of a secret that is recognised as a whole text.
const ALONE_MIN: usize = 4;
/// The fewest bytes of a secret that is recognised inside another text: `root` and `admin` appear in many
/// texts.
const INSIDE_MIN: usize = 6;
/// Up to this number, secrets are searched one by one.
const FEW: usize = 16;
/// The fewest bytes of a number that is recognised: a shorter one may be a port or a size.
const NUMBER_MIN: usize = 8;

/// The secrets that a run knows in clear. They are never printed.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    /// The secrets that were known first. They may be many, and a copy with a few more shares them.
    first: Arc<Texts>,
    more: Texts,
}

/// Texts, in order.
#[derive(Clone, Default)]
struct Texts(BTreeSet<Arc<str>>);

impl KnownSecrets {
    /// Returns the secrets among these values, such as a run's variables.
    pub fn of<'a>(data: impl IntoIterator<Item = &'a Datum>) -> Self {
        let mut known = Self::default();
        for Datum { value, sensitive } in data {
            known.add(value, sensitive);
        }
        Self { first: Arc::new(known.more), more: Texts::default() }
    }

    /// Adds the texts in the sensitive places of a value.
    pub fn add(&mut self, value: &Value, sensitive: &Paths) {
        for path in sensitive.iter() {
            if let Some(part) = value.at(&path.around_sets(value)) {
                self.more.add(part);
            }
        }
    }

    /// Returns the same secrets with those of attributes.
    #[must_use]
    pub fn with(&self, attributes: &Attributes, sensitive: &Paths) -> Self {
        let mut known = self.clone();
        for (name, value) in attributes {
            known.add(value, &sensitive.inside(&Segment::Key(name.clone())));
        }
        known
    }

    /// Returns true if there is no secret.
    pub fn is_empty(&self) -> bool {
        self.first.0.is_empty() && self.more.0.is_empty()
    }

    /// Returns the places of the secrets in a value that is not sealed. If a key in a map is a secret, the
    /// whole map is a place, and so is a set with a secret inside.
    pub fn places(&self, value: &Value) -> Paths {
        let mut places = Paths::none();
        if !self.is_empty() {
            self.find(value, &Path::root(), &mut places);
        }
        places.around_sets(value)
    }

    fn find(&self, value: &Value, at: &Path, places: &mut Paths) {
        match value {
            Value::String(text) if self.are_in(text) => places.insert(at.clone()),
            Value::List(items) | Value::Set(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| self.find(item, &at.join(index), places));
            }
            Value::Map(entries) if entries.keys().any(|name| self.are_in(name)) => {
                places.insert(at.clone());
            }
            Value::Map(entries) => {
                let entries = entries.iter();
                entries.for_each(|(name, item)| self.find(item, &at.join(name.clone()), places));
            }
            _ => {}
        }
    }

    /// Returns true if a text is a secret, or contains one.
    pub(super) fn are_in(&self, text: &str) -> bool {
        text.len() >= ALONE_MIN && (self.first.are_in(text) || self.more.are_in(text))
    }
}

impl Texts {
    /// Adds the texts in a value that are long and unusual enough to be recognised.
    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) if is_telling(text) => drop(self.0.insert(text.clone())),
            Value::List(items) | Value::Set(items) => {
                items.iter().for_each(|item| self.add(item));
            }
            Value::Map(entries) => entries.values().for_each(|item| self.add(item)),
            _ => {}
        }
    }

    fn are_in(&self, text: &str) -> bool {
        self.0.contains(text) || self.are_inside(text)
    }

    fn are_inside(&self, text: &str) -> bool {
        if self.0.len() <= FEW {
            let holds = |secret: &Arc<str>| secret.len() >= INSIDE_MIN && text.contains(&**secret);
            return self.0.iter().any(holds);
        }
        let mut starts = text.char_indices();
        starts.any(|(at, _)| self.begins(&text[at..]))
    }

    /// Returns true if one of many secrets is the beginning of a text, without a look at each. The last
    /// secret that sorts before the text is either that beginning, or shares with the text as many characters
    /// as any such beginning has.
    fn begins(&self, text: &str) -> bool {
        let mut rest = text;
        while rest.len() >= INSIDE_MIN {
            let up_to = (Bound::Unbounded, Bound::Included(rest));
            let Some(near) = self.0.range::<str, _>(up_to).next_back() else { return false };
            let same = near.chars().zip(rest.chars()).take_while(|(a, b)| a == b);
            let same = same.map(|(letter, _)| letter.len_utf8()).sum();
            if same == near.len() {
                return same >= INSIDE_MIN;
            }
            rest = &rest[..same];
        }
        false
    }
}

/// Returns true if a text is long and unusual enough to be recognised in any place.
pub(super) fn is_telling(text: &str) -> bool {
    let is_number = || text.len() < NUMBER_MIN && text.parse::<f64>().is_ok();
    let is_word = || matches!(&*text.to_ascii_lowercase(), "true" | "false" | "null" | "none");
    text.len() >= ALONE_MIN && !is_word() && !is_number()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known<'t>(texts: impl IntoIterator<Item = &'t str>) -> KnownSecrets {
        let first = Arc::new(Texts(texts.into_iter().map(Arc::from).collect()));
        KnownSecrets { first, more: Texts::default() }
    }

    /// Searches the secrets one by one, for comparison.
    fn are_in(known: &KnownSecrets, text: &str) -> bool {
        let is = |secret: &Arc<str>| {
            **secret == *text || secret.len() >= INSIDE_MIN && text.contains(&**secret)
        };
        text.len() >= ALONE_MIN && known.first.0.iter().any(is)
    }

    #[test]
    fn one_of_many_is_found_inside_a_text() {
        let many: Vec<String> = (0..1000).map(|n| format!("secret-{n:04}")).collect();
        let known = known(many.iter().map(String::as_str).chain(["pass", "secret", "ünï-cödé"]));
        for (text, expected) in [
            ("secret-0999", true),
            ("a secret-0999 b", true),
            ("secret-099", true),
            ("a secre-0999 b", false),
            ("a pass b", false),
            ("pass", true),
            ("x ünï-cödé", true),
            ("x ünï-cöd", false),
            ("", false),
        ] {
            assert_eq!(known.are_in(text), expected, "{text}");
        }
    }

    /// A step of an apply adds a few secrets to those of the run without copying those.
    #[test]
    fn who_knows_more_copies_none() {
        let known = known(["hunter-two"]);
        let more = known.with(
            &[("a".into(), Value::string("swordfish"))].into_iter().collect(),
            &Paths::from_iter([Path::attribute("a")]),
        );
        assert!(Arc::ptr_eq(&known.first, &more.first));
        assert!(more.are_in("swordfish") && more.are_in("hunter-two"));
        assert!(!known.are_in("swordfish"));
    }

    proptest! {
        /// The search among many secrets finds the same as the search one by one.
        #[test]
        fn what_is_found_does_not_depend_on_how_many_there_are(
            texts in prop::collection::btree_set("[abä]{4,9}", FEW + 1..60),
            text in "[abä]{0,24}",
        ) {
            let known = known(texts.iter().map(String::as_str));
            prop_assert_eq!(known.are_in(&text), are_in(&known, &text));
        }
    }
}
