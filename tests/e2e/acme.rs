//! The example of a custom provider, against a small server with its API: names that the client chooses, PUT,
//! an idempotency key, pages, 409, and a key in a special header.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::examples;
use crate::harness::Project;

pub(crate) const KEY: &str = "canary-acme-key";
const SECRET: &str = "canary-hook-secret";
/// The number of items on a page of the server.
const PAGE: usize = 2;

/// The data and the behaviour of the server.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) buckets: BTreeMap<String, Value>,
    pub(crate) hooks: BTreeMap<String, Value>,
    /// The names that other accounts have: never listed, and never free.
    taken: Vec<String>,
    /// The hooks that were made, by their idempotency keys.
    made: BTreeMap<String, String>,
    /// The number of answers to creates of hooks that still get lost after their effect.
    lose: usize,
    /// True if answers leave out empty values.
    terse: bool,
    /// The requests so far: method and path, with the query.
    log: Vec<String>,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// The status and the body of an answer.
type Answer = (u16, Value);

fn failure(status: u16, message: &str) -> Answer {
    (status, json!({"error": {"message": message}}))
}

impl Account {
    /// Returns the answer to a request; `None` if the answer gets lost.
    fn answer(&mut self, request: &Request) -> Option<Answer> {
        let answer = self.act(request);
        let loses = request.method == "POST" && answer.0 == 201 && self.lose > 0;
        self.lose -= usize::from(loses);
        let (status, body) = answer;
        (!loses).then(|| (status, if self.terse { without_empty(&body) } else { body }))
    }

    fn act(&mut self, request: &Request) -> Answer {
        if request.headers.get("x-acme-key").map(String::as_str) != Some(KEY) {
            return failure(401, "this key is not known");
        }
        let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["buckets"]) => (200, page(&self.buckets, &request.query)),
            ("GET", ["buckets", name]) => found(self.buckets.get(*name)),
            ("PUT", ["buckets", name]) => self.put_bucket(name, request),
            ("DELETE", ["buckets", name]) => self.delete_bucket(name, request),
            ("GET", ["hooks"]) => self.list_hooks(request),
            ("GET", ["hooks", id]) => in_hook(found(self.hooks.get(*id))),
            ("POST", ["hooks"]) => self.make_hook(request),
            ("PATCH", ["hooks", id]) => self.change_hook(id, request),
            ("DELETE", ["hooks", id]) => match self.hooks.remove(*id) {
                Some(_) => (204, Value::Null),
                None => failure(404, "there is no such hook"),
            },
            _ => failure(405, "this cannot be done"),
        }
    }

    fn put_bucket(&mut self, name: &str, request: &Request) -> Answer {
        let absent = request.query.get("ifAbsent").is_some_and(|text| text == "true");
        let old = self.buckets.get(name);
        if self.taken.iter().any(|taken| taken == name) || (absent && old.is_some()) {
            return failure(409, "a bucket of this name exists");
        }
        if !absent && old.is_none() {
            return failure(404, "there is no such bucket");
        }
        let status = if absent { 201 } else { 200 };
        let mut bucket = request.body.clone();
        bucket["createdAt"] = "2026-11-21T00:00:00Z".into();
        let files = old.map_or(json!(0), |old| old["usage"]["files"].clone());
        bucket["usage"] = json!({"files": files});
        self.buckets.insert(name.to_owned(), bucket.clone());
        (status, bucket)
    }

    fn delete_bucket(&mut self, name: &str, request: &Request) -> Answer {
        let Some(bucket) = self.buckets.get(name) else {
            return failure(404, "there is no such bucket");
        };
        let force = request.query.get("force").is_some_and(|text| text == "true");
        if bucket["usage"]["files"] != 0 && !force {
            return failure(409, "the bucket is not empty");
        }
        self.buckets.remove(name);
        (204, Value::Null)
    }

    fn list_hooks(&self, request: &Request) -> Answer {
        if let Some(key) = request.query.get("createdWith") {
            let found: Vec<&Value> =
                self.made.get(key).and_then(|id| self.hooks.get(id)).into_iter().collect();
            return (200, json!({"items": found}));
        }
        (200, page(&self.hooks, &request.query))
    }

    fn make_hook(&mut self, request: &Request) -> Answer {
        let Some(key) = request.headers.get("idempotency-key") else {
            return failure(400, "the key of the create is missing");
        };
        let id =
            self.made.get(key).cloned().unwrap_or_else(|| format!("hook-{}", self.made.len() + 1));
        if self.made.insert(key.clone(), id.clone()).is_none() {
            let mut hook = without_secret(&request.body["hook"]);
            hook["id"] = id.clone().into();
            self.hooks.insert(id.clone(), hook);
        }
        in_hook((201, self.hooks[&id].clone()))
    }

    fn change_hook(&mut self, id: &str, request: &Request) -> Answer {
        let Some(hook) = self.hooks.get_mut(id) else {
            return failure(404, "there is no such hook");
        };
        for (name, value) in without_secret(&request.body["hook"]).as_object().expect("an object") {
            hook[name] = value.clone();
        }
        in_hook((200, hook.clone()))
    }
}

