//! Text to tree.

use super::{Expr, ExprError};

/// How first words are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// In specs: `var.x`, `local.x`, `each.key`, `each.value`, and `type.name` for resources; a
    /// word alone, or one of `self old new action job http`, is [`super::Root::Named`].
    Spec,
    /// In descriptors: every first word is [`super::Root::Named`].
    Names,
}

/// Reads a template: text with `${…}`, `%{if}` and `$${`. Alone in the text, a part keeps its type.
pub fn template(text: &str, dialect: Dialect) -> Result<Expr, ExprError> {
    let _ = (text, dialect);
    Err(ExprError { range: super::Range::default(), message: String::new(), help: None })
}

/// Reads a bare expression.
pub fn expression(text: &str, dialect: Dialect) -> Result<Expr, ExprError> {
    let _ = (text, dialect);
    Err(ExprError { range: super::Range::default(), message: String::new(), help: None })
}

/// Reads what [`super::print`] wrote of a residual, in the dialect of specs and without bounds on
/// its length, since folding may have made it longer than what a person wrote.
pub fn residual(text: &str) -> Result<Expr, ExprError> {
    expression(text, Dialect::Spec)
}
