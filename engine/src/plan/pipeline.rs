//! Planning: walks the blocks in dependency order, decides each instance, then what is to go.
//!
//! One walk does both evaluating and deciding, because a decision feeds later evaluations: the id
//! of an object that is replaced is unknown to everything after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::digest::{Digest, Fingerprint};
use crate::journal::Record;
use crate::plan::check::{budget, kept, let_go, names};
use crate::plan::check::{removal_protection, renamed, unmanaged};
use crate::plan::decide::resume::Rest;
use crate::plan::decide::{Outcome, diff, import, triggers};
use crate::plan::decide::{outputs, removal};
use crate::plan::deciding::{Deciding, Reached};
use crate::plan::evaluate::desired;
use crate::plan::evaluate::desired::{Expanded, Instance};
use crate::plan::evaluate::scope::{LocalCache, Planned, SpecScope};
use crate::plan::facts::deferrals::Hold;
use crate::plan::facts::doubted_names::Doubted;
use crate::plan::facts::prior::{overlay, stored_attributes};
use crate::plan::facts::references;
use crate::plan::facts::selection;
use crate::plan::input::{Mode, Observed, PlanInput};
use crate::plan::secrets::idle;
use crate::plan::secrets::sources::Sources;
use crate::plan::secrets::turned;
use crate::plan::secrets::turned::Turned;
use crate::plan::{
    Action, Base, Change, Doubt, Drift, Lack, Plan, Use, decide, diagnostics, lint, news, others,
    schedule,
};
use crate::schema::{Phase, TypeSchema};
use crate::state::{Nonce, Object, ObjectId};
use crate::value::Attributes;
use crate::work::{self, InTurn, Workers};

/// Makes the plan. With errors among the diagnostics it must not be applied.
pub fn plan(input: &PlanInput<'_>) -> (Plan, Diagnostics) {
    plan_with(input, &InTurn)
}

/// The same with someone to look at the instances.
pub fn plan_with(input: &PlanInput<'_>, workers: &dyn Workers) -> (Plan, Diagnostics) {
    let mut waiting = BTreeMap::new();
    loop {
        let mut planner = Planner::new(input, waiting);
        planner.report_doubts();
        planner.selection = selection::select(input, &mut planner.diagnostics);
        match input.options.mode {
            // Nothing is wanted: only what the spec protects counts.
            Mode::Destroy => removal_protection::look_around(&mut planner),
            Mode::Apply | Mode::RefreshOnly => {
                planner.walk(workers);
                import::report_unused(&mut planner);
                selection::report_unmatched(&mut planner);
            }
        }
        planner.uses = references::find(&planner);
        let more = references::settle(&mut planner);
        if more.is_empty() {
            removal::remove(&mut planner);
            selection::narrow_seen(&mut planner);
            return planner.finish(workers);
        }
        // Who uses a replaced object shows after the walk, and others were planned with the new
        // one. Each round lets at least one more wait, so there is a last one.
        waiting = planner.waiting;
        waiting.extend(more);
    }
}

/// Who bears the names that a plan gives.
fn bearers(input: &PlanInput<'_>, plan: &Plan) -> BTreeMap<Address, BTreeSet<Address>> {
    let schema = |change: &Change| {
        let provider = input.providers.get(&change.provider)?;
        provider.types.get(&change.address.block.ty).cloned()
    };
    let bearers = others::bearers(plan, &schema, input.snapshot);
    bearers.into_iter().map(|(to, by)| (to, by.into_keys().collect())).collect()
}

/// How many instances a spec may have.
pub(in crate::plan) const INSTANCES_MAX: usize = 250_000;

/// How many instances one worker looks at before it asks for more.
const PART: usize = 128;

/// About how many instances are looked at before what came of them is taken over: more would need
/// much memory.
const OPEN_MAX: usize = 8_192;

