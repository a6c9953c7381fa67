//! Checks after an apply and by `plumb check`, with real jobs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, Service, data, ran, wait_for};
use crate::recording_proxy::{Mood, Recorder, read_message};

const RESOURCES: &str = r#"
[variable.word]
type = "string"
default = "hi"

[local]
wanted = "COMPLETED"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1.0"
is_serverless = true

[resource.endpoint.chat]
for_each = ["eu"]
name = "chat-${each.key}"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_max = 1
"#;

const PASSING: &str = r#"
[check.answers]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { prompt = "${var.word}" } }
assert = 'job.status == local.wanted && job.output.prompt == "hi" && job.executionTime >= 0'
message = "the endpoint does not answer"

[check.bounded]
assert = 'endpoint.chat["eu"].workers_max <= 2'
"#;

fn spec(checks: &str) -> String {
    format!("{RESOURCES}{checks}")
}

#[test]
fn checks_run_after_an_apply_and_on_their_own() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = Project::with(&spec(PASSING), &service);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(applied.stderr.contains("passed  answers\npassed  bounded\n"), "{}", applied.stderr);
    assert!(applied.stderr.contains("2 checks passed."), "{}", applied.stderr);
    let checked = project.run(&["check"]).expect(0);
    assert_eq!(checked.stdout, "passed  answers\npassed  bounded\n");
    let report = project.run(&["check", "--json"]).expect(0).json();
    assert_eq!(
        (&report["format"], &report["passed"], &report["failed"]),
        (&"plumb-checks/1".into(), &2.into(), &0.into())
    );
    let runs = || service.mutations().iter().filter(|op| *op == "POST /run").count();
    assert_eq!(runs(), 3);
    project.run(&["apply", "--yes", "--no-checks"]).expect(0);
    project.run(&["apply", "--yes", "--refresh-only"]).expect(0);
    project.run(&["plan"]).expect(0);
    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(runs(), 3, "no other command runs a check");
}

#[test]
fn a_failing_check_says_why_and_the_apply_stays_done() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let failing = r#"
[check.fails]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { fail = "no luck" } }
assert = 'job.status == "COMPLETED"'
message = "it answers ${job.status}"

[check.late]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { sleep_ms = 60000 }, timeout = "1s" }
assert = "true"

[check.unclear]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { a = 1 } }
assert = "job.output.nothing.inside == 1"
"#;
    let project = Project::with(&spec(failing), &service);
    let applied = project.run(&["apply", "--yes"]).expect(1);
    for said in [
        "failed  fails: it answers FAILED\n",
        "is FAILED: no luck\n",
        "did not end within 1.0 s",
        "3 of 3 checks failed.",
        "The apply itself is done",
    ] {
        assert!(applied.stderr.contains(said), "{said}: {}", applied.stderr);
    }
    assert!(project.run(&["plan"]).expect(0).said().contains("No changes"));
    let lines = project.run(&["apply", "--yes", "--json"]).expect(1).stdout;
    let checks: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .filter(|event: &serde_json::Value| event["event"] == "check")
        .collect();
    assert_eq!(checks.len(), 3, "{lines}");
    assert_eq!(checks[0]["check"]["passed"], false);
    assert_eq!(checks[0]["check"]["message"], "it answers FAILED");
    assert!(checks[2]["check"]["line"].is_u64(), "{lines}");
    let report = project.run(&["check", "--json"]).expect(1).json();
    assert_eq!((&report["passed"], &report["failed"]), (&0.into(), &3.into()));
    let health = project.run(&["job", "health", "endpoint.chat[eu]", "--json"]).expect(0).json();
    assert_eq!(health["jobs"]["inQueue"], 0, "what was late is cancelled: {health}");
}

