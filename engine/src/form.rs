//! Forms: texts that are written differently and mean the same, such as `1Gi` and `1024Mi`.

use std::borrow::Cow;

use crate::stored::from_json;
use crate::value::{Attributes, Value};

/// The form in which the texts of an attribute are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Upper and lower case are equal.
    LowerCase,
    /// White space only separates words.
    Words,
    /// The content of the JSON counts, not its order and layout.
    Json,
    /// The duration counts, as in `90m` and `1h30m0s`. A number without a unit is in seconds.
    Duration,
    /// The amount counts, as in `1Gi`, `1024Mi` and `1073741824`.
    Size,
}

impl Form {
    /// The words that descriptors have for the forms.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("lower_case", Self::LowerCase),
        ("words", Self::Words),
        ("json", Self::Json),
        ("duration", Self::Duration),
        ("size", Self::Size),
    ];

    /// Returns true if two values mean the same: texts are compared by their form, all other values as they
    /// are. A text that cannot be read in this form equals only itself.
    pub fn is_same(self, a: &Value, b: &Value) -> bool {
        self.canonical(a).same(&self.canonical(b))
    }

    fn canonical(self, value: &Value) -> Value {
        let all = |items: &[Value]| items.iter().map(|item| self.canonical(item)).collect();
        match value {
            Value::String(text) => self.of_text(text).unwrap_or_else(|| value.clone()),
            Value::List(items) => Value::list(all(items)),
            Value::Set(items) => Value::set(all(items)),
            Value::Map(entries) => {
                let entry = |(name, value): (&_, &_)| (Clone::clone(name), self.canonical(value));
                Value::map(entries.iter().map(entry).collect::<Attributes>())
            }
            other => other.clone(),
        }
    }

    fn of_text(self, text: &str) -> Option<Value> {
        match self {
            Self::LowerCase => Some(Value::string(text.to_lowercase())),
            Self::Words => {
                Some(Value::string(text.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
            Self::Json => serde_json::from_str(text).ok().map(|json| from_json(&json)),
            Self::Duration => duration(text).map(amount),
            Self::Size => size(text).map(amount),
        }
    }
}

/// Returns the value of an amount, which no text of a spec equals.
fn amount(parts: i128) -> Value {
    Value::list(vec![Value::string(parts.to_string())])
}

/// The number of parts of one second, and of one byte; amounts are counted in these parts.
const PARTS: i128 = 1_000_000_000;

/// Reads a duration such as `1h30m0s`, `1.5h` or `90`, in billionths of a second.
fn duration(text: &str) -> Option<i128> {
    let mut rest: Cow<'_, str> = text.trim().to_lowercase().into();
    if rest.starts_with('-') || rest.is_empty() {
        return None;
    }
    if number(&rest).is_some_and(|(_, unit)| unit.is_empty()) {
        rest = format!("{rest}s").into();
    }
    let (mut rest, mut sum) = (&*rest, 0_i128);
    while !rest.is_empty() {
        let (count, after) = number(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let parts: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => PARTS,
            "m" => 60 * PARTS,
            "h" => 3_600 * PARTS,
            "d" => 86_400 * PARTS,
            "w" => 604_800 * PARTS,
            _ => return None,
        };
        sum = sum.checked_add(count.checked_mul(parts)? / PARTS)?;
        rest = after.trim_start();
    }
    Some(sum)
}

/// Reads an amount such as `1Gi`, `1.5 GB`, `500m` or `1024`, in billionths.
fn size(text: &str) -> Option<i128> {
    let (count, unit) = number(text.trim())?;
    let unit = unit.trim_start();
    if unit == "m" {
        return Some(count / 1_000);
    }
    let unit = unit.strip_suffix(['b', 'B']).unwrap_or(unit);
    let (prefix, base) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, 1_024_i128),
        None => (unit, 1_000),
    };
    let power = match prefix {
        "" if base == 1_000 => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    count.checked_mul(base.checked_pow(power)?)
}

/// Reads the decimal number that a text begins with, in billionths; returns it with the rest of the text.
fn number(text: &str) -> Option<(i128, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || part.len() > 9 || part.contains('.') {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let part: i128 = format!("{part:0<9}").parse().ok()?;
    Some((whole.checked_mul(PARTS)?.checked_add(part)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_meaning_are_the_same() {
        for (form, a, b, same) in [
            (Form::LowerCase, "Example.COM", "example.com", true),
            (Form::LowerCase, "a b", "a  b", false),
            (Form::Words, " a\n  b ", "a b", true),
            (Form::Words, "ab", "a b", false),
            (Form::Json, r#"{"b": [1, 2.0], "a": null}"#, r#"{"a":null,"b":[1,2]}"#, true),
            (Form::Json, "[1, 2]", "[2, 1]", false),
            (Form::Json, "no json", "no  json", false),
            (Form::Duration, "90m", "1h30m0s", true),
            (Form::Duration, "1.5h", "5400", true),
            (Form::Duration, "1h 30m", "5400s", true),
            (Form::Duration, "250ms", "0.25s", true),
            (Form::Duration, "1d", "24h", true),
            (Form::Duration, "1d", "25h", false),
            (Form::Duration, "1 fortnight", "2w", false),
            (Form::Duration, "", "0", false),
            (Form::Duration, "-1h", "1h", false),
            (Form::Size, "1Gi", "1024Mi", true),
            (Form::Size, "1GiB", "1073741824", true),
            (Form::Size, "1.5 GB", "1500000000", true),
            (Form::Size, "500m", "0.5", true),
            (Form::Size, "1G", "1Gi", false),
            (Form::Size, "0", "0Gi", true),
            (Form::Size, "99999999999999999999999999999999999999E", "1", false),
            (Form::Size, "1.", "1", true),
            (Form::Size, "big", "Big", false),
        ] {
            let (a_value, b_value) = (Value::string(a), Value::string(b));
            assert_eq!(form.is_same(&a_value, &b_value), same, "{form:?} {a} {b}");
            assert!(form.is_same(&a_value, &a_value), "{form:?} {a}");
        }
    }

    #[test]
    fn texts_in_values_are_compared_by_their_form() {
        let set = |items: &[&str]| Value::set(items.iter().map(|it| Value::string(*it)).collect());
        assert!(Form::LowerCase.is_same(&set(&["B", "a"]), &set(&["A", "b"])));
        let map =
            |text: &str| Value::map([("limit".into(), Value::string(text))].into_iter().collect());
        assert!(Form::Size.is_same(&map("1Gi"), &map("1024Mi")));
        assert!(!Form::Size.is_same(&map("1Gi"), &Value::string("1Gi")));
        assert!(!Form::Size.is_same(&Value::Integer(1), &Value::Null));
    }
}
