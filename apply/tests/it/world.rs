//! A world of a cloud, a store and a clock, with the commands of a user: plan, apply and destroy.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apply::doubt::recover::recover;
use apply::planning::{self, Request};
use apply::run::{Execution, Report, execute, execute_anyway};
use apply::saved_plan::make_again;
use apply::session::{Session, fold};
use apply::{ApplyError, Clock, Host, Providers};
use engine::config::Config;
use engine::config::parse::parse;
use engine::config::resolve::{Given, ResolveInput, resolve};
use engine::diagnostics::{Diagnostics, Sources};
use engine::event::Event;
use engine::graph::Graph;
use engine::plan::input::{Mode, Options};
use engine::plan::{Plan, file, text};
use engine::state::Snapshot;
use engine::stored::KnownSecrets;
use engine::work::{InTurn, Workers};
use state::memory::MemoryStore;
use state::{Holder, Store};
use tokio_util::sync::CancellationToken;

use crate::cloud::Cloud;

/// A spec with one disk.
pub(crate) const DISK: &str = "[resource.disk.d]\nname = \"d\"\nsize = 10\nzone = \"eu\"\n";

/// A spec with a unit that uses an image. A change of the image's `kind` replaces the image.
pub(crate) const SERVED: &str = r#"
[resource.image.base]
name = "base"
kind = "thin"

[resource.unit.chat]
name = "chat"
image_id = "${image.base.id}"
"#;

/// A host whose clock stands still, except for the time that the machine sleeps, and whose random bytes
/// count up from 0.
#[derive(Default)]
pub(crate) struct TestHost {
    drawn: AtomicU64,
    /// The time that the machine has slept, in milliseconds.
    pub(crate) slept: Arc<AtomicU64>,
}

impl Host for TestHost {
    fn now_ms(&self) -> u64 {
        1_000 + self.slept.load(Ordering::Relaxed)
    }

    fn clock(&self) -> Clock {
        let slept = self.slept.clone();
        Clock::new(move || slept.load(Ordering::Relaxed))
    }

    fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.drawn.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        bytes
    }
}

pub(crate) struct World {
    pub(crate) cloud: Cloud,
    /// Another account of the same API, if there is one.
    pub(crate) second: Option<Cloud>,
    pub(crate) store: MemoryStore,
    pub(crate) host: TestHost,
    pub(crate) variables: BTreeMap<String, String>,
    /// Cancelled when the user stops a run.
    pub(crate) stop: CancellationToken,
    /// True if plans and runs refresh the live objects.
    pub(crate) looks: bool,
    /// The workers that evaluate the instances of a large spec.
    pub(crate) workers: &'static dyn Workers,
    /// The events of the last run. `report` has its report.
    pub(crate) told: Arc<Mutex<Vec<Event>>>,
    pub(crate) report: Mutex<Report>,
    /// The plans that were made, each with its spec and its options.
    pub(crate) planned: Mutex<Vec<(Plan, String, Options)>>,
}

