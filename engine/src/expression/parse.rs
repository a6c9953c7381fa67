//! The parser: text to tree.
//!
//! The grammar is HCL's, read by the crate `hcl-edit` and turned into the tree of this crate by [`convert`].
//! The most common texts of specs (plain text, plain references, and both mixed) are read by [`scan`], which
//! makes the same trees faster. Nothing is looked up here, and no type is proven.

mod convert;
mod modules;
mod nesting;
mod scan;

use super::{Expr, ExprError, Kind, Range, TEXT_MAX};
use crate::value::Value;

/// The meaning of first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// In specs: `var.x`, `local.x`, `each.key`, `each.value`, and `type.name` for resources; a
    /// word alone, or one of `self old new action job http`, is [`super::Root::Named`].
    Spec,
    /// In descriptors: every first word is [`super::Root::Named`].
    Names,
}

/// The first words that a scope offers by name, in every dialect.
pub(super) const OFFERED: [&str; 7] = ["self", "old", "new", "action", "plan", "job", "http"];

/// The longest text of a residual, in bytes. Folding makes residuals longer than the texts that people write.
const RESIDUAL_MAX: usize = 64 * 1024 * 1024;

/// Reads a template: text with `${…}`, `%{if}` and `$${`. A part that is the whole text keeps its type.
pub fn template(text: &str, dialect: Dialect) -> Result<Expr, ExprError> {
    if !text.contains("${") && !text.contains("%{") {
        return Ok(Expr { kind: Kind::Literal(Value::string(text)), range: whole(text) });
    }
    bounded(text, TEXT_MAX)?;
    if let Some(expr) = scan::template(text, dialect) {
        return Ok(expr);
    }
    nesting::bounded_template(text)?;
    let tree = text.parse().map_err(|error| syntax(text, &error, Place::Template))?;
    convert::template(&tree, text, dialect)
}

/// Reads a bare expression.
pub fn expression(text: &str, dialect: Dialect) -> Result<Expr, ExprError> {
    bounded(text, TEXT_MAX)?;
    nesting::bounded_expression(text)?;
    read(text, dialect, convert::Literals::AsWritten)
}

/// Reads a residual that [`super::print`] wrote, in the dialect of specs. Its length is not bounded as that
/// of other expressions, because folding may have made it longer than a text that a person wrote.
pub fn residual(text: &str) -> Result<Expr, ExprError> {
    bounded(text, RESIDUAL_MAX)?;
    nesting::bounded_residual(text)?;
    let mut expr = read(text, Dialect::Spec, convert::Literals::Folded)?;
    modules::resources(&mut expr);
    Ok(expr)
}

fn read(text: &str, dialect: Dialect, literals: convert::Literals) -> Result<Expr, ExprError> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    if trimmed.is_empty() {
        return Err(ExprError {
            range: whole(text),
            message: "there is no expression here".to_owned(),
            help: Some("write a value such as `true`, `\"text\"` or `var.name`".to_owned()),
            meant: None,
        });
    }
    if let Some(expr) = scan::reference(text, start, text.len() - start - trimmed.len(), dialect) {
        return Ok(expr);
    }
    // The parser of expressions does not accept spaces around them.
    let tree = trimmed.parse().map_err(|error| {
        let mut error = syntax(trimmed, &error, Place::Expression);
        error.range = range(error.range.start as usize + start, error.range.end as usize + start);
        error
    })?;
    convert::expression(&tree, text, start, dialect, literals)
}

fn bounded(text: &str, most: usize) -> Result<(), ExprError> {
    if text.len() <= most {
        return Ok(());
    }
    Err(ExprError {
        range: range(0, text.len()),
        message: format!("the expression is {} bytes long and may have at most {most}", text.len()),
        help: Some("split it into several locals, or keep long text in a file".to_owned()),
        meant: None,
    })
}

/// Returns the error of the parser. Its messages name the expected words, never the text that was found.
fn syntax(text: &str, error: &hcl_edit::parser::Error, place: Place) -> ExprError {
    let mut start = error.location().offset().min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = &text[start..];
    let end = start + rest.chars().next().map_or(0, char::len_utf8);
    let opening = rest.starts_with("${") || rest.starts_with("%{");
    let (message, help) = match error.message() {
        "unexpected token" if opening && place == Place::Template => (
            "what begins here has no end".to_owned(),
            Some("close it with `}`, and `%{if}` with `%{endif}`; `$${` and `%%{` are plain text"),
        ),
        message if message.starts_with("invalid nesting depth") => (
            format!("the expression is nested more than {} levels deep", super::DEPTH_MAX),
            Some("name a part of it as a local, and refer to that"),
        ),
        message if message.starts_with("invalid expression;") => (
            "a value is missing here".to_owned(),
            match rest.as_bytes().first() {
                Some(b'\'') => Some("text stands in double quotes inside an expression"),
                Some(b'$') => Some("inside an expression, references stand without `${` and `}`"),
                _ => None,
            },
        ),
        message => (format!("syntax error in expression: {message}"), None),
    };
    ExprError { range: range(start, end), message, help: help.map(str::to_owned), meant: None }
}

/// The places at which a part of a template may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Template,
    Expression,
}

/// The range of the bytes from `start` to `end`; texts are bounded, so both fit.
fn range(start: usize, end: usize) -> Range {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Range { start: offset(start), end: offset(end) }
}

fn whole(text: &str) -> Range {
    range(0, text.len())
}

#[cfg(test)]
mod tests;
