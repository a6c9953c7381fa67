//! Rules of a descriptor about other objects of the plan: a parent that must exist, and a quota.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The objects of a server, by path.
#[derive(Default)]
struct Objects(BTreeMap<String, Value>);

fn answer(objects: &mut Objects, request: &Request) -> Answer {
    let (path, body) = (request.path.clone(), serde_json::from_str(&request.body));
    match (request.method.as_str(), path.matches('/').count()) {
        ("GET", 1) => {
            let below = format!("{path}/");
            let found = objects.0.iter().filter(|(path, _)| path.starts_with(&below));
            let found: Vec<&Value> = found.map(|(_, object)| object).collect();
            Answer::new(200, serde_json::json!(found).to_string())
        }
        ("GET", _) => match objects.0.get(&path) {
            Some(object) => Answer::new(200, object.to_string()),
            None => Answer::new(404, "{}"),
        },
        ("PUT", _) => {
            let body: Value = body.expect("JSON");
            objects.0.insert(path, body.clone());
            Answer::new(200, body.to_string())
        }
        ("DELETE", _) => {
            objects.0.remove(&path);
            Answer::new(204, "")
        }
        _ => Answer::new(405, "{}"),
    }
}

const DESCRIPTOR: &str = r#"
[provider]
name = "names"

[api.rest]
address = { setting = "url" }

[type.zone]
list = "rest: GET /zones"
read = "rest: GET /zones/${name}"
key = "name"
identity = "client_id"
create = [ { call = "rest: PUT /zones/${name}", sends = "all" } ]
delete = [ { call = "rest: DELETE /zones/${name}" } ]

[type.zone.attribute]
name = { type = "string", required = true, on_change = "replace" }

[type.record]
list = "rest: GET /records"
read = "rest: GET /records/${name}"
key = "name"
identity = "client_id"
create = [ { call = "rest: PUT /records/${name}", sends = "all" } ]
update = [ { call = "rest: PUT /records/${name}", sends = "all" } ]
delete = [ { call = "rest: DELETE /records/${name}" } ]

[type.record.attribute]
name = { type = "string", required = true, on_change = "replace" }
zone = { type = "string", required = true }
weight = { type = "integer", default = 1 }

[[type.record.rule]]
attribute = "zone"
assert = 'contains([for it in plan.resources : it.new.name if it.type == "zone"], new.zone)'
message = "there is no zone ${new.zone} in this spec"
help = "make it: `[resource.zone.x]`"

[[type.record.rule]]
attribute = "weight"
assert = 'sum([for it in plan.resources : it.new.weight if it.type == "record"]) <= 5'
message = "the weights of all records add up to 5 at most"
"#;

#[test]
fn rules_look_at_other_objects() {
    let (url, world) = small_server::start::<Objects>(answer);
    let spec = |rest: &str| {
        format!(
            "[provider.names]\ndescriptor = \"./names.toml\"\nurl = \"{url}\"\n\
             [resource.zone.z]\nname = \"example.org\"\n[resource.record.a]\nname = \"a\"\n{rest}"
        )
    };
    let project = Project::new(&spec("zone = \"example.com\"\n"));
    project.write("names.toml", DESCRIPTOR);
    let refused = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(refused.contains("there is no zone example.com in this spec"), "{refused}");
    assert!(refused.contains("zone = \"example.com\""), "its line: {refused}");
    assert!(world.lock().unwrap().0.is_empty());

    let good = spec("zone = \"${zone.z.name}\"\nweight = 4\n");
    project.write("plumb.toml", &good);
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    // Unchanged objects count in the quota.
    let more = "[resource.record.b]\nname = \"b\"\nzone = \"example.org\"\n";
    project.write("plumb.toml", format!("{good}{more}weight = 2\n"));
    let refused = project.run(&["plan"]).expect(1).said();
    assert!(refused.contains("the weights of all records add up to 5 at most"), "{refused}");
    project.write("plumb.toml", format!("{good}{more}"));
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(world.lock().unwrap().0.len(), 3);

    // A mistake in such a rule is found when the descriptor is read.
    project.write("names.toml", DESCRIPTOR.replace("it.new.weight", "it.now.weight"));
    let wrong = project.run(&["validate"]).expect(1).said();
    assert!(wrong.contains("now"), "{wrong}");
}
