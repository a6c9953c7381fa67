use super::super::evaluate::{Scope, evaluate};
use super::super::parse::{self, Dialect};
use super::super::{Expr, Root};
use super::*;
use crate::address::{Block, RESERVED_TYPES};
use crate::value::Paths;

/// `list` holds an unknown and a secret item, `unknown` is not known, `empty` is null.
struct Names;

impl Scope for Names {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return Err("no such name".to_owned()) };
        let unknown = |ty: Type| Value::unknown(ty, parse::residual("value.a.id").unwrap());
        Ok(match &**name {
            "list" => Datum {
                value: Value::list(vec![
                    Value::string("a"),
                    unknown(Type::String),
                    Value::string("hunter2"),
                ]),
                sensitive: Paths::from_iter([crate::value::Path::root().join(2)]),
            },
            "secrets" => Datum::secret(Value::list(vec![Value::string("hunter2")])),
            "secret_set" => Datum {
                value: Value::set(vec![Value::string("hunter2"), Value::string("a")]),
                sensitive: Paths::from_iter([crate::value::Path::root().join(1)]),
            },
            "unknown" => Datum::plain(unknown(Type::list(Type::String))),
            "id" => Datum::plain(unknown(Type::String)),
            "key" => Datum::secret(Value::string("a")),
            "empty" => Datum::plain(Value::Null),
            _ => return Err("no such name".to_owned()),
        })
    }

    fn resource(&self, _: &Block, _: Option<&str>) -> Result<Datum, String> {
        Err("no resources here".to_owned())
    }
}

fn parsed(text: &str) -> Expr {
    parse::expression(text, Dialect::Names).unwrap()
}

