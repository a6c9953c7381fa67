//! The text of a spec and of the modules that it calls: files that are read and parsed. The engine resolves
//! them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use editor::OpenTexts;
use engine::config::{self, BYTES_MAX, Document, ModuleSource, is_spec_file};
use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Source, Sources, Span};
use engine::plan::file::SpecFile;

use crate::error::CommandError;
use crate::modules::Places;
use crate::threads::Threads;

/// The text of a spec, with its parsed document.
#[derive(Debug, Default)]
pub(crate) struct SpecText {
    pub(crate) sources: Sources,
    pub(crate) document: Document,
    pub(crate) diagnostics: Diagnostics,
    /// True if a file of the spec was not read at all. Anything may stand in it, also the place of the state.
    pub(crate) unread: bool,
}

/// A function that adds the files of a module to a text. Its error says why they cannot be read.
type ReadFiles<'a> = dyn FnMut(&ModuleSource, &mut SpecText) -> Result<Vec<FileId>, String> + 'a;

impl SpecText {
    /// Reports a file that makes the spec larger than allowed. Returns true for such a file.
    fn is_too_large(&mut self, bytes: usize, shown: &str) -> bool {
        if bytes <= BYTES_MAX {
            return false;
        }
        self.unread = true;
        self.diagnostics.push(
            Diagnostic::error(format!("the spec is too large: {shown} makes it more than 32 MiB"))
                .help("split it into several folders, each with a state of its own"),
        );
        true
    }

    /// Returns an empty text that takes the sources of another one. They must be given back.
    pub(crate) fn sharing(other: &mut Self) -> Self {
        Self { sources: std::mem::take(&mut other.sources), ..Self::default() }
    }

    /// Adds one file, which messages call `shown`.
    pub(crate) fn add_file(
        &mut self,
        path: &Path,
        shown: &Path,
        before: usize,
        files: &mut Vec<FileId>,
    ) -> Result<usize, CommandError> {
        add_file_as((path, shown.display().to_string()), before, self, files)
    }

    /// Parses files of this text.
    pub(crate) fn parsed(mut self, files: &[FileId]) -> Self {
        let (document, diagnostics) = config::parse::parse_with(&self.sources, files, &Threads);
        self.document = document;
        self.document.torn |= self.unread;
        self.diagnostics.extend(diagnostics);
        self
    }

    /// Adds the modules that the spec calls. `read` adds the files of one module.
    fn with_modules(mut self, read: &mut ReadFiles<'_>) -> Self {
        let mut document = std::mem::take(&mut self.document);
        let mut read_one = |source: &ModuleSource| {
            let mut module = Self { sources: std::mem::take(&mut self.sources), ..Self::default() };
            let files = read(source, &mut module);
            let module = match files {
                Ok(files) => module.parsed(&files),
                Err(reason) => {
                    self.sources = module.sources;
                    return Err(reason);
                }
            };
            self.sources = module.sources;
            Ok((module.document, module.diagnostics))
        };
        let diagnostics = config::modules::load(&mut document, &mut read_one);
        self.document = document;
        self.diagnostics.extend(diagnostics);
        self
    }
}

/// Reads and parses `plumb.toml` and every `*.plumb.toml` of a folder, and the modules that they call.
/// Returns `None` if there are no such files.
pub(crate) fn read(folder: &Path) -> Result<Option<SpecText>, CommandError> {
    read_with(folder, &OpenTexts::new())
}

/// Reads and parses a spec, with texts in place of some files: those in an editor, or drafts.
pub(crate) fn read_with(folder: &Path, open: &OpenTexts) -> Result<Option<SpecText>, CommandError> {
    let paths = spec_files(folder, open)?;
    if paths.is_empty() {
        return Ok(None);
    }
    let mut text = SpecText::default();
    let mut files = Vec::new();
    let mut bytes = 0;
    for path in paths {
        bytes += add_spec_file((folder, &path), open, bytes, &mut text, &mut files)?;
    }
    let mut places = Places::new(folder);
    Ok(Some(text.parsed(&files).with_modules(&mut |source, text| {
        let place = places.of(source)?;
        let mut files = Vec::new();
        let plain = |error: CommandError| error.message;
        for path in spec_files(&place, open).map_err(plain)? {
            let added = add_spec_file((&place, &path), open, bytes, text, &mut files);
            bytes += added.map_err(plain)?;
        }
        if files.is_empty() { Err("it holds no `*.plumb.toml`".to_owned()) } else { Ok(files) }
    })))
}

