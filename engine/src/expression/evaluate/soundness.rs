//! What an evaluation before apply promises, tried on random expressions: what it calls known stays
//! so, its residual computes at apply what the expression would have, and no secret shows.

use proptest::prelude::*;

use super::super::parse::{self, Dialect};
use super::*;
use crate::digest::{Fingerprint, SealKey};
use crate::value::{Sealed, Segment};

const SECRET: &str = "hunter2";

/// The same spec before and during apply.
struct World {
    applied: bool,
}

impl World {
    /// What only an apply knows.
    fn slot(&self, text: &str, value: Value) -> Value {
        if self.applied {
            return value;
        }
        Value::unknown(value.type_of(), parse::residual(text).unwrap())
    }

    fn password(&self) -> Value {
        let clear = Value::string(SECRET);
        if self.applied {
            return clear;
        }
        let fingerprint = Fingerprint::of(&clear, &SealKey::from_random([7; 32]));
        Value::Sealed(Arc::new(Sealed { ty: Type::String, fingerprint }))
    }

    fn object(&self, place: &str) -> Value {
        let list = |items: &[i64]| Value::list(items.iter().copied().map(Value::Integer).collect());
        Value::map(Attributes::from([
            ("id".into(), self.slot(&format!("{place}.id"), Value::string("id-1"))),
            ("ports".into(), self.slot(&format!("{place}.ports"), list(&[1, 2]))),
            ("ready".into(), self.slot(&format!("{place}.ready"), Value::Bool(true))),
            ("size".into(), Value::Integer(3)),
            ("password".into(), self.password()),
        ]))
    }
}

impl Scope for World {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let secret = || Value::string(SECRET);
        Ok(match root {
            Root::Var(name) => match &**name {
                "n" => Value::Integer(2).into(),
                "s" => Value::string("dev").into(),
                "b" => Value::Bool(false).into(),
                "list" => Value::list(vec![Value::Integer(5), Value::Integer(2)]).into(),
                "secret" => Datum::secret(secret()),
                "flag" => Datum::secret(Value::Bool(true)),
                "number" => Datum::secret(Value::Integer(1)),
                "account" => Datum {
                    value: Value::map(Attributes::from([
                        ("key".into(), secret()),
                        ("user".into(), Value::string("me")),
                    ])),
                    sensitive: Paths::from_iter([Path::attribute("key")]),
                },
                _ => return Err("no such variable".to_owned()),
            },
            _ => return Err("no such name".to_owned()),
        })
    }

    fn resource(&self, _: &Block, key: Option<&str>) -> Result<Datum, String> {
        let place = key.map_or("value.a".to_owned(), |key| format!("value.a[\"{key}\"]"));
        let sensitive = Paths::from_iter([Path::attribute("password")]);
        Ok(Datum { value: self.object(&place), sensitive })
    }
}

fn leaf(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(texts).prop_map(str::to_owned).boxed()
}

fn text(depth: u32) -> BoxedStrategy<String> {
    let leaf = leaf(&[
        "\"x\"",
        "\"\"",
        "var.s",
        "var.secret",
        "value.a.id",
        "value.a.password",
        "var.account.key",
        "var.account.user",
        "value.a[\"k\"].id",
        "value.a[\"k\"].password",
    ]);
    if depth == 0 {
        return leaf;
    }
    let (t, n, b) = (text(depth - 1), number(depth - 1), boolean(depth - 1));
    let l = list(depth - 1);
    prop_oneof![
        2 => leaf,
        3 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("\"a${{{a}}}-${{{b}}}\"")),
        1 => (b.clone(), t.clone(), t.clone()).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
        1 => t.clone().prop_map(|a| format!("upper({a})")),
        1 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("coalesce({a}, {b}, \"z\")")),
        1 => l.prop_map(|a| format!("jsonencode({a})")),
        1 => n.prop_map(|a| format!("\"${{{a}}}\"")),
        1 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("lookup({{ (\"k\") = {a} }}, \"k\", {b})")),
        1 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("{{ p = {a}, q = {b} }}.q")),
        1 => (t.clone(), t).prop_map(|(a, b)| format!("merge({{ p = {a} }}, {{ p = {b}, r = 1 }}).p")),
        1 => b.prop_map(|a| format!("tostring({a})")),
    ]
    .boxed()
}

