//! The promises of an evaluation before apply, tested on random expressions. A value that it calls known
//! stays the same; a residual computes at apply the value that the expression would have; and neither values
//! nor messages show a secret, or differ between secrets.

use proptest::prelude::*;

use super::super::parse::{self, Dialect};
use super::*;
use crate::digest::{Fingerprint, SealKey};
use crate::value::{Sealed, Segment};

const SECRET: &str = "hunter2";

/// The same spec before and during apply.
struct World {
    applied: bool,
    secrets: Secrets,
}

/// The values of the sensitive variables.
#[derive(Clone, Copy)]
struct Secrets {
    text: &'static str,
    flag: bool,
    number: i64,
    items: &'static [i64],
}

const SECRETS: Secrets = Secrets { text: SECRET, flag: true, number: 1, items: &[1, 7] };

/// Other secrets, with which other expressions fail.
const OTHERS: [Secrets; 3] = [
    Secrets { text: "", flag: false, number: 0, items: &[] },
    Secrets { text: "7", flag: false, number: 99, items: &[3] },
    Secrets { text: "hunter3", flag: true, number: -4, items: &[0, 0, 0] },
];

impl World {
    /// Returns a value that only an apply knows.
    fn slot(&self, text: &str, value: Value) -> Value {
        if self.applied {
            return value;
        }
        Value::unknown(value.type_of(), parse::residual(text).unwrap())
    }

    fn password(&self) -> Value {
        let clear = Value::string(self.secrets.text);
        if self.applied {
            return clear;
        }
        let fingerprint = Fingerprint::of(&clear, &SealKey::from_random([7; 32]));
        Value::Sealed(Arc::new(Sealed { ty: Type::String, fingerprint }))
    }

    fn object(&self, place: &str) -> Value {
        Value::map(Attributes::from([
            ("id".into(), self.slot(&format!("{place}.id"), Value::string("id-1"))),
            ("ports".into(), self.slot(&format!("{place}.ports"), list(&[1, 2]))),
            ("ready".into(), self.slot(&format!("{place}.ready"), Value::Bool(true))),
            ("size".into(), Value::Integer(3)),
            ("password".into(), self.password()),
        ]))
    }
}

fn list(items: &[i64]) -> Value {
    Value::list(items.iter().copied().map(Value::Integer).collect())
}

