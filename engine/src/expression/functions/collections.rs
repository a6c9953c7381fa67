//! Functions of lists, maps and objects. Most of them move items without looking into them, so an item may be
//! unknown or sealed, and keeps its sensitive places.

use super::{Answer, Fault};
use crate::address::Name;
use crate::expression::evaluate::word;
use crate::value::{Attributes, Datum, Path, Paths, Segment, Value};

type Out = Result<Value, Fault>;
type Parted = Result<Answer, Fault>;

/// Returns true if the value itself is unknown or sealed; items in it may be.
fn hidden(value: &Value) -> bool {
    matches!(value, Value::Unknown(_) | Value::Sealed(_))
}

fn whole_secret(datum: &Datum) -> bool {
    datum.sensitive.covers(&Path::root())
}

fn known(value: Value, secret: bool) -> Parted {
    let sensitive = if secret { Paths::whole() } else { Paths::none() };
    Ok(Answer::Known(Datum { value, sensitive }))
}

/// Returns the items of a list or set with their sensitive places.
fn items(datum: &Datum) -> Vec<Datum> {
    let count = datum.value.as_items().unwrap_or_default().len();
    (0..count).map(|index| item(datum, index)).collect()
}

/// Returns one item of a list or set; the items of a set have no places of their own.
fn item(datum: &Datum, index: usize) -> Datum {
    let items = datum.value.as_items().unwrap_or_default();
    let set = matches!(datum.value, Value::Set(_)) && !datum.sensitive.is_empty();
    let sensitive =
        if set { Paths::whole() } else { datum.sensitive.inside(&Segment::Index(index)) };
    Datum { value: items.get(index).cloned().unwrap_or(Value::Null), sensitive }
}

/// Returns a list of items. If `secret` is true the whole list is secret, because its length reveals
/// something.
fn list(items: Vec<Datum>, secret: bool) -> Parted {
    let mut sensitive = if secret { Paths::whole() } else { Paths::none() };
    for (index, item) in items.iter().enumerate() {
        sensitive.extend_below(&Path::root().join(index), &item.sensitive);
    }
    let value = Value::list(items.into_iter().map(|item| item.value).collect());
    Ok(Answer::Known(Datum { value, sensitive }))
}

fn map(entries: Vec<(Name, Datum)>, secret: bool) -> Parted {
    // A later entry replaces an earlier one, together with its secrets.
    let entries: std::collections::BTreeMap<Name, Datum> = entries.into_iter().collect();
    let mut sensitive = if secret { Paths::whole() } else { Paths::none() };
    for (name, datum) in &entries {
        if !datum.sensitive.is_empty() {
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
        }
    }
    let map = entries.into_iter().map(|(name, datum)| (name, datum.value)).collect();
    Ok(Answer::Known(Datum { value: Value::map(map), sensitive }))
}

fn entries(datum: &Datum) -> Vec<(Name, Datum)> {
    let Some(entries) = datum.value.as_map() else { return Vec::new() };
    let entry = |(name, value): (&Name, &Value)| {
        let sensitive = datum.sensitive.inside(&Segment::Key(name.clone()));
        (name.clone(), Datum { value: value.clone(), sensitive })
    };
    entries.iter().map(entry).collect()
}

fn whole_number(datum: &Datum) -> i64 {
    datum.value.as_integer().unwrap_or(0)
}

pub(super) fn length(a: &[Datum]) -> Parted {
    let count = match &a[0].value {
        Value::Unknown(_) | Value::Sealed(_) => return Ok(Answer::Unknown),
        Value::String(text) => text.chars().count(),
        Value::Map(entries) => entries.len(),
        // Unknown items of a set may turn out to be equal.
        Value::Set(items) if items.len() > 1 && !a[0].value.is_known() => {
            return Ok(Answer::Unknown);
        }
        other => other.as_items().unwrap_or_default().len(),
    };
    known(Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)), whole_secret(&a[0]))
}

pub(super) fn keys(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) {
        return Ok(Answer::Unknown);
    }
    let names = entries(&a[0]).into_iter().map(|(name, _)| Value::String(name)).collect();
    known(Value::list(names), whole_secret(&a[0]))
}

pub(super) fn values(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) {
        return Ok(Answer::Unknown);
    }
    list(entries(&a[0]).into_iter().map(|(_, value)| value).collect(), whole_secret(&a[0]))
}

pub(super) fn lookup(a: &[Datum]) -> Parted {
    let (Value::Map(map), Value::String(key)) = (&a[0].value, &a[1].value) else {
        return Ok(Answer::Unknown);
    };
    let found = map.get(key).map(|value| {
        let sensitive = a[0].sensitive.inside(&Segment::Key(key.clone()));
        Datum { value: value.clone(), sensitive }
    });
    let mut datum = match (found, a.get(2)) {
        (Some(found), _) => found,
        (None, Some(default)) => default.clone(),
        (None, None) => {
            let fault = Fault::new(1, "there is no entry with this key");
            return Err(fault.help("give a default: lookup(map, key, default)"));
        }
    };
    if whole_secret(&a[0]) || !a[1].sensitive.is_empty() {
        datum.sensitive = Paths::whole();
    }
    Ok(Answer::Known(datum))
}

