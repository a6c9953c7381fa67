//! Functions of sets. They accept lists, too, and return sets.

use super::Fault;
use crate::expression::typing::item_of;
use crate::types::Type;
use crate::value::Value;

type Out = Result<Value, Fault>;

fn items(value: &Value) -> &[Value] {
    value.as_items().unwrap_or_default()
}

/// Returns the items as a sorted set, for look-ups.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Set(_) => value.clone(),
        other => Value::set(items(other).to_vec()),
    }
}

fn holds(set: &Value, item: &Value) -> bool {
    items(set).binary_search_by(|other| other.order(item)).is_ok()
}

pub(super) fn to_set(a: &[Value]) -> Out {
    Ok(sorted(&a[0]))
}

pub(super) fn union(a: &[Value]) -> Out {
    Ok(Value::set(a.iter().flat_map(items).cloned().collect()))
}

pub(super) fn intersection(a: &[Value]) -> Out {
    let Some((first, others)) = a.split_first() else { return Ok(Value::set(Vec::new())) };
    let others: Vec<Value> = others.iter().map(sorted).collect();
    let common = |item: &&Value| others.iter().all(|other| holds(other, item));
    Ok(Value::set(items(first).iter().filter(common).cloned().collect()))
}

pub(super) fn subtract(a: &[Value]) -> Out {
    let less = sorted(&a[1]);
    Ok(Value::set(items(&a[0]).iter().filter(|item| !holds(&less, item)).cloned().collect()))
}

/// Returns the type of the first set: removing items does not change it.
pub(super) fn subtract_type(types: &[Type]) -> Type {
    Type::set(types.first().map_or(Type::Any, item_of))
}
