//! The lock object: its holder, the holder's epoch, and the newest snapshot that was seen here.
//!
//! A holder writes it again every third of its lifetime. A run that wants the lock of a dead holder must see
//! the object unchanged for one and a half lifetimes, by its own clock: clocks of two machines are never
//! compared. If the holder is alive and only slow, it loses its run and nothing else, because the journal
//! does not accept its frames any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use object_store::{PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::debug;

use super::objects::{Object, Objects, is_same};
use crate::error::StoreError;
use crate::fenced_log::{LOCK_LOG, lock_lost};
use crate::frame::{NUMBER_MAX, SnapshotRef};
use crate::holder::Holder;
use crate::mark::Mark;

const NAME: &str = "lock";
/// The longest time in which a probe is repeated. Giving up loses nothing.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait for a running heartbeat before the lock is released all the same.
const BEAT_END: Duration = Duration::from_secs(5);
/// The longest lifetime that is accepted from a lock object.
const TTL_MAX: Duration = Duration::from_hours(1);

/// The content of the lock object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) epoch: u64,
    /// A random text for each write, so that no two bodies are equal.
    write: String,
    ttl_ms: u64,
    /// The holder; none if there is none.
    pub(super) holder: Option<Holder>,
    /// The number of the journal's first frame; 0 before the first.
    pub(super) base: u64,
    /// A lower bound of the last frame's number.
    pub(super) lsn: u64,
    /// The newest snapshot that was seen.
    pub(super) seen: Option<SnapshotRef>,
    /// The text of the mark; none if there is none.
    pub(super) moved: Option<String>,
}

impl Body {
    /// Returns the mark of the location.
    pub(super) fn mark(&self) -> Option<Mark> {
        self.moved.as_deref().map(Mark::parse)
    }

    fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.max(1)).min(TTL_MAX)
    }

    /// Returns true if the numbers are small enough to be counted up.
    fn is_sane(&self) -> bool {
        let serial = self.seen.as_ref().map_or(0, |seen| seen.serial);
        [self.epoch, self.base, self.lsn, serial].iter().all(|number| *number <= NUMBER_MAX)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.write = random()?;
        serde_json::to_vec(self).map_err(|error| StoreError::failed("cannot write the lock", error))
    }
}

/// Reads the lock object; returns none if there is none.
pub(super) async fn read(objects: &Objects) -> Result<Option<(Body, UpdateVersion)>, StoreError> {
    let Some(Object { bytes, version }) = objects.get(NAME).await? else { return Ok(None) };
    let body: Option<Body> = serde_json::from_slice(&bytes).ok();
    let body = body.filter(Body::is_sane).ok_or_else(|| {
        StoreError::suspicious(
            format!("the lock in {} was not written by Plumb", objects.place),
            "nothing was changed; find out what it is, and remove it if it is not Plumb's",
        )
    })?;
    Ok(Some((body, version)))
}

/// Returns the run that holds the lock.
pub(super) fn holder(body: &Body) -> Option<Holder> {
    body.holder.as_ref().map(Holder::sanitised)
}

/// Takes the lock. Waits up to `wait` for a live holder, and as long as necessary for a dead one.
pub(super) async fn take(
    objects: &Objects,
    holder: &Holder,
    ttl: Duration,
    wait: Duration,
) -> Result<Lock, StoreError> {
    let until = Instant::now() + wait;
    let mut watched: Option<(UpdateVersion, Instant)> = None;
    loop {
        let asked = Instant::now();
        let found = read(objects).await?;
        let Some((body, version)) = found else {
            probe(objects).await?;
            if let Some(lock) = create(objects, holder, ttl).await? {
                return Ok(lock);
            }
            continue;
        };
        let Some(other) = self::holder(&body) else {
            if let Some(lock) = take_from(objects, holder, ttl, body, &version).await? {
                return Ok(lock);
            }
            continue;
        };
        let lifetime = body.ttl();
        let is_alive = match &watched {
            Some((seen, since)) if is_same(seen, &version) => {
                if since.elapsed() >= lifetime + lifetime / 2 {
                    if let Some(lock) = take_from(objects, holder, ttl, body, &version).await? {
                        return Ok(lock);
                    }
                    continue;
                }
                false
            }
            Some(_) => true,
            // Only time shows that a holder is alive. A process with its number on this machine proves
            // nothing: machines that are made alike have the same name and the same numbers.
            None => false,
        };
        if is_alive && Instant::now() >= until {
            return Err(StoreError::Locked(Box::new(other)));
        }
        if watched.as_ref().is_none_or(|(seen, _)| !is_same(seen, &version)) {
            watched = Some((version, asked));
        }
        tokio::time::sleep((lifetime / 20).min(Duration::from_secs(1))).await;
    }
}

