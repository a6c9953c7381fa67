//! The simulation of a schedule: its runs one after the other over one cloud and one store, with strangers,
//! second runners and power cuts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apply::ApplyError;
use apply::run::Report;
use engine::plan::{Action, Change, Plan};
use engine::state::ObjectId;
use tokio::time::sleep;

use crate::bugs::{self, Bug};
use crate::cloud::{Cloud, Shared, lock};
use crate::invariants;
use crate::keys;
use crate::one_run::{Asked, Prepared};
use crate::place::Place;
use crate::rng::Rng;
use crate::runner::Runner;
use crate::schedule::{Meddling, Other, RunPlan, Schedule, Spec};
use crate::tickets;

/// A time longer than all that can happen in one schedule: a run that has not ended by then is stuck.
const STUCK: Duration = Duration::from_hours(200 * 24);

/// The result of one simulation. The lines of the trace are empty unless they were asked for.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) lines: Vec<String>,
}

/// The end of a run.
pub(crate) enum End {
    Done(Box<Report>, Arc<Plan>),
    Refused(String),
    Failed(ApplyError),
    Crashed,
}

/// Runs a schedule in a runtime and a virtual time of its own.
pub(crate) fn simulate(schedule: &Schedule, bug: Option<Bug>, verbose: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let simulation = Simulation {
            cloud: Arc::new(std::sync::Mutex::new(Cloud::new(schedule.harness, verbose))),
            store: Place::new(schedule.store),
            bug,
            has_secret: schedule.runs.iter().any(|run| run.spec.secret.is_some()),
            prepared: std::sync::Mutex::default(),
        };
        let whole = simulation.whole(schedule);
        if tokio::time::timeout(STUCK, whole).await.is_err() {
            lock(&simulation.cloud).violation("a run never ended".to_owned());
        }
        let mut cloud = lock(&simulation.cloud);
        Outcome {
            violations: cloud.violations.clone(),
            hash: cloud.hash(),
            counts: cloud.counts.clone(),
            lines: cloud.lines.take().unwrap_or_default(),
        }
    })
}

pub(crate) struct Simulation {
    pub(crate) cloud: Shared,
    pub(crate) store: Place,
    pub(crate) bug: Option<Bug>,
    /// True if any spec of the schedule has a secret.
    pub(crate) has_secret: bool,
    /// The specs that were parsed. Each is parsed once, even if several runs have it.
    pub(crate) prepared: std::sync::Mutex<Vec<(Spec, Prepared)>>,
}

impl Simulation {
    async fn whole(&self, schedule: &Schedule) {
        let mut last = Spec::default();
        for (number, run) in schedule.runs.iter().enumerate() {
            if let Some(meddling) = run.meddling {
                self.meddle(run, meddling, None);
            }
            lock(&self.cloud).note(format_args!("run {number}"));
            self.one(number, run).await;
            // The runtime drops aborted work only when it gets a turn.
            sleep(Duration::from_millis(1)).await;
            invariants::after_run(self, number).await;
            sleep(Duration::from_millis(run.idle_ms)).await;
            last.clone_from(&run.spec);
            if !lock(&self.cloud).violations.is_empty() {
                return;
            }
        }
        self.finale(&last).await;
    }

    /// Lets a stranger make, change or delete objects. If a plan is given, the stranger chooses objects that
    /// the plan updates, if there are any.
    fn meddle(&self, run: &RunPlan, meddling: Meddling, plan: Option<&Plan>) {
        let mut rng = Rng::new(run.seed ^ 0x5eed);
        let mut cloud = lock(&self.cloud);
        let ours: Vec<_> = cloud
            .objects
            .iter()
            .filter(|(_, live)| live.owner.is_some() && live.is_named())
            .filter(|(_, live)| ![keys::TYPE, tickets::TYPE].contains(&&*live.ty))
            .map(|(id, live)| (id.clone(), live.name().to_owned()))
            .collect();
        if let Meddling::Makes = meddling {
            let ty = if rng.per_mille(500) { "disk" } else { "unit" };
            let names = run.spec.wanted(cloud.harness);
            let names: Vec<_> = names.values().map(|wanted| wanted.name.clone()).collect();
            let name = if names.is_empty() { "d0".to_owned() } else { rng.pick(&names).clone() };
            cloud.put(ty, &name);
            return;
        }
        let updates = |(id, _): &&(ObjectId, String)| {
            let is_it = |it: &Change| it.action == Action::Update && it.object.as_ref() == Some(id);
            plan.is_some_and(|plan| plan.changes.iter().any(is_it))
        };
        let updated: Vec<_> = ours.iter().filter(updates).cloned().collect();
        let ours = if updated.is_empty() { ours } else { updated };
        if ours.is_empty() {
            return;
        }
        cloud.count("meddling");
        if let Meddling::Deletes = meddling {
            for _ in 0..run.deletes {
                let (id, _) = rng.pick(&ours);
                cloud.note(format_args!("a stranger deletes {id}"));
                cloud.taken_away.insert(id.clone());
                cloud.disorder(id.clone());
                cloud.edit(|objects| drop(objects.remove(id)));
            }
            return;
        }
        let (id, _) = rng.pick(&ours).clone();
        cloud.note(format_args!("stranger meddles with {id}: {meddling:?}"));
        let works = rng.per_mille(600);
        cloud.disorder(id.clone());
        cloud.edit(|objects| {
            let Some(live) = objects.get_mut(&id).map(Arc::make_mut) else { return };
            if &*live.ty == "unit" && works {
                live.attributes.insert("workers".into(), engine::value::Value::Integer(2));
            } else {
                let name = engine::value::Value::string("meddled");
                live.attributes.insert("name".into(), name);
            }
        });
    }

