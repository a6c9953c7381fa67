//! A create that the server accepts and carries out later than the descriptor waits for: there is one object.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The time until a machine shows.
const LATE: Duration = Duration::from_secs(3);

const DESCRIPTOR: &str = r#"
[provider]
name = "acme"

[api.rest]
address = { setting = "url" }

[type.machine]
list = "rest: GET /machines"
read = "rest: GET /machines/${id}"
identity = "unique_name"
create = [ { call = "rest: POST /machines", sends = "all", operation = { location = true, until = 'answer.status == "done"', waits_for = "it runs", within = "1s" } } ]
delete = [ { call = "rest: DELETE /machines/${id}" } ]

[type.machine.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true, on_change = "replace" }
"#;

#[derive(Default)]
struct Machines {
    all: Vec<(Instant, Value)>,
    /// True if the server does not show its operations.
    hides_operations: bool,
}

impl Machines {
    fn answer(&mut self, request: &Request) -> Answer {
        let shown = |machines: &[(Instant, Value)]| -> Vec<Value> {
            let shown = machines.iter().filter(|(made, _)| made.elapsed() > LATE);
            shown.map(|(_, it)| it.clone()).collect()
        };
        match (&*request.method, &*request.path) {
            ("POST", _) => {
                let body: Value = serde_json::from_str(&request.body).expect("JSON");
                let id = format!("m{}", self.all.len());
                self.all.push((Instant::now(), json!({"id": id, "name": body["name"]})));
                let mut answer = Answer::new(202, "");
                answer.headers.push("Location: /operations/1".to_owned());
                answer
            }
            ("GET", "/operations/1") if self.hides_operations => Answer::new(404, "{}"),
            ("GET", "/operations/1") => Answer::new(200, r#"{"status": "running"}"#),
            ("GET", "/machines") => Answer::new(200, json!(shown(&self.all)).to_string()),
            ("GET", path) => {
                let id = path.strip_prefix("/machines/");
                let found = shown(&self.all).into_iter().find(|it| it["id"].as_str() == id);
                found.map_or(Answer::new(404, "{}"), |it| Answer::new(200, it.to_string()))
            }
            _ => Answer::new(405, "{}"),
        }
    }
}

#[test]
fn a_create_that_takes_longer_is_not_sent_again() {
    for hides_operations in [false, true] {
        let (url, world) = small_server::start(Machines::answer);
        world.lock().expect("the machines").hides_operations = hides_operations;
        let project = Project::new(&format!(
            "[provider.acme]\nsource = \"./acme.provider.toml\"\nurl = \"{url}\"\n\
             [resource.machine.a]\nname = \"a\"\n"
        ));
        project.write("acme.provider.toml", DESCRIPTOR);
        for _ in 0..2 {
            project.run(&["apply", "--yes"]).expect(0);
        }
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
        assert_eq!(world.lock().expect("the machines").all.len(), 1, "{hides_operations}");
    }
}
