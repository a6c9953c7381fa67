use super::super::parse::{self, Dialect};
use super::*;

/// The names that the expressions of these tests refer to, with their types.
struct Declared;

impl Types for Declared {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let ty = |text: &str| Ok(text.parse().unwrap());
        match root {
            Root::Var(name) => match &**name {
                "n" => ty("integer"),
                "f" => ty("number"),
                "s" => ty("string"),
                "b" => ty("boolean"),
                "any" => ty("any"),
                "list" => ty("list(string)"),
                "set" => ty("set(string)"),
                "map" => ty("map(integer)"),
                "object" => ty("object{name = string, size? = integer}"),
                "objects" => ty("list(object{name = string, size? = integer})"),
                other => Err(Unresolved {
                    message: format!("there is no variable `{other}`"),
                    help: Some("did you mean `n`?".to_owned()),
                    meant: None,
                }),
            },
            Root::EachKey => ty("string"),
            Root::Resource(block) => match &*block.name {
                "one" => ty("object{id? = string, size? = integer, tags? = map(string)}"),
                "many" => ty("map(object{id? = string, size? = integer})"),
                _ => Err(Unresolved {
                    message: format!("there is no resource `{block}`"),
                    help: None,
                    meant: None,
                }),
            },
            _ => Err(Unresolved {
                message: "there is no such name".to_owned(),
                help: None,
                meant: None,
            }),
        }
    }

    fn is_resource(&self, ty: &Type) -> bool {
        let own =
            ["id? = string, size? = integer", "id? = string, size? = integer, tags? = map(string)"];
        own.iter().any(|own| format!("object{{{own}}}").parse() == Ok(ty.clone()))
    }
}

/// `try` and `can` accept an attribute that a value may lack, but not one that a type does not have.
#[test]
fn what_is_tried_may_lack_what_is_looked_for() {
    for text in [
        "can(var.object.x)",
        "can(var.object[\"x\"])",
        "can({ a = 1 }.b)",
        "can(var.object.name.x)",
        "can(upper(var.object.x))",
        "can([for it in var.objects : it.x])",
        "can(var.objects[*].x)",
    ] {
        proves(text, "boolean");
    }
    proves("try(var.object.x, 1)", "any");
    proves("try(try(var.object.x, var.object.y), 1)", "any");
    proves("try({ a = 1 }.b, \"d\")", "any");
    let help = "(there are: name, size)";
    proves("try(1, var.object.x)", &format!("`x`: `var.object` has no attribute `x` {help}"));
    proves("can(1) && var.object.x", &format!("`x`: `var.object` has no attribute `x` {help}"));
    let help = "(there are: id, size, tags)";
    let lacks = |whose: &str| format!("`idd`: {whose} has no attribute `idd` (did you mean `id`?)");
    proves("can(value.one.idd)", &lacks("`value.one`"));
    proves("try(value.many[\"a\"].idd, 1)", &lacks("`value.many[\"a\"]`"));
    proves("can(values(value.many)[*].idd)", &lacks("this"));
    proves(
        "can([for it in [value.one] : it.other])",
        &format!("`other`: `it` has no attribute `other` {help}"),
    );
    proves("can(value.one.tags.x)", "boolean");
}

/// An item of an empty collection, or an attribute of null behind a condition, has the type any: with other
/// values it may exist.
#[test]
fn what_is_empty_may_hold_anything() {
    proves("[for it in [] : it.name]", "list(any)");
    proves("[for it in [] : it.items[0].name]", "list(any)");
    proves("[for it in [] : \"a-${it}\" if it > 3]", "list(string)");
    proves("{ for key, it in {} : key => it.name }", "map(any)");
    proves("{ for key, it in toset([]) : upper(key) => it.name }", "map(any)");
    proves("[for it in values({}) : it.name]", "list(any)");
    proves("[for it in concat([], []) : it.name]", "list(any)");
    proves("[][*].name", "list(any)");
    proves("length([]) > 0 ? [][0].name : \"none\"", "any");
    proves("length([]) > 0 ? one([]).name : \"none\"", "any");
    proves("\"a-${length([]) > 0 ? [][0] : \"none\"}\"", "string");
    proves("null != null ? null.name : \"none\"", "any");
    proves("null != null ? null[\"name\"] : \"none\"", "any");
    proves("null != null ? null[0].name : \"none\"", "any");
    proves("null != null ? [for it in null : it.name] : []", "list(any)");
}