    /// Returns one of the runners of a run, with random numbers of its own.
    fn runner(&self, number: usize, run: &RunPlan, salt: u64) -> Runner {
        let mut runner = Runner::new(number, &self.cloud, &run.spec, run.seed ^ salt);
        runner.rates = run.rates.clone();
        runner.destroy = run.destroy;
        runner.asked = run.asked(runner.harness).filter(|_| !run.destroy);
        runner.narrow = run.narrowed(runner.harness);
        runner.grows_every = run.grows_every;
        if run.by_command {
            runner.commands = run.spec.imported(runner.harness);
            runner.spec.imports.clear();
        }
        runner.schema = bugs::schema(self.bug, runner.harness);
        runner
    }

    async fn one(&self, number: usize, run: &RunPlan) {
        let pause = match run.other {
            Some(Other::TakesOver { at, for_ms }) => Some((at, for_ms)),
            _ => None,
        };
        let first = self.runner(number * 2, run, 0).crashing(run.crash_at).pausing(pause);
        let first = Arc::new(first);
        {
            let mut cloud = lock(&self.cloud);
            for offer in &run.offers {
                cloud.offer(offer);
            }
            let imported = run.spec.imported(first.harness);
            cloud.ask_for(imported);
        }
        let withdraws = async {
            if let Some(after) = run.withdraws {
                sleep(Duration::from_millis(after)).await;
                lock(&self.cloud).withdraw();
            }
        };
        let meddles = async {
            if let Some(after) = run.meddles_after {
                sleep(Duration::from_millis(after)).await;
                let plan = first.plan.lock().unwrap().clone();
                self.meddle(run, Meddling::Changes, plan.as_deref());
            }
        };
        let asked = Asked {
            parallelism: run.parallelism,
            wait: Duration::ZERO,
            stop_after_ms: run.stop_after_ms,
            saved_for_ms: run.saved_for_ms,
        };
        let one = self.live(&first, asked);
        let Some(other) = &run.other else {
            let (end, ..) = tokio::join!(one, withdraws, meddles);
            if first.dead.load(Ordering::Relaxed) {
                self.lose_power(run);
            } else {
                self.is_over(&first, &end).await;
            }
            return;
        };
        let second = Arc::new(self.runner(number * 2 + 1, run, 1).crashing(run.other_crash_at));
        let two = async {
            let wait = match other {
                Other::Waits { after_ms, wait_ms } => {
                    sleep(Duration::from_millis(*after_ms)).await;
                    *wait_ms
                }
                Other::TakesOver { .. } => {
                    first.out.notified().await;
                    if first.fenced.load(Ordering::Relaxed) {
                        lock(&self.cloud).note("driven out");
                        self.store.drive_out();
                    }
                    0
                }
            };
            let wait = Duration::from_millis(wait);
            self.live(&second, Asked { wait, stop_after_ms: None, saved_for_ms: None, ..asked })
                .await
        };
        tokio::join!(one, two, withdraws, meddles);
    }

    /// Cuts the power after a process died, in 70% of the cases in which the state is on a disk.
    fn lose_power(&self, run: &RunPlan) {
        let mut rng = Rng::new(run.seed ^ 0xc0);
        if let Place::Disk(disk) = &self.store
            && rng.per_mille(700)
        {
            let cloud = &mut *lock(&self.cloud);
            cloud.note("the power is cut");
            cloud.count("power cuts");
            // Whatever the store has not confirmed as durable may be gone: calls, a serial, a whole first
            // state.
            cloud.last.clone_from(&cloud.told);
            cloud.was_cut = true;
            disk.cut(&mut rng);
        }
    }
}
