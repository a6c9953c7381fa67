//! `kill -9` of a real run against a real service that loses answers, cuts connections, fails after the
//! effect and throttles. A later run finishes with each object live exactly once.
//!
//! `PLUMB_LONG_TESTS=1000 cargo test --release kills` makes that many kills; without the variable, the test
//! makes a few. `PLUMB_LONG_THREADS` is the number of projects that are tested at a time.

use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crashes::{expect_exactly, spec};
use crate::harness::{Dice, Project, Service, data, try_http};

/// The number of keys: each has a volume, a template and an endpoint, so there are 24 objects.
const KEYS: usize = 8;

/// The faults of the service, for each kind of round. The service is slow in all of them.
const FAULTS: [&[&str]; 5] = [
    &[],
    &["op=mutating,p=0.1,seed=SEED,kind=lost"],
    &["op=mutating,p=0.1,seed=SEED,kind=error500-after"],
    &["op=mutating,p=0.1,seed=SEED,kind=cut", "op=mutating,p=0.1,seed=SEED,kind=status429:0"],
    &[
        "op=mutating,p=0.05,seed=SEED,kind=error500-before",
        "op=mutating,p=0.05,seed=SEED,kind=lost",
    ],
];

/// The moment at which a run is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This long after the start of the run.
    Time(Duration),
    /// As soon as the service has got this many mutating calls of the run.
    Calls(usize),
    /// As soon as the journal of the run has grown this many times.
    Records(usize),
}

impl Moment {
    fn draw(dice: &mut Dice, life: Duration) -> Self {
        match dice.below(3) {
            0 => Self::Time(
                life.mul_f64(f64::from(u32::try_from(dice.below(1000)).unwrap()) / 1000.0),
            ),
            1 => Self::Calls(usize::try_from(dice.below(6 * KEYS as u64)).unwrap()),
            _ => Self::Records(usize::try_from(1 + dice.below(30)).unwrap()),
        }
    }
}

/// The totals of all rounds.
#[derive(Default)]
struct Tally {
    kills: AtomicUsize,
    rounds: AtomicUsize,
    applies: AtomicUsize,
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn killed_while_answers_get_lost_nothing_is_lost_or_doubled() {
    let wanted = number("PLUMB_LONG_TESTS", 38);
    let tally = Tally::default();
    let life = Round::start(0).live();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..number("PLUMB_LONG_THREADS", 4) {
            scope.spawn(|| {
                while tally.kills.load(Relaxed) < wanted {
                    let seed = tally.rounds.fetch_add(1, Relaxed);
                    Round::start(seed as u64).kill_and_finish(life, &tally);
                }
            });
        }
    });
    let (kills, rounds) = (tally.kills.into_inner(), tally.rounds.into_inner());
    let (applies, seconds) = (tally.applies.into_inner(), begin.elapsed().as_secs());
    println!("{kills} kills in {rounds} rounds, {applies} applies to the end, {seconds} s");
    assert!(kills >= wanted);
}

/// A project, a service with faults, and the objects of strangers who use the same names.
struct Round {
    seed: u64,
    _folder: tempfile::TempDir,
    service: Service,
    project: Project,
    strangers: Vec<(String, Value)>,
}

impl Round {
    fn start(seed: u64) -> Self {
        let folder = data();
        let mut faults = vec!["--fault".to_owned(), "op=mutating,kind=latency:4".to_owned()];
        for (n, fault) in FAULTS[usize::try_from(seed).unwrap() % FAULTS.len()].iter().enumerate() {
            let seed = (10 * seed + n as u64).to_string();
            faults.extend(["--fault".to_owned(), fault.replace("SEED", &seed)]);
        }
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        let service = Service::start(folder.path(), &faults);
        let project = Project::with(&spec(KEYS), &service);
        let mut round = Self { seed, _folder: folder, service, project, strangers: Vec::new() };
        let volume = json!({"name": "v-k000", "size": 10, "dataCenterId": "EU-RO-1"});
        let template = json!({"name": "strange", "imageName": "other:1", "isServerless": true});
        round.strangers = vec![
            ("/networkvolumes".to_owned(), round.strange("/networkvolumes", &volume)),
            ("/templates".to_owned(), round.strange("/templates", &template)),
        ];
        round
    }

