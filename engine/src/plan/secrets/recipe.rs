//! What a secret attribute was made of, where nobody can make it again.
//!
//! A text that holds a secret which an API gave (`"p-${db.x.token}"`) is known in the run that makes it, and
//! never after. What was sent rests as a fingerprint, and so does what it was made of: the expression as
//! far as it can be computed, with what it refers to. A later plan that would make the same of the same
//! changes nothing. It is no proof of the value that is live: that is in the fingerprint, too.

use crate::digest::{Fingerprint, SealKey, canonical};
use crate::expression::evaluate::{Scope, evaluate, residual};
use crate::expression::{Expr, Kind, Root, visit};
use crate::stored::seal;
use crate::value::{Paths, Value};

/// An expression with the values of what it refers to. Never stored: some may be in clear.
#[derive(Clone, Debug)]
pub struct Recipe {
    text: String,
    values: Vec<Value>,
}

impl Recipe {
    /// The recipe of an expression in a scope where secrets are sealed, or known; none where something
    /// that it refers to is not known, and where it refers to nothing. What it refers to counts by its
    /// value, under whatever address.
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

    /// Its fingerprint, with what came of it: a value with its secrets sealed.
    pub fn fingerprint(&self, result: &Value, key: &SealKey) -> Fingerprint {
        let mut parts = vec![Value::string(&*self.text), Value::string(canonical(result))];
        // Who knows a secret, and who knows its fingerprint, say the same.
        parts.extend(self.values.iter().map(|value| seal(value, &Paths::whole(), key)));
        Fingerprint::of(&Value::list(parts), key)
    }
}
