//! Single objects: read, made if absent, replaced if unchanged. The outcome of a write whose answer was lost
//! is found by a read, because no other run writes a body like that.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    UpdateVersion,
};
use tokio::time::Instant;

use crate::error::StoreError;

/// The number of simultaneous requests.
const AT_ONCE: usize = 16;
/// The pauses between attempts, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The objects of one state.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// The location for people.
    pub(super) place: String,
    /// The time during which a write with a lost answer is repeated.
    pub(super) patience: Duration,
}

/// An object's content, and the version that a replacement must name.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) bytes: Vec<u8>,
    pub(super) version: UpdateVersion,
}

impl Objects {
    pub(super) fn path(&self, name: &str) -> Path {
        let parts = self.prefix.parts().chain(name.split('/').map(Into::into));
        parts.collect()
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<Object>, StoreError> {
        self.try_get(name).await.map_err(|error| self.failed("read", name, &error))
    }

    async fn try_get(&self, name: &str) -> Result<Option<Object>, Error> {
        let result = match self.store.get(&self.path(name)).await {
            Ok(result) => result,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let ObjectMeta { e_tag, version, .. } = result.meta.clone();
        let bytes = result.bytes().await?.to_vec();
        Ok(Some(Object { bytes, version: UpdateVersion { e_tag, version } }))
    }

    /// Returns the first bytes of an object.
    pub(super) async fn head(&self, name: &str, count: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let options = GetOptions::new().with_range(Some(0..count));
        match self.store.get_opts(&self.path(name), options).await {
            Ok(result) => {
                let bytes = result.bytes().await;
                bytes.map(|b| Some(b.to_vec())).map_err(|error| self.failed("read", name, &error))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", name, &error)),
        }
    }

    /// Makes an object that must not exist. Returns false if another one exists.
    pub(super) async fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        let mut attempts = Attempts::new(self.patience);
        loop {
            let Err(error) = self.put(name, bytes, PutMode::Create).await else { return Ok(true) };
            if is_final(&error) {
                return Err(self.failed("write", name, &error));
            }
            // The object may exist, or an earlier request that seemed lost has made it, or there was a
            // conflict and it does not exist: a read shows which.
            if let Ok(Some(object)) = self.try_get(name).await {
                return Ok(object.bytes == bytes);
            }
            if !attempts.pause().await {
                return Err(self.failed("write", name, &error));
            }
        }
    }

    /// Replaces an object that must still have `version`. Returns none if it does not.
    pub(super) async fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        version: &UpdateVersion,
    ) -> Result<Option<UpdateVersion>, StoreError> {
        let mut attempts = Attempts::new(self.patience);
        loop {
            let error = match self.put(name, bytes, PutMode::Update(version.clone())).await {
                Ok(version) => return Ok(Some(version)),
                Err(error) => error,
            };
            if is_final(&error) {
                return Err(self.failed("write", name, &error));
            }
            match self.try_get(name).await {
                Ok(Some(object)) if object.bytes == bytes => return Ok(Some(object.version)),
                Ok(Some(object)) if is_same(&object.version, version) => {}
                Ok(_) => return Ok(None),
                Err(_) => {}
            }
            if !attempts.pause().await {
                return Err(self.failed("write", name, &error));
            }
        }
    }

    /// Writes an object, even if one exists.
    pub(super) async fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut attempts = Attempts::new(self.patience);
        loop {
            let Err(error) = self.put(name, bytes, PutMode::Overwrite).await else { return Ok(()) };
            if is_final(&error) || !attempts.pause().await {
                return Err(self.failed("write", name, &error));
            }
        }
    }

    /// Writes under a condition; returns none if the service answers that the condition fails. Only that
    /// answer counts here: nothing is read.
    pub(super) async fn put_surely(
        &self,
        name: &str,
        bytes: &[u8],
        mode: PutMode,
    ) -> Result<Option<UpdateVersion>, StoreError> {
        let mut attempts = Attempts::new(self.patience);
        loop {
            match self.put(name, bytes, mode.clone()).await {
                Ok(version) => return Ok(Some(version)),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => return Ok(None),
                Err(error) if is_final(&error) || !attempts.pause().await => {
                    return Err(self.failed("write", name, &error));
                }
                Err(_) => {}
            }
        }
    }

    async fn put(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<UpdateVersion, Error> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let payload = bytes.to_vec().into();
        self.store.put_opts(&self.path(name), payload, options).await.map(Into::into)
    }