/// The work in progress.
pub(in crate::plan) struct Planner<'a> {
    pub(in crate::plan) input: &'a PlanInput<'a>,
    pub(in crate::plan) diagnostics: Diagnostics,
    pub(in crate::plan) planned: Planned<'a>,
    pub(in crate::plan) locals: LocalCache,
    pub(in crate::plan) drafts: Vec<Draft>,
    pub(in crate::plan) handled: FxHashSet<Address>,
    pub(in crate::plan) drift: Vec<Drift>,
    pub(in crate::plan) seen: Vec<Record>,
    /// What calls would send and nobody has.
    pub(in crate::plan) lacks: Vec<Lack>,
    /// Who bears the names that are to be taken, outside the state.
    pub(in crate::plan) namesakes: BTreeMap<Address, BTreeSet<ObjectId>>,
    pub(in crate::plan) selection: selection::Selection,
    /// The calls in doubt, in their order.
    pub(in crate::plan) doubts: Vec<Doubt>,
    /// The addresses that they are about.
    pub(in crate::plan) blocked: BTreeSet<Address>,
    /// The names that calls in doubt may have given.
    pub(in crate::plan) doubted: Doubted<'a>,
    /// Those, and what depends on them.
    pub(in crate::plan) held: BTreeSet<Address>,
    /// What would be changed, and waits because something goes on using what it would take.
    pub(in crate::plan) waiting: BTreeMap<Address, Use>,
    /// What is used by whatever stays as it is: it is not deleted.
    pub(in crate::plan) uses: references::Uses,
    /// `each.value` of what is to go.
    pub(in crate::plan) each: removal_protection::EachCache<'a>,
    /// What changes of objects that exist, for `replace_triggered_by`.
    pub(in crate::plan) changing: triggers::Changing,
    /// What decided that something is wanted, or is to go.
    pub(in crate::plan) deciding: Deciding<'a>,
    /// Seals what has become a secret.
    pub(in crate::plan) turned: Turned<'a>,
    /// What the spec's attributes are made of, if somebody asked.
    pub(in crate::plan) sources: OnceLock<Sources<'a>>,
}

/// A change with what lowering needs beside it.
pub(in crate::plan) struct Draft {
    pub(in crate::plan) change: Change,
    /// The object that is there, without what has become a secret: what a plan shows of it.
    pub(in crate::plan) turned: Option<Arc<Attributes>>,
    pub(in crate::plan) schema: Arc<TypeSchema>,
    /// Whether a replace creates before it deletes.
    pub(in crate::plan) create_first: bool,
    /// Whether a replace lets the old object go instead of deleting it.
    pub(in crate::plan) retains: bool,
    /// Whether a replace leaves the old object to a later plan.
    pub(in crate::plan) keeps_old: bool,
    /// The attributes that differ.
    pub(in crate::plan) changed: BTreeSet<Name>,
    /// Those that the spec gave the last time and is silent about now.
    pub(in crate::plan) unmanaged: Vec<Name>,
    /// What an earlier run left undone, for an update.
    pub(in crate::plan) rest: Option<Rest>,
    /// Why nothing is done, if something keeps it from being done.
    pub(in crate::plan) held: Option<Hold>,
}

impl Draft {
    /// What an earlier run left undone, and the phases of its program.
    pub(in crate::plan) fn rest(&self) -> Option<(Rest, &[Phase])> {
        let rest = self.rest?;
        Some((rest, &self.schema.programs(rest.kind).get(rest.program)?.phases))
    }

    /// Whether the object that is there now is deleted.
    pub(in crate::plan) fn is_deleted(&self) -> bool {
        match self.change.action {
            Action::Delete => true,
            Action::Replace => !self.retains && !self.keeps_old,
            _ => false,
        }
    }

    /// Whether the spec does not give an attribute, also where it did the last time.
    pub(in crate::plan) fn is_silent_about(&self, attribute: &Name) -> bool {
        self.unmanaged.contains(attribute) || !self.change.managed.contains(attribute)
    }

