//! Static types: the types that schemas promise and the type checker proves.
//!
//! Values are in [`crate::value`]. `any` is the only dynamic type.

use std::collections::BTreeMap;
use std::fmt;

use crate::address::Name;

/// The type of a value or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any type; checked when the value becomes known.
    Any,
    /// The type of `null` alone; fits every type.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number, 64 bits, signed.
    Integer,
    /// A whole or floating-point number.
    Number,
    /// Unicode text.
    String,
    /// Values of one type, in order.
    List(Box<Type>),
    /// Values of one type, each once, without order.
    Set(Box<Type>),
    /// Values of one type by text keys.
    Map(Box<Type>),
    /// Named attributes, each with a type of its own.
    Object(BTreeMap<Name, Field>),
}

/// One attribute of an object type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The attribute's type.
    pub ty: Type,
    /// True if a value of the object type may leave it out.
    pub optional: bool,
}

impl Type {
    /// A list of `item`.
    pub fn list(item: Type) -> Self {
        Self::List(Box::new(item))
    }

    /// A set of `item`.
    pub fn set(item: Type) -> Self {
        Self::Set(Box::new(item))
    }

    /// A map to `item`.
    pub fn map(item: Type) -> Self {
        Self::Map(Box::new(item))
    }

    /// Returns the way to convert an expression of this type to another type, for people; none if there is
    /// none.
    pub(crate) fn conversion_to(&self, want: &Type) -> Option<&'static str> {
        match (self, want) {
            (Self::Integer | Self::Number | Self::Boolean, Self::String) => {
                Some("make it a text: tostring(…)")
            }
            (Self::String, Self::Integer | Self::Number) => Some("make it a number: tonumber(…)"),
            (Self::String, Self::Boolean) => Some("make it a boolean: tobool(…)"),
            (_, Self::List(item) | Self::Set(item)) if self == &**item => {
                Some("put it in brackets: a list of one")
            }
            _ => None,
        }
    }

    /// Returns the type that an empty list or table should be given, if this is the type of a value with an
    /// empty collection: such a type fits only other empty collections. None if there is no empty collection.
    pub fn spelled_out(&self) -> Option<Type> {
        match self {
            Self::List(item) if **item == Self::Null => Some(Self::list(Self::String)),
            Self::List(item) => item.spelled_out().map(Self::list),
            Self::Object(fields) if fields.is_empty() => Some(Self::map(Self::String)),
            Self::Object(fields) => {
                let spelled = |field: &Field| {
                    let ty = field.ty.spelled_out().unwrap_or_else(|| field.ty.clone());
                    Field { ty, ..field.clone() }
                };
                let any = fields.values().any(|field| field.ty.spelled_out().is_some());
                let all = || fields.iter().map(|(name, field)| (name.clone(), spelled(field)));
                any.then(|| Self::Object(all().collect()))
            }
            _ => None,
        }
    }

    /// Returns true if a value of type `self` may stand in place of `target`, with the conversions that
    /// [`crate::value::Value::convert`] does: integer to number, list to set and back, object to map. An
    /// `any` fits statically and is checked when its value becomes known.
    pub fn fits(&self, target: &Type) -> bool {
        match (self, target) {
            (_, Self::Any) | (Self::Any | Self::Null, _) => true,
            // A float may fit an integer; only its value shows that.
            (Self::Integer | Self::Number, Self::Number | Self::Integer) => true,
            (Self::List(a) | Self::Set(a), Self::List(b) | Self::Set(b))
            | (Self::Map(a), Self::Map(b)) => a.fits(b),
            (Self::Object(fields), Self::Map(item)) => fields.values().all(|f| f.ty.fits(item)),
            (Self::Map(item), Self::Object(fields)) => fields.values().all(|f| item.fits(&f.ty)),
            (Self::Object(have), Self::Object(want)) => {
                have.keys().all(|name| want.contains_key(name))
                    && want.iter().all(|(name, field)| match have.get(name) {
                        Some(found) => found.ty.fits(&field.ty),
                        None => field.optional,
                    })
            }
            _ => self == target,
        }
    }

    /// Returns the type without the names of attributes, which come from a value and may be secret: an object
    /// type becomes a map type.
    #[must_use]
    pub fn nameless(&self) -> Type {
        match self {
            Self::List(item) => Self::list(item.nameless()),
            Self::Set(item) => Self::set(item.nameless()),
            Self::Map(item) => Self::map(item.nameless()),
            Self::Object(fields) => {
                let items = fields.values().map(|field| field.ty.nameless());
                Self::map(items.fold(Self::Null, |ty, item| ty.unify(&item)))
            }
            plain => plain.clone(),
        }
    }

    /// Returns the narrowest type that both fit: the type of a conditional or of a list with both.
    #[must_use]
    pub fn unify(&self, other: &Type) -> Type {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Self::Null, b) => b.clone(),
            (a, Self::Null) => a.clone(),
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            (Self::List(a), Self::List(b)) => Self::list(a.unify(b)),
            (Self::Set(a), Self::Set(b)) => Self::set(a.unify(b)),
            (Self::Map(a), Self::Map(b)) => Self::map(a.unify(b)),
            _ => Self::Any,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Boolean => f.write_str("boolean"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::String => f.write_str("string"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Set(item) => write!(f, "set({item})"),
            Self::Map(item) => write!(f, "map({item})"),
            Self::Object(fields) => {
                f.write_str("object{")?;
                for (index, (name, field)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let mark = if field.optional { "?" } else { "" };
                    write!(f, "{comma}{}{mark} = {}", Quoted(name), field.ty)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The name of an object's attribute, in quotes if it would not read back otherwise: the keys of a map may be
/// any text.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            f.write_str(self.0)
        } else {
            serde_json::Value::from(self.0).fmt(f)
        }
    }
}

/// The reason that a text names no type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a type: write string, integer, number, boolean, any, list(…), set(…), map(…) or object{{name = type, other? = type}}"
)]
pub struct TypeError(String);

