//! A world without an API: each plan counts as successful, and its objects become live as planned.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use engine::address::{Address, Block, Name};
use engine::config::Config;
use engine::config::parse::parse;
use engine::config::resolve::{Given, ResolveInput, resolve};
use engine::diagnostics::{Diagnostics, Sources};
use engine::digest::SealKey;
use engine::expression::evaluate::{Scope, evaluate};
use engine::expression::{Expr, Root};
use engine::graph::Graph;
use engine::journal::Record;
use engine::plan::input::{Mode, Observations, Observed, Options, PlanInput};
use engine::plan::{Action, Change, Moves, Plan, plan, renamed_options, text};
use engine::schema::{Operation, ProviderSchema, Rule, SeenIn};
use engine::state::{Entry, Object, ObjectId, Progress, Snapshot};
use engine::stored::{Stored, seal_attributes};
use engine::value::{Attributes, Datum, Value};

use crate::shapes;

/// A state, and the live objects.
pub(crate) struct World {
    pub(crate) snapshot: Snapshot,
    pub(crate) observations: Observations,
    pub(crate) variables: BTreeMap<String, String>,
    providers: BTreeMap<Name, Arc<ProviderSchema>>,
    /// The live attributes of each object, with clear secrets.
    live: BTreeMap<Address, Attributes>,
    made: usize,
}

/// A plan as text, with a flag that is true if it may be applied.
struct Planned {
    plan: Plan,
    config: Config,
    diagnostics: Diagnostics,
    sources: Sources,
}

impl World {
    /// Returns a world without state and objects.
    pub(crate) fn new() -> Self {
        let schema = Arc::new(shapes::schema());
        Self {
            snapshot: Snapshot::new("lineage".to_owned(), SealKey::from_random([7; 32])),
            observations: Observations::default(),
            variables: BTreeMap::new(),
            providers: BTreeMap::from([("cloud".into(), schema)]),
            live: BTreeMap::new(),
            made: 0,
        }
    }

    /// Changes an attribute of a type so that no answer shows it and no state knows it.
    pub(crate) fn hide(&mut self, ty: &str, attribute: &str) {
        let cloud = Arc::make_mut(self.providers.get_mut("cloud").unwrap());
        let schema = Arc::make_mut(cloud.types.get_mut(ty).unwrap());
        schema.attributes.get_mut(attribute).unwrap().seen_in = SeenIn::Never;
        for observed in self.observations.objects.values_mut() {
            let Observed::Live(attributes) = observed else { continue };
            attributes.remove(attribute);
        }
        for entry in self.snapshot.entries.values_mut() {
            let object = entry.current.as_mut().unwrap();
            let mut attributes = object.attributes.value().unwrap().as_map().unwrap().clone();
            attributes.remove(attribute);
            object.attributes = Stored::of_sealed(&Value::map(attributes));
        }
    }

    /// Returns the value of an attribute that a plan writes into the state without a call, as text.
    pub(crate) fn seen(&self, spec: &str, attribute: &str) -> String {
        let Planned { plan, .. } = self.plan(spec, &Options::default());
        let seen = plan.seen.iter().filter_map(|record| match record {
            Record::Seen { attributes, .. } => {
                let attributes = attributes.value().unwrap();
                let value = attributes.as_map()?.get(attribute)?.clone();
                Some(Expr::literal(value).to_string())
            }
            _ => None,
        });
        seen.collect::<Vec<_>>().join("\n")
    }

    /// Returns the world after a spec was applied.
    pub(crate) fn of(spec: &str) -> Self {
        let mut world = Self::new();
        world.apply(spec);
        world
    }

    /// Adds a rule to a type.
    pub(crate) fn rule(&mut self, ty: &str, rule: Rule) {
        let provider = Arc::make_mut(self.providers.get_mut("cloud").unwrap());
        Arc::make_mut(provider.types.get_mut(ty).unwrap()).rules.push(rule);
    }

