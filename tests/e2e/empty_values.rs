//! An API that leaves empty values out of its answers, as many do: what the spec empties counts as empty, and
//! what somebody empties by hand is found.

use serde_json::{Value, json};

use crate::acme::Server;
use crate::harness::Project;

const DESCRIPTOR: &str = r#"
[provider]
name = "acme"
key = { env = "ACME_KEY" }
settle = "200ms"

[api.store]
address = { env = "ACME_URL" }
auth = { header = "X-Acme-Key", value = "${key}" }
omits_empty = true

[type.bucket]
list = { call = "store: GET /buckets", items = "items", may_be_left_out = true, paging = { cursor = "after", next = "next" } }
read = "store: GET /buckets/${name}"
key = "name"
identity = "client_id"
create = [ { call = "store: PUT /buckets/${name}?ifAbsent=true", sends = "all" } ]
update = [ { call = "store: PUT /buckets/${name}", sends = "all" } ]
delete = [ { call = "store: DELETE /buckets/${name}" } ]
[type.bucket.attribute]
name = { type = "string", required = true, on_change = "replace" }
ATTRIBUTES
[type.hook]
list = { call = "store: GET /hooks", items = "items", may_be_left_out = true, paging = { cursor = "after", next = "next" } }
read = { call = "store: GET /hooks/${id}", item = "hook" }
identity = { idempotency_key = "Idempotency-Key" }
create = [ { call = "store: POST /hooks", sends = "all", inside = "hook", item = "hook" } ]
update = [ { call = "store: PATCH /hooks/${id}", sends = "changed", inside = "hook", item = "hook" } ]
delete = [ { call = "store: DELETE /hooks/${id}" } ]
[type.hook.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
ATTRIBUTES
"#;

const ATTRIBUTES: &str = r#"
on = { type = "boolean", default = false }
size = { type = "integer" }
note = { type = "string" }
owner = { type = "string", codec = "empty_is_null" }
tags = { type = "set(string)" }
words = { type = "list(string)", codec = "comma" }
labels = { type = "map(string)", codec = "pairs" }
depth = { type = "integer", wire = "policy.depth" }
"#;

const FULL: &str = r#"on = true
size = 1
note = "n"
owner = "o"
tags = ["a"]
words = ["b"]
labels = { c = "d" }
depth = 2
"#;

const EMPTY: &str = r#"on = false
size = 0
note = ""
owner = ""
tags = []
words = []
labels = {}
depth = 0
"#;

fn project(server: &Server) -> Project {
    let project = server.project();
    project.write("acme.provider.toml", DESCRIPTOR.replace("ATTRIBUTES", ATTRIBUTES));
    project
}

/// Writes a spec that gives both objects these attributes, and applies it.
fn want(project: &Project, attributes: &str) {
    let object = |address: &str| format!("[resource.{address}]\nname = \"x\"\n{attributes}");
    let provider = "[provider.acme]\ndescriptor = \"./acme.provider.toml\"\n";
    project.write("plumb.toml", format!("{provider}{}{}", object("bucket.b"), object("hook.h")));
    project.run(&["apply", "--yes"]).expect(0);
}

/// Expects that nothing is left to do and nothing changed outside.
fn is_still(project: &Project) {
    let plan = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(plan.stdout.contains("No changes"), "{}", plan.said());
    project.run(&["drift"]).expect(0);
}

/// Changes both objects by hand.
fn by_hand(server: &Server, change: impl Fn(&mut Value)) {
    server.with(|account| {
        account.buckets.values_mut().chain(account.hooks.values_mut()).for_each(change);
    });
}

/// Returns the value of an attribute on the server. It must be the same for both objects.
fn has(server: &Server, name: &str) -> Value {
    let (bucket, hook) =
        server.with(|it| (it.buckets["x"][name].clone(), it.hooks["hook-1"][name].clone()));
    assert_eq!(bucket, hook, "{name}");
    bucket
}

#[test]
fn what_is_emptied_is_empty() {
    let server = Server::terse();
    let project = project(&server);
    for attributes in ["", FULL, EMPTY, FULL, "", EMPTY] {
        want(&project, attributes);
        is_still(&project);
    }
    assert_eq!(has(&server, "on"), false);
    assert_eq!(has(&server, "tags"), json!([]));
    assert_eq!(has(&server, "words"), "");
    assert_eq!(has(&server, "policy"), json!({"depth": 0}));
}

#[test]
fn what_is_taken_away_by_hand_is_put_back() {
    let server = Server::terse();
    let project = project(&server);
    want(&project, FULL);
    let full = server.with(|it| (it.buckets.clone(), it.hooks.clone()));
    by_hand(&server, |it| {
        for name in ["on", "size", "note", "owner", "tags", "words", "labels", "policy"] {
            it.as_object_mut().unwrap().remove(name);
        }
    });
    let drift = project.run(&["drift"]).expect(2).stdout;
    for name in ["on", "size", "note", "owner", "tags", "words", "labels", "depth"] {
        assert!(drift.contains(name), "{name}: {drift}");
    }
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(server.with(|it| (it.buckets.clone(), it.hooks.clone())), full);
    is_still(&project);
}

#[test]
fn what_an_object_no_longer_has_is_not_brought_back_beside_something_else() {
    let server = Server::terse();
    let project = project(&server);
    want(&project, "size = 1\n");
    by_hand(&server, |it| it["note"] = "theirs".into());
    want(&project, "size = 2\n");
    assert_eq!(has(&server, "note"), "theirs");
    by_hand(&server, |it| it["note"] = "".into());
    want(&project, "size = 3\n");
    assert_eq!(has(&server, "size"), 3);
    assert_eq!(has(&server, "note"), "");
    is_still(&project);
}

#[test]
fn what_the_spec_no_longer_gives_is_cleared_as_the_descriptor_says() {
    let server = Server::terse();
    let project = server.project();
    let ways = [
        ("note", "empty"),
        ("owner", "null"),
        ("tags", "empty"),
        ("words", "empty"),
        ("labels", "empty"),
        ("depth", "absent"),
    ];
    let attributes = ways.iter().fold(ATTRIBUTES.to_owned(), |text, (name, how)| {
        text.replace(&format!("\n{name} = {{"), &format!("\n{name} = {{ unset = \"{how}\","))
    });
    project.write("acme.provider.toml", DESCRIPTOR.replace("ATTRIBUTES", &attributes));
    want(&project, FULL);
    want(&project, "on = true\nsize = 1\n");
    is_still(&project);
    for (name, empty) in [("note", json!("")), ("tags", json!([])), ("words", json!(""))] {
        assert_eq!(has(&server, name), empty, "{name}");
    }
    let (bucket, hook) = server.with(|it| (it.buckets["x"].clone(), it.hooks["hook-1"].clone()));
    // A call with the whole object removes what it leaves out. A call with only changes cannot do that.
    assert_eq!((&bucket["policy"]["depth"], &hook["policy"]["depth"]), (&Value::Null, &json!(2)));
}
