//! Checks: the data that is fetched for each, its assertion, and its result.
//!
//! Several checks run at once, each with a time limit, and their results are shown in the order of the spec.
//! Jobs of one endpoint run one after the other, because they would wait for the same workers. A check
//! changes nothing except by its job. A job that does not end in time is cancelled.

mod hiding;
pub(crate) mod http;
mod job;
pub(crate) mod shape;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apply::checks::Live;
use engine::address::{Block, Name};
use engine::config::{CheckConfig, Config, ResourceConfig, SpecExpr, Table};
use engine::diagnostics::{Sources, Span};
use engine::expression::Kind;
use engine::state::Snapshot;
use engine::value::{Datum, Paths, Value};
use futures_util::stream::{self, StreamExt as _};
use render::view::{Place, place};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use self::hiding::Hiding;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::providers::Configured;

/// The time limit of the job or the request of a check, unless the check gives another one.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The number of checks that run at once.
const AT_ONCE: usize = 4;

/// The parts of a command that checks use.
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) sources: &'a Sources,
    pub(crate) configured: &'a Configured,
    pub(crate) output: &'a Output,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) turns: Turns,
}

/// The locks that let only one check at a time run a job at each endpoint.
#[derive(Default)]
pub(crate) struct Turns(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until no other check has a job at this endpoint.
    async fn at(&self, endpoint: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(endpoint.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// The name of the check.
    pub(crate) name: String,
    /// True if the assertion holds.
    pub(crate) passed: bool,
    /// The reason of the failure: the check's message, or the obstacle. `None` if the check passed.
    pub(crate) message: Option<String>,
    /// The description of the result of the job or request.
    pub(crate) detail: Option<String>,
    /// The place of the check in the spec.
    #[serde(flatten)]
    pub(crate) place: Place,
}

/// The reason that a check could not be carried out.
struct Obstacle {
    message: String,
    span: Option<Span>,
}

/// A value that was fetched for a check, and its description.
struct Fetched {
    datum: Datum,
    detail: Option<String>,
}

/// Returns the part of a config that checks need; `None` if it has no checks. A whole config may be large.
pub(crate) fn of(config: &Config) -> Option<Config> {
    (!config.checks.is_empty()).then(|| Config {
        variables: config.variables.clone(),
        locals: config.locals.clone(),
        files: config.files.clone(),
        checks: config.checks.clone(),
        resources: wanted_by_conditions(config),
        ..Config::default()
    })
}

/// Returns the resources that may be disabled or have a `for_each`, without their attributes. If an object of
/// one is not there, the spec may have disabled it.
fn wanted_by_conditions(config: &Config) -> BTreeMap<Block, ResourceConfig> {
    let resources = config.resources.iter();
    let is_conditional =
        |it: &ResourceConfig| it.for_each.is_some() || it.lifecycle.enabled.is_some();
    let conditional = resources.filter(|(_, resource)| is_conditional(resource));
    let bare = conditional.map(|(block, resource)| {
        (block.clone(), ResourceConfig { attributes: Table::default(), ..resource.clone() })
    });
    bare.collect()
}

impl World<'_> {
    /// Runs all checks. Calls `told` with each result, in the order of the spec.
    pub(crate) async fn run(
        &self,
        snapshot: Snapshot,
        told: &mut dyn FnMut(&Outcome),
    ) -> Result<Vec<Outcome>, CommandError> {
        let live = tokio::select! {
            live = Live::look(snapshot, &self.configured.providers, self.config) => live?,
            () = self.stop.cancelled() => return Err(stopped()),
        };
        let secrets = live.secrets(self.config, &self.configured.providers);
        let hiding = Hiding::new(&live, &secrets);
        let checks = stream::iter(&self.config.checks);
        let checks = checks.map(|(name, check)| self.check(name, check, (&live, &hiding)));
        let mut checks = std::pin::pin!(checks.buffered(AT_ONCE));
        let (mut outcomes, mut failure) = (Vec::new(), None);
        // The loop goes on after a failure: a check must be able to cancel the job that it has begun.
        while let Some(ended) = checks.next().await {
            match ended {
                Ok(outcome) if failure.is_none() => {
                    told(&outcome);
                    outcomes.push(outcome);
                }
                Ok(_) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(outcomes), Err)
    }

    async fn check(
        &self,
        name: &Name,
        check: &CheckConfig,
        (live, hiding): (&Live, &Hiding<'_>),
    ) -> Result<Outcome, CommandError> {
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        let mut outcome = Outcome {
            name: name.to_string(),
            passed: false,
            message: None,
            detail: None,
            place: place(Some(check.header), self.sources),
        };
        let mut bound = BTreeMap::new();
        for (word, item) in check.sources.iter() {
            let fetched = self.fetch(name, (word, &item.value), (live, hiding)).await?;
            match fetched {
                Ok(fetched) => {
                    outcome.detail = fetched.detail.map(|detail| hiding.hide(&detail));
                    bound.insert(word.clone(), fetched.datum);
                }
                Err(obstacle) => {
                    self.blocked(&mut outcome, &obstacle, hiding);
                    return Ok(outcome);
                }
            }
        }
        match self.holds(check, live, &bound) {
            Ok(holds) => {
                outcome.passed = holds;
                outcome.message = (!holds).then(|| self.message(check, (live, hiding), &bound));
            }
            Err(obstacle) => self.blocked(&mut outcome, &obstacle, hiding),
        }
        Ok(outcome)
    }

    async fn fetch(
        &self,
        name: &Name,
        (word, source): (&Name, &SpecExpr),
        (live, hiding): (&Live, &Hiding<'_>),
    ) -> Result<Result<Fetched, Obstacle>, CommandError> {
        let datum = match self.evaluate(source, live, &BTreeMap::new()) {
            Ok(datum) => datum,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let fetching = async {
            let fetched = match &**word {
                "job" => self.job(name, &datum, hiding).await?,
                _ => self.request(&datum, live).await,
            };
            Ok(fetched.map_err(|message| Obstacle { message, span: Some(source.span) }))
        };
        tokio::select! {
            fetched = fetching => fetched,
            // A job watches the stop request itself, so that it is cancelled first.
            () = self.stop.cancelled(), if &**word != "job" => Err(stopped()),
        }
    }

    fn holds(
        &self,
        check: &CheckConfig,
        live: &Live,
        bound: &BTreeMap<Name, Datum>,
    ) -> Result<bool, Obstacle> {
        match self.evaluate(&check.assert, live, bound)?.value {
            Value::Bool(holds) => Ok(holds),
            _ => Err(Obstacle {
                message: "the assertion is neither true nor false".to_owned(),
                span: Some(check.assert.span),
            }),
        }
    }

    /// Returns the message of a check whose assertion does not hold.
    fn message(
        &self,
        check: &CheckConfig,
        (live, hiding): (&Live, &Hiding<'_>),
        bound: &BTreeMap<Name, Datum>,
    ) -> String {
        let Some(message) = &check.message else {
            return "the assertion does not hold".to_owned();
        };
        match self.evaluate(message, live, bound) {
            Ok(datum) if !datum.sensitive.is_empty() => {
                "the assertion does not hold, and its message holds a secret".to_owned()
            }
            // A message that the spec gives as plain text is shown as it is.
            Ok(Datum { value: Value::String(text), .. }) if is_literal(message) => text.to_string(),
            Ok(Datum { value: Value::String(text), .. }) => hiding.hide(&text),
            Ok(_) => "the assertion does not hold, and its message is no text".to_owned(),
            Err(obstacle) => format!(
                "the assertion does not hold, and its message cannot be computed: {}",
                hiding.hide(&obstacle.message)
            ),
        }
    }

    fn evaluate(
        &self,
        expr: &SpecExpr,
        live: &Live,
        bound: &BTreeMap<Name, Datum>,
    ) -> Result<Datum, Obstacle> {
        let of = (self.config, &self.configured.providers);
        live.evaluate(&expr.expr, of, bound).map_err(|error| Obstacle {
            message: match &error.help {
                Some(help) => format!("{}; {help}", error.message),
                None => error.message.clone(),
            },
            span: Some(expr.span_of(error.range)),
        })
    }

    fn blocked(&self, outcome: &mut Outcome, obstacle: &Obstacle, hiding: &Hiding<'_>) {
        outcome.message = Some(hiding.hide(&obstacle.message));
        if obstacle.span.is_some() {
            outcome.place = place(obstacle.span, self.sources);
        }
    }
}

fn is_literal(message: &SpecExpr) -> bool {
    matches!(message.expr.kind, Kind::Literal(_))
}

/// Returns the error for a stop request before all checks were made.
pub(crate) fn stopped() -> CommandError {
    CommandError::new("stopped before all checks were made").status(Status::Cancelled)
}

/// Marks fetched data as sensitive if a secret was sent for it: the answer may repeat the secret.
fn fetched(value: Value, secret: bool, detail: Option<String>) -> Fetched {
    let sensitive = if secret { Paths::whole() } else { Paths::none() };
    Fetched { datum: Datum { value, sensitive }, detail: detail.filter(|_| !secret) }
}

/// Returns the text of a result, for people.
pub(crate) fn text(outcome: &Outcome) -> String {
    let name = render::safe::text(&outcome.name);
    if outcome.passed {
        return format!("passed  {name}\n");
    }
    let capped = |text: &str| render::safe::capped(text, 1_000);
    let why = outcome.message.as_deref().map(capped).unwrap_or_default();
    let mut text = format!("failed  {name}: {why}\n");
    if let (Some(file), Some(line)) = (&outcome.place.file, outcome.place.line) {
        let _ = writeln!(text, "        {}:{line}", render::safe::text(file));
    }
    if let Some(detail) = &outcome.detail {
        let _ = writeln!(text, "        {}", capped(detail));
    }
    text
}

/// Returns a sentence with the numbers of passed and failed checks.
pub(crate) fn summary(outcomes: &[Outcome]) -> String {
    let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
    let noun = if outcomes.len() == 1 { "check" } else { "checks" };
    match failed {
        0 => format!("{} {noun} passed.\n", outcomes.len()),
        _ => format!("{failed} of {} {noun} failed.\n", outcomes.len()),
    }
}

/// Returns the exit status for these results.
pub(crate) fn status(outcomes: &[Outcome]) -> Status {
    let passed = outcomes.iter().all(|outcome| outcome.passed);
    if passed { Status::Done } else { Status::Failed }
}
