//! Plain values: values in a spec, on a command line or in a variables file that need no computation.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::given::Given;
use super::syntax;
use crate::address::{Name, is_name};
use crate::expression::{Expr, Kind};
use crate::types::Type;
use crate::value::{Attributes, Path, Segment, Value};

/// Returns the value of an expression; none if a part of it has to be computed.
pub fn constant(expr: &Expr) -> Option<Value> {
    let value = known_parts(expr)?;
    value.is_known().then_some(value)
}

/// Returns the value of an expression with the parts unknown that have to be computed. None if a key of a map
/// has to be computed.
pub(super) fn known_parts(expr: &Expr) -> Option<Value> {
    Some(match &expr.kind {
        Kind::Literal(value) => value.clone(),
        Kind::List(items) => Value::list(items.iter().map(known_parts).collect::<Option<_>>()?),
        Kind::Map(entries) => {
            let mut map = Attributes::new();
            for (key, value) in entries {
                map.insert(literal_key(key)?.clone(), known_parts(value)?);
            }
            Value::map(map)
        }
        _ => Value::unknown(Type::Any, Expr::literal(Value::Null)),
    })
}

/// Returns the text of a key; none if it has to be computed.
pub(crate) fn literal_key(key: &Expr) -> Option<&Name> {
    if let Kind::Literal(Value::String(text)) = &key.kind { Some(text) } else { None }
}

/// Returns the part of an expression that gives the part of its value at `path`. If that part is computed,
/// returns the nearest part around it.
pub(crate) fn part_at<'e>(expr: &'e Expr, path: &Path) -> &'e Expr {
    path.0
        .iter()
        .try_fold(expr, |expr, segment| step(expr, segment).ok_or(expr))
        .unwrap_or_else(|nearest| nearest)
}

fn step<'e>(expr: &'e Expr, segment: &Segment) -> Option<&'e Expr> {
    match (&expr.kind, segment) {
        (Kind::List(items), Segment::Index(index)) => items.get(*index),
        (Kind::Map(entries), Segment::Key(name)) => {
            entries.iter().find(|(key, _)| literal_key(key) == Some(name)).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// Reads a TOML value, such as `3`, `"text"` or `["a", "b"]`. The error shows no part of the text.
pub fn from_toml(text: &str) -> Result<Value, String> {
    if syntax::scan(text).too_deep.is_some() {
        return Err("it is nested too deeply".to_owned());
    }
    let value = DeValue::parse(text)
        .map_err(|error| format!("this is not a TOML value: {}", error.message()))?;
    plain(value.get_ref())
}

/// Reads a file of variables: `name = value` lines in TOML. The error shows no value, but the line and column
/// of a mistake.
pub fn variables_file(text: &str) -> Result<BTreeMap<Name, Given>, String> {
    let place = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        format!("line {line}, column {}", before[start..].chars().count() + 1)
    };
    if let Some(offset) = syntax::scan(text).too_deep {
        return Err(format!("{}: nested too deeply", place(offset)));
    }
    let table = DeTable::parse(text).map_err(|error| match error.span() {
        Some(span) => format!("{}: {}", place(span.start), error.message()),
        None => error.message().to_owned(),
    })?;
    let mut variables = BTreeMap::new();
    for (key, value) in table.get_ref() {
        let at = place(key.span().start);
        if !is_name(key.get_ref()) {
            return Err(format!("{at}: this is not the name of a variable"));
        }
        let value = plain(value.get_ref()).map_err(|reason| format!("{at}: {reason}"))?;
        variables.insert(Name::from(&**key.get_ref()), Given::Value(value));
    }
    Ok(variables)
}

// Recursion is bounded by the parser.
fn plain(value: &DeValue<'_>) -> Result<Value, String> {
    Ok(match value {
        DeValue::String(text) => Value::string(&**text),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix());
            Value::Integer(number.map_err(|_| "the number is too large".to_owned())?)
        }
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => return Err("the number is not finite".to_owned()),
        },
        DeValue::Datetime(_) => return Err("dates are not values: put it in quotes".to_owned()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| plain(item.get_ref()));
            Value::list(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                let key: &toml::de::DeString<'_> = key.get_ref();
                Ok::<_, String>((Name::from(&**key), plain(value.get_ref())?))
            };
            Value::map(table.iter().map(entry).collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_a_command_line() {
        for (text, expected) in [
            ("3", "Ok(3)"),
            ("true", "Ok(true)"),
            ("'x'", r#"Ok("x")"#),
            ("[1, 2.5]", "Ok([1, 2.5])"),
            ("{ a = { b = 1 } }", r#"Ok({"a": {"b": 1}})"#),
            ("inf", r#"Err("the number is not finite")"#),
            ("1979-05-27", r#"Err("dates are not values: put it in quotes")"#),
            ("99999999999999999999", r#"Err("the number is too large")"#),
        ] {
            assert_eq!(format!("{:?}", from_toml(text)), expected, "{text}");
        }
        for bad in ["abc", "", "[", "3 4", "\"secret"] {
            let error = from_toml(bad).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(from_toml(&"[".repeat(10_000)).is_err());
    }

    #[test]
    fn variables_from_a_file() {
        let file = variables_file("env = 'prod'\nsizes = [1]\n").unwrap();
        assert_eq!(format!("{file:?}"), r#"{"env": Value("prod"), "sizes": Value([1])}"#);
        for (text, expected) in [
            ("a = 'x'\nb = \"secret\n", "line 2, column 12: invalid basic string, expected `\"`"),
            ("a = 'x'\na = 'secret'\n", "line 2, column 1: duplicate key"),
            ("A = 'secret'", "line 1, column 1: this is not the name of a variable"),
            ("a = 1\nb = inf", "line 2, column 1: the number is not finite"),
        ] {
            assert_eq!(variables_file(text).unwrap_err(), expected);
        }
    }
}
