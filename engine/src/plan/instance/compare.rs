//! Whether a wanted value and a live one agree.

use std::collections::BTreeSet;

use crate::address::Name;
use crate::digest::{Digest, Fingerprint, SealKey};
use crate::schema::TypeSchema;
use crate::value::{Attributes, Value};

/// Says whether a wanted value (in clear, maybe unknown) is what is live (secrets sealed). What is
/// unknown agrees with nothing.
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
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|((an, av), (bn, bv))| an == bn && agree(av, bv, key))
        }
        (wanted, live) => wanted.same(live),
    }
}

/// The attributes among `names` in which two objects differ. One that is missing counts as null.
pub(in crate::plan) fn differing<'a>(
    names: impl IntoIterator<Item = &'a Name>,
    wanted: &Attributes,
    live: &Attributes,
    key: &SealKey,
) -> BTreeSet<Name> {
    names
        .into_iter()
        .filter(|name| {
            let wanted = wanted.get(*name).unwrap_or(&Value::Null);
            let live = live.get(*name).unwrap_or(&Value::Null);
            !agree(wanted, live, key)
        })
        .cloned()
        .collect()
}

/// The digest of an object's attributes that do not change by themselves: when it is the same, a
/// plan made on the object still fits.
pub fn fitness_digest(schema: &TypeSchema, attributes: &Attributes) -> Digest {
    let stable = attributes
        .iter()
        .filter(|(name, _)| is_stable(schema, name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Digest::of_attributes(&stable)
}

/// Says whether an attribute keeps its value as long as nobody changes the object.
pub fn is_stable(schema: &TypeSchema, name: &Name) -> bool {
    schema
        .attributes
        .get(name)
        .is_some_and(|attribute| !attribute.volatile && attribute.derived.is_none())
}
