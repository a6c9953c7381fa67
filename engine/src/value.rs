//! Values of attributes, known or not yet known.
//!
//! A value that only an apply will know is [`Value::Unknown`] and carries its residual: the expression with
//! all known values filled in. A secret that was stored is [`Value::Sealed`]: only a type and a keyed
//! fingerprint, so nothing can print it. A secret that is still in memory is an ordinary value with a
//! sensitive path beside it ([`Datum`]).
//!
//! `Value` does not implement `Serialize`: every value that leaves the process goes through
//! [`crate::stored`], which seals first. An object and a map are one variant, [`Value::Map`]; only their
//! types differ.

mod path;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::path::{Path, Paths, Segment};
use crate::address::Name;
use crate::digest::Fingerprint;
use crate::expression::Expr;
use crate::sorted;
use crate::types::{Field, Type};

/// A value. Collections are shared, so a clone is cheap.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// The absence of a value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number, always finite.
    Float(f64),
    /// Text.
    String(Arc<str>),
    /// Values in order.
    List(Arc<Vec<Value>>),
    /// Values without order, each once; sorted by [`Value::order`].
    Set(Arc<Vec<Value>>),
    /// Values by key: a map or an object.
    Map(Arc<Attributes>),
    /// A value that is known only during apply.
    Unknown(Arc<Unknown>),
    /// A secret of which only the fingerprint was kept.
    Sealed(Arc<Sealed>),
}

/// Values by name: the attributes of an object, or the entries of a map.
pub type Attributes = sorted::Map<Name, Value>;

/// The type and the expression of a value that only apply will know.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// The type of the value.
    pub ty: Type,
    /// The expression by which apply computes the value; it refers to objects that the plan makes or changes.
    pub residual: Expr,
}

/// The part of a secret that is kept: its type and fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// The type of the secret.
    pub ty: Type,
    /// The fingerprint: equal for equal values under one lineage's key, and useless without the key.
    pub fingerprint: Fingerprint,
}

