//! The keys of a `for_each`.

use std::collections::BTreeMap;

use crate::address::Name;
use crate::value::{Datum, Path, Segment, Value};

/// Returns the keys of a `for_each` with their values, or the reason that the value is no valid `for_each`.
pub fn keys(datum: &Datum) -> Result<Vec<(Name, Datum)>, &'static str> {
    if datum.sensitive.covers(&Path::root()) {
        return Err("its keys would be shown in addresses, and it is sensitive");
    }
    match &datum.value {
        Value::Unknown(_) => Err("it is known only after apply, and the keys must be known now"),
        Value::Map(entries) => Ok(entries
            .iter()
            .map(|(key, value)| {
                let sensitive = datum.sensitive.inside(&Segment::Key(key.clone()));
                (key.clone(), Datum { value: value.clone(), sensitive })
            })
            .collect()),
        Value::List(items) | Value::Set(items) => list_keys(items, datum),
        _ => Err("it must be a table, or a list of distinct strings"),
    }
}

fn list_keys(items: &[Value], datum: &Datum) -> Result<Vec<(Name, Datum)>, &'static str> {
    let mut keys = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if datum.sensitive.touches(&Path::root().join(index)) {
            return Err("its keys would be shown in addresses, and one of them is sensitive");
        }
        let Value::String(text) = item else {
            return Err(if matches!(item, Value::Unknown(_)) {
                "one of its keys is known only after apply, and the keys must be known now"
            } else {
                "a list of for_each holds strings only"
            });
        };
        if keys.insert(text.clone(), Datum::plain(item.clone())).is_some() {
            return Err("the same key stands in it twice");
        }
    }
    Ok(keys.into_iter().collect())
}
