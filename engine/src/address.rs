//! Addresses: the names of resources in all other modules.
//!
//! An address is immutable and serves as the key of maps. `Display` prints what a user types, and `FromStr`
//! is its inverse. An address is not the id of an object: the API chooses ids.

mod move_rule;
mod pattern;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::move_rule::{MoveRule, MoveRuleError};
pub use self::pattern::AddressPattern;

/// A name from a spec or a schema: shared, cheap to clone.
pub type Name = Arc<str>;

/// Words that are no names of resource types and functions.
pub const RESERVED_TYPES: [&str; 11] =
    ["var", "local", "each", "data", "module", "self", "old", "new", "plan", "job", "provider"];

/// Returns true if `text` matches `[a-z][a-z0-9_-]*`, the form of every name in a spec.
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// The path of a module instance, such as `module.app["eu"].module.cache`; that of the spec itself is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModulePath(Option<Name>);

impl ModulePath {
    /// The path of the spec itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the path of an instance of the module that this module calls by `name`; `key` is the key of
    /// its `for_each`.
    #[must_use]
    pub fn join(&self, name: &str, key: Option<&str>) -> Self {
        let mut text = self.0.as_ref().map(|path| format!("{path}.")).unwrap_or_default();
        text.push_str("module.");
        text.push_str(name);
        if let Some(key) = key {
            text.push_str(&in_brackets(key));
        }
        Self(Some(text.into()))
    }

    /// Returns true if this is the path of the spec itself.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// The path as text; empty for the spec itself.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the modules on the path, from the outside in, each with the key of its instance.
    pub fn steps(&self) -> Vec<(Name, Option<Name>)> {
        let (mut steps, mut rest) = (Vec::new(), self.as_str());
        while let Ok(Some((name, key, behind))) = split_step(rest) {
            steps.push((name.into(), key.map(Name::from)));
            rest = behind;
        }
        steps
    }

    /// Returns true if this path is the module `other` or inside it. If `other` has no key, all its instances
    /// count.
    pub fn is_within(&self, other: &Self) -> bool {
        let rest = self.as_str().strip_prefix(other.as_str());
        rest.is_some_and(|rest| other.is_root() || rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// Returns the name of something in the module, with the module's path before it.
    pub fn name_of(&self, name: &str) -> Name {
        match &self.0 {
            None => name.into(),
            Some(path) => format!("{path}.{name}").into(),
        }
    }
}

impl fmt::Display for ModulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ModulePath {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match split_module(text) {
            Ok((path, "")) if !path.is_root() => Ok(path),
            Ok(_) => Err(AddressError { text: text.to_owned(), reason: "it is not a module" }),
            Err(reason) => Err(AddressError { text: text.to_owned(), reason }),
        }
    }
}

/// The address of a resource block, `<type>.<name>`, or of a data block, `data.<type>.<name>`, with the path of its
/// module before it: one declaration, maybe many instances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The module that declares it.
    pub module: ModulePath,
    /// True for a data block, which looks up an object that others made.
    pub is_data: bool,
    /// The resource type, such as `value`; of a data block also `state` or `http`.
    pub ty: Name,
    /// The name that the spec gives.
    pub name: Name,
}

impl Block {
    /// Makes the address of a block of the spec itself. The caller has checked the names.
    pub fn new(ty: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { module: ModulePath::root(), is_data: false, ty: ty.into(), name: name.into() }
    }

    /// Makes the address of a data block of the spec itself. The caller has checked the names.
    pub fn data(ty: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { is_data: true, ..Self::new(ty, name) }
    }

    /// Returns the block of the same type and name in a module.
    #[must_use]
    pub fn within(&self, module: &ModulePath) -> Self {
        Self { module: module.clone(), ..self.clone() }
    }

    /// Returns the address of the only instance (`key` is none) or of one instance of `for_each`.
    pub fn instance(&self, key: Option<Name>) -> Address {
        Address { block: self.clone(), key }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_root() {
            write!(f, "{}.", self.module)?;
        }
        if self.is_data {
            f.write_str("data.")?;
        }
        write!(f, "{}.{}", self.ty, self.name)
    }
}

/// Returns a local value as people write it; the name of a local in a module contains the module's path.
pub fn local_shown(name: &str) -> std::borrow::Cow<'_, str> {
    if name.starts_with("module.") { name.into() } else { format!("local.{name}").into() }
}

/// Returns a key as it is written behind a name. JSON has the same escapes as the expression language, so the
/// text reads back.
pub(crate) fn in_brackets(key: &str) -> String {
    format!("[{}]", serde_json::Value::String(key.to_owned()))
}

/// The address of one resource instance: `<type>.<name>` or `<type>.<name>["key"]`, with the path of its
/// module before it.
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
            Some(key) => f.write_str(&in_brackets(key)),
        }
    }
}

/// The reason that a text is no address.
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
        let (module, rest) = split_module(text).map_err(fail)?;
        let (is_data, rest) = match rest.strip_prefix("data.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (ty, name) = rest.split_once('.').ok_or(fail("there is no dot"))?;
        if !is_name(ty) {
            return Err(fail("the part before the dot is not a resource type"));
        }
        if !is_name(name) {
            return Err(fail("the part after the dot is not a name"));
        }
        Ok(Self { module, is_data, ..Self::new(ty, name) })
    }
}

