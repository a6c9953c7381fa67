//! Values that the shell gives beside the text of a spec: those of variables, and the contents of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::value::Value;

/// The contents that the shell read for `file("…")`, by path.
pub type Files = BTreeMap<String, Result<Arc<str>, String>>;

/// A value given for a variable.
#[derive(Clone, Debug)]
pub enum Given {
    /// Text: taken as it is by string variables, read as a TOML value by others.
    Text(String),
    /// A typed value, from a variables file.
    Value(Value),
    /// None: the default holds, and without one the value counts as not known. For looking at a spec without values.
    Unset,
}
