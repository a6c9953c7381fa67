//! An API that ignores a value, and writes another in a form of its own: the apply says so.

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

const DESCRIPTOR: &str = r#"
[provider]
name = "uptime"

[api.rest]
address = { setting = "url" }

[type.monitor]
list = "rest: GET /monitors"
read = "rest: GET /monitors/${id}"
identity = "ask"
create = [ { call = "rest: POST /monitors", sends = "all" } ]
update = [ { call = "rest: PATCH /monitors/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /monitors/${id}" } ]

[type.monitor.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
host = { type = "string", required = true }
note = { type = "string", default = "" }
"#;

/// The one monitor. Its host is written in small letters, and its note never changes.
#[derive(Default)]
struct Monitors(Option<Value>);

impl Monitors {
    fn answer(&mut self, request: &Request) -> Answer {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let host = body["host"].as_str().map(str::to_lowercase);
        match (&*request.method, &*request.path, &mut self.0) {
            ("GET", "/monitors", it) => {
                return Answer::new(200, json!(it.iter().collect::<Vec<_>>()).to_string());
            }
            ("POST", _, it) => {
                let monitor =
                    json!({"id": "m1", "name": body["name"], "host": host, "note": body["note"]});
                *it = Some(monitor);
            }
            ("PATCH", _, Some(it)) => it["host"] = host.map_or(it["host"].clone(), Value::from),
            ("DELETE", _, it) => *it = None,
            _ => {}
        }
        Answer::new(200, json!(self.0).to_string())
    }
}

#[test]
fn values_that_an_api_does_not_take_are_named() {
    let (url, _) = small_server::start(Monitors::answer);
    let spec = |host: &str, note: &str| {
        format!(
            "[provider.uptime]\nsource = \"./uptime.provider.toml\"\nurl = \"{url}\"\n\
             [resource.monitor.a]\nname = \"a\"\nhost = \"{host}\"\nnote = \"{note}\"\n"
        )
    };
    let project = Project::new(&spec("plain.example", "one"));
    project.write("uptime.provider.toml", DESCRIPTOR);
    let made = project.run(&["apply", "--yes"]).expect(0);
    assert!(!made.said().contains("than was sent"), "{}", made.said());

    project.write("plumb.toml", spec("Plain.Example", "two"));
    let changed = project.run(&["apply", "--yes"]).expect(0);
    let words = "monitor.a: the API shows another value than was sent of `host`, `note`; the next plan shows \
                 the difference";
    assert!(changed.said().contains(words), "{}", changed.said());
    project.run(&["plan", "--detailed-exitcode"]).expect(2);
    let events = project.run(&["apply", "--yes", "--json"]).expect(0).stdout;
    assert!(events.contains(r#""differing":["host","note"]"#), "{events}");
}
