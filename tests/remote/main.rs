//! End-to-end tests of remote state: the real binary, the real service, and real servers for the state. Run
//! them with `cargo test --features remote --test remote`. A test whose server is not installed says so.
#![cfg(all(feature = "postgres", feature = "s3", feature = "gcs"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../e2e/harness.rs"]
#[allow(dead_code, reason = "it serves other tests, too")]
mod harness;
#[path = "../../state/tests/servers/mod.rs"]
mod servers;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use harness::{Project, Ran, Service, data, wait_for};
use servers::{Gcs, PASSWORD, Postgres, Server, gcs_account, http, moto};

const RESOURCES: &str = r#"
[provider.serverless]

[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.template.worker]
name = "worker"
image_name = "registry.example/worker:1"
is_serverless = true

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 1
network_volume_id = "${network_volume.models.id}"
"#;

const SECRET: &str = "canary-secret-91aa";
/// The lock time in seconds: short enough for a test to wait until the lock of a killed run ends.
const TTL: u32 = 2;

/// The place of one test's state.
struct Place {
    /// The `[state]` block of the spec.
    block: String,
    environment: Vec<(String, String)>,
    /// True if the lock of a killed run is free at once.
    at_once: bool,
}

fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn postgres() -> Option<Place> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    let server = SERVER.get_or_init(Postgres::start).as_ref()?;
    let block = format!("[state]\nbackend = \"postgres\"\nname = \"state-{}\"\n", next());
    let environment = vec![("PLUMB_STATE_URL".to_owned(), server.url("postgres"))];
    Some(Place { block, environment, at_once: true })
}

fn s3() -> Option<Place> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let server = moto()?;
        assert_eq!(http(server.port, "PUT", "/bucket"), 200);
        Some(server)
    };
    let server = SERVER.get_or_init(start).as_ref()?;
    let block = format!(
        "[state]\nbackend = \"s3\"\nbucket = \"bucket\"\nprefix = \"team/{}\"\nregion = \"eu-west-1\"\n\
         url = \"http://127.0.0.1:{}\"\nlock_ttl = {TTL}\n",
        next(),
        server.port
    );
    // Nobody listens at this proxy: these proxy variables must not be used.
    let variables = [
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("http_proxy", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
    ];
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Some(Place { block, environment, at_once: false })
}

fn gcs() -> Option<Place> {
    static SERVER: OnceLock<Option<Gcs>> = OnceLock::new();
    let gcs = SERVER.get_or_init(|| servers::gcs("")).as_ref()?;
    let block = format!(
        "[state]\nbackend = \"gcs\"\nbucket = \"bucket\"\nprefix = \"team/{}\"\n\
         url = \"http://127.0.0.1:{}\"\nlock_ttl = {TTL}\n",
        next(),
        gcs.server.port
    );
    let environment = vec![("GOOGLE_SERVICE_ACCOUNT_KEY".to_owned(), gcs_account(SECRET))];
    Some(Place { block, environment, at_once: false })
}

/// Runs a test for each kind of place whose server is installed.
fn each(test: impl Fn(&Place)) {
    for place in [postgres(), s3(), gcs()].into_iter().flatten() {
        test(&place);
    }
}

impl Place {
    fn project(&self, service: &Service) -> Project {
        let mut project = Project::with(&format!("{}{RESOURCES}", self.block), service);
        for (name, value) in &self.environment {
            project.set(name, value);
        }
        project
    }
}

#[track_caller]
fn quiet(ran: Ran, code: i32) -> String {
    let said = ran.expect(code).said();
    for secret in [PASSWORD, SECRET] {
        assert!(!said.contains(secret), "a secret was printed:\n{said}");
    }
    said
}

