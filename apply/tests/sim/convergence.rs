//! The checks at the end of a run that reports success, and at the end of a schedule, once no fault occurs
//! any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apply::ApplyError;
use engine::journal::Record;
use engine::plan::{Action, Plan};
use engine::state::Watched;
use tokio::time::{Instant, sleep};

use crate::api_variant::Harness;
use crate::bugs;
use crate::cloud::{LATE_MS, lock};
use crate::invariants;
use crate::one_run::{Asked, Machine, request};
use crate::report::is_success;
use crate::runner::Runner;
use crate::schedule::Spec;
use crate::simulation::{End, Simulation};
use crate::store_spy::StoreSpy;

const CALM: Asked =
    Asked { parallelism: 4, wait: Duration::ZERO, stop_after_ms: None, saved_for_ms: None };

impl Simulation {
    /// Checks the end of a schedule. After all late requests have taken effect, a run without faults makes
    /// everything as the spec wants it, a second run has nothing to do, and a destroy leaves nothing.
    pub(crate) async fn finale(&self, spec: &Spec) {
        let last = lock(&self.cloud).until_all_came();
        sleep(Duration::from_millis(last + LATE_MS)).await;
        if lock(&self.cloud).awaits_what_was_accepted() {
            sleep(Duration::from_millis(Watched::ANSWERED_MS)).await;
        }
        lock(&self.cloud).catch_up();
        lock(&self.cloud).note("finale");
        lock(&self.cloud).calm_down();
        let mut spec = spec.clone();
        let harness = lock(&self.cloud).harness;
        lock(&self.cloud).ask_for(spec.imported(harness));
        let mut end = self.undisturbed(900, &spec, false).await;
        if let End::Failed(ApplyError::Vanished { addresses, .. }) = &end {
            let addresses = addresses.clone();
            end = match self.take_out(&addresses, &spec).await {
                Ok(()) => self.undisturbed(901, &spec, false).await,
                Err(error) => End::Failed(error),
            };
        }
        if let End::Refused(why) = &end
            && self.give_up_imports(&mut spec, why).await
        {
            end = self.undisturbed(902, &spec, false).await;
        }
        let spec = &spec;
        if self.well(end).is_none() {
            return;
        }
        let Some(plan) = self.calm(904, spec, false).await else { return };
        self.is_empty(&plan, &BTreeMap::new());
        invariants::whole(self, spec).await;
        if self.calm(910, spec, true).await.is_some() {
            invariants::nothing_left(self).await;
        }
    }

    /// Checks that a plan right after a run that reports success is empty. The check is left out if something
    /// happened that the run could not know of, or if a look of the run lagged or left objects out.
    pub(crate) async fn is_over(&self, runner: &Arc<Runner>, end: &End) {
        let End::Done(report, plan) = end else { return };
        let saw_all = {
            let struck = runner.struck.lock().unwrap();
            ["stale", "incomplete"].iter().all(|class| !struck.contains_key(class))
        };
        let knew_all = saw_all && lock(&self.cloud).is_orderly();
        if !knew_all || !is_success(report) || !plan.complete || !plan.doubts.is_empty() {
            return;
        }
        let mut looker = Runner::new(runner.number + 1, &self.cloud, &runner.spec, 950);
        looker.destroy = runner.destroy;
        looker.schema = bugs::schema(self.bug, looker.harness);
        match self.look(&Arc::new(looker)).await {
            Ok(Some(plan)) => self.is_empty(&plan, &runner.struck.lock().unwrap()),
            Ok(None) => lock(&self.cloud).violation("no plan is made after a success".to_owned()),
            Err(error) => lock(&self.cloud).violation(format!("no plan after a success: {error}")),
        }
        lock(&self.cloud).count("plans after a success");
    }

    /// Returns the plan that `plumb plan` would show now; None if the plan has errors.
    async fn look(&self, runner: &Arc<Runner>) -> Result<Option<Plan>, ApplyError> {
        let providers = self.providers(runner);
        let prepared = self.prepared(runner, &providers);
        let options = self.options(runner);
        let host = Machine { runner, bug: self.bug };
        let request = request(&prepared, &providers, &options, &host);
        let spy = StoreSpy { store: self.store.of(runner, self.bug), runner: runner.clone() };
        self.plan_ahead(&*bugs::store(self.bug, spy), &request, &host).await
    }

    /// Checks that a plan has nothing to do. The plan may note news from its refresh if only one of the
    /// service's two APIs shows an attribute, or if an answer did not show the object.
    fn is_empty(&self, plan: &Plan, struck: &BTreeMap<&'static str, u64>) {
        let mut cloud = lock(&self.cloud);
        let shows_all = cloud.harness == Harness::Port && !struck.contains_key("bare");
        // The end of the watch for a name changes nothing that anybody sees.
        let is_news = |record: &Record| match record {
            Record::Unwatched { .. } => false,
            Record::Seen { .. } => shows_all,
            _ => true,
        };
        let drifted = shows_all && !plan.drift.is_empty();
        let outputs = plan.outputs.values().any(|output| output.action != Action::NoOp);
        if !plan.steps.is_empty() || outputs || drifted || plan.seen.iter().any(is_news) {
            let steps = engine::plan::text::steps(plan);
            cloud.violation(format!("the plan after a success is not empty: {steps}"));
        }
    }

    /// Performs a run without faults; any failure is a violation. Returns the plan, or None if the run did
    /// not execute one to its end.
    async fn calm(&self, number: usize, spec: &Spec, destroy: bool) -> Option<Arc<Plan>> {
        let end = self.undisturbed(number, spec, destroy).await;
        self.well(end)
    }

    /// Performs a run without faults, which must take five minutes at most.
    async fn undisturbed(&self, number: usize, spec: &Spec, destroy: bool) -> End {
        let before = Instant::now();
        let mut runner = Runner::new(number, &self.cloud, spec, number as u64);
        runner.destroy = destroy;
        runner.schema = bugs::schema(self.bug, runner.harness);
        let runner = Arc::new(runner);
        let end = self.live(&runner, CALM).await;
        if before.elapsed() > Duration::from_mins(5) {
            let took = format!("a calm run took {:?}", before.elapsed());
            lock(&self.cloud).violation(took);
        }
        end
    }

    /// Checks the end of a run without faults: nothing may fail. Returns the plan, or None if the run did not
    /// execute one to its end.
    fn well(&self, end: End) -> Option<Arc<Plan>> {
        let mut cloud = lock(&self.cloud);
        match end {
            End::Done(report, plan) => {
                if let Some(failure) = report.failures.first() {
                    let (address, message) = (&failure.address, &failure.message);
                    cloud.violation(format!("a calm run failed: {address}: {message}"));
                }
                if let Some(address) = report.in_doubt.first() {
                    cloud.violation(format!("a calm run left {address} in doubt"));
                }
                Some(plan)
            }
            End::Refused(why) => {
                cloud.violation(format!("a calm run was refused: {why}"));
                None
            }
            End::Failed(error) => {
                cloud.violation(format!("a calm run ended: {error}"));
                None
            }
            End::Crashed => None,
        }
    }
}
