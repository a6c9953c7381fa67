use std::cell::RefCell;

use super::super::parse::{self, Dialect};
use super::*;
use crate::digest::{Fingerprint, SealKey};
use crate::value::Sealed;

/// The values that the expressions of these tests refer to.
#[derive(Default)]
struct World {
    asked: RefCell<Vec<String>>,
}

fn json(text: &str) -> Value {
    crate::stored::from_json(&serde_json::from_str(text).unwrap())
}

fn sealed() -> Value {
    let key = SealKey::from_random([7; 32]);
    let fingerprint = Fingerprint::of(&Value::string("hunter2"), &key);
    Value::Sealed(Arc::new(Sealed { ty: Type::String, fingerprint }))
}

fn slot(text: &str, ty: Type) -> Value {
    Value::unknown(ty, parse::residual(text).unwrap())
}

fn object(key: Option<&str>) -> Value {
    let place = key.map_or(String::new(), |key| format!("[\"{key}\"]"));
    Value::map(Attributes::from([
        ("id".into(), slot(&format!("value.a{place}.id"), Type::String)),
        ("size".into(), Value::Integer(100)),
        ("ports".into(), slot(&format!("value.a{place}.ports"), Type::list(Type::Integer))),
        ("password".into(), sealed()),
    ]))
}

