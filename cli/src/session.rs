//! What a command works on: the folder, the text of its spec, the state beside it, and what the
//! process was started with, each read once.

use std::collections::BTreeMap;
use std::env::VarError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Sources, Span};
use engine::spec::settings::StateSettings;
use engine::spec::{self, BYTES_MAX, Document};
use state::cipher::{Cipher, VARIABLE};
use state::{Holder, Store};

use crate::error::CommandError;
use crate::place::{self, MustBe};
use crate::threads::Threads;

/// The largest file that `file("…")` reads, in bytes.
const FILE_MAX: u64 = 1024 * 1024;
/// Where Plumb keeps what belongs to it, beside the spec.
const STATE_FOLDER: &str = ".plumb";

/// The folder that a command works on.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// As the user would say it.
    path: PathBuf,
    /// What its state is sealed with.
    cipher: Cipher,
    /// What `[state]` says, once it is known.
    settings: Arc<OnceLock<StateSettings>>,
    /// The spec, where it was read for that and nobody has asked for it yet.
    text: Arc<Mutex<Option<SpecText>>>,
}

impl Folder {
    /// The folder `given`, as seen from `base`; without one, `base` itself.
    pub(crate) fn new(base: &Path, given: Option<&Path>) -> Result<Self, CommandError> {
        let path = given.map_or_else(|| base.to_owned(), |given| base.join(given));
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                Ok(Self { path, cipher: cipher()?, settings: Arc::default(), text: Arc::default() })
            }
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

    /// A path inside it, as the user would say it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        let joined = self.path.join(name);
        joined.strip_prefix(".").map_or(joined.clone(), Path::to_owned)
    }

    /// Where Plumb keeps what belongs to it.
    pub(crate) fn plumb(&self) -> PathBuf {
        self.join(STATE_FOLDER)
    }

    /// Whether there is a key, and a state that was written without one.
    pub(crate) async fn is_to_be_sealed(&self) -> Result<bool, CommandError> {
        Ok(self.cipher.is_on() && self.any_store()?.is_plain().await?)
    }

    /// The store of the state. A remote one must hold a state: it is made by `plumb state init`.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, CommandError> {
        let store = self.any_store()?;
        let is_remote = state::open::is_remote(self.settings()?);
        Ok(if is_remote { Arc::new(MustBe(store)) } else { store })
    }

    /// The same, whatever is in it.
    pub(crate) fn any_store(&self) -> Result<Arc<dyn Store>, CommandError> {
        place::open(self.settings()?, &self.plumb(), self.cipher.clone())
    }

    /// Another place for the state of this folder.
    pub(crate) fn store_at(
        &self,
        settings: &StateSettings,
    ) -> Result<Arc<dyn Store>, CommandError> {
        place::open(settings, &self.plumb(), self.cipher.clone())
    }

    /// Where its spec says that the state is. Without a spec it is in files.
    pub(crate) fn settings(&self) -> Result<&StateSettings, CommandError> {
        if let Some(known) = self.settings.get() {
            return Ok(known);
        }
        let text = read_text(self)?;
        let settings = text.as_ref().map_or(Ok(StateSettings::file()), place::settings);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        let settings = settings?;
        Ok(self.settings.get_or_init(|| settings))
    }
}

/// What seals state and plan files: derived once in the life of the process.
pub(crate) fn cipher() -> Result<Cipher, CommandError> {
    static CIPHER: OnceLock<Cipher> = OnceLock::new();
    if let Some(cipher) = CIPHER.get() {
        return Ok(cipher.clone());
    }
    let refused = |why: &dyn std::fmt::Display| {
        CommandError::new(format!("{VARIABLE} cannot be used: {why}")).help(
            "give a passphrase of 12 characters or more, or a key of 64 hexadecimal digits; \
             unset it to write without encryption",
        )
    };
    let cipher = match std::env::var(VARIABLE) {
        Ok(text) => Cipher::new(&text).map_err(|why| refused(&why))?,
        Err(VarError::NotPresent) => Cipher::off(),
        // What is set and cannot be read must not mean that nothing is encrypted.
        Err(VarError::NotUnicode(_)) => return Err(refused(&"it is not text")),
    };
    Ok(CIPHER.get_or_init(|| cipher).clone())
}