/// A resolved spec.
pub(crate) struct Prepared {
    pub(crate) config: Config,
    pub(crate) graph: Graph,
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Diagnostics,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            cloud: Cloud::new(),
            second: None,
            store: MemoryStore::new(),
            host: TestHost::default(),
            variables: BTreeMap::new(),
            stop: CancellationToken::new(),
            looks: true,
            workers: &InTurn,
            told: Arc::default(),
            report: Mutex::default(),
            planned: Mutex::default(),
        }
    }

    /// Returns a world in which a spec was applied, and whose cloud counts the ids of each type from one.
    pub(crate) async fn counting(spec: &str) -> Self {
        let world = Self::new();
        world.cloud.shared.lock().unwrap().counts_by_type = true;
        world.apply(spec).await.unwrap();
        world
    }

    /// Returns the state, with the journal folded in.
    pub(crate) async fn state(&self) -> Snapshot {
        fold(self.store.load().await.unwrap(), &self.host).unwrap().snapshot
    }

    pub(crate) fn providers(&self) -> Providers {
        let cloud: Arc<dyn provider_port::Provider> = Arc::new(self.cloud.clone());
        let builtin: Arc<dyn provider_port::Provider> = Arc::new(provider_builtin::Builtin::new());
        let mut providers = Providers::from([("cloud".into(), cloud), ("builtin".into(), builtin)]);
        if let Some(second) = &self.second {
            providers.insert("second".into(), Arc::new(second.clone()));
        }
        providers
    }

    /// Returns the providers with `cloud` in the place of the usual cloud.
    pub(crate) fn providers_with(&self, cloud: Arc<dyn provider_port::Provider>) -> Providers {
        let mut providers = self.providers();
        providers.insert("cloud".into(), cloud);
        providers
    }

    pub(crate) fn prepare(&self, spec: &str) -> Prepared {
        let mut sources = Sources::default();
        let file = sources.add("plumb.toml", spec);
        let (document, mut diagnostics) = parse(&sources, &[file]);
        let input = ResolveInput {
            variables: self
                .variables
                .iter()
                .map(|(name, text)| (name.as_str().into(), Given::Text(text.clone())))
                .collect(),
            providers: planning::schemas(&self.providers()),
            files: BTreeMap::new(),
            ..ResolveInput::default()
        };
        let (config, found) = resolve(&document, &input);
        diagnostics.extend(found);
        let (graph, found) = Graph::new(&config);
        diagnostics.extend(found);
        Prepared { config, graph, sources, diagnostics }
    }

    /// Plans as `plumb plan` does.
    pub(crate) async fn plan_with(
        &self,
        spec: &str,
        options: &Options,
    ) -> (Plan, Diagnostics, Sources) {
        self.plan_through(&self.providers(), spec, options).await
    }

    /// Plans with the given providers.
    pub(crate) async fn plan_through(
        &self,
        providers: &Providers,
        spec: &str,
        options: &Options,
    ) -> (Plan, Diagnostics, Sources) {
        let prepared = self.prepare(spec);
        let loaded = self.store.load().await.unwrap();
        let mut snapshot = fold(loaded, &self.host).unwrap().snapshot;
        let request = Request {
            reader: &apply::NoData,
            config: &prepared.config,
            graph: &prepared.graph,
            providers,
            options,
            refresh: self.looks,
            running: false,
            now_ms: self.host.now_ms(),
            workers: self.workers,
        };
        planning::recover_in_memory(&mut snapshot, &request, &self.host, &|_| {}).await.unwrap();
        let (plan, found) = planning::make(&snapshot, &request).await.unwrap();
        let mut diagnostics = prepared.diagnostics;
        diagnostics.extend(found);
        let made = (plan.clone(), spec.to_owned(), options.clone());
        self.planned.lock().unwrap().push(made);
        (plan, diagnostics, prepared.sources)
    }

    pub(crate) async fn plan(&self, spec: &str) -> (Plan, Diagnostics, Sources) {
        self.plan_with(spec, &Options::default()).await
    }

    /// Returns the plan as text: changes that are not no-ops, steps, diagnostics.
    pub(crate) async fn plan_text(&self, spec: &str) -> String {
        let (plan, diagnostics, sources) = self.plan(spec).await;
        show(&plan, &diagnostics, &sources)
    }

    /// Applies as `plumb apply --yes` does.
    pub(crate) async fn apply(&self, spec: &str) -> Result<Report, ApplyError> {
        self.apply_with(spec, &Options::default()).await
    }

    /// Applies a plan that this world made, as `plumb apply FILE` does.
    pub(crate) async fn apply_saved(&self, plan: &Plan) -> Result<(), ApplyError> {
        let (_, spec, options) = {
            let planned = self.planned.lock().unwrap();
            planned.iter().rev().find(|(made, ..)| made == plan).unwrap().clone()
        };
        let plan = file::read(&as_file(plan)).unwrap().plan;
        let prepared = self.prepare(&spec);
        let (providers, holder) = (self.providers(), holder());
        let first = plan.base.first_key.clone().map(|key| (plan.base.lineage.clone(), key));
        let opened = Session::open(&self.store, &holder, Duration::ZERO, &self.host, first);
        let mut session = opened.await?;
        let request = Request {
            reader: &apply::NoData,
            config: &prepared.config,
            graph: &prepared.graph,
            providers: &providers,
            options: &options,
            refresh: true,
            running: false,
            now_ms: self.host.now_ms(),
            workers: self.workers,
        };
        let secrets = request.secrets();
        for record in recover(session.snapshot(), &providers, &secrets, &self.host, &|_| {}).await {
            session.record(record)?;
        }
        session.flush().await?;
        let looked_at = Some(self.host.clock().moment());
        let (plan, _) = match make_again(&plan, session.snapshot(), &request).await {
            Ok(again) => again,
            Err(why) => {
                session.close().await?;
                return Err(why);
            }
        };
        let variables = prepared.config.variables.iter();
        let variables = variables.map(|(name, it)| (name.clone(), it.value.clone())).collect();
        let execution = Execution {
            plan: &plan,
            providers: &providers,
            host: &self.host,
            variables: &variables,
            parallelism: None,
            emit: Arc::new(|_| {}),
            stop: &self.stop,
            run: "run",
            looked_at,
        };
        execute(&mut session, &execution).await?;
        session.close().await
    }

    pub(crate) async fn destroy(&self, spec: &str) -> Result<Report, ApplyError> {
        let options = Options { mode: Mode::Destroy, ..Options::default() };
        self.apply_with(spec, &options).await
    }

    pub(crate) async fn apply_with(
        &self,
        spec: &str,
        options: &Options,
    ) -> Result<Report, ApplyError> {
        self.apply_on(&self.store, spec, options).await
    }

    /// Applies with the given store, such as one that fails.
    pub(crate) async fn apply_on(
        &self,
        store: &dyn Store,
        spec: &str,
        options: &Options,
    ) -> Result<Report, ApplyError> {
        self.apply_through(store, &self.providers(), spec, options).await
    }

    /// Applies with the given store and providers.
    pub(crate) async fn apply_through(
        &self,
        store: &dyn Store,
        providers: &Providers,
        spec: &str,
        options: &Options,
    ) -> Result<Report, ApplyError> {
        let prepared = self.prepare(spec);
        assert!(!prepared.diagnostics.has_errors(), "{:?}", prepared.diagnostics);
        let holder = holder();
        let mut session = Session::open(store, &holder, Duration::ZERO, &self.host, None).await?;
        let variables = prepared.config.variables.values().map(|variable| &variable.value);
        let secrets = KnownSecrets::of(variables);
        for record in recover(session.snapshot(), providers, &secrets, &self.host, &|_| {}).await {
            session.record(record)?;
        }
        session.flush().await?;
        let request = Request {
            reader: &apply::NoData,
            config: &prepared.config,
            graph: &prepared.graph,
            providers,
            options,
            refresh: self.looks,
            running: false,
            now_ms: self.host.now_ms(),
            workers: self.workers,
        };
        let looked_at = self.looks.then(|| self.host.clock().moment());
        let (plan, diagnostics) = planning::make(session.snapshot(), &request).await?;
        assert!(!diagnostics.has_errors(), "{}", show(&plan, &diagnostics, &prepared.sources));
        let variables = prepared
            .config
            .variables
            .iter()
            .map(|(name, variable)| (name.clone(), variable.value.clone()))
            .collect();
        let told = self.told.clone();
        told.lock().unwrap().clear();
        let execution = Execution {
            plan: &plan,
            providers,
            host: &self.host,
            variables: &variables,
            parallelism: None,
            emit: Arc::new(move |event| told.lock().unwrap().push(event)),
            stop: &self.stop,
            run: "run",
            looked_at,
        };
        let (report, failure) = execute_anyway(&mut session, &execution).await;
        self.report.lock().unwrap().clone_from(&report);
        if let Some(failure) = failure {
            return Err(failure);
        }
        session.close().await?;
        Ok(report)
    }
}

