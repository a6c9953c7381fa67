//! The decision about one instance, from the attributes that the spec wants and the live object.
//!
//! Nothing of the planner changes here, so instances that do not depend on one another can be decided in any
//! order, and in parallel. The findings are returned, and the planner takes them over.

pub(super) mod action;
pub(super) mod case;
pub(super) mod conditions;
pub(super) mod decisions;
pub(super) mod diff;
pub(super) mod ignored_references;
pub(super) mod import;
pub(super) mod move_proposals;
pub(super) mod move_rules;
pub(super) mod moved;
pub(super) mod outputs;
pub(super) mod programs;
pub(super) mod removal;
pub(super) mod resume;
pub(super) mod rules;
pub(super) mod triggers;
pub(super) mod unset;
pub(super) mod used_objects;
pub(super) mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Name};
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::journal::Record;
use crate::plan::context::Context;
use crate::plan::decide::action::Decision;
use crate::plan::decide::case::Case;
use crate::plan::decide::conditions::Conditions;
use crate::plan::decide::decisions::Decisions;
use crate::plan::draft::{Draft, Flags};
use crate::plan::evaluate::desired;
use crate::plan::evaluate::desired::{Instance, Wanted};
use crate::plan::evaluate::scope::object;
use crate::plan::evaluate::{Evaluation, lifecycle};
use crate::plan::facts::deferrals::Deferral;
use crate::plan::facts::names::Holder;
use crate::plan::facts::prior::Live;
use crate::plan::facts::prior::stored_attributes;
use crate::plan::facts::redactor;
use crate::plan::facts::unavailable::{self, PlannedObject};
use crate::plan::findings::Findings;
use crate::plan::input::Mode;
use crate::plan::{Action, Change, Drift, Missing, Staying, diagnostics};
use crate::schema::{OnChange, SeenIn, TypeSchema};
use crate::sorted::Set;
use crate::state::{Entry, Object, Progress};
use crate::stored::{Stored, seal_attributes};
use crate::value::{Attributes, Datum, Paths, Value};

/// The results of the passes and waves that ran before an instance is decided.
pub(super) struct Reached<'p, 'a> {
    pub(super) context: &'p Context<'a>,
    pub(super) evaluation: &'p Evaluation<'a>,
    pub(super) decisions: &'p Decisions,
}

/// The result of deciding an instance.
pub(in crate::plan) struct Outcome {
    /// The planned object, as other resources may refer to it.
    pub(in crate::plan) object: Datum,
    /// The decided change; none if the spec disables the instance, or is wrong about it.
    pub(in crate::plan) draft: Option<Draft>,
    /// The secrets of the object that no run has in clear.
    pub(in crate::plan) unavailable: Vec<Missing>,
    /// True if the spec wants it to exist.
    pub(in crate::plan) is_enabled: bool,
    pub(in crate::plan) found: Findings,
}

/// An error for an instance that may not be as the spec says. A diagnostic has told the reason.
pub(in crate::plan) struct Refused;

/// Decides about an instance, with the results of what was planned before it.
pub(in crate::plan) fn decide<'a>(
    reached: &Reached<'_, 'a>,
    resource: &'a ResourceConfig,
    instance: &Instance<'_>,
) -> Outcome {
    let Instance { address, each } = instance;
    let Reached { context, evaluation, decisions } = reached;
    let input = context.input;
    let entry = input.snapshot.entries.get(address);
    let scope = context.scope(evaluation);
    let scope = scope.with_each(each.as_ref());
    let mut found = Findings::default();
    let diagnostics = &mut found.diagnostics;
    let enabled = resource.lifecycle.enabled.as_ref();
    let enabled = desired::flag(enabled, "enabled", &scope, address, diagnostics);
    let is_enabled = enabled != Some(false);
    let of_enabled = scope.touched();
    let is_evaluated = is_enabled && !evaluation.planned.spent.is_over();
    let mut wanted =
        if is_evaluated { desired::wanted(resource, address, &scope, diagnostics) } else { None };
    let conditions = Conditions::new(resource, address, &scope);
    if let Some(wanted) = &mut wanted {
        wanted.depends_on(address, &of_enabled);
        wanted.depends_on(address, &conditions.dependencies());
    }
    let mut flags = lifecycle::flags(resource, &scope, address, diagnostics);
    let current = entry.and_then(|entry| entry.current.as_ref());
    let key = &input.snapshot.seal_key;
    let fired = triggers::fired(resource, &scope, &decisions.changing, current, key);
    flags.triggered = fired.is_some();
    let looked = Looked { reached, resource, address, entry, flags, fired };
    let mut decided = wanted.and_then(|wanted| looked.decide(&wanted, &mut found).ok());
    if let Some(Decided { object, draft, .. }) = &mut decided
        && draft.deferral.is_none()
    {
        conditions.judge(object, &mut draft.change, &mut found.diagnostics);
    }
    let (object, draft, unavailable) = match decided {
        Some(decided) => (decided.object, Some(decided.draft), decided.unavailable),
        None if !is_enabled => (Datum::plain(Value::Null), None, Vec::new()),
        // A diagnostic has reported what could not be evaluated. The object is planned as unknown, so that
        // expressions that refer to it are still checked.
        None => {
            let unknown = action::all_unknown(&resource.schema, address);
            (object(unknown, Paths::none()), None, Vec::new())
        }
    };
    Outcome { object, draft, unavailable, is_enabled, found }
}