impl Scope for World {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let secret = || Value::string(self.secrets.text);
        Ok(match root {
            Root::Var(name) => match &**name {
                "n" => Value::Integer(2).into(),
                "s" => Value::string("dev").into(),
                "b" => Value::Bool(false).into(),
                "list" => Value::list(vec![Value::Integer(5), Value::Integer(2)]).into(),
                "secret" => Datum::secret(secret()),
                "flag" => Datum::secret(Value::Bool(self.secrets.flag)),
                "number" => Datum::secret(Value::Integer(self.secrets.number)),
                "items" => Datum::secret(list(self.secrets.items)),
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
    let l = list_text(depth - 1);
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
    let l = list_text(depth - 1);
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
    let l = list_text(depth - 1);
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

fn list_text(depth: u32) -> BoxedStrategy<String> {
    let leaf = leaf(&[
        "[]",
        "var.list",
        "value.a.ports",
        "[value.a][*].password",
        "var.items",
        "var.items[*]",
        "[var.account, value.a][*]",
    ]);
    if depth == 0 {
        return leaf;
    }
    let (t, n, b) = (text(depth - 1), number(depth - 1), boolean(depth - 1));
    let l = list_text(depth - 1);
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

/// Generates expressions that show how an attempt went; with a depth, also expressions that such attempts
/// decide.
fn outcome(depth: u32) -> BoxedStrategy<String> {
    let (t, n, b, l) = (text(2), number(2), boolean(2), list_text(2));
    let leaf = prop_oneof![
        (t.clone(), t.clone(), t.clone()).prop_map(|(a, b, c)| format!("try([{a}, {b}][0], {c})")),
        (n.clone(), t.clone()).prop_map(|(a, b)| format!("try([\"p\", \"q\"][{a}], {b})")),
        (t.clone(), n.clone()).prop_map(|(a, b)| format!("try(tonumber({a}), {b})")),
        (t.clone(), n.clone()).prop_map(|(a, b)| format!("try([{b}, tonumber({a})][0], 5)")),
        (l.clone(), n.clone()).prop_map(|(a, b)| format!("max({b}, {a}...)")),
        (t, n.clone()).prop_map(|(a, b)| format!("can([tonumber({a}), {b}][1])")),
        (n.clone(), b.clone()).prop_map(|(a, b)| format!("try([{b}, [1, 2][{a}]][0], false)")),
        l.clone().prop_map(|a| format!("{a}[*]")),
        l.clone().prop_map(|a| format!("[for i, x in flatten({a}) : i]")),
        (l.clone(), n).prop_map(|(a, b)| format!("[try(({a})[{b}], 4)]")),
        (l, b.clone()).prop_map(|(a, b)| format!("({b} ? {a} : null)[*]")),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let deep = outcome(depth - 1);
    prop_oneof![
        2 => leaf,
        1 => (deep.clone(), deep.clone()).prop_map(|(a, b)| format!("try([{a}, {b}][0], 3)")),
        1 => deep.clone().prop_map(|a| format!("length({a})")),
        1 => deep.clone().prop_map(|a| format!("can({a} ? 1 : 2)")),
        1 => (deep.clone(), deep.clone()).prop_map(|(a, b)| format!("({a} == {b})")),
        1 => (b, deep.clone(), deep.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        1 => (deep.clone(), deep).prop_map(|(a, b)| format!("[for x in [{a}, 1] : x if {b} == x]")),
    ]
    .boxed()
}

/// Generates expressions that fail in many ways although their parts do not fail; the message shows which
/// step failed.
fn faulty() -> BoxedStrategy<String> {
    let (t, n, b, l) = (text(0), number(0), boolean(0), list_text(0));
    let other = leaf(&[
        "null",
        "var.account",
        "value.a",
        "(var.flag ? 1 : null)",
        "(var.flag ? \"x\" : var.list)",
        "(var.flag ? var.items : { a = 1 })",
        "[var.secret, 1]",
        "[var.flag ? 1 : null]",
        "toset([var.secret, \"a\"])",
    ]);
    let any = prop_oneof![t.clone(), n.clone(), b, l.clone(), other];
    prop_oneof![
        (l.clone(), any.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
        (any.clone(), any.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
        any.clone().prop_map(|a| format!("({a}).name")),
        any.clone().prop_map(|a| format!("one({a})")),
        (l.clone(), n.clone(), n.clone()).prop_map(|(a, b, c)| format!("slice({a}, {b}, {c})")),
        (l.clone(), l.clone()).prop_map(|(a, b)| format!("zipmap({a}, {b})")),
        (t.clone(), any.clone()).prop_map(|(a, b)| format!("format({a}, {b})")),
        (t.clone(), l.clone()).prop_map(|(a, b)| format!("format(\"%${{{a}}}\", {b}...)")),
        any.clone().prop_map(|a| format!("jsondecode({a})")),
        t.clone().prop_map(|a| format!("jsondecode(\"[1, ${{{a}}}\")")),
        any.clone().prop_map(|a| format!("base64decode({a})")),
        any.clone().prop_map(|a| format!("tonumber({a})")),
        any.clone().prop_map(|a| format!("sum({a})")),
        any.clone().prop_map(|a| format!("sort({a})")),
        any.clone().prop_map(|a| format!("alltrue({a})")),
        (any.clone(), any.clone()).prop_map(|(a, b)| format!("join({a}, {b})")),
        (n.clone(), n.clone(), n.clone()).prop_map(|(a, b, c)| format!("range({a}, {b}, {c})")),
        (t, n.clone(), n).prop_map(|(a, b, c)| format!("substr({a}, {b}, {c})")),
        l.clone().prop_map(|a| format!("substr({a}...)")),
        l.clone().prop_map(|a| format!("max({a}...)")),
        l.prop_map(|a| format!("chunklist([1, 2], {a}...)")),
        any.clone().prop_map(|a| format!("\"a${{{a}}}\"")),
        any.clone().prop_map(|a| format!("-({a})")),
        any.clone().prop_map(|a| format!("!({a})")),
        (any.clone(), any.clone()).prop_map(|(a, b)| format!("({a} / {b})")),
        (any.clone(), any.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
        (any.clone(), any.clone()).prop_map(|(a, b)| format!("({a} ? {b} : 1)")),
        any.clone().prop_map(|a| format!("[for k, v in {a} : v]")),
        any.clone().prop_map(|a| format!("[for x in [1] : x if {a}]")),
        any.clone().prop_map(|a| format!("{{ ({a}) = 1 }}")),
        any.clone().prop_map(|a| format!("{{ for k, v in [1] : {a} => v }}")),
        any.clone().prop_map(|a| format!("value.a[{a}]")),
        any.prop_map(|a| format!("length({a})")),
    ]
    .boxed()
}

/// Collects the places where a secret shows.
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

/// Returns true if the place is sensitive or sealed in the plan.
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

const fn world(applied: bool, secrets: Secrets) -> World {
    World { applied, secrets }
}

/// Returns the part of a value that anybody may see.
fn seen(value: &Value, sensitive: &Paths) -> String {
    let part = |segment: Segment, item: &Value| seen(item, &sensitive.inside(&segment));
    match value {
        _ if sensitive.covers(&Path::root()) => "secret".to_owned(),
        Value::Sealed(_) => "secret".to_owned(),
        Value::Set(_) if !sensitive.is_empty() || value.holds_sealed() => "secret".to_owned(),
        Value::List(items) => {
            let items = items.iter().enumerate().map(|(at, item)| part(at.into(), item));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Map(entries) => {
            let entry = |(name, item): (&Name, &Value)| {
                format!("{name} = {}", part(Segment::Key(name.clone()), item))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        plain => format!("{plain:?}"),
    }
}

/// Checks that the visible part of a result, and of its residual, is the same for all secrets. An expression
/// over a secret may show that it is an error.
fn tells_nothing(text: &str, in_residual: bool) -> Result<(), TestCaseError> {
    let expr = parse::expression(text, Dialect::Spec).unwrap();
    for applied in [false, true] {
        let look = |secrets: Secrets| {
            let world = world(applied, secrets);
            let datum = evaluate(&expr, &world).ok()?;
            let residual = residual(&expr, &world).ok().map(|expr| expr.to_string());
            Some((seen(&datum.value, &datum.sensitive), residual))
        };
        let all = [SECRETS, OTHERS[0], OTHERS[1], OTHERS[2]].map(look);
        let mut known = all.iter().flatten();
        let Some(first) = known.next() else { continue };
        for other in known {
            prop_assert_eq!(&first.0, &other.0, "{}", text);
            if let (Some(first), Some(other), true) = (&first.1, &other.1, in_residual) {
                prop_assert_eq!(first, other, "{}", text);
            }
        }
    }
    Ok(())
}

/// Checks that the message about a failure at one place is the same for all secrets: it shows neither the
/// length or content of a secret nor the place of a mistake inside it. It may show the place of the failure,
/// and that there is one.
fn says_nothing(text: &str) -> Result<(), TestCaseError> {
    let expr = parse::expression(text, Dialect::Spec).unwrap();
    for applied in [false, true] {
        let fails = |secrets: Secrets| evaluate(&expr, &world(applied, secrets)).err();
        let failures: Vec<ExprError> =
            [SECRETS, OTHERS[0], OTHERS[1], OTHERS[2]].into_iter().filter_map(fails).collect();
        for (at, one) in failures.iter().enumerate() {
            for other in failures[at + 1..].iter().filter(|other| other.range == one.range) {
                prop_assert_eq!(&one.message, &other.message, "{}", text);
                prop_assert_eq!(&one.help, &other.help, "{}", text);
            }
        }
    }
    Ok(())
}

fn agree(text: &str) -> Result<(), TestCaseError> {
    let expr = parse::expression(text, Dialect::Spec).unwrap();
    let (before, during) = (world(false, SECRETS), world(true, SECRETS));
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
        tells_nothing(&expr, false)?;
    }

    #[test]
    fn numbers_and_booleans(number in number(3), boolean in boolean(3)) {
        agree(&number)?;
        agree(&boolean)?;
        tells_nothing(&number, false)?;
        tells_nothing(&boolean, false)?;
    }

    #[test]
    fn outcomes(expr in outcome(2)) {
        tells_nothing(&expr, false)?;
    }

    #[test]
    fn faults(expr in faulty()) {
        says_nothing(&expr)?;
        tells_nothing(&expr, false)?;
    }

    #[test]
    fn lists(expr in list_text(3)) {
        agree(&expr)?;
        tells_nothing(&expr, false)?;
    }
}

/// Leaks that were found once, and similar expressions, show nothing.
#[test]
fn no_way_out() {
    for text in [
        "try([true, [0][var.flag ? 9 : 0]][0], false)",
        "try([0][var.flag ? 0 : 9], 7)",
        "can([1, [0][var.flag ? 9 : 0]][0])",
        "join(\"\", [for i in range(0, 8) : coalesce(one([for c in split(\"\", \"hunter27\") : c \
         if try([true, [0][substr(var.secret, i, 1) == c ? 0 : 9]][0], false)]), \"-\")])",
        "[for x in [1, 2] : x if can([0][var.number - x])]",
        "try({ (var.secret) = 1, hunter2 = 2 }.hunter2, 3)",
        "try({ a = value.a.id, b = [0][var.number] }.a, 3)",
        "try(value.a.ports[var.number], 3)",
        "try([1, value.a.ports[var.number]][0], 3)",
        "try([1, lookup({ hunter2 = 1 }, var.secret)][0], 3)",
        "try([1, value.m[var.secret].size][0], 3)",
        "try([1, one(var.items)][0], 3)",
        "try([1, coalesce(var.secret)][0], 3)",
        "try([1, max(var.items...)][0], 3)",
        "try([1, var.items[*][9]][0], 3)",
        "try([1, var.items[*].zzz][0], 3)",
        "try([1, [for x in var.items : [0][x]]][0], 3)",
        "try([1, zipmap([\"a\"], var.items)][0], 3)",
        "try([1, sum([var.number, 9223372036854775800])][0], 3)",
        "try([1, format(\"%${var.secret}\", 1)][0], 3)",
        "try([1, try([0][var.number])][0], 3)",
        "try([\"a\", var.flag ? \"b\" : tonumber(\"x\")][0], \"c\")",
        "try([1, var.flag || tonumber(\"x\") == 1][0], 3)",
        "try(var.items[length(var.account.user)], 4)",
        "try([for x in [1, 2] : [for y in [x] : var.items[y]]][0], var.list[0])",
        "try([for k, v in { a = [1] } : upper(var.secret) == k ? v[0] : [][0]], value.a.id)",
        "length(var.items[*])",
        "length(flatten([var.items]))",
        "length(flatten([[var.items], [1]]))",
        "length(flatten([var.flag ? [1] : 1]))",
        "length((var.flag ? [1] : null)[*])",
        "[for i, x in var.items[*] : i]",
        "max(0, var.items...)",
        "merge({ a = 1 }, (var.flag ? [{ a = 2 }] : [])...)",
        "concat([1], (var.flag ? [] : [])...)",
        "length(concat((var.flag ? [[1]] : [])...))",
        "coalesce((var.flag ? [\"a\"] : [])..., \"b\")",
        "setunion([1], (var.flag ? [[2]] : [])...)",
    ] {
        if parse::expression(text, Dialect::Spec).is_ok() {
            tells_nothing(text, true).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// A secret condition does not show if it is known, even if both arms are equal.
#[test]
fn equal_arms_tell_nothing_of_their_condition() {
    for text in
        ["(var.flag && value.a.ready) ? 2 : 2", "(var.flag || value.a.ready) ? \"a\" : \"a\""]
    {
        tells_nothing(text, false).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Each kind of failure over a secret has a message that shows nothing about the secret.
#[test]
fn no_message_tells_of_a_secret() {
    for text in [
        "var.items[9]",
        "var.list[var.number + 5]",
        "var.items.name",
        "(var.flag ? null : { a = 1 }).name",
        "(var.flag ? { a = 1 } : [1]).b",
        "(var.flag ? null : [1])[var.number + 7]",
        "one(concat(var.items, [1, 2]))",
        "slice(var.items, 0, 9)",
        "slice(var.items, length(var.secret), 1)",
        "zipmap([\"a\", \"b\", \"c\", \"d\"], var.items)",
        "zipmap([var.secret, var.flag ? 1 : null], [1, 2, 3])",
        "jsondecode(\"{ ${var.secret}\")",
        "format(\"%${var.secret}!\", 1)",
        "format(var.secret, 1)",
        "base64decode(var.flag ? \"/w==\" : \"?\")",
        "tonumber(var.flag ? true : \"x\")",
        "sum(concat(var.items, [var.flag ? \"a\" : null]))",
        "sort([var.flag ? 1 : null])",
        "alltrue([var.flag ? 1 : null])",
        "join(\"-\", [var.flag ? [1] : null])",
        "range(1, 9, var.flag ? 0 : -1)",
        "substr(var.items...)",
        "pow(1)",
        "chunklist([1], var.flag ? 1.5 : 0.5)",
        "chunklist(var.items...)",
        "(var.flag ? \"x\" : null) + 1",
        "-(var.flag ? \"x\" : null)",
        "(var.flag ? 1 : \"x\") && true",
        "\"a${var.flag ? [1] : null}\"",
        "[for x in (var.flag ? 1 : null) : x]",
        "[for x in [1] : x if (var.flag ? 1 : null)]",
        "{ (var.flag ? [1] : null) = 1 }",
        "1 / (var.number - var.number)",
        "value.a[var.flag ? 1 : null]",
        "file(var.secret)",
        "upper(var.flag ? 1 : null)",
    ] {
        if parse::expression(text, Dialect::Spec).is_ok() {
            says_nothing(text).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// The messages about values that are not secret show the details.
#[test]
fn what_is_no_secret_is_said() {
    for (text, said) in [
        ("var.list[9]", "the list has 2 items, and none here"),
        ("[var.secret, 1][9]", "the list has 2 items, and none here"),
        ("one([1, 2])", "has 2"),
        ("one([var.secret, 2])", "has 2"),
        ("jsondecode(\"[1\")", "line 1, column 2"),
        ("format(\"%y\", 1)", "`%y`"),
        ("format(\"%d\", var.s)", "found a string"),
        ("\"a${var.list}\"", "a list cannot stand in a text"),
    ] {
        let expr = parse::expression(text, Dialect::Spec).unwrap();
        let error = evaluate(&expr, &world(true, SECRETS)).unwrap_err();
        assert!(error.message.contains(said), "{text}: {}", error.message);
    }
}
