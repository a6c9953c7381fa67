//! Secrets that stand in the text of a spec, and so in the plan that is made from it.
//!
//! Where a value is secret a plan holds the expression that computes it, and what comes from a
//! sensitive variable stays a reference there. What was written down as it is, in the spec, in a
//! file that it reads or in a variable that is not sensitive, cannot: it is the expression. In
//! memory that is as it must be; in a plan file it would be a secret at rest.

use crate::expression::visit::walk;
use crate::expression::{Expr, Kind, Root};
use crate::plan::{Change, Plan};
use crate::value::{Path, Paths, Segment, Value};

/// The places whose secrets a plan holds in clear, in words, in the order of the plan.
pub fn exposed(plan: &Plan) -> Vec<String> {
    let mut places = Vec::new();
    for change in &plan.changes {
        let names = change.secrets.iter().filter(|(name, expr)| {
            let path = Path::attribute((*name).clone());
            is_exposed(expr, &inside(change, &path))
        });
        places.extend(names.map(|(name, _)| format!("`{name}` of {}", change.address)));
    }
    for (name, output) in &plan.outputs {
        if output.secret.as_ref().is_some_and(|expr| is_exposed(expr, &Paths::whole())) {
            places.push(format!("the output `{name}`"));
        }
    }
    places
}

/// The sensitive places inside an attribute.
fn inside(change: &Change, path: &Path) -> Paths {
    path.0.iter().fold(change.sensitive.clone(), |paths, segment| paths.inside(segment))
}

/// Says whether a sensitive part of an expression is computed from nothing but its own text.
fn is_exposed(expr: &Expr, sensitive: &Paths) -> bool {
    if sensitive.is_empty() {
        return false;
    }
    match &expr.kind {
        Kind::Map(entries) => entries.iter().any(|(key, value)| match &key.kind {
            Kind::Literal(Value::String(name)) => {
                is_exposed(value, &sensitive.inside(&Segment::Key(name.clone())))
            }
            _ => is_exposed(value, &Paths::whole()),
        }),
        Kind::List(items) => items
            .iter()
            .enumerate()
            .any(|(index, item)| is_exposed(item, &sensitive.inside(&Segment::Index(index)))),
        Kind::Literal(value) => holds_text(value, sensitive),
        _ => !refers(expr) || declares(expr),
    }
}

/// Says whether an expression declares something sensitive that stands in it as it is.
fn declares(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        if let Kind::Call(call) = &part.kind
            && &*call.name == "sensitive"
        {
            found |= call.arguments.iter().any(|value| is_exposed(value, &Paths::whole()));
        }
    });
    found
}

/// Says whether a value has anything but null in a sensitive place.
fn holds_text(value: &Value, sensitive: &Paths) -> bool {
    sensitive.iter().any(|path| {
        value.at(path).is_some_and(|part| match part {
            Value::Null => false,
            Value::Map(entries) => !entries.is_empty(),
            Value::List(items) | Value::Set(items) => !items.is_empty(),
            _ => true,
        })
    })
}

/// Says whether an expression refers to a variable or an object.
fn refers(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(&part.kind, Kind::Root(Root::Var(_) | Root::Resource(_)));
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse::residual;

    #[test]
    fn what_refers_to_nothing_is_exposed() {
        let password = Paths::from_iter([Path::attribute("password")]);
        for (text, sensitive, expected) in [
            ("\"hunter2\"", &Paths::whole(), true),
            ("null", &Paths::whole(), false),
            ("[]", &Paths::whole(), false),
            ("7", &Paths::whole(), true),
            ("var.password", &Paths::whole(), false),
            ("\"prefix-${var.password}\"", &Paths::whole(), false),
            ("value.a.id", &Paths::whole(), false),
            ("upper(\"hunter2\")", &Paths::whole(), true),
            ("\"${var.a}${sensitive(\"hunter2\")}\"", &Paths::whole(), true),
            ("\"${var.a}${sensitive(var.b)}\"", &Paths::whole(), false),
            ("{ a = \"hunter2\", password = var.password }", &password, false),
            ("{ a = var.password, password = \"hunter2\" }", &password, true),
            ("{ a = var.password, b = \"hunter2\" }", &Paths::whole(), true),
            ("[var.password, \"hunter2\"]", &Paths::whole(), true),
            ("\"hunter2\"", &Paths::none(), false),
        ] {
            let expr = residual(text).unwrap();
            assert_eq!(is_exposed(&expr, sensitive), expected, "{text}");
        }
    }
}