pub(super) fn merge(a: &[Datum]) -> Parted {
    if a.iter().any(|datum| hidden(&datum.value)) {
        return Ok(Answer::Unknown);
    }
    // One pass computes the sensitive places, however many maps there are.
    let mut merged = std::collections::BTreeMap::new();
    for (name, datum) in a.iter().flat_map(entries) {
        merged.insert(name, datum);
    }
    let secret = a.iter().any(whole_secret);
    let (mut map, mut sensitive) = (Attributes::new(), Paths::none());
    for (name, datum) in merged {
        if !datum.sensitive.is_empty() {
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
        }
        map.insert(name, datum.value);
    }
    let sensitive = if secret { Paths::whole() } else { sensitive };
    Ok(Answer::Known(Datum { value: Value::map(map), sensitive }))
}

pub(super) fn concat(a: &[Datum]) -> Parted {
    if a.iter().any(|datum| hidden(&datum.value)) {
        return Ok(Answer::Unknown);
    }
    list(a.iter().flat_map(items).collect(), a.iter().any(whole_secret))
}

pub(super) fn flatten(a: &[Datum]) -> Parted {
    // The number of items in the end reveals something about each part that is secret as a whole: if it is a
    // list, and of which length.
    fn walk(datum: &Datum, flat: &mut Vec<Datum>, secret: &mut bool) -> bool {
        *secret |= whole_secret(datum);
        items(datum).into_iter().all(|item| match &item.value {
            Value::List(_) | Value::Set(_) => walk(&item, flat, secret),
            // It is not known if this is a list, and of which length.
            Value::Unknown(unknown) if may_be_list(&unknown.ty) => false,
            Value::Sealed(sealed) if may_be_list(&sealed.ty) => false,
            _ => {
                *secret |= whole_secret(&item);
                flat.push(item);
                true
            }
        })
    }
    let (mut flat, mut secret) = (Vec::new(), false);
    if hidden(&a[0].value) || !walk(&a[0], &mut flat, &mut secret) {
        return Ok(Answer::Unknown);
    }
    list(flat, secret)
}

fn may_be_list(ty: &crate::types::Type) -> bool {
    use crate::types::Type;
    matches!(ty, Type::Any | Type::List(_) | Type::Set(_))
}

pub(super) fn reverse(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) {
        return Ok(Answer::Unknown);
    }
    list(items(&a[0]).into_iter().rev().collect(), whole_secret(&a[0]))
}

pub(super) fn slice(a: &[Datum]) -> Parted {
    let text = "these bounds are outside the list, or the end stands before the start";
    sliced(a).map_err(|fault| fault.of_secret(text))
}

fn sliced(a: &[Datum]) -> Parted {
    if a.iter().any(|datum| hidden(&datum.value)) {
        return Ok(Answer::Unknown);
    }
    let count = a[0].value.as_items().unwrap_or_default().len();
    let secret = a.iter().any(whole_secret);
    let bound = |at: usize| {
        let bound = usize::try_from(whole_number(&a[at])).ok().filter(|bound| *bound <= count);
        let outside = || format!("this is outside the list, which has {count} items");
        bound.ok_or_else(|| Fault::new(at, outside()))
    };
    let (start, end) = (bound(1)?, bound(2)?);
    if start > end {
        return Err(Fault::new(2, "the end stands before the start"));
    }
    list((start..end).map(|index| item(&a[0], index)).collect(), secret)
}

/// Returns an item of a list. The index wraps around, so every index names an item.
pub(super) fn element(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) || hidden(&a[1].value) {
        return Ok(Answer::Unknown);
    }
    let count = a[0].value.as_items().unwrap_or_default().len();
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let Some(at) = whole_number(&a[1]).checked_rem_euclid(count) else {
        return Err(Fault::new(0, "an empty list has no element"));
    };
    let mut datum = item(&a[0], usize::try_from(at).unwrap_or(0));
    if !a[1].sensitive.is_empty() {
        datum.sensitive = Paths::whole();
    }
    Ok(Answer::Known(datum))
}

/// Returns the only item of a list; null for an empty one.
pub(super) fn one(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) {
        return Ok(Answer::Unknown);
    }
    let mut items = items(&a[0]);
    match (items.pop(), items.len()) {
        (None, _) => known(Value::Null, whole_secret(&a[0])),
        (Some(item), 0) => Ok(Answer::Known(item)),
        (Some(_), more) => {
            let message = format!("the list must have one item or none, and has {}", more + 1);
            Err(Fault::new(0, message).of_secret("the list must have one item or none"))
        }
    }
}

pub(super) fn chunks(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) || hidden(&a[1].value) {
        return Ok(Answer::Unknown);
    }
    let size = usize::try_from(whole_number(&a[1])).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| Fault::new(1, "the size must be 1 or more"))?;
    let secret = a.iter().any(whole_secret);
    let mut chunked = Vec::new();
    for chunk in items(&a[0]).chunks(size) {
        if let Answer::Known(datum) = list(chunk.to_vec(), false)? {
            chunked.push(datum);
        }
    }
    list(chunked, secret)
}

