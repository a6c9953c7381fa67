//! Policies in separate files: folders of TOML files that have only `[policy.NAME]` blocks, named by
//! `--policy`.

use std::path::{Path, PathBuf};

use engine::config::policies::add_policies;
use engine::diagnostics::FileId;
use engine::plan::file::SpecFile;

use crate::error::CommandError;
use crate::spec_text::SpecText;

/// Adds the policies of folders to the text of a spec, and returns their files for a plan file. Paths are relative to
/// `base`.
pub(crate) fn add(
    base: &Path,
    folders: &[PathBuf],
    text: &mut SpecText,
) -> Result<Vec<SpecFile>, CommandError> {
    let mut policies = SpecText::sharing(text);
    let mut files = Vec::new();
    let mut bytes = 0;
    for folder in folders {
        for name in policy_files(base, folder)? {
            bytes += policies.add_file(&base.join(&name), &name, bytes, &mut files)?;
        }
    }
    let saved = files.iter().filter_map(|file| policies.sources.get(*file));
    let saved = saved.map(|it| SpecFile { name: it.path.clone(), text: it.text.to_string() });
    let saved = saved.collect();
    merge(policies, &files, text);
    Ok(saved)
}

/// Adds the policies of a plan file.
pub(crate) fn add_saved(saved: &[SpecFile], text: &mut SpecText) {
    let mut policies = SpecText::sharing(text);
    let add = |file: &SpecFile| policies.sources.add(file.name.clone(), file.text.clone());
    let files: Vec<FileId> = saved.iter().map(add).collect();
    merge(policies, &files, text);
}

/// Parses policy files and adds their policies to the spec. The sources move back into the spec's text.
fn merge(policies: SpecText, files: &[FileId], text: &mut SpecText) {
    if files.is_empty() {
        text.sources = policies.sources;
        return;
    }
    let SpecText { sources, document, diagnostics, .. } = policies.parsed(files);
    text.sources = sources;
    text.diagnostics.extend(diagnostics);
    text.diagnostics.extend(add_policies(&mut text.document, document, files));
}

/// Returns the paths of the policy files in a folder, sorted by name, in the form in which the user wrote the
/// folder.
fn policy_files(base: &Path, folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let shown = folder.display();
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read the policy folder {shown}"), &error)
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(base.join(folder)).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let is_toml = Path::new(&name).extension().is_some_and(|it| it == "toml");
        if is_toml {
            names.push(folder.join(name));
        }
    }
    if names.is_empty() {
        let message = format!("there is no policy file in {shown}");
        return Err(CommandError::new(message)
            .help("a policy file ends in `.toml` and holds tables `[policy.NAME]`"));
    }
    names.sort();
    Ok(names)
}
