//! The types of what functions give, from the types of their arguments.

use crate::expression::typing::item_of;
use crate::types::{Field, Type};

pub(super) fn string(_: &[Type]) -> Type {
    Type::String
}

pub(super) fn strings(_: &[Type]) -> Type {
    Type::list(Type::String)
}

pub(super) fn boolean(_: &[Type]) -> Type {
    Type::Boolean
}

pub(super) fn integer(_: &[Type]) -> Type {
    Type::Integer
}

pub(super) fn number(_: &[Type]) -> Type {
    Type::Number
}

/// A list of anything.
pub(super) fn anys(_: &[Type]) -> Type {
    Type::list(Type::Any)
}

/// A set of texts.
pub(super) fn string_set(_: &[Type]) -> Type {
    Type::set(Type::String)
}

pub(super) fn any(_: &[Type]) -> Type {
    Type::Any
}

/// The type of all arguments together.
pub(super) fn unified(types: &[Type]) -> Type {
    if types.is_empty() {
        return Type::Any;
    }
    types.iter().fold(Type::Null, |ty, other| ty.unify(other))
}

/// The type of the numbers among the arguments, or in them.
pub(super) fn numeric(types: &[Type]) -> Type {
    let whole = |ty: &Type| match ty {
        Type::Integer => true,
        Type::List(item) | Type::Set(item) => **item == Type::Integer,
        _ => false,
    };
    if !types.is_empty() && types.iter().all(whole) { Type::Integer } else { Type::Number }
}

fn first_item(types: &[Type]) -> Type {
    types.first().map_or(Type::Any, item_of)
}

/// An item of the first argument.
pub(super) fn item(types: &[Type]) -> Type {
    first_item(types)
}

/// A list of the first argument's items.
pub(super) fn list(types: &[Type]) -> Type {
    Type::list(first_item(types))
}

/// A set of the items of all arguments.
pub(super) fn set(types: &[Type]) -> Type {
    Type::set(all_items(types))
}

/// A list of the items of all arguments.
pub(super) fn concatenated(types: &[Type]) -> Type {
    Type::list(all_items(types))
}

fn all_items(types: &[Type]) -> Type {
    if types.is_empty() {
        return Type::Any;
    }
    types.iter().fold(Type::Null, |ty, other| match other {
        Type::Null => ty,
        other => ty.unify(&item_of(other)),
    })
}

/// A list of lists of the first argument's items.
pub(super) fn chunks(types: &[Type]) -> Type {
    Type::list(list(types))
}

/// A map of the first argument's entries.
pub(super) fn map(types: &[Type]) -> Type {
    Type::map(first_item(types))
}

/// A map of the second argument's items.
pub(super) fn zipped(types: &[Type]) -> Type {
    Type::map(types.get(1).map_or(Type::Any, item_of))
}

/// The entry of a map, or the default.
pub(super) fn looked_up(types: &[Type]) -> Type {
    let entry = match types.first() {
        // Which attribute it is shows with the key.
        Some(Type::Object(fields)) => {
            fields.values().fold(Type::Null, |ty, field| ty.unify(&field.ty))
        }
        _ => first_item(types),
    };
    types.get(2).map_or(entry.clone(), |default| entry.unify(default))
}

/// Objects give an object with the attributes of all; with a map among them it is a map.
pub(super) fn merged(types: &[Type]) -> Type {
    let mut fields = std::collections::BTreeMap::new();
    for ty in types {
        match ty {
            Type::Object(more) => {
                for (name, field) in more {
                    let merged = match fields.get(name) {
                        // The later one may be left out, and then the earlier one stands.
                        Some(Field { ty, optional }) if field.optional => {
                            Field { ty: field.ty.unify(ty), optional: *optional }
                        }
                        _ => field.clone(),
                    };
                    fields.insert(name.clone(), merged);
                }
            }
            Type::Null => {}
            _ => return Type::map(all_items(types)),
        }
    }
    if types.is_empty() { Type::map(Type::Any) } else { Type::Object(fields) }
}

/// A list of what stands in the lists, however deep.
pub(super) fn flattened(types: &[Type]) -> Type {
    fn leaf(ty: &Type) -> Type {
        match ty {
            Type::List(item) | Type::Set(item) => leaf(item),
            other => other.clone(),
        }
    }
    match first_item(types) {
        // A list that may hold more lists.
        Type::Any => Type::list(Type::Any),
        item => Type::list(leaf(&item)),
    }
}
