//! Descriptors with mistakes, and the diagnostics about them.

use engine::diagnostics::Sources;
use engine::schema::SeenIn;

use super::*;

mod keys;
mod parents;
mod prices;
mod waits;

const GOOD: &str = r#"
[provider]
name = "acme"
key = { env = "ACME_KEY" }

[api.rest]
address = { env = "ACME_URL", setting = "url", default = "https://api.acme.example/v1" }
auth = { header = "X-Key", value = "${key}" }

[type.thing]
list = { call = "rest: GET /things", items = "data" }
read = "rest: GET /things/${id}"
identity = "one_time_name"
create = [ { call = "rest: POST /things", sends = { name = "${one_time}", size = "${size}" } },
           { name = "activate", call = "rest: PATCH /things/${id}", sends = { name = "${name}" } } ]
update = [ { call = "rest: PATCH /things/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /things/${id}" } ]

[type.thing.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
size = { type = "integer", min = 0 }
"#;

/// Returns the diagnostics of a descriptor: place, summary, label and help, one line each.
fn said(text: &str) -> String {
    let mut sources = Sources::default();
    let file = sources.add("acme.provider.toml", text);
    let (descriptor, diagnostics) = load(text, file);
    assert_eq!(descriptor.is_some(), !diagnostics.has_errors());
    let line = |d: &engine::diagnostics::Diagnostic| {
        let place = d.span.and_then(|span| sources.position(span));
        let place = place.map_or_else(String::new, |p| format!("{}:{} ", p.line, p.column));
        let label = d.label.as_ref().map_or_else(String::new, |label| format!(" [{label}]"));
        let help = d.help.as_ref().map_or_else(String::new, |help| format!(" -> {help}"));
        format!("{place}{}{label}{help}", d.summary)
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_good_one() {
    assert_eq!(said(GOOD), "");
}

#[test]
fn all_mistakes_in_one_go() {
    let text = GOOD
        .replace("GET /things\"", "FETCH /things\"")
        .replace("auth =", "autth =")
        .replace("rest: DELETE", "rset: DELETE")
        .replace("type = \"integer\"", "type = \"integr\", mni = 0")
        .replace("required = true", "required = true, computed = true")
        .replace("\"changed\"", "\"chnaged\"");
    insta::assert_snapshot!(said(&text), @"
8:1 api has no key `autth` -> did you mean `auth`?
11:17 the call cannot be read [`FETCH` is no method] -> write `api: METHOD /path/${id}`, `api: query field.field` or `api: mutation field(name: ${value})`
16:58 `chnaged` is no value of `sends` -> did you mean `changed`?
17:21 there is no API `rset` -> did you mean `rest`?
21:1 an attribute cannot be required and computed [a spec must give the one and cannot give the other] -> keep one of the two
22:17 `type` has the wrong form [found `integr`] -> `type` wants string, integer, number, boolean, any, list(…), set(…), map(…) or object{…}
22:27 attribute `size` has no key `mni` -> did you mean `min`?
");
}

#[test]
fn names_must_be_there() {
    let text = GOOD
        .replace("\"${size}\"", "\"${siez}\"")
        .replace("type = \"integer\"", "type = \"integer\", image = true")
        .replace("sends = { name = \"${name}\" }", "sends = { nmae = \"${name}\" }")
        + r#"
[[type.thing.rule]]
assert = "new.sice > old.size"
message = "no"
[[type.thing.rule]]
assert = "new.size"
message = "${this}"
"#;
    insta::assert_snapshot!(said(&text), @"
14:12 type `thing`: the phase names the attribute `siez`, which it lacks -> did you mean `size`?
15:12 type `thing`: the phase names the attribute `nmae`, which it lacks -> did you mean `name`?
22:36 the attribute names no image [it is of type integer] -> leave it out: the name of an image is a string
24:1 type `thing`: an expression does not hold [`new` has no attribute `sice`] -> did you mean `size`?
27:1 type `thing`: an expression does not hold [`assert` is of type integer, not boolean]
27:1 type `thing`: an expression does not hold [there is no `this` here] -> a rule sees `old`, `new`, `action` and `plan`
");
}

#[test]
fn what_does_not_fit_together() {
    let text = r#"
[provider]
name = "acme"
key = { default = "hunter2" }
[api.rest]
address = { env = "A" }
auth = { header = "X-Key", value = "no key" }
[[api.rest.error]]
kind = "rejected"
[type.self]
list = "rest: GET /things/${id}"
identity = "one_time_name"
create = [ { call = "rest: POST /things", retry_when = "in_use" } ]
delete = [ { within = "5x" } ]
[type.self.attribute]
for_each = { type = "integer", one_of = ["@gone"], default = "x" }
name = { type = "string", derived = "${naem}", holds = "slef" }
"#;
    insta::assert_snapshot!(said(text), @r#"
    4:7 a descriptor holds no key [this is read by everyone] -> name an environment variable: key = { env = "…" }
    7:8 the authentication sends no key [`value` holds no key such as ${key}] -> write it like `value = "Bearer ${key}"`
    8:1 this row would match every error [it has neither `match` nor `status`] -> say which errors it knows
    10:7 `self` cannot be the name of a type -> choose another name, and give the API's name with `wire`
    10:7 there is no type `slef` -> did you mean `self`?
    10:7 type `self`: a derivation names the attribute `naem`, which it lacks -> did you mean `name`?
    10:7 type `self`: a one-time name is never given [the first phase of a create does not send it as `name`] -> send `name = "${one_time}"`, or name another attribute with `name_attribute`
    10:7 type `self`: a one-time name is never taken back [a create has one phase] -> add a phase `{ name = "activate", … }` that sends the real name
    10:7 type `self`: its key names the attribute `id`, which it lacks -> known are for_each, name
    10:7 type `self`: only texts have lists of allowed values [`for_each` is of type integer] -> use `min` and `max` for numbers
    10:7 type `self`: there is no `update` [`for_each` could not be changed] -> add `update`, or give the attributes `on_change = "replace"`
    10:7 type `self`: what is derived cannot be given [`name` is derived and not computed] -> add `computed = true`
    11:8 type `self`: a list cannot depend on an object [its call names `id`] -> list with a call that has no parts to fill in, or once for each parent: with `${parent.id}`, and `parent = { type = "zone", attributes = { zone = "id" } }`
    13:56 there is no error of this API `in_use` -> there is none
    14:12 the phase does nothing [it has neither `call` nor `until`] -> add a call, or leave the phase out
    14:23 `within` has the wrong form [found `5x`] -> `within` wants a duration such as "250ms", "10s" or "5m"
    16:1 `for_each` cannot be the name of an attribute -> choose another name, and give the API's name with `wire`
    16:41 there is no enumeration `gone` -> there is none
    16:62 the default does not fit [expected integer, found string] -> the attribute is of type integer
    "#);
}

/// A descriptor leaves out an operation that calls nothing; an empty list of phases is a mistake.
#[test]
fn an_update_without_phases_is_left_out() {
    let text = GOOD.replace("size = {", "size = { on_change = \"replace\",");
    let text = text.replace("required = true", "required = true, on_change = \"replace\"");
    let update = "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" } ]";
    assert!(text.contains(update));
    assert_eq!(said(&text.replace(update, "")), "");
    insta::assert_snapshot!(said(&text.replace(update, "update = []")), @"10:7 type `thing`: an operation has no phases [nothing would be called] -> add a phase; an `update` that has nothing to call is left out");
}

/// An error that may come after the effect cannot be a reason for a repetition.
#[test]
fn what_leaves_a_doubt_is_not_tried_again() {
    let with = |kind: &str| {
        let row = format!("error = [ {{ name = \"busy\", status = 503, kind = \"{kind}\" }} ]");
        let text = GOOD.replace("[api.rest]", &format!("[api.rest]\n{row}"));
        said(&text.replace("call = \"rest: DELETE", "retry_when = \"busy\", call = \"rest: DELETE"))
    };
    assert_eq!(with("rejected"), "");
    insta::assert_snapshot!(with("in_doubt"), @"18:27 a call in doubt is not sent again [`busy` may come after the call did its work] -> leave it out: what such a call did is looked up; or, if the error proves that nothing happened, give its row another `kind`");
}

/// A lost create is looked up by an attribute that it sends, and an id does not change.
#[test]
fn objects_can_be_found_again() {
    let never = said(&GOOD.replace("name = \"${one_time}\"", "name = \"${name}\""));
    insta::assert_snapshot!(never, @r#"10:7 type `thing`: a one-time name is never given [the first phase of a create does not send it as `name`] -> send `name = "${one_time}"`, or name another attribute with `name_attribute`"#);
    let elsewhere = GOOD.replace("read =", "name_attribute = \"id\"\nread =");
    assert!(said(&elsewhere).contains("does not send it as `id`"), "{}", said(&elsewhere));
    let key = |rest: &str| {
        let text = GOOD.replace("read =", "key = \"name\"\nread =");
        said(&text.replace("required = true", &format!("required = true{rest}")))
    };
    assert_eq!(key(", on_change = \"replace\""), "");
    let secret = GOOD.replace("computed = true", "computed = true, sensitive = true");
    insta::assert_snapshot!(said(&secret), @"10:7 type `thing`: its key is a secret [ids are shown and stored in clear] -> name another attribute with `key`, or take `sensitive` from `id`");
    insta::assert_snapshot!(key(""), @r#"10:7 type `thing`: its key can change [an object whose `name` changed could not be found any more] -> give `name` `on_change = "replace"`, or `computed = true`"#);
}

/// A derived key must not depend on attributes that change in place.
#[test]
fn a_key_follows_from_nothing_that_changes() {
    let with = |zone: &str| {
        let key = "key = \"whole\"\nlist = ";
        let whole = "whole = { type = \"string\", computed = true, derived = \"${zone}|${id}\", wire = false }";
        said(&format!(
            "{}{whole}\nzone = {{ type = \"string\"{zone} }}\n",
            GOOD.replacen("list = ", key, 1)
        ))
    };
    assert_eq!(with(", on_change = \"replace\""), "");
    assert_eq!(with(", computed = true"), "");
    insta::assert_snapshot!(with(""), @r#"10:7 type `thing`: its key can change [an object whose `zone` changed could not be found any more] -> give `zone` `on_change = "replace"`"#);
}

/// A read may use only the id and attributes that lists show; a search for a lost create may use only
/// attributes that were sent.
#[test]
fn what_looks_for_objects_is_filled_in_with_what_is_known() {
    let with = |path: &str, attribute: &str| {
        let text = GOOD.replace("GET /things/${id}", &format!("GET /zones/{path}/things/${{id}}"));
        said(&(text + attribute))
    };
    assert_eq!(with("${zone}", "zone = { type = \"string\", computed = true }"), "");
    assert_eq!(with("${name}", ""), "");
    let derived = "of = { type = \"string\", computed = true, derived = \"x-${name}\", wire = { rest = false } }";
    assert_eq!(with("${of}", derived), "");
    let unseen = [
        with("${znoe}", "zone = { type = \"string\" }"),
        with("${zone}", "zone = { type = \"string\", seen_in = \"read\" }"),
        with("${zone}", "zone = { type = \"string\", seen_in = \"never\" }"),
        with("${zone}", "zone = { type = \"string\", wire = { rest = false } }"),
        with("${one_time}", ""),
    ];
    insta::assert_snapshot!(unseen.join("\n"), @"
12:8 type `thing`: `read` names the attribute `znoe`, which it lacks -> did you mean `zone`?
12:8 type `thing`: `read` cannot be filled in with what no list shows [`zone` does not show in lists] -> list with a call that shows `zone`, or read with one that names `id` alone
12:8 type `thing`: `read` cannot be filled in with what no list shows [`zone` does not show in lists] -> list with a call that shows `zone`, or read with one that names `id` alone
12:8 type `thing`: `read` cannot be filled in with what no list shows [`zone` does not show in lists] -> list with a call that shows `zone`, or read with one that names `id` alone
12:8 type `thing`: `read` names the attribute `one_time`, which it lacks -> known are id, name, size
");
    let find = |path: &str| {
        said(&GOOD.replace("read =", &format!("find = \"rest: GET /things?{path}\"\nread =")))
    };
    assert_eq!(find("by=${one_time}&size=${size}"), "");
    insta::assert_snapshot!([find("by=${siez}"), find("by=${id}")].join("\n"), @"
12:8 type `thing`: `find` names the attribute `siez`, which it lacks -> did you mean `size`?
12:8 type `thing`: `find` cannot be filled in with what the API says [`id` of a lost create is not known] -> search by what a spec gives, or by `${one_time}`
");
}

/// A search with several calls is a mistake, because only one call would be made.
#[test]
fn a_search_is_one_call() {
    let find = "find = [\"rest: GET /a?by=${one_time}\", \"rest: GET /b?by=${one_time}\"]\nread =";
    let said = said(&GOOD.replace("read =", find));
    assert!(said.contains("a search is one call [these are 2] -> keep the one"), "{said}");
}

/// `done` is only for changes and deletes: an object that a create meets belongs to someone else.
#[test]
fn a_create_is_not_done_already() {
    let row = "error = [ { status = 409, kind = \"done\" } ]";
    let text = GOOD.replace("[api.rest]", &format!("[api.rest]\n{row}"));
    assert_eq!(said(&text), "");
    let other = "[api.new]\naddress = { env = \"NEW_URL\" }\n";
    let text = GOOD
        .replace("[api.rest]", &format!("{other}{row}\n[api.rest]"))
        .replace("rest: POST", "new: POST");
    insta::assert_snapshot!(said(&text), @"8:11 a create is not done because something is there already [this API is called by creates alone, for which `done` does not count] -> leave `kind` out: the object may belong to someone else; an import takes it over");
}

/// A row for a refusal with status 200 needs an API with `message`, the path to the text of an error.
#[test]
fn an_error_with_success_says_where_it_is_told() {
    let with = |row: &str| said(&GOOD.replace("[api.rest]", &format!("[api.rest]\n{row}")));
    let row = "error = [ { status = 200, match = \"denied\" } ]";
    insta::assert_snapshot!(with(row), @r#"7:11 an answer with success is no error by its status [nothing says where such an answer tells of its error] -> add `message = "…"` to the API, the path to the text of an error"#);
    assert_eq!(with(&format!("message = \"error\"\n{row}")), "");
}

/// `omits_empty` is a boolean of an API.
#[test]
fn what_is_left_out_is_said_of_an_api() {
    let with = |line: &str| said(&GOOD.replace("[api.rest]", &format!("[api.rest]\n{line}")));
    assert_eq!(with("omits_empty = true"), "");
    insta::assert_snapshot!(with("omits_empty = \"yes\""), @"7:15 `omits_empty` has the wrong form [found `yes`] -> `omits_empty` wants true or false");
    insta::assert_snapshot!(with("omit_empty = true"), @"7:1 api has no key `omit_empty` -> did you mean `omits_empty`?");
    let elsewhere = said(&GOOD.replace("read =", "omits_empty = true\nread ="));
    assert!(elsewhere.contains("type `thing` has no key `omits_empty`"), "{elsewhere}");
}

#[test]
fn pages_are_asked_for_over_rest() {
    let with = |call: &str| {
        let list = format!("list = {{ call = \"{call}\", paging = {{ page = \"page\" }} }}");
        said(&GOOD.replace(r#"list = { call = "rest: GET /things", items = "data" }"#, &list))
    };
    assert_eq!(with("rest: GET /things"), "");
    insta::assert_snapshot!(with("rest: query things"), @"11:48 the paging needs a REST call [a GraphQL list is read in one call] -> list with a REST call, or with arguments that show all, such as `first: 1000`");
}

#[test]
fn what_is_only_looked_up_is_neither_given_nor_called_to_change() {
    let type_of = |more: &str, id: &str| {
        let head = GOOD.split("[type.thing]").next().expect("a type");
        said(&format!(
            "{head}[type.price]\ndata_only = true\nlist = \"rest: GET /prices\"\n{more}\n\
             [type.price.attribute]\nid = {{ type = \"string\"{id} }}\n"
        ))
    };
    assert_eq!(type_of("", ", computed = true"), "");
    let delete = "delete = [ { call = \"rest: DELETE /prices/${id}\" } ]";
    let wrong = [type_of(delete, ", computed = true"), type_of("", ", on_change = \"replace\"")];
    insta::assert_snapshot!(wrong.join("\n"), @"
    10:7 type `price`: objects that are only looked up do not change [`create`, `update`, `delete` and `find` are for what specs manage] -> remove them, or remove `data_only`
    10:7 type `price`: objects that are only looked up are not given anything [`id` is not computed] -> add `computed = true` to `id`, or remove `data_only`
    ");
    assert!(type_of("identity = \"ask\"", ", computed = true").contains("no key `identity`"));
}

#[test]
fn what_is_no_descriptor() {
    insta::assert_snapshot!(said("a = [1,\nb ="), @"
2:1 the descriptor is not TOML [string values must be quoted, expected literal string]
2:3 the descriptor is not TOML [unexpected `=` in array, expected value, `]`]
2:4 the descriptor is not TOML [unclosed array, expected `]`]
");
    insta::assert_snapshot!(said(""), @"
1:1 the descriptor has no `api` -> add `api = …`
1:1 the descriptor has no `provider` -> add `provider = …`
1:1 the descriptor has no `type` -> add `type = …`
");
    assert!(said(&"[".repeat(100_000)).contains("not TOML"));
    assert!(said(&format!("a = {}1{}", "[".repeat(10_000), "]".repeat(10_000))).contains("not"));
    assert!(said(&" ".repeat(BYTES_MAX + 1)).contains("longer than"));
}

#[test]
fn codecs_and_wires() {
    let text = GOOD.replace(
        "size = { type = \"integer\", min = 0 }",
        r#"size = { type = "integer", wire = { rest = { name = "a.b", read = false } } }
tags = { type = "map(string)", codec = ["pairs", { ignore_keys = ["X"] }] }
on = { type = "boolean", codec = { values = [["OFF", false], ["ON", true]] } }
bad = { type = "string", codec = { values = [1], join = "," } }
worse = { type = "string", codec = "coma", wire = { rset = "x" } }"#,
    );
    insta::assert_snapshot!(said(&text), @"
25:45 `values` has the wrong form [found array] -> `values` wants pairs of a wire value and an attribute's value
26:36 `coma` is no value of `codec` -> did you mean `comma`?
26:53 there is no API `rset` -> did you mean `rest`?
");
}

/// An attribute that no API knows is in no answer, whatever else the descriptor says about it.
#[test]
fn what_no_api_knows_is_local() {
    let seen = |size: &str| {
        let text = GOOD.replace("type = \"integer\", min = 0", size);
        let size =
            load(&text, FileId(0)).0.unwrap().schema().types["thing"].attributes["size"].clone();
        (size.local, size.seen_in)
    };
    for nowhere in ["wire = false", "wire = { rest = false }", "wire = false, seen_in = \"read\""] {
        let size = format!("type = \"integer\", {nowhere}");
        assert_eq!(seen(&size), (true, SeenIn::Never), "{nowhere}");
    }
    for known in ["type = \"integer\"", "type = \"string\", computed = true, derived = \"${name}\""]
    {
        assert_eq!(seen(known), (false, SeenIn::List), "{known}");
    }
}

/// An attribute can be merged if its keys are known and are sent without a change.
#[test]
fn what_can_be_cleared() {
    let of = |attribute: &str| {
        let head = "[type.thing.attribute]\n";
        let text = GOOD.replace(head, &format!("{head}x = {{ {attribute} }}\n"));
        assert_ne!(text, GOOD);
        said(&text)
    };
    for good in [
        "type = 'integer', unset = 'null'",
        "type = 'map(string)', unset = 'empty'",
        "type = 'integer', server_default = true, unset = 'absent'",
        "type = 'integer', server_value = 3, unset = 'null'",
        "type = 'integer', server_value = 3, on_change = 'replace'",
        "type = 'integer', seen_in = 'never', unset = 'absent'",
    ] {
        assert_eq!(of(good), "", "{good}");
    }
    let found = [
        "type = 'integer', unset = 'empty'",
        "type = 'string', default = 'x', unset = 'null'",
        "type = 'string', required = true, unset = 'null'",
        "type = 'string', computed = true, unset = 'null'",
        "type = 'string', on_change = 'replace', unset = 'null'",
        "type = 'string', wire = false, unset = 'null'",
        "type = 'string', seen_in = 'never', server_default = true, unset = 'absent'",
        "type = 'string', unset = 'nul'",
    ];
    insta::assert_snapshot!(found.map(of).join("\n"), @r#"
    20:33 the attribute cannot be cleared [its type has no empty value] -> write `unset = "null"` or `unset = "absent"`
    20:47 the attribute cannot be cleared [it goes back to its default] -> leave `unset` away, or the default
    20:49 the attribute cannot be cleared [a spec cannot leave it out] -> leave `unset` away: it is for optional attributes
    20:49 the attribute cannot be cleared [a spec cannot leave it out] -> leave `unset` away: it is for optional attributes
    20:55 the attribute cannot be cleared [it cannot be changed in place] -> leave `unset` away: nothing can clear it
    20:46 the attribute cannot be cleared [no API knows it] -> leave `unset` away
    20:74 the attribute cannot be cleared [nothing shows what the API makes of it] -> leave `unset` away, or `server_default`
    20:32 `nul` is no value of `unset` -> did you mean `null`?
    "#);
}

/// A default that a spec could not give would be planned without a word.
#[test]
fn a_default_keeps_its_bounds() {
    let of = |attribute: &str| {
        let head = "[type.thing.attribute]\n";
        said(&GOOD.replace(head, &format!("{head}x = {{ {attribute} }}\n")))
    };
    for good in ["type = 'integer', default = 1, min = 1", "type = 'integer', min = 1"] {
        assert_eq!(of(good), "", "{good}");
    }
    let found = [
        "type = 'integer', default = 0, min = 1, unit = 'GB'",
        "type = 'string', default = 'small', one_of = ['big', 'smal']",
        "type = 'list(string)', length_min = 1, default = []",
    ];
    insta::assert_snapshot!(found.map(of).join("\n"), @r#"
    20:35 the default is not allowed [x is 0 and must be at least 1 GB] -> write 1 or more
    20:34 the default is not allowed [x is "small", which is not one of the 2 known values] -> did you mean "smal"?
    20:56 the default is not allowed [x has no items and must have at least 1 item] -> change the default, or the bound
    "#);
}

#[test]
fn what_is_compared_by_its_form() {
    let of = |attribute: &str| {
        let head = "[type.thing.attribute]\n";
        said(&GOOD.replace(head, &format!("{head}x = {{ {attribute} }}\n")))
    };
    for good in ["type = 'string', equal_as = 'size'", "type = 'map(string)', equal_as = 'json'"] {
        assert_eq!(of(good), "", "{good}");
    }
    let found = ["type = 'integer', equal_as = 'size'", "type = 'string', equal_as = 'sice'"];
    insta::assert_snapshot!(found.map(of).join("\n"), @"
    20:36 the attribute has one form [a value of type integer has no text] -> leave `equal_as` away: it is for texts, and for collections of texts
    20:35 `sice` is no value of `equal_as` -> did you mean `size`?
    ");
}

#[test]
fn the_only_object_of_a_type() {
    let of = |keys: &str, attribute: &str| {
        said(&format!(
            "[provider]\nname = 'x'\n[api.rest]\naddress = {{ default = 'https://x.example' }}\n[type.settings]\n\
             singleton = 'settings'\n{keys}\n[type.settings.attribute]\ntheme = {{ type = 'string'{attribute} }}\n"
        ))
    };
    let read = "read = 'rest: GET /settings'";
    let update = "update = [ { call = 'rest: PATCH /settings', sends = 'changed' } ]";
    assert_eq!(of(&format!("{read}\n{update}"), ""), "");
    let reset = "delete = [ { call = 'rest: DELETE /settings' } ]";
    assert_eq!(of(&format!("{read}\n{update}\n{reset}"), ""), "");
    let create = "create = [ { call = 'rest: POST /settings', sends = 'all' } ]";
    let found = [
        of(update, ""),
        of(read, ""),
        of(&format!("{read}\n{update}\n{create}"), ""),
        of(&format!("{read}\n{update}"), ", on_change = 'replace'"),
        of(
            &format!(
                "{read}\n{update}\nparent = {{ type = 'settings', attributes = {{ theme = 'theme' }} }}"
            ),
            "",
        ),
    ];
    insta::assert_snapshot!(found.join("\n--\n"), @r#"
    5:7 type `settings`: the only object of a type is read [nothing reads it] -> add `read = "api: GET /settings"`
    --
    5:7 type `settings`: there is no `update` [`theme` could not be changed] -> add `update`, or give the attributes `on_change = "replace"`
    --
    5:7 type `settings`: the only object of a type is never made [`create` and `find` are for objects that are made] -> remove them, or remove `singleton`
    --
    5:7 type `settings`: the only object of a type is never replaced [a change of `theme` would] -> remove `on_change` of `theme`
    --
    5:7 type `settings`: the only object of a type stands alone [`parent` and `data_only` are for objects of which there are several] -> remove them, or remove `singleton`
    9:10 type `settings`: its parents go round in a circle [it stands below itself] -> take `parent` from the type at the top
    "#);
}

#[test]
fn what_can_be_merged() {
    let with = |rest: &str| said(&GOOD.replace("type = \"integer\", min = 0", rest));
    for rest in [
        r#"type = "map(string)", merges = true"#,
        r#"type = "any", merges = true, codec = { ignore_keys = ["x"] }"#,
        r#"type = "string", merges = false"#,
    ] {
        assert_eq!(with(rest), "", "{rest}");
    }
    let wrong = [
        r#"type = "object{a = string}", merges = true"#,
        r#"type = "map(string)", merges = true, sensitive = true"#,
        r#"type = "map(string)", merges = true, codec = "pairs""#,
        r#"type = "any", merges = true, wire = { rest = { codec = "json" } }"#,
        r#"type = "any", merges = 1"#,
    ];
    insta::assert_snapshot!(wrong.map(with).join("\n"), @r"
22:48 the attribute cannot be merged [it has no keys of its own] -> leave it out: it is for `map(…)` and `any`
22:41 the attribute cannot be merged [the keys of a secret are not known] -> leave it out: a secret is sent as a whole
22:41 the attribute cannot be merged [a codec makes something else of its keys] -> keep one of the two; `ignore_keys` may stay
22:33 the attribute cannot be merged [a codec makes something else of its keys] -> keep one of the two; `ignore_keys` may stay
22:33 `merges` has the wrong form [found integer] -> `merges` wants true or false
");
}

/// Any damage to a descriptor leads to a diagnostic or has no effect, and reading it ends.
#[test]
fn damaged_descriptors_do_no_harm() {
    for cut in (0..GOOD.len()).filter(|at| GOOD.is_char_boundary(*at)) {
        said(&GOOD[..cut]);
        said(&GOOD[cut..]);
        let next = (cut + 7).min(GOOD.len());
        said(&format!("{}{}", &GOOD[..cut], &GOOD[next..]));
        said(&format!("{}${{{}", &GOOD[..cut], &GOOD[cut..]));
    }
}

/// The `when` of a variant sees the attributes, and the live object as `old`.
#[test]
fn a_variant_is_chosen_by_what_changes() {
    let variant = |when: &str| {
        let update = "[ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" } ]";
        format!("{GOOD}\n[[type.thing.variant]]\nwhen = '{when}'\nupdate = {update}\n")
    };
    let renamed = GOOD.replace("size =", "old =").replace("${size}", "${old}");
    for (text, found) in [
        (variant("size != old.size"), ""),
        (variant("size != old.sise"), "[`old` has no attribute `sise`] -> did you mean `size`?"),
        (variant("size != new.size"), "`when` names the attribute `new`, which it lacks"),
        (variant("old.size"), "`when` is of type integer, not boolean"),
        (renamed, "`old` cannot be the name of an attribute"),
    ] {
        let said = said(&text);
        assert!(said.is_empty() == found.is_empty() && said.contains(found), "{said}");
    }
}
