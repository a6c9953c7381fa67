//! Planning: walks the blocks in dependency order, decides each instance, then what is to go.
//!
//! One walk does both evaluating and deciding, because a decision feeds later evaluations: the id
//! of an object that is replaced is unknown to everything after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::hold::Hold;
use super::input::{Mode, Observed, PlanInput};
use super::live::{overlay, stored_attributes};
use super::scope::{LocalCache, Planned, SpecScope, object};
use super::wanted::{self, Instance, Wanted};
use super::{Action, Base, Change, Doubt, Drift, Plan, Use};
use super::{
    compare, decide, diagnostics, farewell, guards, imports, lint, lower, names, outputs, removal,
    selection, triggers, uses,
};
use crate::address::{Address, Name};
use crate::diagnostics::Diagnostics;
use crate::digest::{Digest, Fingerprint};
use crate::journal::Record;
use crate::schema::TypeSchema;
use crate::sorted::Set;
use crate::spec::ResourceConfig;
use crate::state::{Entry, Object, Progress};
use crate::stored::Stored;
use crate::value::{Attributes, Paths, Value};

/// Makes the plan. With errors among the diagnostics it must not be applied.
pub fn plan(input: &PlanInput<'_>) -> (Plan, Diagnostics) {
    let mut waiting = BTreeMap::new();
    loop {
        let mut planner = Planner::new(input, waiting);
        planner.report_doubts();
        planner.selection = selection::select(input, &mut planner.diagnostics);
        match input.options.mode {
            // Nothing is wanted: only what the spec protects counts.
            Mode::Destroy => farewell::look_around(&mut planner),
            Mode::Apply | Mode::RefreshOnly => {
                planner.walk();
                imports::report_unused(&mut planner);
                selection::report_unmatched(&mut planner);
            }
        }
        planner.uses = uses::find(&planner);
        let more = uses::settle(&mut planner);
        if more.is_empty() {
            removal::remove(&mut planner);
            selection::narrow_seen(&mut planner);
            return planner.finish();
        }
        // Who uses a replaced object shows after the walk, and others were planned with the new
        // one. Each round lets at least one more wait, so there is a last one.
        waiting = planner.waiting;
        waiting.extend(more);
    }
}

/// How many instances a spec may have.
pub(super) const INSTANCES_MAX: usize = 250_000;

/// The work in progress.
pub(super) struct Planner<'a> {
    pub(super) input: &'a PlanInput<'a>,
    pub(super) diagnostics: Diagnostics,
    pub(super) planned: Planned,
    pub(super) locals: LocalCache,
    pub(super) drafts: Vec<Draft>,
    pub(super) handled: FxHashSet<Address>,
    pub(super) drift: Vec<Drift>,
    pub(super) seen: Vec<Record>,
    pub(super) selection: selection::Selection,
    /// The addresses of calls in doubt.
    pub(super) blocked: BTreeMap<Address, Doubt>,
    /// Those, and what depends on them.
    pub(super) held: BTreeSet<Address>,
    /// What would be changed, and waits because something goes on using what it would take.
    pub(super) waiting: BTreeMap<Address, Use>,
    /// What is used by whatever stays as it is: it is not deleted.
    pub(super) uses: uses::Uses,
    /// `each.value` of what is to go.
    pub(super) each: farewell::EachCache,
    /// What changes of objects that exist, for `replace_triggered_by`.
    pub(super) changing: triggers::Changing,
}

/// A change with what lowering needs beside it.
pub(super) struct Draft {
    pub(super) change: Change,
    pub(super) schema: Arc<TypeSchema>,
    /// Whether a replace creates before it deletes.
    pub(super) create_first: bool,
    /// Whether a replace lets the old object go instead of deleting it.
    pub(super) retains: bool,
    /// Whether a replace leaves the old object to a later plan.
    pub(super) keeps_old: bool,
    /// The attributes that differ.
    pub(super) changed: BTreeSet<Name>,
    /// Why nothing is done, if something keeps it from being done.
    pub(super) held: Option<Hold>,
}

/// A live object with what the state and refresh know of it.
pub(super) struct Live<'a> {
    pub(super) object: &'a Object,
    /// The state's attributes, overlaid with what refresh saw; secrets sealed.
    pub(super) attributes: Arc<Attributes>,
    /// The state's attributes alone; the same where refresh did not look.
    pub(super) stored: Arc<Attributes>,
}

