//! Which program an operation runs: the first of the type's whose `when` holds for the object.
//!
//! Steps are fixed while planning, so what a `when` asks must be known then. What the API itself fills
//! in is no answer to it: nobody has said it, and the ordinary program is run.

use crate::expression::Expr;
use crate::expression::evaluate::evaluate;
use crate::plan::evaluate::scope::AttributeScope;
use crate::schema::Program;
use crate::value::{Attributes, Paths, Value};

/// The first program that applies to the object.
pub(in crate::plan) fn choose(programs: &[Program], object: Option<&Attributes>) -> Option<usize> {
    let empty = Attributes::new();
    let object = object.unwrap_or(&empty);
    programs.iter().position(|program| match &program.when {
        None => true,
        Some(when) => matches!(answer(when, object), Some(Value::Bool(true))),
    })
}

/// Evaluates the `when` of a program for an object; none where it fails.
pub(in crate::plan) fn answer(when: &Expr, object: &Attributes) -> Option<Value> {
    let sensitive = Paths::none();
    let scope = AttributeScope { attributes: object, sensitive: &sensitive };
    evaluate(when, &scope).ok().map(|datum| datum.value)
}
