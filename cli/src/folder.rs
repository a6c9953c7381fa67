//! The folder that a command works on: its spec, which is read once, and the place of its state.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use editor::OpenTexts;
use engine::config::settings::StateSettings;
use engine::plan::file::Inputs;
use state::Store;
use state::cipher::Cipher;

use crate::environment::{self, cipher};
use crate::error::CommandError;
use crate::spec_text::{self, SpecText};
use crate::store_location::{self, MustBe};

/// The folder beside the spec for Plumb's own files.
pub(crate) const STATE_FOLDER: &str = ".plumb";

/// The folder that a command works on.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// The path as the user wrote it.
    path: PathBuf,
    /// The cipher of the state.
    cipher: Cipher,
    /// The content of `[state]`, once it was read.
    settings: Arc<OnceLock<StateSettings>>,
    /// The spec, if it was read for `[state]` and not asked for since.
    text: Arc<Mutex<Option<SpecText>>>,
    /// The spec of a plan file, which replaces the spec of the folder.
    saved: Option<Arc<Inputs>>,
    /// The folder that replaces `.plumb`, in a step of `plumb test`.
    throw_away: Option<PathBuf>,
    /// The texts that replace files: those in an editor, or drafts.
    open: Arc<OpenTexts>,
}

/// A file of a spec with a new text that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The current text of the file; `None` if the file does not exist.
    pub(crate) old: Option<String>,
    /// The new text of the file.
    pub(crate) text: String,
}

impl Draft {
    /// Returns the draft with more text, after an empty line.
    pub(crate) fn with(&self, more: &str) -> Self {
        let gap = match self.text.as_str() {
            text if text.is_empty() || text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        Self { text: format!("{}{gap}{more}", self.text), ..self.clone() }
    }
}

impl Folder {
    /// Returns the folder `given`, relative to `base`; without `given`, the folder `base`.
    pub(crate) fn new(base: &Path, given: Option<&Path>) -> Result<Self, CommandError> {
        let path = given.map_or_else(|| base.to_owned(), |given| base.join(given));
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Self {
                path,
                cipher: cipher()?,
                settings: Arc::default(),
                text: Arc::default(),
                saved: None,
                throw_away: environment::any(environment::TEST_FOLDER).map(PathBuf::from),
                open: Arc::default(),
            }),
            Ok(_) => Err(CommandError::new(format!("{} is no folder", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(CommandError::new(format!("there is no folder {}", path.display())))
            }
            Err(error) => Err(CommandError::caused(
                format_args!("cannot look at the folder {}", path.display()),
                &error,
            )),
        }
    }

    /// Returns the folder with the spec of a plan file. No spec is read from the folder then.
    pub(crate) fn with_spec(self, inputs: Inputs) -> Self {
        Self { saved: Some(Arc::new(inputs)), ..self }
    }

    /// Returns the folder with a draft of a file of its spec.
    pub(crate) fn with_draft(&self, draft: Draft) -> Self {
        self.with_open(OpenTexts::from([(draft.path, draft.text.into())]))
    }

    /// Returns the folder with texts that replace files.
    pub(crate) fn with_open(&self, open: OpenTexts) -> Self {
        Self { open: Arc::new(open), text: Arc::default(), ..self.clone() }
    }

    /// Returns the text that replaces a file, if there is one.
    pub(crate) fn open_text(&self, path: &Path) -> Option<&Arc<str>> {
        spec_text::open_text(&self.open, path)
    }

    /// Returns the inputs of the plan file whose spec replaces the spec of the folder.
    pub(crate) fn saved(&self) -> Option<&Inputs> {
        self.saved.as_deref()
    }

    /// Returns the path of the folder, as the user wrote it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path inside the folder, in the form in which the user wrote the folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        spec_text::inside(&self.path, name)
    }

    /// Returns the folder for Plumb's own files.
    pub(crate) fn plumb(&self) -> PathBuf {
        self.throw_away.clone().unwrap_or_else(|| self.join(STATE_FOLDER))
    }

    /// Returns the data folder of the service that commands start. Fails if it is a link: a link that came
    /// with a repository could point to any folder of this machine. To keep the data elsewhere, a user makes
    /// the whole folder of Plumb's files a link, or runs a service with `--data`.
    pub(crate) fn service_data(&self) -> Result<PathBuf, CommandError> {
        let plumb = self.plumb();
        state::file::refuse_astray(&plumb)?;
        let data = plumb.join("service");
        match std::fs::read_link(&data) {
            Err(_) => Ok(data),
            Ok(to) => {
                Err(CommandError::new(format!("{} is a link to {}", data.display(), to.display()))
                    .help(format!(
                        "look who put it there, and remove it; to have the data of the service \
                         elsewhere, run `plumb serve --data DIR`, or make {} the link",
                        plumb.display()
                    )))
            }
        }
    }