    /// Changes an attribute of a live object outside Plumb.
    pub(crate) fn change(&mut self, address: &str, attribute: &str, value: Value) {
        let address: Address = address.parse().unwrap();
        let id = self.snapshot.entries[&address].current.as_ref().unwrap().id.clone();
        let Some(Observed::Live(seen)) = self.observations.objects.get_mut(&(address, id)) else {
            panic!("the object is live")
        };
        seen.insert(attribute.into(), value);
    }

    /// Removes a live object outside Plumb.
    pub(crate) fn remove(&mut self, address: &str) {
        let address: Address = address.parse().unwrap();
        let id = self.snapshot.entries[&address].current.as_ref().unwrap().id.clone();
        self.observations.objects.insert((address, id), Observed::Gone);
    }

    /// Makes an object of a type outside Plumb.
    pub(crate) fn stranger(&mut self, ty: &str, name: &str, id: &str) {
        let key = ("cloud".into(), ty.into(), name.into());
        self.observations.strangers.entry(key).or_default().push(ObjectId(id.into()));
    }

    /// Lists an object of a type for look-ups, with its id as its name unless a name is given.
    pub(crate) fn list(&mut self, ty: &str, id: &str, attributes: &[(&str, Value)]) {
        let listed = self.observations.listed.entry(("cloud".into(), ty.into())).or_default();
        let own = [("id", Value::string(id)), ("name", Value::string(id))];
        let all = own.iter().chain(attributes);
        let all = all.map(|(name, value)| (Name::from(*name), value.clone())).collect();
        listed.insert(ObjectId(id.into()), all);
    }

    /// Returns the attributes that the plan of a spec gives to an object, as text.
    pub(crate) fn planned(&self, spec: &str, address: &str) -> String {
        let Planned { plan, diagnostics, sources, .. } = self.plan(spec, &Options::default());
        assert!(!diagnostics.has_errors(), "{}", show(&plan, &diagnostics, &sources));
        let change = plan.change(&address.parse().unwrap()).unwrap();
        let after = change.after.as_deref().unwrap().iter();
        let known = after.filter(|(_, value)| value.is_known() && !value.is_null());
        let known = known.map(|(name, value)| format!("{name} = {}", Expr::literal(value.clone())));
        let depends = change.dependencies.iter().map(|address| format!("after {address}"));
        known.chain(depends).collect::<Vec<_>>().join(", ")
    }

    /// Returns the secrets that the plan of a spec would send and no run has.
    pub(crate) fn lacks(&self, spec: &str) -> String {
        let Planned { plan, .. } = self.plan(spec, &Options::default());
        let lacks = plan.lacks.iter().map(|lack| lack.diagnostic().summary);
        lacks.collect::<Vec<_>>().join("\n")
    }

    /// Returns the expressions by which an apply computes the secrets of an object.
    pub(crate) fn secrets(&self, spec: &str, address: &str) -> String {
        let Planned { plan, .. } = self.plan(spec, &Options::default());
        let change = plan.change(&address.parse().unwrap()).unwrap();
        let secrets = change.secrets.iter().map(|(name, expr)| format!("{name} = {expr}"));
        secrets.collect::<Vec<_>>().join("\n")
    }

