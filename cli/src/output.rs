//! The output of the program: data goes to stdout, messages go to stderr.
//!
//! Only this file prints in this workspace. [`write_all`] writes to streams that do not block. If the reader
//! of stdout goes away (`| head`), only the output ends: an apply continues, and no write panics.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::{AutoStream, ColorChoice};
use clap::builder::StyledStr;
use engine::address::Address;
use engine::diagnostics::{Diagnostics, Sources};
use render::Colour;
use render::paint::{Label, paint};

use crate::args::Color;
use crate::error::CommandError;
use crate::json_answer::Answer;
use crate::write_all;

/// The maximum number of resources that an error names.
const ABOUT_MAX: usize = 20;

/// The streams that a command writes to.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: Colour,
    stderr: Colour,
    quiet: bool,
    /// The steps of a run whose calls are under way, needed when the process is ended at once.
    under_way: Mutex<BTreeSet<String>>,
    /// True if stdout takes no more data.
    closed: AtomicBool,
    /// True if the command's answer was printed.
    answered: AtomicBool,
    /// True if data was lost that a reader still waits for.
    lost: AtomicBool,
}

impl Output {
    /// Returns the steps whose calls are under way.
    pub(crate) fn under_way(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides once about the use of colours.
    pub(crate) fn new(color: Color, quiet: bool) -> Self {
        ColorChoice::write_global(match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        });
        let colour = |choice| match choice {
            ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        };
        Self {
            stdout: colour(AutoStream::choice(&std::io::stdout())),
            stderr: colour(AutoStream::choice(&std::io::stderr())),
            quiet,
            under_way: Mutex::default(),
            closed: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            lost: AtomicBool::new(false),
        }
    }

    /// Returns the colour switch for stdout.
    pub(crate) fn colour(&self) -> Colour {
        self.stdout
    }

    /// Returns the colour switch for stderr.
    pub(crate) fn talk_colour(&self) -> Colour {
        self.stderr
    }

    /// Writes data to stdout.
    pub(crate) fn data(&self, text: &str) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = write_all::write(&mut std::io::stdout().lock(), text) {
            self.closed.store(true, Ordering::Relaxed);
            if error.kind() != ErrorKind::BrokenPipe {
                self.lost.store(true, Ordering::Relaxed);
                self.error(&CommandError::new(format!("cannot write to stdout: {error}")));
            }
        }
    }

    /// Writes the command's answer to stdout. After it, [`Self::refuse`] prints nothing.
    pub(crate) fn answer(&self, text: &str) {
        self.answered.store(true, Ordering::Relaxed);
        self.data(text);
    }

    /// Writes to stdout, in the command's format, why there is no answer, unless there was one.
    pub(crate) fn refuse(&self, answer: Answer, why: &Diagnostics, sources: &Sources) {
        if !self.answered.load(Ordering::Relaxed) {
            self.answer(&answer.refused(why, sources));
        }
    }

    /// Returns true if data could not be written to a reader that waits for it. A reader that went away had
    /// all that it wanted; but on a full disk, half a backup must not look like a whole one.
    pub(crate) fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes a message to stderr, unless the user asked for quiet.
    pub(crate) fn talk(&self, text: &str) {
        if !self.quiet {
            self.say(text);
        }
    }

    /// Writes diagnostics to stderr.
    pub(crate) fn diagnostics(&self, diagnostics: &Diagnostics, sources: &Sources) {
        if self.quiet && !diagnostics.has_errors() {
            return;
        }
        self.say(&render::diagnostics::text(diagnostics, sources, self.stderr));
    }

    /// Writes the error of a command to stderr.
    pub(crate) fn error(&self, error: &CommandError) {
        let mut text = paint("error", Label::Danger, self.stderr) + ": ";
        text.push_str(&render::safe::capped(&error.message, 4_000));
        text.push('\n');
        text.push_str(&about(&error.about));
        if let Some(help) = &error.help {
            text.push_str(&paint("help", Label::Strong, self.stderr));
            text.push_str(": ");
            text.push_str(&render::safe::capped(help, 4_000));
            text.push('\n');
        }
        self.say(&text);
    }

    /// Writes the argument parser's message about a mistake.
    pub(crate) fn usage(&self, text: &StyledStr) {
        self.say(&mistake(&text.to_string(), self.stderr));
    }

    /// Writes the help or version that the argument parser was asked for.
    pub(crate) fn help(&self, text: &StyledStr) {
        self.data(&styled(text, self.stdout));
    }

    /// Asks a question on stderr and reads the answer. Returns `None` without a terminal.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        self.say(question);
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok()?;
        Some(answer.trim().to_owned())
    }

    /// Flushes stdout, so that nothing is left in a buffer when the process ends.
    pub(crate) fn finish(&self) {
        if !self.closed.load(Ordering::Relaxed) {
            // If this fails, there is no stream left to report it on.
            drop(std::io::stdout().flush());
        }
    }

    #[expect(clippy::unused_self, reason = "everything that prints goes through an output")]
    fn say(&self, text: &str) {
        // A message that cannot be written is no reason to fail.
        drop(write_all::write(&mut std::io::stderr().lock(), text));
    }
}

/// Writes a line of the log to stderr, also with `-q`: the log was asked for.
pub(crate) fn log_line(line: &str) {
    // A log that cannot be written is no reason to stop.
    drop(write_all::write(&mut std::io::stderr().lock(), line));
}

/// Returns the resources that an error is about, one per line.
fn about(addresses: &[Address]) -> String {
    let mut text = String::new();
    for address in addresses.iter().take(ABOUT_MAX) {
        let _ = writeln!(text, "    {}", render::safe::text(&address.to_string()));
    }
    if addresses.len() > ABOUT_MAX {
        let _ = writeln!(text, "    and {} more", addresses.len() - ABOUT_MAX);
    }
    text
}

/// Returns the argument parser's message about a mistake. The message repeats the arguments, which may come
/// from anywhere, so all of its lines are escaped.
fn mistake(text: &str, colour: Colour) -> String {
    let (text, mut safe) = match text.strip_prefix("error:") {
        Some(rest) => (rest, paint("error", Label::Danger, colour) + ":"),
        None => (text, String::new()),
    };
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        safe.push_str(&render::safe::line(line));
        safe.push_str(end);
    }
    safe
}

fn styled(text: &StyledStr, colour: Colour) -> String {
    match colour {
        Colour::On => text.ansi().to_string(),
        Colour::Off => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_does_nothing() {
        let said = "error: unexpected argument 'a\u{202e}\u{9b}1m\r\n::set-output x\n ##[error]' found\n\nUsage: plumb\n";
        let safe = "error: unexpected argument 'a\\u{202e}\\u{9b}1m\\r\n\\u{3a}:set-output x\n #\\u{23}[error]' found\n\nUsage: plumb\n";
        assert_eq!(mistake(said, Colour::Off), safe);
    }
}
