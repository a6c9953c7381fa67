//! One run with the steps of `plumb apply`: recovery, a new plan or a saved one, execution.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apply::doubt::recover::recover;
use apply::planning::{self, Request};
use apply::run::{Execution, execute_anyway};
use apply::saved_plan::make_again;
use apply::session::{Session, fold};
use apply::{ApplyError, Clock, Host, Moment, Providers};
use engine::address::Address;
use engine::config::Config;
use engine::config::parse::parse;
use engine::config::resolve::{ResolveInput, resolve};
use engine::diagnostics::Diagnostics;
use engine::graph::Graph;
use engine::plan::input::{Mode, Options, Target};
use engine::plan::{Action, Plan};
use engine::state::{ObjectId, Snapshot};
use engine::stored::KnownSecrets;
use engine::work::InTurn;
use state::{Holder, Store};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::api_variant::Harness;
use crate::bugs::{self, Bug};
use crate::cloud::lock;
use crate::port::PortProvider;
use crate::report::Ended;
use crate::runner::Runner;
use crate::schedule::{Narrow, Spec};
use crate::simulation::{End, Simulation};
use crate::store_spy::StoreSpy;
use crate::wire;

/// The time at which every schedule begins, in milliseconds since 1970.
pub(crate) const EPOCH_MS: u64 = 1_790_000_000_000;

/// A spec that was parsed and resolved, and its graph.
pub(crate) type Prepared = Arc<(Config, Graph)>;

/// A session that holds the lock, and the plan for it.
struct Opened {
    session: Session,
    plan: Plan,
    /// The moment right before the run looked at live objects for the plan.
    looked_at: Moment,
}

/// The clock and the random numbers of a runner.
pub(crate) struct Machine<'a> {
    pub(crate) runner: &'a Runner,
    pub(crate) bug: Option<Bug>,
}

impl Machine<'_> {
    /// Returns the holder that the lock names while the runner has it.
    fn holder(&self) -> Holder {
        Holder { run: format!("r{}", self.runner.number), ..Holder::default() }
    }
}

impl Host for Machine<'_> {
    fn now_ms(&self) -> u64 {
        EPOCH_MS + lock(&self.runner.cloud).now_ms()
    }

    fn clock(&self) -> Clock {
        let start = lock(&self.runner.cloud).start;
        Clock::new(move || u64::try_from(start.elapsed().as_millis()).unwrap())
    }

    fn random(&self) -> [u8; 32] {
        if self.bug == Some(Bug::SameNonce) { [7; 32] } else { self.runner.random() }
    }
}

/// The settings of a run.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) parallelism: usize,
    pub(crate) wait: Duration,
    pub(crate) stop_after_ms: Option<u64>,
    /// The time in milliseconds between saving the plan and applying it; None if the run saves no plan.
    pub(crate) saved_for_ms: Option<u64>,
}

impl Simulation {
    /// Performs a run until it ends or its process dies.
    pub(crate) async fn live(&self, runner: &Arc<Runner>, asked: Asked) -> End {
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
        let mut cloud = lock(&self.cloud);
        cloud.note(format_args!("r{} {words}", runner.number));
        if let End::Failed(ApplyError::Journal(error)) = &end {
            cloud.violation(format!("the journal contradicts itself: {error}"));
        }
        if let End::Failed(ApplyError::Vanished { .. }) = &end {
            cloud.count("vanished");
        }
        for (class, count) in &*runner.struck.lock().unwrap() {
            *cloud.counts.entry(class).or_default() += count;
        }
        drop(cloud);
        runner.out.notify_one();
        end
    }

    pub(crate) fn providers(&self, runner: &Arc<Runner>) -> Providers {
        let (name, provider): (_, Arc<dyn provider_port::Provider>) = match runner.harness {
            Harness::Port => ("cloud", Arc::new(PortProvider(runner.clone()))),
            Harness::Http => ("serverless", Arc::new(wire::provider(runner, self.bug))),
        };
        Providers::from([(name.into(), bugs::provider(self.bug, provider))])
    }

