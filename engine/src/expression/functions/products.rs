//! Functions that combine several lists.

use super::Fault;
use crate::address::Name;
use crate::expression::evaluate::word;
use crate::expression::typing::item_of;
use crate::types::Type;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The most items of a product, counted in all its lists.
const PRODUCT_MAX: usize = 262_144;

fn items(value: &Value) -> &[Value] {
    value.as_items().unwrap_or_default()
}

/// Returns every list with one item from each set.
pub(super) fn product(a: &[Value]) -> Out {
    let count = a.iter().try_fold(a.len(), |count, set| count.checked_mul(items(set).len()));
    if count.is_none_or(|count| count > PRODUCT_MAX) {
        let message = format!("the product has more than {PRODUCT_MAX} items in all its lists");
        let fault = Fault { argument: None, ..Fault::new(0, message) };
        return Err(fault.of_secret("the product has too many items"));
    }
    let mut lists: Vec<Vec<Value>> = vec![Vec::new()];
    for set in a {
        let longer = |list: &Vec<Value>| {
            let list = list.clone();
            items(set).iter().map(move |item| list.iter().chain([item]).cloned().collect())
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    let lists = lists.into_iter().map(Value::list).collect();
    let sets = a.iter().all(|set| matches!(set, Value::Set(_)));
    Ok(if sets { Value::set(lists) } else { Value::list(lists) })
}

/// Returns the type of a product: a set if all arguments are sets.
pub(super) fn product_type(types: &[Type]) -> Type {
    if types.is_empty() || types.contains(&Type::Any) {
        return Type::Any;
    }
    let item = types.iter().fold(Type::Null, |ty, set| ty.unify(&item_of(set)));
    let is_set = |ty: &Type| matches!(ty, Type::Set(_));
    let list = Type::list(item);
    if types.iter().all(is_set) { Type::set(list) } else { Type::list(list) }
}

/// Returns the values whose keys are among the wanted ones.
pub(super) fn match_keys(a: &[Value]) -> Out {
    let (values, keys, wanted) = (items(&a[0]), items(&a[1]), items(&a[2]));
    if values.len() != keys.len() {
        let message = format!("there are {} values and {} keys", values.len(), keys.len());
        return Err(Fault::new(1, message).of_secret("there must be as many keys as values"));
    }
    let wanted = Value::set(wanted.to_vec());
    let is_wanted = |key: &Value| items(&wanted).binary_search_by(|one| one.order(key)).is_ok();
    let pairs = values.iter().zip(keys).filter(|(_, key)| is_wanted(key));
    Ok(Value::list(pairs.map(|(value, _)| value.clone()).collect()))
}

/// Returns a map of lists of texts with keys and texts exchanged.
pub(super) fn transpose(a: &[Value]) -> Out {
    turned(&a[0]).map_err(|fault| fault.of_secret("every entry must be a list of strings"))
}

fn turned(map: &Value) -> Out {
    let mut turned: std::collections::BTreeMap<Name, Vec<Value>> =
        std::collections::BTreeMap::new();
    for (key, list) in map.as_map().into_iter().flat_map(|map| map.iter()) {
        let wrong = |found: &Value| {
            Fault::new(0, format!("every entry must be a list of strings, found {}", word(found)))
        };
        for item in list.as_items().ok_or_else(|| wrong(list))? {
            let Value::String(name) = item else { return Err(wrong(item)) };
            turned.entry(name.clone()).or_default().push(Value::String(key.clone()));
        }
    }
    Ok(Value::map(turned.into_iter().map(|(name, keys)| (name, Value::list(keys))).collect()))
}

/// Returns the type of a map of lists of texts.
pub(super) fn transposed_type(_: &[Type]) -> Type {
    Type::map(Type::list(Type::String))
}
