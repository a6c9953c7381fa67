//! Secrets that are written in the text of a spec, and therefore stand in the plan that is made from it.
//!
//! For a secret value a plan holds the expression that computes it. A sensitive variable stays a reference in
//! that expression. But a secret that is written as it is, in the spec, in a file that the spec reads or in a
//! variable that is not sensitive, is the expression itself, or a part of an expression that waits for other
//! values. In memory this cannot be avoided; in a plan file it would be a secret at rest.

use crate::address::Name;
use crate::config::Config;
use crate::diagnostics::Span;
use crate::expression::visit::{literals, walk};
use crate::expression::{Expr, Kind, Root};
use crate::plan::Plan;
use crate::plan::referred::{Reference, each_in};
use crate::value::{Path, Paths, Segment, Value};

/// A secret that stands in clear in a plan, or in the spec that it is made of.
#[derive(Clone, Debug)]
pub struct WrittenSecret {
    /// A description of the secret, such as "`password` of db.main".
    pub what: String,
    /// The place in the spec that gives the secret. The text there may be the secret, so it must not be
    /// shown.
    pub span: Option<Span>,
    /// The variable whose default is the secret; none for another secret.
    pub default_of: Option<Name>,
}

/// Returns the secrets that stand in clear in a plan, or in the spec that it is made of, in the order of the plan.
pub fn written_secrets(plan: &Plan, config: &Config) -> Vec<WrittenSecret> {
    let is_secret = |reference: Reference<'_>| plan.is_secret(reference);
    let is_written = |expr: &Expr, sensitive: &Paths| is_written(expr, sensitive, &is_secret);
    let mut found: Vec<WrittenSecret> = config
        .variables
        .iter()
        .filter(|(_, variable)| variable.secret_default.is_some())
        .map(|(name, variable)| WrittenSecret {
            what: format!("the default of the variable `{name}`"),
            span: variable.secret_default,
            default_of: Some(name.clone()),
        })
        .collect();
    for change in &plan.changes {
        let names = change.secrets.iter().filter(|(name, expr)| {
            let place = Segment::Key((*name).clone());
            is_written(expr, &change.sensitive.inside(&place))
        });
        let resource = config.resources.get(&change.address.block);
        found.extend(names.map(|(name, _)| {
            let given = resource.and_then(|resource| resource.attributes.get(name));
            let span = given.map(|item| item.value.span);
            let what = format!("`{name}` of {}", change.address);
            WrittenSecret { what, span, default_of: None }
        }));
    }
    for (name, output) in &plan.outputs {
        if let Some(expr) = output.secret.as_ref()
            && is_written(expr, &Paths::whole())
        {
            let span = config.outputs.get(name).map(|output| output.value.span);
            let parts = parts(expr, &|part| is_written(part, &Paths::whole()));
            let what = format!("{parts}the output `{name}`");
            found.push(WrittenSecret { what, span, default_of: None });
        }
    }
    found
}

/// Returns the names of the entries of an output that are written down, such as "`user` in "; an empty text
/// if there are none.
fn parts(expr: &Expr, is_written: &dyn Fn(&Expr) -> bool) -> String {
    let Kind::Map(entries) = &expr.kind else { return String::new() };
    let name = |(key, value): &(Expr, Expr)| match &key.kind {
        Kind::Literal(Value::String(name)) if is_written(value) => Some(format!("`{name}`")),
        _ => None,
    };
    let names: Vec<String> = entries.iter().filter_map(name).collect();
    if names.is_empty() { String::new() } else { format!("{} in ", names.join(", ")) }
}