#[test]
fn a_life_with_remote_state() {
    each(|place| {
        let folder = data();
        let service = Service::start(folder.path(), &[]);
        let project = place.project(&service);
        // A shared state must be made by `plumb state init`; no other command makes it.
        for arguments in [&["plan"][..], &["apply", "--yes"], &["state", "list"], &["drift"]] {
            let said = quiet(project.run(arguments), 8);
            assert!(said.contains("plumb state init"), "{said}");
        }
        assert_eq!(service.mutations().len(), 0);
        quiet(project.run(&["state", "init"]), 0);
        assert!(quiet(project.run(&["state", "init"]), 0).contains("already"));
        quiet(project.run(&["plan", "--out", "plan.json"]), 0);
        quiet(project.run(&["apply", "plan.json", "--yes"]), 0);
        quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
        assert_eq!(quiet(project.run(&["state", "list"]), 0).lines().count(), 3);
        quiet(project.run(&["drift"]), 0);
        quiet(project.run(&["state", "mv", "template.worker", "template.other"]), 0);
        quiet(project.run(&["state", "mv", "template.other", "template.worker"]), 0);
        // Another checkout does the same: no part of the state is on this machine.
        let other = place.project(&service);
        quiet(other.run(&["plan", "--detailed-exitcode"]), 0);
        let pulled = other.run(&["state", "pull"]).expect(0).stdout;
        other.write("state.json", &pulled);
        quiet(other.run(&["state", "push", "state.json"]), 0);
        let history = quiet(project.run(&["state", "history"]), 0);
        assert!(history.contains("older states are kept: serial"), "{history}");
        quiet(project.run(&["state", "pull", "--serial", "0"]), 0);
        quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
        quiet(other.run(&["destroy", "--yes"]), 0);
        assert_eq!(quiet(project.run(&["state", "list"]), 0), "");
        assert!(!project.path(".plumb/state.json").exists(), "a state on this machine");
    });
}

#[test]
fn a_killed_run_is_gone_on_from_elsewhere() {
    each(|place| {
        let folder = data();
        let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:200"]);
        let project = place.project(&service);
        quiet(project.run(&["state", "init"]), 0);
        let mut run = project.spawn(&["apply", "--yes"]);
        wait_for("two calls", || service.mutations().len() > 2);
        run.kill().unwrap();
        run.wait().unwrap();
        let begun = Instant::now();
        // The first checkout is lost with its disk, and another one goes on.
        let other = place.project(&service);
        quiet(other.run(&["apply", "--yes"]), 0);
        assert!(place.at_once || begun.elapsed() >= Duration::from_secs(u64::from(TTL)));
        quiet(other.run(&["plan", "--detailed-exitcode"]), 0);
        for collection in ["/networkvolumes", "/templates", "/endpoints"] {
            assert_eq!(service.list(collection).len(), 1, "{collection}");
        }
    });
}

#[test]
fn two_runs_at_once() {
    each(|place| {
        let folder = data();
        let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:1500"]);
        let project = place.project(&service);
        quiet(project.run(&["state", "init"]), 0);
        let mut first = project.spawn(&["apply", "--yes"]);
        wait_for("a call", || !service.mutations().is_empty());
        let other = place.project(&service);
        let said = quiet(other.run(&["apply", "--yes"]), 5);
        assert!(said.contains("another run holds the lock: `plumb apply`"), "{said}");
        quiet(other.run(&["apply", "--yes", "--lock-timeout", "60s"]), 0);
        assert!(first.wait().unwrap().success());
        for collection in ["/networkvolumes", "/templates", "/endpoints"] {
            assert_eq!(service.list(collection).len(), 1, "{collection}");
        }
    });
}

/// A run is stopped in the middle, and another run takes the lock when the store allows that. The first run
/// continues then and makes no more calls, and the state is complete.
#[test]
fn a_run_that_stood_still_is_shut_out() {
    for place in [s3(), gcs()].into_iter().flatten() {
        a_run_that_stood_still_is_shut_out_of(&place);
    }
}

fn a_run_that_stood_still_is_shut_out_of(place: &Place) {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:300"]);
    let project = place.project(&service);
    quiet(project.run(&["state", "init"]), 0);
    let child = project.command(&["apply", "--yes"]).stdout(std::process::Stdio::null()).spawn();
    let mut first = child.unwrap();
    wait_for("a call", || !service.mutations().is_empty());
    signal(first.id(), "STOP");
    let other = place.project(&service);
    quiet(other.run(&["apply", "--yes", "--lock-timeout", "60s"]), 0);
    signal(first.id(), "CONT");
    let status = first.wait().unwrap();
    assert!(matches!(status.code(), Some(4 | 6)), "{status}");
    quiet(other.run(&["plan", "--detailed-exitcode"]), 0);
    for collection in ["/networkvolumes", "/templates", "/endpoints"] {
        assert_eq!(service.list(collection).len(), 1, "{collection}");
    }
}