/// The job of a check does not go to an idle worker from before the apply, which would answer at once.
#[test]
fn a_check_after_an_apply_is_about_what_was_applied() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let worker = |more: &str, word: &str| {
        let image = "image_name = \"registry.example/worker:1.0\"\n";
        spec(&format!(
            "\n[check.answers]\n\
             job = {{ endpoint = '${{endpoint.chat[\"eu\"].id}}', input = {{ environment = \"WORD\" }}, timeout = \"5s\" }}\n\
             assert = 'job.output == \"{word}\"'\n"
        ))
        .replace(image, &format!("{image}{more}\n"))
    };
    let project = Project::with(&worker("env = { WORD = \"one\" }", "one"), &service);
    project.run(&["apply", "--yes"]).expect(0);
    for word in ["two", "three"] {
        project.write("plumb.toml", worker(&format!("env = {{ WORD = \"{word}\" }}"), word));
        project.run(&["apply", "--yes"]).expect(0);
    }
    let broken = "env = { WORD = \"three\" }\ndocker_start_cmd = [\"/bin/false\"]";
    project.write("plumb.toml", worker(broken, "three"));
    let failed = project.run(&["apply", "--yes"]).expect(1);
    assert!(failed.stderr.contains("did not end within 5.0 s"), "{}", failed.stderr);
}

#[test]
fn checks_see_what_is_live() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let checks = "\n[check.bounded]\nassert = 'endpoint.chat[\"eu\"].workers_max == 1'\n\
                  message = 'there may be ${endpoint.chat[\"eu\"].workers_max} workers'\n";
    let project = Project::with(&spec(checks), &service);
    project.run(&["apply", "--yes"]).expect(0);
    let id = service.list("/endpoints")[0]["id"].as_str().unwrap().to_owned();
    let change = serde_json::json!({ "workersMax": 2 });
    service.request("PATCH", &format!("/endpoints/{id}"), Some(&change));
    let failed = project.run(&["check"]).expect(1);
    assert!(failed.stdout.contains("there may be 2 workers"), "{}", failed.stdout);
    service.request("DELETE", &format!("/endpoints/{id}"), None);
    let gone = project.run(&["check"]).expect(1);
    assert!(gone.stdout.contains("is not there"), "{}", gone.stdout);
}

/// Checks after an apply and by `plumb check` see disabled resources as the plan does.
#[test]
fn checks_see_what_is_disabled_as_null() {
    let spec = r#"
[variable.on]
default = false

[resource.value.off]
input = "x"
lifecycle = { enabled = "${var.on}" }

[resource.value.follows]
input = "x"
lifecycle = { enabled = "${value.off != null}" }

[resource.value.some]
for_each = { a = true, b = false }
input = "${each.key}"
lifecycle = { enabled = "${each.value}" }

[resource.value.none]
for_each = {}
input = "x"

[resource.value.there]
input = "x"

[output.seen]
value = '${jsonencode([value.off, value.follows, value.some["b"], keys(value.some), value.none])}'

[check.seen]
assert = 'jsonencode([value.off, value.follows, value.some["b"], keys(value.some), value.none]) == "[null,null,null,[\"a\",\"b\"],{}]"'
message = 'it is ${jsonencode([value.off, value.follows, value.some["b"], keys(value.some), value.none])}'

[check.there]
assert = 'value.there.output == "x" && value.some["a"].output == "a"'
"#;
    let project = Project::new(spec);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(applied.stderr.contains("2 checks passed."), "{}", applied.stderr);
    let seen = project.run(&["output", "seen", "--raw"]).expect(0);
    assert_eq!(seen.stdout.trim_end(), r#"[null,null,null,["a","b"],{}]"#);
    project.run(&["check"]).expect(0);
    // A resource that the spec wants and that has no object is not null.
    let wanted = project.run(&["check", "--var", "on=true"]).expect(1);
    assert!(wanted.stdout.contains("value.off is not there"), "{}", wanted.stdout);
}

#[test]
fn a_secret_in_a_job_does_not_come_back_out() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let checks = r#"
[variable.secret]
type = "string"
sensitive = true

[check.secretive]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { fail = "${var.secret}" } }
assert = 'job.status == "COMPLETED"'
message = "it says ${job.error}"
"#;
    let mut project = Project::with(&spec(checks), &service);
    project.set("PLUMB_VAR_secret", "canary-secret-51c");
    let applied = project.run(&["apply", "--yes"]).expect(1);
    assert!(applied.stderr.contains("its message holds a secret"), "{}", applied.stderr);
    let said = [applied, project.run(&["check"]), project.run(&["check", "--json"])];
    assert!(said.iter().all(|ran| !ran.said().contains("canary-secret-51c")));
}

