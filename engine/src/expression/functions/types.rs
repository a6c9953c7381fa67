//! The result types of functions, computed from the types of their arguments.

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

/// Returns the type of a list of anything.
pub(super) fn anys(_: &[Type]) -> Type {
    Type::list(Type::Any)
}

/// Returns the type of a set of texts.
pub(super) fn string_set(_: &[Type]) -> Type {
    Type::set(Type::String)
}

pub(super) fn any(_: &[Type]) -> Type {
    Type::Any
}

/// Returns the narrowest type that all arguments fit.
pub(super) fn unified(types: &[Type]) -> Type {
    if types.is_empty() {
        return Type::Any;
    }
    types.iter().fold(Type::Null, |ty, other| ty.unify(other))
}

/// Returns the type of the numbers among the arguments, or in them.
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

/// Returns the type of an item of the first argument.
pub(super) fn item(types: &[Type]) -> Type {
    first_item(types)
}

/// Returns the type of a list of the first argument's items.
pub(super) fn list(types: &[Type]) -> Type {
    Type::list(first_item(types))
}

/// Returns the type of a set of the items of all arguments.
pub(super) fn set(types: &[Type]) -> Type {
    Type::set(all_items(types))
}

/// Returns the type of a list of the items of all arguments.
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

/// Returns the type of a list of lists of the first argument's items.
pub(super) fn chunks(types: &[Type]) -> Type {
    Type::list(list(types))
}

/// Returns the type of a map of the first argument's entries.
pub(super) fn map(types: &[Type]) -> Type {
    Type::map(first_item(types))
}

/// Returns the type of a map of the second argument's items.
pub(super) fn zipped(types: &[Type]) -> Type {
    Type::map(types.get(1).map_or(Type::Any, item_of))
}

/// Returns the type of the entry of a map, or of the default.
pub(super) fn looked_up(types: &[Type]) -> Type {
    let entry = match types.first() {
        // Only the key decides which attribute is taken.
        Some(Type::Object(fields)) => {
            fields.values().fold(Type::Null, |ty, field| ty.unify(&field.ty))
        }
        _ => first_item(types),
    };
    types.get(2).map_or(entry.clone(), |default| entry.unify(default))
}

/// Returns the type of a merge: for objects, an object with the attributes of all; with a map among them, a
/// map.
pub(super) fn merged(types: &[Type]) -> Type {
    let mut fields = std::collections::BTreeMap::new();
    for ty in types {
        match ty {
            Type::Object(more) => {
                for (name, field) in more {
                    let merged = match fields.get(name) {
                        // The later one may be left out, and then the earlier one counts.
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

/// Returns the type of a list with the items of nested lists, of any depth.
pub(super) fn flattened(types: &[Type]) -> Type {
    fn leaf(ty: &Type) -> Type {
        match ty {
            Type::List(item) | Type::Set(item) => leaf(item),
            other => other.clone(),
        }
    }
    match first_item(types) {
        // An item of type any may be another list.
        Type::Any => Type::list(Type::Any),
        item => Type::list(leaf(&item)),
    }
}