    /// Returns the labels and advice of the diagnostics about a spec.
    pub(crate) fn said(&self, spec: &str) -> String {
        let Planned { diagnostics, sources, .. } = self.plan(spec, &Options::default());
        let line = |diagnostic: &engine::diagnostics::Diagnostic| {
            let words = diagnostic.span.and_then(|span| sources.text(span)).unwrap_or_default();
            let (label, help) = (diagnostic.label.as_deref(), diagnostic.help.as_deref());
            let parts = [label, help].map(Option::unwrap_or_default).join(" | ");
            format!("{} [{words}] {parts}", diagnostic.summary)
        };
        diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the plan of a spec, as text.
    pub(crate) fn plan_text(&self, spec: &str) -> String {
        self.plan_text_with(spec, &Options::default())
    }

    pub(crate) fn plan_text_with(&self, spec: &str, options: &Options) -> String {
        let Planned { plan, diagnostics, sources, .. } = self.plan(spec, options);
        show(&plan, &diagnostics, &sources)
    }

    /// Plans a spec, and takes the plan as successful.
    pub(crate) fn apply(&mut self, spec: &str) {
        let Planned { plan, config, diagnostics, sources } = self.plan(spec, &Options::default());
        assert!(!diagnostics.has_errors(), "{}", show(&plan, &diagnostics, &sources));
        for record in &plan.seen {
            self.snapshot.fold(record).unwrap();
        }
        let mut done = vec![false; plan.changes.len()];
        for step in &plan.steps {
            let is_first = !std::mem::replace(&mut done[step.change], true);
            let change = &plan.changes[step.change];
            match step.operation {
                Operation::Delete | Operation::Forget if change.after.is_none() => {
                    self.snapshot.entries.remove(&change.address);
                    self.live.remove(&change.address);
                }
                Operation::Create | Operation::Update if is_first || makes(change) => {
                    self.make(change, &config);
                }
                _ => {}
            }
        }
        self.look();
    }

    fn plan(&self, spec: &str, options: &Options) -> Planned {
        let mut sources = Sources::default();
        let file = sources.add("plumb.toml", spec);
        let (document, mut diagnostics) = parse(&sources, &[file]);
        let given =
            |(name, text): (&String, &String)| (name.as_str().into(), Given::Text(text.clone()));
        let input = ResolveInput {
            variables: self.variables.iter().map(given).collect(),
            providers: self.providers.clone(),
            files: BTreeMap::new(),
            ..ResolveInput::default()
        };
        let (config, found) = resolve(&document, &input);
        diagnostics.extend(found);
        let (graph, found) = Graph::new(&config);
        diagnostics.extend(found);
        let moves = Moves::new(&config, &self.snapshot);
        let snapshot = &*moves.renamed(&self.snapshot);
        let now = |(address, id): &(Address, ObjectId)| {
            let mut addresses = snapshot.entries.keys();
            let now = addresses.find(|now| moves.origin(now) == Some(address));
            (now.unwrap_or(address).clone(), id.clone())
        };
        let mut observations = self.observations.clone();
        let objects = std::mem::take(&mut observations.objects).into_iter();
        observations.objects = objects.map(|(key, seen)| (now(&key), seen)).collect();
        let options = &*renamed_options(options, &moves, &config);
        let (plan, found) = plan(&PlanInput {
            config: &config,
            graph: &graph,
            providers: &self.providers,
            accounts: &BTreeMap::new(),
            snapshot,
            moves: &moves,
            observations: &observations,
            options,
        });
        diagnostics.extend(found);
        Planned { plan, config, diagnostics, sources }
    }

    /// Makes or changes the object of a change, as planned.
    fn make(&mut self, change: &Change, config: &Config) {
        let address = &change.address;
        let schema = self.providers["cloud"].types[&address.block.ty].clone();
        let entry = self.snapshot.entries.get(address);
        let kept = entry.and_then(|entry| entry.current.as_ref()).filter(|_| !makes(change));
        let kept = kept.map(|object| object.id.clone());
        let id = kept.unwrap_or_else(|| {
            self.made += 1;
            ObjectId(format!("{}-{}", address.block.ty, self.made).into())
        });
        let mut attributes = Attributes::clone(change.after.as_deref().unwrap());
        for (name, residual) in &change.secrets {
            attributes.insert(
                name.clone(),
                Value::unknown(schema.attributes[name].ty.clone(), residual.clone()),
            );
        }
        attributes.insert("id".into(), Value::String(id.0.clone()));
        let own = attributes.clone();
        self.live.insert(address.clone(), own);
        for (name, value) in &attributes {
            let Value::Unknown(unknown) = value else { continue };
            let value = self.fill(&unknown.residual, config);
            let value = value.convert(&schema.attributes[name].ty).unwrap();
            self.live.get_mut(address).unwrap().insert(name.clone(), value);
        }
        let mut sensitive = schema.sensitive();
        sensitive.extend_below(&engine::value::Path::root(), &change.sensitive);
        let sealed = seal_attributes(&self.live[address], &sensitive, &self.snapshot.seal_key);
        let object = Object {
            id,
            progress: Progress::Ready,
            attributes: Stored::of_sealed(&Value::map(sealed)),
            managed: change.managed.clone(),
            sensitive: change.sensitive.clone(),
            delete_sent_ms: None,
            made_with: BTreeMap::new(),
            input_fingerprints: BTreeMap::new(),
        };
        let entry = Entry {
            provider: change.provider.clone(),
            current: Some(object),
            deposed: Vec::new(),
            dependencies: change.dependencies.clone(),
        };
        self.snapshot.entries.insert(address.clone(), entry);
    }

    /// Returns the value of a residual. An attribute that only the API knows is null.
    fn fill(&self, residual: &Expr, config: &Config) -> Value {
        let value = evaluate(residual, &Filled { world: self, config }).unwrap().value;
        if value.is_known() { value } else { Value::Null }
    }

    /// Returns the observations of everything that is live.
    fn look(&mut self) {
        let seen = |(address, entry): (&Address, &Entry)| {
            let object = entry.current.as_ref()?;
            let value = object.attributes.value().unwrap();
            let attributes = value.as_map().unwrap().clone();
            Some(((address.clone(), object.id.clone()), Observed::Live(attributes)))
        };
        self.observations.objects = self.snapshot.entries.iter().filter_map(seen).collect();
    }
}

fn makes(change: &Change) -> bool {
    matches!(change.action, Action::Create | Action::Replace)
}

/// The scope of residuals: the objects that are live now, and the variables.
struct Filled<'a> {
    world: &'a World,
    config: &'a Config,
}