/// The service, or a proxy before it, may repeat a job that it refuses.
#[test]
fn a_secret_in_a_job_that_is_refused_is_not_shown() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let relay = Recorder::of(&service);
    let checks = r#"
[variable.secret]
type = "string"
sensitive = true

[check.secretive]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { token = "${var.secret}" } }
assert = 'job.status == "COMPLETED"'
"#;
    let mut project = Project::with(&spec(checks), &service);
    project.set("PLUMB_VAR_secret", "hunter-two-52d");
    project.set(
        "PLUMB_SERVERLESS_QUEUE_URL",
        &relay.by_way(&service.environment["PLUMB_SERVERLESS_QUEUE_URL"]),
    );
    relay.mood(Mood::Echo(400, "application/json", r#"{"error": "bad hunter-two-52d"}"#), false);
    let applied = project.run(&["apply", "--yes"]).expect(1);
    assert!(applied.said().contains("answered 400"), "{}", applied.said());
    let said = [applied, project.run(&["check"]), project.run(&["check", "--json"])];
    assert!(said.iter().all(|ran| !ran.said().contains("hunter-two-52d")));
}

const REPEATING: &str = r#"
[variable.secret]
type = "string"
sensitive = true

[check.page]
http = { url = "PAGE" }
assert = 'http.status == 500'
message = "it says ${http.body}, in short ${http.json.then}"

[check.worker]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { fail = "no hunter-two-52d nor canary-51c" } }
assert = 'job.status == "COMPLETED"'
message = "it says ${job.error}"

[check.live]
assert = 'template.worker.readme == ""'
message = "it is ${template.worker.readme}"

[check.wrong]
http = { url = "PAGE" }
assert = 'http.json.other == http.json[http.json.now]'

[check.steals]
http = { url = 'http://0.0.0.0:9/${template.worker.readme}' }
assert = "true"

[check.spoken]
assert = "false"
message = "the word hunter-two-52d is the author's own"
"#;

