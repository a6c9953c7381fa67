//! The inputs of a secret attribute that no later run can compute again.
//!
//! A text that contains a secret from an API (`"p-${db.x.token}"`) is known only in the run that makes it.
//! The state keeps a fingerprint of the value that was sent, and one of its inputs: the expression as far as
//! it can be computed, with the values that it refers to. A later plan with the same inputs changes nothing.
//! The second fingerprint includes the value, so equal inputs never match another live value.

use crate::digest::{Fingerprint, SealKey, canonical};
use crate::expression::evaluate::{Scope, evaluate, residual};
use crate::expression::{Expr, Kind, Root, visit};
use crate::stored::seal;
use crate::value::{Paths, Value};

/// An expression with the values that it refers to. Never stored: some may be in clear.
#[derive(Clone, Debug)]
pub struct SecretInputs {
    text: String,
    values: Vec<Value>,
}

impl SecretInputs {
    /// Returns the inputs of an expression in a scope where secrets are sealed, or known. None if a value
    /// that it refers to is unknown, or if it refers to nothing. A reference counts by its value, not by its
    /// address.
    pub fn new(expr: &Expr, scope: &dyn Scope) -> Option<Self> {
        let mut expr = residual(expr, scope).ok()?;
        let mut values = Vec::new();
        visit::references_mut(&mut expr, &mut |part| {
            let value = evaluate(part, scope).ok().map(|datum| datum.value);
            part.kind = Kind::Root(Root::Named(format!("${}", values.len()).into()));
            values.push(value.filter(Value::is_known));
        });
        let values = values.into_iter().collect::<Option<Vec<Value>>>()?;
        (!values.is_empty()).then(|| Self { text: expr.to_string(), values })
    }

    /// Returns the fingerprint of the inputs and of their result, a value with its secrets sealed.
    pub fn fingerprint(&self, result: &Value, key: &SealKey) -> Fingerprint {
        let mut parts = vec![Value::string(&*self.text), Value::string(canonical(result))];
        // A secret in clear and the same secret as a fingerprint count as equal.
        parts.extend(self.values.iter().map(|value| seal(value, &Paths::whole(), key)));
        Fingerprint::of(&Value::list(parts), key)
    }
}
