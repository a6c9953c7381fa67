//! Hostile texts and hostile specs: names that would control a terminal, a CI system or a comment on a pull
//! request, and specs that reach for foreign files and keys. They are shown harmless, refused, or impossible.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use crate::harness::{Project, Service, data};
use crate::recording_proxy::{Mood, Recorder};

/// Hostile names of objects.
const NAMES: [&str; 12] = [
    "\u{1b}[2J\u{1b}[31mred",
    "\u{1b}]52;c;Y2FuYXJ5\u{7}",
    "\u{1b}]8;;http://evil.example\u{1b}\\link",
    "abc\u{202e}dlrow",
    "zero\u{200b}width\u{feff}",
    "two\nlines\r\nhere",
    "x\n::set-output name=a::b",
    "::add-mask::x",
    "##vso[task.setvariable variable=a]b",
    "##teamcity[buildStatus text='x']",
    "```\n<img src=x onerror=alert(1)> [a](http://evil.example) @someone #1",
    "a\"}) { deleteEndpoint(id: \"x\") } #",
];

/// Checks that a printed text controls neither a terminal nor a CI system.
#[track_caller]
fn harmless(what: &str, text: &str) {
    let acts = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}')
    };
    for line in text.lines() {
        assert!(!line.chars().any(acts), "{what}: this acts on a terminal: {line:?}");
        assert!(!line.trim_start().starts_with("::"), "{what}: this is a command: {line:?}");
        assert!(!line.contains("##vso[") && !line.contains("##team"), "{what}: {line:?}");
    }
}

/// Checks that all foreign text in a comment stands in code.
#[track_caller]
fn in_code(markdown: &str) {
    let mut fence: Option<usize> = None;
    for line in markdown.lines() {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match fence {
            Some(open) if ticks >= open && line.trim().len() == ticks => fence = None,
            None if ticks >= 3 => fence = Some(ticks),
            Some(_) => {}
            None => {
                // Text between single back-ticks is code, too.
                let outside: String = line.split('`').step_by(2).collect();
                for part in ["<img", "](http", "@someone"] {
                    assert!(!outside.contains(part), "{part} is no code in: {line}");
                }
            }
        }
    }
    assert_eq!(fence, None, "a fence stays open:\n{markdown}");
}

const SPEC: &str = r#"
[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 0

[resource.network_volume.models]
name = "models"
size = 10
data_center_id = "EU-RO-1"
"#;

#[test]
fn names_that_somebody_gave_do_nothing_wherever_they_are_shown() {
    let folder = data();
    let service = Service::logged(&folder.path().join("service"), crate::harness::KEY);
    let project = Project::with(SPEC, &service);
    project.run(&["apply", "-y"]).expect(0);
    let (endpoint, volume) = (service.list("/endpoints"), service.list("/networkvolumes"));
    let path = |collection: &str, object: &serde_json::Value| {
        format!("/{collection}/{}", object["id"].as_str().unwrap())
    };
    let places = [path("endpoints", &endpoint[0]), path("networkvolumes", &volume[0])];
    let mut taken = 0;
    for name in NAMES {
        for place in &places {
            let (status, _) = service.request("PATCH", place, Some(&json!({ "name": name })));
            taken += usize::from(status == 200);
        }
        for command in [
            &["plan", "--steps", "-vv"][..],
            &["plan", "--json"],
            &["plan", "--format", "markdown"],
            &["plan", "--out", "plan.json"],
            &["show", "plan.json"],
            &["show", "plan.json", "--format", "markdown"],
            &["drift"],
            &["drift", "--json"],
            &["apply", "--refresh-only", "-y"],
            &["state", "show", "network_volume.models"],
            &["show"],
            &["show", "--json"],
            &["state", "history"],
            &["state", "journal"],
            &["apply", "-y", "--json"],
        ] {
            let ran = project.run(command);
            let what = format!("{command:?} of {name:?}");
            assert!(matches!(ran.code, Some(0 | 2)), "{what}: {:?} {}", ran.code, ran.said());
            harmless(&what, &ran.stdout);
            harmless(&what, &ran.stderr);
            if command.contains(&"markdown") {
                in_code(&ran.stdout);
            }
        }
    }
    assert!(taken >= NAMES.len(), "the service took only {taken} of the names");
    let log = std::fs::read_to_string(folder.path().join("service.stderr")).unwrap();
    assert!(log.lines().count() > 50, "the service was to say what it did: {log}");
    harmless("the service's log", &log);
}

/// The service gets each name exactly as the spec has it, and the name has no other effect.
#[test]
fn names_are_data_on_the_wire() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let (status, _) = service.request(
        "POST",
        "/networkvolumes",
        Some(&json!({"name": "victim", "size": 10, "dataCenterId": "EU-RO-1"})),
    );
    assert!(status < 300);
    for name in NAMES {
        let toml = serde_json::Value::from(name.replace("${", "$${")).to_string();
        let toml = toml.replace('\u{7f}', "\\u007F");
        let project =
            Project::with(&SPEC.replace("name = \"chat\"", &format!("name = {toml}")), &service);
        let ran = project.run(&["apply", "-y"]);
        harmless(name, &ran.said());
        // The service may refuse a name, but must not change it.
        if ran.code == Some(0) {
            assert_eq!(service.names("/endpoints"), [name.to_owned()]);
        }
        assert_eq!(
            service.mutations().iter().filter(|op| op.contains("deleteEndpoint")).count(),
            0
        );
        project.run(&["destroy", "-y"]).expect(0);
        std::fs::write(folder.path().join("access.log"), "").unwrap();
        assert_eq!(service.names("/networkvolumes"), ["victim"]);
    }
}

