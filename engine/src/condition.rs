//! The judgement of a condition against values: it holds, it does not hold, or the answer is not known.
//!
//! Validations, preconditions, postconditions, policies and the rules of descriptors are judged here.

use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::visit::push_parts;
use crate::expression::{BinaryOp, Expr, ExprError, Kind, UnaryOp};
use crate::stored::to_json;
use crate::value::{Datum, Value};

/// The most values that the message about a condition shows.
const VALUES_MAX: usize = 6;
/// The longest text of a value, and of the expression that has the value, in characters.
const TEXT_MAX: usize = 80;

/// The answer to a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is true.
    Holds,
    /// Something in it is not known yet.
    Unknown,
    /// It is false.
    Broken(Broken),
    /// It cannot be computed.
    Unclear(ExprError),
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The message of the condition; none if it has no message, or one that would show a secret.
    pub message: Option<String>,
    /// The values that made it false, such as `` `self.workers` is 3 ``.
    pub values: String,
}

/// Judges a condition by the values of a scope.
pub fn judge(condition: &Expr, message: Option<&Expr>, scope: &dyn Scope) -> Verdict {
    match evaluate(condition, scope).map(|datum| datum.value) {
        Ok(Value::Bool(true)) => Verdict::Holds,
        Ok(Value::Bool(false)) => Verdict::Broken(Broken {
            message: message.and_then(|message| text(message, scope)),
            values: values(condition, scope),
        }),
        Ok(Value::Unknown(_) | Value::Sealed(_)) => Verdict::Unknown,
        Ok(_) => Verdict::Unclear(ExprError {
            range: condition.range,
            message: "this is neither true nor false".to_owned(),
            help: Some("write a condition, such as `self.workers > 0`".to_owned()),
            meant: None,
        }),
        Err(error) => Verdict::Unclear(error),
    }
}

/// Returns the text of a message; none if it would contain a secret or an unknown value.
pub fn text(message: &Expr, scope: &dyn Scope) -> Option<String> {
    let datum = evaluate(message, scope).ok()?;
    let is_open = datum.sensitive.is_empty();
    datum.value.as_str().filter(|_| is_open).map(ToOwned::to_owned)
}

/// Returns the parts that a condition compares or refers to, each with its value. A secret is not shown.
pub fn values(condition: &Expr, scope: &dyn Scope) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut stack = vec![condition];
    while let Some(expr) = stack.pop() {
        let part = match &expr.kind {
            Kind::Literal(_) => None,
            kind if is_joint(kind) => None,
            _ => evaluate(expr, scope).ok().and_then(|datum| value(expr, &datum)),
        };
        match part {
            Some(part) if !shown.contains(&part) => shown.push(part),
            Some(_) => {}
            None if is_reference(expr) => {}
            None => {
                let first = stack.len();
                push_parts(expr, &mut stack);
                stack[first..].reverse();
            }
        }
        if shown.len() == VALUES_MAX {
            break;
        }
    }
    shown.join(", ")
}

/// Returns true if an expression only joins conditions or values, or compares two of them.
fn is_joint(kind: &Kind) -> bool {
    match kind {
        Kind::Unary(UnaryOp::Not, _) | Kind::For(_) | Kind::List(_) | Kind::Map(_) => true,
        Kind::Binary(op, ..) => !matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::Divide
                | BinaryOp::Remainder
        ),
        _ => false,
    }
}

fn is_reference(mut expr: &Expr) -> bool {
    while let Kind::Attribute(base, _) | Kind::Index(base, _) = &expr.kind {
        expr = base;
    }
    matches!(&expr.kind, Kind::Root(_))
}

/// Returns the text that shows a part; none if its parts say more, or nothing can be shown.
fn value(expr: &Expr, datum: &Datum) -> Option<String> {
    let name = shortened(&expr.to_string());
    if !datum.sensitive.is_empty() || datum.value.holds_sealed() {
        return Some(format!("`{name}` is a secret"));
    }
    let says_nothing = matches!(datum.value, Value::Bool(_)) && !is_reference(expr);
    if !datum.value.is_known() || says_nothing {
        return None;
    }
    Some(match &datum.value {
        Value::List(items) | Value::Set(items) if is_long(&datum.value) => {
            format!("`{name}` has {} items", items.len())
        }
        Value::Map(entries) if is_long(&datum.value) => {
            format!("`{name}` has {} entries", entries.len())
        }
        value => format!("`{name}` is {}", shortened(&to_json(value).to_string())),
    })
}

fn is_long(value: &Value) -> bool {
    to_json(value).to_string().chars().nth(TEXT_MAX).is_some()
}

/// Returns a text in one line of bounded length.
fn shortened(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let end = if text.chars().nth(TEXT_MAX).is_some() { "…" } else { "" };
    text.chars().take(TEXT_MAX).map(clean).chain(end.chars()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::address::Block;
    use crate::expression::Root;
    use crate::expression::parse::{Dialect, expression};
    use crate::types::Type;

    struct Words(BTreeMap<&'static str, Datum>);

    impl Scope for Words {
        fn root(&self, root: &Root) -> Result<Datum, String> {
            let Root::Named(name) = root else { return Err("no such root".to_owned()) };
            self.0.get(&**name).cloned().ok_or_else(|| "no such word".to_owned())
        }

        fn resource(&self, block: &Block, _: Option<&str>) -> Result<Datum, String> {
            Err(format!("no {block}"))
        }
    }

    fn scope() -> Words {
        let list = Value::list((0..50).map(Value::Integer).collect());
        let entries = [("workers".into(), Value::Integer(3)), ("name".into(), Value::string("a"))];
        let unknown = Value::unknown(Type::Integer, Expr::literal(Value::Null));
        Words(BTreeMap::from([
            ("self", Datum::plain(Value::map(entries.into_iter().collect()))),
            ("list", Datum::plain(list)),
            ("pin", Datum::secret(Value::string("hunter2"))),
            ("later", Datum::plain(unknown)),
        ]))
    }

    #[track_caller]
    fn check(condition: &str, expected: &str) {
        let expr = |text: &str| expression(text, Dialect::Names).unwrap();
        let message = expr("\"No ${pin}.\"");
        let found = match judge(&expr(condition), Some(&message), &scope()) {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Unknown => "unknown".to_owned(),
            Verdict::Unclear(error) => format!("unclear: {error}"),
            Verdict::Broken(broken) => {
                assert_eq!(broken.message, None, "a message with a secret is not shown");
                broken.values
            }
        };
        assert_eq!(found, expected, "{condition}");
    }

    #[test]
    fn verdicts() {
        check("self.workers == 3", "holds");
        check("later > 3", "unknown");
        check("self.workers", "unclear: this is neither true nor false");
        check("nothing > 3", "unclear: no such word");
    }

    #[test]
    fn the_values_that_made_it_fail() {
        check("self.workers > 3", "`self.workers` is 3");
        check("self.workers + 1 > 4 && true", "`self.workers + 1` is 4");
        check("!startswith(self.name, \"a\")", "`self.name` is \"a\"");
        check("length(list) < self.workers", "`length(list)` is 50, `self.workers` is 3");
        check("contains(list, 51)", "`list` has 50 items");
        check(
            "pin == \"x\" || self.workers > later && false",
            "`pin` is a secret, `self.workers` is 3",
        );
        check("alltrue([for x in list : x < 9])", "`list` has 50 items");
    }
}