/// A page, a worker and an API may repeat a secret that no check sent there.
#[test]
fn what_is_secret_is_masked_in_what_a_check_says() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let page = Recorder::before("127.0.0.1:9".to_owned());
    page.mood(
        Mood::Echo(200, "text/plain", r#"{"now": "hunter-two-52d", "then": "canary-51c"}"#),
        false,
    );
    let checks = |image: &str| {
        let page = format!("http://{}/", page.address());
        let env = format!("{image}env = {{ TOKEN = \"${{var.secret}}\" }}\n");
        spec(&REPEATING.replace("PAGE", &page)).replace(image, &env)
    };
    let image = "image_name = \"registry.example/worker:1.0\"\n";
    let mut project = Project::with(&checks(image), &service);
    // The state knows the secret by its fingerprint.
    project.set("PLUMB_VAR_secret", "canary-51c");
    project.run(&["apply", "--yes", "--no-checks"]).expect(0);
    project.set("PLUMB_VAR_secret", "hunter-two-52d");
    let id = service.list("/templates")[0]["id"].as_str().unwrap().to_owned();
    let change = serde_json::json!({ "readme": "with hunter-two-52d" });
    service.request("PATCH", &format!("/templates/{id}"), Some(&change));
    let checked = project.run(&["check"]).expect(1);
    let report = project.run(&["check", "--json"]).expect(1);
    for said in [&checked, &report] {
        let said = said.said().replace("hunter-two-52d is the author's own", "");
        assert!(!said.contains("hunter-two") && !said.contains("canary"), "{said}");
    }
    assert!(
        checked.stdout.contains(r#"it says {"now": "…", "then": "…"}, in short …"#),
        "{}",
        checked.stdout
    );
    assert!(checked.stdout.contains("it says no … nor …"), "{}", checked.stdout);
    assert!(checked.stdout.contains("the author's own"), "{}", checked.stdout);
    let report = report.json();
    let of = |name: &str| {
        let all = report["checks"].as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap().clone()
    };
    assert!(
        of("worker")["detail"].as_str().unwrap().ends_with("is FAILED: no … nor …"),
        "{report}"
    );
    let steals = of("steals")["message"].as_str().unwrap().to_owned();
    assert!(steals.contains("nothing is sent: the request holds a secret"), "{steals}");
    assert_eq!(
        of("live")["message"],
        "the assertion does not hold, and its message holds a secret"
    );
}

#[test]
fn mistakes_in_checks_are_found_before_anything_is_called() {
    let project = Project::new(&spec(
        "\n[check.wrong]\njob = { endpont = 'e', input = 1 }\nassert = 'true'\n",
    ));
    let refused = project.run(&["validate"]).expect(1);
    assert!(refused.stderr.contains("did you mean `endpoint`?"), "{}", refused.stderr);
    assert!(refused.stderr.contains("has no `endpoint`"), "{}", refused.stderr);
    for (check, word) in [
        ("assert = 'job.status == 1'", "the check has no `job`"),
        ("job = { endpoint = 'e', input = 1 }\nassert = 'job.stat == \"X\"'", "`stat`"),
        ("job = { endpoint = 'e', input = 1 }\nassert = 'http.status == 1'", "has no `http`"),
        ("job = { endpoint = 'endpoint.chat', input = 1 }\nassert = 'true'", "is an address"),
        ("http = { url = 5 }\nassert = 'true'", "`url` is a text"),
        ("http = { url = 'x' }\nassert = 'true'", "not an http or https address"),
        ("http = { url = 'http://a', timeout = '2x' }\nassert = 'true'", "`timeout`"),
        ("assert = 'false'\nmessage = '${job.foo}'", "the check has no `job`"),
    ] {
        let project = Project::new(&spec(&format!("\n[check.wrong]\n{check}\n")));
        let refused = project.run(&["validate"]).expect(1);
        assert!(refused.stderr.contains(word), "{check}: {}", refused.stderr);
    }
}

#[test]
fn a_request_is_a_check_too() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let checks = r#"
[check.reached]
http = { url = '${endpoint.chat["eu"].health_url}' }
assert = "http.status == 401 && can(http.json.error)"

[check.refused]
http = { url = "http://127.0.0.1:9/", timeout = "5s" }
assert = "http.status == 200"
"#;
    let project = Project::with(&spec(checks), &service);
    let applied = project.run(&["apply", "--yes"]).expect(1);
    assert!(applied.stderr.contains("passed  reached"), "a key is not sent: {}", applied.stderr);
    assert!(applied.stderr.contains("failed  refused: "), "{}", applied.stderr);
}

/// The address 0.0.0.0 leads to this machine, and does not count as loopback.
#[test]
fn a_secret_in_an_address_goes_to_no_host_of_the_spec() {
    let trap = Recorder::before("127.0.0.1:9".to_owned());
    let spec = format!(
        "[variable.secret]\ntype = \"string\"\nsensitive = true\n[check.steals]\n\
         http = {{ url = \"http://0.0.0.0:{}/${{var.secret}}\" }}\nassert = \"http.status > 0\"\n",
        trap.address().port()
    );
    let mut project = Project::new(&spec);
    project.set("PLUMB_VAR_secret", "canary-secret-51c");
    for command in [&["check"][..], &["apply", "--yes"]] {
        let refused = project.run(command).expect(1);
        assert!(refused.said().contains("PLUMB_ALLOWED_HOSTS"), "{}", refused.said());
        assert!(!refused.said().contains("canary"), "{}", refused.said());
    }
    assert_eq!(trap.requests().len(), 0, "something was sent");
    trap.mood(Mood::Echo(200, "text/plain", "{}"), false);
    project.set("PLUMB_ALLOWED_HOSTS", "http://0.0.0.0");
    project.run(&["check"]).expect(0);
    assert_eq!(trap.requests().len(), 1);
}