impl Value {
    /// Text.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(items))
    }

    /// A set: sorts the items and keeps each once.
    pub fn set(mut items: Vec<Value>) -> Self {
        items.sort_by(Value::order);
        items.dedup_by(|a, b| a.order(b) == Ordering::Equal);
        Self::Set(Arc::new(items))
    }

    /// A map or an object.
    pub fn map(entries: Attributes) -> Self {
        Self::Map(Arc::new(entries))
    }

    /// An unknown value of `ty` that apply computes from `residual`.
    pub fn unknown(ty: Type, residual: Expr) -> Self {
        Self::Unknown(Arc::new(Unknown { ty, residual }))
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Returns the whole number, if it is one (a float without a fraction counts).
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            // 2^53: beyond it, neighbouring whole numbers have the same float.
            #[expect(clippy::cast_possible_truncation, reason = "bounded and integral")]
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => {
                Some(*number as i64)
            }
            _ => None,
        }
    }

    /// The entries, if it is a map or an object.
    pub fn as_map(&self) -> Option<&Attributes> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// The items, if it is a list or a set.
    pub fn as_items(&self) -> Option<&[Value]> {
        if let Self::List(items) | Self::Set(items) = self { Some(items) } else { None }
    }

    /// Returns true if it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns true if nothing in it is unknown.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Unknown(_) => false,
            Self::List(items) | Self::Set(items) => items.iter().all(Value::is_known),
            Self::Map(entries) => entries.values().all(Value::is_known),
            _ => true,
        }
    }

    /// Returns true if it is, or holds, a sealed value.
    pub fn holds_sealed(&self) -> bool {
        match self {
            Self::Sealed(_) => true,
            Self::List(items) | Self::Set(items) => items.iter().any(Value::holds_sealed),
            Self::Map(entries) => entries.values().any(Value::holds_sealed),
            _ => false,
        }
    }

    /// The type that the value itself shows.
    pub fn type_of(&self) -> Type {
        let unify =
            |items: &[Value]| items.iter().fold(Type::Null, |ty, item| ty.unify(&item.type_of()));
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Boolean,
            Self::Integer(_) => Type::Integer,
            Self::Float(_) => Type::Number,
            Self::String(_) => Type::String,
            Self::List(items) => Type::list(unify(items)),
            Self::Set(items) => Type::set(unify(items)),
            Self::Map(entries) => Type::Object(
                entries
                    .iter()
                    .map(|(name, value)| {
                        let field = Field { ty: value.type_of(), optional: false };
                        (name.clone(), field)
                    })
                    .collect(),
            ),
            Self::Unknown(unknown) => unknown.ty.clone(),
            Self::Sealed(sealed) => sealed.ty.clone(),
        }
    }

    /// Compares values by a total order, for sets and sorted output. Users do not see this order.
    pub fn order(&self, other: &Value) -> Ordering {
        let rank = |value: &Value| match value {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Integer(_) | Self::Float(_) => 2,
            Self::String(_) => 3,
            Self::List(_) => 4,
            Self::Set(_) => 5,
            Self::Map(_) => 6,
            Self::Sealed(_) => 7,
            Self::Unknown(_) => 8,
        };
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Integer(_) | Self::Float(_), Self::Integer(_) | Self::Float(_)) => {
                self.as_number().total_cmp(&other.as_number())
            }
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) | (Self::Set(a), Self::Set(b)) => {
                order_all(a.iter(), b.iter())
            }
            (Self::Map(a), Self::Map(b)) => {
                a.keys().cmp(b.keys()).then_with(|| order_all(a.values(), b.values()))
            }
            (Self::Sealed(a), Self::Sealed(b)) => a.fingerprint.cmp(&b.fingerprint),
            (Self::Unknown(a), Self::Unknown(b)) => {
                a.residual.to_string().cmp(&b.residual.to_string())
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "only used to order mixed numbers")]
    fn as_number(&self) -> f64 {
        match self {
            Self::Integer(number) => *number as f64,
            Self::Float(number) => *number,
            _ => f64::NAN,
        }
    }

    /// Returns true if two known values mean the same. `1` and `1.0` do; a list and a set with the same items
    /// in the same order do not.
    pub fn same(&self, other: &Value) -> bool {
        self.order(other) == Ordering::Equal
    }

    /// Converts a known value to type `ty`; returns a misfit if a part does not fit.
    ///
    /// Unknown and sealed parts pass if their types fit. Conversions: a float without a fraction to an
    /// integer, list to set and back; never text to number or back. A value of type any has lists for sets,
    /// as JSON has, because JSON would not show afterwards which one it was.
    pub fn convert(&self, ty: &Type) -> Result<Value, Misfit> {
        match (self, ty) {
            (_, Type::Any) => Ok(self.without_sets()),
            (Self::Null, _) => Ok(self.clone()),
            (Self::Unknown(unknown), ty) if unknown.ty.fits(ty) => {
                Ok(Self::unknown(narrow(&unknown.ty, ty), unknown.residual.clone()))
            }
            (Self::Sealed(sealed), ty) if sealed.ty.fits(ty) => Ok(self.clone()),
            (Self::Bool(_), Type::Boolean) | (Self::String(_), Type::String) => Ok(self.clone()),
            (Self::Integer(_) | Self::Float(_), Type::Number) => Ok(self.clone()),
            (_, Type::Integer) => {
                self.as_integer().map(Self::Integer).ok_or_else(|| Misfit::new(self, ty))
            }
            (Self::List(items) | Self::Set(items), Type::List(item)) => {
                Ok(Self::list(convert_all(items, item)?))
            }
            (Self::List(items) | Self::Set(items), Type::Set(item)) => {
                Ok(Self::set(convert_all(items, item)?))
            }
            (Self::Map(entries), Type::Map(item)) => {
                let convert = |(name, value): (&Name, &Value)| {
                    let value = value.convert(item).map_err(|m| m.inside(name.clone()))?;
                    Ok((name.clone(), value))
                };
                Ok(Self::map(entries.iter().map(convert).collect::<Result<_, _>>()?))
            }
            (Self::Map(entries), Type::Object(fields)) => convert_object(entries, fields),
            _ => Err(Misfit::new(self, ty)),
        }
    }

    fn without_sets(&self) -> Value {
        match self {
            Self::Set(items) => Self::list(items.iter().map(Self::without_sets).collect()),
            Self::List(items) if self.holds_a_set() => {
                Self::list(items.iter().map(Self::without_sets).collect())
            }
            Self::Map(entries) if self.holds_a_set() => {
                let entries = entries.iter().map(|(name, it)| (name.clone(), it.without_sets()));
                Self::map(entries.collect())
            }
            _ => self.clone(),
        }
    }

    fn holds_a_set(&self) -> bool {
        match self {
            Self::Set(_) => true,
            Self::List(items) => items.iter().any(Self::holds_a_set),
            Self::Map(entries) => entries.values().any(Self::holds_a_set),
            _ => false,
        }
    }

    /// Returns the value with null for each optional attribute of its type that it leaves out. The value has
    /// the type.
    #[must_use]
    pub fn with_optional_attributes(&self, ty: &Type) -> Self {
        let all = |items: &[Self], item: &Type| {
            items.iter().map(|it| it.with_optional_attributes(item)).collect()
        };
        match (self, ty) {
            (Self::List(items), Type::List(item)) => Self::list(all(items, item)),
            (Self::Set(items), Type::Set(item)) => Self::set(all(items, item)),
            (Self::Map(entries), Type::Map(item)) => {
                let entry = |(key, value): (&Name, &Self)| {
                    (key.clone(), value.with_optional_attributes(item))
                };
                Self::map(entries.iter().map(entry).collect())
            }
            (Self::Map(entries), Type::Object(fields)) => {
                let value = |(name, field): (&Name, &Field)| match entries.get(name) {
                    Some(value) => Some((name.clone(), value.with_optional_attributes(&field.ty))),
                    None => field.optional.then(|| (name.clone(), Self::Null)),
                };
                Self::map(fields.iter().filter_map(value).collect())
            }
            _ => self.clone(),
        }
    }

    /// Calls `visit` for the value, and for each part inside it.
    pub fn each_part<'v>(&'v self, visit: &mut dyn FnMut(&'v Value)) {
        visit(self);
        match self {
            Self::List(items) | Self::Set(items) => items.iter().for_each(|it| it.each_part(visit)),
            Self::Map(entries) => entries.values().for_each(|item| item.each_part(visit)),
            _ => {}
        }
    }

    /// Returns the part at `path`; none if there is no such part.
    pub fn at(&self, path: &Path) -> Option<&Value> {
        path.0.iter().try_fold(self, Self::step)
    }

    /// Returns the part one step further; none if there is no such part.
    fn step(&self, segment: &Segment) -> Option<&Value> {
        match (self, segment) {
            (Self::Map(entries), Segment::Key(key)) => entries.get(key),
            (Self::List(items) | Self::Set(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        }
    }

    /// Replaces the part at `path` by the result of `change`; does nothing if there is no such part.
    pub fn change_at(&mut self, path: &[Segment], change: &mut dyn FnMut(&Value) -> Value) {
        let Some((first, rest)) = path.split_first() else {
            *self = change(self);
            return;
        };
        match (self, first) {
            (Self::Map(entries), Segment::Key(key)) => {
                if let Some(value) = Arc::make_mut(entries).get_mut(key) {
                    value.change_at(rest, change);
                }
            }
            (Self::List(items) | Self::Set(items), Segment::Index(index)) => {
                if let Some(value) = Arc::make_mut(items).get_mut(*index) {
                    value.change_at(rest, change);
                }
            }
            _ => {}
        }
    }
}

fn order_all<'a>(
    mut a: impl Iterator<Item = &'a Value>,
    mut b: impl Iterator<Item = &'a Value>,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match a.order(b) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
        }
    }
}

