//! The fields of a JSON body, taken one by one with their types.
//!
//! They have been checked against the description of the operation before. A field that is missing
//! or null counts as left out. Unknown fields are ignored, as on the real service.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::description::operation::Form;
use crate::problem::Problem;

/// The fields of a JSON object.
pub(crate) struct Fields {
    given: Map<String, Value>,
    /// The fields that the description names; `None` for an object inside of the body. Reading any
    /// other field is a bug.
    described: Option<Vec<&'static str>>,
}

impl Fields {
    /// Reads a body that must be a JSON object, and must match the description of the operation.
    pub(crate) fn parse(body: &[u8], form: &Form) -> Result<Fields, Problem> {
        match serde_json::from_slice(body) {
            Ok(body @ Value::Object(_)) => {
                let described = Some(form.check_body(&body)?);
                Ok(Fields { described, ..Fields::of(body) })
            }
            Ok(_) => Err(Problem::invalid("the request body must be a JSON object")),
            Err(error) => Err(Problem::invalid(format!("the request body is not JSON: {error}"))),
        }
    }

    /// Returns the fields of a value; a value that is not an object has none.
    fn of(value: Value) -> Fields {
        let given = if let Value::Object(given) = value { given } else { Map::new() };
        Fields { given, described: None }
    }

    /// Returns the fields of an object in a field.
    pub(crate) fn object(&mut self, name: &str) -> Option<Fields> {
        self.take(name).map(Fields::of)
    }

    /// Returns the fields of each object of a list in a field.
    pub(crate) fn objects(&mut self, name: &str) -> Option<Vec<Fields>> {
        match self.take(name)? {
            Value::Array(items) => Some(items.into_iter().map(Fields::of).collect()),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(name, "a string")),
        }
    }

    /// Returns a text. Null counts as `""`, which means that there is none.
    pub(crate) fn nullable_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        if self.given.get(name).is_some_and(Value::is_null) {
            return Ok(Some(String::new()));
        }
        self.text(name)
    }

    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Number(number)) => {
                // In JSON 200.0 is a whole number too.
                let whole = number.as_f64().filter(|float| float.fract() == 0.0);
                #[expect(clippy::cast_possible_truncation, reason = "a cast to i64 saturates")]
                let whole = number.as_i64().or(whole.map(|float| float as i64));
                whole.map(Some).ok_or_else(|| wrong(name, "a whole number"))
            }
            Some(_) => Err(wrong(name, "a whole number")),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| wrong(name, "a number"))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let texts = serde_json::from_value(value).map_err(|_| wrong(name, "a list of strings"))?;
        Ok(Some(texts))
    }

    pub(crate) fn text_map(
        &mut self,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let what = "an object whose values are strings";
        let map = serde_json::from_value(value).map_err(|_| wrong(name, what))?;
        Ok(Some(map))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let described = self.described.as_ref();
        debug_assert!(described.is_none_or(|names| names.contains(&name)), "{name} is described");
        self.given.remove(name).filter(|value| !value.is_null())
    }
}

fn wrong(name: &str, what: &str) -> Problem {
    Problem::invalid(format!("{name} must be {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_types_and_say_so() {
        let body = br#"{"a": "x", "n": 200.0, "f": 1.5, "l": ["x"], "m": {"k": 1}, "z": null}"#;
        let mut fields = Fields::of(serde_json::from_slice(body).unwrap());
        assert_eq!(fields.text("a"), Ok(Some("x".to_owned())));
        assert_eq!(fields.integer("n"), Ok(Some(200)));
        assert_eq!(fields.integer("f").unwrap_err().message, "f must be a whole number");
        assert_eq!(fields.texts("l"), Ok(Some(vec!["x".to_owned()])));
        assert!(fields.text_map("m").is_err());
        assert_eq!(fields.nullable_text("z"), Ok(Some(String::new())));
        assert_eq!(fields.text("missing"), Ok(None));
    }
}
