//! The place of a folder's state: opens the store that `[state]` of the spec names.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::config::settings::{StateSettings, state_settings};
use engine::diagnostics::{Diagnostics, Severity};
use engine::state::Snapshot;
use state::mark::Purpose;
use state::{Environment, Holder, Loaded, LockedStore, Refusal, Store, StoreError, Version};

use crate::environment;
use crate::error::CommandError;
use crate::spec_text::SpecText;

/// Returns the settings of the state from the text of a spec.
pub(crate) fn settings(text: &SpecText) -> Result<StateSettings, CommandError> {
    // A part of the text could not be parsed: the `[state]` block may be incomplete, or not the only one.
    if text.document.torn {
        return Err(CommandError::new("the spec cannot be read, and may say where its state is")
            .help("`plumb validate` shows what is wrong with it"));
    }
    let (settings, diagnostics) = state_settings(&text.document);
    match first_error(&diagnostics) {
        Some(what) => Err(CommandError::new(format!("`[state]` of the spec is wrong: {what}"))
            .help("`plumb validate` shows where")),
        None => Ok(settings),
    }
}

fn first_error(diagnostics: &Diagnostics) -> Option<String> {
    let error = diagnostics.iter().find(|found| found.severity == Severity::Error)?;
    let label = error.label.as_ref().map(|label| format!(": {label}")).unwrap_or_default();
    Some(format!("{}{label}", error.summary))
}

/// Opens a store. Only this function passes it the credentials in the environment.
pub(crate) fn open(
    settings: &StateSettings,
    folder: &std::path::Path,
    cipher: state::cipher::Cipher,
) -> Result<Arc<dyn Store>, CommandError> {
    let store = state::open::open(settings, folder, &Environment::new(&environment::any), cipher);
    environment::all_readable()?;
    let store = store.map_err(|Refusal { message, help }| {
        let error = CommandError::new(message);
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    })?;
    #[cfg(debug_assertions)]
    let store = crate::crash_injection::around(store);
    Ok(store)
}

/// A store that must hold a state already. A shared state is made once, on purpose, so that a mistyped place
/// or a lost state is never taken for a first run.
pub(crate) struct MustBe(pub(crate) Arc<dyn Store>);

impl MustBe {
    fn nothing(&self) -> StoreError {
        StoreError::Missing {
            what: format!("there is no state in {}", self.0.place()),
            help: "if nothing was ever applied with this spec, `plumb state init` makes one; if \
                   its state was elsewhere until now, `plumb state migrate` brings it here; \
                   otherwise look whether `[state]` names the right place"
                .to_owned(),
        }
    }
}

#[async_trait]
impl Store for MustBe {
    async fn load(&self) -> Result<Loaded, StoreError> {
        let loaded = self.0.load().await?;
        if loaded.snapshot.is_none() { Err(self.nothing()) } else { Ok(loaded) }
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let held = self.0.lock_for(purpose, holder, wait).await?;
        if held.loaded().snapshot.is_some() {
            return Ok(held);
        }
        held.release().await?;
        Err(self.nothing())
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.0.restore(holder, snapshot).await
    }

    async fn drive_out(&self, run: &str) -> Result<bool, StoreError> {
        self.0.drive_out(run).await
    }

    async fn serials(&self) -> Result<Vec<u64>, StoreError> {
        self.0.serials().await
    }

    async fn past(&self, serial: u64) -> Result<Option<Snapshot>, StoreError> {
        self.0.past(serial).await
    }

    async fn is_plain(&self) -> Result<bool, StoreError> {
        self.0.is_plain().await
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_not_read_whole_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plumb.toml");
        let read = |last: &str| {
            let text = format!("[state]\nbackend = \"s3\"\nbucket = \"b\"\n{last}\n");
            std::fs::write(&path, text).unwrap();
            settings(&crate::spec_text::read_one(&path).unwrap())
        };
        assert_eq!(read("prefix = \"prod\"").unwrap().text("prefix"), Some("prod"));
        for torn in ["prefix = prod", "prefix = \"prod", "url = https://minio.example", "[x"] {
            let error = read(torn).unwrap_err();
            assert!(error.message.contains("may say where its state is"), "{}", error.message);
        }
    }
}
