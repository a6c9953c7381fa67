//! The functions of the expression language, in one table that the type checker and the evaluator read. A
//! function is pure, total and bounded. If it cannot compute a result, it returns a [`Fault`] with the wrong
//! argument.
//!
//! No function has the name of a resource type or a reserved word.

#![expect(clippy::unnecessary_wraps, reason = "the functions of the table have one signature")]

mod collections;
mod digests;
mod encodings;
mod formats;
pub(crate) mod globs;
mod gzip;
mod networks;
mod numbers;
mod parameters;
mod patterns;
mod products;
mod replacements;
mod sets;
mod table;
mod texts;
mod times;
mod toml_text;
mod types;
mod yaml;

pub(super) use parameters::{Parameter, Wants};

use super::{ExprError, FileRequest, Range};
use crate::diagnostics::{Advice, nearest};
use crate::types::Type;
use crate::value::{Datum, Value};

/// A function.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// The number of required arguments.
    pub(super) required: usize,
    /// True if the last parameter takes any number of arguments.
    pub(super) repeats: bool,
    /// The type of the result, computed from the types of the arguments; these are empty if they are not
    /// known (`f(list...)`).
    pub(super) result: fn(&[Type]) -> Type,
    pub(super) body: Body,
    /// A description of the result.
    pub(super) gives: &'static str,
    pub(super) example: Example,
}

/// A call of a function, and its result.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The call, as an expression.
    pub call: &'static str,
    /// Its result, as an expression.
    pub result: &'static str,
}

/// The description of a function for the reference page.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The kind of function, as a heading.
    pub group: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The form of a call: `substr(text, offset, length)`.
    pub usage: String,
    /// A description of the result, with code in backticks.
    pub gives: &'static str,
    /// An example.
    pub example: Example,
}

/// Returns all functions, group by group, in the order of their names.
pub fn references() -> impl Iterator<Item = Reference> {
    table::GROUPS.iter().flat_map(|group| {
        group.functions.iter().map(|function| Reference {
            group: group.title,
            name: function.name,
            usage: function.usage(),
            gives: function.gives,
            example: function.example,
        })
    })
}

/// The implementation of a function.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// A function of arguments that are completely known. The result is sensitive if a part of them is.
    Whole(fn(&[Value]) -> Result<Value, Fault>),
    /// A function of arguments that may contain unknown and sealed parts, whose sensitive places it moves.
    Parts(fn(&[Datum]) -> Result<Answer, Fault>),
    /// A function that needs more than values: the evaluator computes it.
    Special(Special),
}

/// The functions that the evaluator computes itself.
#[derive(Clone, Copy)]
pub(super) enum Special {
    Try,
    Can,
    Sensitive,
    NonSensitive,
    File,
    /// From the bytes of a file.
    FileBytes(fn(&[u8]) -> String),
    FileSet,
    TemplateFile,
}

/// The answer of a function.
pub(super) enum Answer {
    Known(Datum),
    /// The result depends on an unknown value.
    Unknown,
}

/// The reason that a function cannot compute a result. Contains no values: they may be secret.
#[derive(Debug)]
pub(super) struct Fault {
    /// The index of the wrong argument, from 0; none for the call as a whole.
    pub(super) argument: Option<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// The message if the function looked at a secret: one text for all its mistakes, because the exact
    /// mistake would reveal more than the failure. None if the ordinary message reveals nothing.
    pub(super) of_secret: Option<&'static str>,
}

impl Fault {
    fn new(argument: usize, message: impl Into<String>) -> Self {
        Self { argument: Some(argument), message: message.into(), help: None, of_secret: None }
    }

    fn of_secret(mut self, message: &'static str) -> Self {
        self.of_secret = Some(message);
        self
    }

    fn help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

/// Returns the function with that name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    table::FUNCTIONS.get(name).copied()
}

/// Returns the kind of request that the first argument of a function makes, with an empty path; none for a function
/// that reads no file.
pub(crate) fn file_request(name: &str) -> Option<FileRequest<'static>> {
    match find(name)?.body {
        Body::Special(Special::File | Special::TemplateFile) => Some(FileRequest::Text("")),
        Body::Special(Special::FileBytes(_)) => Some(FileRequest::Bytes("")),
        Body::Special(Special::FileSet) => Some(FileRequest::Listing("")),
        _ => None,
    }
}

/// Returns the error about a function that does not exist.
pub(super) fn unknown(name: &str, range: Range) -> ExprError {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    let end = range.start.saturating_add(length).min(range.end);
    let advice = replacements::of(name).map(Advice::from).or_else(|| {
        let known = nearest(name, table::FUNCTIONS.keys().copied());
        known.map(|known| Advice::meant(name, known))
    });
    let message = format!("there is no function `{name}`");
    let (help, meant) = match advice {
        Some(Advice { text, correction }) => (Some(text), correction),
        None => (None, None),
    };
    ExprError { range: Range { start: range.start, end }, message, help, meant }
}

impl Function {
    /// Returns the parameter for the argument at `index`.
    pub(super) fn parameter(&self, index: usize) -> Option<&Parameter> {
        match self.parameters.get(index) {
            None if self.repeats => self.parameters.last(),
            found => found,
        }
    }

    /// Refuses a wrong number of arguments.
    pub(super) fn check_count(&self, count: usize, range: Range) -> Result<(), ExprError> {
        let most = if self.repeats { usize::MAX } else { self.parameters.len() };
        if (self.required..=most).contains(&count) {
            return Ok(());
        }
        let wanted = match (self.required, most) {
            (least, usize::MAX) => format!("{least} or more"),
            (least, most) if least == most => format!("{most}"),
            (least, most) => format!("{least} to {most}"),
        };
        let plural = if wanted == "1" { "" } else { "s" };
        let message = format!("{}() takes {wanted} argument{plural}, found {count}", self.name);
        Err(ExprError {
            range,
            message,
            help: Some(format!("write {}", self.usage())),
            meant: None,
        })
    }

    /// Returns the form of a call, such as `substr(text, offset, length)`.
    pub(super) fn usage(&self) -> String {
        let optional = |index: usize| index >= self.required && !self.repeats;
        let mark = |index: usize| if optional(index) { "?" } else { "" };
        let names = self.parameters.iter().enumerate();
        let names: Vec<String> =
            names.map(|(index, parameter)| format!("{}{}", parameter.name, mark(index))).collect();
        let more = if self.repeats { ", …" } else { "" };
        format!("{}({}{more})", self.name, names.join(", "))
    }
}

#[cfg(test)]
mod tests;