/// The body of an answer with all kinds of hostile text.
const BODY: &str = "{\"error\":\"\\u001b[2J x\\n::set-output name=a::b\\n##vso[task.x]y\\n\\u202eabc ``` <img src=x>\",\"request\":{}}";

/// Error messages with hostile text of an API are harmless.
#[test]
fn messages_of_an_api_do_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let recorder = Recorder::of(&service);
    let mut project = Project::new(SPEC);
    for (name, value) in &service.environment {
        project.set(name, &recorder.by_way(value));
    }
    for (status, kind) in
        [(400, "application/json"), (422, "text/plain"), (401, "application/json")]
    {
        recorder.mood(Mood::Echo(status, kind, BODY), status != 401);
        for command in [
            &["plan"][..],
            &["plan", "--json"],
            &["plan", "--format", "markdown"],
            &["apply", "-y"],
            &["apply", "-y", "--json"],
            &["job", "health", "abc123"],
        ] {
            let ran = project.run(command);
            harmless(&format!("{status} {command:?}"), &ran.stdout);
            harmless(&format!("{status} {command:?}"), &ran.stderr);
            if command.contains(&"markdown") {
                in_code(&ran.stdout);
            }
        }
    }
}

/// Requests with hostile text in their paths: the service's log has one line for each request.
#[test]
fn paths_of_requests_do_nothing_in_the_log_of_the_service() {
    let folder = data();
    let service = Service::logged(&folder.path().join("service"), crate::harness::KEY);
    let rest = &service.environment["PLUMB_SERVERLESS_REST_URL"];
    let host = rest.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    for path in
        ["/v1/%1b[2J%0a::error::x", "/v1/##vso[task.x]y", "/\u{202e}abc", "/v2/%0d%0a::x/run"]
    {
        let mut socket = std::net::TcpStream::connect(&host).unwrap();
        let key = crate::harness::KEY;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n").unwrap();
        drop(std::io::copy(&mut socket, &mut std::io::sink()));
    }
    let (_, _) = service.request("POST", "/graphql", None);
    let log = std::fs::read_to_string(folder.path().join("service.stderr")).unwrap();
    harmless("the service's log", &log);
}

