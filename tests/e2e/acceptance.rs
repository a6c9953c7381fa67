//! Crashes, interrupts, odd inputs and small machines, with the real binary against the real service.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{KEY, Project, Ran, Service, data, ran, wait_for};
use crate::recording_proxy::{Mood, Recorder};

fn volumes(n: usize) -> String {
    let keys: Vec<String> = (0..n).map(|i| format!("\"{i:03}\"")).collect();
    format!(
        "[resource.network_volume.v]\nfor_each = [{}]\nname = \"v-${{each.key}}\"\nsize = 10\n\
         data_center_id = \"EU-RO-1\"\n",
        keys.join(", ")
    )
}

fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("v-{i:03}")).collect()
}

/// Returns a project whose requests go through a relay.
pub(crate) fn relayed(spec: &str, service: &Service) -> (Project, Recorder) {
    let recorder = Recorder::of(service);
    let mut project = Project::new(spec);
    for (name, value) in &service.environment {
        project.set(name, &recorder.by_way(value));
    }
    // The descriptors of these tests, which lie beside a spec, use the service's key.
    project.set("PLUMB_ALLOWED_KEYS", "PLUMB_SERVERLESS_API_KEY");
    (project, recorder)
}

/// Runs a command in a shell that sets limits first.
fn limited(project: &Project, limits: &str, arguments: &[&str]) -> Ran {
    let plumb = project.command(arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
        .arg(plumb.get_program())
        .args(plumb.get_args())
        .current_dir(plumb.get_current_dir().expect("a folder"))
        .env_clear()
        .envs(plumb.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null());
    ran(&shell.output().expect("a shell runs"))
}

fn kill(child: &std::process::Child, signal: &str) {
    let sent =
        Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    assert!(sent.is_ok(), "kill runs");
}

/// Case 8: a run is killed during its recovery, at each of its writes, three times in a row. A later run
/// finishes.
#[test]
fn killed_in_the_recovery_again_and_again_it_converges() {
    for write in 1..=4 {
        let folder = data();
        let service = Service::start(folder.path(), &[]);
        let mut project = Project::with(&volumes(3), &service);
        project.set("PLUMB_TEST_DIE", "after:3");
        project.run(&["apply", "-y"]);
        for round in 0..3 {
            let when = if round % 2 == 0 { "before" } else { "after" };
            project.set("PLUMB_TEST_DIE", &format!("{when}:{write}"));
            project.run(&["apply", "-y"]);
        }
        project.set("PLUMB_TEST_DIE", "");
        project.run(&["apply", "-y"]).expect(0);
        assert_eq!(service.names("/networkvolumes"), names(3), "write {write}");
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
}

/// Cases 1, 4 and 10: a run is killed before and after each write, including the last one. Then the lock is
/// free, and a later run does only what was not done.
#[test]
fn killed_at_every_write_the_next_run_takes_the_lock_at_once() {
    for moment in ["before", "after"] {
        let mut died_at = Vec::new();
        let mut sent_by_the_next = Vec::new();
        for write in 1.. {
            let folder = data();
            let service = Service::start(folder.path(), &[]);
            let mut project = Project::with(&volumes(1), &service);
            project.set("PLUMB_TEST_DIE", &format!("{moment}:{write}"));
            let died = project.run(&["apply", "-y"]);
            project.set("PLUMB_TEST_DIE", "");
            let sent = service.mutations().len();
            if (moment, write) == ("before", 1) {
                assert_eq!(sent, 0, "nothing is called before its record");
                let plan = project.run(&["plan"]).expect(0);
                assert!(plan.stdout.contains("1 to create") && !plan.stdout.contains("doubt"));
            }
            let begin = Instant::now();
            project.run(&["apply", "-y"]).expect(0);
            assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
            assert_eq!(service.names("/networkvolumes"), names(1));
            if died.code == Some(0) {
                break;
            }
            died_at.push(write);
            sent_by_the_next.push(service.mutations().len() - sent);
        }
        assert!(died_at.len() >= 4, "an apply has more writes than {died_at:?}");
        if moment == "after" {
            assert_eq!(sent_by_the_next.last(), Some(&0), "after the last nothing was left to do");
        }
    }
}

/// Case 11: a run is killed with many creates under way. The number of lists that the recovery makes does not
/// grow with them.
#[test]
fn one_look_resolves_all_creates_that_were_in_flight() {
    let folder = data();
    let service =
        Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:1500,times=32"]);
    let (project, recorder) = relayed(&volumes(32), &service);
    let mut run = project.spawn(&["apply", "-y", "--parallelism", "32"]);
    let posts = |requests: &[Vec<u8>]| requests.iter().filter(|r| r.starts_with(b"POST ")).count();
    // The service's descriptor limits the number of calls at once.
    wait_for("creates in flight", || posts(&recorder.requests()) >= 8);
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    // The calls that were sent still take effect.
    std::thread::sleep(Duration::from_secs(2));
    let before = recorder.requests().len();
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), names(32));
    let requests = recorder.requests();
    let lists = requests[before..]
        .iter()
        .filter(|request| {
            request.starts_with(b"GET /v1/networkvolumes HTTP")
                || request.starts_with(b"GET /v1/networkvolumes?")
        })
        .count();
    assert!(lists <= 8, "{lists} lists for one recovery");
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// A descriptor whose lost creates cannot be found, because names may not be changed later.
pub(crate) const ASKING: &str = r#"
[provider]
name = "vault"
key = { env = "PLUMB_SERVERLESS_API_KEY" }
settle = "100ms"
[api.rest]
address = { env = "PLUMB_SERVERLESS_REST_URL" }
auth = { header = "Authorization", value = "Bearer ${key}" }
names = "camel"
[type.volume]
list = "rest: GET /networkvolumes"
read = "rest: GET /networkvolumes/${id}"
identity = "ask"
create = [ { call = "rest: POST /networkvolumes", sends = "all" } ]
update = [ { call = "rest: PATCH /networkvolumes/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /networkvolumes/${id}" } ]
[type.volume.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
size = { type = "integer", required = true }
data_center_id = { type = "string", required = true, on_change = "replace" }
"#;

/// Cases 26, 27 and 78: a lost create without a name to find it by raises a question. Only the resources that
/// depend on it wait. The person's answer is compared with the live objects.
#[test]
fn what_nobody_can_find_is_asked_for_and_blocks_only_itself() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = "[provider.vault]\ndescriptor = \"./vault.provider.toml\"\n\
        [resource.volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n\
        [resource.value.after]\ninput = \"${volume.v.id}\"\n\
        [resource.value.beside]\ninput = 1\n";
    let (project, recorder) = relayed(spec, &service);
    project.write("vault.provider.toml", ASKING);
    recorder.mood(Mood::Lose, true);
    let said = project.run(&["apply", "-y"]).expect(4).said();
    assert!(said.contains("in doubt: volume.v") && said.contains("plumb resolve"), "{said}");
    recorder.mood(Mood::Pass, true);
    let list = project.run(&["state", "list"]).expect(0).stdout;
    assert!(list.contains("value.beside") && !list.contains("value.after"), "{list}");
    let planned = project.run(&["plan"]).expect(4).said();
    assert!(planned.contains("in doubt") && planned.contains("--adopt"), "{planned}");
    project.run(&["resolve"]).expect(4);
    let mutations = service.mutations().len();
    project.run(&["apply", "-y"]).expect(4);
    assert_eq!(service.mutations().len(), mutations, "nothing was sent again");
    // Drift reports the doubt, too, and a saved plan goes with the doubts that it shows.
    project.run(&["drift"]).expect(4);
    project.write("plumb.toml", format!("{spec}[resource.value.more]\ninput = 2\n"));
    project.run(&["plan", "--out", "saved"]).expect(4);
    project.run(&["apply", "saved"]).expect(4);
    assert!(project.run(&["state", "list"]).expect(0).stdout.contains("value.more"));
    // Two objects may be the one of the create, so a person must choose.
    let twin = json!({"name": "v", "size": 10, "dataCenterId": "EU-RO-1"});
    service.request("POST", "/networkvolumes", Some(&twin));
    project.run(&["apply", "-y"]).expect(4);
    project.run(&["resolve", "volume.v", "--adopt", "nosuchid"]).expect(1);
    let id = service.list("/networkvolumes")[0]["id"].as_str().unwrap().to_owned();
    project.run(&["resolve", "volume.v", "--adopt", &id]).expect(0);
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    assert_eq!(service.list("/networkvolumes").len(), 2, "the other one is a stranger's");
    project.run(&["destroy", "-y"]).expect(0);
    assert_eq!(service.list("/networkvolumes").len(), 1);
}

/// Cases 48 and 49: the disk is full at any write. Plumb makes no call that it could not write down.
#[test]
fn without_room_nothing_is_called_that_is_not_written_down() {
    let mut refused = 0;
    for blocks in [0, 1, 2, 4, 6, 8, 12, 16, 24, 32] {
        let folder = data();
        let service = Service::start(folder.path(), &[]);
        let project = Project::with(&volumes(6), &service);
        let limit = format!("ulimit -f {blocks}");
        let full = limited(&project, &limit, &["apply", "-y", "--json"]);
        assert!(matches!(full.code, Some(0 | 7)), "{blocks}: {:?} {}", full.code, full.said());
        // The events that begin also end, for programs that read them.
        let told = |event: &str| full.stdout.contains(&format!("\"event\":\"{event}\""));
        assert_eq!(told("run_started"), told("run_finished"), "{blocks}: {}", full.said());
        if full.code == Some(7) {
            refused += 1;
            assert!(full.said().contains("help:"), "{}", full.said());
        }
        if blocks == 0 {
            assert_eq!(service.mutations().len(), 0, "{}", full.said());
        }
        project.run(&["apply", "-y"]).expect(0);
        assert_eq!(service.names("/networkvolumes"), names(6), "{blocks}");
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
    assert!(refused >= 3, "only {refused} had no room");
}

/// Case 70: two states share one account, with the same names.
#[test]
fn two_states_in_one_account_leave_each_other_alone() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,p=0.2,seed=5,kind=lost"]);
    let (one, two) = (Project::with(&volumes(3), &service), Project::with(&volumes(3), &service));
    for project in [&one, &two] {
        for _ in 0..6 {
            if project.run(&["apply", "-y"]).code == Some(0) {
                break;
            }
        }
    }
    assert_eq!(service.list("/networkvolumes").len(), 6);
    for project in [&one, &two] {
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
    for _ in 0..6 {
        if one.run(&["destroy", "-y"]).code == Some(0) {
            break;
        }
    }
    assert_eq!(service.names("/networkvolumes"), names(3));
    two.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// Cases 75 and 77: a plan is applied only once, and only in the place where it was made.
#[test]
fn a_saved_plan_is_applied_once_and_to_its_own_account() {
    let folder = data();
    let mut project;
    {
        let service = Service::start(folder.path(), &[]);
        project = Project::with(&volumes(2), &service);
        project.run(&["plan", "--out", "plan.json"]).expect(0);
        project.run(&["apply", "plan.json", "-y"]).expect(0);
        let mutations = service.mutations().len();
        let said = project.run(&["apply", "plan.json", "-y"]).expect(3).said();
        assert_eq!(service.mutations().len(), mutations, "{said}");
        project.write("plumb.toml", volumes(3));
        project.run(&["plan", "--out", "plan.json"]).expect(0);
        // The plan is refused for another state.
        let other = Project::with(&volumes(3), &service);
        other.write("plan.json", std::fs::read(project.path("plan.json")).unwrap());
        other.run(&["apply", "-y"]).expect(0);
        let mutations = service.mutations().len();
        other.run(&["apply", "plan.json", "-y"]).expect(3);
        assert_eq!(service.mutations().len(), mutations);
    }
    // The same objects with another key count as another account.
    let service = Service::logged(folder.path(), "another-key-77c");
    for (name, value) in &service.environment {
        project.set(name, value);
    }
    let mutations = service.mutations().len();
    let said = project.run(&["apply", "plan.json", "-y"]).expect(3).said();
    assert!(said.contains("stale plan: it was made for 127.0.0.1"), "{said}");
    assert_eq!(service.mutations().len(), mutations);
}

/// Case 83: the key stops working in the middle of a run.
#[test]
fn a_key_that_stops_working_ends_the_run_and_loses_nothing() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:30"]);
    let (project, recorder) = relayed(&volumes(40), &service);
    let run = project
        .command(&["apply", "-y", "--parallelism", "4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    wait_for("some calls", || service.mutations().len() > 8);
    recorder
        .mood(Mood::Echo(401, "application/json", "{\"error\":\"the key was revoked\"}"), false);
    let ended = ran(&run.wait_with_output().expect("it ends"));
    assert!(matches!(ended.code, Some(1 | 4)), "{:?} {}", ended.code, ended.said());
    let refused = recorder.requests().len();
    assert!(refused < 120, "it hammered on: {refused} requests");
    recorder.mood(Mood::Pass, false);
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), names(40));
}

/// Case 84: all objects are gone at once. Plumb asks, and does not plan to make them again.
#[test]
fn everything_gone_at_once_is_a_question() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(&volumes(6), &service);
    project.run(&["apply", "-y"]).expect(0);
    let empty = data();
    let other = Service::start(empty.path(), &[]);
    for (name, value) in &other.environment {
        project.set(name, value);
    }
    let commands = [&["plan"][..], &["apply", "-y"], &["drift"]];
    let host = |service: &Service| {
        let url = &service.environment["PLUMB_SERVERLESS_REST_URL"];
        url.trim_start_matches("http://").trim_end_matches("/v1").to_owned()
    };
    for command in commands {
        let said = project.run(command).expect(1).said();
        let acted = format!(
            "acted on {} in the last run, and would act on {}",
            host(&service),
            host(&other)
        );
        assert!(said.contains(&acted), "{said}");
    }
    project.run(&["state", "relocate", "serverless"]).expect(0);
    for command in commands {
        let said = project.run(command).expect(4).said();
        assert!(said.contains("gone at once"), "{said}");
    }
    assert!(other.mutations().is_empty());
}

/// The question names the missing objects and shows a way on: the user can choose the other objects.
#[test]
fn what_is_gone_at_once_is_named_and_the_rest_can_be_chosen() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let spec = volumes(25) + "[resource.template.t]\nname = \"t\"\nimage_name = \"i\"\n";
    let project = Project::with(&spec, &service);
    project.run(&["apply", "-y"]).expect(0);
    for volume in service.list("/networkvolumes") {
        let id = volume["id"].as_str().unwrap();
        service.request("DELETE", &format!("/networkvolumes/{id}"), None);
    }
    let (before, kept) = (service.mutations().len(), project.run(&["state", "list"]).stdout);
    let asked = project.run(&["plan"]).expect(4).stderr;
    assert_eq!(asked.lines().filter(|line| line.starts_with("    network_volume.")).count(), 20);
    assert!(asked.contains("and 5 more"), "{asked}");
    let json = project.run(&["plan", "--json"]).expect(4).json();
    let named = json["diagnostics"].as_array().unwrap().iter();
    assert_eq!(named.filter(|found| found["address"].is_string()).count(), 25, "{json}");
    let drift = project.run(&["drift", "--json"]).expect(4).json();
    assert_eq!(drift["drift"].as_array().unwrap().len(), 25, "{drift}");
    let named = drift["diagnostics"].as_array().unwrap().iter();
    assert_eq!(named.filter(|found| found["address"].is_string()).count(), 25, "{drift}");
    project.run(&["drift", "--target", "template.t"]).expect(0);
    project.run(&["plan", "--target", "template.t", "--out", "p.json"]).expect(0);
    project.run(&["apply", "p.json"]).expect(0);
    project.run(&["apply", "-y", "--refresh-only", "--target", "template.t"]).expect(0);
    project.run(&["apply", "-y", "--target", "template.t"]).expect(0);
    project.run(&["apply", "-y", "--target", "network_volume.v"]).expect(4);
    assert_eq!(project.run(&["state", "list"]).stdout, kept, "nothing was forgotten on the way");
    assert_eq!(service.mutations().len(), before);
    project.run(&["destroy", "-y", "--target", "template.t"]).expect(0);
}