    /// Makes an object of a stranger. Repeats the create until the object shows, as its answer may get lost.
    fn strange(&self, collection: &str, body: &Value) -> Value {
        let name = body["name"].as_str().unwrap();
        let url = format!("{}{collection}", self.service.environment["PLUMB_SERVERLESS_REST_URL"]);
        for _ in 0..20 {
            let _may_be_lost = try_http("POST", &url, Some(body));
            let live = self.service.list(collection);
            if let Some(made) = live.into_iter().find(|object| object["name"] == name) {
                return made;
            }
        }
        panic!("no stranger could be made in {collection}");
    }

    /// Runs an apply without a kill, and returns its duration.
    fn live(&self) -> Duration {
        let begin = Instant::now();
        self.project.run(&["apply", "--yes"]).expect(0);
        begin.elapsed()
    }

    fn kill_and_finish(&self, life: Duration, tally: &Tally) {
        let mut dice = Dice(self.seed);
        // In some rounds, the run that finishes the work is killed, too, and the one after it.
        let kills = [1, 1, 2, 3][usize::try_from(dice.below(4)).unwrap()];
        let mut moments = Vec::new();
        for _ in 0..kills {
            let moment = Moment::draw(&mut dice, life);
            moments.push(moment);
            tally.kills.fetch_add(usize::from(self.kill_at(moment)), Relaxed);
        }
        let what = format!("seed {}, killed at {moments:?}", self.seed);
        tally.applies.fetch_add(self.finish(&what), Relaxed);
        self.expect_strangers_and(&what);
    }

    /// Starts an apply and kills it at a moment. Returns true if it was still running then.
    fn kill_at(&self, moment: Moment) -> bool {
        let before = self.service.mutations().len();
        let begin = Instant::now();
        let mut child = self.project.spawn(&["apply", "--yes"]);
        let mut journal = Journal::new(&self.project);
        loop {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            let now = match moment {
                Moment::Time(time) => begin.elapsed() >= time,
                Moment::Calls(calls) => self.service.mutations().len() - before >= calls,
                Moment::Records(records) => journal.grown() >= records,
            };
            if now {
                return killed(&mut child);
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Applies until all is done, and returns the number of applies. An apply fails if a step meets three
    /// faults in a row.
    fn finish(&self, what: &str) -> usize {
        for n in 1..=10 {
            let ran = self.project.run(&["apply", "--yes"]);
            match ran.code {
                Some(0) => return n,
                Some(1 | 4) => {}
                code => panic!("{what}: apply ended with {code:?}\n{}", ran.said()),
            }
        }
        panic!("{what}: ten applies did not do");
    }

    fn expect_strangers_and(&self, what: &str) {
        for (collection, stranger) in &self.strangers {
            let live = self.service.list(collection);
            let kept = live.iter().find(|object| object["id"] == stranger["id"]);
            assert_eq!(kept, Some(stranger), "{what}: a stranger's object in {collection}");
        }
        let ours = |collection: &str| {
            let mut names: Vec<String> = self
                .service
                .list(collection)
                .iter()
                .filter(|object| {
                    !self.strangers.iter().any(|(_, other)| other["id"] == object["id"])
                })
                .map(|object| object["name"].as_str().unwrap().to_owned())
                .collect();
            names.sort();
            names
        };
        expect_exactly(ours, KEYS, what);
        let plan = self.project.run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{what}: {}", plan.said());
    }
}

fn killed(child: &mut Child) -> bool {
    child.kill().unwrap();
    child.wait().unwrap().code().is_none()
}

/// Counts how many times the journal has grown.
struct Journal {
    path: std::path::PathBuf,
    length: u64,
    grown: usize,
}

impl Journal {
    fn new(project: &Project) -> Self {
        let path = project.path(".plumb/journal");
        let length = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self { path, length, grown: 0 }
    }

    fn grown(&mut self) -> usize {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        self.grown += usize::from(length != self.length);
        self.length = length;
        self.grown
    }
}
