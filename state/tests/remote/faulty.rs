//! An object store in memory with occasional faults, and helpers for tests with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use state::conformance::snapshot;
use state::object::BucketStore;
use state::{LockedStore, Store, StoreError, Version};

use super::holder;

pub(crate) const TTL: Duration = Duration::from_millis(600);

/// A store over another one, with occasional faults.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: InMemory,
    /// The number of next writes whose answers are lost, after the effect.
    pub(crate) lose: AtomicU32,
    /// The number of next writes that fail without effect, as a conflict does.
    pub(crate) conflict: AtomicU32,
    /// True if all writes of the lock fail, as for a suspended holder.
    pub(crate) still: AtomicBool,
    /// The delay of the answers of writes of the lock after the effect, in milliseconds.
    pub(crate) late_ms: AtomicU32,
    /// True if no frame of the journal can be written.
    pub(crate) mute: AtomicBool,
    /// True if conditions are accepted and ignored.
    pub(crate) deaf: AtomicBool,
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("faulty")
    }
}

pub(crate) fn take_one(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

pub(crate) fn broken(what: &str) -> Error {
    Error::Generic { store: "faulty", source: what.to_owned().into() }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        if self.still.load(Ordering::SeqCst) && path.filename() == Some("lock") {
            return Err(broken("https://secret-canary.example/?sig=canary timed out"));
        }
        if self.mute.load(Ordering::SeqCst) && path.as_ref().contains("/journal/") {
            return Err(broken("no space"));
        }
        if take_one(&self.conflict) {
            let source = "409".to_owned().into();
            return Err(Error::AlreadyExists { path: path.to_string(), source });
        }
        if self.deaf.load(Ordering::SeqCst) {
            options.mode = PutMode::Overwrite;
        }
        let result = self.inner.put_opts(path, payload, options).await;
        if path.filename() == Some("lock") {
            let late = u64::from(self.late_ms.load(Ordering::SeqCst));
            tokio::time::sleep(Duration::from_millis(late)).await;
        }
        if result.is_ok() && take_one(&self.lose) {
            return Err(broken("the connection was reset"));
        }
        result
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

pub(crate) fn on(store: Arc<dyn ObjectStore>) -> BucketStore {
    BucketStore::on(store, Path::from("team/prod"), "memory/team/prod".to_owned())
        .ttl(TTL)
        .patience(Duration::from_secs(5))
}

pub(crate) fn faulty() -> (Arc<Faulty>, BucketStore) {
    let faulty = Arc::new(Faulty::default());
    (faulty.clone(), on(faulty))
}

pub(crate) fn is_fenced<T: std::fmt::Debug>(result: &std::result::Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Fenced(_)))
}

pub(crate) async fn locked(store: &BucketStore, run: &str) -> Box<dyn LockedStore> {
    store.lock(&holder(run), Duration::ZERO).await.unwrap()
}

pub(crate) async fn initialised(store: &BucketStore) -> Version {
    let mut held = locked(store, "first").await;
    let version = held.initialise(&snapshot(0)).await.unwrap();
    held.release().await.unwrap();
    version
}

/// Returns the names of all objects, in order.
pub(crate) async fn names(store: &dyn ObjectStore) -> Vec<String> {
    let listed = store.list(None).map_ok(|meta| meta.location.to_string());
    let mut names: Vec<String> = listed.try_collect().await.unwrap();
    names.sort();
    names
}

/// Removes the lock object, which has the effect of a takeover after silence, at once.
pub(crate) async fn drive_out(service: &Faulty) {
    service.inner.delete(&Path::from("team/prod/lock")).await.unwrap();
}