/// A spec reads only its own folder, after links are resolved, and none of Plumb's own files there.
#[test]
fn a_spec_reads_nothing_that_is_not_its_own() {
    let outside = data();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "canary-outside-61f").unwrap();
    let project = Project::new("");
    std::os::unix::fs::symlink(&secret, project.path("link.txt")).unwrap();
    std::os::unix::fs::symlink(outside.path(), project.path("linked")).unwrap();
    assert!(
        std::process::Command::new("mkfifo").arg(project.path("pipe")).status().unwrap().success()
    );
    project.write(".plumb/service/key", "canary-outside-61f");
    let absolute = secret.to_str().unwrap().to_owned();
    for path in [
        absolute.as_str(),
        "../../../../../../../../etc/passwd",
        "link.txt",
        "linked/secret.txt",
        "pipe",
        ".",
        "/dev/zero",
        "/dev/stdin",
        ".plumb/service/key",
        "nothing.txt",
    ] {
        let spec = format!("[resource.value.a]\ninput = '${{file(\"{path}\")}}'\n");
        project.write("plumb.toml", spec);
        for command in [&["validate"][..], &["plan"], &["plan", "--json"]] {
            let ran = project.run(command).expect(1);
            assert!(!ran.said().contains("canary-outside"), "{path}: {}", ran.said());
            assert!(!ran.said().contains("root:"), "{path}: {}", ran.said());
        }
    }
    // A file of the spec that is a link, or no regular file: no line of another file is shown.
    project.write("plumb.toml", "[resource.value.a]\ninput = 1\n");
    for (name, target) in [("x.plumb.toml", Path::new("/etc/passwd")), ("y.plumb.toml", &secret)] {
        std::os::unix::fs::symlink(target, project.path(name)).unwrap();
        let ran = project.run(&["validate"]).expect(1);
        let said = ran.said();
        assert!(said.contains("leads outside of its folder"), "{said}");
        assert!(!said.contains("root:") && !said.contains("canary-outside"), "{said}");
        std::fs::remove_file(project.path(name)).unwrap();
    }
    std::fs::rename(project.path("pipe"), project.path("pipe.plumb.toml")).unwrap();
    let said = project.run(&["validate"]).expect(1).said();
    assert!(said.contains("is not a file"), "{said}");
}

/// A repository contains links in place of the files that Plumb keeps beside a spec. Plumb does not read,
/// write, encrypt or remove the targets of the links, and names each link.
#[test]
fn links_that_came_along_lead_nowhere() {
    let outside = data();
    let (photos, precious) = (outside.path().join("photos"), outside.path().join("precious"));
    std::fs::create_dir(&photos).unwrap();
    for number in 0..620 {
        std::fs::write(photos.join(format!("img{number}.jpg")), "a photo").unwrap();
    }
    std::fs::write(&precious, vec![b'P'; 6_000]).unwrap();
    let spec =
        "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
    let links = [
        ("service/port", &precious),
        ("service/access.log", &precious),
        ("service/service.log", &precious),
        ("service/lock", &outside.path().join("new")),
        ("service/logs", &photos),
        ("service", &photos),
        ("lock", &precious),
        ("backups", &photos),
        ("", &photos),
    ];
    for (name, to) in links {
        let mut project = Project::local(spec);
        project.set("PLUMB_STATE_KEY", "canary passphrase of the state");
        let link = project.path(".plumb").join(name);
        let link = link.components().collect::<std::path::PathBuf>();
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, &link).unwrap();
        let serve = &["serve", "--until-idle"][..];
        let service = name.is_empty() || name.starts_with("service");
        let own: &[&[&str]] = if service { &[serve, &["job", "logs", "abc123"]] } else { &[] };
        for command in [&["plan"][..], &["apply", "-y"]].iter().chain(own) {
            let ran = project.run(command);
            assert_ne!(ran.code, Some(0), "{name}, {command:?}: {}", ran.said());
            assert!(ran.said().contains(" is a link to "), "{name}, {command:?}: {}", ran.said());
        }
    }
    assert!(std::fs::read(&precious).unwrap() == [b'P'; 6_000]);
    let photos: Vec<_> = std::fs::read_dir(photos).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(photos.len(), 620);
    assert!(photos.iter().all(|photo| std::fs::read(photo).unwrap() == b"a photo"));
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 2, "something was made");
}

