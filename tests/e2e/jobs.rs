//! `plumb job`: the job API, from submission to output, with real workers.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, Ran, Service, data, http, ran, wait_for};

const SPEC: &str = r#"
[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1.0"
is_serverless = true

[resource.endpoint.chat]
for_each = ["eu"]
name = "chat-${each.key}"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 1
workers_max = 1

[resource.endpoint.single]
name = "single"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_max = 1
"#;

fn applied(service: &Service) -> Project {
    let project = Project::with(SPEC, service);
    project.run(&["apply", "--yes"]).expect(0);
    project
}

fn id_of(project: &Project, address: &str) -> String {
    let shown = project.run(&["state", "show", address, "--json"]).expect(0).json();
    let id = shown.to_string();
    let id = id.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
    id.expect("an id").to_owned()
}

fn submit(project: &Project, endpoint: &str, input: &str) -> String {
    let submitted = project.run(&["job", "submit", endpoint, input]).expect(0);
    submitted.stdout.trim().to_owned()
}

fn with_stdin(mut command: Command, text: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // The command may end before it has read all of its input.
    let _written = child.stdin.take().expect("stdin is a pipe").write_all(text);
    ran(&child.wait_with_output().expect("it ends"))
}

#[test]
fn a_job_runs_by_address_and_by_id_and_its_output_is_data() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    let input = r#"{"a":[1,"é"],"n":12345678901}"#;
    let first = project.run(&["job", "run", "endpoint.chat[eu]", input]).expect(0);
    assert_eq!(first.stdout.trim(), input, "what a worker wrote is not changed");
    assert!(first.stderr.contains("completed in"), "{}", first.stderr);
    let id = id_of(&project, "endpoint.chat[eu]");
    let whole = project.run(&["job", "run", &id, "--sync", "--json", "{\"x\":1}"]).expect(0).json();
    assert_eq!((&whole["status"], &whole["output"]["x"]), (&"COMPLETED".into(), &1.into()));
    assert!(whole["id"].as_str().unwrap().starts_with("sync-"), "{whole}");
    let health = project.run(&["job", "health", &id, "--json"]).expect(0).json();
    assert_eq!(health["jobs"]["completed"], 2);
    let said = project.run(&["job", "health", &id]).expect(0).stdout;
    assert!(
        said.starts_with("jobs     2 completed, 0 failed, 0 in progress, 0 in queue"),
        "{said}"
    );
}

#[test]
fn inputs_come_from_files_and_stdin() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    project.write("job.json", "{\"from\": \"file\"}\n");
    let read = project.run(&["job", "run", "endpoint.single", "--input-file", "job.json"]);
    assert_eq!(read.expect(0).json()["from"], "file");
    let piped = project.command(&["job", "run", "endpoint.single", "-"]);
    assert_eq!(with_stdin(piped, b"{\"from\": \"stdin\"}").expect(0).json()["from"], "stdin");
}

