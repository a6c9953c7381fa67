//! Tree to text: `Display` of an [`Expr`] is a bare expression that [`super::parse::residual`]
//! reads back to an equal tree.

use std::fmt;

use super::Expr;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}
