//! The execution of a plan: all ready steps run at once, and each is journaled before its call and after its
//! answer.
//!
//! One task owns the journal, the state and the schedule; calls run beside it. In each turn the run folds the
//! answers that came in, prepares the steps that became ready, and makes all records of the turn durable in
//! one write before the calls begin. The plan decides everything except one thing: the outcome of a call in
//! doubt, which the run looks up.

mod answer_differences;
mod call;
mod conditions;
mod delete_inputs;
mod heartbeat;
mod id_reuse;
mod input_fingerprint;
mod intent;

mod outcome;
mod permit;
mod prepare;
mod refresh_before_write;
mod replacement_precheck;
mod report;
mod retry;
mod scheduler;
mod secrets;
mod send;
mod step_result;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::event::{Event, Summary};
use engine::journal::Record;
use engine::plan::{Plan, Step, StepId, file};
use engine::schema::Operation;
use engine::state::Snapshot;
use engine::value::{Attributes, Datum, Value};
use provider_port::{Error, Reply};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::call::InFlight;
use self::id_reuse::ObjectIds;
use self::permit::PermitIssuer;
use self::report::Reporter;
use self::scheduler::Scheduler;
use self::secrets::ClearValues;
use crate::clock::Moment;
use crate::doubt::lookup::Found;
use crate::session::Session;
use crate::timing::SEND_WITHIN;
use crate::{ApplyError, Host, Providers};

/// The maximum number of records that the run writes to confirm its lock. If each takes too long, the store
/// counts as too slow for any call.
const CONFIRMATIONS_MAX: usize = 3;

/// The receiver of events. The run's task and running calls call it.
pub type Emit = Arc<dyn Fn(Event) + Send + Sync>;

/// The inputs of an execution beside the session.
pub struct Execution<'a> {
    /// The plan, which has passed its linter.
    pub plan: &'a Plan,
    /// The providers.
    pub providers: &'a Providers,
    /// The clock and the randomness.
    pub host: &'a dyn Host,
    /// The variables, for secrets that the plan does not hold.
    pub variables: &'a BTreeMap<Name, Datum>,
    /// The maximum number of calls at once for each provider instance; `None`: as many as the provider
    /// allows.
    pub parallelism: Option<usize>,
    /// The receiver of events.
    pub emit: Emit,
    /// Cancelled when no new step may begin.
    pub stop: &'a CancellationToken,
    /// The run's name.
    pub run: &'a str,
    /// The moment at which the reads of the live objects began on which the plan is based, or with which a
    /// saved plan was compared. `None` if nothing was read: then the first answer about an object to be
    /// deleted may be that there is none, and all others may be missing, too, because the provider acts on
    /// another place.
    pub looked_at: Option<Moment>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The counts of changes.
    pub summary: Summary,
    /// The steps that failed.
    pub failures: Vec<Failure>,
    /// True if an object was changed outside after the plan read it, and a call was refused for that reason.
    pub is_outdated: bool,
    /// The addresses whose calls have an unknown outcome.
    pub in_doubt: Vec<Address>,
    /// The steps that did not begin because the run was stopped.
    pub remaining: Vec<Step>,
    /// The outputs that are known now; sensitive ones in clear.
    pub outputs: BTreeMap<Name, (Value, bool)>,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The address of the object.
    pub address: Address,
    /// The operation that was to be done.
    pub operation: Operation,
    /// The description of what happened.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}

/// Runs a plan to its end, to a stop, or to a failure of the store.
pub async fn execute(session: &mut Session, input: &Execution<'_>) -> Result<Report, ApplyError> {
    let (report, failure) = execute_anyway(session, input).await;
    failure.map_or(Ok(report), Err)
}

/// Runs a plan as [`execute`] does, and returns a report also if the store failed. In that report, each call
/// whose result could not be written is in doubt, as it is for the next run.
pub async fn execute_anyway(
    session: &mut Session,
    input: &Execution<'_>,
) -> (Report, Option<ApplyError>) {
    let mut run = Run::new(session, input);
    let failure = run.run_to_end().await.err();
    if failure.is_some() {
        run.cut_short();
    }
    (run.reporter.report, failure)
}