/// In a database, a process that hangs keeps the lock until a person runs `plumb unlock`.
#[test]
fn a_run_that_stands_still_is_driven_out() {
    let Some(place) = postgres() else { return };
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:300"]);
    let project = place.project(&service);
    quiet(project.run(&["state", "init"]), 0);
    let child = project.command(&["apply", "--yes"]).stdout(std::process::Stdio::null()).spawn();
    let mut first = child.unwrap();
    wait_for("a call", || !service.mutations().is_empty());
    signal(first.id(), "STOP");
    let other = place.project(&service);
    let said = quiet(other.run(&["apply", "--yes"]), 5);
    let run = said.split_once(", run ").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
    let refused = quiet(other.run(&["unlock", "nobody"]), 5);
    assert!(refused.contains(&format!("held by run {run}")), "{refused}");
    let taken = quiet(other.run(&["unlock", run]), 0);
    assert!(taken.contains("was driven out: the lock is free"), "{taken}");
    let again = quiet(other.run(&["unlock", run]), 0);
    assert!(again.contains("no run holds the lock"), "{again}");
    quiet(other.run(&["apply", "--yes"]), 0);
    signal(first.id(), "CONT");
    let status = first.wait().unwrap();
    assert!(matches!(status.code(), Some(4 | 6)), "{status}");
    quiet(other.run(&["plan", "--detailed-exitcode"]), 0);
    for collection in ["/networkvolumes", "/templates", "/endpoints"] {
        assert_eq!(service.list(collection).len(), 1, "{collection}");
    }
}

fn signal(pid: u32, name: &str) {
    let status = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn the_state_moves_and_the_old_place_says_where_to() {
    let places = [postgres(), s3()];
    let [Some(database), Some(bucket)] = places else { return };
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(RESOURCES, &service);
    for (name, value) in database.environment.iter().chain(&bucket.environment) {
        project.set(name, value);
    }
    quiet(project.run(&["apply", "--yes"]), 0);
    // The state moves from files to the database, to the bucket, and back to files.
    let spec = |place: &Place| format!("{}{RESOURCES}", place.block);
    project.write("plumb.toml", spec(&database));
    assert!(quiet(project.run(&["plan"]), 8).contains("plumb state migrate"));
    quiet(project.run(&["state", "migrate", "--from", "file"]), 0);
    assert!(quiet(project.run(&["state", "migrate", "--from", "file"]), 0).contains("already"));
    quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
    project.write("old.toml", spec(&database));
    project.write("plumb.toml", spec(&bucket));
    quiet(project.run(&["state", "migrate", "--from", "old.toml"]), 0);
    quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
    assert_eq!(quiet(project.run(&["state", "list"]), 0).lines().count(), 3);
    // An old checkout learns that the state was moved, and changes nothing.
    for (old, words) in
        [(RESOURCES.to_owned(), "was moved from .plumb to"), (spec(&database), "to s3://")]
    {
        project.write("plumb.toml", old);
        for arguments in [
            &["plan"][..],
            &["apply", "--yes"],
            &["state", "list"],
            &["state", "rm", "template.worker"],
        ] {
            let said = quiet(project.run(arguments), 8);
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
    // The state moves back to the database, over the copy that was left there.
    project.write("old.toml", spec(&bucket));
    quiet(project.run(&["state", "migrate", "--from", "old.toml"]), 0);
    quiet(project.run(&["plan", "--detailed-exitcode"]), 0);
    quiet(project.run(&["destroy", "--yes"]), 0);
    project.write("plumb.toml", spec(&bucket));
    assert!(quiet(project.run(&["plan"]), 8).contains("was moved"));
}

/// A kind of place for a state. `None` if its server is not installed.
#[cfg(debug_assertions)]
type Kind = fn() -> Option<Place>;

#[cfg(debug_assertions)]
#[expect(clippy::unnecessary_wraps, reason = "as its siblings")]
fn files() -> Option<Place> {
    Some(Place { block: String::new(), environment: Vec::new(), at_once: true })
}

/// A state moves from each kind of store to each other kind, and the move is killed after each of its writes.
/// At most one place can be used then, and the same command completes the move. GCS is slow and, like S3, an
/// object store, so it is paired only with files.
#[cfg(debug_assertions)]
#[test]
fn a_move_that_is_killed_is_finished() {
    let pairs: [(Kind, Kind); 8] = [
        (files, postgres),
        (files, s3),
        (files, gcs),
        (postgres, files),
        (postgres, s3),
        (s3, files),
        (s3, postgres),
        (gcs, files),
    ];
    let cases =
        pairs.into_iter().flat_map(|pair| (1..=MOVE_WRITES).map(move |write| (pair, write)));
    let cases = std::sync::Mutex::new(cases);
    // Most of the time goes into waiting for the lock of the killed move to end. More moves at once would
    // slow the servers down for the other tests.
    std::thread::scope(|scope| {
        for _ in 0..MOVES_AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = cases.lock().unwrap().next();
                    let Some(((from, to), write)) = next else { return };
                    let (Some(old), Some(new)) = (from(), to()) else { continue };
                    killed_in_a_move(&old, &new, write);
                }
            });
        }
    });
}