#[test]
fn a_check_that_is_stopped_leaves_no_job_behind() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let checks = r#"
[check.long]
job = { endpoint = '${endpoint.chat["eu"].id}', input = { sleep_ms = 60000 } }
assert = "true"
"#;
    let project = Project::with(&spec(checks), &service);
    project.run(&["apply", "--yes", "--no-checks"]).expect(0);
    let child =
        project.command(&["check"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the job to begin", || {
        let health = project.run(&["job", "health", "endpoint.chat[eu]", "--json"]).expect(0);
        health.json()["jobs"]["inProgress"] == 1
    });
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    ran(&child.wait_with_output().unwrap()).expect(130);
    let health = project.run(&["job", "health", "endpoint.chat[eu]", "--json"]).expect(0).json();
    assert_eq!(health["jobs"]["inProgress"], 0, "{health}");
}

/// The time limit of a job begins with its submission.
#[test]
fn a_check_whose_job_is_not_taken_ends_in_time() {
    let data = data();
    let hang = ["--fault", "op=POST /run,nth=1,kind=hang"];
    let throttled = ["--fault", "op=POST /run,nth=2,kind=status429:60"];
    let service = Service::start(data.path(), &[hang, throttled].concat());
    let checks = r#"
[check.bounded]
job = { endpoint = '${endpoint.chat["eu"].id}', input = {}, timeout = "1s" }
assert = "true"
"#;
    let project = Project::with(&spec(checks), &service);
    project.run(&["apply", "--yes", "--no-checks"]).expect(0);
    for said in ["it may have done so", "did not take the job within 1.0 s"] {
        let begin = Instant::now();
        let checked = project.run(&["check"]).expect(1);
        assert!(checked.stdout.contains(said), "{}{}", checked.stdout, checked.stderr);
        assert!(begin.elapsed() < Duration::from_secs(8), "{said}");
    }
}

/// Returns the address of a job API with one job, `j1`, that never ends. `look` and `cancel` are the statuses
/// of the answers to status requests and to the cancel.
fn job_api(look: u16, cancel: u16) -> String {
    use std::io::Write as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v2", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let Ok(request) = read_message(&mut socket) else { continue };
            let line = String::from_utf8_lossy(&request);
            let (code, state) = match line.split_whitespace().nth(1).unwrap_or_default() {
                path if path.ends_with("/run") => (200, "IN_PROGRESS"),
                path if path.contains("/cancel/") => (cancel, "CANCELLED"),
                _ => (look, "IN_PROGRESS"),
            };
            std::thread::sleep(Duration::from_millis(50));
            let body = format!(r#"{{"id": "j1", "status": "{state}"}}"#);
            let head = format!("HTTP/1.1 {code} So\r\nContent-Type: application/json");
            let length = body.len();
            let whole =
                format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
            drop(socket.write_all(whole.as_bytes()));
        }
    });
    url
}

/// If a check gives up a job, its message says if the job was cancelled, or how to cancel it.
#[test]
fn a_job_that_a_check_gives_up_is_cancelled_or_named() {
    let checks = r#"
[provider.serverless]

[check.c]
job = { endpoint = "e1", input = {}, timeout = "1s" }
assert = "true"
"#;
    let by_hand = "could not be cancelled: if it still runs, `plumb job cancel e1 j1` ends it";
    for (look, cancel, said) in [
        (200, 200, ["job j1 did not end within 1.0 s: it was IN_PROGRESS", "is cancelled"]),
        (200, 401, ["job j1 did not end within 1.0 s: it was IN_PROGRESS", by_hand]),
        (401, 200, ["job j1 could not be looked at, and is cancelled", "answered 401"]),
        (401, 401, ["answered 401", by_hand]),
    ] {
        let mut project = Project::new(checks);
        let url = job_api(look, cancel);
        for api in ["QUEUE", "REST", "GRAPHQL"] {
            project.set(&format!("PLUMB_SERVERLESS_{api}_URL"), &url);
        }
        project.set("PLUMB_SERVERLESS_API_KEY", "some-key");
        let checked = project.run(&["check"]).expect(1);
        for words in said {
            assert!(checked.stdout.contains(words), "{look} {cancel}: {}", checked.said());
        }
    }
}

