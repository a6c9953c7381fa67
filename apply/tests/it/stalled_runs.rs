//! Runs that stand still, wait their turn, or are stopped while they wait.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apply::ApplyError;
use async_trait::async_trait;
use engine::journal::Record;
use engine::plan::input::Options;
use engine::state::Snapshot;
use engine::value::Value;
use state::mark::Purpose;
use state::memory::MemoryStore;
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};
use tokio_util::sync::CancellationToken;

use crate::cloud::{Fault, SAID};
use crate::slow_cloud::Busy;
use crate::world::{DISK, World, converges};

/// A store that notes the records that are appended. After an append, the process may stand still while
/// another run takes its place.
struct Watched {
    store: MemoryStore,
    pause: Pause,
    appended: Arc<Mutex<String>>,
}

/// The event after an append.
#[derive(Clone)]
enum Pause {
    None,
    /// The process stands still for a minute.
    Still,
    /// Each append takes six seconds, and no other run takes the place.
    Slow,
    /// The machine sleeps for an hour, and only the wall clock goes on.
    Asleep(Arc<AtomicU64>),
}

impl Watched {
    fn new(store: MemoryStore, pause: Pause) -> Self {
        Self { store, pause, appended: Arc::default() }
    }
}

struct WatchedHeld {
    held: Box<dyn LockedStore>,
    store: Watched,
}

