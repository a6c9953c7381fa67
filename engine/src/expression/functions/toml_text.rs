//! TOML texts. A date or a time becomes a text, because there is no value for it.

use toml::de::{DeTable, DeValue};

use super::Fault;
use super::texts::text;
use crate::value::Value;

/// The deepest nesting of tables and arrays.
const DEPTH_MAX: usize = 64;

pub(super) fn decode(a: &[Value]) -> Result<Value, Fault> {
    decoded(text(a, 0)).map_err(|fault| fault.of_secret("this is no TOML text that can be read"))
}

fn decoded(text: &str) -> Result<Value, Fault> {
    // The parser's message would show parts of the text.
    let table = DeTable::parse(text).map_err(|error| {
        let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        Fault::new(0, format!("this is no TOML: see line {line} of the text"))
    })?;
    entries(table.get_ref(), DEPTH_MAX)
}

fn entries(table: &DeTable<'_>, depth: usize) -> Result<Value, Fault> {
    let entry =
        |(key, item): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
            Ok(((&**key.get_ref()).into(), value(item.get_ref(), depth)?))
        };
    Ok(Value::map(table.iter().map(entry).collect::<Result<_, Fault>>()?))
}

fn value(toml: &DeValue<'_>, depth: usize) -> Result<Value, Fault> {
    let wrong = |message: &str| Fault::new(0, message.to_owned());
    let depth = depth.checked_sub(1).ok_or_else(|| wrong("this is nested too deeply"))?;
    Ok(match toml {
        DeValue::String(text) => Value::string(&**text),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| wrong("a number in it is too large"))?,
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().filter(|number: &f64| number.is_finite());
            number.map(Value::Float).ok_or_else(|| wrong("a number in it is not finite"))?
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::string(time.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| value(item.get_ref(), depth));
            Value::list(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => entries(table, depth)?,
    })
}

#[cfg(test)]
mod tests {
    use super::decoded;
    use crate::expression::Expr;

    #[test]
    fn texts_and_what_they_hold() {
        for (text, expected) in [
            ("", "{}"),
            (
                "a = 1\n[b]\nc = [0x10, 1.5, true]\nd.e = 'x'\n",
                "{ a = 1, b = { c = [16, 1.5, true], d = { e = \"x\" } } }",
            ),
            (
                "at = 2026-01-02T03:04:05Z\n[[l]]\nx = 1\n[[l]]\n",
                "{ at = \"2026-01-02T03:04:05Z\", l = [{ x = 1 }, {}] }",
            ),
        ] {
            assert_eq!(Expr::literal(decoded(text).unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_toml_is_refused_without_showing_it() {
        let deep = format!("a = {}1{}", "[".repeat(5000), "]".repeat(5000));
        let dotted = format!("{}a = 1", "a.".repeat(20_000));
        let nested = format!("a = {}1{}", "[".repeat(70), "]".repeat(70));
        for text in [
            "a = hunter2",
            "a = 1\na = 2",
            "a = 99999999999999999999",
            "a = inf",
            &deep,
            &dotted,
            &nested,
        ] {
            let fault = format!("{:?}", decoded(text).err().unwrap());
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    }
}