/// The answer of a task that runs beside the run's own task.
enum Answer {
    /// The attributes that a call sent, and its result.
    Called {
        sent: Arc<Attributes>,
        result: Box<Result<Reply, Error>>,
    },
    LookedUp(Found),
    /// The pause before another attempt is over. Has the number of earlier attempts.
    RetryDue(usize),
}

impl Answer {
    fn called(sent: Arc<Attributes>, result: Result<Reply, Error>) -> Self {
        Self::Called { sent, result: Box::new(result) }
    }
}

/// The calls under way, and the steps that wait for another attempt.
struct Calls {
    /// The tasks that call and look up objects.
    tasks: JoinSet<(StepId, Answer)>,
    in_flight: BTreeMap<StepId, InFlight>,
    /// The moment at which each step began for the first time.
    began: BTreeMap<StepId, Instant>,
    /// The number of calls under way, by provider instance.
    per_provider: BTreeMap<Name, usize>,
    /// Steps that ended in this turn, and whose records are not durable yet.
    unwritten: BTreeSet<StepId>,
    /// Steps to begin again, with their numbers of earlier attempts.
    retries: Vec<(StepId, usize)>,
    /// Steps whose call did its work, so that only their wait is left.
    waiting_only: BTreeSet<StepId>,
    /// Answers calls that ask if they may still be sent.
    permits: PermitIssuer,
}

impl Calls {
    fn new() -> Self {
        Self {
            tasks: JoinSet::new(),
            in_flight: BTreeMap::new(),
            began: BTreeMap::new(),
            per_provider: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            retries: Vec::new(),
            waiting_only: BTreeSet::new(),
            permits: PermitIssuer::new(),
        }
    }

    /// Returns the moment at which a step began, which is now unless it is begun again.
    fn begin(&mut self, id: StepId) -> Instant {
        *self.began.entry(id).or_insert_with(Instant::now)
    }

    /// Adds a call whose intent is recorded.
    fn add(&mut self, id: StepId, flight: InFlight) {
        *self.per_provider.entry(flight.started.provider.clone()).or_default() += 1;
        self.in_flight.insert(id, flight);
    }

    /// Takes a call out of those under way, so that its end can be recorded.
    fn remove(&mut self, id: StepId) -> Option<InFlight> {
        let flight = self.in_flight.remove(&id)?;
        self.unwritten.insert(id);
        if let Some(count) = self.per_provider.get_mut(&flight.started.provider) {
            *count = count.saturating_sub(1);
        }
        Some(flight)
    }

    /// Returns the number of calls of a provider instance.
    fn count(&self, provider: &Name) -> usize {
        self.per_provider.get(provider).copied().unwrap_or(0)
    }
}

/// An execution of a plan. One task owns it; each part owns its own state.
struct Run<'a> {
    session: &'a mut Session,
    input: &'a Execution<'a>,
    scheduler: Scheduler<'a>,
    calls: Calls,
    secrets: ClearValues,
    reporter: Reporter,
    ids: ObjectIds,
    /// True if no new step may begin.
    halted: bool,
}

/// The inputs from which a step is prepared, for reading only.
#[derive(Clone, Copy)]
struct StepContext<'a> {
    input: &'a Execution<'a>,
    snapshot: &'a Snapshot,
    /// The attributes of objects with secrets, in clear.
    clear: &'a BTreeMap<Address, Attributes>,
}

impl<'a> Run<'a> {
    fn new(session: &'a mut Session, input: &'a Execution<'a>) -> Self {
        Self {
            session,
            input,
            scheduler: Scheduler::new(input.plan),
            calls: Calls::new(),
            secrets: ClearValues::new(
                input.variables.values().chain(input.plan.looked_up.values()),
            ),
            reporter: Reporter::new(input.emit.clone()),
            ids: ObjectIds::default(),
            halted: false,
        }
    }

