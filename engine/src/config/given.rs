//! Values that the shell gives in addition to the text of a spec: values of variables, and contents of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::Name;
use crate::value::Value;

/// The contents that the shell read for `file("…")`, by path.
pub type Files = BTreeMap<String, Result<Arc<str>, String>>;

/// The place that gives the value of each variable, in words: a file, an option, a variable of the environment.
pub type GivenPlaces = BTreeMap<Name, String>;

/// A value given for a variable.
#[derive(Clone, Debug)]
pub enum Given {
    /// Text: taken as it is by string variables, read as a TOML value by others.
    Text(String),
    /// A typed value, from a variables file.
    Value(Value),
    /// No value: the default counts, and without a default the value is unknown. For reading a spec without
    /// values.
    Unset,
}