/// Returns the wanted type for an unknown `any`; any other type stays.
fn narrow(have: &Type, want: &Type) -> Type {
    if *have == Type::Any { want.clone() } else { have.clone() }
}

fn convert_all(items: &[Value], ty: &Type) -> Result<Vec<Value>, Misfit> {
    let convert =
        |(index, item): (usize, &Value)| item.convert(ty).map_err(|misfit| misfit.inside(index));
    items.iter().enumerate().map(convert).collect()
}

fn convert_object(entries: &Attributes, fields: &BTreeMap<Name, Field>) -> Result<Value, Misfit> {
    let mut object = Attributes::new();
    for (name, value) in entries {
        let field = fields.get(name).ok_or_else(|| Misfit {
            path: Path::attribute(name.clone()),
            message: "no attribute has this name".to_owned(),
        })?;
        object.insert(
            name.clone(),
            value.convert(&field.ty).map_err(|misfit| misfit.inside(name.clone()))?,
        );
    }
    match fields.iter().find(|(name, field)| !field.optional && !object.contains_key(*name)) {
        Some((name, _)) => {
            Err(Misfit { path: Path::root(), message: format!("attribute `{name}` is missing") })
        }
        None => Ok(Value::map(object)),
    }
}

/// A value that does not fit a type: the place and the reason. The reason contains no values, because they
/// may be secret. A key may be secret, too; it appears only in the place.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// The place in the value.
    pub path: Path,
    /// The error there, such as "expected integer, found string".
    pub message: String,
}