/// An instance of which everything but the attributes was evaluated.
struct Looked<'p, 'a> {
    reached: &'p Reached<'p, 'a>,
    resource: &'a ResourceConfig,
    address: &'p Address,
    entry: Option<&'a Entry>,
    flags: Flags,
    fired: Option<triggers::Fired>,
}

/// The decision about one instance, with its planned object.
struct Decided {
    object: Datum,
    draft: Draft,
    unavailable: Vec<Missing>,
}

impl Looked<'_, '_> {
    fn decide(mut self, wanted: &Wanted, found: &mut Findings) -> Result<Decided, Refused> {
        let Self { reached, resource, address, entry, .. } = self;
        let context = reached.context;
        let input = context.input;
        self.keeps_its_provider(&mut found.diagnostics)?;
        let deferral = match self.holder_of_its_name(wanted) {
            Some(holder) => {
                found.diagnostics.push(diagnostics::name_in_doubt(resource, address, holder));
                Some(Deferral::InDoubt)
            }
            None => self.deferral(wanted),
        };
        let imported = match &deferral {
            Some(_) => None,
            None => import::imported(input, resource, address, wanted, &mut found.diagnostics)?,
        };
        let current = entry.and_then(|entry| entry.current.as_ref());
        let live = match &imported {
            Some(imported) => Some(imported.live()),
            None => {
                current.and_then(|current| context.live(address, current, &resource.schema, found))
            }
        };
        // An import has no earlier object that a trigger could replace.
        self.flags.triggered &= imported.is_none();
        let drift = current.and_then(|current| self.drift(current, live.as_ref(), wanted));
        let key = &input.snapshot.seal_key;
        let live = live.map(|live| as_made(live, wanted, (&resource.schema, key)));
        let case = Case {
            resource,
            address,
            wanted,
            live: live.as_ref(),
            vanished: live.is_none() && current.is_some(),
            flags: self.flags,
            deferral: deferral.as_ref(),
            asked: input.options.replace.contains(address),
            key: &input.snapshot.seal_key,
        };
        let mut decision = decide_case(context, &case, &mut found.diagnostics);
        let import = input.config.imports.get(address);
        if let (Some(imported), Some(import)) = (&imported, import) {
            found.seen.extend(imported.take_over(&mut decision, import, &mut found.diagnostics));
        }
        let mut draft = decision.draft;
        ignored_references::remember(input, resource, wanted, &mut draft.change);
        if let Some(drift) = &drift {
            mark_drifted_causes(drift, &input.snapshot.seal_key, &mut draft.change);
        }
        let planned = redactor::Planned { wanted, attributes: &decision.planned, draft: &draft };
        draft.redacted = self.redact(live.as_ref(), drift, &planned, found);
        self.note_seen(&draft, live.as_ref(), found);
        let observed = match &imported {
            Some(imported) => Some(&*imported.attributes),
            None => current.and_then(|current| context.observed(address, current)),
        };
        draft.missing = self.missing(wanted, &draft, &decision.planned);
        let unavailable = PlannedObject {
            address,
            schema: &resource.schema,
            action: draft.change.action,
            planned: &decision.planned,
            live: live.as_ref().map(|live| &*live.attributes),
            observed,
        }
        .unavailable();
        unavailable::mark(&unavailable, &resource.schema, &mut decision.planned);
        if live.is_some() && imported.is_none() {
            self.note_triggered(current, found);
        }
        let sensitive = draft.change.sensitive.clone();
        Ok(Decided { object: object(decision.planned, sensitive), draft, unavailable })
    }