/// The text of a spec, and what it says.
#[derive(Debug, Default)]
pub(crate) struct SpecText {
    pub(crate) sources: Sources,
    pub(crate) document: Document,
    pub(crate) diagnostics: Diagnostics,
}

/// Reads and parses `plumb.toml` and every `*.plumb.toml` of the folder.
pub(crate) fn read_spec(folder: &Folder) -> Result<SpecText, CommandError> {
    read_spec_if_any(folder)?.ok_or_else(|| {
        let place = folder.path.display();
        CommandError::new(format!("there is no plumb.toml in {place}"))
            .help("`plumb init` writes a small one; `-C DIR` works in another folder")
    })
}

/// The same for what works without a spec, too.
pub(crate) fn read_spec_if_any(folder: &Folder) -> Result<Option<SpecText>, CommandError> {
    let kept = folder.text.lock().unwrap_or_else(PoisonError::into_inner).take();
    if kept.is_some() { Ok(kept) } else { read_text(folder) }
}

fn read_text(folder: &Folder) -> Result<Option<SpecText>, CommandError> {
    let paths = spec_files(folder)?;
    if paths.is_empty() {
        return Ok(None);
    }
    let mut text = SpecText::default();
    let mut files = Vec::new();
    let mut bytes = 0;
    for path in paths {
        refuse_outside(folder, &path)?;
        bytes += add_file(&path, bytes, &mut text, &mut files)?;
    }
    let (document, diagnostics) = spec::parse::parse_with(&text.sources, &files, &Threads);
    text.document = document;
    text.diagnostics.extend(diagnostics);
    Ok(Some(text))
}

/// One file, read as a spec.
pub(crate) fn read_one(path: &Path) -> Result<SpecText, CommandError> {
    let mut text = SpecText::default();
    let mut files = Vec::new();
    add_file(path, 0, &mut text, &mut files)?;
    let (document, diagnostics) = spec::parse::parse(&text.sources, &files);
    text.document = document;
    text.diagnostics.extend(diagnostics);
    Ok(text)
}

/// The files of a spec: `plumb.toml` first, the others by name.
fn spec_files(folder: &Folder) -> Result<Vec<PathBuf>, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(
            format_args!("cannot read the folder {}", folder.path.display()),
            &error,
        )
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder.path).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        // Nobody writes such a name into a message, but a file that is left out silently is one
        // whose resources go.
        let shown = name.to_string_lossy();
        if shown != "plumb.toml" && !shown.ends_with(".plumb.toml") {
            continue;
        }
        match name.to_str() {
            Some(name) => names.push(name.to_owned()),
            None => return Err(unreadable_name(folder, &shown)),
        }
    }
    names.sort_by_key(|name| (name != "plumb.toml", name.clone()));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

fn unreadable_name(folder: &Folder, shown: &str) -> CommandError {
    let path = folder.join(shown);
    CommandError::new(format!("the name of the spec file {} is not UTF-8", path.display()))
        .help("give the file another name; without it the spec would not be whole")
}

/// A spec may come from someone else, and what is wrong with a line of it is shown with the line: a
/// link must not make that a line of some other file of this machine.
fn refuse_outside(folder: &Folder, path: &Path) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", path.display()), &error)
    };
    let root = folder.path.canonicalize().map_err(cannot)?;
    if path.canonicalize().map_err(cannot)?.starts_with(root) {
        return Ok(());
    }
    let message = format!("{} is a link that leads outside of its folder", path.display());
    Err(CommandError::new(message).help("put the file itself there"))
}