impl Scope for World {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Var(name) = root else {
            return match root {
                Root::EachKey => Ok(Value::string("eu").into()),
                Root::Local(name) if &**name == "derived" => {
                    Ok(Datum::secret(Value::string("hunter2!")))
                }
                Root::Local(name) if &**name == "mixed" => {
                    Ok(Value::list(vec![Value::Integer(1), slot("value.a.id", Type::String)])
                        .into())
                }
                Root::Local(name) if &**name == "broken" => {
                    Err("it fails over a secret".to_owned())
                }
                Root::Named(name) if &**name == "old" => Ok(json(r#"{"size": 5}"#).into()),
                _ => Err("there is no such name".to_owned()),
            };
        };
        Ok(match &**name {
            "n" => Value::Integer(3).into(),
            "zero" => Value::Integer(0).into(),
            "name" => Value::string("dev").into(),
            "null" => Value::Null.into(),
            "yes" => Value::Bool(true).into(),
            "list" => json(r#"["a", "b", "c"]"#).into(),
            "map" => json(r#"{"x": 1, "y": 2}"#).into(),
            "set" => Value::set(vec![Value::string("q"), Value::string("p")]).into(),
            "secret" => Datum::secret(Value::string("hunter2")),
            "flag" => Datum::secret(Value::Bool(true)),
            "account" => Datum {
                value: json(r#"{"user": "me", "key": "hunter2", "ports": [1, 2]}"#),
                sensitive: Paths::from_iter([Path::attribute("key")]),
            },
            "long" => Value::list((0..100_000).map(Value::Integer).collect()).into(),
            "huge" => Value::string("x".repeat(1 << 20)).into(),
            _ => return Err(format!("there is no variable `{name}`")),
        })
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.asked.borrow_mut().push(format!("{block} {key:?}"));
        match (&*block.name, key) {
            ("a", None) => Ok(object(None).into()),
            ("off", _) => Ok(Value::Null.into()),
            ("m", None) => Ok(Value::map(Attributes::from([
                ("eu".into(), object(Some("eu"))),
                ("us".into(), object(Some("us"))),
            ]))
            .into()),
            ("m", Some(key)) => Ok(object(Some(key)).into()),
            _ => Err(format!("there is no resource `{block}`")),
        }
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        Ok((*root == Root::Local("derived".into()))
            .then(|| parse::residual(r#""${var.secret}!""#).unwrap().into()))
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        *root == Root::Local("broken".into())
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        if path == "a.txt" {
            Ok("content".into())
        } else {
            Err(format!("there is no file `{path}`"))
        }
    }
}

/// Returns the value with its sensitive places, or the error with its place.
fn show(text: &str) -> String {
    let expr = parse::template(text, Dialect::Spec).unwrap();
    match evaluate(&expr, &World::default()) {
        Ok(datum) => {
            let mut shown = format!("{:?}", datum.value);
            for path in datum.sensitive.iter() {
                shown = format!("{shown} secret({path})");
            }
            shown
        }
        Err(error) => {
            let place = &text[error.range.start as usize..error.range.end as usize];
            let help = error.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
            format!("`{place}`: {error}{help}")
        }
    }
}

fn check(text: &str, expected: &str) {
    assert_eq!(show(&format!("${{{text}}}")), expected, "{text}");
}

fn check_residual(text: &str, expected: &str) {
    let expr = parse::expression(text, Dialect::Spec).unwrap();
    let folded = residual(&expr, &World::default());
    let shown = folded.map_or_else(|error| error.to_string(), |expr| expr.to_string());
    assert_eq!(shown, expected, "{text}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn arithmetic() {
    check("7 / 2", "3.5");
    check("6 / 2", "3");
    check("7 % 4", "3");
    check("-7 % 4", "-3");
    check("1 + 2 * var.n", "7");
    check("1.5 + 1", "2.5");
    check("0.5 * 4", "2.0");
    check("-var.n", "-3");
    check("5 > 4.5 && 1 <= 1", "true");
    check("1 == 1.0", "true");
    check("\"a\" == \"b\"", "false");
    check("var.list == [\"a\", \"b\", \"c\"]", "true");
}

#[test]
fn arithmetic_fails_with_its_place() {
    check(
        "1 + var.n / var.zero",
        "`var.n / var.zero`: division by zero (test the divisor first: `b == 0 ? 0 : a / b`)",
    );
    check(
        "var.n % 0",
        "`var.n % 0`: division by zero (test the divisor first: `b == 0 ? 0 : a / b`)",
    );
    check(
        "9223372036854775807 + 1",
        "`9223372036854775807 + 1`: the result is too large for a number (whole numbers have 64 bits)",
    );
    check(
        "-9223372036854775808 / -1",
        "`-9223372036854775808 / -1`: the result is too large for a number (whole numbers have 64 bits)",
    );
    check(
        "-(-9223372036854775808)",
        "`-(-9223372036854775808)`: the result is too large for a number (whole numbers have 64 bits)",
    );
    check(
        "1e308 * 10",
        "`1e308 * 10`: the result is too large for a number (whole numbers have 64 bits)",
    );
    check(
        "1 + var.name",
        "`var.name`: expected a number, found a string (join texts with a template: \"${a}${b}\")",
    );
    check("!var.n", "`var.n`: expected a boolean, found a number");
    check("1 < \"2\"", "`\"2\"`: expected a number, found a string");
    check(
        "var.null + 1",
        "`var.null`: expected a number, found null (use coalesce(…, default) where null is possible)",
    );
}

#[test]
fn templates() {
    assert_eq!(show("a-${var.name}-${var.n}-${2.0}-${1.5}-${true}"), r#""a-dev-3-2-1.5-true""#);
    assert_eq!(
        show("a-${var.null}"),
        "`var.null`: null cannot stand in a text (give a text for that case: coalesce(…, \"none\"))"
    );
    assert_eq!(
        show("a-${var.list}"),
        "`var.list`: a list cannot stand in a text (use jsonencode(…) or join(\", \", …))"
    );
    assert_eq!(
        show("a-${value.a.ports}"),
        "`value.a.ports`: a list cannot stand in a text (use jsonencode(…) or join(\", \", …))"
    );
    assert_eq!(show("%{for x in var.list}<${x}>%{endfor}"), r#""<a><b><c>""#);
    assert_eq!(show("%{if var.yes}on%{else}off%{endif}"), r#""on""#);
}

#[test]
fn what_is_not_known_has_a_residual() {
    check("value.a.id", "unknown(value.a.id: string)");
    assert_eq!(
        show("${var.name}-${value.a.id}-${var.n}"),
        r#"unknown("dev-${value.a.id}-3": string)"#
    );
    check("value.a.ports[0] + 1 + var.n", "unknown(value.a.ports[0] + 1 + 3: integer)");
    check("value.a.ports[0] / 2", "unknown(value.a.ports[0] / 2: number)");
    check("-value.a.ports[0]", "unknown(-value.a.ports[0]: integer)");
    check("value.a.ports[*]", "unknown(value.a.ports[*]: list(integer))");
    check("upper(value.a.id)", "unknown(upper(value.a.id): string)");
    check("[1, value.a.id]", "[1, unknown(value.a.id: string)]");
    check("{ a = value.a.id, b = var.n }", "{\"a\": unknown(value.a.id: string), \"b\": 3}");
    check("[1, value.a.id][0]", "1");
    check("{ (value.a.id) = 1 }", "unknown({ (value.a.id) = 1 }: map(integer))");
    check("var.map[value.a.id]", "unknown({ x = 1, y = 2 }[value.a.id]: any)");
    check("value.m[value.a.id].size", "unknown(value.m[value.a.id].size: any)");
    // A text within a text is one text.
    assert_eq!(show("a${\"b${value.a.id}\"}"), r#"unknown("ab${value.a.id}": string)"#);
}

#[test]
fn a_key_that_stands_twice_is_seen_before_it_is_known() {
    check(
        "{ (value.a.id) = 1, (local.mixed[1]) = 2 }",
        "`local.mixed[1]`: this key stands twice in the map",
    );
    check(
        "{ (value.a.id) = 1, (var.n) = 2, \"3\" = 3 }",
        "`\"3\"`: this key stands twice in the map",
    );
    check("try({ (value.a.id) = 1, (local.mixed[1]) = 2 }, var.n)", "3");
    check(
        "{ (value.m.eu.id) = 1, (value.m.us.id) = 2 }",
        "unknown({ (value.a[\"eu\"].id) = 1, (value.a[\"us\"].id) = 2 }: map(integer))",
    );
}

#[test]
fn what_settles_it_settles_it() {
    check("false && value.a.id == \"x\"", "false");
    check("value.a.id == \"x\" && false", "false");
    check("value.a.id == \"x\" || true", "true");
    check("true || nope.x.y", "true");
    check("value.a.id == \"x\" && true", "unknown(value.a.id == \"x\": boolean)");
    check("true && value.a.id == \"x\"", "unknown(value.a.id == \"x\": boolean)");
    check("var.yes ? 1 : nope.x.y", "1");
    check("value.a.id == \"x\" ? 1 : 1", "1");
    check("value.a.id == \"x\" ? 1 : 2", "unknown(value.a.id == \"x\" ? 1 : 2: integer)");
    check("value.a == null", "false");
    check("value.off == null", "true");
    check("value.a.id == null", "unknown(value.a.id == null: boolean)");
    check("value.a.password == null", "false");
}

#[test]
fn instances_are_asked_for_by_key() {
    let world = World::default();
    let expr = parse::expression(r#"value.m["eu"].size + value.m[each.key].size"#, Dialect::Spec);
    let datum = evaluate(&expr.unwrap(), &world).unwrap();
    assert_eq!(datum.value, Value::Integer(200));
    assert_eq!(*world.asked.borrow(), ["value.m Some(\"eu\")", "value.m Some(\"eu\")"]);
    check(
        "value.m[0].id",
        "`0`: an instance's key is text, and this is a number (write the instance's key as text: value.m[\"key\"])",
    );
    check("values(value.m)[*].size", "[100, 100]");
    check("value.nope.id", "`value.nope`: there is no resource `value.nope`");
}

#[test]
fn references_that_lead_nowhere() {
    check("var.map.zzz", "`zzz`: there is no `zzz` here");
    check("var.map.xy", "`xy`: there is no `xy` here (did you mean `x`?)");
    check(
        "var.map[\"z\"]",
        "`\"z\"`: there is no entry with this key (use lookup(map, key, default) where a key may be missing)",
    );
    check(
        "var.list[3]",
        "`3`: the list has 3 items, and none here (the first item has the index 0)",
    );
    check(
        "var.list[-1]",
        "`-1`: the list has 3 items, and none here (the first item has the index 0)",
    );
    check(
        "var.set[0]",
        "`var.set[0]`: a set has no order, so no index (make it a list first: tolist(…)[0])",
    );
    check("var.n.x", "`var.n.x`: a number has no attributes, so no `x`");
    check("var.list[\"a\"]", "`\"a\"`: a string cannot be an index of a list");
    check(
        "value.off.id",
        "`value.off.id`: this is null, so it has no `id` (test it first: `x == null ? null : x.id`, or use try(x.id, …); a resource with `lifecycle.enabled = false` is null)",
    );
    check("value.off[*].id", "[]");
    check("old.size", "5");
    check("old.missing", "null");
    check("value.a.missing", "null");
}

#[test]
fn walks() {
    check("[for x in var.list : upper(x)]", r#"["A", "B", "C"]"#);
    check("[for i, x in var.list : i]", "[0, 1, 2]");
    check("{for k, v in var.map : k => v * 2 if v > 1}", r#"{"y": 4}"#);
    check("{for x in var.list : upper(x) => x}", r#"{"A": "a", "B": "b", "C": "c"}"#);
    check(
        "{for i, x in var.list : (i == 0 ? \"first\" : \"rest\") => x...}",
        r#"{"first": ["a"], "rest": ["b", "c"]}"#,
    );
    check("[for x in var.set : x]", r#"["p", "q"]"#);
    check(
        "{for x in var.list : \"k\" => x}",
        "`\"k\"`: two items have the same key (make the keys distinct, or collect the values with `...`)",
    );
    check(
        "[for x in var.n : x]",
        "`var.n`: a number cannot be walked over (`for` walks over lists, sets, maps and objects)",
    );
    check(
        "[for x in var.null : x]",
        "`var.null`: null cannot be walked over (use coalesce(…, []) where null is possible)",
    );
    check("[for k, v in value.m : v.size]", "[100, 100]");
    check("[for x in [1] : [for x in [2] : x]]", "[[2]]");
    check("{for k, v in var.map : v => k}", r#"{"1": "x", "2": "y"}"#);
}

#[test]
fn walks_over_what_is_not_known() {
    check(
        "[for p in value.a.ports : p + var.n]",
        "unknown([for p in value.a.ports : p + 3]: list(any))",
    );
    check(
        "[for x in var.list : x if x != value.a.id]",
        "unknown([for x in [\"a\", \"b\", \"c\"] : x if x != value.a.id]: list(any))",
    );
    check("[for x in [value.a.id, 1] : x]", "[unknown(value.a.id: string), 1]");
    check(
        "{for x in [value.a.id] : x => 1}",
        "unknown({for x in [value.a.id] : x => 1}: map(any))",
    );
}

#[test]
fn variables_of_residuals_capture_nothing() {
    // Both walks call their variable x. In the body of the inner walk, x is the variable of the inner one.
    check(
        "[for x in value.a.ports : [for y in [x] : [for x in value.a.ports : x + y]]]",
        "unknown([for x in value.a.ports : [[for x_1 in value.a.ports : x_1 + x]]]: list(any))",
    );
    let local = "[for value in value.a.ports : local.mixed[1]]";
    check(local, "unknown([for value_1 in value.a.ports : value.a.id]: list(any))");
}

#[test]
fn sensitivity_flows() {
    check("var.secret", "\"hunter2\" secret()");
    assert_eq!(show("a-${var.secret}"), "\"a-hunter2\" secret()");
    check("[1, var.secret]", "[1, \"hunter2\"] secret([1])");
    check("{ a = { b = var.secret } }", "{\"a\": {\"b\": \"hunter2\"}} secret(a.b)");
    check("var.account.user", "\"me\"");
    check("var.account.key", "\"hunter2\" secret()");
    check("var.account[\"key\"]", "\"hunter2\" secret()");
    check("var.account.ports[1]", "2");
    check("length(var.account)", "3");
    check(
        "jsonencode(var.account)",
        "\"{\\\"key\\\":\\\"hunter2\\\",\\\"ports\\\":[1,2],\\\"user\\\":\\\"me\\\"}\" secret()",
    );
    check("var.secret == \"x\"", "false secret()");
    check("var.secret == null", "false secret()");
    check("var.account == null", "false");
    check("var.flag ? 1 : 2", "1 secret()");
    check("var.flag && true", "true secret()");
    check("!var.flag", "false secret()");
    check("[for k, v in var.account : v if k != \"ports\"]", "[\"hunter2\", \"me\"] secret([0])");
    check("[for x in var.list : x if x != var.secret]", "[\"a\", \"b\", \"c\"] secret()");
    check("{ (var.secret) = 1 }", "{\"hunter2\": 1} secret()");
    check("var.list[length(var.secret) - 7]", "\"a\" secret()");
    check("[var.secret][*]", "[\"hunter2\"] secret([0])");
    check("length(range(length(var.secret))[*])", "7 secret()");
    check("length(flatten([range(length(var.secret))]))", "7 secret()");
    check("length(flatten([var.flag ? [] : [1]]))", "0 secret()");
    check("length((var.flag ? null : 1)[*])", "0 secret()");
    check("length(var.account[*])", "1");
    check("flatten([[var.account], [1]])[1]", "1");
    // With the other value of the flag, the item would have been a list.
    check("length(flatten([var.flag ? 1 : []]))", "1 secret()");
    check("max(0, (var.flag ? [] : [1])...)", "0 secret()");
    check("coalesce(\"a\", (var.flag ? [] : [1])...)", "\"a\" secret()");
    check("max(1, [length(var.secret)]...)", "7 secret()");
    check("concat([1], [[var.secret]]...)", "[1, \"hunter2\"] secret([1])");
    check("{ (var.name) = var.secret }.dev", "\"hunter2\" secret()");
    check("try(var.secret, 1)", "\"hunter2\" secret()");
    check(
        "\"${value.a.id}${var.secret}\"",
        "unknown(\"${value.a.id}${var.secret}\": string) secret()",
    );
}

#[test]
fn residuals_hold_no_secret() {
    check_residual(
        "\"${var.secret}-${value.a.id}-${var.name}\"",
        "\"${var.secret}-${value.a.id}-dev\"",
    );
    check_residual("var.secret", "var.secret");
    check_residual("upper(var.secret)", "upper(var.secret)");
    check_residual("{ a = var.secret, b = var.n }", "{ a = var.secret, b = 3 }");
    check_residual("var.account", "{ key = var.account.key, ports = [1, 2], user = \"me\" }");
    check_residual(
        "[var.account, value.a.id]",
        "[{ key = var.account.key, ports = [1, 2], user = \"me\" }, value.a.id]",
    );
    check_residual("jsonencode([var.secret, value.a.id])", "jsonencode([var.secret, value.a.id])");
    check_residual("\"${local.derived}${value.a.id}\"", "\"${var.secret}!${value.a.id}\"");
    check_residual("var.flag ? value.a.id : \"none\"", "var.flag ? value.a.id : \"none\"");
    check_residual(
        "[for x in var.list : x if x != var.secret]",
        "[for x in [\"a\", \"b\", \"c\"] : x if x != var.secret]",
    );
    check_residual(
        "merge(var.account, { b = value.a.id })",
        "{ b = value.a.id, key = merge({ key = var.account.key, ports = [1, 2], user = \"me\" }, { b = value.a.id }).key, ports = [1, 2], user = \"me\" }",
    );
    check_residual("toset([var.secret, \"a\"])", "toset([var.secret, \"a\"])");
    check_residual("var.n + 1", "4");
    check_residual("local.mixed", "[1, value.a.id]");
    check_residual("sensitive(var.secret)", "var.secret");
    check_residual("length(split(\"\", var.secret)[*])", "length(split(\"\", var.secret)[*])");
    check_residual("max(0, (var.flag ? [] : [1])...)", "max(0, (var.flag ? [] : [1])...)");
    check_residual("var.flag || value.a.id == \"x\"", "var.flag || value.a.id == \"x\"");
    // A `sensitive(…)` in the text stays in the residual of its own value, and appears in no residual that is
    // shown.
    check_residual("sensitive(\"x\")", "sensitive(\"x\")");
    check_residual("\"${sensitive(\"x\")}${value.a.id}\"", "\"${sensitive(\"x\")}${value.a.id}\"");
    let refused = show("${sensitive(\"x\")}${value.a.id}");
    assert!(
        refused.contains("cannot be combined with what is known only after apply"),
        "{refused}"
    );
}

#[test]
fn sealed_values_pass_and_are_not_computed_with() {
    check("value.a.password", "sealed(string)");
    check("[value.a.password]", "[sealed(string)]");
    check("value.a.password == \"x\"", "unknown(value.a.password == \"x\": boolean) secret()");
    assert_eq!(
        show("p=${value.a.password}"),
        "unknown(\"p=${value.a.password}\": string) secret()"
    );
    check("upper(value.a.password)", "unknown(upper(value.a.password): string) secret()");
    check(
        "coalesce(value.a.password, \"x\")",
        "unknown(coalesce(value.a.password, \"x\"): string) secret()",
    );
    check("merge({ a = value.a.password }, { b = 1 })", "{\"a\": sealed(string), \"b\": 1}");
    check("value.m[\"eu\"].password", "sealed(string)");
    check(
        "jsonencode({ p = value.m[\"eu\"].password })",
        "unknown(jsonencode({ p = value.m[\"eu\"].password }): string) secret()",
    );
    check("var.yes ? value.a.password : \"\"", "sealed(string)");
    check("[for x in [value.a.password] : x]", "[sealed(string)]");
    check("value.a.password[0]", "unknown(value.a.password[0]: any) secret()");
}

#[test]
fn try_and_can_look_at_failures() {
    check("try(var.map.z, 1)", "1");
    check("try(value.off.id, \"none\")", "\"none\"");
    check("try(value.a.id, \"none\")", "unknown(try(value.a.id, \"none\"): string)");
    check("try(var.map.z, value.a.id)", "unknown(value.a.id: string)");
    check("try(var.map.z, var.map.www)", "`www`: there is no `www` here");
    check("can(var.map.z)", "false");
    check("can(var.map.x)", "true");
    check("can(value.a.id)", "unknown(can(value.a.id): boolean)");
    // A part that the result does not need but that may fail at apply stays in the residual.
    check("try([1, value.a.ports[7]][0], 2)", "unknown(try([1, value.a.ports[7]][0], 2): integer)");
    check(
        "try(([1, value.a.ports[7]][0] + 1), 2)",
        "unknown(try([1, value.a.ports[7]][0] + 1, 2): integer)",
    );
    check(
        "try([1, [for x in value.a.ports : x][7]][0], 2)",
        "unknown(try([1, [for x in value.a.ports : x][7]][0], 2): integer)",
    );
    check("try([1, value.a.id][0], 2)", "1");
    check("try(var.map.x, value.a.ports[7])", "1");
    check("can(length([value.a.ports[7]]))", "unknown(can([1, value.a.ports[7]][0]): boolean)");
    check(
        "can([for x in [value.a.ports[7]] : 1])",
        "unknown(can([[1], value.a.ports[7]][0]): boolean)",
    );
    check("try(true ? 1 : [value.a.ports[7]][0], 2)", "1");
    check(
        "try([1, try(value.a.ports[7], 3)][0], 2)",
        "unknown(try([1, try(value.a.ports[7], 3)][0], 2): integer)",
    );
    check("[1, value.a.ports[7]][0]", "1");
}

/// A result of `try` or `can` is secret if a secret decides which one it is, whether the attempt succeeds or
/// falls back.
#[test]
fn what_a_secret_decides_in_an_attempt_is_secret() {
    check("try([true, [0][var.flag ? 9 : 0]][0], false)", "false secret()");
    check("try([true, [0][var.flag ? 0 : 9]][0], false)", "true secret()");
    check("try([0][var.flag ? 9 : 0], 7)", "7 secret()");
    check("can([1, [0][var.flag ? 9 : 0]][0])", "false secret()");
    check("can([1, [0][var.flag ? 0 : 9]][0])", "true secret()");
    check("can(tonumber(var.secret))", "false secret()");
    check("try(tonumber(var.secret), var.map.zzz, 1)", "1 secret()");
    check("try(try(tonumber(var.secret)), 1)", "1 secret()");
    check("try({ a = try(tonumber(var.secret), 1), b = 2 }.b, 3)", "2 secret()");
    check("try(var.account.key.zzz, 1)", "1 secret()");
    check("try(var.list[length(var.secret)], \"none\")", "\"none\" secret()");
    check("try({ (var.secret) = 1 }.x, 2)", "2 secret()");
    check("try([for x in range(length(var.secret)) : [0][x]], 2)", "2 secret()");
    check("try([for x in [1] : [0][x] if var.flag], 2)", "2 secret()");
    check("try(local.broken, 3)", "`local.broken`: it fails over a secret");
    check(
        "try([value.a.id, [0][var.flag ? 0 : 9]][0], 2)",
        "unknown(try([value.a.id, [0][var.flag ? 0 : 9]][0], 2): any) secret()",
    );
}

/// A result of `try` or `can` is not secret if the attempt depends on no secret.
#[test]
fn what_an_attempt_only_hands_on_stays_as_it_is() {
    check("try(var.secret, \"x\")", "\"hunter2\" secret()");
    check("try(var.account.user, \"x\")", "\"me\"");
    check("try(var.account.zzz, \"x\")", "\"x\"");
    check("try(var.account[\"zzz\"], \"x\")", "\"x\"");
    check("try(lookup(var.account, \"user\"), \"x\")", "\"me\"");
    check("try({ a = var.secret, b = 1 }, {})", "{\"a\": \"hunter2\", \"b\": 1} secret(a)");
    check("try({ a = var.secret, b = 1 }.c, 2)", "2");
    check("try([var.secret, 1][1], 2)", "1");
    check("try([for k, v in var.account : k], [])", "[\"key\", \"ports\", \"user\"]");
    check("try(merge(var.account, { user = \"you\" }).user, 2)", "\"you\"");
    check("can(var.account.user)", "true");
    check("can(var.account.zzz)", "false");
    check("[try(tonumber(\"x\"), 1), tonumber(\"${length(var.secret)}\")]", "[1, 7] secret([1])");
    check("[try(tonumber(var.secret), 1), try(var.map.z, 2)]", "[1, 2] secret([0])");
}

/// The residual of an attempt that a secret decides is the whole attempt, so it does not reveal the choice.
#[test]
fn residuals_of_attempts_do_not_tell_what_a_secret_chose() {
    check_residual("try([0][var.flag ? 9 : 0], var.n)", "try([0][var.flag ? 9 : 0], 3)");
    check_residual(
        "[for x in var.list : try([x, [0][var.flag ? 9 : 0]][0], file(\"a.txt\"))]",
        "[try([\"a\", [0][var.flag ? 9 : 0]][0], \"content\"), try([\"b\", [0][var.flag ? 9 : 0]][0], \"content\"), try([\"c\", [0][var.flag ? 9 : 0]][0], \"content\")]",
    );
    check_residual(
        "try([for x in var.list : [0][x == var.secret ? 0 : 9]], local.derived)",
        "try([for x in [\"a\", \"b\", \"c\"] : [0][x == var.secret ? 0 : 9]], \"${var.secret}!\")",
    );
    check_residual("can(tonumber(var.secret))", "can(tonumber(var.secret))");
}

#[test]
fn calls_fail_with_their_place() {
    check("lenght(var.list)", "`lenght`: there is no function `lenght` (did you mean `length`?)");
    check("upper()", "`upper()`: upper() takes 1 argument, found 0 (write upper(text))");
    check(
        "substr(\"a\", 1)",
        "`substr(\"a\", 1)`: substr() takes 3 arguments, found 2 (write substr(text, offset, length))",
    );
    check("upper(var.n)", "`var.n`: `text` of upper() is a string, found a number");
    check(
        "upper(var.null)",
        "`var.null`: `text` of upper() is a string, found null (use coalesce(…, default) where null is possible)",
    );
    check("file(\"b.txt\")", "`\"b.txt\"`: there is no file `b.txt`");
    check("file(\"a.txt\")", "\"content\"");
    check("max(var.list...)", "`var.list`: `number` of max() is a number, found a string");
    check("max([1, 5, 2]...)", "5");
    check("max(value.a.ports...)", "unknown(max(value.a.ports...): number)");
    check("max(1, var.n...)", "`var.n`: `...` takes a list, and this is a number");
}

#[test]
fn evaluation_is_bounded() {
    let walks = "length([for a in range(2000) : [for b in range(2000) : 1]])";
    check(
        walks,
        "`range(2000)`: the expression takes more than 1000000 steps to compute (walk over fewer items, or compute parts of it in locals)",
    );
    let doubled = "join(\"\", [for i in range(100) : var.huge])";
    assert!(show(&format!("${{{doubled}}}")).contains("more than 16 MiB"), "{}", show(doubled));
    let templates = "${var.huge}".repeat(20);
    assert!(show(&templates).contains("the expression makes more than 16 MiB of data"));
    let replaced = "replace(var.huge, \"x\", var.huge)";
    assert!(show(&format!("${{{replaced}}}")).contains("more than 16 MiB"));
    // Items that an expression only looks at count as steps, too.
    let looks = "[for x in range(60000) : contains(var.long, x)]";
    assert!(show(&format!("${{{looks}}}")).contains("1000000 steps"));
    let compares = "[for x in range(60000) : var.long == [var.long] || [var.long][0] == var.long]";
    assert!(show(&format!("${{{compares}}}")).contains("1000000 steps"));
    // `try` does not catch an exceeded bound.
    assert!(show(&format!("${{try({walks}, 1)}}")).contains("1000000 steps"));
}

/// A value that grows by one level per local ends in an error, not in a stack overflow.
#[test]
fn values_and_residuals_have_a_depth() {
    struct Deep(RefCell<Value>);
    impl Scope for Deep {
        fn root(&self, _: &Root) -> Result<Datum, String> {
            Ok(self.0.borrow().clone().into())
        }
        fn resource(&self, _: &Block, _: Option<&str>) -> Result<Datum, String> {
            Err(String::new())
        }
    }
    for (text, start, message) in [
        ("[local.x]", Value::Null, "the value is nested more than 100 levels deep"),
        ("[local.x, local.x]", Value::Null, "the value holds more than 4000000 values"),
        (
            "1 - local.x",
            slot("a.b", Type::Integer),
            "the expression is nested too deeply once what is known is filled in",
        ),
        (
            "upper(local.x)",
            slot("a.b", Type::String),
            "the expression is nested too deeply once what is known is filled in",
        ),
        (
            "local.x.b",
            slot("a.b", Type::Any),
            "the expression is nested too deeply once what is known is filled in",
        ),
        (
            "local.x ? 1 : local.x",
            slot("a.b", Type::Any),
            "what is left to compute after apply has more than 100000 parts",
        ),
    ] {
        let scope = Deep(RefCell::new(start));
        let expr = parse::expression(text, Dialect::Spec).unwrap();
        let mut end = None;
        for _ in 0..1000 {
            match evaluate(&expr, &scope) {
                Ok(datum) => {
                    // Every value within the bounds can be stored and read back.
                    if let Value::Unknown(unknown) = &datum.value {
                        let printed = unknown.residual.to_string();
                        assert_eq!(parse::residual(&printed).as_ref(), Ok(&unknown.residual));
                    }
                    *scope.0.borrow_mut() = datum.value;
                }
                Err(error) => {
                    end = Some(error.message);
                    break;
                }
            }
        }
        assert_eq!(end.as_deref(), Some(message), "{text}");
    }
}

/// The deepest expressions that can be written, inside the deepest table that can hold them, are evaluated on
/// a thread with a small stack.
#[test]
fn the_deepest_expressions_fit_the_stack() {
    let around = |open: &str, middle: &str, close: &str| {
        let nested = |depth| format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
        let fits = |text: &String| parse::expression(text, Dialect::Spec).is_ok();
        (1..70).rev().map(nested).find(fits).unwrap()
    };
    let texts = [
        around("[for x in value.a.ports : ", "x", "]"),
        around("[for x in ", "value.a.ports", " : x]"),
        around("{ a = ", "value.a.id", " }"),
        around("try(upper(", "value.a.id", "))"),
        around("\"a${", "value.a.id", "}\""),
        around("!(value.a.id == \"x\" ? ", "true", " : false)"),
        around("coalesce([", "value.a.id", "]...)"),
        around("var.list[", "0", "] == \"a\" ? 0 : 1"),
        format!("value.a.ports{}", "[0]".repeat(200)),
        format!("1{}", " + value.a.ports[0]".repeat(120)),
        format!("{}value.a.id", "var.flag ? 1 : ".repeat(50)),
    ];
    let run = move || {
        for text in &texts {
            let mut expr = parse::expression(text, Dialect::Spec).unwrap();
            for _ in 0..64 {
                expr = Expr::nowhere(Kind::List(vec![expr]));
            }
            // It does not matter here if the evaluation succeeds.
            drop(evaluate(&expr, &World::default()));
            drop(residual(&expr, &World::default()));
            drop(super::super::check::check(&expr, &Anything, &mut Vec::new()));
            assert!(!expr.to_string().is_empty());
        }
    };
    #[expect(clippy::disallowed_types, reason = "a test may have a thread with a small stack")]
    let small = std::thread::Builder::new().stack_size(2 << 20);
    small.spawn(run).unwrap().join().unwrap();
}

/// A scope of types in which every name exists and has an unknown type.
struct Anything;

impl super::super::check::Types for Anything {
    fn root(&self, _: &Root) -> Result<Type, super::super::check::Unresolved> {
        Ok(Type::Any)
    }
}