    /// Returns the objects below a folder, after `after`: their names in the folder, in order.
    pub(super) async fn list(
        &self,
        folder: &str,
        after: Option<&str>,
    ) -> Result<Vec<(String, ObjectMeta)>, StoreError> {
        let path = self.path(folder);
        let listed = match after {
            Some(after) => {
                self.store.list_with_offset(Some(&path), &self.path(&format!("{folder}/{after}")))
            }
            None => self.store.list(Some(&path)),
        };
        let metas: Vec<ObjectMeta> =
            listed.try_collect().await.map_err(|error| self.failed("list", folder, &error))?;
        let mut found: Vec<(String, ObjectMeta)> = metas
            .into_iter()
            .filter_map(|meta| Some((meta.location.filename()?.to_owned(), meta)))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Reads many objects; returns none if one of them does not exist.
    pub(super) async fn get_all(
        &self,
        names: Vec<String>,
    ) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let reading = names.into_iter().map(async |name| self.get(&name).await);
        let read: Vec<Option<Object>> =
            futures_util::stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
        Ok(read.into_iter().map(|object| Some(object?.bytes)).collect())
    }

    /// Removes objects that are not needed. An object that stays is removed another time.
    pub(super) async fn remove(&self, names: Vec<String>) {
        let removing = names.into_iter().map(async |name| {
            self.store.delete(&self.path(&name)).await.ok();
        });
        futures_util::stream::iter(removing).buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    fn failed(&self, what: &str, name: &str, error: &Error) -> StoreError {
        StoreError::refused(format!("cannot {what} {name} in {}: {}", self.place, said(error)))
    }
}

/// Returns true if an object still has the same version. If the service has no versions, `ETag`s are
/// compared; with versions they do not count, because an `ETag` may differ between the answers of a write and
/// of a read.
pub(super) fn is_same(one: &UpdateVersion, other: &UpdateVersion) -> bool {
    match (&one.version, &other.version) {
        (Some(one), Some(other)) => one == other,
        _ => one.e_tag == other.e_tag,
    }
}

/// Returns true for errors that a repetition does not remove.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::UnknownConfigurationKey { .. }
    ) || is_elsewhere(error)
}

/// Returns true for a redirect, which is not followed, because credentials would be sent to another host.
fn is_elsewhere(error: &Error) -> bool {
    let whole = whole(error);
    let is_redirect = status(&whole).is_some_and(|status| status.starts_with('3'));
    (is_redirect && !matches!(error, Error::NotModified { .. }))
        || whole.contains("redirect without LOCATION")
}

/// Returns our own description of an error: the client's may contain an address with a signature, or anything
/// that the service sent.
fn said(error: &Error) -> String {
    let words = match error {
        Error::NotFound { .. } => "there is no such bucket or container, or no such object",
        Error::AlreadyExists { .. } | Error::Precondition { .. } => {
            "another client keeps writing there at the same time"
        }
        Error::PermissionDenied { .. } => "the credentials do not permit it",
        Error::Unauthenticated { .. } => "the credentials are not accepted",
        Error::NotSupported { .. } | Error::NotImplemented { .. } => {
            "the service does not support the operation"
        }
        _ if is_elsewhere(error) => {
            "the service redirects requests, and redirects are not followed: check the region and \
             the address in `[state]`"
        }
        _ => "the request failed",
    };
    let details = details(error);
    if details.is_empty() { words.to_owned() } else { format!("{words} ({details})") }
}

/// Returns the status and the code of an answer, the missing parts that a condition needs, and if there was
/// an answer.
fn details(error: &Error) -> String {
    let whole = whole(error);
    let status = status(&whole);
    let code = whole.split_once("<Code>").and_then(|(_, rest)| {
        let code = rest.split('<').next()?;
        let is_word = code.len() <= 60 && code.chars().all(|c| c.is_ascii_alphanumeric());
        (is_word && !code.is_empty()).then(|| code.to_owned())
    });
    let mut found: Vec<String> =
        status.map(|status| format!("status {status}")).into_iter().collect();
    found.extend(code);
    if whole.contains("ETag") {
        found.push("no ETag".to_owned());
    }
    if found.is_empty() && whole.contains("timed out") {
        found.push("no answer in time".to_owned());
    } else if found.is_empty() && ["onnect", "dns"].iter().any(|word| whole.contains(word)) {
        found.push("no connection".to_owned());
    }
    found.join(", ")
}

/// Returns an error with its causes, in the client's words: for examination, and not to be shown.
fn whole(error: &Error) -> String {
    let mut whole = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        whole = format!("{whole} {cause}");
        source = cause.source();
    }
    whole
}

/// Returns the status of an answer, from the client's words; none if there is none.
fn status(whole: &str) -> Option<String> {
    let number = |mark: &str| {
        let (_, rest) = whole.split_once(mark)?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        (digits.len() == 3).then_some(digits)
    };
    number("status code:").or_else(|| number("status:"))
}

/// A bounded series of attempts, counted from the first failure.
struct Attempts {
    patience: Duration,
    until: Option<Instant>,
    pause: Duration,
}

impl Attempts {
    fn new(patience: Duration) -> Self {
        Self { patience, until: None, pause: PAUSES.0 }
    }

    /// Waits before the next attempt; returns false if there is none.
    async fn pause(&mut self) -> bool {
        let now = Instant::now();
        if now >= *self.until.get_or_insert(now + self.patience) {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        true
    }
}