async fn create(
    objects: &Objects,
    holder: &Holder,
    ttl: Duration,
) -> Result<Option<Lock>, StoreError> {
    let mut body = Body { epoch: 1, ..Body::default() };
    sign_on(&mut body, holder, ttl);
    let asked = Instant::now();
    if !objects.create(NAME, &body.bytes()?).await? {
        return Ok(None);
    }
    match read(objects).await? {
        Some((found, version)) if found == body => {
            Ok(Some(Lock::new(objects, body, version, asked)))
        }
        _ => Ok(None),
    }
}

async fn take_from(
    objects: &Objects,
    holder: &Holder,
    ttl: Duration,
    mut body: Body,
    version: &UpdateVersion,
) -> Result<Option<Lock>, StoreError> {
    body.epoch += 1;
    sign_on(&mut body, holder, ttl);
    let asked = Instant::now();
    let taken = objects.replace(NAME, &body.bytes()?, version).await?;
    Ok(taken.map(|version| Lock::new(objects, body, version, asked)))
}

fn sign_on(body: &mut Body, holder: &Holder, ttl: Duration) {
    body.holder = Some(holder.sanitised());
    body.ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
}

/// A lock that this process holds and keeps alive.
pub(super) struct Lock {
    inner: Arc<Inner>,
    beats: Option<JoinHandle<()>>,
}

struct Inner {
    objects: Objects,
    current: Mutex<Current>,
    is_lost: AtomicBool,
}

struct Current {
    body: Body,
    version: UpdateVersion,
    /// The time just before the last write was sent that is known to have happened.
    confirmed: (Instant, SystemTime),
}

impl Lock {
    fn new(objects: &Objects, body: Body, version: UpdateVersion, asked: Instant) -> Self {
        let ttl = body.ttl();
        let confirmed = (asked, SystemTime::now());
        let current = Mutex::new(Current { body, version, confirmed });
        let inner = Inner { objects: objects.clone(), current, is_lost: AtomicBool::new(false) };
        let inner = Arc::new(inner);
        let beating = inner.clone();
        let beats = tokio::spawn(async move {
            loop {
                tokio::time::sleep(ttl / 3).await;
                // A failed heartbeat is tried again with the next one; a lost lock is not.
                let beat = beating.update(|_| ()).await;
                let is_lost = matches!(beat, Err(StoreError::Fenced(_)));
                debug!(target: LOCK_LOG, is_ok = beat.is_ok(), is_lost, "lock renewed");
                if is_lost {
                    return;
                }
            }
        });
        Self { inner, beats: Some(beats) }
    }

    /// Returns the content of the lock object.
    pub(super) async fn body(&self) -> Body {
        self.inner.current.lock().await.body.clone()
    }

    /// Writes the lock object again.
    pub(super) async fn update(&self, change: impl FnOnce(&mut Body)) -> Result<(), StoreError> {
        self.inner.update(change).await
    }

    /// Makes sure that no other run took over. If the last heartbeat is recent, none can have.
    pub(super) async fn confirm(&self) -> Result<(), StoreError> {
        let current = self.inner.current.lock().await;
        let (asked, at) = current.confirmed;
        let passed = asked.elapsed().max(at.elapsed().unwrap_or(Duration::MAX));
        let (is_fresh, epoch) = (passed < current.body.ttl(), current.body.epoch);
        drop(current);
        if self.inner.is_lost.load(Ordering::Relaxed) {
            return Err(lock_lost());
        }
        if is_fresh {
            return Ok(());
        }
        match read(&self.inner.objects).await? {
            Some((body, _)) if body.epoch == epoch => Ok(()),
            _ => Err(self.inner.lose()),
        }
    }