fn number(depth: u32) -> BoxedStrategy<String> {
    let leaf =
        leaf(&["1", "0", "2.5", "var.n", "value.a.size", "var.number", "length(value.a.ports)"]);
    if depth == 0 {
        return leaf;
    }
    let (t, n, b) = (text(depth - 1), number(depth - 1), boolean(depth - 1));
    let l = list(depth - 1);
    let op = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
    prop_oneof![
        2 => leaf,
        2 => (n.clone(), op, n.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
        1 => n.clone().prop_map(|a| format!("-({a})")),
        1 => (b, n.clone(), n.clone()).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
        1 => t.prop_map(|a| format!("length({a})")),
        1 => l.clone().prop_map(|a| format!("length({a})")),
        1 => (n.clone(), n.clone()).prop_map(|(a, b)| format!("max({a}, {b})")),
        1 => (l, n.clone()).prop_map(|(a, b)| format!("try({a}[0] + 0, {b})")),
        1 => n.prop_map(|a| format!("value.a.ports[{a}]")),
    ]
    .boxed()
}

fn boolean(depth: u32) -> BoxedStrategy<String> {
    let leaf = leaf(&[
        "true",
        "var.b",
        "value.a.ready",
        "var.flag",
        "value.a == null",
        "value.a.password == null",
    ]);
    if depth == 0 {
        return leaf;
    }
    let (t, n, b) = (text(depth - 1), number(depth - 1), boolean(depth - 1));
    let l = list(depth - 1);
    let op = prop::sample::select(vec!["&&", "||", "==", "!="]);
    prop_oneof![
        2 => leaf,
        3 => (b.clone(), op, b.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
        1 => b.clone().prop_map(|a| format!("!({a})")),
        1 => (t.clone(), t.clone()).prop_map(|(a, b)| format!("({a} == {b})")),
        1 => (n.clone(), n).prop_map(|(a, b)| format!("({a} < {b})")),
        1 => (l, t).prop_map(|(a, b)| format!("contains({a}, {b})")),
        1 => b.prop_map(|a| format!("can(var.list[{a} ? 0 : 9])")),
    ]
    .boxed()
}

fn list(depth: u32) -> BoxedStrategy<String> {
    let leaf = leaf(&[
        "[]",
        "var.list",
        "value.a.ports",
        "[value.a][*].password",
        "[var.account, value.a][*]",
    ]);
    if depth == 0 {
        return leaf;
    }
    let (t, n, b) = (text(depth - 1), number(depth - 1), boolean(depth - 1));
    let l = list(depth - 1);
    prop_oneof![
        2 => leaf,
        2 => (t.clone(), n.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
        1 => (l.clone(), l.clone()).prop_map(|(a, b)| format!("concat({a}, {b})")),
        1 => l.clone().prop_map(|a| format!("reverse({a})")),
        1 => (l.clone(), t.clone()).prop_map(|(a, b)| format!("[for x in {a} : [x, {b}]]")),
        1 => (l.clone(), b).prop_map(|(a, b)| format!("[for i, x in {a} : i if {b} || i == 0]")),
        1 => (l.clone(), n).prop_map(|(a, b)| format!("[for x in {a} : x if x != {b}]")),
        1 => (l.clone(), l.clone()).prop_map(|(a, b)| format!("[for x in {a} : [for y in {b} : [x, y]]]")),
        1 => (t.clone(), t).prop_map(|(a, b)| format!("values({{ p = {a}, q = {b} }})")),
        1 => l.clone().prop_map(|a| format!("tolist(toset({a}))")),
        1 => l.clone().prop_map(|a| format!("flatten([{a}, [{a}]])")),
        1 => l.clone().prop_map(|a| format!("[for k, v in {{ p = {a} }} : v]")),
        1 => l.prop_map(|a| format!("chunklist({a}, 1)")),
    ]
    .boxed()
}

/// The places where a secret shows.
fn exposed(value: &Value, path: &Path, found: &mut Vec<Path>) {
    match value {
        Value::String(text) if text.to_lowercase().contains("hunter") => found.push(path.clone()),
        Value::List(items) | Value::Set(items) => {
            for (index, item) in items.iter().enumerate() {
                exposed(item, &path.join(index), found);
            }
        }
        Value::Map(entries) => {
            for (name, item) in entries.iter() {
                exposed(item, &path.join(name.clone()), found);
            }
        }
        _ => {}
    }
}

/// Says whether the place is sensitive in the plan, or sealed there.
fn covered(planned: &Datum, path: &Path) -> bool {
    let mut value = &planned.value;
    if planned.sensitive.covers(path) || matches!(value, Value::Sealed(_)) {
        return true;
    }
    for segment in &path.0 {
        let inner = match (value, segment) {
            (Value::List(items) | Value::Set(items), Segment::Index(at)) => items.get(*at),
            (Value::Map(entries), Segment::Key(name)) => entries.get(name),
            _ => None,
        };
        let Some(inner) = inner else { return false };
        value = inner;
        if matches!(value, Value::Sealed(_)) {
            return true;
        }
    }
    false
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    let expr = parse::expression(text, Dialect::Spec).unwrap();
    let (before, during) = (World { applied: false }, World { applied: true });
    let Ok(planned) = evaluate(&expr, &before) else { return Ok(()) };
    let applied = evaluate(&expr, &during);
    if let Ok(folded) = residual(&expr, &before) {
        let printed = folded.to_string();
        prop_assert!(!printed.to_lowercase().contains("hunter"), "{text}: {printed}");
        let back = parse::residual(&printed);
        prop_assert_eq!(back.as_ref().ok(), Some(&folded), "{}: {}", text, printed);
        let computed = evaluate(&folded, &during);
        if let Ok(applied) = &applied {
            let computed = computed.map(|datum| datum.value);
            let wanted = Ok(applied.value.clone());
            prop_assert_eq!(computed, wanted, "{}: {}", text, printed);
        }
    }
    if let Ok(applied) = &applied {
        if planned.value.is_known() && !planned.value.holds_sealed() {
            prop_assert_eq!(&planned.value, &applied.value, "{}", text);
        }
        let mut places = Vec::new();
        exposed(&applied.value, &Path::root(), &mut places);
        for place in &places {
            prop_assert!(covered(&planned, place), "{text}: {place} of {planned:?}");
            prop_assert!(applied.sensitive.covers(place), "{text}: {place} of {applied:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts(expr in text(3)) {
        agree(&expr)?;
    }

    #[test]
    fn numbers_and_booleans(number in number(3), boolean in boolean(3)) {
        agree(&number)?;
        agree(&boolean)?;
    }

    #[test]
    fn lists(expr in list(3)) {
        agree(&expr)?;
    }
}
