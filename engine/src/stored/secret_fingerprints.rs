//! The search for secrets, of which only fingerprints are known, in the texts of others: of a page, a worker,
//! an API.

use std::collections::BTreeSet;

use super::Stored;
use super::known_secrets::is_telling;
use crate::digest::{Fingerprint, SealKey};
use crate::value::Value;

/// The most words of a text that are checked.
const WORDS_MAX: usize = 20_000;
/// The characters that end a word, for three passes: the more of them, the smaller the words.
const ENDS: [&str; 3] = ["", "\"'`<>()[]{},;", "\"'`<>()[]{},;=:&?/|"];

/// The fingerprints of secrets.
#[derive(Clone, Debug, Default)]
pub struct SecretFingerprints(BTreeSet<Fingerprint>);

impl SecretFingerprints {
    /// Adds the sealed parts of a value at rest.
    pub fn add(&mut self, stored: &Stored) {
        self.0.extend(stored.sealed.iter().map(|sealed| sealed.fingerprint.clone()));
    }

    /// Returns the words of a text that are secrets; one of them may be the whole text. Words so short or
    /// common that they also mean other things are left out.
    pub fn words<'t>(&self, text: &'t str, key: &SealKey) -> BTreeSet<&'t str> {
        if self.0.is_empty() {
            return BTreeSet::new();
        }
        let parts = ENDS.iter().flat_map(|ends| {
            let is_end = |letter: char| letter.is_whitespace() || ends.contains(letter);
            text.split(is_end).map(|word| word.trim_end_matches(['.', ',', '!']))
        });
        let words: BTreeSet<&str> =
            [text, text.trim()].into_iter().chain(parts).take(WORDS_MAX).collect();
        let is_secret = |word: &&str| {
            is_telling(word) && self.0.contains(&Fingerprint::of(&Value::string(*word), key))
        };
        words.into_iter().filter(is_secret).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Datum, Paths};

    #[test]
    fn words_that_are_secret_are_found() {
        let key = SealKey::from_random([7; 32]);
        let mut marks = SecretFingerprints::default();
        for secret in ["Hunter2-CANARY", "with two words", "true", "a/b=c:d?"] {
            let datum = Datum { value: Value::string(secret), sensitive: Paths::whole() };
            marks.add(&Stored::new(&datum, &key));
        }
        for (text, word) in [
            ("Hunter2-CANARY", "Hunter2-CANARY"),
            ("it is Hunter2-CANARY.", "Hunter2-CANARY"),
            (r#"{"token":"Hunter2-CANARY"}"#, "Hunter2-CANARY"),
            ("https://x/?token=Hunter2-CANARY&y=1", "Hunter2-CANARY"),
            ("with two words\n", "with two words"),
            (r#"["a/b=c:d?"]"#, "a/b=c:d?"),
        ] {
            assert_eq!(marks.words(text, &key).into_iter().collect::<Vec<_>>(), [word], "{text}");
        }
        assert!(marks.words("true is no secret, nor is hunter2", &key).is_empty());
    }
}