#[cfg(debug_assertions)]
const MOVES_AT_ONCE: u32 = 6;

/// The writes of a move: the mark of the arrival, the copy, the mark of the leaving, and the removal of the
/// first mark.
#[cfg(debug_assertions)]
const MOVE_WRITES: u32 = 4;

#[cfg(debug_assertions)]
fn killed_in_a_move(old: &Place, new: &Place, write: u32) {
    let spec = |place: &Place, count| {
        let values = (0..count).map(|n| format!("[resource.value.v{n}]\ninput = {n}\n"));
        format!("{}{}", place.block, values.collect::<String>())
    };
    let mut project = Project::new(&spec(old, 1));
    for (name, value) in old.environment.iter().chain(&new.environment) {
        project.set(name, value);
    }
    if !old.block.is_empty() {
        quiet(project.run(&["state", "init"]), 0);
    }
    quiet(project.run(&["apply", "--yes"]), 0);
    project.write("old.toml", spec(old, 1));
    project.write("plumb.toml", spec(new, 1));
    let from = if old.block.is_empty() { "file" } else { "old.toml" };
    let migrate = ["state", "migrate", "--from", from];
    let die = format!("move:{write}");
    let killed = project.command(&migrate).env("PLUMB_TEST_DIE", die).output().unwrap();
    let case = format!("to {} behind write {write}: {killed:?}", new.block);
    assert_eq!(killed.status.code(), None, "{case}");
    // The new place, to which the command was to move the state.
    let is_done = write == MOVE_WRITES;
    let said = quiet(project.run(&["apply", "--yes"]), if is_done { 0 } else { 8 });
    assert!(is_done || said.contains("the state is being moved from"), "{case}: {said}");
    let said = quiet(project.run(&["plan"]), if write == 1 { 8 } else { 0 });
    assert_eq!(said.contains("is on its way"), !is_done, "{case}: {said}");
    // The old place, as an old checkout uses it. It can be used until it is marked as left.
    project.write("plumb.toml", spec(old, 2));
    let is_left = write >= 3;
    let said = quiet(project.run(&["apply", "--yes"]), if is_left { 8 } else { 0 });
    assert!(!is_left || said.contains("the state was moved from"), "{case}: {said}");
    project.write("plumb.toml", spec(new, 2));
    quiet(project.run(&migrate), 0);
    assert!(quiet(project.run(&migrate), 0).contains("already"), "{case}");
    quiet(project.run(&["apply", "--yes"]), 0);
    assert_eq!(quiet(project.run(&["state", "list"]), 0).lines().count(), 2, "{case}");
    project.write("plumb.toml", spec(old, 2));
    assert!(quiet(project.run(&["apply", "--yes"]), 8).contains("was moved from"), "{case}");
}

#[test]
fn with_a_key_nothing_can_be_read_and_a_plain_state_is_sealed() {
    each(|place| {
        let folder = data();
        let service = Service::start(folder.path(), &[]);
        let mut project = place.project(&service);
        quiet(project.run(&["state", "init"]), 0);
        quiet(project.run(&["apply", "--yes"]), 0);
        project.set("PLUMB_STATE_KEY", &"0f".repeat(32));
        let said = quiet(project.run(&["apply", "--yes"]), 0);
        assert!(said.contains("from now on it is"), "{said}");
        assert!(!quiet(project.run(&["apply", "--yes"]), 0).contains("from now on"));
        project.set("PLUMB_STATE_KEY", &"a1".repeat(32));
        let said = quiet(project.run(&["plan"]), 8);
        assert!(said.contains("with another key"), "{said}");
    });
}