fn shown(text: &str) -> String {
    let expr = parse::template(text, Dialect::Spec).unwrap();
    let mut errors = Vec::new();
    let ty = check(&expr, &Declared, &mut errors);
    if errors.is_empty() {
        return ty.to_string();
    }
    let line = |error: &ExprError| {
        let place = &text[error.range.start as usize..error.range.end as usize];
        let help = error.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("`{place}`: {error}{help}")
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Checks the type of an expression, or all errors with their places.
#[track_caller]
fn proves(text: &str, expected: &str) {
    assert_eq!(shown(&format!("${{{text}}}")), expected, "{text}");
}

#[test]
fn types_of_what_is_right() {
    proves("var.s", "string");
    assert_eq!(shown("a-${var.n}"), "string");
    proves("var.n + 1", "integer");
    proves("var.n + 1.5", "number");
    proves("var.n / 2", "number");
    proves("-var.n", "integer");
    proves("var.n > 1 && !var.b", "boolean");
    proves("var.any + 1", "number");
    proves("var.b ? 1 : 2.5", "number");
    proves("var.b ? var.s : null", "string");
    proves("[1, 2]", "list(integer)");
    proves("[]", "list(null)");
    proves("[1, \"a\"]", "list(any)");
    proves("{ a = 1, b = { c = \"x\" } }", "object{a = integer, b = object{c = string}}");
    proves("{ (var.s) = 1 }", "map(integer)");
    proves("var.object.size", "integer");
    proves("var.object[\"name\"]", "string");
    proves("var.object[var.s]", "any");
    proves("var.map.x", "integer");
    proves("var.map[\"x\"]", "integer");
    proves("var.list[0]", "string");
    proves("value.one.id", "string");
    proves("value.one.tags.x", "string");
    proves("value.many[\"k\"].size", "integer");
    proves("value.many[each.key].size", "integer");
    proves("values(value.many)[*].id", "list(string)");
    proves("var.objects[*].name", "list(string)");
    proves("var.object[*].name", "list(string)");
    proves("var.any.a[0].b", "any");
    proves("value.one == null", "boolean");
}

#[test]
fn types_of_walks() {
    proves("[for x in var.list : upper(x)]", "list(string)");
    proves("[for i, x in var.list : i]", "list(integer)");
    proves("{for k, v in var.map : k => v + 1}", "map(integer)");
    proves("{for k, v in var.map : k => v...}", "map(list(integer))");
    proves("[for k, v in value.many : v.id]", "list(string)");
    proves("[for x in var.any : x.y]", "list(any)");
    proves("[for k, v in var.object : k]", "list(string)");
    proves(
        "[for x in var.s : x]",
        "`var.s`: a string cannot be walked over (`for` walks over lists, sets, maps and objects)",
    );
    proves(
        "[for x in var.list : x + 1]",
        "`x`: expected a number, found a string (convert it with tonumber(…); texts are joined by a template: \"${a}${b}\")",
    );
    proves(
        "[for x in var.list : x if x]",
        "`x`: expected a boolean, found a string (convert it with tobool(…), or compare it: x == \"…\")",
    );
    proves("{for x in var.list : [x] => x}", "`[x]`: a key is text, and this is a list");
    proves("[for x in var.list : y]", "`y`: there is no such name");
}

#[test]
fn types_of_calls() {
    proves("length(var.list)", "integer");
    proves("merge({ a = 1 }, { b = \"x\" })", "object{a = integer, b = string}");
    proves("merge(var.map, { b = 1 })", "map(integer)");
    proves("concat([1], [2.5])", "list(number)");
    proves("flatten([[1], [2]])", "list(integer)");
    proves("toset(var.list)", "set(string)");
    proves("max(1, var.n)", "integer");
    proves("max([1, 2.5]...)", "number");
    proves("keys(value.many)", "list(string)");
    proves("values(var.object)", "list(any)");
    proves("lookup(var.map, \"x\", 0)", "integer");
    proves("coalesce(var.s, \"x\")", "string");
    proves("try(var.any.x, 1)", "any");
    proves("can(var.n)", "boolean");
    proves("sensitive(var.s)", "string");
    proves("file(\"a.txt\")", "string");
    proves("jsondecode(var.s).a.b", "any");
    proves("zipmap(var.list, [1])", "map(integer)");
    proves("chunklist(var.list, 2)", "list(list(string))");
    proves("sum([1, 2])", "integer");
    proves("range(3)", "list(integer)");
    proves("setsubtract(var.set, [\"a\"])", "set(string)");
    proves("join(\",\", var.list)", "string");
}

#[test]
fn wrong_operands() {
    proves(
        "var.s + 1",
        "`var.s`: expected a number, found a string (convert it with tonumber(…); texts are joined by a template: \"${a}${b}\")",
    );
    proves("!var.n", "`var.n`: expected a boolean, found a number");
    proves(
        "var.list && true",
        "`var.list`: expected a boolean, found a list (compare its length: length(…) > 0)",
    );
    proves(
        "null + 1",
        "`null`: expected a number, found null (use coalesce(…, default) where null is possible)",
    );
    proves(
        "var.s == 1",
        "`var.s == 1`: a string never equals a number, so `==` tells nothing (convert one: tostring(…) or tonumber(…))",
    );
    proves(
        "var.set == [\"a\"]",
        "`var.set == [\"a\"]`: a set never equals a list, so `==` tells nothing (make both sets: toset(…))",
    );
    proves(
        "var.b ? 1 : \"x\"",
        "`var.b ? 1 : \"x\"`: one arm is a number, the other a string: both must have one type (convert one: tostring(…), tonumber(…), or write null)",
    );
    proves("var.n ? 1 : 2", "`var.n`: expected a boolean, found a number");
    assert_eq!(
        shown("a-${var.list}"),
        "`var.list`: a list cannot stand in a text (use jsonencode(…) or join(\", \", …))"
    );
    assert_eq!(
        shown("a-${null}"),
        "`null`: null cannot stand in a text (give a text for that case: coalesce(…, \"none\"))"
    );
    proves("{ a = 1, \"a\" = 2 }", "`\"a\"`: the key `a` stands twice (remove one of the two)");
}

#[test]
fn references_to_nothing() {
    proves("var.m", "`var.m`: there is no variable `m` (did you mean `n`?)");
    proves("value.one.sice", "`sice`: `value.one` has no attribute `sice` (did you mean `size`?)");
    proves(
        "value.one.zzzzz",
        "`zzzzz`: `value.one` has no attribute `zzzzz` (there are: id, size, tags)",
    );
    proves(
        "value.many[\"k\"].sise",
        "`sise`: `value.many[\"k\"]` has no attribute `sise` (did you mean `size`?)",
    );
    proves(
        "var.object[\"nme\"]",
        "`\"nme\"`: `var.object` has no attribute `nme` (did you mean `name`?)",
    );
    proves(
        "value.many.id",
        "`value.many.id`: `value.many` has for_each, so it is a map of its instances (write value.many[\"key\"].id for one, values(value.many)[*].id for all)",
    );
    proves(
        "value.many[*].id",
        "`value.many[*].id`: `value.many` has for_each, so it is a map of its instances (write values(value.many)[*] for a list of them)",
    );
    proves(
        "value.one[\"k\"].id",
        "`value.one[\"k\"]`: `value.one` has no for_each, so it has no instances (write value.one.… for its attributes)",
    );
    proves("value.none.id", "`value.none`: there is no resource `value.none`");
    proves(
        "var.objects.name",
        "`name`: a list has no attribute `name` (take it of all items, `[*].name`, or of one, `[0].name`)",
    );
    proves("var.objects[*].nane", "`nane`: this has no attribute `nane` (did you mean `name`?)");
    proves(
        "var.objects[*].nane.x",
        "`var.objects[*].nane.x`: this has no attribute `nane` (did you mean `name`?)",
    );
    proves("var.s.x", "`x`: a string has no attributes, so no `x`");
    proves("var.list[\"a\"]", "`\"a\"`: the index of a list is a number, and this is a string");
    proves("var.map[0]", "`0`: the index of an object or map is a string, and this is a number");
    proves(
        "var.set[0]",
        "`var.set[0]`: a set has no order, so no index (make it a list first: tolist(…)[0])",
    );
    proves("var.n[0]", "`var.n[0]`: a number has no items");
}

#[test]
fn wrong_calls() {
    proves(
        "timestamp()",
        "`timestamp`: there is no function `timestamp` (a plan does not depend on the clock: give the time by a variable, \
         such as --var now=\"$(date -u +%FT%TZ)\")",
    );
    proves("uper(var.n)", "`uper`: there is no function `uper` (did you mean `upper`?)");
    proves(
        "upper(var.n)",
        "`var.n`: `text` of upper() is a string, found a number (write upper(text))",
    );
    proves(
        "upper(var.s, var.s)",
        "`upper(var.s, var.s)`: upper() takes 1 argument, found 2 (write upper(text))",
    );
    proves(
        "lookup(var.map)",
        "`lookup(var.map)`: lookup() takes 2 to 3 arguments, found 1 (write lookup(map, key, default?))",
    );
    proves("max()", "`max()`: max() takes 1 or more arguments, found 0 (write max(number, …))");
    proves(
        "max(var.list...)",
        "`var.list`: `number` of max() is a number, found a string (write max(number, …))",
    );
    proves("max(var.n...)", "`var.n`: `...` takes a list, and this is a number");
    proves(
        "sort([1])",
        "`[1]`: `list` of sort() is a list of strings, found a list (write sort(list))",
    );
    proves(
        "file(var.s)",
        "`var.s`: the path of a file is text that stands in the spec (write the path as plain text, relative to the spec's folder)",
    );
    proves(
        "template(var.s)",
        "`template`: there is no function `template` (did you mean `templatefile`?)",
    );
}

#[test]
fn all_mistakes_are_found_in_one_go() {
    assert_eq!(
        shown("${var.m}-${value.one.sice + var.s}-${upper(1)}"),
        "`var.m`: there is no variable `m` (did you mean `n`?)\n\
         `sice`: `value.one` has no attribute `sice` (did you mean `size`?)\n\
         `var.s`: expected a number, found a string (convert it with tonumber(…); texts are joined by a template: \"${a}${b}\")\n\
         `1`: `text` of upper() is a string, found a number (write upper(text))"
    );
}

#[test]
fn depth_is_no_danger() {
    let deep = format!("${{{}var.n{}}}", "[".repeat(60), "]".repeat(60));
    assert!(shown(&deep).starts_with("list(list("));
    assert_eq!(shown(&format!("${{1{}}}", " + var.n".repeat(120))), "integer");
}