/// Returns a body without its empty values, as many libraries write JSON.
fn without_empty(body: &Value) -> Value {
    let is_empty = |value: &Value| {
        let empty = [json!(null), json!(false), json!(0), json!(""), json!([]), json!({})];
        empty.contains(value)
    };
    match body {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

/// Returns a hook without its secret, which can be written and never read.
fn without_secret(hook: &Value) -> Value {
    let mut hook = hook.clone();
    if let Some(fields) = hook.as_object_mut() {
        fields.remove("secret");
    }
    hook
}

fn in_hook((status, hook): (u16, Value)) -> (u16, Value) {
    if status < 300 { (status, json!({"hook": hook})) } else { (status, hook) }
}

fn found(object: Option<&Value>) -> Answer {
    match object {
        Some(object) => (200, object.clone()),
        None => failure(404, "there is no such thing"),
    }
}

/// Returns the items after a cursor, and the cursor of the next page.
fn page(all: &BTreeMap<String, Value>, query: &BTreeMap<String, String>) -> Value {
    let after = query.get("after").cloned().unwrap_or_default();
    let rest: Vec<(&String, &Value)> = all.iter().filter(|(id, _)| **id > after).collect();
    let items: Vec<&Value> = rest.iter().take(PAGE).map(|(_, item)| *item).collect();
    let next = (rest.len() > PAGE).then(|| rest[PAGE - 1].0.clone());
    json!({"items": items, "next": next})
}

/// The server. Its threads end with the process of the test.
pub(crate) struct Server {
    account: Arc<Mutex<Account>>,
    pub(crate) address: String,
    host: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let host = listener.local_addr().expect("an address").to_string();
        let address = format!("http://{host}/v3");
        let account = Arc::new(Mutex::new(Account::default()));
        let shared = account.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let account = shared.clone();
                std::thread::spawn(move || serve(stream, &account));
            }
        });
        Self { account, address, host }
    }

    /// Starts a server whose answers leave out empty values.
    pub(crate) fn terse() -> Self {
        let server = Self::start();
        server.with(|account| account.terse = true);
        server
    }

    pub(crate) fn project(&self) -> Project {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/acme");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the example");
        let mut project = Project::new(&text("plumb.toml"));
        project.write("acme.provider.toml", text("acme.provider.toml"));
        for (name, value) in [
            ("ACME_URL", self.address.as_str()),
            ("ACME_KEY", KEY),
            ("PLUMB_VAR_HOOK_SECRET", SECRET),
        ] {
            project.set(name, value);
        }
        project
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Account) -> T) -> T {
        look(&mut self.account.lock().expect("no thread panicked"))
    }

    /// Returns the mutating requests so far.
    fn mutations(&self) -> Vec<String> {
        self.with(|account| {
            account.log.iter().filter(|line| !line.starts_with("GET")).cloned().collect()
        })
    }
}

fn serve(stream: TcpStream, account: &Mutex<Account>) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream) else { return };
    let mut account = account.lock().expect("no thread panicked");
    let query: Vec<String> =
        request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    account.log.push(format!("{} {}{mark}{}", request.method, request.path, query.join("&")));
    let Some((status, body)) = account.answer(&request) else { return };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let _sent = write!(
        stream.get_mut(),
        "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let path = path.strip_prefix("/v3")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { method, path, query, headers, body })
}

