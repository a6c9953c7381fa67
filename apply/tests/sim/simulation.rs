//! A schedule, run: the same steps as the command line's apply, over one world and one store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apply::execute::{Execution, Report, execute_anyway};
use apply::observe::observe;
use apply::planning::{self, Request};
use apply::recover::recover;
use apply::session::{Session, fold};
use apply::verify::verify;
use apply::{ApplyError, Clock, Host, Providers};
use engine::diagnostics::Diagnostics;
use engine::graph::Graph;
use engine::journal::Record;
use engine::plan::input::{Mode, Options, Target};
use engine::plan::{Action, Plan};
use engine::spec::Config;
use engine::spec::parse::parse;
use engine::spec::resolve::{ResolveInput, resolve};
use engine::state::{ObjectId, Snapshot};
use engine::work::InTurn;
use state::file::FileStore;
use state::memory::MemoryStore;
use state::{Holder, Loaded, Store, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::bugs::{self, Bug};
use crate::desk::Desk;
use crate::dialect::Room;
use crate::invariants;
use crate::keys;
use crate::platter::{Platter, Spindle};
use crate::port::Cloud;
use crate::report::{Ended, is_success};
use crate::rng::Rng;
use crate::runner::Runner;
use crate::schedule::{Meddling, Narrow, Other, RunPlan, Schedule, Spec, StoreKind};
use crate::sky::{LATE_MS, Shared, Sky, lock};
use crate::{secrets, wire};

/// Longer than all that can happen in one schedule: what still runs then is stuck.
const STUCK: Duration = Duration::from_hours(200 * 24);

/// When a schedule begins: a day of our time, in milliseconds since 1970.
pub(crate) const EPOCH_MS: u64 = 1_790_000_000_000;

/// What one simulation showed.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) lines: Vec<String>,
}

/// How a run ended.
pub(crate) enum End {
    Done(Box<Report>, Arc<Plan>),
    Refused(String),
    Failed(ApplyError),
    Crashed,
}

/// Runs a schedule in a runtime and a time of its own.
pub(crate) fn simulate(schedule: &Schedule, bug: Option<Bug>, verbose: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let simulation = Simulation {
            sky: Arc::new(std::sync::Mutex::new(Sky::new(schedule.room, verbose))),
            store: Place::new(schedule.store),
            bug,
            has_secret: schedule.runs.iter().any(|run| run.spec.secret.is_some()),
            prepared: std::sync::Mutex::default(),
        };
        let whole = simulation.whole(schedule);
        if tokio::time::timeout(STUCK, whole).await.is_err() {
            lock(&simulation.sky).violation("a run never ended".to_owned());
        }
        let mut sky = lock(&simulation.sky);
        Outcome {
            violations: sky.violations.clone(),
            hash: sky.hash(),
            counts: sky.counts.clone(),
            lines: sky.lines.take().unwrap_or_default(),
        }
    })
}

pub(crate) struct Simulation {
    pub(crate) sky: Shared,
    pub(crate) store: Place,
    pub(crate) bug: Option<Bug>,
    /// Whether any of its specs has a secret.
    pub(crate) has_secret: bool,
    /// Specs that were read: each is read once, however many runs it has.
    prepared: std::sync::Mutex<Vec<(Spec, Prepared)>>,
}

/// Where the state is, for all runs of a schedule.
pub(crate) enum Place {
    Memory(MemoryStore),
    Disk(Arc<Platter>),
}

impl Place {
    fn new(kind: StoreKind) -> Self {
        match kind {
            StoreKind::Memory => Self::Memory(MemoryStore::new()),
            StoreKind::File => Self::Disk(Platter::new()),
        }
    }

    /// The store as a process has it.
    pub(crate) fn of(&self, runner: &Arc<Runner>, bug: Option<Bug>) -> Box<dyn Store> {
        match self {
            Self::Memory(store) => Box::new(store.clone()),
            Self::Disk(platter) => {
                let disk = Spindle { platter: platter.clone(), runner: runner.clone(), bug };
                Box::new(FileStore::on(Arc::new(disk), platter.folder()))
            }
        }
    }

    /// What it holds, as somebody finds it who looks when nobody runs.
    pub(crate) async fn load(&self) -> Result<Loaded, StoreError> {
        match self {
            Self::Memory(store) => store.load().await,
            Self::Disk(platter) => FileStore::new(platter.folder()).load().await,
        }
    }

