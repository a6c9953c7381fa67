//! The words of a descriptor for its phases, and the durations of steps in the output.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// Servers, by name. Each takes a while to be ready after a call.
#[derive(Default)]
struct Servers(BTreeMap<String, (Value, Option<Instant>)>);

const WHILE: Duration = Duration::from_millis(1_200);

fn answer(servers: &mut Servers, request: &Request) -> Answer {
    let name = request.path.trim_start_matches("/servers").trim_start_matches('/').to_owned();
    let shown = |(server, since): &(Value, Option<Instant>)| {
        let mut server = server.clone();
        server["ready"] = json!(since.is_some_and(|since| since.elapsed() > WHILE));
        server
    };
    match (request.method.as_str(), name.is_empty()) {
        ("GET", true) => {
            let all: Vec<Value> = servers.0.values().map(shown).collect();
            return Answer::new(200, json!(all).to_string());
        }
        ("PUT", false) => {
            let body = serde_json::from_str(&request.body).expect("JSON");
            servers.0.insert(name.clone(), (body, Some(Instant::now())));
        }
        ("DELETE", false) => {
            servers.0.remove(&name);
            return Answer::new(204, "");
        }
        _ => {}
    }
    match servers.0.get(&name) {
        Some(server) => Answer::new(200, shown(server).to_string()),
        None => Answer::new(404, "{}"),
    }
}

const DESCRIPTOR: &str = r#"
[provider]
name = "cloud"

[api.rest]
address = { setting = "url" }

[type.server]
list = "rest: GET /servers"
read = "rest: GET /servers/${name}"
key = "name"
identity = "client_id"
create = [ { call = "rest: PUT /servers/${name}", sends = "all", until = "self.ready", waits_for = "it is ready" } ]
update = [ { doing = "resizing", done = "resized", call = "rest: PUT /servers/${name}", sends = "all", until = "self.ready", waits_for = "it is ready" } ]
delete = [ { call = "rest: DELETE /servers/${name}" } ]

[type.server.attribute]
name = { type = "string", required = true, on_change = "replace" }
size = { type = "integer", default = 1 }
ready = { type = "boolean", computed = true, volatile = true }
"#;

#[test]
fn phases_are_called_by_the_words_of_their_type() {
    let (url, _) = small_server::start::<Servers>(answer);
    let spec = |size: u32| {
        format!(
            "[provider.cloud]\ndescriptor = \"./cloud.toml\"\nurl = \"{url}\"\n\n\
             [resource.server.s]\nname = \"s\"\nsize = {size}\n"
        )
    };
    let project = Project::new(&spec(1));
    project.write("cloud.toml", DESCRIPTOR);
    let made = project.run(&["apply", "--yes"]).expect(0).said();
    let time = made.split("server.s: created in ").nth(1).expect("it was created");
    assert!(time.starts_with(|c: char| c.is_ascii_digit() && c != '0'), "{made}");
    assert!(!time.lines().next().unwrap().contains("ms"), "the wait counts: {made}");

    project.write("plumb.toml", spec(2));
    let resized = project.run(&["apply", "--yes"]).expect(0).said();
    for words in ["server.s: resizing…", "server.s: resized in "] {
        assert!(resized.contains(words), "{words}: {resized}");
    }
    project.write("plumb.toml", spec(3));
    let lines = project.run(&["apply", "--yes", "--json"]).expect(0).stdout;
    assert!(lines.contains("\"doing\":\"resizing\""), "{lines}");
    assert!(lines.contains("\"done\":\"resized\""), "{lines}");

    // If only the answer tells what a create made, the wait after it is a separate step, which makes nothing.
    let ask = DESCRIPTOR.replace("\"client_id\"", "\"ask\"");
    project.write("cloud.toml", ask);
    project.run(&["destroy", "--yes"]).expect(0);
    let made = project.run(&["apply", "--yes"]).expect(0).said();
    let time = made.split("server.s: ready in ").nth(1).expect("it became ready");
    assert!(!time.lines().next().unwrap().contains("ms"), "{made}");
    assert!(!made.contains("activated"), "{made}");
}
