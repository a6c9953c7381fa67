//! Running a plan: the confirmation, the report of events, the stop on request, and the exit status.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use apply::doubt::recover::recover;
use apply::run::{Execution, Report, execute_anyway};
use apply::session::Session;
use apply::{Moment, Providers};
use engine::address::Name;
use engine::event::{Event, Summary};
use engine::plan::Plan;
use engine::state::Snapshot;
use engine::stored::KnownSecrets;
use engine::value::{Datum, Paths};
use render::events::{Progress, json_line};
use render::shown::Shown;
use render::view::PlanView;

use crate::checks::{self, Outcome};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::json_answer;
use crate::output::Output;
use crate::stop_request::Stopping;
use crate::stored_state;
use crate::system::System;

/// The maximum number of remaining steps that are named.
const REMAINING_MAX: usize = 10;

/// The destination of the events of a run: lines for people on stderr, or JSON lines on stdout.
#[derive(Clone)]
pub(crate) struct Teller {
    output: Arc<Output>,
    progress: Arc<Mutex<Progress>>,
    json: bool,
}

impl Teller {
    pub(crate) fn new(output: &Arc<Output>, json: bool) -> Self {
        let progress = Arc::new(Mutex::new(Progress::new(output.talk_colour())));
        Self { output: Arc::clone(output), progress, json }
    }

    /// Returns the output that the teller writes to.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Returns true if everything on stdout is JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Shows an event.
    pub(crate) fn tell(&self, event: &Event) {
        match event {
            Event::StepStarted { step, .. } => {
                self.output.under_way().insert(step.clone());
            }
            Event::StepFinished { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepDoubted { step, .. } => {
                self.output.under_way().remove(step);
            }
            _ => {}
        }
        let lines = self.progress.lock().unwrap_or_else(PoisonError::into_inner).event(event);
        if self.json {
            self.output.data(&json_line(event));
        } else if !lines.is_empty() {
            self.output.talk(&lines);
        }
    }

    /// Shows the plan that is about to run, as JSON. People have seen it already.
    pub(crate) fn plan(&self, view: &PlanView<'_>) {
        if self.json {
            self.output.answer(&json_answer::planned(view));
        }
    }

    /// Shows the result of a check.
    pub(crate) fn check(&self, outcome: &Outcome) {
        if self.json {
            let line = serde_json::json!({"event": "check", "check": outcome});
            self.output.data(&render::json::line(&line));
        } else {
            self.output.talk(&checks::text(outcome));
        }
    }

    /// Shows the end of a run, and the outputs. With `idle`, the run had nothing to do, and people have read
    /// that in the plan.
    fn close(&self, outputs: &BTreeMap<String, Shown>, idle: bool) {
        let closing = self.progress.lock().unwrap_or_else(PoisonError::into_inner).closing();
        if self.json {
            let line = serde_json::json!({"event": "outputs", "outputs": outputs});
            self.output.data(&render::json::line(&line));
            return;
        }
        if !idle {
            self.output.talk(&closing);
        }
        self.output.data(&render::state::outputs_text(outputs));
    }

    /// Shows how many changes made outside Plumb a run without steps took into the state.
    fn updated(&self, count: usize) {
        let changes = if count == 1 { "change" } else { "changes" };
        if count > 0 && !self.json {
            self.output
                .talk(&format!("State updated with {count} {changes} made outside Plumb.\n"));
        }
    }

    /// Shows to programs that there was nothing to run: the events end as those of any run do. People have
    /// read that in the plan.
    pub(crate) fn nothing_to_run(&self, snapshot: &Snapshot) -> Result<(), CommandError> {
        if self.json {
            self.tell(&Event::RunFinished(Summary::default()));
            self.close(&kept(snapshot)?, true);
        }
        Ok(())
    }

    /// Shows the steps that a stopped run has left to do.
    fn remaining(&self, report: &Report, onward: Onward) {
        let count = report.remaining.len();
        if count == 0 {
            return;
        }
        let (steps, remain) = if count == 1 { ("step", "remains") } else { ("steps", "remain") };
        let onward = onward.words();
        let mut text = format!("{count} {steps} {remain}; {onward} goes on from here:\n");
        for step in report.remaining.iter().take(REMAINING_MAX) {
            let address = render::safe::text(&step.address.to_string());
            let _ = writeln!(text, "    {} {address}", step.operation.word());
        }
        if count > REMAINING_MAX {
            let _ = writeln!(text, "    and {} more", count - REMAINING_MAX);
        }
        self.output.talk(&text);
    }
}

/// The command that continues after a run was stopped. After a stopped destroy, `plumb apply` would make the
/// objects again; and a user who chose a part of the resources wants only that part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onward {
    Apply,
    Destroy,
    /// The same command as before, with its options.
    Same,
    /// A new plan: a saved plan runs only once.
    NewPlan,
}