pub(super) fn to_list(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) {
        return Ok(Answer::Unknown);
    }
    list(items(&a[0]), whole_secret(&a[0]))
}

pub(super) fn to_map(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) { Ok(Answer::Unknown) } else { Ok(Answer::Known(a[0].clone())) }
}

pub(super) fn zip_map(a: &[Datum]) -> Parted {
    let text = "there must be as many keys as values, and every key must be a string";
    zipped(a).map_err(|fault| fault.of_secret(text))
}

fn zipped(a: &[Datum]) -> Parted {
    if hidden(&a[0].value) || hidden(&a[1].value) || !a[0].value.is_known() {
        return Ok(Answer::Unknown);
    }
    let (names, values) = (items(&a[0]), items(&a[1]));
    if names.len() != values.len() {
        let message = format!("there are {} keys and {} values", names.len(), values.len());
        return Err(Fault::new(1, message));
    }
    let secret = !a[0].sensitive.is_empty() || whole_secret(&a[1]);
    let mut zipped = Vec::with_capacity(names.len());
    for (name, value) in names.into_iter().zip(values) {
        match name.value {
            Value::String(name) => zipped.push((name, value)),
            Value::Sealed(_) => return Ok(Answer::Unknown),
            other => {
                return Err(Fault::new(
                    0,
                    format!("every key must be a string, found {}", word(&other)),
                ));
            }
        }
    }
    map(zipped, secret)
}

/// Returns the first argument that is neither null nor an empty text.
pub(super) fn coalesce(a: &[Datum]) -> Parted {
    first(a, "every argument is null or empty", |value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    })
}

/// Returns the first list that is not empty.
pub(super) fn coalesce_list(a: &[Datum]) -> Parted {
    first(a, "every list is empty", |value| value.as_items().is_some_and(|items| !items.is_empty()))
}

fn first(a: &[Datum], none: &str, counts: fn(&Value) -> bool) -> Parted {
    let mut secret = false;
    for datum in a {
        // A sealed value is never null; it is not known if it is empty.
        if hidden(&datum.value) {
            return Ok(Answer::Unknown);
        }
        if counts(&datum.value) {
            let sensitive = if secret { Paths::whole() } else { datum.sensitive.clone() };
            return Ok(Answer::Known(Datum { value: datum.value.clone(), sensitive }));
        }
        secret |= !datum.sensitive.is_empty();
    }
    let fault = Fault { argument: None, ..Fault::new(0, none) };
    Err(fault.help("add a last argument that always has a value"))
}

fn argument_items(a: &[Value]) -> &[Value] {
    a[0].as_items().unwrap_or_default()
}

pub(super) fn contains(a: &[Value]) -> Out {
    Ok(Value::Bool(argument_items(a).iter().any(|item| item.same(&a[1]))))
}

pub(super) fn index(a: &[Value]) -> Out {
    let found = argument_items(a).iter().position(|item| item.same(&a[1]));
    let index = found.ok_or_else(|| Fault::new(1, "this value is not in the list"))?;
    Ok(Value::Integer(i64::try_from(index).unwrap_or(i64::MAX)))
}

/// Removes duplicates; the first of equal items stays in its place.
pub(super) fn distinct(a: &[Value]) -> Out {
    let items = argument_items(a);
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|x, y| items[*x].order(&items[*y]).then(x.cmp(y)));
    order.dedup_by(|later, earlier| items[*later].same(&items[*earlier]));
    order.sort_unstable();
    Ok(Value::list(order.into_iter().map(|index| items[index].clone()).collect()))
}

pub(super) fn sort(a: &[Value]) -> Out {
    let mut items = argument_items(a).to_vec();
    if let Some(other) = items.iter().find(|item| item.as_str().is_none()) {
        let message = format!("every item must be a string, found {}", word(other));
        return Err(Fault::new(0, message).of_secret("every item must be a string"));
    }
    items.sort_by(Value::order);
    Ok(Value::list(items))
}

/// Removes null and empty texts.
pub(super) fn compact(a: &[Value]) -> Out {
    let keep = |item: &&Value| !item.is_null() && item.as_str() != Some("");
    Ok(Value::list(argument_items(a).iter().filter(keep).cloned().collect()))
}

pub(super) fn all_true(a: &[Value]) -> Out {
    booleans(a).map(|all| Value::Bool(all.into_iter().all(|one| one)))
}

pub(super) fn any_true(a: &[Value]) -> Out {
    booleans(a).map(|all| Value::Bool(all.into_iter().any(|one| one)))
}

fn booleans(a: &[Value]) -> Result<Vec<bool>, Fault> {
    let boolean = |item: &Value| match item {
        Value::Bool(value) => Ok(*value),
        other => {
            let message = format!("every item must be a boolean, found {}", word(other));
            Err(Fault::new(0, message).of_secret("every item must be a boolean"))
        }
    };
    argument_items(a).iter().map(boolean).collect()
}
