//! State in an object store that keeps conditions on writes: S3 and what speaks it, GCS, Azure.
//!
//! ```text
//! PREFIX/lock                        who is at it; where the journal begins (`lock`)
//! PREFIX/journal/NUMBER              the records since: one frame (`frame`) an object, never changed
//! PREFIX/snapshots/SERIAL-DIGEST     snapshots as they are in files (`format`), never changed
//! ```
//!
//! The lock object shows who is alive; the journal provides the safety, because each of its objects is made
//! only if it does not exist. A run that takes over first makes the next one, and from then on an earlier
//! holder can append nothing, and so starts no call. A save counts when the journal names its snapshot.

mod http;
mod lock;
mod log;
mod objects;
mod parts;
mod read;
mod service;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::config::settings::StateSettings;
use engine::state::Snapshot;
use object_store::ObjectStore;
use object_store::path::Path;

use self::lock::{Body, Lock};
use self::log::ObjectLog;
use self::objects::Objects;
use self::read::Found;
use crate::cipher::{self, Cipher};
use crate::environment::{Environment, Refusal};
use crate::error::StoreError;
use crate::fenced_log::{self, FencedStore};
use crate::frame::{End, pieces};
use crate::holder::Holder;
use crate::mark::{Mark, Purpose, refuse_left};
use crate::store::{Loaded, LockedStore, Store, Version};

/// The lifetime of a lock that its holder does not renew. Other runs wait for one and a half lifetimes.
const TTL: Duration = Duration::from_secs(15);
/// The time during which a write with a lost answer is repeated.
const PATIENCE: Duration = Duration::from_mins(1);
/// The number of times that a new holder tries to shut out an earlier one.
const SEALS: u32 = 1_000;

/// A store in a bucket or container.
#[derive(Clone)]
pub struct BucketStore {
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Shared {
    objects: Objects,
    cipher: Cipher,
    ttl: Duration,
}

impl BucketStore {
    /// Returns the store that `[state]` and the environment describe; none if this build does not have its
    /// service. Nothing is called yet.
    pub fn open(
        settings: &StateSettings,
        environment: &Environment<'_>,
        cipher: Cipher,
    ) -> Result<Option<Self>, Refusal> {
        let Some(service) = service::open(settings, environment)? else { return Ok(None) };
        let prefix = settings.text("prefix").unwrap_or_default().trim_matches('/');
        let parsed = Path::parse(prefix).ok().filter(|path| path.parts().next().is_some());
        let parsed = parsed.ok_or_else(|| {
            Refusal::new("the `prefix` of `[state]` is not a path")
                .help("use a path such as team/prod")
        })?;
        let place = service.place(&parsed);
        let mut this = Self::on(service.store, parsed, place).sealed(cipher);
        if let Some(ttl) = settings.integer("lock_ttl").and_then(|ttl| u64::try_from(ttl).ok()) {
            this = this.ttl(Duration::from_secs(ttl));
        }
        Ok(Some(this))
    }

    /// Returns the store in any object store, for tests.
    pub fn on(store: Arc<dyn ObjectStore>, prefix: Path, place: String) -> Self {
        let objects = Objects { store, prefix, place, patience: PATIENCE };
        Self { shared: Arc::new(Shared { objects, cipher: Cipher::off(), ttl: TTL }) }
    }

    /// Sets a key: the store seals the data that it writes, and opens sealed data.
    #[must_use]
    pub fn sealed(self, cipher: Cipher) -> Self {
        Self { shared: Arc::new(Shared { cipher, ..(*self.shared).clone() }) }
    }

    /// Sets another lifetime of the lock.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { shared: Arc::new(Shared { ttl, ..(*self.shared).clone() }) }
    }

