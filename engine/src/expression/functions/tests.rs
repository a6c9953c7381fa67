use super::super::evaluate::{Scope, evaluate};
use super::super::parse::{self, Dialect};
use super::super::{Expr, Root};
use std::sync::Arc;

use super::*;
use crate::address::{Block, RESERVED_TYPES};
use crate::value::Paths;

/// A scope in which `list` has an unknown and a secret item, `unknown` is not known, and `empty` is null.
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

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        let file = EXAMPLE_FILES.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| Arc::from(*text)).ok_or_else(|| format!("`{path}` was not read"))
    }
}

/// The files of the examples, and of the tests of templates.
const EXAMPLE_FILES: [(&str, &str); 6] = [
    ("prompt.txt", "Be brief.\n"),
    ("base64:prompt.txt", "QmUgYnJpZWYuCg=="),
    ("hello.tpl", "Hello ${name}:%{ for tag in tags } ${tag}%{ endfor }\n"),
    ("conf/", "a.txt\nb.txt\nmore/c.txt\nx.json"),
    ("one.tpl", "${x}"),
    ("reader.tpl", "\n${file(\"prompt.txt\")}"),
];

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
    for group in table::GROUPS {
        assert!(group.functions.is_sorted_by_key(|function| function.name), "{}", group.title);
    }
    assert_eq!(table::FUNCTIONS.len(), references().count(), "every name is there once");
    for (name, function) in table::FUNCTIONS.iter() {
        assert!(!RESERVED_TYPES.contains(name), "{name}");
        assert!(!["value", "template", "endpoint"].contains(name));
        assert!(function.required <= function.parameters.len(), "{name}");
        assert!(!function.gives.is_empty() && !function.gives.ends_with('.'), "{name}");
    }
    assert_eq!(find("lookup").unwrap().usage(), "lookup(map, key, default?)");
    assert_eq!(find("max").unwrap().usage(), "max(number, …)");
}

#[test]
fn every_example_gives_what_it_says() {
    for Reference { name, example, .. } in references() {
        assert!(example.call.contains(&format!("{name}(")), "{name}: {}", example.call);
        let value = |text: &str| {
            evaluate(&parsed(text), &Names).unwrap_or_else(|error| panic!("{text}: {error}")).value
        };
        let (given, said) = (value(example.call), value(example.result));
        assert!(given.same(&said), "{}: {given:?}", example.call);
        // The type that the checker predicts is that of the result.
        let mut errors = Vec::new();
        let ty = crate::expression::check::check(&parsed(example.call), &NoTypes, &mut errors);
        assert_eq!(errors, [], "{}", example.call);
        assert!(given.convert(&ty).is_ok(), "{}: {ty}", example.call);
    }
}

/// A scope in which no name has a type.
struct NoTypes;