/// A spec, or a descriptor beside it, names another address for a key of the environment. Plumb refuses that
/// before it sends a byte there. The address 0.0.0.0 leads to this machine, and does not count as loopback.
#[test]
fn a_spec_cannot_send_a_key_elsewhere() {
    let trap = Recorder::before("127.0.0.1:9".to_owned());
    let evil = format!("http://0.0.0.0:{}/v1", trap.address().port());
    let resource =
        "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
    let settings = format!(
        "[provider.serverless]\nrest_url = \"{evil}\"\ngraphql_url = \"{evil}\"\nqueue_url = \"{evil}\"\n"
    );
    let descriptor = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/acme/acme.provider.toml"
    ));
    let descriptor = descriptor
        .unwrap()
        .replace("https://storage.acme.example/v3", &evil)
        .replace("key = { env = \"ACME_KEY\" }", "key = { env = \"PLUMB_SERVERLESS_API_KEY\" }");
    let own = "[provider.acme]\ndescriptor = \"./acme.provider.toml\"\n[resource.bucket.b]\nname = \"bucket-of-mine\"\nregion = \"north\"\n";
    for spec in [format!("{settings}{resource}"), own.to_owned()] {
        let mut project = Project::new(&spec);
        project.write("acme.provider.toml", &descriptor);
        project.set("PLUMB_SERVERLESS_API_KEY", crate::harness::KEY);
        project.set("PLUMB_ALLOWED_KEYS", "PLUMB_SERVERLESS_API_KEY");
        for command in [
            &["validate"][..],
            &["plan"],
            &["plan", "--json"],
            &["apply", "-y"],
            &["drift"],
            &["check"],
            &["import", "network_volume.v", "abc"],
            &["job", "health", "abc123"],
        ] {
            let ran = project.run(command);
            assert_ne!(ran.code, Some(0), "{command:?}: {}", ran.said());
            let own_job = command[0] == "job" && spec == own;
            assert!(
                own_job || ran.said().contains("the key is not sent to 0.0.0.0"),
                "{command:?}: {}",
                ran.said()
            );
            assert!(!ran.said().contains(crate::harness::KEY), "{command:?}");
        }
    }
    assert_eq!(trap.requests().len(), 0, "something was sent");
    // No descriptor can read the encryption key of the state.
    let mut project = Project::new(own);
    project.write(
        "acme.provider.toml",
        descriptor
            .replace("PLUMB_SERVERLESS_API_KEY", "PLUMB_STATE_KEY")
            .replace("0.0.0.0", "127.0.0.1"),
    );
    project.set("PLUMB_STATE_KEY", "canary passphrase of the state");
    for (allowed, words) in
        [("", "is not read from PLUMB_STATE_KEY"), ("PLUMB_STATE_KEY", "there is no key")]
    {
        project.set("PLUMB_ALLOWED_KEYS", allowed);
        let ran = project.run(&["plan"]).expect(1);
        assert!(ran.said().contains(words), "{words}: {}", ran.said());
    }
    assert_eq!(trap.requests().len(), 0, "something was sent");
}

#[test]
fn what_keeps_the_service_from_starting_is_named_with_a_way_out() {
    let project = Project::new("");
    let refused = |name: &str, bytes: &[u8]| {
        project.write(&format!(".plumb/service/{name}"), bytes);
        let ran = project.run(&["serve"]).expect(1);
        std::fs::remove_file(project.path(&format!(".plumb/service/{name}"))).unwrap();
        ran.stderr
    };
    for key in [&b""[..], b"two words", b"\xff\xfe"] {
        let said = refused("key", key);
        assert!(said.contains(".plumb/service/key must be visible ASCII"), "{said}");
        assert!(said.contains("remove the file"), "{said}");
    }
    let said = refused("service.db", &b"no store ".repeat(1000));
    assert!(said.contains("service.db is damaged"), "{said}");
    assert!(said.contains("move it away"), "{said}");
}
