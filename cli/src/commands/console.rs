//! `plumb console`: computes expressions over variables, locals and the state.

mod completion;

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use apply::checks::Live;
use engine::config::modules::outside_references::name_from_outside;
use engine::expression::ExprError;
use engine::expression::parse::{Dialect, expression};
use engine::value::Datum;
use render::shown::Shown;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};

use self::completion::Names;
use crate::args::{Console, SpecArgs};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::providers::Configured;
use crate::resolved::{self, Resolved};
use crate::runtime;
use crate::stored_state;

/// The prompts for an expression, and for the next line of an unfinished one.
const PROMPT: &str = "> ";
const REST: &str = "… ";

pub(crate) fn run(base: &Path, args: &Console, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let snapshot = runtime::wait_for(stored_state::load(&folder))?.snapshot;
    let spec = SpecArgs { unset: true, ..args.spec.clone() };
    let resolved = resolved::read(&folder, base, &spec, &snapshot)?;
    if resolved.diagnostics.has_errors() {
        output.diagnostics(&resolved.diagnostics, &resolved.sources);
        return Ok(Status::Failed);
    }
    let configured = resolved.described.configure(&crate::environment::variable)?;
    let live = Live::stored(snapshot, &resolved.config);
    let console = Session { resolved, configured, live };
    if std::io::stdin().is_terminal() { console.talk(output) } else { console.answer_all(output) }
}

/// A spec and its state.
struct Session {
    resolved: Resolved,
    configured: Configured,
    live: Live,
}

impl Session {
    /// Answers each line that a person types, until an empty line or the end of input.
    fn talk(&self, output: &Output) -> Result<Status, CommandError> {
        let cannot = |error: ReadlineError| CommandError::caused("cannot read a line", &error);
        let config = Config::builder().auto_add_history(true).build();
        let mut editor: Editor<Names, MemHistory> =
            Editor::with_history(config, MemHistory::new()).map_err(cannot)?;
        editor.set_helper(Some(Names::new(&self.resolved.config, &self.live)));
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { PROMPT } else { REST };
            match editor.readline(prompt) {
                Ok(line) => text.push_str(&line),
                // Ctrl-C discards the line, as in a shell.
                Err(ReadlineError::Interrupted) if !text.is_empty() => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(Status::Done),
                Err(error) => return Err(cannot(error)),
            }
            if matches!(text.trim(), "" | "exit" | "quit") {
                return Ok(Status::Done);
            }
            if is_open(&text) {
                text.push('\n');
                continue;
            }
            self.answer(&std::mem::take(&mut text), output);
        }
    }

    /// Answers each line of a file or pipe. Fails if one cannot be computed.
    fn answer_all(&self, output: &Output) -> Result<Status, CommandError> {
        let (mut text, mut status) = (String::new(), Status::Done);
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| CommandError::caused("cannot read a line", &error))?;
            text.push_str(&line);
            if is_open(&text) {
                text.push('\n');
            } else if !self.answer(&std::mem::take(&mut text), output) {
                status = Status::Failed;
            }
        }
        if !text.trim().is_empty() && !self.answer(&text, output) {
            status = Status::Failed;
        }
        Ok(status)
    }

    /// Prints the value of an expression, or the error. Returns true for a value.
    fn answer(&self, text: &str, output: &Output) -> bool {
        let text = text.trim();
        if text.is_empty() {
            return true;
        }
        match self.value(text) {
            Ok(datum) => {
                let shown = Shown::new(&datum.value, &datum.sensitive);
                output.data(&render::state::output_text(&shown));
                true
            }
            Err(error) => {
                let failure = CommandError::new(error.message);
                output.error(&match error.help {
                    Some(help) => failure.help(help),
                    None => failure,
                });
                false
            }
        }
    }

    fn value(&self, text: &str) -> Result<Datum, ExprError> {
        let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let mut expr = expression(inner.unwrap_or(text), Dialect::Spec)?;
        name_from_outside(&mut expr, &self.resolved.config);
        let spec = (&self.resolved.config, &self.configured.providers);
        self.live.evaluate(&expr, spec, &BTreeMap::new())
    }
}

/// Returns true if a text has more opening brackets than closing ones.
fn is_open(text: &str) -> bool {
    let (mut open, mut in_text, mut escaped) = (0_i64, false, false);
    for char in text.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => open += 1,
            ')' | ']' | '}' if !in_text => open -= 1,
            _ => {}
        }
    }
    open > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_keep_an_expression_open() {
        assert!(is_open("[for x in"));
        assert!(!is_open("[1, 2]"));
        assert!(!is_open("upper(\"(\")"));
        assert!(is_open("{ a = \"\\\"}\""));
    }
}