impl FromStr for Address {
    type Err = AddressError;

    /// Reads the address of a resource. The quotes around a key may be left out, because shells remove them.
    /// Refuses the address of a data block: no state has an object of it, and no command accepts it.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError { text: text.to_owned(), reason };
        let (module, rest) = split_module(text).map_err(fail)?;
        let (block, key) = match rest.find('[') {
            None => (rest, None),
            Some(at) => {
                let (key, after) = split_key(&rest[at..]).map_err(fail)?;
                if !after.is_empty() {
                    return Err(fail("something stands behind the bracket"));
                }
                (&rest[..at], Some(key.into()))
            }
        };
        let block: Block = block.parse().map_err(|error: AddressError| fail(error.reason))?;
        if block.is_data {
            return Err(fail("a data block looks up what is not Plumb's"));
        }
        Ok(Self { block: block.within(&module), key })
    }
}

/// Splits the path of a module off the beginning of an address.
fn split_module(text: &str) -> Result<(ModulePath, &str), &'static str> {
    let (mut path, mut rest) = (ModulePath::root(), text);
    while let Some((name, key, behind)) = split_step(rest)? {
        path = path.join(name, key.as_deref());
        rest = behind;
    }
    Ok((path, rest))
}

/// Splits the outermost module off the beginning of an address; none where there is no module.
#[expect(clippy::type_complexity, reason = "name, key and rest")]
fn split_step(text: &str) -> Result<Option<(&str, Option<String>, &str)>, &'static str> {
    let Some(after) = text.strip_prefix("module.") else { return Ok(None) };
    let end = after.find(['.', '[']).unwrap_or(after.len());
    let (name, mut after) = after.split_at(end);
    if !is_name(name) {
        return Err("the part after `module.` is not a name");
    }
    let mut key = None;
    if after.starts_with('[') {
        let (found, behind) = split_key(after)?;
        (key, after) = (Some(found), behind);
    }
    match after.strip_prefix('.') {
        Some(rest) => Ok(Some((name, key, rest))),
        None if after.is_empty() => Ok(Some((name, key, ""))),
        None => Err("there is no dot behind the module"),
    }
}

/// Splits `["key"]` or `[key]` off the beginning of a text.
fn split_key(text: &str) -> Result<(String, &str), &'static str> {
    let inner = text.strip_prefix('[').unwrap_or(text);
    if inner.starts_with('"') {
        // Every key that was written reads back, even one that no plan would give today.
        let mut keys = serde_json::Deserializer::from_str(inner).into_iter::<String>();
        let key = keys.next().and_then(Result::ok).ok_or("the key's quotes are wrong")?;
        let after = &inner[keys.byte_offset()..];
        return Ok((key, after.strip_prefix(']').ok_or("the bracket is not closed")?));
    }
    match inner.split_once(']') {
        None => Err("the bracket is not closed"),
        Some(("", _)) => Err("the key is empty"),
        Some((key, after)) => Ok((key.to_owned(), after)),
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
        for text in [
            r"value.a",
            r#"value.a-b["eu"]"#,
            r#"value.a["q\"uo\\te"]"#,
            r#"value.a["]"]"#,
            r"module.x.value.a",
            r#"module.x["a].b"].module.y.value.a["eu"]"#,
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for key in ["", " ", "\0", "[", "\"", "\\", "\u{202e}", "e\u{301}", "a\nb"] {
            let address = Block::new("value", "a").instance(Some(key.into()));
            assert_eq!(address.to_string().parse::<Address>().as_ref(), Ok(&address), "{key:?}");
        }
    }

    #[test]
    fn a_block_of_data_has_a_word_before_it() {
        for text in ["data.value.a", r#"module.x["eu"].data.value.a"#, "value.a"] {
            let block: Block = text.parse().unwrap();
            assert_eq!((block.to_string().as_str(), block.is_data), (text, text.contains("data.")));
        }
        assert_ne!(Block::data("value", "a"), Block::new("value", "a"));
    }

    #[test]
    fn the_shell_may_drop_the_quotes() {
        let address: Address = "value.a[eu]".parse().unwrap();
        assert_eq!(address.to_string(), r#"value.a["eu"]"#);
    }

    #[test]
    fn a_module_holds_its_instances_and_what_is_inside() {
        let path = |text: &str| text.parse::<ModulePath>().unwrap();
        let eu = path("module.x[eu].module.y");
        assert_eq!(eu.to_string(), r#"module.x["eu"].module.y"#);
        assert!(eu.is_within(&path("module.x")) && eu.is_within(&path("module.x[eu]")));
        assert!(eu.is_within(&eu) && eu.is_within(&ModulePath::root()));
        assert!(
            !eu.is_within(&path("module.x[e]")) && !path("module.xy").is_within(&path("module.x"))
        );
        assert!("value.a".parse::<ModulePath>().is_err() && "".parse::<ModulePath>().is_err());
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
            ("value.a[x]y", "behind the bracket"),
            ("module.X.value.a", "after `module.` is not a name"),
            ("module.x[eu]value.a", "no dot behind the module"),
            ("module.x", "there is no dot"),
            ("data.value.a", "a data block looks up"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
