//! The objects of the management APIs and their rules, the same for REST and GraphQL.
//!
//! Each kind has a record, which the store holds, an input with the optional settings of a client,
//! and the functions that make, change and remove an object inside one write of the store.

pub(crate) mod account;
pub(crate) mod delegation;
pub(crate) mod endpoint;
pub(crate) mod gpu;
pub(crate) mod registry;
pub(crate) mod release;
pub(crate) mod secret;
pub(crate) mod tag;
pub(crate) mod template;
pub(crate) mod volume;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::description::shape::{NOT_BLANK, Shape, text};
use crate::field_name::FieldName;
use crate::problem::Problem;

/// The bound below which a float represents every whole number exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The most characters of a name.
const NAME_MAX: usize = 191;

/// Returns the shape of a name.
pub(crate) fn name() -> Shape {
    text().at_least(1).at_most(NAME_MAX).like(NOT_BLANK)
}

/// Checks a name: not empty, not too long.
pub(crate) fn check_name(name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() {
        return Err(Problem::invalid("name must not be empty"));
    }
    if name.chars().count() > NAME_MAX {
        return Err(Problem::invalid(format!("name must have at most {NAME_MAX} characters")));
    }
    Ok(())
}

/// Returns the problem that a required field is missing.
pub(crate) fn required(field: impl Into<FieldName>) -> Problem {
    let field = field.into();
    Problem::broken_rule(|version| format!("{} is required", field.of(version)))
}

/// Checks that a value is one of a list.
pub(crate) fn check_one_of(
    field: impl Into<FieldName>,
    value: &str,
    known: &[&str],
) -> Result<(), Problem> {
    if known.contains(&value) {
        return Ok(());
    }
    let (field, known) = (field.into(), known.join(", "));
    Err(Problem::broken_rule(|version| {
        format!("{} must be one of {known}, not \"{value}\"", field.of(version))
    }))
}

/// Checks that a number lies in a range.
pub(crate) fn check_range(
    field: impl Into<FieldName>,
    value: i64,
    min: i64,
    max: i64,
) -> Result<(), Problem> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let range = if max == i64::from(i32::MAX) && value < min {
        format!("at least {min}")
    } else {
        format!("between {min} and {max}")
    };
    let field = field.into();
    Err(Problem::broken_rule(|version| {
        format!("{} must be {range}, not {value}", field.of(version))
    }))
}

/// Returns a number for JSON: 4 and not 4.0, which clients could not read into an integer.
pub(crate) fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number that fits")]
    let whole = (value.fract() == 0.0 && value.abs() < WHOLE_MAX).then_some(value as i64);
    whole.map_or_else(|| value.into(), Value::from)
}

/// Checks the names and values of environment variables.
fn check_env(env: &BTreeMap<String, String>) -> Result<(), Problem> {
    if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(Problem::invalid(format!("env has a name that cannot be one: \"{name}\"")));
    }
    env.values().try_for_each(|value| check_no_zero("env", value))
}

/// Checks a text that a process is started with: no system accepts one with a zero byte.
fn check_no_zero(field: impl Into<FieldName>, text: &str) -> Result<(), Problem> {
    if !text.contains('\0') {
        return Ok(());
    }
    let field = field.into();
    Err(Problem::broken_rule(|version| {
        format!("{} has a value with a zero byte", field.of(version))
    }))
}

/// Returns the text, or `None` if it is blank.
pub(crate) fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Returns the parts of a comma-separated list, without empty ones.
pub(crate) fn comma_list(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}