    /// Whether a secret stands in anything that is kept.
    pub(crate) async fn shows_a_secret(&self) -> bool {
        match self {
            Self::Memory(store) => {
                let loaded = store.load().await.unwrap();
                let kept = serde_json::to_vec(&(loaded.snapshot, loaded.records)).unwrap();
                secrets::shows(&kept)
            }
            Self::Disk(platter) => platter.files().iter().any(|file| secrets::shows(file)),
        }
    }

    pub(crate) fn without_path(&self, text: &str) -> String {
        match self {
            Self::Disk(platter) => platter.without_path(text),
            Self::Memory(_) => text.to_owned(),
        }
    }

    /// Lets another run take over from one that stands still, where a store has such a way.
    fn drive_out(&self) {
        if let Self::Memory(store) = self {
            store.drive_out();
        }
    }
}

type Prepared = Arc<(Config, Graph)>;

/// A runner's clock and dice.
pub(crate) struct Machine<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) bug: Option<Bug>,
}

impl Host for Machine<'_> {
    fn now_ms(&self) -> u64 {
        EPOCH_MS + lock(&self.runner.sky).now_ms()
    }

    fn clock(&self) -> Clock {
        let start = lock(&self.runner.sky).start;
        Clock::new(move || u64::try_from(start.elapsed().as_millis()).unwrap())
    }

    fn random(&self) -> [u8; 32] {
        if self.bug == Some(Bug::SameNonce) { [7; 32] } else { self.runner.random() }
    }
}

/// How a run is asked for.
#[derive(Clone, Copy)]
struct Asked {
    parallelism: usize,
    wait: Duration,
    stop_after_ms: Option<u64>,
    /// The plan is made ahead, and applied so much later.
    saved_for_ms: Option<u64>,
}

const CALM: Asked =
    Asked { parallelism: 4, wait: Duration::ZERO, stop_after_ms: None, saved_for_ms: None };

impl Simulation {
    async fn whole(&self, schedule: &Schedule) {
        let mut last = Spec::default();
        for (number, run) in schedule.runs.iter().enumerate() {
            self.meddle(run);
            lock(&self.sky).note(format_args!("run {number}"));
            self.one(number, run).await;
            // What was aborted is dropped when the runtime comes by.
            sleep(Duration::from_millis(1)).await;
            invariants::after_run(self, number).await;
            sleep(Duration::from_millis(run.idle_ms)).await;
            last.clone_from(&run.spec);
            if !lock(&self.sky).violations.is_empty() {
                return;
            }
        }
        self.finale(&last).await;
    }

    fn meddle(&self, run: &RunPlan) {
        let Some(meddling) = run.meddling else { return };
        let mut rng = Rng::new(run.seed ^ 0x5eed);
        let mut sky = lock(&self.sky);
        let ours: Vec<_> = sky
            .objects
            .iter()
            .filter(|(_, live)| live.owner.is_some() && live.is_named())
            .filter(|(_, live)| &*live.ty != keys::TYPE)
            .map(|(id, live)| (id.clone(), live.name().to_owned()))
            .collect();
        if let Meddling::Makes = meddling {
            let ty = if rng.per_mille(500) { "disk" } else { "unit" };
            let names = run.spec.wanted(sky.room);
            let names: Vec<_> = names.values().map(|wanted| wanted.name.clone()).collect();
            let name = if names.is_empty() { "d0".to_owned() } else { rng.pick(&names).clone() };
            sky.put(ty, &name);
            return;
        }
        if ours.is_empty() {
            return;
        }
        sky.count("meddling");
        if let Meddling::Deletes = meddling {
            for _ in 0..run.deletes {
                let (id, _) = rng.pick(&ours);
                sky.note(format_args!("a stranger deletes {id}"));
                sky.taken_away.insert(id.clone());
                sky.disorder(id.clone());
                sky.edit(|objects| drop(objects.remove(id)));
            }
            return;
        }
        let (id, _) = rng.pick(&ours).clone();
        sky.note(format_args!("stranger meddles with {id}: {meddling:?}"));
        let works = rng.per_mille(600);
        sky.disorder(id.clone());
        sky.edit(|objects| {
            let Some(live) = objects.get_mut(&id).map(Arc::make_mut) else { return };
            if &*live.ty == "unit" && works {
                live.attributes.insert("workers".into(), engine::value::Value::Integer(2));
            } else {
                let name = engine::value::Value::string("meddled");
                live.attributes.insert("name".into(), name);
            }
        });
    }

