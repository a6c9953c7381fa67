//! A run that writes as fast as it can is killed at random moments. Afterwards all records that it reported
//! as durable exist, the state is readable, and the lock is free at once.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use state::file::FileStore;
use state::{Holder, Loaded, LockedStore, Store, conformance};

const KILLS: u32 = 30;
const FOLDER: &str = "PLUMB_TEST_FOLDER";
/// The number of appends between two saves.
const SAVE_EVERY: u64 = 5;

/// Writes until the process is killed; this is not a test of its own.
#[tokio::test]
#[ignore = "it runs until it is killed; the other test starts it"]
async fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = FileStore::new(PathBuf::from(folder));
    let mut held = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
    let mut at = resume(&mut *held).await;
    loop {
        held.append(&conformance::records(at.next..at.next + 1)).await.unwrap();
        at.next += 1;
        say(at.next);
        if at.next % SAVE_EVERY == 0 {
            at.serial += 1;
            let mut snapshot = conformance::snapshot(at.serial);
            snapshot.next_call = at.next;
            at.version = held.save(&snapshot, &at.version).await.unwrap();
            say(at.next);
        }
    }
}

/// Reports the number of durable records to the parent.
fn say(count: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\ndurable {count}").unwrap();
    out.flush().unwrap();
}

struct At {
    next: u64,
    serial: u64,
    version: state::Version,
}

async fn resume(held: &mut dyn LockedStore) -> At {
    if held.loaded().snapshot.is_none() {
        let version = held.initialise(&conformance::snapshot(0)).await.unwrap();
        return At { next: 0, serial: 0, version };
    }
    let loaded = held.loaded();
    let serial = loaded.snapshot.as_ref().unwrap().serial;
    At { next: count(loaded), serial, version: loaded.version.clone() }
}

/// Returns the number of records, folded or not. They must be the first ones, without a gap.
fn count(loaded: &Loaded) -> u64 {
    let folded = loaded.snapshot.as_ref().map_or(0, |snapshot| snapshot.next_call);
    let end = folded + loaded.records.len() as u64;
    assert_eq!(loaded.records, conformance::records(folded..end));
    end
}

fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kills::writes_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Returns the last number of durable records that the child printed; none if it printed none.
fn last_word(child: &mut Child) -> Option<u64> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let numbers = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("durable ").and_then(|number| number.parse().ok()));
    numbers.last()
}

#[tokio::test]
async fn whatever_was_durable_survives_a_kill() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".plumb");
    let store = FileStore::new(&folder);
    let mut seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let mut durable = 0;
    for kill in 0..KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pause = Duration::from_micros(u64::try_from((seed >> 33) % 150_000).unwrap());
        let mut child = start(&folder);
        std::thread::sleep(pause);
        child.kill().unwrap();
        durable = last_word(&mut child).unwrap_or(durable);
        child.wait().unwrap();
        let case = format!("kill {kill} after {pause:?}");

        let loaded = store.load().await.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(loaded.holder, None, "{case}");
        let found = count(&loaded);
        assert!(found == durable || found == durable + 1, "{case}: {found} of {durable}");
        let held = store.lock(&Holder::default(), Duration::ZERO).await;
        let held = held.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(count(held.loaded()), found, "{case}");
        durable = found;
    }
    assert!(durable > 50, "only {durable} records were written between the kills");
}