impl<'a> Planner<'a> {
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
            selection: selection::Selection::default(),
            blocked: BTreeMap::new(),
            held: BTreeSet::new(),
            waiting,
            uses: uses::Uses::default(),
            each: farewell::EachCache::default(),
            changing: triggers::Changing::new(input.config),
        }
    }

    fn report_doubts(&mut self) {
        for (call, pending) in &self.input.snapshot.pending {
            let running = self.input.observations.running.contains(call);
            let doubt = Doubt {
                call: *call,
                address: pending.started.address.clone(),
                operation: pending.started.operation,
                reason: match &pending.doubt {
                    Some(reason) => reason.clone(),
                    None if running => "another run holds the lock and is at it".to_owned(),
                    None => "the run ended before the answer came".to_owned(),
                },
                running,
            };
            self.diagnostics.push(diagnostics::in_doubt(&doubt));
            self.held.insert(doubt.address.clone());
            self.blocked.insert(doubt.address.clone(), doubt);
        }
    }

    /// Every block in dependency order, every instance by key.
    fn walk(&mut self) {
        let mut count = 0;
        let resources = self.input.graph.walk(self.input.config);
        self.drafts.reserve(resources.len());
        self.planned.reserve(resources.len());
        self.handled.reserve(self.input.snapshot.entries.len());
        for resource in resources.flatten() {
            let scope = SpecScope::new(self.input.config, &self.planned, &self.locals);
            let instances = wanted::expand(resource, &scope, &mut self.diagnostics);
            if resource.for_each.is_some() {
                self.planned.declare_many(&resource.block);
            }
            let instances = instances.unwrap_or_default();
            count += instances.len();
            if count > INSTANCES_MAX {
                self.diagnostics.push(diagnostics::too_many_instances(resource));
                return;
            }
            // Growing step by step would copy a large list often.
            self.drafts.reserve(instances.len());
            for instance in instances {
                self.instance(resource, instance);
            }
        }
    }

    fn instance(&mut self, resource: &'a ResourceConfig, instance: Instance) {
        let Instance { address, each } = instance;
        let scope = SpecScope::new(self.input.config, &self.planned, &self.locals).with_each(each);
        let mut found = Diagnostics::new();
        let enabled = resource.lifecycle.enabled.as_ref();
        let enabled = wanted::flag(enabled, "enabled", &scope, &address, &mut found);
        let disabled = enabled == Some(false);
        let wanted =
            if disabled { None } else { wanted::wanted(resource, &address, &scope, &mut found) };
        let mut flags = decide::flags(resource, &scope, &address, &mut found);
        let entry = self.input.snapshot.entries.get(&address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        let key = &self.input.snapshot.seal_key;
        let fired = triggers::fired(resource, &scope, &self.changing, current, key);
        flags.triggered = fired.is_some();
        self.diagnostics.extend(found);
        if disabled {
            self.planned.insert(&address, object_of_null());
            return;
        }
        // What could not be evaluated was said; it is planned as unknown, so that what refers to
        // it is still checked.
        let Some(wanted) = wanted else {
            let unknown = decide::all_unknown(&resource.schema, &address);
            self.planned.insert(&address, object(unknown, Paths::none()));
            self.handled(address);
            return;
        };
        let object = match self.decide(resource, &address, &wanted, flags, fired) {
            Ok(object) => object,
            Err(imports::Refused) => {
                object(decide::all_unknown(&resource.schema, &address), Paths::none())
            }
        };
        self.planned.insert(&address, object);
        self.handled(address);
    }

    /// Remembers that an address was decided; it matters only for what the state has.
    fn handled(&mut self, address: Address) {
        if !self.input.snapshot.entries.is_empty() {
            self.handled.insert(address);
        }
    }

    fn decide(
        &mut self,
        resource: &'a ResourceConfig,
        address: &Address,
        wanted: &Wanted,
        mut flags: decide::Flags,
        fired: Option<triggers::Fired>,
    ) -> Result<crate::value::Datum, imports::Refused> {
        let held = self.hold(address, wanted);
        let imported = match &held {
            Some(_) => None,
            None => imports::imported(self, resource, address, wanted)?,
        };
        let entry = self.input.snapshot.entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        let live = match &imported {
            Some(imported) => Some(imported.live()),
            None => current.and_then(|current| self.live(address, current, &resource.schema)),
        };
        // There was nothing before that it could have been made with.
        flags.triggered &= imported.is_none();
        self.note_drift(address, resource, current, live.as_ref());
        let case = decide::Case {
            resource,
            address,
            wanted,
            live: live.as_ref(),
            vanished: live.is_none() && current.is_some(),
            flags,
            held: held.as_ref(),
            asked: self.input.options.replace.contains(address),
            key: &self.input.snapshot.seal_key,
        };
        let mut decision = decide::decide(&case, &mut self.diagnostics);
        let import = self.input.config.imports.get(address);
        if let (Some(imported), Some(import)) = (&imported, import) {
            let taken = imported.take_over(&mut decision, import, &mut self.diagnostics);
            self.seen.extend(taken);
        }
        let mut draft = decision.draft;
        if held == Some(Hold::InDoubt) {
            self.held.insert(address.clone());
        }
        uses::remember_ignored(self.input, resource, &mut draft.change);
        self.mark_drifted_causes(&mut draft.change);
        self.note_seen(address, &draft, entry, live.as_ref());
        // An import makes and ends nothing; one that would was refused.
        if imported.is_none() {
            guards::check(resource, &draft, flags, &mut self.diagnostics);
        }
        if imported.is_none() || draft.change.action == Action::Import {
            names::check_strangers(self.input, &draft, &mut self.diagnostics);
        }
        if let (Some(made_with), Some(object), Some(_), None) = (fired, current, &live, &imported) {
            self.note_triggered(address, object, made_with);
        }
        self.changing.note(&draft);
        let sensitive = draft.change.sensitive.clone();
        self.drafts.push(draft);
        Ok(object(decision.planned, sensitive))
    }

    /// Why an instance is left alone, if it is.
    fn hold(&self, address: &Address, wanted: &Wanted) -> Option<Hold> {
        if self.blocked.contains_key(address)
            || wanted.dependencies.iter().any(|on| self.held.contains(on))
        {
            return Some(Hold::InDoubt);
        }
        if let Some(user) = self.waiting.get(address) {
            return Some(Hold::still_used(user));
        }
        if self.input.options.mode == Mode::RefreshOnly || !self.selection.includes(address) {
            return Some(Hold::LeftOut);
        }
        None
    }

    /// An object of the state as it is live; none when it is confirmed gone.
    pub(super) fn live(
        &mut self,
        address: &Address,
        object: &'a Object,
        schema: &TypeSchema,
    ) -> Option<Live<'a>> {
        let stored = match stored_attributes(&object.attributes, schema) {
            Ok(stored) => Arc::new(stored),
            Err(error) => {
                self.diagnostics.push(diagnostics::state_is_damaged(address, &error));
                return None;
            }
        };
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key) {
            // While a call on it is in doubt, only the look-up of that call says what became of it.
            Some(Observed::Gone) if self.blocked.contains_key(address) => None,
            Some(Observed::Gone) => {
                let id = object.id.clone();
                self.seen.push(Record::Vanished { address: address.clone(), object: id });
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
    pub(super) fn seen_of(&self, address: &Address, object: &Object) -> Option<&'a Attributes> {
        let key = (address.clone(), object.id.clone());
        match self.input.observations.objects.get(&key)? {
            Observed::Live(attributes) => Some(attributes),
            Observed::Gone => None,
        }
    }

    fn note_drift(
        &mut self,
        address: &Address,
        resource: &ResourceConfig,
        current: Option<&Object>,
        live: Option<&Live<'_>>,
    ) {
        let Some(object) = current else { return };
        let schema = &resource.schema;
        let Some(live) = live else {
            if let Ok(before) = stored_attributes(&object.attributes, schema) {
                let address = address.clone();
                let attributes = Vec::new();
                self.drift.push(Drift { address, before, after: None, attributes, proposal: None });
            }
            return;
        };
        if !object.progress.is_ready() {
            return;
        }
        let mut attributes = drifted(live, schema, &self.input.snapshot.seal_key);
        // What the spec leaves to others is no drift when they change it.
        attributes.retain(|name| !resource.lifecycle.ignore_changes.contains(name));
        if attributes.is_empty() {
            return;
        }
        self.drift.push(Drift {
            address: address.clone(),
            before: (*live.stored).clone(),
            after: Some((*live.attributes).clone()),
            proposal: decide::proposal(resource, &attributes, &live.attributes),
            attributes,
        });
    }

    fn mark_drifted_causes(&self, change: &mut Change) {
        let Some(drift) = self.drift.last().filter(|drift| drift.address == change.address) else {
            return;
        };
        let key = &self.input.snapshot.seal_key;
        for cause in &mut change.causes {
            let wanted = change.after.as_ref().and_then(|after| after.get(&cause.attribute));
            let stored = drift.before.get(&cause.attribute);
            cause.drifted = drift.attributes.contains(&cause.attribute)
                && wanted.zip(stored).is_some_and(|(w, s)| compare::agree(w, s, key));
        }
    }

    /// The triggers that fire are remembered before anything is called: their replace may fail, or
    /// be no part of this plan.
    fn note_triggered(&mut self, address: &Address, object: &Object, made_with: triggers::Fired) {
        if !made_with.is_empty() {
            let (address, object) = (address.clone(), object.id.clone());
            self.seen.push(Record::Triggered { address, object, made_with });
        }
    }

    /// What the state takes over without a call.
    fn note_seen(
        &mut self,
        address: &Address,
        draft: &Draft,
        entry: Option<&Entry>,
        live: Option<&Live<'_>>,
    ) {
        let (Some(live), Some(entry)) = (live, entry) else { return };
        let change = &draft.change;
        if change.action != Action::NoOp || draft.held == Some(Hold::InDoubt) {
            return;
        }
        let record = if draft.held.is_some() {
            accepted(address, live, entry)
        } else {
            let next = Next {
                progress: &Progress::Ready,
                managed: &change.managed,
                sensitive: &change.sensitive,
                dependencies: &change.dependencies,
            };
            next.record(address, live, entry)
        };
        self.seen.extend(record);
    }

    fn finish(mut self) -> (Plan, Diagnostics) {
        self.drafts.sort_by(|a, b| {
            let (a, b) = (&a.change, &b.change);
            (&a.address, a.deposed, &a.object).cmp(&(&b.address, b.deposed, &b.object))
        });
        self.drift.sort_by(|a, b| a.address.cmp(&b.address));
        names::check_twice(self.input, &self.drafts, &mut self.diagnostics);
        let steps = lower::lower(&self.drafts, self.input.snapshot, &mut self.diagnostics);
        let outputs = outputs::outputs(&mut self);
        let base = self.base();
        let plan = Plan {
            complete: self.input.options.targets.is_empty()
                && self.input.options.excludes.is_empty(),
            base,
            drift: self.drift,
            changes: self.drafts.into_iter().map(|draft| draft.change).collect(),
            outputs,
            steps,
            doubts: self.blocked.into_values().collect(),
            seen: self.seen,
        };
        let mut diagnostics = self.diagnostics;
        if !diagnostics.has_errors() {
            for note in lint::lint(&plan) {
                diagnostics.push(diagnostics::internal(note));
            }
        }
        diagnostics.sort();
        (plan, diagnostics)
    }

    /// The digests of the live objects that the plan touches or refers to.
    fn objects(&self) -> BTreeMap<Address, Digest> {
        let live = |draft: &&Draft| draft.change.before.is_some() && !draft.change.deposed;
        // A first run finds nothing live, and has the most changes.
        if !self.drafts.iter().any(|draft| live(&draft)) {
            return BTreeMap::new();
        }
        let used = self.drafts.iter().filter(|draft| draft.change.action != Action::NoOp);
        let mut wanted = FxHashSet::default();
        for draft in used {
            wanted.insert(&draft.change.address);
            wanted.extend(&draft.change.dependencies);
        }
        let touched = self.drafts.iter().filter(live);
        let touched = touched.filter(|draft| wanted.contains(&draft.change.address));
        let digest = |draft: &Draft| {
            let before = draft.change.before.as_deref()?;
            let digest = compare::fitness_digest(&draft.schema, before);
            Some((draft.change.address.clone(), digest))
        };
        touched.filter_map(digest).collect()
    }

    fn base(&self) -> Base {
        let snapshot = self.input.snapshot;
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
            secrets: outputs::needed_secrets(self),
        }
    }
}

