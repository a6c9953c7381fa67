//! The events of a run as progress lines, as JSON lines, and as a closing summary.
//!
//! All three are folds over one stream of events. The number of progress lines does not grow with the run: a
//! run with many steps reports each tenth of it and not each step.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use engine::event::{Event, Summary};
use engine::schema::Operation;

use crate::json;
use crate::paint::{Colour, Label, paint};
use crate::safe;

/// The most steps of a run that reports the beginning of each step.
const STARTS_MAX: usize = 100;
/// The most steps of a run that reports the end of each step; longer runs report tenths.
const FINISHES_MAX: usize = 1_000;
/// The number of failures and doubts that the closing summary repeats.
const REPEATED_MAX: usize = 20;

/// Returns an event as one JSON object on one line.
pub fn json_line(event: &Event) -> String {
    json::line(event)
}

/// The fold that turns events into lines for people.
#[derive(Clone, Debug)]
pub struct Progress {
    colour: Colour,
    steps: usize,
    ended: usize,
    /// The last reason for waiting of each step; a step may give the same reason often.
    waits: BTreeMap<String, String>,
    failures: Vec<String>,
    doubts: Vec<(String, String)>,
    summary: Option<Summary>,
}

impl Progress {
    /// Returns the progress before the first event.
    pub fn new(colour: Colour) -> Self {
        Self {
            colour,
            steps: 0,
            ended: 0,
            waits: BTreeMap::new(),
            failures: Vec::new(),
            doubts: Vec::new(),
            summary: None,
        }
    }

    /// Takes an event, and returns the lines to show for it, each with its end.
    pub fn event(&mut self, event: &Event) -> String {
        match event {
            Event::RunStarted { steps, .. } => {
                self.steps = *steps;
                String::new()
            }
            Event::RecoveryStarted { address, operation, wait_ms } => self.say(
                Label::Caution,
                &address.to_string(),
                &format!(
                    "looking up {} of an earlier run{}",
                    with_article(operation.word()),
                    at_most(*wait_ms)
                ),
            ),
            Event::RecoveryFinished { address, found } => {
                self.say(Label::Good, &address.to_string(), &safe::text(found))
            }
            Event::StepStarted { address, operation, doing, .. } if self.steps <= STARTS_MAX => {
                let text = format!("{}…", word(doing.as_ref(), self::doing(*operation)));
                self.say(Label::Plain, &address.to_string(), &text)
            }
            Event::StepStarted { .. } => String::new(),
            Event::StepWaiting { step, address, condition } => {
                self.wait(step, &address.to_string(), condition)
            }
            Event::StepRunning { address, operation, doing, is_lookup, ms, .. } => {
                let text = still(*operation, doing.as_ref(), *is_lookup, *ms);
                self.say(Label::Plain, &address.to_string(), &text)
            }
            Event::StepRetried { address, reason, after_ms, attempt, attempts, .. } => {
                let bound = attempts.map_or_else(String::new, |most| format!(" of {most}"));
                let text = format!(
                    "{}; attempt {attempt}{bound} in {}",
                    safe::text(reason),
                    time(*after_ms)
                );
                self.say(Label::Caution, &address.to_string(), &text)
            }
            Event::StepFinished { step, address, operation, done, id, ms, differing } => {
                self.waits.remove(step);
                let done = word(done.as_ref(), self::done(*operation));
                self.finished(&address.to_string(), &done, (id.as_deref(), *ms), differing)
            }
            Event::StepFailed { step, address, operation, message, help } => {
                self.waits.remove(step);
                self.failed(&address.to_string(), *operation, message, help.as_deref())
            }
            Event::StepDoubted { address, operation, reason, .. } => {
                self.ended += 1;
                let address = address.to_string();
                self.doubts.push((address.clone(), safe::text(reason)));
                let (word, reason) = (operation.word(), safe::text(reason));
                let text = format!("it is not known whether the {word} happened: {reason}");
                self.say(Label::Danger, &address, &text)
            }
            Event::StepSkipped { address, reason, .. } => {
                self.ended += 1;
                let text = format!("skipped: {}", safe::text(reason));
                self.say(Label::Caution, &address.to_string(), &text)
            }
            Event::Stopping { running } => {
                let calls = if *running == 1 { "call" } else { "calls" };
                let text = format!("no new step begins; {running} running {calls} will finish\n");
                paint("stopping: ", Label::Caution, self.colour) + &text
            }
            Event::RunFinished(summary) => {
                self.summary = Some(summary.clone());
                String::new()
            }
        }
    }