/// The depth to which types may be nested in a text: slightly more than the depth of values.
const DEPTH_MAX: usize = 256;

impl std::str::FromStr for Type {
    type Err = TypeError;

    /// Reads the text that `Display` prints.
    fn from_str(text: &str) -> Result<Self, TypeError> {
        // A text may be of any length, so the error shows only its beginning.
        let shown = || text.chars().take(200).collect();
        read(text, DEPTH_MAX).ok_or_else(|| TypeError(shown()))
    }
}

fn read(text: &str, depth_left: usize) -> Option<Type> {
    let text = text.trim();
    match text {
        "any" => return Some(Type::Any),
        "null" => return Some(Type::Null),
        "boolean" | "bool" => return Some(Type::Boolean),
        "integer" => return Some(Type::Integer),
        "number" => return Some(Type::Number),
        "string" => return Some(Type::String),
        _ => {}
    }
    let depth_left = depth_left.checked_sub(1)?;
    for (word, make) in
        [("list(", Type::list as fn(Type) -> Type), ("set(", Type::set), ("map(", Type::map)]
    {
        if let Some(inner) = text.strip_prefix(word).and_then(|t| t.strip_suffix(')')) {
            return Some(make(read(inner, depth_left)?));
        }
    }
    let inner = text.strip_prefix("object{")?.strip_suffix('}')?;
    let mut fields = BTreeMap::new();
    for part in split_top(inner).into_iter().filter(|part| !part.trim().is_empty()) {
        let (name, rest) = read_name(part.trim())?;
        let (optional, rest) = match rest.trim_start().strip_prefix('?') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let ty = read(rest.trim_start().strip_prefix('=')?, depth_left)?;
        fields.insert(name, Field { ty, optional });
    }
    Some(Type::Object(fields))
}

/// Returns the name at the beginning, and the rest of the text.
fn read_name(text: &str) -> Option<(Name, &str)> {
    if text.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = texts.next()?.ok()?;
        return Some((name.into(), &text[texts.byte_offset()..]));
    }
    let end = text.find(['=', '?'])?;
    let name = text[..end].trim();
    let is_one = !name.is_empty() && !name.contains(['"', '(', ')', '{', '}', ',']);
    is_one.then(|| (name.into(), &text[end..]))
}

/// Splits at the commas outside brackets and quotes.
fn split_top(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> Type {
        text.parse().unwrap()
    }

    #[test]
    fn text_reads_back() {
        for text in [
            "any",
            "list(set(string))",
            "map(any)",
            "object{a = integer, b? = object{c = list(string)}, d = map(number)}",
        ] {
            assert_eq!(ty(text).to_string(), text);
        }
        // The keys of maps may be any text, and there may be any number of them.
        for name in ["a, b=c}", "q?", "", " ", "\"", "\\", "é", "a\nb", "x(", "{", "=", "\0", "a?b"]
        {
            let field = Field { ty: Type::list(Type::String), optional: name.len() % 2 == 0 };
            let inner = Type::Object(BTreeMap::from([(name.into(), field)]));
            let fields = [name, "other"]
                .map(|name| (Name::from(name), Field { ty: inner.clone(), optional: false }));
            let whole = Type::map(Type::Object(fields.into()));
            assert_eq!(ty(&whole.to_string()), whole, "{name}");
        }
        let field = |n: usize| {
            (Name::from(format!("NAME_{n}")), Field { ty: Type::String, optional: false })
        };
        let large = Type::Object((0..10_000).map(field).collect());
        assert_eq!(ty(&large.to_string()), large);
        assert_eq!(ty("null").to_string(), "null");
        for wrong in ["object{a b}", "object{\"a = string}", "object{= string}", "object{a( = any}"]
        {
            assert!(wrong.parse::<Type>().is_err(), "{wrong}");
        }
        let deep = |depth| format!("{}any{}", "list(".repeat(depth), ")".repeat(depth));
        assert_eq!(ty(&deep(200)).to_string(), deep(200));
        assert!(deep(100_000).parse::<Type>().is_err());
        assert!("list(".parse::<Type>().is_err());
        assert!("strnig".parse::<Type>().is_err());
    }

    #[test]
    fn fits() {
        for (from, to, expected) in [
            ("integer", "number", true),
            ("number", "integer", true),
            ("string", "integer", false),
            ("list(string)", "set(string)", true),
            ("object{a = string}", "map(string)", true),
            ("object{a = string}", "map(integer)", false),
            ("object{a = string}", "object{a = string, b? = string}", true),
            ("object{a = string, c = string}", "object{a = string}", false),
            ("any", "integer", true),
        ] {
            assert_eq!(ty(from).fits(&ty(to)), expected, "{from} -> {to}");
        }
    }
}