impl crate::expression::check::Types for NoTypes {
    fn root(&self, _: &Root) -> Result<Type, crate::expression::check::Unresolved> {
        Ok(Type::Any)
    }
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
    check("format(\"%y\", 1)", "`\"%y\"`: there is no verb `%y`");
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
    // The number of items shows if the secret item is a list.
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
fn of_formats() {
    // The results are those that `terraform console` shows.
    for (call, shown) in [
        (
            r#"format("%5d|%-5d|%05d|%+05d|%x|%#x|%o|%#o|%b|%#b", 42, 42, 42, 42, -255, 255, 8, 8, -5, 5)"#,
            "   42|42   |00042|+0042|-ff|0xff|10|010|-101|0b101",
        ),
        (
            r#"format("%6.2f|%-8.1f|%08.3f|%+f|%f", 3.14159, 2.55, 3.14159, 1, 100)"#,
            "  3.14|2.5     |0003.142|+1.000000|100.000000",
        ),
        (
            r#"format("%g|%G|%.3g|%e|%.2e|%E", 1234567, 0.00000123, 1234.5678, 0, 5, 12)"#,
            "1.234567e+06|1.23E-06|1.23e+03|0.000000e+00|5.00e+00|1.200000E+01",
        ),
        (
            r#"format("%g|%g|%.3g|%.10g|%.0e|%.0f|%G", 100000, 1000000, 1234.5, 1.5, 1234.5, 2.5, 1e21)"#,
            "100000|1e+06|1.23e+03|1.5|1e+03|2|1E+21",
        ),
        (
            r#"format("%q|%#q|%10q|%t", "a\"b\n", "x", "y", true)"#,
            "\"a\\\"b\\n\"|\"x\"|       \"y\"|true",
        ),
        (
            r#"format("%10s|%-10s|%.1s|%05s", "äö", "äö", "äö", "a")"#,
            "        äö|äö        |ä|0000a",
        ),
        (r#"format("%+5d|%-+5d|% 5d|%.3d", 3, 3, 3, 5)"#, "   +3|+3   |    3|005"),
        (r#"format("%-5[2]s|%[1]s|%s", "a", "b")"#, "b    |a|b"),
        (r#"format("%#v|%#v|%v|%v", "a", [1, "b"], 1.50, "x")"#, "\"a\"|[1,\"b\"]|1.5|x"),
    ] {
        check(call, &format!("{shown:?}"));
    }
    check("format(\"%[3]s\", \"a\")", "`\"%[3]s\"`: the format has more verbs than the 1 values");
    check("format(\"%[1]s\", 1, 2)", "`2`: the format has only 1 verbs");
    check("format(\"%[x]s\", 1)", "`\"%[x]s\"`: the number of a value in `%[…]` is not 1 or more");
    check(
        "format(\"%99999999d\", 1)",
        "`\"%99999999d\"`: a width or precision in it is more than 16777216",
    );
    check("format(\"%16777216d%16777216d\", 1, 2)", "`2`: this makes a text of more than 16 MiB");
    check(
        "formatlist(\"%s-%s\", [\"a\", \"b\"], [\"c\"])",
        "`[\"c\"]`: this list has 1 items, and an earlier one 2",
    );
    check("formatlist(\"x\", [])", "[]");
    check("formatlist(\"x%s\", \"a\")", r#"["xa"]"#);
}

#[test]
fn of_patterns() {
    check(r#"regex("[a-z]+", "53453453.345345aaabbbccc23454")"#, r#""aaabbbccc""#);
    check(r#"regex("(?P<y>[0-9]+)-(?P<m>[0-9]+)", "2019-02")"#, r#"{"m": "02", "y": "2019"}"#);
    check(r#"regex("(a)?(b)", "b")"#, r#"[null, "b"]"#);
    check(r#"regexall("a*", "baac")"#, r#"["", "aa", ""]"#);
    check(r#"regexall("(\\d)(x)?", "1x2")"#, r#"[["1", "x"], ["2", null]]"#);
    check(r#"regex("x", "abc")"#, "`\"abc\"`: no part of this text matches the pattern");
    check(
        r#"regex("a(", "abc")"#,
        "`\"a(\"`: this pattern is wrong: found open group without closing ')'",
    );
    check(r#"can(regex("(a{1000}){1000}", "a"))"#, "false");
    check(r#"replace("hello", "/(l)(l)/", "$2-$1-$0")"#, r#""hel-l-llo""#);
    check(r#"replace("ab", "/a/", "$$1")"#, r#""$1b""#);
    check(r#"replace("ab", "//", "x")"#, r#""xaxbx""#);
    check(r#"replace("a/b", "/", "x")"#, r#""axb""#);
    check(r#"regex(key, "a")"#, "\"a\" secret()");
}

#[test]
fn of_networks() {
    for (call, shown) in [
        (r#"cidrsubnet("10.1.2.0/24", 4, 15)"#, r#""10.1.2.240/28""#),
        (
            r#"cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)"#,
            r#""fd00:fd12:3456:7800:a200::/72""#,
        ),
        (r#"cidrsubnet("0.0.0.0/0", 0, 0)"#, r#""0.0.0.0/0""#),
        (r#"cidrhost("10.12.112.0/20", -1)"#, r#""10.12.127.255""#),
        (r#"cidrhost("fd00:fd12:3456:7890:00a2::/72", 34)"#, r#""fd00:fd12:3456:7890::22""#),
        (r#"cidrhost("10.0.0.5/8", 3)"#, r#""10.0.0.3""#),
        (r#"cidrhost("::/0", -1)"#, r#""ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff""#),
        (r#"cidrsubnets("10.0.0.0/16", 8, 4)"#, r#"["10.0.0.0/24", "10.0.16.0/20"]"#),
        (r#"cidrcontains("10.0.0.0/8", "11.0.0.0")"#, "false"),
        (r#"cidrcontains("10.0.0.0/8", "10.2.0.0/16")"#, "true"),
        (r#"cidrcontains("10.0.0.0/16", "10.0.0.0/8")"#, "false"),
        (
            r#"cidrsubnet("10.0.0.0/24", 9, 0)"#,
            "`9`: the prefix has 24 bits and can take 0 to 8 more",
        ),
        (r#"cidrsubnet("10.0.0.0/24", 2, 4)"#, "`4`: 2 more bits number the ranges from 0 to 3"),
        (
            r#"cidrhost("10.0.0.0/30", 4)"#,
            "`4`: the range 10.0.0.0/30 has no address with that number",
        ),
        (r#"cidrnetmask("fd00::/8")"#, "`\"fd00::/8\"`: an IPv6 range has no netmask"),
        (
            r#"cidrsubnets("10.0.0.0/16", 1, 1, 1)"#,
            "`1`: the range 10.0.0.0/16 has no room for this one",
        ),
        (r#"cidrhost("10.0.0/8", 1)"#, "`\"10.0.0/8\"`: this is no range of addresses"),
        (r#"cidrhost("10.0.0.0/33", 1)"#, "`\"10.0.0.0/33\"`: this is no range of addresses"),
        (
            r#"cidrcontains("10.0.0.0/8", "::1")"#,
            "`\"::1\"`: one of them is an IPv4 address and the other an IPv6 address",
        ),
    ] {
        check(call, shown);
    }
}

#[test]
fn of_times() {
    for (call, shown) in [
        (
            r#"formatdate("EEEE, DD-MMM-YY hh:mm:ss ZZZ", "2018-01-02T23:12:01Z")"#,
            r#""Tuesday, 02-Jan-18 23:12:01 UTC""#,
        ),
        (
            r#"formatdate("EEE, DD MMM YYYY hh:mm:ss ZZZ", "2018-01-02T23:12:01-08:00")"#,
            r#""Tue, 02 Jan 2018 23:12:01 -0800""#,
        ),
        (
            r#"formatdate("MMMM D, YYYY 'at' H:mm aa AA HH h m s Z ZZZZ ZZZZZ M MM", "2018-01-02T03:02:01+05:30")"#,
            r#""January 2, 2018 at 3:02 am AM 03 3 2 1 +05:30 +0530 +05:30 1 01""#,
        ),
        (r#"formatdate("h'o''clock'", "2018-01-02T23:12:01Z")"#, r#""23o'clock""#),
        (r#"timeadd("2017-11-22T00:00:00+02:00", "-1h30m0.5s")"#, r#""2017-11-21T22:29:59+02:00""#),
        (r#"timeadd("2024-02-28T23:59:59Z", "24h")"#, r#""2024-02-29T23:59:59Z""#),
        (r#"timeadd("1970-01-01T00:00:00Z", "-1s")"#, r#""1969-12-31T23:59:59Z""#),
        (r#"timecmp("2017-11-22T00:00:00.5Z", "2017-11-22T00:00:00.25Z")"#, "1"),
        (
            r#"formatdate("YYY", "2018-01-02T23:12:01Z")"#,
            "`\"YYY\"`: there is no part `YYY` of a time",
        ),
        (
            r#"formatdate("'x", "2018-01-02T23:12:01Z")"#,
            "`\"'x\"`: a single quote in it is not closed",
        ),
        (
            r#"timeadd("2018-02-29T00:00:00Z", "1s")"#,
            "`\"2018-02-29T00:00:00Z\"`: this is no time as RFC 3339 has it",
        ),
        (r#"timeadd("2018-01-02", "1s")"#, "`\"2018-01-02\"`: this is no time as RFC 3339 has it"),
        (r#"timeadd("2018-01-02T00:00:00Z", "1d")"#, "`\"1d\"`: this is no length of time"),
        (
            r#"timeadd("9999-12-31T23:59:59Z", "1s")"#,
            "`\"1s\"`: the time is before the year 0 or after the year 9999",
        ),
    ] {
        check(call, shown);
    }
}

#[test]
fn of_yaml_and_csv() {
    check(
        r#"yamldecode("a: 1\nb: [x, yes, no, true, ~, 1.5, 0x1f, 0o17, 017, 1e3, \"1\"]\nc: |\n  t\n  u\nd: {e: 'f'}")"#,
        r#"{"a": 1, "b": ["x", true, false, true, null, 1.5, 31, 15, 17, 1000.0, "1"], "c": "t\nu\n", "d": {"e": "f"}}"#,
    );
    check(
        r#"yamldecode("a: &x {b: 1}\nd:\n  <<: *x\n  e: 2")"#,
        r#"{"a": {"b": 1}, "d": {"b": 1, "e": 2}}"#,
    );
    check(r#"yamldecode("1: a\ntrue: !!str 2")"#, r#"{"1": "a", "true": "2"}"#);
    check(
        r#"yamldecode("--- a\n--- b")"#,
        r#"`"--- a\n--- b"`: there is more than one document in it: see line 2 of the text"#,
    );
    check(r#"yamldecode("")"#, r#"`""`: this text holds no YAML value"#);
    check(r#"yamldecode("a: [1")"#, r#"`"a: [1"`: this is no YAML: see line 2 of the text"#);
    check(
        r#"yamldecode("b: !x y")"#,
        r#"`"b: !x y"`: there is a tag that stands for no value here: see line 1 of the text"#,
    );
    check(
        r#"yamldecode("a: .inf")"#,
        r#"`"a: .inf"`: there is a number without end, or none at all: see line 1 of the text"#,
    );
    // Each alias is ten times the one before.
    let laughs = r#"yamldecode(join("\n", concat(["a0: &a0 lol"], [for i in range(1, 9) : "a${i}: &a${i} [${join(", ", [for j in range(10) : "*a${i - 1}"])}]"])))"#;
    assert!(
        evaluate(&parsed(laughs), &Names).unwrap_err().message.starts_with("it becomes too large")
    );
    assert!(
        evaluate(&parsed(r#"yamldecode(join("", [for i in range(65) : "["]))"#), &Names).is_err()
    );
    check(
        r"yamlencode([[1, 2], [{ a = 1, b = 2 }]])",
        r#""- - 1\n  - 2\n- - \"a\": 1\n    \"b\": 2\n""#,
    );
    check(
        r#"yamlencode({ "a b" = "x\ny\n", b = [], c = "m\nn", d = {}, e = " lead\n", f = null, g = [{ h = [1] }] })"#,
        r#""\"a b\": |\n  x\n  y\n\"b\": []\n\"c\": |-\n  m\n  n\n\"d\": {}\n\"e\": \" lead\\n\"\n\"f\": null\n\"g\":\n- \"h\":\n  - 1\n""#,
    );
    check(
        r#"yamldecode(yamlencode({ a = ["x\ny", [], [1, true, null], { "k: v" = "- a\n\n b" }] }))"#,
        r#"{"a": ["x\ny", [], [1, true, null], {"k: v": "- a\n\n b"}]}"#,
    );
    check(
        r#"csvdecode("a,b\n1")"#,
        "`\"a,b\\n1\"`: the row on line 2 of the text has 1 cells, and there are 2 columns",
    );
    check(r#"csvdecode("a,a\n1,2")"#, "`\"a,a\\n1,2\"`: two columns have the same name");
    check(r#"csvdecode("a,\"b,c\"\n\"x\"\"y\",2\n")"#, r#"[{"a": "x\"y", "b,c": "2"}]"#);
}

#[test]
fn of_gzip() {
    check(
        r#"base64gunzip(base64gzip(join("", [for i in range(1000) : "ab"]))) == join("", [for i in range(1000) : "ab"])"#,
        "true",
    );
    check(
        r#"base64gunzip("H4sIAAAAAAAA/ypJLS4BAAAA//8BAAD//wx+f9gFAAAA")"#,
        "`\"H4sIAAAAAAAA/ypJLS4BAAAA//8BAAD//wx+f9gFAAAA\"`: the compressed text is damaged: its checksum does not fit",
    );
    check(
        r#"base64gunzip("aGVsbG8=")"#,
        "`\"aGVsbG8=\"`: what is encoded here was not compressed with gzip",
    );
}

#[test]
fn of_more_numbers_and_texts() {
    check("pow(2, -1)", "0.5");
    check("pow(2, 64)", "`2`: the result is too large for a number");
    check("pow(-1, 0.5)", "`-1`: a negative number has no such power");
    check("log(8, 2)", "3.0");
    check("log(0, 10)", "`0`: only a number above 0 has a logarithm");
    check("log(2, 1)", "`1`: the base of a logarithm is a number above 0 other than 1");
    check("parseint(\"-101\", 2)", "-5");
    check("parseint(\"zZ\", 62)", "2231");
    check("parseint(\"-8000000000000000\", 16)", "-9223372036854775808");
    check("parseint(\"0xff\", 16)", "`\"0xff\"`: this text is no whole number to base 16");
    check("parseint(\"1\", 63)", "`63`: the base is a number from 2 to 62");
    check("indent(2, \"a\\n\\nb\\n\")", r#""a\n  \n  b\n  ""#);
    check("indent(-1, \"a\")", "`-1`: the number of blanks is negative");
    check("indent(999999999, \"a\\nb\")", "`999999999`: this makes a text of more than 16 MiB");
    check("chomp(\"a\\r\\n\")", "\"a\"");
    check("title(\"héllo wORLD_foo 3abc it's\")", "\"Héllo WORLD_foo 3abc It'S\"");
    check("[for p in [\"\", \"a\", \"a/b/\", \"/\"] : basename(p)]", r#"[".", "a", "b", "/"]"#);
    check("[for p in [\"\", \"a\", \"a/b/../c\", \"/a\"] : dirname(p)]", r#"[".", ".", "a", "/"]"#);
    check("urlencode(\"a b/ö+~*'()!\")", "\"a+b%2F%C3%B6%2B~%2A%27%28%29%21\"");
    check("urldecode(\"%zz\")", "`\"%zz\"`: a `%` in it is not followed by two hexadecimal digits");
    check("urldecode(\"%ff\")", "`\"%ff\"`: what is encoded here is no text in UTF-8");
    check("index([\"a\"], \"z\")", "`\"z\"`: this value is not in the list");
    check("matchkeys([1], [], [])", "`[]`: there are 1 values and 0 keys");
    check("setproduct([1], [])", "[]");
    check("setproduct(toset([1]), toset([2, 3]))", "{[1, 2], [1, 3]}");
    check(
        "setproduct(range(1000), range(1000))",
        "`setproduct(range(1000), range(1000))`: the product has more than 262144 items in all its lists",
    );
    check(
        "transpose({ a = [1] })",
        "`{ a = [1] }`: every entry must be a list of strings, found a number",
    );
}

#[test]
fn of_files() {
    check(
        "fileset(\"conf\", \"**/*.{txt,json}\")",
        r#"{"a.txt", "b.txt", "more/c.txt", "x.json"}"#,
    );
    check("fileset(\"conf/\", \"m[\")", "`\"m[\"`: a `[` in the pattern is not closed");
    check("fileset(\"conf\", key)", "`key`: the pattern of files cannot be a secret");
    check("templatefile(\"one.tpl\", { x = 3 })", "\"3\"");
    check("[for x in [1, 2] : templatefile(\"one.tpl\", { x = x + 1 })]", r#"["2", "3"]"#);
    check("templatefile(\"one.tpl\", { x = id })", "unknown(\"${value.a.id}${\"\"}\": string)");
    check("templatefile(\"one.tpl\", { x = list[2], y = id })", "\"hunter2\" secret()");
    check(
        "[for x in [1] : templatefile(\"one.tpl\", { y = x })]",
        "`templatefile(\"one.tpl\", { y = x })`: the template is given no value `x`: see line 1 of `one.tpl`",
    );
    check(
        "templatefile(\"one.tpl\", { x = [1] })",
        "`templatefile(\"one.tpl\", { x = [1] })`: a list cannot stand in a text: see line 1 of `one.tpl`",
    );
    check(
        "templatefile(\"reader.tpl\", {})",
        "`templatefile(\"reader.tpl\", {})`: a template cannot call file(): see line 2 of `reader.tpl`",
    );
    check("templatefile(\"none.tpl\", {})", "`\"none.tpl\"`: `none.tpl` was not read");
    check(
        "templatefile(\"one.tpl\", id)",
        "`id`: the values of a template are a map or an object whose names are known",
    );
}

#[test]
fn of_secrets() {
    check("nonsensitive(key)", "\"a\"");
    check("nonsensitive(length(key))", "1");
    check("nonsensitive(\"a\")", "\"a\"");
    check(
        "nonsensitive(\"${key}${id}\")",
        "unknown(nonsensitive(\"${key}${value.a.id}\"): string)",
    );
    check("sha256(key) == sha256(\"a\")", "true secret()");
}

#[test]
fn functions_that_are_missed_have_something_in_their_place() {
    let help = |name: &str| unknown(name, Range { start: 0, end: 20 }).help.unwrap();
    assert!(help("timestamp").starts_with("a plan does not depend on the clock"));
    assert!(help("fileexists").contains("fileset("));
    assert_eq!(help("regexal"), "did you mean `regexall`?");
}