impl Scope for Filled<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) => Ok(self.config.variables[name].value.clone()),
            _ => Err("a residual has no such root".to_owned()),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        let live = &self.world.live;
        let address = block.instance(key.map(Name::from));
        if let Some(object) = live.get(&address) {
            return Ok(Datum::plain(Value::map(object.clone())));
        }
        let instances = live.iter().filter(|(address, _)| address.block == *block);
        let object = |(address, object): (&Address, &Attributes)| {
            Some((address.key.clone()?, Value::map(object.clone())))
        };
        Ok(Datum::plain(Value::map(instances.filter_map(object).collect())))
    }
}

/// Returns a plan as lines: changes that are not no-ops, steps, diagnostics.
fn show(plan: &Plan, diagnostics: &Diagnostics, sources: &Sources) -> String {
    let mut out = String::new();
    for change in plan.changes.iter().filter(|change| change.action != Action::NoOp) {
        let causes: Vec<&str> = change.causes.iter().map(|cause| &*cause.attribute).collect();
        let mark = if change.deposed { " (deposed)" } else { "" };
        let (action, address) = (change.action.word(), &change.address);
        let from = change.moved_from.as_ref().map(|from| format!(" from {from}"));
        let from = from.unwrap_or_default();
        writeln!(out, "{action} {address}{mark}{from} [{}]", causes.join(" ")).unwrap();
    }
    out.push_str(&text::steps(plan));
    for diagnostic in diagnostics.iter() {
        let line = diagnostic.span.and_then(|span| sources.position(span)).map_or(0, |p| p.line);
        writeln!(out, "{}:{line}: {}", diagnostic.severity.word(), diagnostic.summary).unwrap();
    }
    out
}

/// Compares the plan of a spec with the expected lines.
#[track_caller]
pub(crate) fn check(world: &World, spec: &str, expected: &str) {
    let text = world.plan_text(spec);
    assert_eq!(text.trim(), expected.trim(), "\n{text}");
}

/// Compares the plan of a destroy with the expected lines.
#[track_caller]
pub(crate) fn check_destroy(world: &World, spec: &str, expected: &str) {
    let options = Options { mode: Mode::Destroy, ..Options::default() };
    let text = world.plan_text_with(spec, &options);
    assert_eq!(text.trim(), expected.trim(), "\n{text}");
}