    /// Seals the secrets of the live object and of its drift.
    fn redact(
        &self,
        live: Option<&Live<'_>>,
        drift: Option<Drift>,
        planned: &redactor::Planned<'_>,
        found: &mut Findings,
    ) -> Option<Arc<Attributes>> {
        let redactor = &self.reached.context.redactor;
        if let Some(mut drift) = drift {
            redactor.redact_drift(&mut drift, planned);
            drift.proposal = proposal(self.resource, &drift);
            found.drift.push(drift);
        }
        live.map(|live| redactor.redact(&live.attributes, planned))
    }

    /// Returns the secrets that the desired attributes need and no run has in clear. An update may also send
    /// along an attribute that stays as it is, because the spec does not give it or ignores it, and whose
    /// value no answer ever shows.
    fn missing(
        &self,
        wanted: &Wanted,
        draft: &Draft,
        planned: &Attributes,
    ) -> BTreeMap<Name, Vec<Missing>> {
        let Self { reached, resource, address, .. } = self;
        let known = &reached.evaluation.planned.unavailable;
        let behind = |(name, value): (&Name, &Value)| {
            let missing = known.behind(value);
            (!missing.is_empty()).then(|| (name.clone(), missing))
        };
        let mut missing: BTreeMap<Name, Vec<Missing>> = BTreeMap::new();
        if !known.is_empty() {
            missing.extend(wanted.attributes.iter().filter_map(behind));
        }
        if matches!(draft.change.action, Action::Update | Action::Import) {
            let kept = unavailable::kept(&resource.schema, planned);
            let kept = kept.filter(|name| !draft.change.secrets.contains_key(*name));
            missing.extend(kept.map(|name| (name.clone(), vec![Missing::kept(address, name)])));
        }
        missing
    }

    /// Refuses an instance whose provider differs from that of its object: at another provider the same id
    /// may belong to somebody else's object.
    fn keeps_its_provider(&self, found: &mut Diagnostics) -> Result<(), Refused> {
        let Self { resource, address, entry, .. } = self;
        let wanted = resource.provider.of(address);
        let known = &self.reached.context.input.providers;
        if !known.contains_key(&wanted) {
            let known = known.keys().filter(|name| resource.provider.may_be(name));
            found.push(diagnostics::no_provider_instance(resource, address, &wanted, known));
            return Err(Refused);
        }
        let has_objects = |entry: &&Entry| entry.current.is_some() || !entry.deposed.is_empty();
        match entry.filter(has_objects) {
            Some(entry) if entry.provider != wanted => {
                found.push(diagnostics::other_provider(resource, address, &entry.provider));
                Err(Refused)
            }
            _ => Ok(()),
        }
    }

    /// Returns the reason to leave the instance alone; none if the plan may change it.
    fn deferral(&self, wanted: &Wanted) -> Option<Deferral> {
        let Self { reached, address, .. } = self;
        let Reached { context, decisions, .. } = reached;
        if context.blocked.contains(address)
            || wanted.referred().any(|on| decisions.in_doubt.contains(on))
        {
            return Some(Deferral::InDoubt);
        }
        let is_meant = context.selection.includes(address);
        (context.input.options.mode == Mode::RefreshOnly || !is_meant).then_some(Deferral::LeftOut)
    }

