//! The time that operations on a large state take. Run with
//! `cargo test -p state --release --test main -- --ignored --nocapture speed`.

use std::time::{Duration, Instant};

use engine::state::Snapshot;
use state::file::FileStore;
use state::{Holder, Store, conformance};

const ENTRIES: u64 = 100_000;
/// The longest time of each operation, in a release build.
const BUDGET: Duration = Duration::from_millis(400);

fn large() -> Snapshot {
    let mut snapshot = conformance::snapshot(1);
    let mut entry = snapshot.entries.values().next().unwrap().clone();
    let object = entry.current.as_mut().unwrap();
    object.managed = ["name", "image_name", "env", "tags", "size"].map(Into::into).into();
    object.attributes.json = engine::stored::from_json(&serde_json::json!({
        "id": "k3j2h1g9f8", "name": "vllm-inference-production", "image_name": "registry.example/vllm:0.9.1",
        "size": 100, "ratio": 0.25, "env": {"MODEL": "tiny", "PORT": "8080"}, "tags": ["a", "b"],
        "is_serverless": true, "docker_args": null,
    }));
    for n in 0..ENTRIES {
        let mut entry = entry.clone();
        let before = format!("value.v{}", n.saturating_sub(1)).parse().unwrap();
        entry.dependencies.insert(before);
        snapshot.entries.insert(format!("value.v{n}").parse().unwrap(), entry);
    }
    snapshot
}

/// Reports the best of some attempts: the others depend more on the load of the machine.
fn report(what: &str, tries: &[Duration]) {
    let best = tries.iter().min().unwrap();
    println!("{what}: {best:?}");
    assert!(cfg!(debug_assertions) || *best < BUDGET, "{what} took {best:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures, and says something in a release build only"]
async fn a_large_state_is_loaded_and_saved_in_time() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::new(root.path().join(".plumb"));
    let mut held = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
    let mut version = held.initialise(&conformance::snapshot(0)).await.unwrap();
    let mut large = large();
    let (mut saves, mut loads) = (Vec::new(), Vec::new());
    for serial in 1..=5 {
        large.serial = serial;
        let started = Instant::now();
        version = held.save(&large, &version).await.unwrap();
        saves.push(started.elapsed());
        let started = Instant::now();
        let loaded = store.load().await.unwrap();
        loads.push(started.elapsed());
        assert_eq!(loaded.snapshot.as_ref(), Some(&large));
    }
    let size = std::fs::metadata(root.path().join(".plumb/state.json")).unwrap().len();
    println!("{ENTRIES} entries, {size} bytes");
    report("save", &saves);
    report("load", &loads);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures, and says something in a release build only"]
async fn an_append_costs_what_a_sync_costs() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::new(root.path().join(".plumb"));
    let mut held = store.lock(&Holder::default(), Duration::ZERO).await.unwrap();
    held.initialise(&conformance::snapshot(0)).await.unwrap();
    let started = Instant::now();
    for n in 0..200 {
        held.append(&conformance::records(n..n + 1)).await.unwrap();
    }
    println!("one record, one append: {:?} each", started.elapsed() / 200);
    // This runs on a thread of the runtime, where blocking work hands the other tasks to another thread.
    let aside = tokio::spawn(async {
        let started = Instant::now();
        for _ in 0..1000 {
            tokio::task::block_in_place(|| std::hint::black_box(()));
            tokio::task::yield_now().await;
        }
        started.elapsed() / 1000
    });
    println!("stepping aside for it: {:?} each", aside.await.unwrap());
    let records = conformance::records(0..10_000);
    let started = Instant::now();
    held.append(&records).await.unwrap();
    report("10,000 records, one append", &[started.elapsed()]);
}