    /// Sets another time during which a write with an unknown outcome is repeated.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        let mut shared = (*self.shared).clone();
        shared.objects.patience = patience;
        Self { shared: Arc::new(shared) }
    }

    async fn take(&self, holder: &Holder, wait: Duration) -> Result<Lock, StoreError> {
        lock::take(&self.shared.objects, holder, self.shared.ttl, wait).await
    }

    /// Reads under the lock, and shuts out every earlier holder.
    async fn begin(
        &self,
        mut log: ObjectLog,
        mark: Option<Mark>,
    ) -> Result<FencedStore<ObjectLog>, StoreError> {
        let Shared { objects, cipher, .. } = &*self.shared;
        for _ in 0..SEALS {
            let lock_body = lock::read(objects).await?.map(|(body, _)| body);
            let Some(found) = read::read(objects, cipher, lock_body).await? else {
                return Ok(FencedStore::new(log, Loaded { mark, ..Loaded::nothing() }, None));
            };
            let Found { loaded, mut position, base, epoch_starts } = found;
            log.rise_above(position.header.newest_epoch(Some(position.end)));
            if log.seal(&mut position, epoch_starts, base).await? {
                return Ok(FencedStore::new(log, Loaded { mark, ..loaded }, Some(position)));
            }
        }
        Err(StoreError::refused("another run keeps writing, so that this one cannot begin"))
    }
}

#[async_trait]
impl Store for BucketStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let Shared { objects, cipher, .. } = &*self.shared;
        let lock_body = lock::read(objects).await?.map(|(body, _)| body);
        let mark = lock_body.as_ref().and_then(Body::mark);
        refuse_left(mark.as_ref(), &objects.place)?;
        let holder = lock_body.as_ref().and_then(lock::holder);
        let found = read::read(objects, cipher, lock_body).await?;
        let loaded = found.map_or_else(Loaded::nothing, |found| found.loaded);
        loaded.seen_with(holder, mark, &objects.place)
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let Shared { objects, cipher, .. } = &*self.shared;
        let mut lock = self.take(holder, wait).await?;
        let mark = lock.body().await.mark();
        if let Err(refused) = purpose.check(mark.as_ref(), &objects.place) {
            // The lock of a refused location is released.
            lock.release().await?;
            return Err(refused);
        }
        let log = ObjectLog::new(objects.clone(), cipher.clone(), lock).await;
        Ok(Box::new(self.begin(log, mark).await?))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        let Shared { objects, cipher, .. } = &*self.shared;
        let lock = self.take(holder, Duration::ZERO).await?;
        let body = lock.body().await;
        let kept = read::serials(objects).await?.last().map_or(0, |(serial, _)| *serial);
        let seen = body.seen.as_ref().map_or(0, |seen| seen.serial);
        let serial = kept.max(seen).max(snapshot.serial) + 1;
        let listed = objects.list("journal", None).await?;
        let last = listed.iter().filter_map(|(name, _)| read::number(name)).max();
        let lsn = last.unwrap_or(0).max(body.lsn);
        let mut log = ObjectLog::new(objects.clone(), cipher.clone(), lock).await;
        let mut end = End { lsn, ..End::default() };
        if let Some(object) = objects.get(&read::frame_name(lsn)).await?
            && let Some(found) = pieces::end(&object.bytes)
        {
            log.rise_above(found.epoch);
            end = found;
        }
        fenced_log::restore(log, &Snapshot { serial, ..snapshot.clone() }, end).await
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        let seen = lock::read(&self.shared.objects).await?.and_then(|(body, _)| body.seen);
        let current = seen.map(|seen| seen.serial);
        let kept = read::serials(&self.shared.objects).await?;
        let past = kept.into_iter().map(|(serial, _)| serial);
        Ok(past.filter(|serial| Some(*serial) != current).collect())
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        let Shared { objects, cipher, .. } = &*self.shared;
        let kept = read::serials(&self.shared.objects).await?;
        let Some((_, name)) = kept.into_iter().rfind(|(kept, _)| *kept == serial) else {
            return Ok(None);
        };
        let name = format!("snapshots/{name}");
        let Some(object) = objects.get(&name).await? else { return Ok(None) };
        read::open(objects, cipher, &name, &object.bytes).await.map(|(_, snapshot)| Some(snapshot))
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        let Shared { objects, .. } = &*self.shared;
        let seen = lock::read(objects).await?.and_then(|(body, _)| body.seen);
        let Some(seen) = seen else { return Ok(false) };
        let head = objects.head(&read::snapshot_name(&seen), 4).await?;
        Ok(head.is_some_and(|head| !cipher::is_sealed(&head)))
    }

    fn place(&self) -> String {
        self.shared.objects.place.clone()
    }
}
