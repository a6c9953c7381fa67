//! Constraints on attribute values: ranges, lengths and lists of allowed texts.
//!
//! Checked on what is known, at planning and again before a call, when residuals are filled.

use crate::schema::Constraint;
use crate::value::{Path, Value};

/// A value that breaks a constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Where in the attribute's value.
    pub path: Path,
    /// What is wrong, such as "size is 5000 and may be at most 4000 GB".
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Whether it is a text outside its list, which `lifecycle.allow_unknown` turns into a warning.
    pub outside_list: bool,
}

/// What of a value breaks the constraint. Unknown, sealed and null parts break nothing.
pub fn violations(
    _name: &str,
    _unit: Option<&str>,
    _constraint: &Constraint,
    _value: &Value,
) -> Vec<Violation> {
    Vec::new()
}