    /// Returns the instance that may hold the name that this one is to get, because a call in doubt leaves
    /// the name's owner open; none if there is no such instance.
    fn holder_of_its_name(&self, wanted: &Wanted) -> Option<Holder<'_>> {
        let Self { reached, resource, address, entry, .. } = self;
        let context = reached.context;
        if context.names_in_doubt.is_empty() {
            return None;
        }
        let current = entry.and_then(|entry| entry.current.as_ref());
        let live = current.and_then(|it| stored_attributes(&it.attributes, &resource.schema).ok());
        let of = (*resource, *address);
        let key = &context.input.snapshot.seal_key;
        context.names_in_doubt.holder(of, (&wanted.attributes, live.as_ref()), key)
    }

    /// Returns the drift of the object; none if there is no drift, or a call in doubt is about the object and
    /// may have caused the difference.
    fn drift(&self, object: &Object, live: Option<&Live<'_>>, wanted: &Wanted) -> Option<Drift> {
        let Self { reached, resource, address, .. } = self;
        let context = reached.context;
        if context.blocked.contains(*address) {
            return None;
        }
        let schema = &resource.schema;
        let Some(live) = live else {
            let before = stored_attributes(&object.attributes, schema).ok()?;
            let (address, attributes) = (Address::clone(address), Vec::new());
            let (after, proposal, wanted) = (None, None, Attributes::new());
            return Some(Drift { address, before, after, attributes, proposal, wanted });
        };
        if !object.progress.is_ready() {
            return None;
        }
        let mut attributes = drifted(live, schema, &context.input.snapshot.seal_key);
        // A change of an attribute that the spec ignores is no drift.
        attributes.retain(|name| !resource.lifecycle.ignore_changes.contains(name));
        let of_spec = |name: &Name| Some((name.clone(), wanted.attributes.get(name)?.clone()));
        (!attributes.is_empty()).then(|| Drift {
            address: Address::clone(address),
            before: (*live.stored).clone(),
            after: Some((*live.attributes).clone()),
            wanted: attributes.iter().filter_map(of_spec).collect(),
            attributes,
            proposal: None,
        })
    }

    /// Records the triggers that fire before anything is called: their replace may fail, or be no part of
    /// this plan.
    fn note_triggered(self, current: Option<&Object>, found: &mut Findings) {
        if let (Some(made_with), Some(object)) = (self.fired, current)
            && !made_with.is_empty()
        {
            let (address, object) = (self.address.clone(), object.id.clone());
            found.seen.push(Record::Triggered { address, object, made_with });
        }
    }

    /// Records what the state takes over without a call.
    fn note_seen(&self, draft: &Draft, live: Option<&Live<'_>>, found: &mut Findings) {
        let (Some(live), Some(entry)) = (live, self.entry) else { return };
        let change = &draft.change;
        if change.action != Action::NoOp || draft.deferral == Some(Deferral::InDoubt) {
            return;
        }
        let key = &self.reached.context.input.snapshot.seal_key;
        let shown = redacted(live, draft);
        let record = if draft.deferral.is_some() {
            // Sensitive values of an object that did not change need no redaction again.
            let moved = live.attributes != live.stored;
            accepted(self.address, if moved { &shown } else { live }, entry)
        } else {
            let next = Next {
                progress: &Progress::Ready,
                managed: &change.managed,
                sensitive: &change.sensitive,
                dependencies: &change.dependencies,
            };
            next.record(self.address, &as_written(&shown, change, key), entry)
        };
        found.seen.extend(record);
    }
}

/// Decides a case. Leaves the instance alone instead in two cases. Either an object that stays because of a
/// call in doubt uses the old object of the replace. Or the change would finish a replace and take the name
/// of an old object that is still used.
fn decide_case(context: &Context<'_>, case: &Case<'_>, found: &mut Diagnostics) -> Decision {
    let mut own = Diagnostics::new();
    let decision = action::decide(case, &mut own);
    let user = used_objects::user_of_old(context.input, &context.used, &decision.draft);
    let is_replace = decision.draft.change.action == Action::Replace;
    if let Some(user) = user.filter(|user| user.why == Staying::InDoubt || !is_replace) {
        let deferral = Deferral::still_used(user);
        return action::decide(&Case { deferral: Some(&deferral), ..*case }, found);
    }
    found.extend(own);
    decision
}

