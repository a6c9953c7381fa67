//! The opening of the store for a spec's `[state]`: the backends of this build, and the settings that they
//! need from the environment. Credentials come only from there.

use std::path::Path;
use std::sync::Arc;

use engine::config::settings::StateSettings;

use crate::cipher::Cipher;
use crate::environment::{Environment, Refusal};
use crate::file::FileStore;
use crate::store::Store;

/// Returns true if other machines use the state, too. Such a state is made once, by an explicit command: if
/// none is found, it is lost, or the settings name the wrong place.
pub fn is_remote(settings: &StateSettings) -> bool {
    &*settings.backend != "file"
}

/// The event that ends a lock that was not released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockEnds {
    /// The end of the process that holds the lock: the kernel ends it.
    WithProcess,
    /// The end of the connection of the process that holds the lock: the database ends it.
    WithConnection,
    /// A silence of the holder of one and a half lifetimes of the lock.
    AfterSilence,
}

/// Returns the event that ends a lock by itself under these settings.
pub fn lock_ends(settings: &StateSettings) -> LockEnds {
    match &*settings.backend {
        "file" => LockEnds::WithProcess,
        "postgres" => LockEnds::WithConnection,
        _ => LockEnds::AfterSilence,
    }
}

/// Returns the store that `settings` describe; `folder` is Plumb's own folder beside the spec. Nothing is
/// read or called yet.
pub fn open(
    settings: &StateSettings,
    folder: &Path,
    environment: &Environment<'_>,
    cipher: Cipher,
) -> Result<Arc<dyn Store>, Refusal> {
    match &*settings.backend {
        "file" => Ok(Arc::new(FileStore::new(folder).sealed(cipher))),
        #[cfg(feature = "postgres")]
        "postgres" => {
            Ok(Arc::new(crate::postgres::PostgresStore::open(settings, environment, cipher)?))
        }
        _ => other(settings, environment, cipher)?.ok_or_else(|| missing(settings)),
    }
}

#[cfg(feature = "object-store")]
fn other(
    settings: &StateSettings,
    environment: &Environment<'_>,
    cipher: Cipher,
) -> Result<Option<Arc<dyn Store>>, Refusal> {
    let store = crate::object::BucketStore::open(settings, environment, cipher)?;
    Ok(store.map(|store| Arc::new(store) as _))
}

#[cfg(not(feature = "object-store"))]
#[expect(clippy::unnecessary_wraps, reason = "as its sibling")]
fn other(
    _: &StateSettings,
    _: &Environment<'_>,
    _: Cipher,
) -> Result<Option<Arc<dyn Store>>, Refusal> {
    Ok(None)
}

/// Returns the error about a backend that this build does not have.
fn missing(settings: &StateSettings) -> Refusal {
    let backend = &settings.backend;
    Refusal::new(format!("this build of plumb cannot keep state in `{backend}`")).help(format!(
        "backends other than `file` are built on request: install plumb with `cargo install \
         --path . --features {backend}` (or `--features remote` for all of them)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_build_lacks_says_how_to_get_it() {
        let settings = StateSettings { backend: "tape".into(), ..StateSettings::file() };
        let none = |_: &str| None;
        let refused =
            open(&settings, Path::new("x"), &Environment::new(&none), Cipher::off()).err().unwrap();
        assert_eq!(refused.message, "this build of plumb cannot keep state in `tape`");
        assert!(refused.help.unwrap().contains("--features tape"));
    }
}