    async fn run(&self, runner: &Arc<Runner>, asked: Asked) -> Result<End, ApplyError> {
        let providers = self.providers(runner);
        let prepared = self.prepared(runner, &providers);
        let host = Machine { runner, bug: self.bug };
        let spy = StoreSpy { store: self.store.of(runner, self.bug), runner: runner.clone() };
        let store = bugs::store(self.bug, spy);
        let options = self.options(runner);
        let request = request(&prepared, &providers, &options, &host);
        for (address, id) in &runner.commands {
            self.import(&*store, &request, &host, asked, (address, id)).await?;
        }
        let opened = self.open(&*store, &request, &host, asked).await?;
        let Opened { mut session, mut plan, looked_at } = match opened {
            Ok(opened) => opened,
            Err(why) => return Ok(End::Refused(why)),
        };
        self.was_asked(session.snapshot(), &plan);
        bugs::plan(self.bug, &mut plan, session.snapshot(), host.now_ms());
        let plan = Arc::new(plan);
        *runner.plan.lock().unwrap() = Some(plan.clone());
        let stop = CancellationToken::new();
        let variables = runner.spec.variables(runner.harness);
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
            looked_at: Some(looked_at),
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

    /// Returns the planning options of a run.
    pub(crate) fn options(&self, runner: &Runner) -> Options {
        let mode = if runner.destroy { Mode::Destroy } else { Mode::Apply };
        let replace = runner.asked.iter().map(|address| address.parse().unwrap()).collect();
        let mut options = Options { mode, replace, ..Options::default() };
        if let Some((narrow, address)) = &runner.narrow {
            let target = Target::Instance(address.parse().unwrap());
            match narrow {
                Narrow::Target => options.targets.push(target),
                Narrow::Exclude => options.excludes.push(target),
            }
            lock(&self.cloud).count("narrowed runs");
        }
        options
    }

    /// Takes an object over as `plumb import` does.
    async fn import(
        &self,
        store: &dyn Store,
        request: &Request<'_>,
        host: &Machine<'_>,
        asked: Asked,
        (address, id): (&str, &ObjectId),
    ) -> Result<(), ApplyError> {
        let address = address.parse().unwrap();
        let mut session = Session::open(store, &host.holder(), asked.wait, host, None).await?;
        self.recover(&mut session, (request.providers, &request.secrets()), host).await?;
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
        (providers, secrets): (&Providers, &KnownSecrets),
        host: &Machine<'_>,
    ) -> Result<(), ApplyError> {
        if self.bug == Some(Bug::NoRecovery) {
            return Ok(());
        }
        for record in recover(session.snapshot(), providers, secrets, host, &|_| {}).await {
            session.record(record)?;
        }
        session.flush().await
    }

    /// Opens the state under its lock, and returns the plan to execute: made now, or saved before and checked
    /// again. The inner error says why there is no such plan.
    async fn open(
        &self,
        store: &dyn Store,
        request: &Request<'_>,
        host: &Machine<'_>,
        asked: Asked,
    ) -> Result<Result<Opened, String>, ApplyError> {
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
        let mut session = Session::open(store, &host.holder(), asked.wait, host, origin).await?;
        self.recover(&mut session, (providers, &request.secrets()), host).await?;
        let looked_at = host.clock().moment();
        let plan = if let Some(plan) = saved {
            if self.bug == Some(Bug::StalePlan) {
                plan
            } else {
                match self.make_again(&plan, session.snapshot(), request).await {
                    Ok(plan) => plan,
                    Err(error) => {
                        session.close().await?;
                        lock(&self.cloud).count("stale plans");
                        return Ok(Err(error.to_string()));
                    }
                }
            }
        } else {
            let (plan, diagnostics) = self.make(session.snapshot(), request).await?;
            if diagnostics.has_errors() {
                let said = diagnostics.iter().map(|d| d.summary.clone()).collect::<Vec<_>>();
                session.close().await?;
                return Ok(Err(said.join("; ")));
            }
            plan
        };
        Ok(Ok(Opened { session, plan, looked_at }))
    }

    /// Makes a saved plan again. Returns the new plan if it does the same as the saved one, otherwise an
    /// error.
    async fn make_again(
        &self,
        planned: &Plan,
        snapshot: &Snapshot,
        request: &Request<'_>,
    ) -> Result<Plan, ApplyError> {
        let (plan, _) = if self.bug == Some(Bug::NothingIsCompared) {
            planning::make(snapshot, request).await?
        } else {
            make_again(planned, snapshot, request).await?
        };
        let mut cloud = lock(&self.cloud);
        cloud.count("saved plans");
        if !acting(&plan).eq(acting(planned)) {
            cloud.violation("a saved plan did what nobody has agreed to".to_owned());
        }
        Ok(plan)
    }

    /// Makes a plan as planning does: returns an error if a person has to be asked first. The bug
    /// `NobodyIsAsked` makes the plan anyway.
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

    pub(crate) fn prepared(&self, runner: &Runner, providers: &Providers) -> Prepared {
        let spec = &runner.spec;
        let mut prepared = self.prepared.lock().unwrap();
        if let Some((_, prepared)) = prepared.iter().find(|(own, _)| own == spec) {
            return prepared.clone();
        }
        let new = Arc::new(prepare(spec, runner.harness, providers));
        prepared.push((spec.clone(), new.clone()));
        new
    }

    /// Makes a plan as `plan --out` does: without the lock, from what the store holds right now. Returns None
    /// if the plan has errors.
    pub(crate) async fn plan_ahead(
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
}

/// Returns the changes of a plan that are more than a no-op, each with its address.
fn acting(plan: &Plan) -> impl Iterator<Item = (&Address, bool, Action)> {
    let changes = plan.changes.iter().filter(|change| change.action != Action::NoOp);
    changes.map(|change| (&change.address, change.deposed, change.action))
}

pub(crate) fn request<'a>(
    (config, graph): &'a (Config, Graph),
    providers: &'a Providers,
    options: &'a Options,
    host: &Machine<'_>,
) -> Request<'a> {
    let now_ms = host.now_ms();
    let (refresh, running) = (true, false);
    Request {
        config,
        graph,
        providers,
        options,
        refresh,
        running,
        now_ms,
        workers: &InTurn,
        reader: &apply::NoData,
    }
}

fn prepare(spec: &Spec, harness: Harness, providers: &Providers) -> (Config, Graph) {
    let text = spec.text(harness);
    let mut sources = engine::diagnostics::Sources::default();
    let file = sources.add("plumb.toml", text.as_str());
    let (document, mut diagnostics) = parse(&sources, &[file]);
    let input = ResolveInput {
        variables: spec.given(harness),
        providers: planning::schemas(providers),
        files: BTreeMap::new(),
        ..ResolveInput::default()
    };
    let (config, found) = resolve(&document, &input);
    diagnostics.extend(found);
    let (graph, found) = Graph::new(&config);
    diagnostics.extend(found);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}\n{text}");
    (config, graph)
}
