//! Addresses: the name by which everything else knows a resource.
//!
//! An address is an immutable value and the key of every map. `Display` prints what a user types,
//! `FromStr` is its inverse. It is not an object's id: that one the API chooses.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name from a spec or a schema: shared, cheap to clone.
pub type Name = Arc<str>;

/// Words that no resource type and no function may be called.
pub const RESERVED_TYPES: [&str; 10] =
    ["var", "local", "each", "data", "module", "self", "old", "new", "job", "provider"];

/// Returns true if `text` matches `[a-z][a-z0-9_-]*`, the form of every name in a spec.
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// The address of a resource block, `<type>.<name>`: one declaration, maybe many instances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The resource type, such as `value`.
    pub ty: Name,
    /// The name that the spec gives.
    pub name: Name,
}

impl Block {
    /// Makes the address of a block. The caller has checked the names.
    pub fn new(ty: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { ty: ty.into(), name: name.into() }
    }

    /// The address of the only instance (`key` is none) or of one instance of `for_each`.
    pub fn instance(&self, key: Option<Name>) -> Address {
        Address { block: self.clone(), key }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ty, self.name)
    }
}

/// The address of one resource instance: `<type>.<name>` or `<type>.<name>["key"]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The block that declares it.
    pub block: Block,
    /// The key of `for_each`, if the block has one.
    pub key: Option<Name>,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.block.fmt(f)?;
        match &self.key {
            None => Ok(()),
            // JSON's escapes are the ones of the expression language, so the text reads back.
            Some(key) => {
                write!(f, "[{}]", serde_json::Value::String(key.to_string()))
            }
        }
    }
}

/// The reason why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an address: {reason}; write TYPE.NAME or TYPE.NAME[\"KEY\"], as `plumb state list` prints them"
)]
pub struct AddressError {
    text: String,
    reason: &'static str,
}

impl FromStr for Block {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError { text: text.to_owned(), reason };
        let (ty, name) = text.split_once('.').ok_or(fail("there is no dot"))?;
        if !is_name(ty) {
            return Err(fail("the part before the dot is not a resource type"));
        }
        if !is_name(name) {
            return Err(fail("the part after the dot is not a name"));
        }
        Ok(Self::new(ty, name))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads an address. The quotes around a key may be left out, for the sake of shells.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError { text: text.to_owned(), reason };
        let Some((block, rest)) = text.split_once('[') else {
            return Ok(Self { block: text.parse()?, key: None });
        };
        let block: Block = block.parse()?;
        let inner = rest.strip_suffix(']').ok_or(fail("the bracket is not closed"))?;
        let key = if inner.starts_with('"') {
            // Whatever is written reads back, also a key that no plan gives any more.
            serde_json::from_str::<String>(inner).map_err(|_| fail("the key's quotes are wrong"))?
        } else if inner.is_empty() {
            return Err(fail("the key is empty"));
        } else {
            inner.to_owned()
        };
        Ok(Self { block, key: Some(key.into()) })
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_are_inverse() {
        for text in [r"value.a", r#"value.a-b["eu"]"#, r#"value.a["q\"uo\\te"]"#, r#"value.a["]"]"#]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for key in ["", " ", "\0", "[", "\"", "\\", "\u{202e}", "e\u{301}", "a\nb"] {
            let address = Block::new("value", "a").instance(Some(key.into()));
            assert_eq!(address.to_string().parse::<Address>().as_ref(), Ok(&address), "{key:?}");
        }
    }

    #[test]
    fn the_shell_may_drop_the_quotes() {
        let address: Address = "value.a[eu]".parse().unwrap();
        assert_eq!(address.to_string(), r#"value.a["eu"]"#);
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, reason) in [
            ("value", "there is no dot"),
            ("Value.a", "not a resource type"),
            ("value.", "not a name"),
            ("value.a[", "not closed"),
            ("value.a[]", "key is empty"),
            ("value.a[\"x]", "quotes are wrong"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