/// Returns the text that replaces a file, if there is one.
pub(crate) fn open_text<'o>(open: &'o OpenTexts, path: &Path) -> Option<&'o Arc<str>> {
    if open.is_empty() {
        return None;
    }
    open.get(path).or_else(|| open.get(&path.canonicalize().ok()?))
}

/// Adds a file of a folder's spec, or the text that replaces it. Returns its size in bytes.
fn add_spec_file(
    (folder, path): (&Path, &Path),
    open: &OpenTexts,
    before: usize,
    text: &mut SpecText,
    files: &mut Vec<FileId>,
) -> Result<usize, CommandError> {
    let Some(content) = open_text(open, path) else {
        refuse_outside(folder, path)?;
        return add_file(path, before, text, files);
    };
    let shown = path.display().to_string();
    if text.is_too_large(before.saturating_add(content.len()), &shown) {
        return Ok(0);
    }
    files.push(text.sources.add(shown, Arc::clone(content)));
    Ok(content.len())
}

/// Parses the files of a spec that a plan file holds.
pub(crate) fn of_files(files: &[SpecFile]) -> SpecText {
    let in_folder = |place: &str, text: &mut SpecText| {
        let own =
            files.iter().filter(|file| file.name.rsplit_once('/').unwrap_or_default().0 == place);
        own.map(|file| text.sources.add(file.name.clone(), file.text.clone()))
            .collect::<Vec<FileId>>()
    };
    let mut text = SpecText::default();
    let own = in_folder("", &mut text);
    text.parsed(&own).with_modules(&mut |source, text| {
        let files = in_folder(&source.place(), text);
        if files.is_empty() { Err("the plan file does not hold it".to_owned()) } else { Ok(files) }
    })
}

/// Returns the files of a spec that was read, and of its modules, by their paths in the spec's folder. Leaves
/// out `others`.
pub(crate) fn files(folder: &Path, sources: &Sources, others: &[SpecFile]) -> Vec<SpecFile> {
    let folder = inside(folder, "");
    let file = |source: &Source| {
        if others.iter().any(|other| other.name == source.path) {
            return None;
        }
        let path = Path::new(&source.path);
        let name = path.strip_prefix(&folder).unwrap_or(path).to_str()?;
        is_spec_file(path.file_name()?.to_str()?)
            .then(|| SpecFile { name: name.to_owned(), text: source.text.to_string() })
    };
    sources.iter().filter_map(file).collect()
}

/// Reads one file as a spec.
pub(crate) fn read_one(path: &Path) -> Result<SpecText, CommandError> {
    let mut text = SpecText::default();
    let mut files = Vec::new();
    add_file(path, 0, &mut text, &mut files)?;
    Ok(text.parsed(&files))
}

/// Returns a path inside a folder, in the form in which the user wrote the folder.
pub(crate) fn inside(folder: &Path, name: impl AsRef<Path>) -> PathBuf {
    let joined = folder.join(name);
    joined.strip_prefix(".").map_or(joined.clone(), Path::to_owned)
}

/// Returns the paths of the spec's files: `plumb.toml` first, the others sorted by name.
fn spec_files(folder: &Path, open: &OpenTexts) -> Result<Vec<PathBuf>, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read the folder {}", folder.display()), &error)
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        // Such a name cannot be written into a message. But if the file were silently left out, its resources
        // would be deleted.
        let shown = name.to_string_lossy();
        if !is_spec_file(&shown) {
            continue;
        }
        match name.to_str() {
            Some(name) => names.push(name.to_owned()),
            None => return Err(unreadable_name(folder, &shown)),
        }
    }
    // The drafts of files that do not exist yet.
    let open = open.keys().filter_map(|path| Some((path, path.file_name()?.to_str()?)));
    let own = open.filter(|(path, name)| inside(folder, name) == **path && is_spec_file(name));
    names.extend(own.map(|(_, name)| name.to_owned()));
    names.sort_by_key(|name| (name != "plumb.toml", name.clone()));
    names.dedup();
    Ok(names.into_iter().map(|name| inside(folder, name)).collect())
}

fn unreadable_name(folder: &Path, shown: &str) -> CommandError {
    let path = inside(folder, shown);
    CommandError::new(format!("the name of the spec file {} is not UTF-8", path.display()))
        .help("give the file another name; without it the spec would not be whole")
}

