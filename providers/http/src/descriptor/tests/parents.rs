//! Parents with mistakes.

use super::{GOOD, said};

const RECORD: &str = r#"
[type.record]
parent = { type = "thing", attributes = { thing = "id" } }
list = "rest: GET /things/${parent.id}/records"
identity = "ask"
create = [ { call = "rest: POST /things/${thing}/records", sends = "all" } ]
delete = [ { call = "rest: DELETE /things/${thing}/records/${id}" } ]

[type.record.attribute]
id = { type = "string", computed = true }
thing = { type = "string", required = true, on_change = "replace", wire = false }
name = { type = "string", required = true, on_change = "replace" }
"#;

#[test]
fn mistakes() {
    let with = |from: &str, to: &str| said(&format!("{GOOD}{}", RECORD.replace(from, to)));
    let found = [
        with("", ""),
        with("type = \"thing\"", "type = \"thng\""),
        with("type = \"thing\"", "type = \"record\""),
        with("{ thing = \"id\" }", "{ }"),
        with("{ thing = \"id\" }", "{ thin = \"id\", name = \"idd\", thing = \"size\" }"),
        with("${parent.id}/", "${parent.idd}/${thing}/"),
        with("\"ask\"", "\"unique_name\""),
        said(&GOOD.replace("GET /things\"", "GET /zones/${zone}/things\"")),
    ];
    insta::assert_snapshot!(found.join("\n--\n"), @r#"
    --
    25:10 there is no type `thng` -> did you mean `thing`?
    --
    25:10 type `record`: its parents go round in a circle [it stands below itself] -> take `parent` from the type at the top
    --
    25:10 a child does not know its parent [`attributes` is empty] -> name the attribute that holds the parent's id, such as `attributes = { zone = "id" }`
    --
    25:10 type `record`: `parent` names the attribute `thin`, which it lacks -> did you mean `thing`?
    25:10 type `record`: `thing` is of another type than its parent's `size` [string and integer] -> give both the same type
    25:10 type `thing`: `parent` names the attribute `idd`, which it lacks -> did you mean `id`?
    --
    26:8 type `record`: a list cannot depend on an object [its call names `thing`] -> list with a call that has no parts to fill in, or once for each parent: with `${parent.id}`, and `parent = { type = "zone", attributes = { zone = "id" } }`
    26:8 type `thing`: `parent` names the attribute `idd`, which it lacks -> did you mean `id`?
    --
    25:10 type `record`: its name is unique below one parent only [`name` may be the name of an object below another thing] -> say `name_attribute = "full_name"`, with `full_name = { type = "string", computed = true, derived = "${thing}|${name}" }`
    --
    11:17 type `thing`: a list cannot depend on an object [its call names `zone`] -> list with a call that has no parts to fill in, or once for each parent: with `${parent.id}`, and `parent = { type = "zone", attributes = { zone = "id" } }`
    "#);
}