/// Adds one file, and says how many bytes it has. What is wrong with its text is a diagnostic.
fn add_file(
    path: &Path,
    before: usize,
    text: &mut SpecText,
    files: &mut Vec<FileId>,
) -> Result<usize, CommandError> {
    let shown = path.display().to_string();
    let fail =
        |error: std::io::Error| CommandError::caused(format_args!("cannot read {shown}"), &error);
    let found = std::fs::metadata(path).map_err(fail)?;
    if !found.is_file() {
        return Err(CommandError::new(format!("{shown} is not a file")));
    }
    let size = usize::try_from(found.len()).unwrap_or(usize::MAX);
    if size.saturating_add(before) > BYTES_MAX {
        text.document.torn = true;
        text.diagnostics.push(
            Diagnostic::error(format!("the spec is too large: {shown} makes it more than 32 MiB"))
                .help("split it into several folders, each with a state of its own"),
        );
        return Ok(0);
    }
    let bytes = std::fs::read(path).map_err(fail)?;
    match String::from_utf8(bytes) {
        Ok(content) => files.push(text.sources.add(shown, content)),
        Err(error) => not_utf8(shown, &error, text),
    }
    Ok(size)
}

fn not_utf8(shown: String, error: &std::string::FromUtf8Error, text: &mut SpecText) {
    let valid = error.utf8_error().valid_up_to();
    let summary = format!("{shown} is not UTF-8 text");
    let good = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
    let file = text.sources.add(shown, good);
    let at = u32::try_from(valid).unwrap_or(u32::MAX);
    text.diagnostics.push(
        Diagnostic::error(summary)
            .at(Span { file, start: at, end: at })
            .label("the text is damaged after this")
            .help("save the file as UTF-8"),
    );
}

/// The contents of the files that the spec names with `file("…")`; an error text where one cannot
/// be read. Only files inside the spec's folder are read, after links.
pub(crate) fn read_files(
    folder: &Folder,
    document: &Document,
) -> BTreeMap<String, Result<Arc<str>, String>> {
    let read = |name: &String| (name.clone(), read_file(folder, name));
    document.files.iter().map(read).collect()
}