/// Returns the text of the file of a plan.
pub(crate) fn as_file(plan: &Plan) -> String {
    let (inputs, view) = (file::Inputs::default(), serde_json::Value::Null);
    file::write(&file::SavedPlan { inputs, plan: plan.clone(), view })
}

/// Applies once, and checks that the plan after it is empty.
pub(crate) async fn converges(world: &World, spec: &str) {
    world.apply(spec).await.unwrap();
    assert_eq!(world.plan_text(spec).await, "");
}

pub(crate) fn holder() -> Holder {
    Holder {
        run: "run".to_owned(),
        command: "apply".to_owned(),
        user: String::new(),
        host: String::new(),
        pid: 0,
        since_ms: 0,
    }
}

pub(crate) fn show(plan: &Plan, diagnostics: &Diagnostics, sources: &Sources) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for change in plan.changes.iter().filter(|change| change.action.word() != "no-op") {
        let causes: Vec<&str> = change.causes.iter().map(|cause| &*cause.attribute).collect();
        let mark = if change.deposed { " (deposed)" } else { "" };
        writeln!(out, "{} {}{mark} [{}]", change.action.word(), change.address, causes.join(" "))
            .unwrap();
    }
    out.push_str(&text::steps(plan));
    for diagnostic in diagnostics.iter() {
        let line = diagnostic.span.and_then(|span| sources.position(span)).map_or(0, |p| p.line);
        writeln!(out, "{}:{line}: {}", diagnostic.severity.word(), diagnostic.summary).unwrap();
    }
    out
}