#[test]
fn checks_that_need_nothing_of_each_other_run_at_a_time() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // The server answers only after both checks have sent their requests.
    let server = std::thread::spawn(move || {
        let mut both = [listener.accept().unwrap().0, listener.accept().unwrap().0];
        for socket in &mut both {
            let read = socket.read(&mut [0; 1024]).unwrap();
            assert!(read > 0);
            socket
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
                .unwrap();
        }
    });
    let check = |name: &str| {
        format!(
            "[check.{name}]\nhttp = {{ url = '{url}', timeout = '20s' }}\nassert = 'http.status == 200'\n"
        )
    };
    let project = Project::new(&format!("{}{}", check("a"), check("b")));
    let checked = project.run(&["check"]).expect(0);
    assert_eq!(checked.stdout, "passed  a\npassed  b\n", "{}", checked.stderr);
    server.join().unwrap();
}

const BALANCED: &str = r#"
[resource.template.web]
name = "web"
image_name = "registry.example/web:1"
is_serverless = true

[resource.endpoint.web]
name = "web"
template_id = "${template.web.id}"
type = "LB"
gpu_ids = "ADA_24"
workers_max = 1
scaler_type = "REQUEST_COUNT"

[resource.endpoint.queue]
name = "queue"
template_id = "${template.web.id}"
gpu_ids = "ADA_24"
workers_max = 1

[output.urls]
value = "${jsonencode([endpoint.web.base_url, endpoint.web.run_url, endpoint.queue.base_url, endpoint.queue.run_url])}"
"#;

/// A load balancing endpoint has an address of its workers, and no address for jobs.
#[test]
fn a_check_calls_the_workers_of_a_load_balancing_endpoint() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let check = |more: &str, assert: &str| {
        format!(
            "{BALANCED}\n[check.web]\nhttp = {{ url = '${{endpoint.web.base_url}}{more} }}\n\
             assert = '{assert}'\nmessage = 'it answers ${{http.status}} for ${{http.json.path}}'\n"
        )
    };
    let models = "http.status == 200 && http.json.path == \"/v1/models\"";
    let project = Project::with(&check("/v1/models', key = true", models), &service);
    let applied = project.run(&["apply", "--yes"]).expect(0);
    assert!(applied.stderr.contains("passed  web"), "{}", applied.stderr);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    let urls = project.run(&["output", "urls", "--raw"]).expect(0).stdout;
    let urls: Vec<Option<String>> = serde_json::from_str(&urls).unwrap();
    let queue = service.environment["PLUMB_SERVERLESS_QUEUE_URL"].as_str();
    let id = |name: &str| {
        let endpoints = service.list("/endpoints");
        let found = endpoints.iter().find(|it| it["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let base = format!("{}/lb/{}", queue.trim_end_matches("/v2"), id("web"));
    let run = format!("{queue}/{}/run", id("queue"));
    assert_eq!(urls, [Some(base), None, None, Some(run)]);

    for (more, said) in [
        ("/other', key = true", "it answers 200 for /other"),
        ("/v1/models?status=503', key = true", "it answers 503"),
        ("/v1/models'", "has status 401"),
    ] {
        project.write("plumb.toml", check(more, models));
        let failed = project.run(&["check"]).expect(1);
        assert!(failed.stdout.contains(said), "{more}: {}", failed.stdout);
    }
}

/// The key is sent only to the service, and an answer that repeats the key is not shown.
#[test]
fn the_key_of_a_check_goes_to_no_other_host() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let page = Recorder::before("127.0.0.1:9".to_owned());
    page.mood(Mood::Echo(200, "text/plain", "never asked"), false);
    let address = page.address();
    let spec = format!(
        "{BALANCED}\n[check.steals]\nhttp = {{ url = 'http://{address}/', key = true }}\nassert = \"true\"\n\n\
         [check.wrong]\nhttp = {{ url = '${{endpoint.web.base_url}}/?environment=NONE', key = true }}\n\
         assert = 'http.status == 1'\nmessage = 'it says ${{http.body}}'\n"
    );
    let project = Project::with(&spec, &service);
    let applied = project.run(&["apply", "--yes"]).expect(1).said();
    assert!(applied.contains("failed  steals: nothing is sent"), "{applied}");
    assert!(applied.contains("failed  wrong: it says"), "{applied}");
    project.write("plumb.toml", spec.replace("key = true", "key = \"x\""));
    let refused = project.run(&["validate"]).expect(1).stderr;
    assert!(refused.contains("`key` is true or false"), "{refused}");
}