/// Refuses a link that leads out of the folder. The spec may come from someone else, and messages show the
/// lines with mistakes: they must not show lines of other files of this machine.
fn refuse_outside(folder: &Path, path: &Path) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", path.display()), &error)
    };
    let root = folder.canonicalize().map_err(cannot)?;
    if path.canonicalize().map_err(cannot)?.starts_with(root) {
        return Ok(());
    }
    let message = format!("{} is a link that leads outside of its folder", path.display());
    Err(CommandError::new(message).help("put the file itself there"))
}

/// Adds one file. Returns its size in bytes. Mistakes in its text are reported as diagnostics.
fn add_file(
    path: &Path,
    before: usize,
    text: &mut SpecText,
    files: &mut Vec<FileId>,
) -> Result<usize, CommandError> {
    add_file_as((path, path.display().to_string()), before, text, files)
}

/// Adds one file under another name for messages.
fn add_file_as(
    (path, shown): (&Path, String),
    before: usize,
    text: &mut SpecText,
    files: &mut Vec<FileId>,
) -> Result<usize, CommandError> {
    let fail =
        |error: std::io::Error| CommandError::caused(format_args!("cannot read {shown}"), &error);
    let found = std::fs::metadata(path).map_err(fail)?;
    if !found.is_file() {
        return Err(CommandError::new(format!("{shown} is not a file")));
    }
    let size = usize::try_from(found.len()).unwrap_or(usize::MAX);
    if text.is_too_large(before.saturating_add(size), &shown) {
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
    text.unread = true;
    let at = u32::try_from(valid).unwrap_or(u32::MAX);
    text.diagnostics.push(
        Diagnostic::error(summary)
            .at(Span { file, start: at, end: at })
            .label("the text is damaged after this")
            .help("save the file as UTF-8"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    #[test]
    fn plumb_toml_comes_first_and_others_by_name() {
        let dir = folder(&[
            ("b.plumb.toml", b""),
            ("plumb.toml", b""),
            ("a.plumb.toml", b""),
            ("x.toml", b""),
        ]);
        let spec = read(dir.path()).unwrap().unwrap();
        let names: Vec<_> =
            spec.sources.iter().map(|s| s.path.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(names, ["plumb.toml", "a.plumb.toml", "b.plumb.toml"]);
    }

    #[test]
    fn a_spec_file_whose_name_cannot_be_read_is_not_left_out() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = folder(&[("plumb.toml", b"")]);
        let name = |bytes| dir.path().join(std::ffi::OsStr::from_bytes(bytes));
        std::fs::write(name(b"z\xff.toml"), "").unwrap();
        read(dir.path()).unwrap().unwrap();
        std::fs::write(name(b"z\xff.plumb.toml"), "").unwrap();
        let error = read(dir.path()).unwrap_err();
        assert!(error.message.contains("z\u{fffd}.plumb.toml is not UTF-8"), "{}", error.message);
    }

    #[test]
    fn damaged_text_is_shown_where_it_is_damaged() {
        let dir = folder(&[("plumb.toml", b"[plumb]\nname = \"\xff\"\n")]);
        let spec = read(dir.path()).unwrap().unwrap();
        let text = render::diagnostics::text(&spec.diagnostics, &spec.sources, render::Colour::Off);
        assert!(text.contains("is not UTF-8 text"), "{text}");
        assert!(text.contains("plumb.toml:2:"), "{text}");
    }

    #[test]
    fn what_is_not_read_may_say_anything() {
        let large = vec![b' '; BYTES_MAX];
        for bytes in [&b"# caf\xe9\n"[..], &large] {
            let dir = folder(&[("plumb.toml", b"[plumb]\n"), ("a.plumb.toml", bytes)]);
            let spec = read(dir.path()).unwrap().unwrap();
            assert!(spec.unread && spec.document.torn && spec.diagnostics.has_errors());
        }
        let dir = folder(&[("plumb.toml", b"[plumb]\n")]);
        let spec = read(dir.path()).unwrap().unwrap();
        assert!(!spec.unread && !spec.document.torn);
    }

    #[test]
    fn a_spec_file_is_no_link_to_elsewhere() {
        let dir = folder(&[("plumb.toml", b""), ("other.toml", b"")]);
        std::os::unix::fs::symlink("other.toml", dir.path().join("in.plumb.toml")).unwrap();
        read(dir.path()).unwrap().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("out.plumb.toml")).unwrap();
        let error = read(dir.path()).unwrap_err();
        assert!(error.message.contains("leads outside of its folder"), "{}", error.message);
    }
}