impl Misfit {
    fn new(value: &Value, ty: &Type) -> Self {
        let found = value.type_of().nameless();
        Self { path: Path::root(), message: format!("expected {ty}, found {found}") }
    }

    /// Returns the words for people, without the place if the value is `secret`.
    pub fn shown(&self, secret: bool) -> String {
        if secret { self.message.clone() } else { self.to_string() }
    }

    fn inside(mut self, segment: impl Into<Segment>) -> Self {
        self.path.0.insert(0, segment.into());
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.0.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "at {}: {}", self.path, self.message)
    }
}

/// Shows the shape of a value, for tests and assertions; never shown to users.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::List(items) => items.fmt(f),
            Self::Set(items) => f.debug_set().entries(items.iter()).finish(),
            Self::Map(entries) => entries.fmt(f),
            Self::Unknown(unknown) => write!(f, "unknown({}: {})", unknown.residual, unknown.ty),
            Self::Sealed(sealed) => write!(f, "sealed({})", sealed.ty),
        }
    }
}

/// A value and its sensitive places. Every operation on values passes the places on.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// The value, in clear if it is known.
    pub value: Value,
    /// Its sensitive places.
    pub sensitive: Paths,
}

impl Datum {
    /// A value with nothing sensitive.
    pub fn plain(value: Value) -> Self {
        Self { value, sensitive: Paths::none() }
    }

    /// A value that is sensitive as a whole.
    pub fn secret(value: Value) -> Self {
        Self { value, sensitive: Paths::whole() }
    }

    /// Returns the datum converted to type `ty`, as [`Value::convert`] does it. The items of a set have no
    /// places of their own, so if one of them is sensitive, the whole set is.
    pub fn convert(&self, ty: &Type) -> Result<Self, Misfit> {
        let value = self.value.convert(ty)?;
        let sensitive = self.sensitive.around_sets(&value);
        Ok(Self { value, sensitive })
    }
}

impl From<Value> for Datum {
    fn from(value: Value) -> Self {
        Self::plain(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_unique() {
        let set = Value::set(vec![Value::string("b"), Value::string("a"), Value::string("b")]);
        assert_eq!(format!("{set:?}"), r#"{"a", "b"}"#);
    }

    #[test]
    fn conversion_says_where_it_fails() {
        let value = Value::list(vec![Value::Integer(1), Value::string("x")]);
        let misfit = value.convert(&Type::list(Type::Integer)).unwrap_err();
        assert_eq!(misfit.to_string(), "at [1]: expected integer, found string");
        let one = Value::map([("hunter2".into(), Value::Null)].into_iter().collect());
        let misfit = one.convert(&Type::Object(BTreeMap::new())).unwrap_err();
        assert_eq!(misfit.to_string(), "at hunter2: no attribute has this name");
        assert_eq!(misfit.shown(true), "no attribute has this name");
        assert_eq!(Value::Float(3.0).convert(&Type::Integer).unwrap(), Value::Integer(3));
        assert!(Value::Float(3.5).convert(&Type::Integer).is_err());
    }
}