#[async_trait]
impl Store for Watched {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.store.load().await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let held = self.store.lock_for(purpose, holder, wait).await?;
        let (pause, appended) = (self.pause.clone(), self.appended.clone());
        let store = Watched { store: self.store.clone(), pause, appended };
        Ok(Box::new(WatchedHeld { held, store }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.store.restore(holder, snapshot).await
    }

    fn place(&self) -> String {
        self.store.place()
    }
}

#[async_trait]
impl LockedStore for WatchedHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.held.initialise(snapshot).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        self.held.append(records).await?;
        write!(self.store.appended.lock().unwrap(), "{records:?}").unwrap();
        match &self.store.pause {
            Pause::None => return Ok(()),
            Pause::Slow => {
                tokio::time::sleep(Duration::from_secs(6)).await;
                return Ok(());
            }
            Pause::Still => tokio::time::sleep(Duration::from_mins(1)).await,
            Pause::Asleep(slept) => drop(slept.fetch_add(3_600_000, Ordering::Relaxed)),
        }
        self.store.store.drive_out();
        Ok(())
    }

    async fn save(&mut self, snapshot: &Snapshot, at: &Version) -> Result<Version, StoreError> {
        self.held.save(snapshot, at).await
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_stood_still_before_its_call_calls_nothing() {
    for asleep in [false, true] {
        let world = World::new();
        let slept = world.host.slept.clone();
        let pause = if asleep { Pause::Asleep(slept) } else { Pause::Still };
        let store = Watched::new(world.store.clone(), pause);
        let error = world.apply_on(&store, DISK, &Options::default()).await.unwrap_err();
        assert!(error.to_string().contains("can no longer write"), "{error}");
        assert!(world.cloud.take_log().is_empty());
        converges(&world, DISK).await;
    }
}

async fn apply_busy(world: &World, waits: Duration) -> Result<(), ApplyError> {
    let providers = world.providers_with(Arc::new(Busy::new(world, waits)));
    world.apply_through(&world.store, &providers, DISK, &Options::default()).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_its_turn_too_long_asks_again() {
    let world = World::new();
    apply_busy(&world, Duration::from_mins(2)).await.unwrap();
    assert_eq!(world.cloud.names("disk"), ["d"]);

    let world = World::new();
    let (run, other) = tokio::join!(apply_busy(&world, Duration::from_mins(2)), async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        world.store.drive_out();
    });
    let ((), error) = (other, run.unwrap_err());
    assert!(matches!(error, ApplyError::Store(StoreError::Fenced(_))), "{error:?}");
    assert!(world.cloud.names("disk").is_empty(), "it had lost its place, and sent nothing");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_another_try_remains_when_the_run_is_stopped() {
    let mut world = World::new();
    world.cloud.strike(0, Fault::LostBefore);
    let used = format!("{DISK}[resource.unit.u]\nname = \"u\"\ndisk_id = \"${{disk.d.id}}\"\n");
    let stop = Some(world.stop.clone());
    let busy = Busy { stop, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(busy));
    let options = Options::default();
    let report = world.apply_through(&world.store, &providers, &used, &options).await.unwrap();
    assert!(report.summary.cancelled && report.failures.is_empty(), "{report:?}");
    let remaining: Vec<String> = report
        .remaining
        .iter()
        .map(|step| format!("{} {}", step.operation.word(), step.address))
        .collect();
    let all = ["create disk.d", "activate disk.d", "create unit.u", "activate unit.u"];
    assert_eq!((remaining, report.summary.skipped), (all.map(str::to_owned).to_vec(), 0));
    world.stop = CancellationToken::new();
    converges(&world, &used).await;
    assert_eq!(world.cloud.names("disk"), ["d"]);
}

/// A step reads a secret before its call, and the read never answers. A stop of the run ends the wait.
#[tokio::test(start_paused = true)]
async fn a_secret_that_does_not_come_holds_up_no_stop() {
    let mut world = World::new();
    let secret = ("secret", Value::string("s3cret"));
    let attributes = [("name", Value::string("u")), ("workers", Value::Integer(0)), secret];
    let id = world.cloud.put("unit", &attributes);
    let unit = "[resource.unit.u]\nname = \"u\"\n";
    let imported = format!("{unit}[[import]]\nto = 'unit.u'\nid = '{id}'\n");
    world.apply(&imported).await.unwrap();
    let used = format!("{unit}[resource.unit.v]\nname = \"v\"\nsecret = \"${{unit.u.secret}}\"\n");
    let stop = Some(world.stop.clone());
    let busy = Busy { stop, hangs: true, ..Busy::new(&world, Duration::ZERO) };
    let providers = world.providers_with(Arc::new(busy));
    let options = Options::default();
    let run = world.apply_through(&world.store, &providers, &used, &options);
    let report = tokio::time::timeout(Duration::from_mins(5), run).await.unwrap().unwrap();
    assert!(report.summary.cancelled && report.failures.is_empty(), "{report:?}");
    assert_eq!(report.remaining.len(), 2, "{report:?}");
    world.stop = CancellationToken::new();
    converges(&world, &used).await;
    let shared = world.cloud.shared.lock().unwrap();
    let made = shared.objects.values().find(|unit| unit["name"] == Value::string("v")).unwrap();
    assert_eq!(made["secret"], Value::string("s3cret"));
}

/// The report shows the server's words about a refusal. The journal and the state do not keep them, because
/// they may repeat a secret in a form that nothing recognises.
#[tokio::test(start_paused = true)]
async fn a_servers_words_are_shown_and_not_kept() {
    for (fault, shown) in [(Fault::Refused, true), (Fault::LostBefore, false)] {
        let world = World::new();
        world.cloud.strike(0, fault);
        let store = Watched::new(world.store.clone(), Pause::None);
        let report = world.apply_on(&store, DISK, &Options::default()).await.unwrap();
        let said = report.failures.iter().any(|failure| failure.message.contains(SAID));
        assert_eq!(said, shown, "{report:?}");
        let snapshot = world.store.load().await.unwrap().snapshot;
        let kept = format!("{:?} {snapshot:?}", store.appended.lock().unwrap());
        assert!(!kept.contains(SAID), "{kept}");
        assert!(kept.contains("NoEffect") || kept.contains("Doubted"), "{kept}");
    }
}

/// The store is so slow that the run may send no call. The run ends with an error, and does not write
/// without end.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_too_slow_ends_the_run() {
    let world = World::new();
    let store = Watched::new(world.store.clone(), Pause::Slow);
    let began = tokio::time::Instant::now();
    let error = world.apply_on(&store, DISK, &Options::default()).await.unwrap_err();
    assert!(matches!(error, ApplyError::SlowStore(_)), "{error}");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
    assert!(world.cloud.take_log().is_empty());
    assert!(world.state().await.pending.is_empty(), "nothing is in doubt");
    converges(&world, DISK).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_heeded_while_a_slow_store_writes() {
    let world = World::new();
    let store = Watched::new(world.store.clone(), Pause::Slow);
    let stopped = async {
        tokio::time::sleep(Duration::from_secs(8)).await;
        world.stop.cancel();
    };
    let options = Options::default();
    let (report, ()) = tokio::join!(world.apply_on(&store, DISK, &options), stopped);
    assert!(report.unwrap().summary.cancelled);
    assert!(world.cloud.take_log().is_empty());
    let world = World { stop: CancellationToken::new(), ..world };
    assert!(world.state().await.pending.is_empty(), "nothing is in doubt");
    converges(&world, DISK).await;
}