#[test]
fn a_provider_without_rust_goes_through_everything() {
    let server = Server::start();
    let project = server.project();
    project.run(&["validate"]).expect(0);
    let plan = project.run(&["plan"]).expect(0);
    examples::compare(
        "acme",
        "plan.txt",
        &plan
            .stdout
            .replace(&server.address, "https://storage.acme.example/v3")
            .replace(&server.host, "storage.acme.example"),
    );
    project.run(&["apply", "--yes"]).expect(0);
    let bucket = server.with(|account| account.buckets["reports-of-the-lab"].clone());
    assert_eq!(bucket["policy"]["keepDays"], 90, "{bucket}");
    assert_eq!(bucket["labels"], json!([{"key": "team", "value": "lab"}]));
    assert!(bucket.get("force").is_none(), "what the API does not know is not sent: {bucket}");
    let hook = server.with(|account| account.hooks["hook-1"].clone());
    assert_eq!(hook["events"], "changed,created", "{hook}");
    let again = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(again.stdout.contains("No changes"), "{}", again.stdout);

    let before = server.mutations().len();
    project.write("plumb.toml", spec().replace("keep_days = 90", "keep_days = 60"));
    let plan = project.run(&["plan"]).expect(0);
    assert!(plan.stdout.contains("90 → 60"), "{}", plan.stdout);
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(server.mutations()[before..], ["PUT /buckets/reports-of-the-lab"]);

    server.with(|account| {
        account.hooks.get_mut("hook-1").expect("a hook")["events"] = "deleted".into();
    });
    let drift = project.run(&["drift"]).expect(2);
    assert!(
        drift.stdout.contains("hook.on_report") && drift.stdout.contains("events"),
        "{}",
        drift.stdout
    );
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(server.with(|account| account.hooks["hook-1"]["events"].clone()), "changed,created");

    project.run(&["destroy", "--yes"]).expect(0);
    assert!(server.with(|account| account.buckets.is_empty() && account.hooks.is_empty()));
    assert_eq!(
        server.mutations()[before + 2..],
        ["DELETE /hooks/hook-1", "DELETE /buckets/reports-of-the-lab?force=false",]
    );
    let written = String::from_utf8_lossy(&project.written()).into_owned();
    for secret in [KEY, SECRET] {
        assert!(!written.contains(secret), "{secret} was written");
    }
}

fn spec() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/acme/plumb.toml");
    std::fs::read_to_string(path).expect("the example")
}

#[test]
fn a_conflict_is_said_and_nothing_is_taken_over() {
    let server = Server::start();
    server.with(|account| account.taken.push("reports-of-the-lab".to_owned()));
    let project = server.project();
    let failed = project.run(&["apply", "--yes"]).expect(1);
    assert!(failed.stderr.contains("a bucket of this name exists"), "{}", failed.stderr);
    assert!(failed.stderr.contains("somebody has this already"), "{}", failed.stderr);
    assert_eq!(server.mutations(), ["PUT /buckets/reports-of-the-lab?ifAbsent=true"]);
    // The other account gives the name up, and the same command finishes.
    server.with(|account| account.taken.clear());
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(server.with(|account| (account.buckets.len(), account.hooks.len())), (1, 1));
}

#[test]
fn strangers_on_every_page_are_left_alone() {
    let server = Server::start();
    let stranger = |name: &str| json!({"name": name, "region": "south", "policy": {"keepDays": 1, "versioned": false}, "labels": [], "usage": {"files": 3}});
    let names = ["a-1", "b-2", "m-3", "x-4", "z-5"];
    server.with(|account| {
        account.buckets = names.iter().map(|name| ((*name).to_owned(), stranger(name))).collect();
    });
    let project = server.project();
    project.run(&["apply", "--yes"]).expect(0);
    let again = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(again.stdout.contains("No changes"), "{}", again.stdout);
    assert!(server.with(|account| account.log.iter().any(|line| line == "GET /buckets?after=x-4")));
    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(server.with(|account| account.buckets.keys().cloned().collect::<Vec<_>>()), names);
    // A listed bucket with the wanted name is found while planning, and nothing is called.
    server.with(|account| {
        account.buckets.insert("reports-of-the-lab".to_owned(), stranger("reports-of-the-lab"))
    });
    let before = server.mutations().len();
    let refused = project.run(&["apply", "--yes"]).expect(1);
    assert!(refused.stderr.contains("exists already"), "{}", refused.stderr);
    assert_eq!(server.mutations().len(), before);
}

#[test]
fn a_lost_answer_makes_no_second_hook() {
    let server = Server::start();
    server.with(|account| account.lose = 1);
    let project = server.project();
    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(server.with(|account| account.hooks.len()), 1);
    let again = project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert!(again.stdout.contains("No changes"), "{}", again.stdout);
    project.run(&["destroy", "--yes"]).expect(0);
    assert!(server.with(|account| account.hooks.is_empty()));
}

