//! The parameters of functions.

use std::fmt;

use crate::types::Type;
use crate::value::Value;

/// A parameter of a function.
pub(in crate::expression) struct Parameter {
    pub(in crate::expression) name: &'static str,
    pub(in crate::expression) wants: Wants,
}

/// The arguments that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::expression) enum Wants {
    /// Any value, including null.
    Anything,
    /// A string.
    Text,
    /// A number.
    Number,
    /// A number without a fraction.
    Whole,
    /// A list or a set.
    List,
    /// A list or a set, or null.
    ListOrNull,
    /// A list or a set of strings.
    Texts,
    /// A list or a set of numbers.
    Numbers,
    /// A list or a set of booleans.
    Booleans,
    /// A map or an object.
    Map,
    /// A map or an object, or null.
    MapOrNull,
    /// Anything with a length: a list, a set, a map, an object or a string.
    Countable,
    /// A string, a number, a boolean or null.
    Scalar,
}

impl Wants {
    /// Returns true if an expression of the type may be the argument.
    pub(in crate::expression) fn accepts(self, ty: &Type) -> bool {
        match (self, ty) {
            (_, Type::Any | Type::Null) | (Self::Anything, _) => true,
            (Self::Text, Type::String) => true,
            (Self::Number | Self::Whole, Type::Integer | Type::Number) => true,
            (Self::List | Self::ListOrNull, Type::List(_) | Type::Set(_)) => true,
            (Self::Texts, Type::List(item) | Type::Set(item)) => item.fits(&Type::String),
            (Self::Numbers, Type::List(item) | Type::Set(item)) => item.fits(&Type::Number),
            (Self::Booleans, Type::List(item) | Type::Set(item)) => item.fits(&Type::Boolean),
            (Self::Map | Self::MapOrNull, Type::Map(_) | Type::Object(_)) => true,
            (
                Self::Countable,
                Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Object(_) | Type::String,
            ) => true,
            (Self::Scalar, Type::String | Type::Integer | Type::Number | Type::Boolean) => true,
            _ => false,
        }
    }

    /// Returns true if the value may be the argument. The functions themselves check the items of lists.
    pub(in crate::expression) fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Anything | Self::Scalar | Self::ListOrNull | Self::MapOrNull, Value::Null) => {
                true
            }
            (_, Value::Null) => false,
            (_, Value::Unknown(unknown)) => self.accepts(&unknown.ty),
            (_, Value::Sealed(sealed)) => self.accepts(&sealed.ty),
            (Self::Anything, _) => true,
            (Self::Text, Value::String(_)) => true,
            (Self::Number, Value::Integer(_) | Value::Float(_)) => true,
            (Self::Whole, number) => number.as_integer().is_some(),
            (
                Self::List | Self::ListOrNull | Self::Texts | Self::Numbers | Self::Booleans,
                Value::List(_) | Value::Set(_),
            ) => true,
            (Self::Map | Self::MapOrNull, Value::Map(_)) => true,
            (
                Self::Countable,
                Value::List(_) | Value::Set(_) | Value::Map(_) | Value::String(_),
            ) => true,
            (
                Self::Scalar,
                Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_),
            ) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Wants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anything => "any value",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Whole => "a whole number",
            Self::List | Self::ListOrNull => "a list or set",
            Self::Texts => "a list of strings",
            Self::Numbers => "a list of numbers",
            Self::Booleans => "a list of booleans",
            Self::Map | Self::MapOrNull => "a map or object",
            Self::Countable => "a list, set, map, object or string",
            Self::Scalar => "a string, number or boolean",
        })
    }
}