    /// Whether it is forgotten instead, and left alone.
    pub(in crate::plan) fn is_let_go(&self) -> bool {
        match self.change.action {
            Action::Forget => true,
            Action::Replace => self.retains,
            _ => false,
        }
    }
}

/// What is found beside a decision.
#[derive(Default)]
pub(in crate::plan) struct Notes {
    pub(in crate::plan) diagnostics: Diagnostics,
    /// What changed outside since the last run.
    pub(in crate::plan) drift: Vec<Drift>,
    /// What the state takes over without a call.
    pub(in crate::plan) seen: Vec<Record>,
    /// What calls would send and nobody has.
    pub(in crate::plan) lacks: Vec<Lack>,
    /// Who bears the names that are to be taken, outside the state.
    pub(in crate::plan) namesakes: Vec<(Address, BTreeSet<ObjectId>)>,
}

/// A live object with what the state and refresh know of it.
pub(in crate::plan) struct Live<'a> {
    pub(in crate::plan) object: &'a Object,
    /// The state's attributes, overlaid with what refresh saw; secrets sealed.
    pub(in crate::plan) attributes: Arc<Attributes>,
    /// The state's attributes alone; the same where refresh did not look.
    pub(in crate::plan) stored: Arc<Attributes>,
}

impl<'a> Planner<'a> {
    /// Says whether the plan is about what an address stands for, once the walk is done.
    pub(in crate::plan) fn is_chosen(&self, address: &Address) -> bool {
        if self.handled.contains(address) {
            self.selection.includes(address)
        } else {
            self.selection.lets_go(address)
        }
    }

    fn new(input: &'a PlanInput<'a>, waiting: BTreeMap<Address, Use>) -> Self {
        Self {
            input,
            diagnostics: Diagnostics::new(),
            planned: Planned::default(),
            locals: LocalCache::default(),
            drafts: Vec::new(),
            handled: FxHashSet::default(),
            drift: Vec::new(),
            seen: Vec::new(),
            lacks: Vec::new(),
            namesakes: BTreeMap::new(),
            selection: selection::Selection::default(),
            doubts: Vec::new(),
            blocked: BTreeSet::new(),
            doubted: Doubted::of(input.snapshot),
            held: BTreeSet::new(),
            waiting,
            uses: references::Uses::default(),
            each: removal_protection::EachCache::default(),
            changing: triggers::Changing::new(input.config),
            deciding: Deciding::default(),
            turned: Turned::new(input),
            sources: OnceLock::new(),
        }
    }

    fn report_doubts(&mut self) {
        for (call, pending) in &self.input.snapshot.pending {
            let running = self.input.observations.running.contains(call);
            let doubt = Doubt {
                call: *call,
                address: pending.started.address.clone(),
                operation: pending.started.operation,
                reason: pending.why(running).to_owned(),
                running,
            };
            self.diagnostics.push(diagnostics::in_doubt(&doubt));
            self.held.insert(doubt.address.clone());
            self.blocked.insert(doubt.address.clone());
            self.doubts.push(doubt);
        }
    }

    /// Every block in dependency order, every instance by key.
    fn walk(&mut self, workers: &dyn Workers) {
        let input = self.input;
        let (mut count, mut open) = (0, Vec::new());
        self.drafts.reserve(input.config.resources.len());
        self.planned.reserve(input.config.resources.len());
        self.handled.reserve(input.snapshot.entries.len());
        for wave in input.graph.waves(input.config) {
            for resource in wave {
                let instances = self.expand(resource);
                count += instances.len();
                if count > INSTANCES_MAX {
                    self.decide(&mut open, workers);
                    self.diagnostics.push(diagnostics::too_many_instances(resource));
                    return;
                }
                // Growing step by step would copy a large list often.
                self.drafts.reserve(instances.len());
                open.extend(instances.into_iter().map(|instance| (resource, instance)));
                if open.len() >= OPEN_MAX && !self.decide(&mut open, workers) {
                    return;
                }
            }
            if !self.decide(&mut open, workers) {
                return;
            }
        }
    }

