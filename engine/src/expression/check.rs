//! Types of expressions, proven before anything runs.

use super::{Expr, ExprError, Root};
use crate::types::Type;

/// What an expression may refer to, by type.
pub trait Types {
    /// The type of what `root` names: for a resource with `for_each`, a map of objects.
    fn root(&self, root: &Root) -> Result<Type, Unresolved>;
}

/// A name that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// What is wrong, such as "there is no variable `rgion`".
    pub message: String,
    /// What to do, such as "did you mean `region`?".
    pub help: Option<String>,
}

/// The type of an expression; what is wrong in it is added to `errors`, and the type is `any` there.
pub fn check(_expr: &Expr, _types: &dyn Types, _errors: &mut Vec<ExprError>) -> Type {
    Type::Any
}
