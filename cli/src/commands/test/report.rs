//! The results of tests, as text while they run and as JSON at the end.

use std::path::Path;

use engine::diagnostics::{Diagnostics, Sources};
use render::diagnostics::DiagnosticView;
use render::paint::{Label, paint};
use serde_json::{Value as Json, json};

use crate::error::{CommandError, Status};
use crate::output::Output;

/// The results so far.
pub(super) struct Report {
    json: bool,
    steps: Vec<Json>,
    passed: usize,
    failed: usize,
    skipped: usize,
    of_file: usize,
}

/// The result of a step.
pub(super) struct Outcome {
    /// The test file.
    pub(super) file: String,
    /// The name of the step.
    pub(super) step: String,
    /// The duration of the step, in seconds.
    pub(super) seconds: f64,
    /// The failures of the step; none if it passed.
    pub(super) failures: Diagnostics,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, steps: Vec::new(), passed: 0, failed: 0, skipped: 0, of_file: 0 }
    }

    /// Starts the results of a file.
    pub(super) fn begin_file(&mut self, path: &Path, output: &Output) {
        self.of_file = 0;
        if !self.json {
            let path = path.display().to_string();
            output.data(&format!("{}\n", render::safe::text(&path)));
        }
    }

    /// Adds a result, and returns true if the step passed.
    pub(super) fn add(&mut self, outcome: Outcome, sources: &Sources, output: &Output) -> bool {
        let Outcome { file, step, seconds, failures } = outcome;
        let passed = failures.is_empty();
        *(if passed { &mut self.passed } else { &mut self.failed }) += 1;
        self.of_file += 1;
        if self.json {
            let diagnostics = DiagnosticView::all(&failures, sources);
            let seconds = (seconds * 1000.0).round() / 1000.0;
            self.steps.push(json!({
                "file": file, "step": step, "passed": passed, "seconds": seconds, "diagnostics": diagnostics,
            }));
        } else {
            let word = if passed {
                paint("passed", Label::Added, output.colour())
            } else {
                paint("FAILED", Label::Danger, output.colour())
            };
            let step = render::safe::text(&step);
            output.data(&format!("  {word}  {step} ({seconds:.1} s)\n"));
            if !passed {
                let text = render::diagnostics::text(&failures, sources, output.colour());
                output.data(&format!("\n{text}"));
            }
        }
        passed
    }

    /// Adds the error of a file that cannot be read.
    pub(super) fn refuse(
        &mut self,
        path: &Path,
        failures: Diagnostics,
        sources: &Sources,
        output: &Output,
    ) {
        let file = path.display().to_string();
        let outcome = Outcome { file, step: "the file".to_owned(), seconds: 0.0, failures };
        self.add(outcome, sources, output);
    }

    /// Returns the number of results of the file.
    pub(super) fn steps_of_file(&self) -> usize {
        self.of_file
    }

    /// Counts the steps of the file that do not run.
    pub(super) fn skip(&mut self, count: usize, output: &Output) {
        self.skipped += count;
        if count > 0 && !self.json {
            output.data(&format!("  skipped {count} more of this file\n"));
        }
    }

    /// Ends a file. A file whose sandbox failed counts as failed; a stop request ends all files.
    pub(super) fn end_file(
        &mut self,
        path: &Path,
        ran: Result<(), CommandError>,
        output: &Output,
    ) -> Result<(), CommandError> {
        let Err(error) = ran else { return Ok(()) };
        if error.status == Status::Cancelled {
            return Err(error);
        }
        self.failed += 1;
        if self.json {
            self.steps.push(json!({
                "file": path.display().to_string(), "passed": false, "error": error.message,
            }));
        }
        output.error(&error);
        Ok(())
    }

    /// Shows the totals, and returns the exit status.
    pub(super) fn end(self, output: &Output) -> Status {
        let Self { json, steps, passed, failed, skipped, .. } = self;
        if json {
            output.answer(&render::json::pretty(&json!({
                "format": "plumb-test/1",
                "passed": passed,
                "failed": failed,
                "skipped": skipped,
                "steps": steps,
            })));
        } else {
            let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
            output.data(&format!("{passed} passed, {failed} failed{skipped}.\n"));
        }
        if failed == 0 { Status::Done } else { Status::Failed }
    }
}