    /// Records the end of the journal, which the next write of the lock object contains.
    pub(super) async fn note(&self, lsn: u64) {
        self.inner.current.lock().await.body.lsn = lsn;
    }

    /// Releases the lock, so that the next run need not wait.
    pub(super) async fn release(&mut self) -> Result<(), StoreError> {
        let Some(beats) = self.beats.take() else { return Ok(()) };
        // A running heartbeat changes the version that the last write must name.
        let quiet = tokio::time::timeout(BEAT_END, self.inner.current.lock()).await;
        beats.abort();
        drop(quiet);
        match self.inner.update(|body| body.holder = None).await {
            // The lock belongs to another run by now; all data of this run is saved.
            Err(StoreError::Fenced(_)) => Ok(()),
            other => other,
        }
    }

    pub(super) fn is_released(&self) -> bool {
        self.beats.is_none()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(beats) = self.beats.take() {
            beats.abort();
        }
    }
}

impl Inner {
    fn lose(&self) -> StoreError {
        self.is_lost.store(true, Ordering::Relaxed);
        lock_lost()
    }

    async fn update(&self, change: impl FnOnce(&mut Body)) -> Result<(), StoreError> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(lock_lost());
        }
        let mut current = self.current.lock().await;
        let mut body = current.body.clone();
        change(&mut body);
        let (asked, at) = (Instant::now(), SystemTime::now());
        let bytes = body.bytes()?;
        match self.objects.replace(NAME, &bytes, &current.version).await? {
            Some(version) => {
                *current = Current { body, version, confirmed: (asked, at) };
                Ok(())
            }
            None => Err(self.lose()),
        }
    }
}

/// Finds out if the store enforces conditions. Some stores accept them silently, and overwrite.
async fn probe(objects: &Objects) -> Result<(), StoreError> {
    let name = format!("probe-{}", random()?);
    let objects = &Objects { patience: objects.patience.min(PROBE_PATIENCE), ..objects.clone() };
    let result = try_probe(objects, &name).await;
    objects.remove(vec![name]).await;
    let Some(ignored) = result? else { return Ok(()) };
    Err(StoreError::Unfit {
        what: format!("the service of {} ignores conditional writes: {ignored}", objects.place),
        help:
            "two runs could overwrite each other's state there: keep it in a service that honours \
               conditional writes, or in another backend"
                .to_owned(),
    })
}

/// Returns the write that happened although a condition forbade it; none if there is none. An answer that
/// shows neither that a write happened nor that its condition failed is asked for again, because it proves
/// nothing.
async fn try_probe(objects: &Objects, name: &str) -> Result<Option<&'static str>, StoreError> {
    const IF_ABSENT: &str = "an object that had to be absent was overwritten";
    const IF_SAME: &str = "an object that had to be unchanged was overwritten";
    let first = written(objects, name, b"1", PutMode::Create).await?;
    if objects.put_surely(name, b"2", PutMode::Create).await?.is_some() {
        return Ok(Some(IF_ABSENT));
    }
    written(objects, name, b"3", PutMode::Update(first.clone())).await?;
    let second = objects.put_surely(name, b"4", PutMode::Update(first)).await?;
    Ok(second.map(|_| IF_SAME))
}

/// Writes an object that no other run writes. If the condition fails, the object was written, and the answer
/// was lost.
async fn written(
    objects: &Objects,
    name: &str,
    bytes: &[u8],
    mode: PutMode,
) -> Result<UpdateVersion, StoreError> {
    if let Some(version) = objects.put_surely(name, bytes, mode).await? {
        return Ok(version);
    }
    match objects.get(name).await? {
        Some(object) if object.bytes == bytes => Ok(object.version),
        _ => Err(StoreError::refused(format!(
            "{} cannot be used: an object that was just written there has other content",
            objects.place
        ))),
    }
}

/// Returns sixteen hexadecimal digits.
fn random() -> Result<String, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        StoreError::refused(format!("the system provides no random numbers: {error}"))
    })?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
