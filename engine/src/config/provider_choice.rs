//! The provider instance that a block chooses, and the names of the instances of a provider with `for_each`.

use std::collections::BTreeMap;

use crate::address::{Address, Name, in_brackets};
use crate::expression::{Expr, Kind, Root};
use crate::value::Value;

/// The provider instance that manages the objects of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderChoice {
    /// One instance for all objects.
    Instance(Name),
    /// The instance of this provider with the same key as the object's instance.
    ByKey(Name),
}

impl ProviderChoice {
    /// Reads `acme`, `acme["eu"]`, `acme[eu]` or `acme["${each.key}"]`; returns none for other expressions.
    pub(super) fn read(expr: &Expr) -> Option<Self> {
        match &expr.kind {
            Kind::Literal(Value::String(text)) => Some(Self::Instance(instance(text))),
            Kind::Template(parts) => match parts.as_slice() {
                [before, key, after] if matches!(key.kind, Kind::Root(Root::EachKey)) => {
                    let before = literal(before)?;
                    let name = match literal(after)? {
                        "\"]" => before.strip_suffix("[\"")?,
                        "]" => before.strip_suffix('[')?,
                        _ => return None,
                    };
                    Some(Self::ByKey(name.into()))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the instance that manages the object at an address of the block.
    pub fn of(&self, address: &Address) -> Name {
        self.at_key(address.key.as_ref())
    }

    /// Returns the instance that manages the object with a key.
    pub(super) fn at_key(&self, key: Option<&Name>) -> Name {
        match (self, key) {
            (Self::Instance(name), _) | (Self::ByKey(name), None) => name.clone(),
            (Self::ByKey(name), Some(key)) => instance_name(name, key),
        }
    }

    /// Returns true if an instance is one that the block may choose.
    pub fn may_be(&self, instance: &str) -> bool {
        match self {
            Self::Instance(name) => **name == *instance,
            Self::ByKey(name) => {
                instance.strip_prefix(&**name).is_some_and(|it| it.starts_with('['))
            }
        }
    }

    /// Returns the choice with the provider names that the call of a module passes in place of the module's
    /// own.
    pub(super) fn renamed(self, passed: Option<&BTreeMap<Name, Name>>) -> Self {
        let Some(passed) = passed else { return self };
        match self {
            Self::Instance(name) => {
                let (base, key) = name.split_at(base(&name).len());
                let outer = passed.get(&name).cloned();
                let of_base = || Some(format!("{}{key}", passed.get(base)?).into());
                Self::Instance(outer.or_else(of_base).unwrap_or(name))
            }
            Self::ByKey(name) => Self::ByKey(passed.get(&name).cloned().unwrap_or(name)),
        }
    }
}

/// Returns the name of the instance of a provider that has a key: `acme["eu"]`.
pub fn instance_name(provider: &str, key: &str) -> Name {
    format!("{provider}{}", in_brackets(key)).into()
}

/// Returns the name of the provider block that an instance comes from.
pub fn base(instance: &str) -> &str {
    instance.split('[').next().unwrap_or_default()
}

/// Returns the key of an instance.
pub fn key(instance: &str) -> Option<String> {
    serde_json::from_str(
        instance.strip_prefix(base(instance))?.strip_prefix('[')?.strip_suffix(']')?,
    )
    .ok()
}

/// Returns the name of an instance as people write it in a spec: a TOML text.
pub fn quoted(instance: &str) -> String {
    if instance.contains('"') { format!("'{instance}'") } else { format!("\"{instance}\"") }
}

/// Returns the name of an instance; the text may lack the quotes around its key.
fn instance(text: &str) -> Name {
    let key = text.strip_prefix(base(text)).and_then(|it| it.strip_prefix('['));
    match key.and_then(|it| it.strip_suffix(']')) {
        Some(key) if !key.starts_with('"') => instance_name(base(text), key),
        _ => text.into(),
    }
}

fn literal(part: &Expr) -> Option<&str> {
    match &part.kind {
        Kind::Literal(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(key: &str) -> Address {
        format!("box.a[\"{key}\"]").parse().unwrap()
    }

    #[test]
    fn instances_are_named_by_their_keys() {
        for text in ["acme[\"eu\"]", "acme[eu]"] {
            let name = instance(text);
            assert_eq!(
                (&*name, base(&name), key(&name)),
                ("acme[\"eu\"]", "acme", Some("eu".to_owned()))
            );
            assert_eq!(quoted(&name), "'acme[\"eu\"]'");
        }
        assert_eq!((&*instance("acme"), key("acme")), ("acme", None));
        let all = ProviderChoice::ByKey("acme".into());
        assert_eq!(&*all.of(&address("eu")), "acme[\"eu\"]");
        assert!(all.may_be("acme[\"eu\"]") && !all.may_be("acme") && !all.may_be("acme2[\"eu\"]"));
    }

    #[test]
    fn a_module_has_names_of_its_own() {
        let passed = BTreeMap::from([("inner".into(), Name::from("acme"))]);
        let renamed = |choice: ProviderChoice| choice.renamed(Some(&passed)).of(&address("eu"));
        let one = |name: &str| ProviderChoice::Instance(name.into());
        assert_eq!(&*renamed(one("inner")), "acme");
        assert_eq!(&*renamed(one("inner[\"us\"]")), "acme[\"us\"]");
        assert_eq!(&*renamed(one("other")), "other");
        assert_eq!(&*renamed(ProviderChoice::ByKey("inner".into())), "acme[\"eu\"]");
    }
}