/// A function that returns true if the value of a reference may be a secret.
type IsSecret<'a> = &'a dyn Fn(Reference<'_>) -> bool;

/// Returns true if a sensitive part of an expression is secret only because of its own text.
///
/// An expression that passes one of its parts on is looked at part by part: a value that is written in one
/// arm of a conditional is itself a possible result. The check does not compute which part is the result, so
/// every possible part counts.
fn is_written(expr: &Expr, sensitive: &Paths, is_secret: IsSecret<'_>) -> bool {
    let is = |part: &Expr, sensitive: &Paths| is_written(part, sensitive, is_secret);
    match &expr.kind {
        _ if sensitive.is_empty() => false,
        Kind::Map(entries) => {
            entries.iter().any(|(key, value)| is(value, &inside(sensitive, literal(key))))
        }
        Kind::List(items) => items
            .iter()
            .enumerate()
            .any(|(index, item)| is(item, &sensitive.inside(&Segment::Index(index)))),
        Kind::Literal(value) => holds_text(value, sensitive),
        _ if !refers(expr) || declares(expr, is_secret) => true,
        Kind::Conditional(choice) => is(&choice.yes, sensitive) || is(&choice.no, sensitive),
        Kind::Attribute(base, name) => is(base, &below(sensitive, Some(name.clone().into()))),
        Kind::Index(base, index) => is(base, &below(sensitive, segment(literal(index)))),
        Kind::Call(call) if !call.spread => match (&*call.name, call.arguments.as_slice()) {
            ("coalesce" | "coalescelist" | "try" | "merge", parts) => {
                parts.iter().any(|part| is(part, sensitive))
            }
            ("lookup", [map, key, default @ ..]) => {
                is(map, &below(sensitive, segment(literal(key))))
                    || default.iter().any(|default| is(default, sensitive))
            }
            ("one" | "element", [list, ..]) => is(list, &Paths::whole()),
            ("concat", parts) => parts.iter().any(|part| is(part, &Paths::whole())),
            _ => is_plain_text(expr, is_secret),
        },
        _ => is_plain_text(expr, is_secret),
    }
}

/// Returns true if words are written in an expression that refers to no secret. If it refers to a secret,
/// that may be the secret in its result; else the written words are.
fn is_plain_text(expr: &Expr, is_secret: IsSecret<'_>) -> bool {
    has_words(expr) && !refers_to_a_secret(expr, is_secret)
}

/// Returns the sensitive places of an entry; all of the entry if its key is not written down.
fn inside(sensitive: &Paths, key: Option<&Value>) -> Paths {
    segment(key).map_or_else(Paths::whole, |segment| sensitive.inside(&segment))
}

/// Returns the sensitive places of the value that a part is taken from; all of the value if the part's key or
/// index is not written down.
fn below(sensitive: &Paths, segment: Option<Segment>) -> Paths {
    let Some(segment) = segment else { return Paths::whole() };
    let mut places = Paths::none();
    places.extend_below(&Path(vec![segment]), sensitive);
    places
}

fn segment(key: Option<&Value>) -> Option<Segment> {
    match key? {
        Value::String(name) => Some(Segment::Key(name.clone())),
        key => key.as_integer().and_then(|at| usize::try_from(at).ok()).map(Segment::Index),
    }
}

fn literal(expr: &Expr) -> Option<&Value> {
    if let Kind::Literal(value) = &expr.kind { Some(value) } else { None }
}

/// Returns true if a call of `sensitive` in an expression has an argument that is written as it is.
fn declares(expr: &Expr, is_secret: IsSecret<'_>) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        if let Kind::Call(call) = &part.kind
            && &*call.name == "sensitive"
        {
            let mut arguments = call.arguments.iter();
            found |= arguments.any(|value| is_written(value, &Paths::whole(), is_secret));
        }
    });
    found
}

/// Returns true if a value has something other than null or emptiness in a sensitive place.
fn holds_text(value: &Value, sensitive: &Paths) -> bool {
    sensitive.iter().any(|path| {
        value.at(path).is_some_and(|part| match part {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
            Value::List(items) | Value::Set(items) => !items.is_empty(),
            _ => true,
        })
    })
}

/// Returns true if an expression refers to a variable or an object.
fn refers(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(&part.kind, Kind::Root(Root::Var(_) | Root::Resource(_)));
    });
    found
}

/// Returns true if a word is written in an expression: more than punctuation between other values.
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

