//! The comparison of wanted values with live ones.

use std::collections::BTreeSet;

use crate::address::Name;
use crate::digest::{Fingerprint, SealKey};
use crate::schema::TypeSchema;
use crate::value::{Attributes, Value};

/// Returns true if a wanted value (in clear, maybe unknown) equals a live one (secrets sealed). An unknown
/// value agrees with nothing.
pub fn agree(wanted: &Value, live: &Value, key: &SealKey) -> bool {
    match (wanted, live) {
        (Value::Unknown(_), _) | (_, Value::Unknown(_)) => false,
        (Value::Sealed(a), Value::Sealed(b)) => a.fingerprint == b.fingerprint,
        (wanted, Value::Sealed(sealed)) => {
            wanted.is_known() && Fingerprint::of(wanted, key) == sealed.fingerprint
        }
        (Value::Sealed(sealed), live) => Fingerprint::of(live, key) == sealed.fingerprint,
        (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| agree(a, b, key))
        }
        (Value::Map(a), Value::Map(b)) => maps_agree(a, b, key),
        (wanted, live) => wanted.same(live),
    }
}

/// Returns true if two maps agree. A null entry counts as a missing one: some APIs show null for something
/// that an object may have and does not have.
fn maps_agree(wanted: &Attributes, live: &Attributes, key: &SealKey) -> bool {
    let mut wanted = wanted.iter().filter(|(_, value)| !value.is_null());
    let mut live = live.iter().filter(|(_, value)| !value.is_null());
    loop {
        match (wanted.next(), live.next()) {
            (None, None) => return true,
            (Some((a, av)), Some((b, bv))) if a == b && agree(av, bv, key) => {}
            _ => return false,
        }
    }
}

/// Returns true if a wanted value of an attribute equals the live one, or differs from it only in form.
pub fn agree_in_form(
    (schema, name): (&TypeSchema, &Name),
    (wanted, live): (&Value, &Value),
    key: &SealKey,
) -> bool {
    let form = || schema.attributes.get(name).and_then(|attribute| attribute.form);
    let are_known = || wanted.is_known() && !wanted.holds_sealed() && !live.holds_sealed();
    agree(wanted, live, key) || are_known() && form().is_some_and(|form| form.is_same(wanted, live))
}

/// Returns the attributes among `names` in which two objects of a type differ. A missing attribute counts as
/// null.
pub(in crate::plan) fn differing<'a>(
    names: impl IntoIterator<Item = &'a Name>,
    (wanted, live): (&Attributes, &Attributes),
    (schema, key): (&TypeSchema, &SealKey),
) -> BTreeSet<Name> {
    names
        .into_iter()
        .filter(|name| {
            let wanted = wanted.get(*name).unwrap_or(&Value::Null);
            let live = live.get(*name).unwrap_or(&Value::Null);
            !agree_in_form((schema, name), (wanted, live), key)
        })
        .cloned()
        .collect()
}

/// Returns true if an attribute keeps its value as long as nobody changes the object.
pub fn is_stable(schema: &TypeSchema, name: &Name) -> bool {
    schema
        .attributes
        .get(name)
        .is_some_and(|attribute| !attribute.volatile && attribute.derived.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry that is null is as one that is not there, on either side and wherever it stands.
    #[test]
    fn maps_agree_but_for_nulls() {
        let map = |entries: &[(&str, Value)]| {
            Value::map(
                entries.iter().map(|(name, value)| ((*name).into(), value.clone())).collect(),
            )
        };
        let key = SealKey::from_random([1; 32]);
        let (one, two) = (("a", Value::Integer(1)), ("b", Value::Integer(2)));
        let plain = map(std::slice::from_ref(&one));
        let both = map(&[one.clone(), two.clone()]);
        for null in ["A", "a0", "b"] {
            let with = map(&[one.clone(), (null, Value::Null)]);
            assert!(agree(&plain, &with, &key) && agree(&with, &plain, &key), "{null}");
            let outer = |inner: &Value| map(&[("x", inner.clone())]);
            assert!(agree(&outer(&plain), &outer(&with), &key), "{null}");
        }
        let other = map(&[("a", Value::Integer(3))]);
        for unlike in [&both, &other, &map(&[two]), &map(&[])] {
            assert!(!agree(&plain, unlike, &key) && !agree(unlike, &plain, &key), "{unlike:?}");
        }
    }
}
