//! `plumb test`: plans and applies the spec against a throw-away service, and asserts on plans, outputs and objects.

mod assertion;
mod file;
mod report;
mod sandbox;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use engine::config::RawBlock;
use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Sources};

use self::assertion::World;
use self::file::{Step, TestFile, span};
use self::report::{Outcome, Report};
use self::sandbox::Sandbox;
use crate::args::Test;
use crate::descriptor_source::is_source;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::runtime;
use crate::stop_request::Stopping;

/// The end of the names of test files.
const FILE_NAME: &str = ".test.toml";
/// The folder beside the spec that is searched, too.
const FOLDER: &str = "tests";
/// The largest test file, in bytes.
const FILE_MAX: u64 = 1024 * 1024;

pub(crate) fn run(base: &Path, args: &Test, output: &Arc<Output>) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    let spec = folder.spec()?;
    // Of the serverless provider there is a throw-away service, unless the block names another descriptor.
    let is_real =
        |name: &str, block: &RawBlock| name != "serverless" || block.items.keys().any(is_source);
    let providers = spec.document.providers.iter();
    let others = providers.filter(|(name, block)| is_real(name, block));
    let others: Vec<String> = others.map(|(name, _)| name.to_string()).collect();
    let files = if args.files.is_empty() {
        found(folder.path())?
    } else {
        args.files.iter().map(|file| base.join(file)).collect()
    };
    if files.is_empty() {
        return Err(CommandError::new("there are no tests")
            .help("write one, such as first.test.toml: see docs/testing.md"));
    }
    runtime::wait_for(async {
        let stop = Stopping::listen(output)?;
        let mut report = Report::new(args.json);
        for path in &files {
            let ran = stop.unless(test(folder.path(), path, &others, output, &mut report)).await;
            report.end_file(path, ran, output)?;
        }
        Ok(report.end(output))
    })
}

/// Returns the test files of a folder, sorted by name.
fn found(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for place in [folder.to_owned(), folder.join(FOLDER)] {
        let entries = match std::fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(cannot_read(&place, &error)),
        };
        for entry in entries {
            let path = entry.map_err(|error| cannot_read(&place, &error))?.path();
            if path.to_string_lossy().ends_with(FILE_NAME) && path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::caused(format_args!("cannot read {}", path.display()), error)
}

/// Runs one file. A failed step ends the file, because the later steps would only fail as a consequence.
async fn test(
    folder: &Path,
    path: &Path,
    providers: &[String],
    output: &Output,
    report: &mut Report,
) -> Result<(), CommandError> {
    let length = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?.len();
    if length > FILE_MAX {
        return Err(CommandError::new(format!("{} is larger than 1 MiB", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| cannot_read(path, &error))?;
    let mut sources = Sources::default();
    let shown = path.strip_prefix(folder).unwrap_or(path);
    report.begin_file(shown, output);
    let (file, id) = match file::read(shown, &text, &mut sources) {
        Ok(read) => read,
        Err(found) => {
            report.refuse(shown, found, &sources, output);
            return Ok(());
        }
    };
    refuse_real(&file, providers, shown)?;
    let sandbox = Sandbox::start(folder, &file).await?;
    for step in &file.step {
        let began = Instant::now();
        let failures = run_step(&sandbox, step, id).await?;
        let outcome = Outcome {
            file: shown.display().to_string(),
            step: step.name.get_ref().clone(),
            seconds: began.elapsed().as_secs_f64(),
            failures,
        };
        if !report.add(outcome, &sources, output) {
            report.skip(file.step.len() - report.steps_of_file(), output);
            break;
        }
    }
    Ok(())
}

/// Refuses a provider with a real API that a test would change, unless the file names the provider.
fn refuse_real(file: &TestFile, providers: &[String], path: &Path) -> Result<(), CommandError> {
    let named = |name: &String| file.real_providers.contains(name);
    match providers.iter().find(|name| !named(name)) {
        None => Ok(()),
        Some(name) => Err(CommandError::new(format!(
            "{}: the spec uses the provider {name}, whose API is no throw-away",
            path.display()
        ))
        .help(format!(
            "where a test may change it, write `real_providers = [\"{name}\"]` into the file, and its address into `env`"
        ))),
    }
}

/// Runs a step, and returns its failures.
async fn run_step(
    sandbox: &Sandbox<'_>,
    step: &Step,
    file: FileId,
) -> Result<Diagnostics, CommandError> {
    let ran = sandbox.run(step.run, &step.variables).await?;
    let word = step.run.word();
    let at_name = span(file, &step.name);
    let failure = match &step.fails {
        None if !ran.succeeded => {
            let said = format!("plumb {word} failed");
            Some(Diagnostic::error(said).at(at_name).detail(ran.said.trim()))
        }
        Some(text) if ran.succeeded => {
            let said = format!("plumb {word} succeeded, but was to fail");
            Some(Diagnostic::error(said).at(span(file, text)))
        }
        Some(text) if !ran.said.contains(text.get_ref()) => {
            let said = format!("plumb {word} failed, but its error does not say this");
            Some(Diagnostic::error(said).at(span(file, text)).detail(ran.said.trim()))
        }
        _ => None,
    };
    if let Some(failure) = failure {
        return Ok(Diagnostics::from_iter([failure]));
    }
    if step.check.is_empty() {
        return Ok(Diagnostics::new());
    }
    let outputs = sandbox.read(&["output", "--json"]).await?;
    let state = sandbox.read(&["show", "--json"]).await?;
    let world = World::new(&ran.plan, &outputs, &state);
    let mut found = Diagnostics::new();
    for (name, check) in &step.check {
        let expr = match check.expression(file) {
            Ok(expr) => expr,
            Err(error) => {
                found.push(*error);
                continue;
            }
        };
        if let Some(reason) = world.failure(&expr) {
            let message = check.message.as_deref().unwrap_or("the assertion does not hold");
            let failure = Diagnostic::error(format!("{name}: {message}"));
            let failure = failure.at(span(file, &check.assert));
            found.push(if reason.is_empty() { failure } else { failure.detail(reason) });
        }
    }
    Ok(found)
}