impl Onward {
    fn words(self) -> &'static str {
        match self {
            Self::Apply => "`plumb apply`",
            Self::Destroy => "`plumb destroy`",
            Self::Same => "the same command",
            Self::NewPlan => "a new plan, made with the same options,",
        }
    }
}

/// Asks the user if the command is to go on. Returns true only for `yes`.
pub(crate) async fn confirm(
    question: &'static str,
    stop: &Stopping,
    output: &Arc<Output>,
) -> Result<bool, CommandError> {
    let asking = Arc::clone(output);
    let asked = tokio::task::spawn_blocking(move || asking.ask(question));
    let answer = stop.unless(async { Ok(asked.await.unwrap_or_default()) }).await?;
    Ok(answer.is_some_and(|answer| answer == "yes"))
}

/// Writes a state again that was written before there was an encryption key.
pub(crate) async fn seal_plain(
    session: &mut Session,
    folder: &Folder,
    output: &Output,
) -> Result<(), CommandError> {
    if !folder.is_to_be_sealed().await? {
        return Ok(());
    }
    session.replace(session.snapshot().clone()).await?;
    output.talk("the state was not encrypted; from now on it is, with PLUMB_STATE_KEY\n");
    Ok(())
}

/// Looks up the calls that earlier runs left open, and records the results.
pub(crate) async fn recover_open(
    session: &mut Session,
    providers: &Providers,
    secrets: &KnownSecrets,
    teller: &Teller,
) -> Result<(), CommandError> {
    let emit = |event: Event| teller.tell(&event);
    let records = recover(session.snapshot(), providers, secrets, &System, &emit).await;
    for record in records {
        session.record(record)?;
    }
    Ok(session.flush().await?)
}

/// A plan, with the inputs of its run.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) providers: &'a Providers,
    pub(crate) variables: &'a BTreeMap<Name, Datum>,
    pub(crate) parallelism: Option<usize>,
    /// The run's name.
    pub(crate) name: &'a str,
    /// The moment at which the reads of the live objects began; `None` if nothing was read.
    pub(crate) looked_at: Option<Moment>,
    /// The command that continues if this run is stopped.
    pub(crate) onward: Onward,
}

/// Runs a plan in a session, closes the session, and returns the result.
pub(crate) async fn run(
    mut session: Session,
    run: Run<'_>,
    teller: &Teller,
    stop: &Stopping,
) -> Result<Status, CommandError> {
    if let Err(stopped) = stop.begin() {
        session.close().await?;
        return Err(stopped);
    }
    let telling = teller.clone();
    let execution = Execution {
        plan: run.plan,
        providers: run.providers,
        host: &System,
        variables: run.variables,
        parallelism: run.parallelism,
        emit: Arc::new(move |event| telling.tell(&event)),
        stop: stop.token(),
        run: run.name,
        looked_at: run.looked_at,
    };
    let (report, failure) = execute_anyway(&mut session, &execution).await;
    if let Some(failure) = failure {
        teller.close(&kept(session.snapshot())?, false);
        teller.remaining(&report, run.onward);
        return Err(failure.into());
    }
    // A plan without outputs keeps those of the state.
    let outputs =
        if run.plan.outputs.is_empty() { kept(session.snapshot()) } else { Ok(outputs(&report)) };
    let closed = session.close().await;
    let idle = run.plan.is_empty() && status(&report) == Status::Done;
    teller.close(&outputs?, idle);
    if idle {
        teller.updated(run.plan.drift.len());
    }
    teller.remaining(&report, run.onward);
    closed?;
    Ok(status(&report))
}

/// Returns the outputs of the state.
fn kept(snapshot: &Snapshot) -> Result<BTreeMap<String, Shown>, CommandError> {
    render::state::outputs(snapshot).map_err(|error| stored_state::damaged(&error))
}

fn outputs(report: &Report) -> BTreeMap<String, Shown> {
    let show = |(name, (value, sensitive)): (&Name, &(engine::value::Value, bool))| {
        let places = if *sensitive { Paths::whole() } else { Paths::none() };
        (name.to_string(), Shown::new(value, &places))
    };
    report.outputs.iter().map(show).collect()
}

fn status(report: &Report) -> Status {
    let holds = |condition: bool, status| if condition { status } else { Status::Done };
    holds(!report.in_doubt.is_empty(), Status::InDoubt)
        .or(holds(report.summary.cancelled, Status::Cancelled))
        .or(holds(report.is_outdated, Status::Stale))
        .or(holds(!report.failures.is_empty(), Status::Failed))
}
