//! Secrets that stand in the text of a spec, and so in the plan that is made from it.
//!
//! Where a value is secret a plan holds the expression that computes it, and what comes from a
//! sensitive variable stays a reference there. What was written down as it is, in the spec, in a
//! file that it reads or in a variable that is not sensitive, cannot: it is the expression, or a part of
//! one that waits for something else. In memory that is as it must be; in a plan file it would be a secret
//! at rest.

use crate::expression::visit::{literals, walk};
use crate::expression::{Expr, Kind, Root};
use crate::plan::referred::{Reference, each_in};
use crate::plan::{Change, Plan};
use crate::value::{Path, Paths, Segment, Value};

/// The places whose secrets a plan holds in clear, in words, in the order of the plan.
pub fn exposed(plan: &Plan) -> Vec<String> {
    let is_secret = |reference: Reference<'_>| plan.is_secret(reference);
    let is_exposed = |expr: &Expr, sensitive: &Paths| is_exposed(expr, sensitive, &is_secret);
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

/// Says what a reference refers to: whether that may be a secret.
type IsSecret<'a> = &'a dyn Fn(Reference<'_>) -> bool;

/// Says whether a sensitive part of an expression is secret for nothing but its own text.
fn is_exposed(expr: &Expr, sensitive: &Paths, is_secret: IsSecret<'_>) -> bool {
    if sensitive.is_empty() {
        return false;
    }
    match &expr.kind {
        Kind::Map(entries) => entries.iter().any(|(key, value)| match &key.kind {
            Kind::Literal(Value::String(name)) => {
                is_exposed(value, &sensitive.inside(&Segment::Key(name.clone())), is_secret)
            }
            _ => is_exposed(value, &Paths::whole(), is_secret),
        }),
        Kind::List(items) => items.iter().enumerate().any(|(index, item)| {
            is_exposed(item, &sensitive.inside(&Segment::Index(index)), is_secret)
        }),
        Kind::Literal(value) => holds_text(value, sensitive),
        _ if !refers(expr) || declares(expr, is_secret) => true,
        // What is secret about it may be a secret that it refers to; else it is what is written there.
        _ => has_words(expr) && !refers_to_a_secret(expr, is_secret),
    }
}

/// Says whether an expression declares something sensitive that stands in it as it is.
fn declares(expr: &Expr, is_secret: IsSecret<'_>) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        if let Kind::Call(call) = &part.kind
            && &*call.name == "sensitive"
        {
            let mut arguments = call.arguments.iter();
            found |= arguments.any(|value| is_exposed(value, &Paths::whole(), is_secret));
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

/// Says whether a word is written in an expression: more than what stands between other things.
fn has_words(expr: &Expr) -> bool {
    let mut found = false;
    literals(expr, &mut |value| found |= is_word(value));
    found
}

fn is_word(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().any(char::is_alphanumeric),
        Value::Integer(_) | Value::Float(_) => true,
        Value::List(items) | Value::Set(items) => items.iter().any(is_word),
        Value::Map(entries) => entries.values().any(is_word),
        _ => false,
    }
}

/// Says whether an expression refers to a variable, which is a sensitive one then, or to an attribute that
/// may be a secret.
fn refers_to_a_secret(expr: &Expr, is_secret: IsSecret<'_>) -> bool {
    let mut found = false;
    walk(expr, &mut |part| found |= matches!(&part.kind, Kind::Root(Root::Var(_))));
    each_in(expr, &mut |reference| found = found || is_secret(reference));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Name;
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
            ("value.a[\"key\"].id", &Paths::whole(), false),
            ("\"${value.a.id}:${value.b.id}\"", &Paths::whole(), false),
            ("\"hunter2-${value.a.id}\"", &Paths::whole(), true),
            ("\"user-${value.a.secret}\"", &Paths::whole(), false),
            ("{ a = value.a.id, password = \"hunter2-${value.a.id}\" }", &password, true),
            ("{ a = \"seen-${value.a.id}\", password = var.password }", &password, false),
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
            let secret: Name = "secret".into();
            let is_secret = |it: Reference<'_>| it.names.contains(&Some(&secret));
            assert_eq!(is_exposed(&expr, sensitive, &is_secret), expected, "{text}");
        }
    }
}