#[test]
fn a_failing_job_says_why_and_can_be_tried_again() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    let failed = project.run(&["job", "run", "endpoint.single", r#"{"fail":"no luck"}"#]).expect(1);
    assert_eq!(failed.stdout, "");
    assert!(failed.stderr.contains("failed: no luck"), "{}", failed.stderr);
    let job = submit(&project, "endpoint.single", r#"{"fail":"again"}"#);
    let status = ["job", "status", "endpoint.single", &job];
    let waited = project.run(&[&status[..], &["--wait", "--json"]].concat()).expect(1).json();
    assert_eq!((&waited["status"], &waited["error"]), (&"FAILED".into(), &"again".into()));
    let retried = project.run(&["job", "retry", "endpoint.single", &job]).expect(0);
    assert_eq!(retried.stdout.trim(), format!("{job} IN_QUEUE"));
    wait_for("the second failure", || project.run(&status).stdout.contains("FAILED"));
    let done = submit(&project, "endpoint.single", "{}");
    project.run(&["job", "status", "endpoint.single", &done, "--wait"]).expect(0);
    let refused = project.run(&["job", "retry", "endpoint.single", &done]).expect(1);
    assert!(refused.stderr.contains("only a job that failed"), "{}", refused.stderr);
}

#[test]
fn a_stream_is_printed_as_it_comes_in_both_forms() {
    for form in ["array", "object"] {
        let data = data();
        let service = Service::start(data.path(), &["--stream-format", form]);
        let project = applied(&service);
        let input = r#"{"stream":["a",{"t":2}],"sleep_ms":200}"#;
        let job = submit(&project, "endpoint.single", input);
        let streamed = project.run(&["job", "stream", "endpoint.single", &job]).expect(0);
        assert_eq!(streamed.stdout, "\"a\"\n{\"t\":2}\n", "{form}");
        let again = project.run(&["job", "stream", "endpoint.single", &job, "--json"]).expect(0);
        assert_eq!(again.stdout, "", "each part is given once");
    }
}

#[test]
fn jobs_are_cancelled_and_queues_emptied() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    let long = submit(&project, "endpoint.single", r#"{"sleep_ms":60000}"#);
    let status = |job: &str| project.run(&["job", "status", "endpoint.single", job]);
    wait_for("the job to begin", || status(&long).stdout.contains("IN_PROGRESS"));
    let queued = submit(&project, "endpoint.single", "{}");
    let purged = project.run(&["job", "purge", "endpoint.single"]).expect(0);
    assert_eq!(purged.stdout, "1 job removed\n");
    let gone = status(&queued).expect(1);
    assert!(
        gone.stderr.contains("404") && gone.stderr.contains("results are kept"),
        "{}",
        gone.stderr
    );
    let cancelled = project.run(&["job", "cancel", "endpoint.single", &long]).expect(0);
    assert_eq!(cancelled.stdout.trim(), format!("{long} CANCELLED"));
    assert!(status(&long).expect(1).stdout.contains("CANCELLED"));
}

#[test]
fn waiting_ends_when_the_time_is_up_or_somebody_stops_it_and_the_job_goes_on() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    let input = r#"{"sleep_ms":2500}"#;
    let late = project.run(&["job", "run", "endpoint.single", input, "--timeout", "1s"]).expect(1);
    assert!(late.stderr.contains("did not end in time"), "{}", late.stderr);
    let child = project
        .command(&["job", "run", "endpoint.single", r#"{"sleep_ms":3000}"#])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the second job", || {
        service.mutations().iter().filter(|operation| *operation == "POST /run").count() == 2
    });
    // The answer must come back before the interrupt, so that there is a job to leave behind.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let stopped = ran(&child.wait_with_output().unwrap()).expect(130);
    let job = stopped.stderr.split("waiting for job ").nth(1).unwrap().lines().next().unwrap();
    assert!(stopped.stderr.contains("it goes on"), "{}", stopped.stderr);
    project.run(&["job", "status", "endpoint.single", job, "--wait"]).expect(0);
}

#[test]
fn a_job_whose_service_dies_is_not_submitted_again() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let project = applied(&service);
    let mut command = project.command(&["job", "run", "endpoint.single", r#"{"sleep_ms":60000}"#]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the job", || service.mutations().iter().any(|op| op == "POST /run"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(service);
    let ended = ran(&child.wait_with_output().unwrap()).expect(1);
    assert!(ended.stderr.contains("do not submit it again"), "{}", ended.stderr);
    assert!(ended.stderr.contains("`plumb job status endpoint.single "), "{}", ended.stderr);
    assert!(ended.stderr.contains(" --wait` waits for it"), "{}", ended.stderr);
}

#[test]
fn a_submission_ends_when_it_should_and_says_whether_there_may_be_a_job() {
    let data = data();
    let hang = "op=POST /run,nth=2,kind=hang";
    let again = "op=POST /run,nth=3,kind=hang";
    let faults =
        ["--fault", "op=POST /run,nth=1,kind=status429:20", "--fault", hang, "--fault", again];
    let service = Service::start(data.path(), &faults);
    let project = applied(&service);
    let interrupted = |arguments: &[&str], status| {
        let mut command = project.command(&[&["job"], arguments].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The service does not log a request that it does not answer.
        std::thread::sleep(Duration::from_secs(2));
        let begin = Instant::now();
        let interrupt = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        let ended = ran(&child.wait_with_output().unwrap()).expect(status);
        assert!(begin.elapsed() < Duration::from_secs(8), "{}", ended.stderr);
        ended.stderr
    };
    let paused = interrupted(&["run", "endpoint.single", "{}"], 130);
    assert!(paused.contains("stopped before the job was submitted"), "{paused}");
    let health = project.run(&["job", "health", "endpoint.single"]).expect(0).stdout;
    assert!(health.contains("0 in progress, 0 in queue"), "{health}");
    let out = interrupted(&["submit", "endpoint.single", "{}"], 4);
    assert!(out.contains("it is not known whether there is one"), "{out}");
    let begin = Instant::now();
    let bounded = ["job", "run", "endpoint.single", "{}", "--timeout", "1s"];
    let late = project.run(&bounded).expect(4);
    assert!(late.stderr.contains("the time was up while"), "{}", late.stderr);
    assert!(begin.elapsed() < Duration::from_secs(8), "{}", late.stderr);
    let input = r#"{"sleep_ms":30000}"#;
    let begin = Instant::now();
    let sync = ["job", "run", "endpoint.single", input, "--sync", "--timeout", "1s"];
    let late = project.run(&sync).expect(1);
    assert!(late.stderr.contains("did not end in time"), "{}", late.stderr);
    assert!(begin.elapsed() < Duration::from_secs(4), "{}", late.stderr);
}

#[test]
fn a_queue_that_is_being_emptied_is_in_doubt_when_somebody_stops_it() {
    let data = data();
    let service = Service::start(data.path(), &["--fault", "op=POST /purge-queue,kind=hang"]);
    let project = applied(&service);
    let interrupted = |after: u64| {
        let mut command = project.command(&["job", "purge", "endpoint.single"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(after));
        let interrupt = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        ran(&child.wait_with_output().unwrap())
    };
    // Nothing shows when the request has been sent, and a busy machine is slow.
    let mut stops = [2, 8, 20].into_iter().map(interrupted);
    let stopped = stops.find(|stopped| stopped.code == Some(4)).unwrap().stderr;
    assert!(stopped.contains("it is not known whether jobs still wait"), "{stopped}");
    assert!(stopped.contains("`plumb job health`"), "{stopped}");
}

#[test]
fn what_no_service_takes_is_refused_without_sending() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    let before = service.mutations();
    project.write("large.json", format!("{{\"x\":\"{}\"}}", "x".repeat((10 << 20) + 10)));
    project.write("edge.json", format!("{{\"x\":\"{}\"}}", "x".repeat((10 << 20) - 11)));
    let run = |more: &[&str]| project.run(&[&["job", "run", "endpoint.single"], more].concat());
    for (arguments, said) in [
        (&["--input-file", "large.json"][..], "larger than 10 MB"),
        (&["--input-file", "edge.json"], "the service takes 10485760 here"),
        (&["{"], "the input is not JSON"),
        (&["null"], "the input must be a JSON object"),
        (&["[1]"], "the input must be a JSON object"),
        (&[], "the job has no input"),
        (&["{}", "--ttl", "9s"], "the time to live is 9000 ms"),
        (&["{}", "--execution-timeout", "8000h"], "the execution timeout is"),
        (&["{}", "--webhook", "ftp://x"], "the webhook is not"),
    ] {
        let refused = run(arguments).expect(1);
        assert!(refused.stderr.contains(said), "{arguments:?}: {}", refused.stderr);
    }
    let endless = with_stdin(
        project.command(&["job", "run", "endpoint.single", "-"]),
        &vec![b' '; (10 << 20) + 1],
    );
    assert!(endless.expect(1).stderr.contains("the input of stdin is larger than 10 MB"));
    assert_eq!(service.mutations(), before);
    run(&["--sync", "--timeout", "30s", "--input-file", "edge.json"]).expect(0);
}

#[test]
fn endpoints_that_are_not_there_are_named() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let project = applied(&service);
    for (endpoint, said) in [
        ("endpoint.chat", "did you mean `endpoint.chat[\"eu\"]`"),
        ("endpoint.singel", "did you mean `endpoint.single`"),
        ("template.worker", "template.worker takes no jobs"),
        ("a/b", "neither an address nor an id"),
        ("endpoint.chat[", "is not an address"),
        ("nothing1234567", "404"),
    ] {
        let refused = project.run(&["job", "health", endpoint]).expect(1);
        assert!(refused.stderr.contains(said), "{endpoint}: {}", refused.stderr);
    }
    let refused = project.run(&["job", "status", "endpoint.single", "../run"]).expect(1);
    assert!(refused.stderr.contains("is not the id of a job"), "{}", refused.stderr);
    let empty = Project::new("");
    let refused = empty.run(&["job", "health", "nothing1234567"]).expect(1);
    assert!(refused.stderr.contains("PLUMB_SERVERLESS_QUEUE_URL is not set"), "{}", refused.stderr);
    let refused = empty.run(&["job", "health", "nothing1234567", "--local"]).expect(1);
    assert!(refused.stderr.contains("has no endpoints"), "{}", refused.stderr);
    assert!(!empty.path(".plumb").exists(), "nothing was started for it");
}

#[test]
fn a_wrong_key_is_said_and_not_shown() {
    let data = data();
    let service = Service::start(data.path(), &[]);
    let mut project = applied(&service);
    project.set("PLUMB_SERVERLESS_API_KEY", "wrong-key-9d1");
    let refused = project.run(&["job", "run", "endpoint.single", "{}"]).expect(1);
    assert!(refused.stderr.contains("401"), "{}", refused.stderr);
    assert!(!refused.said().contains("wrong-key-9d1"), "{}", refused.said());
}

#[test]
fn a_busy_service_is_asked_again_and_a_submission_never_twice() {
    let data = data();
    let faults = [
        "--fault",
        "op=POST /run,nth=1,kind=status429:1",
        "--fault",
        "op=POST /run,nth=3,kind=lost",
        "--fault",
        "op=GET /status/{id},nth=1,kind=error500-before",
    ];
    let service = Service::start(data.path(), &faults);
    let project = applied(&service);
    let first = project.run(&["job", "submit", "endpoint.single", "{}"]).expect(0);
    assert!(first.stderr.contains("429") && first.stderr.contains("attempt 2"), "{}", first.stderr);
    let job = first.stdout.trim();
    let shown = project.run(&["job", "status", "endpoint.single", job]).expect(0);
    assert!(shown.stderr.contains("attempt 2"), "{}", shown.stderr);
    let lost = project.run(&["job", "submit", "endpoint.single", "{}"]).expect(4);
    assert!(lost.stderr.contains("not sent a second time"), "{}", lost.stderr);
    let url = format!(
        "{}/{}/requests",
        service.environment["PLUMB_SERVERLESS_QUEUE_URL"],
        id_of(&project, "endpoint.single")
    );
    let (_, listed) = http("GET", &url, None);
    assert_eq!(listed.matches("\"id\"").count(), 2, "{listed}");
}

#[test]
fn on_a_bare_laptop_a_job_outlives_the_service_that_took_it() {
    let project = Project::local(SPEC);
    project.run(&["apply", "--yes"]).expect(0);
    let job = submit(&project, "endpoint.single", r#"{"log":"said by the worker","n":1}"#);
    let done = project.run(&["job", "status", "endpoint.single", &job, "--wait"]).expect(0);
    assert_eq!(done.json()["n"], 1);
    let logs = project.run(&["job", "logs", "endpoint.single"]).expect(0);
    assert!(logs.stdout.contains("said by the worker\n"), "{}", logs.stdout);
    let none = project.run(&["job", "logs", "endpoint.single", "--worker", "nobody"]).expect(1);
    assert!(none.stderr.contains("no worker's log"), "{}", none.stderr);
    project.run(&["destroy", "--yes"]).expect(0);
}

#[test]
fn object_storage_is_handed_through_and_shown_nowhere() {
    use std::io::Read as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut project = Project::new("");
    project.set(
        "PLUMB_SERVERLESS_QUEUE_URL",
        &format!("http://{}/v2", listener.local_addr().unwrap()),
    );
    project.set("PLUMB_SERVERLESS_API_KEY", crate::harness::KEY);
    let storage = r#"{"accessId": "id", "accessSecret": "canary-s3-91e", "bucketName": "b", "endpointUrl": "https://s"}"#;
    project.write("s3.json", storage);
    let server = std::thread::spawn(move || {
        let mut socket = listener.accept().unwrap().0;
        let (mut asked, mut part) = (String::new(), [0; 4096]);
        while !asked.contains("s3Config") {
            let read = socket.read(&mut part).unwrap();
            assert!(read > 0, "{asked}");
            asked.push_str(std::str::from_utf8(&part[..read]).unwrap());
        }
        let answer = r#"{"id":"job-1","status":"IN_QUEUE"}"#;
        let length = answer.len();
        write!(
            socket,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{answer}"
        )
        .unwrap();
        asked
    });
    let submit = ["-v", "job", "submit", "jpnw0v75y3qoql", "{}", "--s3-config", "s3.json"];
    let submitted = project.run(&submit).expect(0);
    let asked = server.join().unwrap();
    assert!(
        asked.ends_with(&format!("\r\n\r\n{{\"input\":{{}},\"s3Config\":{storage}}}")),
        "{asked}"
    );
    project.write("s3.json", r#"{"accessSecret": ["canary-s3-91e"]}"#);
    let refused = project.run(&submit).expect(1);
    assert!(refused.stderr.contains("is not a JSON object of texts"), "{}", refused.stderr);
    assert!([submitted, refused].iter().all(|ran| !ran.said().contains("canary-s3")));
}