pub(crate) fn read_file(folder: &Folder, name: &str) -> Result<Arc<str>, String> {
    let cannot = |error: std::io::Error| format!("cannot read it: {error}");
    let root = folder.path.canonicalize().map_err(cannot)?;
    let path = root.join(name).canonicalize().map_err(cannot)?;
    let Ok(inside) = path.strip_prefix(&root) else {
        return Err("it lies outside the spec's folder".to_owned());
    };
    // What Plumb keeps there holds keys, and a spec may come from someone else.
    if inside.components().any(|part| part.as_os_str() == STATE_FOLDER) {
        return Err(format!("it lies in {STATE_FOLDER}, which is Plumb's own"));
    }
    let found = std::fs::metadata(&path).map_err(cannot)?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > FILE_MAX {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let bytes = std::fs::read(&path).map_err(cannot)?;
    String::from_utf8(bytes).map(Arc::from).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// What a run needs of the operating system.
#[derive(Debug)]
pub(crate) struct System;

impl System {
    /// The time, in milliseconds since 1970.
    pub(crate) fn now_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Random bytes.
    pub(crate) fn random() -> [u8; 32] {
        let mut bytes = [0; 32];
        // Without randomness nonces and keys would repeat, and nothing that follows were safe.
        getrandom::fill(&mut bytes).expect("the operating system has random bytes");
        bytes
    }

    /// Who this process is, when it takes a lock for `command`.
    pub(crate) fn holder(command: &str) -> Holder {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Holder {
            run: apply::run_name(&Self),
            command: command.to_owned(),
            user: variable("USER"),
            host: host.trim().to_owned(),
            pid: std::process::id(),
            since_ms: Self::now_ms(),
        }
    }
}

/// What opens the state: nobody else's business.
pub(crate) const OPENS_STATE: [&str; 3] = [VARIABLE, "PLUMB_STATE_URL", "PGPASSWORD"];

/// A variable of the environment, as far as it is text. What opens the state is nobody else's: no
/// descriptor can ask for it.
pub(crate) fn variable(name: &str) -> Option<String> {
    if OPENS_STATE.contains(&name) { None } else { std::env::var(name).ok() }
}

impl apply::Host for System {
    fn now_ms(&self) -> u64 {
        Self::now_ms()
    }

    fn random(&self) -> [u8; 32] {
        Self::random()
    }
}

/// Runs what has to wait for something. Nothing that it left running in the background, such as a
/// question that nobody answered, keeps the process.
pub(crate) fn wait_for<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let mut result = Err(CommandError::new("the runtime ended early"));
    run_to_the_end(pin!(async { result = work.await }))?;
    result
}

/// One function for the works of all commands: the runtime is compiled once, not for each.
fn run_to_the_end(work: Pin<&mut dyn Future<Output = ()>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::caused("cannot start", &error))?;
    runtime.block_on(work);
    runtime.shutdown_background();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let folder = Folder::new(dir.path(), None).unwrap();
        (dir, folder)
    }

    #[test]
    fn plumb_toml_comes_first_and_others_by_name() {
        let (_dir, folder) = folder(&[
            ("b.plumb.toml", b""),
            ("plumb.toml", b""),
            ("a.plumb.toml", b""),
            ("x.toml", b""),
        ]);
        let spec = read_spec(&folder).unwrap();
        let names: Vec<_> =
            spec.sources.iter().map(|s| s.path.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(names, ["plumb.toml", "a.plumb.toml", "b.plumb.toml"]);
    }

    #[test]
    fn a_spec_file_whose_name_cannot_be_read_is_not_left_out() {
        use std::os::unix::ffi::OsStrExt as _;
        let (dir, folder) = folder(&[("plumb.toml", b"")]);
        let name = |bytes| dir.path().join(std::ffi::OsStr::from_bytes(bytes));
        std::fs::write(name(b"z\xff.toml"), "").unwrap();
        read_spec(&folder).unwrap();
        std::fs::write(name(b"z\xff.plumb.toml"), "").unwrap();
        let error = read_spec(&folder).unwrap_err();
        assert!(error.message.contains("z\u{fffd}.plumb.toml is not UTF-8"), "{}", error.message);
    }

    #[test]
    fn a_folder_without_a_spec_says_what_to_do() {
        let (_dir, folder) = folder(&[]);
        let error = read_spec(&folder).unwrap_err();
        assert!(error.message.contains("there is no plumb.toml"), "{}", error.message);
        assert!(error.help.unwrap().contains("plumb init"));
        let error = Folder::new(Path::new("/nowhere/at/all"), None).unwrap_err();
        assert_eq!(error.message, "there is no folder /nowhere/at/all");
    }

    #[test]
    fn damaged_text_is_shown_where_it_is_damaged() {
        let (_dir, folder) = folder(&[("plumb.toml", b"[plumb]\nname = \"\xff\"\n")]);
        let spec = read_spec(&folder).unwrap();
        let text = render::diagnostics::text(&spec.diagnostics, &spec.sources, render::Colour::Off);
        assert!(text.contains("is not UTF-8 text"), "{text}");
        assert!(text.contains("plumb.toml:2:"), "{text}");
    }

    #[test]
    fn files_outside_the_folder_are_not_read() {
        let (dir, folder) = folder(&[("a.txt", b"content")]);
        assert_eq!(&*read_file(&folder, "a.txt").unwrap(), "content");
        assert!(read_file(&folder, "../../etc/passwd").is_err());
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(read_file(&folder, "link").unwrap_err(), "it lies outside the spec's folder");
        assert_eq!(read_file(&folder, ".").unwrap_err(), "it is not a file");
    }

    #[test]
    fn a_spec_file_is_no_link_to_elsewhere() {
        let (dir, folder) = folder(&[("plumb.toml", b""), ("other.toml", b"")]);
        std::os::unix::fs::symlink("other.toml", dir.path().join("in.plumb.toml")).unwrap();
        read_spec(&folder).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("out.plumb.toml")).unwrap();
        let error = read_spec(&folder).unwrap_err();
        assert!(error.message.contains("leads outside of its folder"), "{}", error.message);
    }

    #[test]
    fn what_plumb_keeps_for_itself_is_not_read() {
        let (dir, folder) = folder(&[]);
        std::fs::create_dir_all(dir.path().join(".plumb/service")).unwrap();
        std::fs::write(dir.path().join(".plumb/service/key"), "hunter2").unwrap();
        std::os::unix::fs::symlink(".plumb/service", dir.path().join("link")).unwrap();
        for name in [".plumb/service/key", "link/key", "./.plumb/service/../service/key"] {
            let error = read_file(&folder, name).unwrap_err();
            assert_eq!(error, "it lies in .plumb, which is Plumb's own", "{name}");
        }
    }
}