/// Returns a live object with the spec's values for attributes that no run knows. An attribute that no answer
/// shows and that no update changes is missing in the state of an object that was imported, or found after a
/// create in doubt. A replace for the sake of such an attribute would lose an object that may well be as the
/// spec wants it.
fn as_made<'a>(
    live: Live<'a>,
    wanted: &Wanted,
    (schema, key): (&TypeSchema, &SealKey),
) -> Live<'a> {
    let is_assumed = |name: &Name, value: &Value| {
        let attribute = schema.attributes.get(name);
        let is_fixed = attribute
            .is_some_and(|it| it.seen_in == SeenIn::Never && it.on_change == OnChange::Replace);
        is_fixed && value.is_known() && !live.attributes.contains_key(name)
    };
    let assumed = wanted.attributes.iter().filter(|(name, value)| is_assumed(name, value));
    let assumed: Attributes = assumed.map(|(name, value)| (name.clone(), value.clone())).collect();
    if assumed.is_empty() {
        return live;
    }
    let Live { object, mut attributes, stored } = live;
    Arc::make_mut(&mut attributes).extend(seal_attributes(&assumed, &wanted.sensitive, key));
    Live { object, attributes, stored }
}

/// Returns a live object in which the secrets that the state has in clear are sealed.
fn redacted<'a>(live: &Live<'a>, draft: &Draft) -> Live<'a> {
    let attributes = draft.redacted.as_ref().unwrap_or(&live.attributes).clone();
    Live { object: live.object, attributes, stored: live.stored.clone() }
}

/// Returns a live object with the values that the spec gives in clear, for an object that does not change. A
/// value was sealed because it equals a secret; if the spec gives the same value in clear here, it is no
/// secret here.
fn as_written<'a>(live: &Live<'a>, change: &Change, key: &SealKey) -> Live<'a> {
    let (object, stored, mut attributes) =
        (live.object, live.stored.clone(), live.attributes.clone());
    for name in &change.managed {
        let Some(seen) = attributes.get(name).filter(|seen| seen.holds_sealed()) else { continue };
        let written = change.after.as_ref().and_then(|after| after.get(name));
        if let Some(written) = written.filter(|it| *it != seen && diff::agree(it, seen, key)) {
            let written = written.clone();
            Arc::make_mut(&mut attributes).insert(name.clone(), written);
        }
    }
    Live { object, attributes, stored }
}

/// Returns the lines for the spec that keep the drift and may be shown; none if there is no such line. A line
/// that the spec already has is not proposed.
fn proposal(resource: &ResourceConfig, drift: &Drift) -> Option<String> {
    let live = drift.after.as_ref()?;
    let differs = |name: &&Name| {
        let pair = drift.wanted.get(*name).zip(live.get(*name));
        pair.is_none_or(|(wanted, live)| !wanted.same(live))
    };
    let names: Vec<Name> = drift.attributes.iter().filter(differs).cloned().collect();
    action::proposal(resource, &names, live)
}

fn mark_drifted_causes(drift: &Drift, key: &SealKey, change: &mut Change) {
    for cause in &mut change.causes {
        let wanted = change.after.as_ref().and_then(|after| after.get(&cause.attribute));
        let stored = drift.before.get(&cause.attribute);
        cause.drifted = drift.attributes.contains(&cause.attribute)
            && wanted.zip(stored).is_some_and(|(w, s)| diff::agree(w, s, key));
    }
}

/// Returns the managed attributes whose live value differs from the state's.
fn drifted(live: &Live<'_>, schema: &TypeSchema, key: &SealKey) -> Vec<Name> {
    let managed = live.object.managed.iter().filter(|name| diff::is_stable(schema, name));
    let objects = (&*live.stored, &*live.attributes);
    diff::differing(managed, objects, (schema, key)).into_iter().collect()
}

/// Returns the record that accepts the live attributes and changes nothing else; none if nothing differs from
/// the state.
pub(in crate::plan) fn accepted(
    address: &Address,
    live: &Live<'_>,
    entry: &Entry,
) -> Option<Record> {
    let next = Next {
        progress: &live.object.progress,
        managed: &live.object.managed,
        sensitive: &live.object.sensitive,
        dependencies: &entry.dependencies,
    };
    next.record(address, live, entry)
}

/// The values, beside the attributes, that the state is to hold for an object.
struct Next<'a> {
    progress: &'a Progress,
    managed: &'a Set<Name>,
    sensitive: &'a Paths,
    dependencies: &'a Set<Address>,
}

impl Next<'_> {
    /// Returns the record that writes these values and the live attributes to the state; none if the state
    /// has them already.
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
