//! The entry for expressions: read, typed, computed, printed and read again.

use std::sync::Arc;

use engine::address::Block;
use engine::expression::check::{Types, Unresolved, check};
use engine::expression::evaluate::{Scope, evaluate, residual};
use engine::expression::parse::{self, Dialect};
use engine::expression::{Expr, Root};
use engine::types::Type;
use engine::value::{Datum, Value};

/// Reads the expression in both dialects, bare and as a template.
pub(crate) fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for dialect in [Dialect::Spec, Dialect::Names] {
        for read in [parse::template(text, dialect), parse::expression(text, dialect)] {
            match read {
                Ok(expr) => use_it(&expr),
                Err(error) => drop(error.to_string()),
            }
        }
    }
}

fn use_it(expr: &Expr) {
    let (one, other) = (World("hunter2"), World("another secret"));
    let mut errors = Vec::new();
    check(expr, &one, &mut errors);
    drop(evaluate(expr, &one));
    let Ok(folded) = residual(expr, &one) else { return };
    let text = folded.to_string();
    if let Ok(folded) = residual(expr, &other) {
        assert_eq!(text, folded.to_string(), "a residual tells something of a secret");
    }
    let back = parse::residual(&text).expect("what was printed can be read");
    assert_eq!(back.to_string(), text);
}

/// A world in which each variable has a value of some kind, by the length of its name. The field is the
/// secret value.
struct World(&'static str);

impl Types for World {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let unresolved = |message| Unresolved { message, help: None, meant: None };
        Scope::root(self, root).map(|datum| datum.value.type_of()).map_err(unresolved)
    }
}

impl Scope for World {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Var(name) = root else { return Ok(Value::string("text").into()) };
        Ok(match name.len() {
            1 => Value::Integer(3).into(),
            2 => Value::list(vec![Value::string("a"), Value::string("b")]).into(),
            3 => Value::map([("x".into(), Value::Integer(1))].into()).into(),
            4 => unknown("value.a.id", Type::String).into(),
            6 => Datum::secret(Value::string(self.0)),
            _ => return Err("there is no such variable".to_owned()),
        })
    }

    fn resource(&self, _: &Block, _: Option<&str>) -> Result<Datum, String> {
        Ok(unknown("value.a", Type::Any).into())
    }

    fn file(&self, _: &str) -> Result<Arc<str>, String> {
        Ok("content".into())
    }
}

fn unknown(text: &str, ty: Type) -> Value {
    Value::unknown(ty, parse::residual(text).expect("a reference"))
}
