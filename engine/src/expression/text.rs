//! Scalars as text.

use crate::value::Value;

/// Returns a scalar as a template shows it; none for other values.
pub(in crate::expression) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(float_text(*number)),
        _ => None,
    }
}

/// Returns a float as people write it: without a fraction if it is zero.
fn float_text(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