#[test]
fn a_saved_plan_holds_its_spec_and_its_descriptor() {
    let server = Server::start();
    let project = server.project();
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    // The present content of the files beside the plan does not count.
    project.write("acme.provider.toml", "nothing that can be read");
    project.write("plumb.toml", spec().replace("keep_days = 90", "keep_days = 10"));
    project.run(&["apply", "plan.json"]).expect(0);
    let keeps =
        server.with(|account| account.buckets["reports-of-the-lab"]["policy"]["keepDays"].clone());
    assert_eq!(keeps, 90);
    std::fs::remove_file(project.path("plumb.toml")).unwrap();
    std::fs::remove_file(project.path("acme.provider.toml")).unwrap();
    let refused = project.run(&["apply", "plan.json"]).expect(3);
    assert!(refused.stderr.contains("+ bucket.reports: no change"), "{}", refused.stderr);
}

#[test]
fn its_rules_hold_before_anything_is_called() {
    let server = Server::start();
    let project = server.project();
    project.write("plumb.toml", spec().replace("reports-of-the-lab", "Reports_of_the_lab"));
    let refused = project.run(&["apply", "--yes"]).expect(1);
    assert!(refused.stderr.contains("write \"reports-of-the-lab\""), "{}", refused.stderr);
    project.write("plumb.toml", spec().replace("\"north\"", "\"noth\""));
    let refused = project.run(&["validate"]).expect(1);
    assert!(refused.stderr.contains("north"), "{}", refused.stderr);
    project.write("plumb.toml", spec());
    project.run(&["apply", "--yes"]).expect(0);
    server.with(|account| {
        account.buckets.get_mut("reports-of-the-lab").expect("a bucket")["usage"] =
            json!({"files": 7});
    });
    let before = server.mutations().len();
    let refused = project.run(&["destroy", "--yes"]).expect(1);
    assert!(refused.stderr.contains("holds 7 files"), "{}", refused.stderr);
    assert_eq!(server.mutations().len(), before);
    project.write("plumb.toml", spec().replace("keep_days = 90", "keep_days = 90\nforce = true"));
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    assert!(server.with(|account| account.buckets.is_empty()));
}

#[test]
fn mistakes_in_a_descriptor_are_shown_where_they_stand() {
    let server = Server::start();
    let project = server.project();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/acme");
    let text = std::fs::read_to_string(folder.join("acme.provider.toml")).expect("the example");
    let damaged = text
        .replace("store: GET /hooks\"", "stor: GET /hooks\"")
        .replace("sends = \"changed\"", "sends = \"chnged\"")
        .replace("new.versioned ||", "new.versionned ||")
        .replace("max = 3650", "max = \"much\"");
    project.write("acme.provider.toml", damaged);
    let refused = project.run(&["validate"]).expect(1);
    for word in ["stor", "chnged", "versionned", "`max` wants a number", "acme.provider.toml:"] {
        assert!(refused.stderr.contains(word), "`{word}` is not in\n{}", refused.stderr);
    }
    assert!(!refused.stderr.contains("unknown resource type"), "{}", refused.stderr);
    let json = project.run(&["validate", "--json"]).expect(1).json();
    let all = json["diagnostics"].as_array().expect("a list");
    let errors: Vec<&Value> = all.iter().filter(|d| d["severity"] == "error").collect();
    assert_eq!(errors.len(), 4, "{json}");
    assert!(
        errors.iter().all(|d| d["file"] == "acme.provider.toml" && d["line"].is_u64()),
        "{json}"
    );

    project.write("acme.provider.toml", text);
    for (setting, words) in [
        ("source = \"./nothing.toml\"", ["./nothing.toml cannot be used", "plumb.toml:16:10"]),
        ("source = \"../acme.provider.toml\"", ["cannot be used", "plumb.toml:16:10"]),
        (
            "source = \"./acme.provider.toml\"\nurls = \"http://127.0.0.1:1\"",
            ["no setting `urls`", "did you mean `url`?"],
        ),
        (
            "source = \"./acme.provider.toml\"\nurl = \"nowhere\"",
            ["the address of the API store", "plumb.toml:15:1"],
        ),
    ] {
        project.write("plumb.toml", spec().replace("source = \"./acme.provider.toml\"", setting));
        // The environment overrides the spec.
        let mut command = project.command(&["validate"]);
        command.env_remove("ACME_URL");
        let ran = crate::harness::ran(&command.output().expect("the binary runs"));
        let refused = ran.expect(1);
        for word in words {
            assert!(refused.stderr.contains(word), "`{word}` is not in\n{}", refused.stderr);
        }
        assert!(!refused.stderr.contains("unknown resource type"), "{}", refused.stderr);
    }
}
