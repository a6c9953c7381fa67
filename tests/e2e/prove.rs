//! `plumb provider prove` against a server with special behaviour: it sorts one list and keeps the order of
//! another, ignores a change, shows objects late, and puts the texts of refusals in unusual places.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The time until an object shows.
const LATE: Duration = Duration::from_millis(700);

#[derive(Default)]
struct Things {
    all: Vec<(Instant, Value)>,
    ids: u64,
}

impl Things {
    fn answer(&mut self, request: &Request) -> Answer {
        let mut answer = self.act(request);
        answer.headers.push("X-RateLimit-Limit: 5000".to_owned());
        answer
    }

    fn act(&mut self, request: &Request) -> Answer {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let id = request.path.strip_prefix("/things/");
        match (request.method.as_str(), id) {
            ("GET", None) => {
                let shown = self.all.iter().filter(|(made, _)| made.elapsed() > LATE);
                Answer::new(200, json!(shown.map(|(_, it)| it).collect::<Vec<_>>()).to_string())
            }
            ("POST", _) => self.make(&body),
            (method, id) => {
                let shows = |(made, it): &(Instant, Value)| {
                    it["id"].as_str() == id && (method != "GET" || made.elapsed() > LATE)
                };
                let Some(at) = self.all.iter().position(shows) else {
                    return Answer::new(404, r#"{"errors": [{"message": "no such thing"}]}"#);
                };
                match method {
                    "DELETE" => drop(self.all.remove(at)),
                    "PATCH" => {
                        let mut body = body;
                        body.as_object_mut().expect("an object").remove("colour");
                        change(&mut self.all[at].1, &body);
                    }
                    _ => {}
                }
                Answer::new(200, self.all.get(at).map_or(json!({}), |it| it.1.clone()).to_string())
            }
        }
    }

    fn make(&mut self, body: &Value) -> Answer {
        if !["small", "large"].contains(&body["size"].as_str().unwrap_or("small")) {
            return Answer::new(500, r#"{"problem": "size"}"#);
        }
        if self.all.iter().any(|(_, it)| it["name"] == body["name"]) {
            return Answer::new(409, r#"{"errors": [{"message": "the name is taken"}]}"#);
        }
        self.ids += 1;
        let mut thing = json!({"id": self.ids.to_string(), "size": "small"});
        change(&mut thing, body);
        self.all.push((Instant::now(), thing.clone()));
        Answer::new(201, thing.to_string())
    }
}

/// Changes a thing: hosts are a set; steps are a list without duplicates that can be given only in the
/// create.
fn change(thing: &mut Value, body: &Value) {
    for (name, value) in body.as_object().expect("an object") {
        let mut value = value.clone();
        if let (Some(items), "hosts") = (value.as_array_mut(), &**name) {
            items.sort_by_key(Value::to_string);
            items.dedup();
        }
        thing[name] = value;
    }
}

const DESCRIPTOR: &str = r#"# Things.
[provider]
name = "acme"

[api.rest]
address = { setting = "url" }
message = ["message", "error"] # to prove: the document does not tell where an error has its text

[type.thing]
list = "rest: GET /things"
read = "rest: GET /things/${id}"
identity = "ask" # to prove: whether names are unique, or can change
create = [ { call = "rest: POST /things", sends = "all" } ]
update = [ { call = "rest: PATCH /things/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /things/${id}" } ]

[type.thing.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
size = { type = "string", default = "small", one_of = ["small", "large"] }
colour = { type = "string", required = true } # Ignored by updates.
hosts = { type = "list(string)", required = true } # to prove: whether the order counts
steps = { type = "list(string)", required = true, on_change = "replace" } # to prove: whether the order counts
ports = { type = "list(integer)", seen_in = "never" } # to prove: whether the order counts
"#;

#[test]
fn the_habits_of_a_server_are_found() {
    let (url, world) = small_server::start(Things::answer);
    let project = Project::new("");
    project.write("acme.toml", DESCRIPTOR);
    let prove = ["provider", "prove", "acme.toml", "--against", &url];
    let ran = project.run(&prove).expect(0);
    let found =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let found: Vec<String> = found.collect();
    let settled = std::fs::read_to_string(project.path("acme.toml")).expect("the descriptor");
    for fact in [
        "thing names are unique",
        "thing.colour an update does not change it",
        "thing.hosts the order does not count: a set",
        "thing.steps the order counts",
        "thing.ports not settled (whether the order counts): no answer shows it",
        "thing a second object of a name is answered with 409, the text at `errors.0.message`",
        "thing a read of what is not there is answered with 404, the text at `errors.0.message`",
        "thing a value that is not allowed of `size` is answered with 500, no text at a known place; \
         that does not prove that nothing happened: a row of `error` can say so",
        "provider calls are limited: x-ratelimit-limit: 5000",
    ] {
        assert!(found.iter().any(|line| line == fact), "{fact}: {found:#?}");
    }
    assert!(found.iter().any(|line| line.starts_with("thing shows in lists after ")), "{found:#?}");
    for line in [
        "# Things.",
        "settle = \"2s\"",
        "message = [\"errors.0.message\", \"message\", \"error\"]",
        "identity = \"unique_name\"",
        "colour = { type = \"string\", required = true, on_change = \"replace\" } # Ignored by updates.",
        "hosts = { type = \"set(string)\", required = true }",
        "steps = { type = \"list(string)\", required = true, on_change = \"replace\" }",
    ] {
        assert!(settled.lines().any(|own| own == line), "{line}: {settled}");
    }
    assert!(ran.stderr.contains("3 of 4 marks are settled"), "{}", ran.stderr);
    let left = &world.lock().expect("the things").all;
    assert!(left.is_empty(), "{left:?}");
    assert!(!project.path("acme.objects.jsonl").exists());
}
