//! Waits and operations with mistakes.

use super::{GOOD, said};

#[test]
fn mistakes() {
    let with = |keys: &str| {
        said(&GOOD.replace("sends = \"changed\" }", &format!("sends = \"changed\", {keys} }}")))
    };
    let found = [
        with("until = \"self.size > 1\", fails_when = \"self.size\", reason = \"${self.nme}\""),
        with("fails_when = \"self.size > 1\""),
        with("operation = { until = \"answer.done\" }"),
        with("operation = { location = true, call = \"rest: GET /x\", until = \"answer.done\" }"),
        with("operation = { location = true }"),
        with("operation = { call = \"rest: POST /x/${answer.id}\", until = \"self.done\" }"),
        with("operation = { call = \"rest: GET /x/${answr.id}\", until = \"answer.done\" }"),
    ];
    insta::assert_snapshot!(found.join("\n--\n"), @r#"
    16:12 type `thing`: an expression does not hold [`fails_when` is of type integer, not boolean]
    16:12 type `thing`: an expression does not hold [`self` has no attribute `nme`] -> did you mean `name`?
    --
    16:82 `fails_when` belongs to a wait [nothing is waited for] -> add `until`, which says when it is done
    --
    16:81 the operation does not say where it shows [exactly one of `call` and `location` is wanted] -> write `call = "api: GET /operations/${answer.id}"`, or `location = true`
    --
    16:81 the operation does not say where it shows [exactly one of `call` and `location` is wanted] -> write `call = "api: GET /operations/${answer.id}"`, or `location = true`
    --
    16:81 operation has no `until` -> add `until = …`
    --
    16:81 the call cannot be read [an operation is looked at with GET] -> write `api: METHOD /path/${id}`, `api: query field.field` or `api: mutation field(name: ${value})`
    16:81 type `thing`: an expression does not hold [there is no `self` here] -> it sees `answer`
    --
    16:12 type `thing`: the phase names the attribute `answr`, which it lacks -> known are id, name, size
    "#);
}

#[test]
fn bodies() {
    let with = |keys: &str| said(&GOOD.replace("sends = \"changed\" }", &format!("{keys} }}")));
    for good in [
        "sends = \"changed\", body = \"merge_patch\"",
        "sends = \"all\", body = \"form\", inside = \"thing\"",
        "sends = { size = \"${size}\" }, body = \"text\"",
    ] {
        assert_eq!(with(good), "", "{good}");
    }
    let found = [
        "sends = \"changed\", body = \"xml\"",
        "sends = \"changed\", body = \"text\"",
        "sends = \"changed\", body = \"json_patch\", inside = \"x\"",
        "sends = \"changed\", body = \"json_patch\", fields = { x = 1 }",
    ];
    insta::assert_snapshot!(found.map(with).join("\n--\n"), @r#"
    16:76 `xml` is no value of `body` -> known are json, merge_patch, json_patch, form, text, ndjson, yaml, multipart, bytes
    --
    16:76 the body cannot have this form [a text, a list of lines, or bytes are one attribute] -> write `sends = { content = "${content}" }` and nothing beside it
    --
    16:76 the body cannot have this form [a list of changes has no other fields] -> leave out `fields` and `inside`
    --
    16:76 the body cannot have this form [a list of changes has no other fields] -> leave out `fields` and `inside`
    "#);
}