    /// One of the runners of a run, with dice of its own.
    fn runner(&self, number: usize, run: &RunPlan, salt: u64) -> Runner {
        let mut runner = Runner::new(number, &self.sky, &run.spec, run.seed ^ salt);
        runner.rates = run.rates.clone();
        runner.destroy = run.destroy;
        runner.asked = run.asked(runner.room).filter(|_| !run.destroy);
        runner.narrow = run.narrowed(runner.room);
        runner.grows_every = run.grows_every;
        if run.by_command {
            runner.commands = run.spec.imported(runner.room);
            runner.spec.imports.clear();
        }
        runner.schema = bugs::schema(self.bug, runner.room);
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
            let mut sky = lock(&self.sky);
            for offer in &run.offers {
                sky.offer(offer);
            }
            let imported = run.spec.imported(first.room);
            sky.ask_for(imported);
        }
        let withdraws = async {
            if let Some(after) = run.withdraws {
                sleep(Duration::from_millis(after)).await;
                lock(&self.sky).withdraw();
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
            let (end, ()) = tokio::join!(one, withdraws);
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
                        lock(&self.sky).note("driven out");
                        self.store.drive_out();
                    }
                    0
                }
            };
            let wait = Duration::from_millis(wait);
            self.live(&second, Asked { wait, stop_after_ms: None, saved_for_ms: None, ..asked })
                .await
        };
        tokio::join!(one, two, withdraws);
    }

    /// A process that died may have died with its machine.
    fn lose_power(&self, run: &RunPlan) {
        let mut rng = Rng::new(run.seed ^ 0xc0);
        if let Place::Disk(platter) = &self.store
            && rng.per_mille(700)
        {
            let sky = &mut *lock(&self.sky);
            sky.note("the power is cut");
            sky.count("power cuts");
            // What nobody was told to be durable may be gone: calls, a serial, a whole first state.
            sky.last.clone_from(&sky.told);
            sky.was_cut = true;
            platter.cut(&mut rng);
        }
    }

    /// A run, until it ends or dies.
    async fn live(&self, runner: &Arc<Runner>, asked: Asked) -> End {
        let end = tokio::select! {
            biased;
            () = runner.crashed.notified() => End::Crashed,
            end = self.run(runner, asked) => end.unwrap_or_else(End::Failed),
        };
        let words = match &end {
            End::Done(report, _) => format!(
                "done: {} failed, {} in doubt",
                report.failures.len(),
                report.in_doubt.len()
            ),
            End::Refused(why) => format!("refused: {why}"),
            End::Failed(error) => format!("failed: {error}"),
            End::Crashed => "dead".to_owned(),
        };
        let words = self.store.without_path(&words);
        let mut sky = lock(&self.sky);
        sky.note(format_args!("r{} {words}", runner.number));
        if let End::Failed(ApplyError::Journal(error)) = &end {
            sky.violation(format!("the journal contradicts itself: {error}"));
        }
        if let End::Failed(ApplyError::Vanished { .. }) = &end {
            sky.count("vanished");
        }
        for (class, count) in &*runner.struck.lock().unwrap() {
            *sky.counts.entry(class).or_default() += count;
        }
        drop(sky);
        runner.out.notify_one();
        end
    }

    fn providers(&self, runner: &Arc<Runner>) -> Providers {
        let (name, provider): (_, Arc<dyn provider_port::Provider>) = match runner.room {
            Room::Port => ("cloud", Arc::new(Cloud(runner.clone()))),
            Room::Http => ("serverless", Arc::new(wire::provider(runner, self.bug))),
        };
        Providers::from([(name.into(), bugs::provider(self.bug, provider))])
    }

    async fn run(&self, runner: &Arc<Runner>, asked: Asked) -> Result<End, ApplyError> {
        let providers = self.providers(runner);
        let prepared = self.prepared(runner, &providers);
        let host = Machine { runner, bug: self.bug };
        let desk = Desk { store: self.store.of(runner, self.bug), runner: runner.clone() };
        let store = bugs::store(self.bug, desk);
        let options = self.options(runner);
        let request = request(&prepared, &providers, &options, &host);
        for (address, id) in &runner.commands {
            self.import(&*store, &request, &host, asked, (address, id)).await?;
        }
        let opened = self.open(&*store, &request, &host, asked).await?;
        let (mut session, mut plan) = match opened {
            Ok(opened) => opened,
            Err(why) => return Ok(End::Refused(why)),
        };
        self.was_asked(session.snapshot(), &plan);
        bugs::plan(self.bug, &mut plan, session.snapshot(), host.now_ms());
        let plan = Arc::new(plan);
        *runner.plan.lock().unwrap() = Some(plan.clone());
        let stop = CancellationToken::new();
        let variables = runner.spec.variables(runner.room);
        let tale = runner.tale.clone();
        let execution = Execution {
            plan: &plan,
            providers: &providers,
            host: &host,
            variables: &variables,
            parallelism: Some(asked.parallelism),
            emit: Arc::new(move |event| tale.lock().unwrap().hear(&event)),
            stop: &stop,
            run: "run",
        };
        let cancel = async {
            match asked.stop_after_ms {
                Some(ms) => sleep(Duration::from_millis(ms)).await,
                None => std::future::pending().await,
            }
            if self.bug != Some(Bug::StopNotHeeded) {
                stop.cancel();
            }
            runner.asked_to_stop();
            std::future::pending::<()>().await;
        };
        let (report, failure) = tokio::select! {
            biased;
            ended = execute_anyway(&mut session, &execution) => ended,
            () = cancel => unreachable!("it waits for good"),
        };
        let (is_whole, state) = (failure.is_none(), session.snapshot());
        Ended { runner, plan: &plan, report: &report, is_whole, state }.audit();
        if let Some(failure) = failure {
            return Err(failure);
        }
        session.close().await?;
        Ok(End::Done(Box::new(report), plan))
    }

    /// What is asked of a run.
    fn options(&self, runner: &Runner) -> Options {
        let mode = if runner.destroy { Mode::Destroy } else { Mode::Apply };
        let replace = runner.asked.iter().map(|address| address.parse().unwrap()).collect();
        let mut options = Options { mode, replace, ..Options::default() };
        if let Some((narrow, address)) = &runner.narrow {
            let target = Target::Instance(address.parse().unwrap());
            match narrow {
                Narrow::Target => options.targets.push(target),
                Narrow::Exclude => options.excludes.push(target),
            }
            lock(&self.sky).count("narrowed runs");
        }
        options
    }

    /// Takes an object over as the command does.
    async fn import(
        &self,
        store: &dyn Store,
        request: &Request<'_>,
        host: &Machine<'_>,
        asked: Asked,
        (address, id): (&str, &ObjectId),
    ) -> Result<(), ApplyError> {
        let holder = Holder { run: format!("r{}", host.runner.number), ..Holder::default() };
        let address = address.parse().unwrap();
        let mut session = Session::open(store, &holder, asked.wait, host, None).await?;
        self.recover(&mut session, request.providers, host).await?;
        let entry = session.snapshot().entries.get(&address);
        if entry.is_none_or(|entry| entry.current.is_none()) {
            let found = apply::import::import(&mut session, request, &address, id).await?;
            for said in found.iter() {
                host.runner.note(format_args!("  import: {}", said.summary));
            }
        }
        session.close().await
    }

    async fn recover(
        &self,
        session: &mut Session,
        providers: &Providers,
        host: &Machine<'_>,
    ) -> Result<(), ApplyError> {
        if self.bug == Some(Bug::NoRecovery) {
            return Ok(());
        }
        for record in recover(session.snapshot(), providers, host, &|_| {}).await {
            session.record(record)?;
        }
        session.flush().await
    }

    /// The state under its lock, and the plan that runs: made now, or made ahead and checked.
    async fn open(
        &self,
        store: &dyn Store,
        request: &Request<'_>,
        host: &Machine<'_>,
        asked: Asked,
    ) -> Result<Result<(Session, Plan), String>, ApplyError> {
        let holder = Holder { run: format!("r{}", host.runner.number), ..Holder::default() };
        let providers = request.providers;
        let saved = match asked.saved_for_ms {
            Some(ms) => {
                let Some(plan) = self.plan_ahead(store, request, host).await? else {
                    return Ok(Err("nothing was saved".to_owned()));
                };
                sleep(Duration::from_millis(ms)).await;
                Some(plan)
            }
            None => None,
        };
        let base = saved.as_ref().map(|plan| &plan.base);
        let origin = base.and_then(|base| Some((base.lineage.clone(), base.first_key.clone()?)));
        let mut session = Session::open(store, &holder, asked.wait, host, origin).await?;
        self.recover(&mut session, providers, host).await?;
        let plan = if let Some(plan) = saved {
            let seen = observe(session.snapshot(), providers, &BTreeSet::new()).await?;
            let checked = bugs::verified(self.bug, &plan);
            let fits = verify(&checked, session.snapshot(), &seen, providers);
            if let Err(error) = fits
                && self.bug != Some(Bug::StalePlan)
            {
                session.close().await?;
                lock(&self.sky).count("stale plans");
                return Ok(Err(error.to_string()));
            }
            lock(&self.sky).count("saved plans");
            plan
        } else {
            let (plan, diagnostics) = self.make(session.snapshot(), request).await?;
            if diagnostics.has_errors() {
                let said = diagnostics.iter().map(|d| d.summary.clone()).collect::<Vec<_>>();
                session.close().await?;
                return Ok(Err(said.join("; ")));
            }
            plan
        };
        Ok(Ok((session, plan)))
    }

    /// A plan, as planning makes it where nothing is to be asked first.
    async fn make(
        &self,
        snapshot: &Snapshot,
        request: &Request<'_>,
    ) -> Result<(Plan, Diagnostics), ApplyError> {
        if self.bug != Some(Bug::NobodyIsAsked) {
            return planning::make(snapshot, request).await;
        }
        let (plan, diagnostics, _) = planning::make_anyway(snapshot, request).await?;
        Ok((plan, diagnostics))
    }

    fn prepared(&self, runner: &Runner, providers: &Providers) -> Prepared {
        let spec = &runner.spec;
        let mut prepared = self.prepared.lock().unwrap();
        if let Some((_, prepared)) = prepared.iter().find(|(own, _)| own == spec) {
            return prepared.clone();
        }
        let new = Arc::new(prepare(spec, runner.room, providers));
        prepared.push((spec.clone(), new.clone()));
        new
    }

    /// A plan as `plan --out` makes it: without the lock, from what the store holds right now.
    async fn plan_ahead(
        &self,
        store: &dyn Store,
        request: &Request<'_>,
        host: &Machine<'_>,
    ) -> Result<Option<Plan>, ApplyError> {
        let loaded = store.load().await?;
        let running = loaded.holder.is_some();
        let request = &Request { running, ..*request };
        let mut snapshot = fold(loaded, host)?.snapshot;
        planning::recover_in_memory(&mut snapshot, request, host, &|_| {}).await?;
        let (plan, diagnostics) = self.make(&snapshot, request).await?;
        Ok((!diagnostics.has_errors()).then_some(plan))
    }

    /// All is calm: what was late has come, and the next run makes everything whole.
    async fn finale(&self, spec: &Spec) {
        let last = lock(&self.sky).until_all_came();
        sleep(Duration::from_millis(last + LATE_MS)).await;
        lock(&self.sky).catch_up();
        lock(&self.sky).note("finale");
        lock(&self.sky).calm_down();
        // What is left out stays as it is: whoever wants it gone gives it another value.
        let mut spec = Spec { leaves_out: false, ..spec.clone() };
        let room = lock(&self.sky).room;
        lock(&self.sky).ask_for(spec.imported(room));
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

    /// After a run that says that all is done, nothing is left to do: where nothing came that it could
    /// not know of, and it saw all that there was.
    async fn is_over(&self, runner: &Arc<Runner>, end: &End) {
        let End::Done(report, plan) = end else { return };
        let saw_all = {
            let struck = runner.struck.lock().unwrap();
            ["stale", "incomplete"].iter().all(|class| !struck.contains_key(class))
        };
        let knew_all = saw_all && lock(&self.sky).is_orderly();
        if !knew_all || !is_success(report) || !plan.complete || !plan.doubts.is_empty() {
            return;
        }
        let mut looker = Runner::new(runner.number + 1, &self.sky, &runner.spec, 950);
        looker.destroy = runner.destroy;
        looker.schema = bugs::schema(self.bug, looker.room);
        match self.look(&Arc::new(looker)).await {
            Ok(Some(plan)) => self.is_empty(&plan, &runner.struck.lock().unwrap()),
            Ok(None) => lock(&self.sky).violation("no plan is made after a success".to_owned()),
            Err(error) => lock(&self.sky).violation(format!("no plan after a success: {error}")),
        }
        lock(&self.sky).count("plans after a success");
    }

    /// The plan that somebody sees who looks.
    async fn look(&self, runner: &Arc<Runner>) -> Result<Option<Plan>, ApplyError> {
        let providers = self.providers(runner);
        let prepared = self.prepared(runner, &providers);
        let options = self.options(runner);
        let host = Machine { runner, bug: self.bug };
        let request = request(&prepared, &providers, &options, &host);
        let desk = Desk { store: self.store.of(runner, self.bug), runner: runner.clone() };
        self.plan_ahead(&*bugs::store(self.bug, desk), &request, &host).await
    }

    /// A plan of what is whole shows nothing. But what only one of two APIs shows, and what an answer did
    /// not show, is seen by the next refresh.
    fn is_empty(&self, plan: &Plan, struck: &BTreeMap<&'static str, u64>) {
        let mut sky = lock(&self.sky);
        let shows_all = sky.room == Room::Port && !struck.contains_key("bare");
        // That a name is not watched any more changes nothing that anybody sees.
        let is_news = |record: &Record| match record {
            Record::Unwatched { .. } => false,
            Record::Seen { .. } => shows_all,
            _ => true,
        };
        let drifted = shows_all && !plan.drift.is_empty();
        let outputs = plan.outputs.values().any(|output| output.action != Action::NoOp);
        if !plan.steps.is_empty() || outputs || drifted || plan.seen.iter().any(is_news) {
            let steps = engine::plan::text::steps(plan);
            sky.violation(format!("the plan after a success is not empty: {steps}"));
        }
    }

    /// A run in which nothing goes wrong; whatever does is a violation.
    async fn calm(&self, number: usize, spec: &Spec, destroy: bool) -> Option<Arc<Plan>> {
        let end = self.undisturbed(number, spec, destroy).await;
        self.well(end)
    }

    /// A run in which nothing goes wrong.
    async fn undisturbed(&self, number: usize, spec: &Spec, destroy: bool) -> End {
        let before = Instant::now();
        let mut runner = Runner::new(number, &self.sky, spec, number as u64);
        runner.destroy = destroy;
        runner.schema = bugs::schema(self.bug, runner.room);
        let runner = Arc::new(runner);
        let end = self.live(&runner, CALM).await;
        if before.elapsed() > Duration::from_mins(5) {
            let took = format!("a calm run took {:?}", before.elapsed());
            lock(&self.sky).violation(took);
        }
        end
    }

    /// Nothing may fail where nothing goes wrong.
    fn well(&self, end: End) -> Option<Arc<Plan>> {
        let mut sky = lock(&self.sky);
        match end {
            End::Done(report, plan) => {
                if let Some(failure) = report.failures.first() {
                    let (address, message) = (&failure.address, &failure.message);
                    sky.violation(format!("a calm run failed: {address}: {message}"));
                }
                if let Some(address) = report.in_doubt.first() {
                    sky.violation(format!("a calm run left {address} in doubt"));
                }
                Some(plan)
            }
            End::Refused(why) => {
                sky.violation(format!("a calm run was refused: {why}"));
                None
            }
            End::Failed(error) => {
                sky.violation(format!("a calm run ended: {error}"));
                None
            }
            End::Crashed => None,
        }
    }
}

fn request<'a>(
    (config, graph): &'a (Config, Graph),
    providers: &'a Providers,
    options: &'a Options,
    host: &Machine<'_>,
) -> Request<'a> {
    let now_ms = host.now_ms();
    let (refresh, running) = (true, false);
    Request { config, graph, providers, options, refresh, running, now_ms, workers: &InTurn }
}

fn prepare(spec: &Spec, room: Room, providers: &Providers) -> (Config, Graph) {
    let text = spec.text(room);
    let mut sources = engine::diagnostics::Sources::default();
    let file = sources.add("plumb.toml", text.as_str());
    let (document, mut diagnostics) = parse(&sources, &[file]);
    let input = ResolveInput {
        variables: spec.given(room),
        providers: planning::schemas(providers),
        files: BTreeMap::new(),
    };
    let (config, found) = resolve(&document, &input);
    diagnostics.extend(found);
    let (graph, found) = Graph::new(&config);
    diagnostics.extend(found);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}\n{text}");
    (config, graph)
}
