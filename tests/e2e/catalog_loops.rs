//! The descriptors that come with Plumb under faults: runs are killed, answers get lost and connections are
//! cut. A later run finishes with each object made exactly once, and a destroy deletes all of them.
//!
//! `PLUMB_LONG_TESTS=100 cargo test --release catalog_loops` runs that many rounds.

use std::time::{Duration, Instant};

use crate::catalog::{PASSWORD, curl, example, expect_no_change, powerdns, rabbitmq};
use crate::catalog_docker::Engine;
use crate::harness::{Dice, Project};
use crate::recording_proxy::{Mood, Recorder};

/// A server behind a relay, and a project that manages it.
struct RelayedProject<'s> {
    relay: Recorder,
    project: Project,
    /// Returns the names of all objects on the server, sorted.
    live: Box<dyn Fn() -> Vec<String> + 's>,
}

impl<'s> RelayedProject<'s> {
    fn new(
        url: &str,
        mut project: Project,
        variable: &str,
        live: impl Fn() -> Vec<String> + 's,
    ) -> Self {
        let host = url.trim_start_matches("http://").split('/').next().expect("a host");
        let relay = Recorder::before(host.to_owned());
        project.set(variable, &relay.by_way(url));
        Self { relay, project, live: Box::new(live) }
    }

    /// Runs as many rounds as were asked for. In each round, the project is applied and destroyed, with kills
    /// in both.
    fn rounds(&self) {
        let count = std::env::var("PLUMB_LONG_TESTS").ok().and_then(|text| text.parse().ok());
        let before = (self.live)();
        let (begin, mut all) = (Instant::now(), None);
        self.project.run(&["apply", "--yes"]).expect(0);
        let life = begin.elapsed();
        for seed in 0..count.unwrap_or(2) {
            let mut dice = Dice(seed);
            let what = format!("round {seed}");
            if seed > 0 {
                self.killed_and_finished(&["apply", "--yes"], life, &mut dice, &what);
            }
            expect_no_change(&self.project);
            let live = (self.live)();
            assert_eq!(*all.get_or_insert_with(|| live.clone()), live, "{what}: applied");
            self.killed_and_finished(&["destroy", "--yes"], life, &mut dice, &what);
            assert_eq!((self.live)(), before, "{what}: destroyed");
        }
    }

    /// Starts a command again and again and kills it at random moments, then lets it end. Answers get lost
    /// during all of this.
    fn killed_and_finished(&self, command: &[&str], life: Duration, dice: &mut Dice, what: &str) {
        self.relay.mood(Mood::Lossy, true);
        for _ in 0..=dice.below(2) {
            let share = u32::try_from(dice.below(1000)).expect("it is small");
            let mut child = self.project.spawn(command);
            std::thread::sleep(life.mul_f64(f64::from(share) / 1000.0));
            child.kill().expect("it is killed or gone");
            child.wait().expect("it ends");
        }
        let mut said = String::new();
        let is_done = (0..10).any(|_| {
            let ran = self.project.run(command);
            assert!(matches!(ran.code, Some(0 | 1 | 4)), "{what}: {:?} {}", ran.code, ran.said());
            said = ran.said();
            ran.code == Some(0)
        });
        assert!(is_done, "{what}: ten times {command:?} did not do: {said}");
        self.relay.mood(Mood::Pass, true);
    }
}

#[test]
fn rabbitmq_ends_as_it_should() {
    let Some(server) = rabbitmq() else { return };
    let mut project = example("rabbitmq");
    project.set("RABBITMQ_PASSWORD", "guest");
    project.set("PLUMB_VAR_WORKER_PASSWORD", PASSWORD);
    let live = || {
        let lists =
            ["vhosts", "users", "permissions", "exchanges", "queues", "bindings", "policies"];
        let mut names = Vec::new();
        for list in lists {
            let answer = curl(&["-u", "guest:guest", &format!("{}/{list}", server.url)]);
            let answer = answer.expect("a list");
            let objects: Vec<serde_json::Value> = serde_json::from_str(&answer).expect("a list");
            let key = ["vhost", "name", "user", "source", "destination", "properties_key"];
            names.extend(objects.iter().map(|object| {
                let parts = key.map(|part| object[part].as_str().unwrap_or_default().to_owned());
                format!("{list}: {}", parts.join("|"))
            }));
        }
        names.sort();
        names
    };
    RelayedProject::new(&server.url, project, "RABBITMQ_URL", live).rounds();
}

#[test]
fn powerdns_ends_as_it_should() {
    let Some(server) = powerdns() else { return };
    let mut project = example("powerdns");
    project.set("POWERDNS_KEY", "canary-dns-key");
    let ask = |path: &str| {
        let answer = curl(&["-H", "X-API-Key: canary-dns-key", &format!("{}{path}", server.url)]);
        serde_json::from_str::<serde_json::Value>(&answer.expect("an answer")).expect("JSON")
    };
    let live = || {
        let mut names = Vec::new();
        for zone in ask("/zones").as_array().expect("zones") {
            let name = zone["name"].as_str().expect("a name");
            let sets = &ask(&format!("/zones/{name}"))["rrsets"];
            names.extend(sets.as_array().expect("sets").iter().map(|set| {
                let records = if set["type"] == "SOA" { "" } else { &set["records"].to_string() };
                format!("{name}: {} {} {records}", set["name"], set["type"])
            }));
            for below in ["metadata", "cryptokeys"] {
                let found = ask(&format!("/zones/{name}/{below}"));
                names.push(format!("{name}: {below} {}", found.as_array().expect("a list").len()));
            }
        }
        names.sort();
        names
    };
    RelayedProject::new(&server.url, project, "POWERDNS_URL", live).rounds();
}

#[test]
fn docker_ends_as_it_should() {
    let Some(engine) = Engine::start("loop", true) else { return };
    let project = engine.project();
    RelayedProject::new(&engine.url, project, "DOCKER_URL", || engine.live()).rounds();
}