/// Returns true if an expression refers to a variable, which is always a sensitive one here, or to an
/// attribute that may be a secret.
fn refers_to_a_secret(expr: &Expr, is_secret: IsSecret<'_>) -> bool {
    let mut found = false;
    walk(expr, &mut |part| found |= matches!(&part.kind, Kind::Root(Root::Var(_))));
    each_in(expr, &mut |reference| found = found || is_secret(reference));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse::residual;

    fn check(cases: &[(&str, &Paths, bool)]) {
        let secret: Name = "secret".into();
        let is_secret = |it: Reference<'_>| it.names.contains(&Some(&secret));
        for (text, sensitive, expected) in cases {
            let expr = residual(text).unwrap();
            assert_eq!(is_written(&expr, sensitive, &is_secret), *expected, "{text}");
        }
    }

    #[test]
    fn text_that_refers_to_nothing_is_written() {
        let password = Paths::from_iter([Path::attribute("password")]);
        check(&[
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
        ]);
    }

    /// A literal is what is secret, whatever the choice follows from.
    #[test]
    fn text_in_one_alternative_is_written() {
        let password = Paths::from_iter([Path::attribute("password")]);
        check(&[
            ("coalesce(var.password, \"hunter2\")", &Paths::whole(), true),
            ("coalesce(var.password, \"\")", &Paths::whole(), false),
            ("coalesce(var.password, value.a.secret)", &Paths::whole(), false),
            ("var.password != \"\" ? var.password : \"hunter2\"", &Paths::whole(), true),
            ("var.a == \"a\" ? var.password : \"\"", &Paths::whole(), false),
            ("var.a == \"a\" ? var.password : null", &Paths::whole(), false),
            ("value.a.id == \"x\" ? var.password : \"hunter2\"", &Paths::whole(), true),
            (
                "var.a ? { a = \"b\", password = var.b } : { a = \"c\", password = \"hunter2\" }",
                &password,
                true,
            ),
            (
                "var.a ? { a = \"b\", password = var.b } : { a = \"c\", password = \"\" }",
                &password,
                false,
            ),
            ("var.a ? (var.b ? var.c : \"hunter2\") : var.d", &Paths::whole(), true),
            ("try(var.password.x, \"hunter2\")", &Paths::whole(), true),
            ("try(var.password.x, value.a.token)", &Paths::whole(), false),
            ("lookup(var.passwords, \"a\", \"hunter2\")", &Paths::whole(), true),
            ("lookup(var.passwords, \"a\", var.b)", &Paths::whole(), false),
            ("lookup({ a = var.b }, \"a\", \"hunter2\")", &Paths::whole(), true),
            ("lookup({ a = \"hunter2\", c = var.d }, var.a)", &Paths::whole(), true),
            ("one([for x in var.list : x if x == \"a\"])", &Paths::whole(), false),
            ("one(var.flag ? [\"hunter2\"] : [var.password])", &Paths::whole(), true),
            ("element([\"hunter2\", var.password], var.n)", &Paths::whole(), true),
            ("element([\"a\", var.password], 1)", &Paths::whole(), true),
            ("[\"hunter2\", \"swordfish\"][var.n]", &Paths::whole(), true),
            ("[var.a, var.b][var.n]", &Paths::whole(), false),
            ("{ a = \"hunter2\", b = var.b }[var.n]", &Paths::whole(), true),
            (
                "merge({ key = var.account.key, user = \"me\" }, { b = value.a.id }).key",
                &Paths::whole(),
                false,
            ),
            (
                "merge({ key = var.account.key, user = \"me\" }, { key = \"hunter2\" }).key",
                &Paths::whole(),
                true,
            ),
            ("merge({ key = \"old\" }, { key = var.account.key })[\"key\"]", &Paths::whole(), true),
            ("merge(var.account, { password = \"hunter2\" })", &password, true),
            ("merge({ a = \"b\" }, { password = var.password })", &password, false),
            ("concat([\"--key\"], [var.password])[1]", &Paths::whole(), true),
            ("concat([\"--key\"], [var.password])[0]", &Paths::whole(), true),
            ("concat(var.list, [\"hunter2\"])[7]", &Paths::whole(), true),
            ("concat(var.list, [\"hunter2\"])", &Paths::whole(), true),
            ("\"postgres://${var.user}:${var.flag ? var.a : var.b}@host\"", &Paths::whole(), false),
        ]);
    }
}