/// Case 85: lists that are long, have duplicates, are incomplete or have new values are handled, or refused
/// with a reason.
#[test]
fn lists_of_any_shape_are_handled_or_refused() {
    let object = |n: usize| json!({"id": format!("id{n}"), "name": format!("n{n}"), "size": 10, "dataCenterId": "EU-RO-1"});
    let many: Vec<_> = (0..100_000).map(object).collect();
    for (what, body, code) in [
        ("a hundred thousand", json!(many), 0),
        ("twice the same", json!([object(1), object(1)]), 0),
        (
            "an unknown value of a list",
            json!([{"id": "a", "name": "n", "size": 10, "dataCenterId": "MARS-1"}]),
            0,
        ),
        ("without an id", json!([{"name": "n"}]), 1),
        ("a number for an id", json!([{"id": {}, "name": "n"}]), 1),
        // The object is a stranger's, and does not stop the plan.
        ("a text for a size", json!([{"id": "a", "name": "n", "size": "much"}]), 0),
        ("no list", json!({"data": {}}), 1),
        ("null", json!(null), 1),
    ] {
        let body = body.to_string();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            for mut socket in listener.incoming().flatten() {
                let _read = socket.read(&mut [0; 4096]);
                let _written = write!(
                    socket,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        let mut project = Project::new(&volumes(1));
        for name in ["REST_URL", "GRAPHQL_URL", "QUEUE_URL"] {
            project.set(&format!("PLUMB_SERVERLESS_{name}"), &format!("http://{address}"));
        }
        project.set("PLUMB_SERVERLESS_API_KEY", KEY);
        let begin = Instant::now();
        let ran = project.run(&["plan", "--json"]);
        assert_eq!(
            ran.code,
            Some(code),
            "{what}: {}",
            ran.said().chars().take(2_000).collect::<String>()
        );
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {:?}", begin.elapsed());
        if code == 0 {
            assert_eq!(ran.json()["summary"]["create"], 1, "{what}");
        }
    }
}

/// Cases 90, 92 and 93: specs that are large, wide, deep and circular, on a stack of one MiB.
#[test]
fn specs_without_measure_are_refused_soon_and_on_a_small_stack() {
    use std::fmt::Write as _;
    let mut circle = String::new();
    for n in 0..20_000 {
        writeln!(circle, "[resource.value.r{n}]\ninput = \"${{value.r{}.id}}\"", (n + 1) % 20_000)
            .unwrap();
    }
    let mut chain = String::new();
    for n in 1..20_000 {
        writeln!(chain, "[resource.value.r{n}]\ninput = \"${{value.r{}.id}}\"", n - 1).unwrap();
    }
    chain.push_str("[resource.value.r0]\ninput = 1\n");
    for (what, text, code, word) in [
        ("comments", "# x\n".repeat(9_000_000), 1, "32 MiB"),
        ("nested arrays", format!("a = {}", "[".repeat(100_000)), 1, "nest"),
        ("nested tables", format!("a = {}", "{a=".repeat(100_000)), 1, "nest"),
        ("dotted keys", format!("a{} = 1", ".a".repeat(100_000)), 1, ""),
        ("a circle", circle, 1, "cycle"),
        ("itself", "[resource.value.a]\ninput = \"${value.a.id}\"\n".to_owned(), 1, "value.a"),
        ("a chain", chain, 0, ""),
    ] {
        let project = Project::new(&text);
        let begin = Instant::now();
        let ran = limited(&project, "ulimit -s 1024", &["plan", "--no-refresh", "--json"]);
        let said: String = ran.said().chars().take(3_000).collect();
        assert_eq!(ran.code, Some(code), "{what}: {said}");
        assert!(ran.said().contains(word), "{what}: `{word}` is not in {said}");
        assert!(begin.elapsed() < Duration::from_mins(1), "{what}: {:?}", begin.elapsed());
    }
}

/// Case 91: files that are not text, or that are not what they seem to be.
#[test]
fn odd_texts_are_errors_with_a_place_or_harmless() {
    for (what, text, code) in [
        ("a BOM", &b"\xef\xbb\xbf[resource.value.a]\ninput = 1\n"[..], None),
        ("NUL", b"[resource.value.a]\ninput = \"a\0b\"\n", Some(1)),
        ("only CR", b"[resource.value.a]\rinput = 1\r", Some(1)),
        ("U+2028", "[resource.value.a]\u{2028}input = 1\n".as_bytes(), Some(1)),
        ("a lone surrogate", b"[resource.value.a]\ninput = \"\\uD800\"\n", Some(1)),
        ("cut UTF-8", b"[resource.value.a]\ninput = \"\xe2\x82\"\n", Some(1)),
        ("escapes", b"[resource.value.a]\ninput = \"\\u001b[2J\\u202e\"\n", Some(0)),
        ("an escape as it is", b"[resource.value.\x1b[2J]\ninput = 1\n", Some(1)),
    ] {
        let project = Project::new("");
        project.write("plumb.toml", text);
        for command in [&["plan"][..], &["plan", "--json"]] {
            let ran = project.run(command);
            assert!(ran.code == code || code.is_none(), "{what}: {:?} {}", ran.code, ran.said());
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}' || c == '\u{2028}';
            assert!(!ran.said().chars().any(acts), "{what}: {:?}", ran.said());
            if ran.code == Some(1) && command.len() == 1 {
                assert!(ran.stderr.contains("plumb.toml:"), "{what}: {}", ran.stderr);
            }
        }
    }
}

/// Case 104: files that are swapped, random bytes, and a file of four GiB of zeros.
#[test]
fn files_that_are_something_else_are_refused_soon() {
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    project.run(&["apply", "-y"]).expect(0);
    let read = |name: &str| std::fs::read(project.path(name)).unwrap();
    let files = [".plumb/state.json", ".plumb/journal"].map(|name| (name, read(name)));
    let plan = read("plan.json");
    let noise: Vec<u8> =
        (0..40_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let sparse = |name: &str| {
        let file = std::fs::File::create(project.path(name)).unwrap();
        file.set_len(5 << 30).unwrap();
    };
    for other in [&noise, &plan, &files[0].1, &files[1].1] {
        project.write("other.json", other);
        if *other != plan {
            let begin = Instant::now();
            let ran = project.run(&["apply", "other.json", "-y"]);
            assert!(matches!(ran.code, Some(1 | 8)), "{}", ran.said());
            assert!(begin.elapsed() < Duration::from_secs(10));
        }
        for (name, own) in &files {
            if other == own {
                continue;
            }
            project.write(name, other);
            for command in [&["plan"][..], &["apply", "-y"], &["state", "list"]] {
                project.run(command).expect(8);
            }
            project.write(name, own);
        }
    }
    sparse("other.json");
    project.run(&["apply", "other.json", "-y"]).expect(1);
    for (name, own) in &files {
        sparse(name);
        let begin = Instant::now();
        project.run(&["plan"]).expect(8);
        assert!(begin.elapsed() < Duration::from_secs(10), "{name}: {:?}", begin.elapsed());
        project.write(name, own);
    }
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// Case 106: nobody reads the output, or a reader cannot take it.
#[test]
fn terminals_of_any_kind_change_nothing_of_an_apply() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    for (limits, variables) in [
        ("exec >&-", &[][..]),
        ("exec 2>&-", &[]),
        ("exec >&- 2>&- <&-", &[]),
        (":", &[("COLUMNS", "0"), ("TERM", "dumb")]),
        (":", &[("COLUMNS", "1000000"), ("NO_COLOR", "1")]),
        (":", &[("LC_ALL", "C"), ("TERM", "\u{1b}[2J")]),
    ] {
        let mut project = Project::with(&volumes(2), &service);
        for (name, value) in variables {
            project.set(name, value);
        }
        let ran = limited(&project, limits, &["apply", "-y"]);
        assert_eq!(ran.code, Some(0), "{limits} {variables:?}: {}", ran.said());
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
        project.run(&["destroy", "-y"]).expect(0);
    }
    // A reader goes away in the middle.
    let project = Project::with(&volumes(20), &service);
    let mut child = project
        .command(&["apply", "-y", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// Case 107: one, two or three interrupts at random moments.
#[test]
fn interrupts_at_any_moment_forget_nothing() {
    for round in 0..9_u64 {
        let folder = data();
        let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:30"]);
        let project = Project::with(&volumes(12), &service);
        let mut child = project.spawn(&["apply", "-y", "--parallelism", "3"]);
        std::thread::sleep(Duration::from_millis(30 + 67 * round));
        for _ in 0..=round % 3 {
            kill(&child, "-INT");
            std::thread::sleep(Duration::from_millis(11 * round));
        }
        let code = child.wait().unwrap().code();
        // In its first moments, the process does not listen for signals yet. Then the signal kills it.
        assert!(matches!(code, Some(0 | 4 | 130) | None), "{code:?}");
        project.run(&["apply", "-y"]).expect(0);
        assert_eq!(service.names("/networkvolumes"), names(12), "round {round}");
        project.run(&["plan", "--detailed-exitcode"]).expect(0);
    }
}

/// Case 108: the signals that a CI system sends when a job is cancelled, with its pauses.
#[test]
fn a_cancelled_job_of_a_ci_system_leaves_nothing_twice() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=hang,times=6"]);
    let project = Project::with(&volumes(32), &service);
    let mut child = project.spawn(&["apply", "-y", "--parallelism", "32"]);
    wait_for("calls", || service.mutations().len() >= 4 || child.try_wait().unwrap().is_some());
    for (signal, pause) in [("-INT", 7_500), ("-TERM", 2_500), ("-KILL", 0)] {
        if child.try_wait().unwrap().is_some() {
            break;
        }
        kill(&child, signal);
        std::thread::sleep(Duration::from_millis(pause));
    }
    child.wait().unwrap();
    project.run(&["apply", "-y"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), names(32));
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

/// Case 109: few file descriptors, little memory, one processor: the command succeeds, or its error says what
/// is missing.
#[test]
fn small_machines_give_an_error_or_a_slow_success() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    for limits in [
        "ulimit -n 16",
        "ulimit -n 8",
        "ulimit -v 400000",
        "ulimit -v 200000",
        "taskset -p -c 0 $$ >/dev/null",
    ] {
        let project = Project::with(&volumes(8), &service);
        let small = limited(&project, limits, &["apply", "-y", "--parallelism", "32"]);
        let known = matches!(small.code, Some(0 | 1 | 4 | 7));
        // A process without memory is ended, as by a kill.
        let ended = small.code.is_none() || small.code == Some(134);
        assert!(
            known || ended && limits.contains("-v"),
            "{limits}: {:?} {}",
            small.code,
            small.said()
        );
        assert!(!small.said().contains("panicked"), "{limits}: {}", small.said());
        project.run(&["apply", "-y"]).expect(0);
        project.run(&["destroy", "-y"]).expect(0);
        assert!(service.list("/networkvolumes").is_empty(), "{limits}");
    }
}
