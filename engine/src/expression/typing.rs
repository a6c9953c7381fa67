//! The type rules that the checker and the evaluator share.

use super::{BinaryOp, Range};
use crate::types::Type;

/// Returns the type of `base.name`; `any` if it is not known.
pub(super) fn attribute_of(base: &Type, name: &str) -> Type {
    match base {
        Type::Object(fields) => fields.get(name).map_or(Type::Any, |field| field.ty.clone()),
        Type::Map(item) => (**item).clone(),
        _ => Type::Any,
    }
}

/// Returns the type of an item of a collection; `any` if it is not known.
pub(super) fn item_of(base: &Type) -> Type {
    match base {
        Type::List(item) | Type::Set(item) | Type::Map(item) => (**item).clone(),
        Type::Object(fields) => fields.values().fold(Type::Null, |ty, field| ty.unify(&field.ty)),
        _ => Type::Any,
    }
}

/// Returns the type of an operator's result.
pub(super) fn binary_of(op: BinaryOp, left: &Type, right: &Type) -> Type {
    match op {
        BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Remainder => {
            match (left, right) {
                (Type::Integer, Type::Integer) => Type::Integer,
                _ => Type::Number,
            }
        }
        BinaryOp::Divide => Type::Number,
        _ => Type::Boolean,
    }
}

/// Returns the last `length` bytes of a range: the name at the end of a reference.
pub(super) fn end_of(range: Range, length: usize) -> Range {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    Range { start: range.end.saturating_sub(length).max(range.start), end: range.end }
}

/// Returns a word for values of a type, for messages.
pub(super) fn type_word(ty: &Type) -> &'static str {
    match ty {
        Type::Any => "a value that is not known yet",
        Type::Null => "null",
        Type::Boolean => "a boolean",
        Type::Integer | Type::Number => "a number",
        Type::String => "a string",
        Type::List(_) => "a list",
        Type::Set(_) => "a set",
        Type::Map(_) | Type::Object(_) => "an object or map",
    }
}