    fn say(&self, label: Label, address: &str, text: &str) -> String {
        let width = self.steps.to_string().len();
        let count = match self.steps {
            0 => String::new(),
            steps => format!("[{:width$}/{steps}] ", self.ended),
        };
        let count = paint(&count, Label::Faint, self.colour);
        let address = paint(&safe::text(address), Label::Strong, self.colour);
        format!("{count}{address}: {}\n", paint(text, label, self.colour))
    }

    fn wait(&mut self, step: &str, address: &str, condition: &str) -> String {
        if self.waits.get(step).is_some_and(|last| last == condition) {
            return String::new();
        }
        self.waits.insert(step.to_owned(), condition.to_owned());
        self.say(Label::Plain, address, &format!("waiting until {}", safe::text(condition)))
    }

    fn finished(
        &mut self,
        address: &str,
        done: &str,
        (id, ms): (Option<&str>, u64),
        differing: &[String],
    ) -> String {
        self.ended += 1;
        let warning = self.differing(address, differing);
        if self.steps > FINISHES_MAX {
            let tenth = |ended: usize| ended * 10 / self.steps;
            if tenth(self.ended) == tenth(self.ended - 1) {
                return warning;
            }
            return format!("{} of {} steps are done\n{warning}", self.ended, self.steps);
        }
        let id = id.map_or_else(String::new, |id| format!(" (id {})", safe::text(id)));
        self.say(Label::Good, address, &format!("{done} in {}{id}", time(ms))) + &warning
    }

    /// Returns the warning about attributes that the object has otherwise than they were sent.
    fn differing(&self, address: &str, names: &[String]) -> String {
        if names.is_empty() {
            return String::new();
        }
        let names: Vec<String> = names.iter().map(|it| format!("`{}`", safe::text(it))).collect();
        let text = format!(
            "the API shows another value than was sent of {}; the next plan shows the difference",
            names.join(", ")
        );
        self.say(Label::Caution, address, &text)
    }

    fn failed(
        &mut self,
        address: &str,
        operation: Operation,
        message: &str,
        help: Option<&str>,
    ) -> String {
        self.ended += 1;
        let text = format!("{} failed: {}", operation.word(), safe::text(message));
        self.failures.push(format!("{}: {text}", safe::text(address)));
        let mut lines = self.say(Label::Danger, address, &text);
        if let Some(help) = help {
            let _ = writeln!(lines, "    help: {}", safe::text(help));
        }
        lines
    }

    /// Returns the closing summary; empty if the run did not end.
    pub fn closing(&self) -> String {
        let Some(summary) = &self.summary else { return String::new() };
        let mut text = String::new();
        for failure in self.failures.iter().take(REPEATED_MAX) {
            let _ = writeln!(text, "{} {failure}", paint("failed:", Label::Danger, self.colour));
        }
        more(&mut text, "failed", self.failures.len());
        for (address, reason) in self.doubts.iter().take(REPEATED_MAX) {
            let label = paint("in doubt:", Label::Danger, self.colour);
            let address = safe::text(address);
            let _ = writeln!(text, "{label} {address}: {reason}");
        }
        more(&mut text, "in doubt", self.doubts.len());
        if !self.doubts.is_empty() {
            text.push_str(
                "the next `plumb apply` looks up what is in doubt; `plumb resolve` decides what it \
                 cannot find\n",
            );
        }
        let label = if is_good(summary) { Label::Good } else { Label::Caution };
        text.push_str(&paint(&sentence(summary), label, self.colour));
        text.push('\n');
        text
    }
}

fn more(text: &mut String, what: &str, count: usize) {
    if count > REPEATED_MAX {
        let _ = writeln!(text, "and {} more {what}", count - REPEATED_MAX);
    }
}

fn is_good(summary: &Summary) -> bool {
    summary.failed + summary.in_doubt + summary.skipped == 0 && !summary.cancelled
}