    /// The instances of a block.
    fn expand(&mut self, resource: &'a ResourceConfig) -> Vec<Instance<'a>> {
        let scope = SpecScope::new(self.input.config, &self.planned, &self.locals);
        let expanded = desired::expand(resource, &scope, &mut self.diagnostics);
        if resource.for_each.is_some() {
            self.planned.declare_many(&resource.block);
        }
        let Expanded { instances, looked_at } = expanded.unwrap_or_default();
        self.deciding.of_block(&resource.block, looked_at);
        instances
    }

    /// Decides instances that need nothing of one another; false where the plan would hold too much.
    fn decide(
        &mut self,
        open: &mut Vec<(&'a ResourceConfig, Instance<'a>)>,
        workers: &dyn Workers,
    ) -> bool {
        let outcomes = self.outcomes(open, workers);
        if self.planned.spent.is_over() {
            let exceeded = budget::exceeded(self, open);
            self.diagnostics.push(exceeded);
            return false;
        }
        for ((resource, instance), outcome) in open.drain(..).zip(outcomes.into_iter().flatten()) {
            self.take(resource, instance, outcome);
        }
        true
    }

    /// What comes of instances, in parts.
    fn outcomes(
        &self,
        open: &[(&'a ResourceConfig, Instance<'a>)],
        workers: &dyn Workers,
    ) -> Vec<Vec<Outcome>> {
        let workers = if open.len() < PART * 2 { &InTurn } else { workers };
        let parts: Vec<_> = open.chunks(PART).collect();
        work::map(workers, parts.len(), |part| {
            let instances = parts[part].iter();
            instances.map(|(resource, it)| decide::decide(self, resource, it)).collect()
        })
    }

    /// Takes over what came of an instance.
    fn take(&mut self, resource: &'a ResourceConfig, instance: Instance<'_>, outcome: Outcome) {
        let Instance { address, each } = instance;
        let Outcome { object, draft, lost, is_enabled, looked_at, notes } = outcome;
        self.note(notes);
        // What stays as it is was not decided by what is told apart here.
        if draft.as_ref().is_none_or(|draft| draft.change.action != Action::NoOp) {
            if let Some(each) = each {
                self.deciding.of_key(&address, each.touched);
            }
            self.deciding.of_flags(&address, looked_at);
        }
        self.planned.lost.insert(&address, lost);
        self.planned.insert(&resource.block, address.key.as_ref(), object);
        if let Some(draft) = draft {
            if draft.held == Some(Hold::InDoubt) {
                self.held.insert(address.clone());
            }
            self.changing.note(&draft);
            self.drafts.push(draft);
        }
        // Whether it was decided matters only for what the state has.
        if is_enabled && !self.input.snapshot.entries.is_empty() {
            self.handled.insert(address);
        }
    }

    /// Takes over what was found beside a decision.
    pub(in crate::plan) fn note(&mut self, notes: Notes) {
        self.diagnostics.extend(notes.diagnostics);
        self.drift.extend(notes.drift);
        self.seen.extend(notes.seen);
        self.lacks.extend(notes.lacks);
        self.namesakes.extend(notes.namesakes);
    }

    /// An object of the state as it is live; none when it is confirmed gone.
    pub(in crate::plan) fn live(
        &self,
        address: &Address,
        object: &'a Object,
        schema: &TypeSchema,
        found: &mut Notes,
    ) -> Option<Live<'a>> {
        let stored = match stored_attributes(&object.attributes, schema) {
            Ok(stored) => Arc::new(stored),
            Err(error) => {
                found.diagnostics.push(diagnostics::state_is_damaged(address, &error));
                return None;
            }
        };
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key) {
            // While a call on it is in doubt, only the look-up of that call says what became of it.
            Some(Observed::Gone) if self.blocked.contains(address) => None,
            Some(Observed::Gone) => {
                let id = object.id.clone();
                found.seen.push(Record::Vanished { address: address.clone(), object: id });
                None
            }
            Some(Observed::Live(observed)) => {
                let attributes = Arc::new(overlay(&stored, observed));
                Some(Live { object, attributes, stored })
            }
            None => Some(Live { object, attributes: stored.clone(), stored }),
        }
    }

    /// What refresh saw of an object, where it looked and found it.
    pub(in crate::plan) fn seen_of(
        &self,
        address: &Address,
        object: &Object,
    ) -> Option<&'a Attributes> {
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key)? {
            Observed::Live(attributes) => Some(attributes),
            Observed::Gone => None,
        }
    }

    fn finish(mut self, workers: &dyn Workers) -> (Plan, Diagnostics) {
        self.drafts.sort_by(|a, b| {
            let (a, b) = (&a.change, &b.change);
            (&a.address, a.deposed, &a.object).cmp(&(&b.address, b.deposed, &b.object))
        });
        self.drift.sort_by(|a, b| a.address.cmp(&b.address));
        self.lacks.sort_by(|a, b| (&a.address, &a.attribute).cmp(&(&b.address, &b.attribute)));
        let kept = kept::check(&self.drafts, &mut self.diagnostics);
        unmanaged::warn(&mut self, &kept);
        turned::warn(&mut self);
        renamed::note(&mut self);
        names::check_twice(self.input, &self.drafts, &mut self.diagnostics);
        let_go::check(&self.drafts, &mut self.diagnostics);
        let steps = schedule::lower(&self.drafts, self.input.snapshot, &mut self.diagnostics);
        let outputs = outputs::outputs(&mut self);
        self.drafts.iter_mut().for_each(turned::hide);
        if self.planned.spent.is_over() && !self.diagnostics.has_errors() {
            let exceeded = budget::exceeded(&mut self, &[]);
            self.diagnostics.push(exceeded);
        }
        let base = self.base(&outputs);
        let mut plan = Plan {
            complete: self.input.options.cover_all(),
            base,
            drift: self.drift,
            changes: self.drafts.into_iter().map(|draft| draft.change).collect(),
            outputs,
            steps,
            doubts: self.doubts,
            seen: self.seen,
            lacks: self.lacks,
        };
        plan.base.users = others::users(&plan, self.input.snapshot);
        plan.base.bearers = bearers(self.input, &plan);
        idle::leave_out(&mut plan);
        let mut diagnostics = self.diagnostics;
        if !diagnostics.has_errors() {
            for note in lint::lint_with(&plan, workers) {
                diagnostics.push(diagnostics::internal(note));
            }
        }
        diagnostics.sort();
        (plan, diagnostics)
    }

    /// The digests of the live objects that the plan touches or refers to. A plan that touches none, for some of the
    /// spec, has those of what it is for; for all of the spec, its changes have all that it saw.
    fn objects(&self) -> BTreeMap<Address, Digest> {
        let live = |draft: &&Draft| draft.change.before.is_some() && !draft.change.deposed;
        // A first run finds nothing live, and has the most changes.
        if !self.drafts.iter().any(|draft| live(&draft)) {
            return BTreeMap::new();
        }
        let mut used =
            self.drafts.iter().filter(|draft| draft.change.action != Action::NoOp).peekable();
        let mut wanted = FxHashSet::default();
        if used.peek().is_none() && !self.input.options.cover_all() {
            let addresses = self.drafts.iter().map(|draft| &draft.change.address);
            wanted.extend(addresses.filter(|address| self.selection.includes(address)));
        }
        for draft in used {
            wanted.insert(&draft.change.address);
            wanted.extend(&draft.change.dependencies);
        }
        wanted.extend(self.deciding.shown().filter(|shown| !self.blocked.contains(*shown)));
        wanted.extend(self.decisive());
        let touched = self.drafts.iter().filter(live);
        let touched = touched.filter(|draft| wanted.contains(&draft.change.address));
        let digest = |draft: &Draft| {
            let before = draft.change.before.as_deref()?;
            let digest = diff::fitness_digest(&draft.schema, before);
            Some((draft.change.address.clone(), digest))
        };
        touched.filter_map(digest).collect()
    }

    /// What decided that there are the changes that there are, and what that is made of and decided by in turn. A
    /// call in doubt says nothing that can be held against what is live, and a plan is stale once it has ended.
    fn decisive(&self) -> FxHashSet<&Address> {
        let mut reached = Reached::default();
        for Draft { change, .. } in &self.drafts {
            if change.action != Action::NoOp {
                reached.add_sets(self.deciding.of(&change.address));
            }
            if change.action == Action::Replace {
                reached.add(&change.dependencies);
            }
        }
        while let Some(address) = reached.next() {
            if !self.blocked.contains(address) {
                reached.add_sets(self.deciding.of(address));
                reached.add(self.draft(address).into_iter().flat_map(|it| &it.change.dependencies));
            }
        }
        reached.all.retain(|address| !self.blocked.contains(*address));
        reached.all
    }

    /// What is decided of an address's own object, once all are sorted.
    pub(in crate::plan) fn draft(&self, address: &Address) -> Option<&Draft> {
        let key = (address, false);
        let of = |draft: &Draft| (&draft.change.address, draft.change.deposed) < key;
        let draft = self.drafts.get(self.drafts.partition_point(of));
        draft.filter(|draft| draft.change.address == *address && !draft.change.deposed)
    }

    /// The digests of what the state says of the objects that are seen to be different.
    fn known(&self) -> BTreeMap<Address, Digest> {
        let snapshot = self.input.snapshot;
        let known = |address: &Address, object: &ObjectId| {
            Some((address.clone(), news::known(snapshot.entries.get(address)?, object)?))
        };
        let seen = self.seen.iter().filter_map(|record| match record {
            Record::Seen { address, object, .. } => known(address, object),
            _ => None,
        });
        // What is changed is written down when it is, not as it was seen.
        let drifted = self.drift.iter().filter_map(|drift| {
            let current = snapshot.entries.get(&drift.address)?.current.as_ref()?;
            known(&drift.address, &current.id)
        });
        seen.chain(drifted).collect()
    }

    /// The digests of what the state says of the watches that are over.
    fn over(&self) -> BTreeMap<Nonce, Digest> {
        let over = |nonce: &Nonce| Some((nonce.clone(), news::watch(self.input.snapshot, nonce)?));
        self.input.observations.over.iter().filter_map(over).collect()
    }

    fn base(&self, outputs: &BTreeMap<Name, super::OutputChange>) -> Base {
        let snapshot = self.input.snapshot;
        let (secrets, variables) =
            (outputs::needed_secrets(self, outputs), &self.input.config.variables);
        Base {
            lineage: snapshot.lineage.clone(),
            first_key: (snapshot.serial == 0).then(|| snapshot.seal_key.clone()),
            serial: snapshot.serial,
            providers: self
                .input
                .providers
                .iter()
                .map(|(name, schema)| (name.clone(), schema.digest.clone()))
                .collect(),
            accounts: self
                .input
                .accounts
                .iter()
                .map(|(name, it)| (name.clone(), Fingerprint::of_digest(it, &snapshot.seal_key)))
                .collect(),
            objects: self.objects(),
            namesakes: self.namesakes.clone(),
            users: BTreeMap::new(),
            bearers: BTreeMap::new(),
            known: self.known(),
            over: self.over(),
            secret_types: secrets
                .keys()
                .filter_map(|name| Some((name.clone(), variables.get(name)?.ty.clone())))
                .collect(),
            secrets,
        }
    }
}
