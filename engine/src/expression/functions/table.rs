//! The table of functions, in groups: the type checker, the evaluator and the reference page read it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Body, Function, Parameter, Wants};
use crate::types::Type;

mod collections;
mod digests;
mod encodings;
mod files;
mod networks;
mod numbers;
mod texts;
mod times;
mod values;

/// Functions of one kind, sorted by name.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) functions: &'static [Function],
}

/// All functions.
pub(super) static GROUPS: &[Group] = &[
    Group { title: "Text", functions: texts::TABLE },
    Group { title: "Numbers", functions: numbers::TABLE },
    Group { title: "Lists, sets and maps", functions: collections::TABLE },
    Group { title: "Encodings", functions: encodings::TABLE },
    Group { title: "Digests", functions: digests::TABLE },
    Group { title: "Networks", functions: networks::TABLE },
    Group { title: "Times", functions: times::TABLE },
    Group { title: "Files", functions: files::TABLE },
    Group { title: "Types and secrets", functions: values::TABLE },
];

/// All functions by name.
pub(super) static FUNCTIONS: LazyLock<BTreeMap<&str, &Function>> = LazyLock::new(|| {
    let functions = GROUPS.iter().flat_map(|group| group.functions);
    functions.map(|function| (function.name, function)).collect()
});

type Result = fn(&[Type]) -> Type;
type P = (&'static str, Wants);

const fn parameter((name, wants): P) -> Parameter {
    Parameter { name, wants }
}

/// A function whose parameters are all required; [`Function::requiring`] and [`Function::repeating`] change
/// that.
macro_rules! function {
    ($name:literal ( $($p:literal $w:expr),* ) -> $result:expr, $body:expr) => {
        $crate::expression::functions::table::new_function(
            $name,
            const { &[$($crate::expression::functions::table::parameter(($p, $w))),*] },
            $result,
            $body,
        )
    };
}
use function;

const fn new_function(
    name: &'static str,
    parameters: &'static [Parameter],
    result: Result,
    body: Body,
) -> Function {
    let required = parameters.len();
    let (repeats, gives, example) = (false, "", super::Example { call: "", result: "" });
    Function { name, parameters, required, repeats, result, body, gives, example }
}

impl Function {
    /// Makes the last parameter take any number of arguments.
    const fn repeating(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Sets the number of required arguments.
    const fn requiring(mut self, required: usize) -> Self {
        self.required = required;
        self
    }

    /// Sets the description of the result, for the reference page.
    const fn gives(mut self, gives: &'static str) -> Self {
        self.gives = gives;
        self
    }

    /// Sets an example: a call and its result, both as expressions.
    const fn example(mut self, call: &'static str, result: &'static str) -> Self {
        self.example = super::Example { call, result };
        self
    }
}
