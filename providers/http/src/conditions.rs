//! Conditions and texts that see one name: `self` for an object, `answer` for the answer about an operation.

use engine::expression::{Expr, evaluate};
use engine::value::Value;

use crate::descriptor::model::Failing;
use crate::template::Given;

/// Returns the reason of a failure, which may be empty, if the failure condition holds; else none.
pub(crate) fn failed(failing: Option<&Failing>, name: &str, shown: &Value) -> Option<String> {
    let failing = failing.filter(|it| holds(&it.when, name, shown) == Ok(true))?;
    let reason = failing.reason.as_ref().and_then(|reason| filled(reason, name, shown));
    Some(reason.and_then(|reason| reason.as_str().map(str::to_owned)).unwrap_or_default())
}

/// Returns true if a condition holds for the value of its one name.
pub(crate) fn holds(condition: &Expr, name: &str, shown: &Value) -> Result<bool, String> {
    let scope = [(name, shown.clone())];
    match evaluate::evaluate(condition, &Given(&scope)) {
        Ok(datum) => Ok(datum.value == Value::Bool(true)),
        Err(error) => Err(error.message),
    }
}

/// Returns the value of a text with the value of its one name filled in; none if it has none.
pub(crate) fn filled(text: &Expr, name: &str, shown: &Value) -> Option<Value> {
    let scope = [(name, shown.clone())];
    evaluate::evaluate(text, &Given(&scope)).ok().map(|datum| datum.value)
}
