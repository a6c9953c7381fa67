//! Digests: BLAKE3 over canonical JSON, and keyed fingerprints of secrets.
//!
//! Canonical JSON has sorted keys, no white space, and one way to write a number, so equal values
//! have equal digests. Sets count as sorted lists.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::value::{Attributes, Value};

/// A digest of something that is no secret: 32 hexadecimal digits (128 bits).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(Arc<str>);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(short(&blake3::hash(bytes)))
    }

    /// Returns the digest of the compact JSON text of something. The text is not kept in memory.
    pub fn of_json(json: &impl Serialize) -> Self {
        let mut hasher = std::io::BufWriter::with_capacity(1 << 16, blake3::Hasher::new());
        // Hashing cannot fail, and the digested types have text keys and finite numbers.
        let written = serde_json::to_writer(&mut hasher, json).is_ok();
        match hasher.into_inner() {
            Ok(hasher) if written => Self(short(&hasher.finalize())),
            _ => Self::of(b""),
        }
    }

    /// The digest of a value in canonical form.
    pub fn of_value(value: &Value) -> Self {
        Self::of(canonical(value).as_bytes())
    }

    /// The digest of attributes in canonical form.
    pub fn of_attributes(attributes: &Attributes) -> Self {
        let mut text = String::new();
        write_map(attributes, &mut text);
        Self::of(text.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key under which a lineage's secrets are fingerprinted. Kept in the state, never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SealKey(String);

impl SealKey {
    /// Makes a key from 32 random bytes that the shell supplies.
    pub fn from_random(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes).to_hex().to_string())
    }

    fn bytes(&self) -> [u8; 32] {
        // A key that was damaged still gives a key, under which nothing matches.
        blake3::Hash::from_hex(&self.0)
            .map_or_else(|_| *blake3::hash(self.0.as_bytes()).as_bytes(), |hash| *hash.as_bytes())
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(…)")
    }
}

/// A keyed fingerprint of a secret. It reveals only that two secrets are equal, or that they differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Arc<str>);

impl Fingerprint {
    /// The fingerprint of a known value under `key`.
    pub fn of(value: &Value, key: &SealKey) -> Self {
        Self(short(&blake3::keyed_hash(&key.bytes(), canonical(value).as_bytes())))
    }

    /// Returns the fingerprint of a digest that was made of a secret. Without the key, nobody can test
    /// guesses of the secret against it.
    pub fn of_digest(digest: &Digest, key: &SealKey) -> Self {
        Self::of(&Value::string(&*digest.0), key)
    }

    /// Returns the first eight digits, by which people tell accounts apart.
    pub fn start(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

fn short(hash: &blake3::Hash) -> Arc<str> {
    hash.to_hex()[..32].into()
}

/// The canonical JSON text of a value. Sealed parts count by their fingerprint, unknown ones by
/// their residual.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Integer(number) => {
            let _ = write!(text, "{number}");
        }
        // A float without a fraction is written as a whole number, so 1 and 1.0 agree.
        Value::Float(number) => match value.as_integer() {
            Some(whole) => text.push_str(&whole.to_string()),
            None => text.push_str(&number.to_string()),
        },
        Value::String(string) => write_string(string, text),
        Value::List(items) | Value::Set(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Map(entries) => write_map(entries, text),
        Value::Sealed(sealed) => write_tagged("sealed", &sealed.fingerprint.0, text),
        Value::Unknown(unknown) => write_tagged("unknown", &unknown.residual.to_string(), text),
    }
}

/// Writes a form that no value has, so a sealed value never equals a text.
fn write_tagged(tag: &str, content: &str, text: &mut String) {
    text.push('<');
    text.push_str(tag);
    text.push(' ');
    write_string(content, text);
    text.push('>');
}

fn write_map(entries: &Attributes, text: &mut String) {
    text.push('{');
    for (index, (name, value)) in entries.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(name, text);
        text.push(':');
        write(value, text);
    }
    text.push('}');
}

fn write_string(string: &str, text: &mut String) {
    // Most texts need no escape.
    if string.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        text.push('"');
        text.push_str(string);
        text.push('"');
        return;
    }
    text.push_str(&serde_json::Value::from(string).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(canonical(&Value::Float(1.0)), "1");
        assert_eq!(canonical(&Value::Float(0.5)), "0.5");
        assert_eq!(Digest::of_value(&Value::Float(2.0)), Digest::of_value(&Value::Integer(2)));
    }

    #[test]
    fn fingerprints_depend_on_the_key() {
        let (a, b) = (SealKey::from_random([1; 32]), SealKey::from_random([2; 32]));
        let secret = Value::string("hunter2");
        assert_eq!(Fingerprint::of(&secret, &a), Fingerprint::of(&secret, &a));
        assert_ne!(Fingerprint::of(&secret, &a), Fingerprint::of(&secret, &b));
        assert!(!format!("{a:?}").contains('1'));
    }
}