fn object_of_null() -> crate::value::Datum {
    crate::value::Datum::plain(Value::Null)
}

/// The managed attributes whose live value is not the state's.
fn drifted(live: &Live<'_>, schema: &TypeSchema, key: &crate::digest::SealKey) -> Vec<Name> {
    let managed = live.object.managed.iter().filter(|name| compare::is_stable(schema, name));
    compare::differing(managed, &live.stored, &live.attributes, key).into_iter().collect()
}

/// The record that accepts what is live and changes nothing else; none when nothing moved.
pub(super) fn accepted(address: &Address, live: &Live<'_>, entry: &Entry) -> Option<Record> {
    let next = Next {
        progress: &live.object.progress,
        managed: &live.object.managed,
        sensitive: &live.object.sensitive,
        dependencies: &entry.dependencies,
    };
    next.record(address, live, entry)
}

/// What the state is to say of an object beside its attributes.
struct Next<'a> {
    progress: &'a Progress,
    managed: &'a Set<Name>,
    sensitive: &'a Paths,
    dependencies: &'a Set<Address>,
}

impl Next<'_> {
    /// The record that says it; none when the state says it already.
    fn record(&self, address: &Address, live: &Live<'_>, entry: &Entry) -> Option<Record> {
        let object = live.object;
        let moved = !Arc::ptr_eq(&live.attributes, &live.stored) && live.attributes != live.stored;
        let same = !moved
            && *self.progress == object.progress
            && *self.managed == object.managed
            && *self.sensitive == object.sensitive
            && *self.dependencies == entry.dependencies;
        if same {
            return None;
        }
        let attributes = if moved {
            Stored::of_sealed(&Value::Map(live.attributes.clone()))
        } else {
            object.attributes.clone()
        };
        Some(Record::Seen {
            address: address.clone(),
            object: object.id.clone(),
            progress: self.progress.clone(),
            attributes,
            managed: self.managed.clone(),
            sensitive: self.sensitive.clone(),
            dependencies: self.dependencies.clone(),
        })
    }
}