    /// Returns true if there is an encryption key, and the state was written without one.
    pub(crate) async fn is_to_be_sealed(&self) -> Result<bool, CommandError> {
        Ok(self.cipher.is_on() && self.any_store()?.is_plain().await?)
    }

    /// Returns the store of the state. A remote store must hold a state already: `plumb state init` makes it.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, CommandError> {
        let store = self.any_store()?;
        let is_remote = state::open::is_remote(self.settings()?);
        Ok(if is_remote { Arc::new(MustBe(store)) } else { store })
    }

    /// Returns the store of the state, whatever it holds.
    pub(crate) fn any_store(&self) -> Result<Arc<dyn Store>, CommandError> {
        store_location::open(self.settings()?, &self.plumb(), self.cipher.clone())
    }

    /// Returns a store that the state of this folder moves to or from. Each store is marked with the name of
    /// the other, so the name has an absolute path, which is valid from any folder.
    pub(crate) fn store_to_move(
        &self,
        settings: &StateSettings,
    ) -> Result<Arc<dyn Store>, CommandError> {
        let plumb = self.plumb();
        let plumb = std::path::absolute(&plumb).unwrap_or(plumb);
        store_location::open(settings, &plumb, self.cipher.clone())
    }

    /// Returns the settings of the state in the spec. Without a spec, the state is in files.
    pub(crate) fn settings(&self) -> Result<&StateSettings, CommandError> {
        if let Some(known) = self.settings.get() {
            return Ok(known);
        }
        if self.throw_away.is_some() {
            return Ok(self.settings.get_or_init(StateSettings::file));
        }
        let text = self.read_spec()?;
        let settings = text.as_ref().map_or(Ok(StateSettings::file()), store_location::settings);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        let settings = settings?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// Returns the text of the spec.
    pub(crate) fn spec(&self) -> Result<SpecText, CommandError> {
        self.spec_if_any()?.ok_or_else(|| self.no_spec())
    }

    /// Returns the error of a folder without a spec.
    pub(crate) fn no_spec(&self) -> CommandError {
        let place = self.path.display();
        CommandError::new(format!("there is no plumb.toml in {place}"))
            .help("`plumb init` writes a small one; `-C DIR` works in another folder")
    }

    /// Returns the text of the spec; `None` if the folder has none.
    pub(crate) fn spec_if_any(&self) -> Result<Option<SpecText>, CommandError> {
        let kept = self.text.lock().unwrap_or_else(PoisonError::into_inner).take();
        if kept.is_some() { Ok(kept) } else { self.read_spec() }
    }

    fn read_spec(&self) -> Result<Option<SpecText>, CommandError> {
        match &self.saved {
            Some(inputs) => Ok(Some(spec_text::of_files(&inputs.spec))),
            None => spec_text::read_with(&self.path, &self.open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_that_cannot_be_read_does_not_say_that_the_state_is_in_files() {
        let state = "[state]\nbackend = \"s3\"\n";
        let marked = format!("\u{feff}{state}");
        let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let before = [b"# caf\xe9\n", state.as_bytes()].concat();
        let after = [state.as_bytes(), b"# caf\xe9\n"].concat();
        for bytes in [utf16, before, after] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("plumb.toml"), bytes).unwrap();
            std::fs::write(dir.path().join("a.plumb.toml"), "[state]\nbackend = \"file\"\n")
                .unwrap();
            let error = Folder::new(dir.path(), None).unwrap().settings().unwrap_err();
            assert!(error.message.contains("may say where its state is"), "{}", error.message);
        }
    }

    #[test]
    fn the_data_of_the_service_is_behind_no_link_but_that_of_the_folder() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::new(dir.path(), None).unwrap();
        assert_eq!(folder.service_data().unwrap(), dir.path().join(".plumb/service"));
        std::fs::create_dir(dir.path().join(".plumb")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.plumb().join("service")).unwrap();
        let error = folder.service_data().unwrap_err();
        assert!(error.message.contains(".plumb/service is a link to /"), "{}", error.message);
        std::fs::remove_dir_all(folder.plumb()).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.plumb()).unwrap();
        let error = folder.service_data().unwrap_err();
        assert!(error.message.contains("where there is no state"), "{}", error.message);
        std::fs::create_dir(outside.path().join("backups")).unwrap();
        assert!(folder.service_data().is_ok());
    }

    #[test]
    fn a_folder_without_a_spec_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let error = Folder::new(dir.path(), None).unwrap().spec().unwrap_err();
        assert!(error.message.contains("there is no plumb.toml"), "{}", error.message);
        assert!(error.help.unwrap().contains("plumb init"));
        let error = Folder::new(Path::new("/nowhere/at/all"), None).unwrap_err();
        assert_eq!(error.message, "there is no folder /nowhere/at/all");
    }
}