    /// Returns the inputs from which steps are prepared.
    fn context(&self) -> StepContext<'_> {
        StepContext {
            input: self.input,
            snapshot: self.session.snapshot(),
            clear: &self.secrets.objects,
        }
    }

    async fn run_to_end(&mut self) -> Result<(), ApplyError> {
        self.open()?;
        let ended = self.steps().await;
        // Calls that still run when the store fails have durable intents: the next run looks them
        // up.
        self.calls.tasks.shutdown().await;
        ended?;
        self.close().await
    }

    fn open(&mut self) -> Result<(), ApplyError> {
        let plan = self.input.plan;
        let run = self.input.run.to_owned();
        self.reporter.emit(Event::RunStarted { run: run.clone(), steps: plan.steps.len() });
        let serial = self.session.snapshot().serial;
        let at_ms = self.input.host.now_ms();
        let digest = file::digest(plan);
        self.session.record(Record::RunOpened { run, serial, plan: digest, at_ms })?;
        for record in &plan.seen {
            self.session.record(record.clone())?;
        }
        Ok(())
    }

    /// Takes turns until no call is under way and no step can begin.
    async fn steps(&mut self) -> Result<(), ApplyError> {
        loop {
            let begun = self.begin().await?;
            let since = match self.write_down(!begun.is_empty()).await {
                Ok(since) => since,
                Err(error) => {
                    if matches!(error, ApplyError::SlowStore(_)) {
                        self.undo_intents(&begun).await;
                    }
                    self.not_sent(begun);
                    return Err(error);
                }
            };
            self.reporter.tell();
            for step in begun {
                self.call(step, &since);
            }
            if self.calls.tasks.is_empty() {
                // A step that only touched the state may have made others ready.
                if self.halted || self.scheduler.ready_providers().is_empty() {
                    return Ok(());
                }
                continue;
            }
            self.take_answers().await?;
        }
    }

    /// Makes the records of a turn durable. Returns a moment at which the run still had its lock. If calls
    /// are to begin, the moment is recent enough for them.
    async fn write_down(&mut self, calls: bool) -> Result<Moment, ApplyError> {
        // This moment is taken before the write, so the time of the write counts, too.
        let since = self.input.host.clock().moment();
        self.session.flush().await?;
        self.calls.unwritten.clear();
        if !calls || since.elapsed() <= SEND_WITHIN {
            return Ok(since);
        }
        // If the run is stopped in between, this moment is too old, and the calls are not sent.
        Ok(self.confirm().await?.unwrap_or(since))
    }

    /// Writes a record that fails if the run has lost its lock, and repeats that until a write was fast
    /// enough for calls to begin. Returns a moment at which the run still had its lock; `None` if the run is
    /// stopped.
    async fn confirm(&mut self) -> Result<Option<Moment>, ApplyError> {
        for _ in 0..CONFIRMATIONS_MAX {
            if self.halted || self.input.stop.is_cancelled() {
                return Ok(None);
            }
            let since = self.input.host.clock().moment();
            self.session.confirm().await?;
            if since.elapsed() <= SEND_WITHIN {
                return Ok(Some(since));
            }
        }
        Err(ApplyError::SlowStore(SEND_WITHIN))
    }

    async fn take_answers(&mut self) -> Result<(), ApplyError> {
        let stop = self.input.stop;
        let first = tokio::select! {
            // The order is fixed, not random: a stop comes first.
            biased;
            () = stop.cancelled(), if !self.halted => {
                self.halted = true;
                self.reporter.report.summary.cancelled = true;
                self.reporter.emit(Event::Stopping { running: self.calls.in_flight.len() });
                return Ok(());
            }
            Some(request) = self.calls.permits.request() => return self.grant_permits(request).await,
            answer = self.calls.tasks.join_next() => answer,
        };
        let mut next = first;
        while let Some(answer) = next {
            match answer {
                Ok((step, answer)) => self.answer(step, answer)?,
                // A task that panicked leaves its step in flight. The call is in doubt, as after a crash, and
                // no new step begins.
                Err(_) => self.halted = true,
            }
            next = self.calls.tasks.try_join_next();
        }
        Ok(())
    }
}