fn check(text: &str, expected: &str) {
    let shown = match evaluate(&parsed(text), &Names) {
        Ok(datum) => {
            let mut shown = format!("{:?}", datum.value);
            for path in datum.sensitive.iter() {
                shown = format!("{shown} secret({path})");
            }
            shown
        }
        Err(error) => {
            format!("`{}`: {error}", &text[error.range.start as usize..error.range.end as usize])
        }
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn the_table_is_sorted_and_says_what_it_means() {
    let names: Vec<&str> = table::FUNCTIONS.iter().map(|function| function.name).collect();
    assert!(names.is_sorted());
    for function in table::FUNCTIONS {
        assert!(find(function.name).is_some());
        assert!(!RESERVED_TYPES.contains(&function.name), "{}", function.name);
        assert!(!["value", "template", "endpoint"].contains(&function.name));
        assert!(function.required <= function.parameters.len(), "{}", function.name);
    }
    assert_eq!(find("lookup").unwrap().usage(), "lookup(map, key, default?)");
    assert_eq!(find("max").unwrap().usage(), "max(number, …)");
}

#[test]
fn of_text() {
    check("upper(\"aß\")", "\"ASS\"");
    check("lower(\"ÄB\")", "\"äb\"");
    check("trim(\"--a-b--\", \"-\")", "\"a-b\"");
    check("trimspace(\" a \")", "\"a\"");
    check("trimprefix(\"v1.2\", \"v\")", "\"1.2\"");
    check("trimsuffix(\"a.txt\", \".txt\")", "\"a\"");
    check("split(\",\", \"a,b,\")", r#"["a", "b", ""]"#);
    check("split(\"\", \"äb\")", r#"["ä", "b"]"#);
    check("join(\"-\", [1, \"b\", true])", "\"1-b-true\"");
    check("join(\"-\", [])", "\"\"");
    check(
        "join(\"-\", [null])",
        "`[null]`: every item must be a string, number or boolean, found null",
    );
    check("replace(\"a.b.c\", \".\", \"-\")", "\"a-b-c\"");
    check("substr(\"äbcd\", 1, 2)", "\"bc\"");
    check("substr(\"äbcd\", -2, -1)", "\"cd\"");
    check("substr(\"ab\", 9, 3)", "\"\"");
    check("substr(\"ab\", 0, -2)", "`-2`: the length is negative");
    check("startswith(\"abc\", \"ab\")", "true");
    check("endswith(\"abc\", \"ab\")", "false");
    check("format(\"%s-%d-%v%%\", \"a\", 3, [1])", "\"a-3-[1]%\"");
    check("format(\"%d\", \"x\")", "`\"x\"`: `%d` takes a whole number, found a string");
    check("format(\"%s\")", "`\"%s\"`: the format has more verbs than the 0 values");
    check("format(\"a\", 1)", "`1`: the format has only 0 verbs");
    check("format(\"%x\", 1)", "`\"%x\"`: there is no verb `%x`");
    check("format(\"%\")", "`\"%\"`: the format ends in the middle of a verb");
}

#[test]
fn of_numbers() {
    check("max(1, 5, 2.5)", "5");
    check("min(1.5, 1)", "1");
    check("abs(-3)", "3");
    check("abs(-2.5)", "2.5");
    check("ceil(1.2)", "2");
    check("floor(-1.2)", "-2");
    check("floor(1e300)", "`1e300`: the result is too large for a number");
    check("sum([1, 2, 3])", "6");
    check("sum([1, 0.5])", "1.5");
    check("sum([])", "0");
    check(
        "sum([9223372036854775807, 1])",
        "`[9223372036854775807, 1]`: the result is too large for a number",
    );
    check("range(3)", "[0, 1, 2]");
    check("range(1, 6, 2)", "[1, 3, 5]");
    check("range(3, 0)", "[3, 2, 1]");
    check("range(0, 3, -1)", "`-1`: the step leads away from the limit");
    check("range(0, 3, 0)", "`0`: the step is zero");
    check("range(1000000)", "`1000000`: the range has more than 65536 items");
    check("range(9223372036854775806, 9223372036854775807)", "[9223372036854775806]");
    check("range(0, 1, 0.25)", "[0, 0.25, 0.5, 0.75]");
}

#[test]
fn of_collections() {
    check("length([1, 2])", "2");
    check("length(\"äb\")", "2");
    check("length({ a = 1 })", "1");
    check("keys({ b = 1, a = 2 })", r#"["a", "b"]"#);
    check("values({ b = 1, a = 2 })", "[2, 1]");
    check("contains([\"a\"], \"a\")", "true");
    check("contains([1], \"1\")", "false");
    check("lookup({ a = 1 }, \"a\")", "1");
    check("lookup({ a = 1 }, \"b\", 9)", "9");
    check("lookup({ a = 1 }, \"b\")", "`\"b\"`: there is no entry with this key");
    check("merge({ a = 1, b = 1 }, empty, { b = 2 })", r#"{"a": 1, "b": 2}"#);
    check("merge()", "{}");
    check("concat([1], [], [2, 3])", "[1, 2, 3]");
    check("flatten([1, [2, [3]], []])", "[1, 2, 3]");
    check("distinct([\"b\", \"a\", \"b\"])", r#"["b", "a"]"#);
    check("sort([\"b\", \"a\"])", r#"["a", "b"]"#);
    check("reverse([1, 2])", "[2, 1]");
    check("slice([1, 2, 3], 1, 3)", "[2, 3]");
    check("slice([1], 0, 2)", "`2`: this is outside the list, which has 1 items");
    check("slice([1, 2], 2, 1)", "`1`: the end stands before the start");
    check("zipmap([\"a\"], [1])", r#"{"a": 1}"#);
    check("zipmap([\"a\"], [])", "`[]`: there are 1 keys and 0 values");
    check("element([1, 2, 3], 4)", "2");
    check("element([1, 2, 3], -1)", "3");
    check("element([], 0)", "`[]`: an empty list has no element");
    check("one([])", "null");
    check("one([5])", "5");
    check("one([1, 2])", "`[1, 2]`: the list must have one item or none, and has 2");
    check("coalesce(empty, \"\", \"x\")", "\"x\"");
    check("coalesce(empty)", "`coalesce(empty)`: every argument is null or empty");
    check("coalescelist([], [1])", "[1]");
    check("compact([\"a\", \"\", null])", r#"["a"]"#);
    check("alltrue([true, false])", "false");
    check("anytrue([true, false])", "true");
    check("alltrue([1])", "`[1]`: every item must be a boolean, found a number");
    check("chunklist([1, 2, 3], 2)", "[[1, 2], [3]]");
    check("chunklist([1], 0)", "`0`: the size must be 1 or more");
    check("tomap({ a = 1 })", r#"{"a": 1}"#);
    check("tolist(toset([2, 1, 2]))", "[1, 2]");
    check("setunion([1], [2, 1])", "{1, 2}");
    check("setintersection([1, 2], [2, 3])", "{2}");
    check("setsubtract([1, 2], [2])", "{1}");
}

#[test]
fn of_encodings() {
    check("jsonencode({ b = [1, 2.5, null], a = \"x\" })", r#""{\"a\":\"x\",\"b\":[1,2.5,null]}""#);
    check("jsondecode(\"{\\\"a\\\": [1]}\").a[0]", "1");
    check("jsondecode(\"{\")", "`\"{\"`: this is no JSON: see line 1, column 1 of the text");
    check("base64encode(\"hé\")", "\"aMOp\"");
    check("base64decode(\"aMOp\")", "\"hé\"");
    check("base64decode(\"?\")", "`\"?\"`: this is no base64 text");
    check("base64decode(\"/w==\")", "`\"/w==\"`: what is encoded here is no text in UTF-8");
    check("tostring(3.0)", "\"3\"");
    check("tostring(null)", "null");
    check("tonumber(\"3\") + tonumber(\" 0.5 \")", "3.5");
    check("tonumber(\"inf\")", "`\"inf\"`: this text is no number");
    check("tonumber(true)", "`true`: a boolean is no number");
    check("tobool(\"true\")", "true");
    check("tobool(1)", "`1`: this is no boolean");
    check("toset([\"b\", \"a\", \"b\"])", r#"{"a", "b"}"#);
}

#[test]
fn items_keep_what_is_unknown_and_secret() {
    let id = "unknown(value.a.id: string)";
    check("length(list)", "3");
    check("reverse(list)", &format!("[\"hunter2\", {id}, \"a\"] secret([0])"));
    check("concat([1], list)", &format!("[1, \"a\", {id}, \"hunter2\"] secret([3])"));
    check("slice(list, 1, 3)", &format!("[{id}, \"hunter2\"] secret([1])"));
    check("element(list, 2)", "\"hunter2\" secret()");
    check("element(list, 0)", "\"a\"");
    check("values({ x = list })[0][0]", "\"a\"");
    check(
        "zipmap([\"a\", \"b\", \"c\"], list)",
        &format!("{{\"a\": \"a\", \"b\": {id}, \"c\": \"hunter2\"}} secret(c)"),
    );
    check("merge({ p = list[2] }, { p = 1 })", r#"{"p": 1}"#);
    check("merge({ p = 1 }, { p = list[2] })", "{\"p\": \"hunter2\"} secret(p)");
    check("chunklist(list, 2)[1]", "[\"hunter2\"] secret([0])");
    // Whether the secret one is a list shows in how many there are.
    check("flatten([list])", &format!("[\"a\", {id}, \"hunter2\"] secret()"));
    check("lookup({ a = id }, \"a\")", id);
    check("lookup({ a = 1 }, key)", "1 secret()");
    check("lookup({ a = id }, key)", "unknown(lookup({ a = value.a.id }, key): string) secret()");
    check("length(secrets)", "1 secret()");
    check("keys({ a = secrets })", r#"["a"]"#);
    check("tolist(secret_set)", "[\"a\", \"hunter2\"] secret([0]) secret([1])");
    check("contains(secrets, \"a\")", "false secret()");
    check("coalesce(empty, id)", "unknown(coalesce(null, value.a.id): string)");
    check("coalesce(\"x\", id)", "\"x\"");
}

#[test]
fn what_is_unknown_stays_unknown_with_its_type() {
    check("length(unknown)", "unknown(length(value.a.id): integer)");
    check("concat(unknown, [\"a\"])", "unknown(concat(value.a.id, [\"a\"]): list(string))");
    check(
        "contains(list, \"b\")",
        "unknown(contains([\"a\", value.a.id, list[2]], \"b\"): boolean) secret()",
    );
    check("toset([id, \"a\"])", "unknown(toset([value.a.id, \"a\"]): set(string))");
    check("jsonencode({ a = id })", "unknown(jsonencode({ a = value.a.id }): string)");
    check("merge({ a = 1 }, { a = id })", "{\"a\": unknown(value.a.id: string)}");
    check("zipmap([id], [1])", "unknown(zipmap([value.a.id], [1]): map(integer))");
    check("format(\"%s\", id)", "unknown(format(\"%s\", value.a.id): string)");
    check("upper(unknown)", "`unknown`: `text` of upper() is a string, found a list");
}

#[test]
fn the_page_of_the_language_has_every_function() {
    let page = include_str!("../../../../docs/spec.md");
    let (_, rows) = page.split_once("| function | gives |\n|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let known: Vec<String> = table::FUNCTIONS.iter().map(Function::usage).collect();
    assert_eq!(documented, known);
}