/// Returns the counts of a run as a sentence.
pub fn sentence(summary: &Summary) -> String {
    let verdict = match summary {
        Summary { cancelled: true, .. } => "Stopped",
        summary if is_good(summary) => "Done",
        _ => "Not everything is done",
    };
    let mut text = format!(
        "{verdict}: {} created, {} updated, {} replaced, {} deleted",
        summary.created, summary.updated, summary.replaced, summary.deleted
    );
    for (count, word) in [
        (summary.imported, "imported"),
        (summary.moved, "moved"),
        (summary.forgotten, "forgotten"),
        (summary.failed, "failed"),
        (summary.in_doubt, "in doubt"),
        (summary.skipped, "skipped"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    text + "."
}

fn with_article(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {word}")
}

fn at_most(ms: u64) -> String {
    if ms == 0 { String::new() } else { format!(", for at most {}", time(ms)) }
}

fn time(ms: u64) -> String {
    let time = Duration::from_millis(ms);
    match time.as_secs() {
        0 => format!("{ms}ms"),
        1..=59 => format!("{}.{}s", time.as_secs(), time.subsec_millis() / 100),
        secs => format!("{}m{:02}s", secs / 60, secs % 60),
    }
}

fn whole_seconds(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Returns the words about the time that a step, or the look-up of its call, has run.
fn still(operation: Operation, own: Option<&String>, is_lookup: bool, ms: u64) -> String {
    let doing = if is_lookup { "looking it up".to_owned() } else { word(own, doing(operation)) };
    format!("still {doing}, {}", whole_seconds(ms))
}

/// Returns the word of a type, or else the usual word.
fn word(own: Option<&String>, usual: &str) -> String {
    own.map_or_else(|| usual.to_owned(), |own| safe::text(own))
}

fn doing(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "creating",
        Operation::Activate => "activating",
        Operation::Update => "updating",
        Operation::Drain => "draining",
        Operation::Delete => "deleting",
        Operation::Read => "reading",
        Operation::Forget => "forgetting",
        Operation::Require => "judging its preconditions",
        Operation::Verify => "judging its postconditions",
    }
}

fn done(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "created",
        Operation::Activate => "activated",
        Operation::Update => "updated",
        Operation::Drain => "drained",
        Operation::Delete => "deleted",
        Operation::Read => "read",
        Operation::Forget => "forgotten",
        Operation::Require => "its preconditions hold",
        Operation::Verify => "its postconditions hold",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(events: &[Event]) -> String {
        let mut progress = Progress::new(Colour::Off);
        let text: String = events.iter().map(|event| progress.event(event)).collect();
        text + &progress.closing()
    }

    fn started(step: &str, at: &str, operation: Operation) -> Event {
        Event::StepStarted {
            step: step.into(),
            address: at.parse().unwrap(),
            operation,
            doing: None,
        }
    }

    fn finished(step: &str, at: &str, operation: Operation, ms: u64) -> Event {
        let id = Some("i\u{1b}1".to_owned());
        Event::StepFinished {
            step: step.into(),
            address: at.parse().unwrap(),
            operation,
            done: None,
            id,
            ms,
            differing: Vec::new(),
        }
    }

    fn running(is_lookup: bool, ms: u64) -> Event {
        let (step, address) = ("s1".to_owned(), "app.b".parse().unwrap());
        Event::StepRunning {
            step,
            address,
            operation: Operation::Drain,
            doing: None,
            is_lookup,
            ms,
        }
    }

    fn run(steps: usize) -> Event {
        Event::RunStarted { run: "r".into(), steps }
    }

    #[test]
    fn what_is_looked_up_has_its_article() {
        let looks_up = |operation| {
            let address = "disk.x".parse().unwrap();
            lines(&[Event::RecoveryStarted { address, operation, wait_ms: 0 }])
        };
        assert_eq!(looks_up(Operation::Update), "disk.x: looking up an update of an earlier run\n");
        assert_eq!(looks_up(Operation::Delete), "disk.x: looking up a delete of an earlier run\n");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "data and the expected text")]
    fn a_run_with_everything() {
        let waiting = Event::StepWaiting {
            step: "s1".into(),
            address: "app.b".parse().unwrap(),
            condition: "no pod is left".into(),
        };
        let events = [
            Event::RecoveryStarted {
                address: "disk.x".parse().unwrap(),
                operation: Operation::Create,
                wait_ms: 10_000,
            },
            Event::RecoveryFinished {
                address: "disk.x".parse().unwrap(),
                found: "it exists".into(),
            },
            run(4),
            started("s0", "disk.a", Operation::Create),
            finished("s0", "disk.a", Operation::Create, 1234),
            started("s1", "app.b", Operation::Drain),
            waiting.clone(),
            waiting,
            running(false, 20_000),
            running(true, 70_000),
            Event::StepRetried {
                step: "s1".into(),
                address: "app.b".parse().unwrap(),
                reason: "the API asks to slow down".into(),
                after_ms: 500,
                attempt: 2,
                attempts: Some(3),
            },
            finished("s1", "app.b", Operation::Drain, 83_000),
            Event::StepFailed {
                step: "s2".into(),
                address: "app.c".parse().unwrap(),
                operation: Operation::Update,
                message: "refused\n::error::".into(),
                help: Some("ask for less".into()),
            },
            Event::StepDoubted {
                step: "s3".into(),
                address: "app.d".parse().unwrap(),
                operation: Operation::Create,
                reason: "the answer was cut off".into(),
            },
            Event::Stopping { running: 1 },
            Event::StepSkipped {
                step: "s4".into(),
                address: "app.e".parse().unwrap(),
                reason: "it needs app.d".into(),
            },
            Event::RunFinished(Summary {
                created: 1,
                deleted: 1,
                failed: 1,
                in_doubt: 1,
                skipped: 1,
                ..Summary::default()
            }),
        ];
        insta::assert_snapshot!(lines(&events), @r"
        disk.x: looking up a create of an earlier run, for at most 10.0s
        disk.x: it exists
        [0/4] disk.a: creating…
        [1/4] disk.a: created in 1.2s (id i\u{1b}1)
        [1/4] app.b: draining…
        [1/4] app.b: waiting until no pod is left
        [1/4] app.b: still draining, 20 s
        [1/4] app.b: still looking it up, 1 min 10 s
        [1/4] app.b: the API asks to slow down; attempt 2 of 3 in 500ms
        [2/4] app.b: drained in 1m23s (id i\u{1b}1)
        [3/4] app.c: update failed: refused\n::error::
            help: ask for less
        [4/4] app.d: it is not known whether the create happened: the answer was cut off
        stopping: no new step begins; 1 running call will finish
        [5/4] app.e: skipped: it needs app.d
        failed: app.c: update failed: refused\n::error::
        in doubt: app.d: the answer was cut off
        the next `plumb apply` looks up what is in doubt; `plumb resolve` decides what it cannot find
        Not everything is done: 1 created, 0 updated, 0 replaced, 1 deleted, 1 failed, 1 in doubt, 1 skipped.
        ");
    }

    #[test]
    fn phases_have_words_of_their_type() {
        let address = || "app.b".parse().unwrap();
        let (step, operation) = ("s0".to_owned(), Operation::Update);
        let doing = Some("resizing".to_owned());
        let (is_lookup, id) = (false, None);
        let done = Some("resized".to_owned());
        let events = [
            run(1),
            Event::StepStarted {
                step: step.clone(),
                address: address(),
                operation,
                doing: doing.clone(),
            },
            Event::StepRunning {
                step: step.clone(),
                address: address(),
                operation,
                doing,
                is_lookup,
                ms: 20_000,
            },
            Event::StepFinished {
                step,
                address: address(),
                operation,
                done,
                id,
                ms: 31_000,
                differing: vec!["size".to_owned()],
            },
        ];
        assert_eq!(
            lines(&events),
            "[0/1] app.b: resizing…\n[0/1] app.b: still resizing, 20 s\n[1/1] app.b: resized in 31.0s\n\
             [1/1] app.b: the API shows another value than was sent of `size`; the next plan shows the difference\n"
        );
    }

    #[test]
    fn long_runs_report_tenths() {
        let mut events = vec![run(2000)];
        for n in 0..2000 {
            let step = format!("s{n}");
            events.push(started(&step, "value.a", Operation::Create));
            events.push(finished(&step, "value.a", Operation::Create, 1));
        }
        assert_eq!(lines(&events).lines().count(), 10);
    }

    #[test]
    fn one_json_object_a_line() {
        insta::assert_snapshot!(
            json_line(&finished("s0", "disk.a", Operation::Create, 7)).trim_end(), @r#"{"event":"step_finished","step":"s0","address":"disk.a","operation":"create","id":"i\u001b1","ms":7}"#);
    }

    #[test]
    fn sentences() {
        let summary = Summary { updated: 2, cancelled: true, skipped: 3, ..Summary::default() };
        assert_eq!(
            sentence(&summary),
            "Stopped: 0 created, 2 updated, 0 replaced, 0 deleted, 3 skipped."
        );
        assert_eq!(
            sentence(&Summary::default()),
            "Done: 0 created, 0 updated, 0 replaced, 0 deleted."
        );
    }
}
