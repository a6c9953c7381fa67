//! The action on one instance, decided by comparing the wanted attributes with the live ones. Nothing is
//! looked up.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::{Address, Name};
use crate::config::constant::constant;
use crate::config::{ResourceConfig, written};
use crate::diagnostics::Diagnostics;
use crate::expression::Expr;
use crate::journal::ProgramKind;
use crate::plan::decide::case::Case;
use crate::plan::decide::resume::RemainingPhases;
use crate::plan::decide::rules;
use crate::plan::decide::{diff, resume, unset};
use crate::plan::draft::Draft;
use crate::plan::facts::names;
use crate::plan::facts::prior;
use crate::plan::facts::prior::Live;
use crate::plan::{Action, Cause, Change, Reason, diagnostics};
use crate::schema::{OnChange, Presence, ReplaceOrder, TypeSchema, Unset};
use crate::sorted::Set;
use crate::state::Progress;
use crate::stored;
use crate::value::{Attributes, Path, Paths, Value};

/// The decision about an instance.
pub(in crate::plan) struct Decision {
    pub(in crate::plan) draft: Draft,
    /// The planned object, in clear as far as its values are known.
    pub(in crate::plan) planned: Arc<Attributes>,
}

/// Decides the change of an instance.
pub(in crate::plan) fn decide(case: &Case<'_>, found: &mut Diagnostics) -> Decision {
    let (goal, cleared) = goal(case);
    let verdict = verdict(case, (&goal, cleared));
    let unmanaged = unmanaged(case, &verdict);
    warn_stopped(case, &verdict, found);
    let mut sensitive = case.wanted.sensitive.clone();
    let planned = Arc::new(planned(case, (&verdict, &goal), &mut sensitive));
    let deferred = rules::check(case, verdict.action, &planned, found);
    let change = change(case, &verdict, (&planned, sensitive), deferred);
    let schema = case.resource.schema.clone();
    let retains = retains(case, &verdict);
    if let Some(live) = case.live.filter(|_| retains) {
        let drained = resume::drained(live, (&schema, case.key));
        if !drained.is_empty() {
            found.push(diagnostics::drained_is_retained(case.resource, &change, &drained));
        }
    }
    let create_first = create_first(case, (&change, retains), found);
    let Verdict { changed, rest, .. } = verdict;
    let deferral = case.deferral.cloned();
    let (keeps_old, redacted) = (false, None);
    let draft = Draft {
        change,
        redacted,
        schema,
        flags: case.flags,
        create_first,
        retains,
        keeps_old,
        changed,
        unmanaged,
        missing: BTreeMap::new(),
        rest,
        deferral,
    };
    let planned = seen_by_others(case, planned);
    Decision { draft, planned }
}

/// Returns the planned object as other resources see it. An unknown value that may turn out to be another
/// word for null, or to be null in place of a default, becomes a reference to what the object shows after its
/// call.
fn seen_by_others(case: &Case<'_>, planned: Arc<Attributes>) -> Arc<Attributes> {
    let schema = &case.resource.schema;
    let may_differ = |name: &Name| {
        let attribute = schema.attributes.get(name);
        attribute.is_some_and(|it| !it.nulls.is_empty() || it.default.is_some())
    };
    let is_open = |(name, value): (&Name, &Value)| !value.is_known() && may_differ(name);
    if !planned.iter().any(is_open) {
        return planned;
    }
    let shown = |(name, value): (&Name, &Value)| {
        let shown =
            if is_open((name, value)) { slot(case.address, name, schema) } else { value.clone() };
        (name.clone(), shown)
    };
    Arc::new(planned.iter().map(shown).collect())
}

/// The action on an instance, with its reason and the attributes that it concerns.
struct Verdict {
    action: Action,
    reason: Reason,
    /// The attributes that differ.
    changed: BTreeSet<Name>,
    /// The changed attributes that cannot be changed in place.
    replacing: BTreeSet<Name>,
    /// The attributes that the spec gave the last time and no longer gives, and whose values the change
    /// clears.
    cleared: BTreeSet<Name>,
    /// The phases that an earlier run left undone, for an update.
    rest: Option<RemainingPhases>,
}

/// Returns the wanted attributes of the live object, if there is one, and the names of the attributes that
/// are cleared among them.
fn goal<'a>(case: &Case<'a>) -> (Cow<'a, Attributes>, BTreeSet<Name>) {
    let wanted = &case.wanted.attributes;
    let Some(live) = case.live else { return (Cow::Borrowed(wanted), BTreeSet::new()) };
    let mut goal = resume::goal(case.resource, wanted, live);
    let cleared = unset::cleared(case, live, &goal);
    let names = cleared.keys().cloned().collect();
    if !cleared.is_empty() {
        goal.to_mut().extend(cleared);
    }
    (goal, names)
}

fn verdict(case: &Case<'_>, (goal, cleared): (&Attributes, BTreeSet<Name>)) -> Verdict {
    let plain = |action, reason| Verdict {
        action,
        reason,
        changed: BTreeSet::new(),
        replacing: BTreeSet::new(),
        cleared: BTreeSet::new(),
        rest: None,
    };
    if let Some(deferral) = case.deferral {
        return plain(Action::NoOp, deferral.reason());
    }
    let Some(live) = case.live else {
        let reason = if case.vanished { Reason::Vanished } else { Reason::NotInState };
        return plain(Action::Create, reason);
    };
    let schema = (&*case.resource.schema, case.key);
    let mut changed = diff::differing(goal.keys(), (goal, &live.attributes), schema);
    changed.retain(|name| !is_made_already(case, live, name));
    let replacing: BTreeSet<Name> = changed
        .iter()
        .filter(|name| case.resource.schema.attributes[*name].on_change == OnChange::Replace)
        .cloned()
        .collect();
    let rest = resume::rest(live, &changed, (&case.resource.schema, case.key));
    let (action, reason) = if case.asked {
        (Action::Replace, Reason::Asked)
    } else if !replacing.is_empty() {
        (Action::Replace, Reason::CannotUpdate)
    } else if case.flags.triggered {
        (Action::Replace, Reason::Triggered)
    } else if rest.is_none() && changed.is_empty() {
        (Action::NoOp, Reason::InSync)
    } else {
        (Action::Update, reason_to_update(live, rest))
    };
    let rest = rest.filter(|_| action == Action::Update);
    Verdict { action, reason, changed, replacing, cleared, rest }
}

/// Returns true if an attribute that no run can compute now has the inputs that the live one was made of.
fn is_made_already(case: &Case<'_>, live: &Live<'_>, name: &Name) -> bool {
    let inputs = case.wanted.secret_inputs.get(name);
    let (fingerprint, value) =
        (live.object.input_fingerprints.get(name), live.attributes.get(name));
    inputs.zip(value).is_some_and(|(inputs, value)| {
        fingerprint.is_some_and(|known| inputs.fingerprint(value, case.key) == *known)
    })
}

fn reason_to_update(live: &Live<'_>, rest: Option<RemainingPhases>) -> Reason {
    match (&live.object.progress, rest.map(|rest| rest.kind)) {
        (Progress::Deleting { .. }, _) => Reason::DeleteInterrupted,
        (_, Some(ProgramKind::Create)) => Reason::Unfinished,
        (_, Some(_)) => Reason::HalfChanged,
        (_, None) => Reason::Differs,
    }
}

/// Warns about an object that a delete may have stopped and that no phase of this plan starts again, because
/// the spec wants the object.
fn warn_stopped(case: &Case<'_>, verdict: &Verdict, found: &mut Diagnostics) {
    let Some(live) = case.live.filter(|_| case.deferral.is_none()) else { return };
    let stays = matches!(verdict.action, Action::NoOp | Action::Update) && verdict.rest.is_none();
    if stays && resume::may_be_stopped(live, &case.resource.schema) {
        found.push(diagnostics::may_be_stopped(case.resource, case.address));
    }
}

/// Returns true if a replace lets the old object go and leaves it alone. A half-made object is not retained.
fn retains(case: &Case<'_>, verdict: &Verdict) -> bool {
    let is_whole = case.live.is_some_and(|live| !is_half_made(case, live));
    verdict.action == Action::Replace && case.flags.retain && is_whole
}

/// Returns true if a replace makes the new object first. If the new object needs from the start a name that
/// only one object can have, and the old object has that name, the old object is deleted first. If the spec
/// asks for the other order in that case, a diagnostic reports it.
fn create_first(
    case: &Case<'_>,
    (change, retains): (&Change, bool),
    found: &mut Diagnostics,
) -> bool {
    let schema = &case.resource.schema;
    let said = case.flags.create_first;
    let first = said.unwrap_or(schema.replace == ReplaceOrder::CreateFirst);
    // A retained object keeps its name, which another diagnostic reports.
    if !first || retains || change.action != Action::Replace {
        return first;
    }
    let Some(name) = names::in_the_way(change, schema, case.key) else { return first };
    if said == Some(true) {
        found.push(diagnostics::cannot_be_made_first(case.resource, case.address, name));
    }
    said == Some(true)
}

fn is_half_made(case: &Case<'_>, live: &Live<'_>) -> bool {
    let schema = &case.resource.schema;
    resume::is_half_made(&live.object.progress, &live.attributes, (schema, case.key))
}

/// Returns the attributes that the spec gave the last time and no longer gives, and that nothing clears.
fn unmanaged(case: &Case<'_>, verdict: &Verdict) -> Vec<Name> {
    let Some(live) = case.live else { return Vec::new() };
    if matches!(verdict.action, Action::Replace) || case.deferral.is_some() {
        return Vec::new();
    }
    let is_unmanaged = |name: &&Name| {
        let known = case.resource.schema.attributes.get(*name);
        let follows = known.and_then(|known| known.follows.as_ref());
        let is_derived = follows.is_some_and(|name| verdict.changed.contains(name));
        let is_silent = !case.wanted.attributes.contains_key(*name);
        is_silent && !verdict.cleared.contains(*name) && known.is_some() && !is_derived
    };
    live.object.managed.iter().filter(is_unmanaged).cloned().collect()
}

/// Returns the expressions by which apply computes the secrets that it sends. An ignored attribute keeps its
/// live value, so its expression is left out unless it gives that same value.
fn secrets(case: &Case<'_>, verdict: &Verdict) -> BTreeMap<Name, Expr> {
    let mut secrets = case.wanted.secrets.clone();
    if let Some(live) = case.live.filter(|_| verdict.action != Action::Replace) {
        let goal = resume::goal(case.resource, &case.wanted.attributes, live);
        let is_live = |name: &Name| {
            let live = live.attributes.get(name).unwrap_or(&Value::Null);
            let wanted = case.wanted.attributes.get(name);
            wanted.is_some_and(|wanted| diff::agree(wanted, live, case.key))
        };
        secrets.retain(|name, _| goal.contains_key(name) || is_live(name));
    }
    secrets
}

/// Returns the planned object.
fn planned(
    case: &Case<'_>,
    (verdict, goal): (&Verdict, &Attributes),
    sensitive: &mut Paths,
) -> Attributes {
    let schema = &case.resource.schema;
    let base = case.live.filter(|_| verdict.action != Action::Replace);
    if base.is_none() && case.deferral.is_some() {
        return all_unknown(schema, case.address);
    }
    // For an object that is made anew, ignored changes do not matter.
    let goal = if base.is_some() { goal } else { &case.wanted.attributes };
    let mut planned = Attributes::with_capacity(schema.attributes.len());
    for (name, attribute) in &schema.attributes {
        let value = match (goal.get(name), base) {
            (Some(value), Some(live)) if keeps_live(case, name, verdict) => {
                clear_or_live(value, live.attributes.get(name), case)
            }
            (Some(value), _) => value.clone(),
            (None, Some(live)) => {
                let value = live.attributes.get(name).cloned().unwrap_or(Value::Null);
                let volatile = attribute.volatile && verdict.action != Action::NoOp;
                let to_come = resume::is_to_come(attribute, &value, (live, verdict.rest));
                let follows = attribute.follows.as_ref();
                let stale = follows.is_some_and(|name| verdict.changed.contains(name));
                if volatile || to_come || stale { slot(case.address, name, schema) } else { value }
            }
            (None, None) if attribute.presence == Presence::Computed => {
                slot(case.address, name, schema)
            }
            (None, None) if attribute.server_default => slot(case.address, name, schema),
            (None, None) => Value::Null,
        };
        planned.insert(name.clone(), value);
    }
    if let (Some(live), Some(_)) = (base, case.deferral) {
        sensitive.extend_below(&Path::root(), &live.object.sensitive);
        return planned;
    }
    let before = (verdict.action == Action::NoOp).then(|| planned.clone());
    prior::derive(schema, &mut planned, sensitive);
    // If nothing changes, a derived attribute that cannot be derived again (from a sealed value) keeps its
    // value.
    for (name, value) in before.into_iter().flatten() {
        if planned.get(&name).is_some_and(|derived| !derived.is_known()) {
            planned.insert(name, value);
        }
    }
    planned
}

/// Returns true if an attribute of a live object keeps its live value although the spec gives one.
fn keeps_live(case: &Case<'_>, name: &Name, verdict: &Verdict) -> bool {
    case.deferral.is_some() || !verdict.changed.contains(name)
}

/// Returns the wanted value if it agrees with the live one, because a wanted secret is in clear for later
/// evaluations. Else returns the live value, which is kept against the spec.
fn clear_or_live(wanted: &Value, live: Option<&Value>, case: &Case<'_>) -> Value {
    let live = live.cloned().unwrap_or(Value::Null);
    if diff::agree(wanted, &live, case.key) { wanted.clone() } else { live }
}

fn slot(address: &Address, name: &Name, schema: &TypeSchema) -> Value {
    Value::unknown(schema.attributes[name].ty.clone(), Expr::slot(address, name))
}

/// Returns an object with all attributes unknown.
pub(in crate::plan) fn all_unknown(schema: &TypeSchema, address: &Address) -> Attributes {
    schema.attributes.keys().map(|name| (name.clone(), slot(address, name, schema))).collect()
}

fn change(
    case: &Case<'_>,
    verdict: &Verdict,
    (planned, sensitive): (&Arc<Attributes>, Paths),
    deferred: usize,
) -> Change {
    let schema = &case.resource.schema;
    let replaces = verdict.action == Action::Replace;
    let after = if sensitive.is_empty() {
        planned.clone()
    } else {
        let sealed = stored::seal_attributes(planned, &sensitive, case.key);
        Arc::new(hide_partly_known(&sealed, &sensitive, case))
    };
    let retains = retains(case, verdict);
    let is_harmless = retains || case.live.is_some_and(|live| is_half_made(case, live));
    let loss = schema.delete_effect.clone().filter(|_| replaces && !is_harmless);
    let effects = match (retains, replaces) {
        (true, _) => vec!["the old object leaves the state and is left alone".to_owned()],
        (false, true) => Vec::new(),
        (false, false) => effects(schema, &verdict.changed),
    };
    Change {
        address: case.address.clone(),
        moved_from: None,
        deposed: false,
        provider: case.resource.provider.of(case.address),
        action: verdict.action,
        reason: verdict.reason.clone(),
        before: case.live.map(|live| live.attributes.clone()),
        after: (case.live.is_some() || case.deferral.is_none()).then_some(after),
        causes: causes(case, verdict),
        object: case.live.map(|live| live.object.id.clone()),
        progress: case.live.map(|live| live.object.progress.clone()).unwrap_or_default(),
        sensitive,
        secrets: secrets(case, verdict),
        managed: managed(case, verdict),
        dependencies: case.wanted.dependencies.clone(),
        effects,
        loss,
        cost: None,
        deferred_rules: deferred,
        conditions: Vec::new(),
        allow_unknown: case.resource.lifecycle.allow_unknown.iter().cloned().collect(),
        ignored: case.resource.lifecycle.ignore_changes.iter().cloned().collect(),
        span: Some(case.resource.header),
    }
}

/// Returns the attributes that the spec manages: those that it gives, and those whose values it clears. A
/// cleared value that comes back, perhaps only by a read that was out of date, is cleared again.
fn managed(case: &Case<'_>, verdict: &Verdict) -> Set<Name> {
    let is_value = |name: &&Name| {
        let attribute = case.resource.schema.attributes.get(*name);
        attribute.is_some_and(|it| matches!(it.unset, Some(Unset::Value(_))))
    };
    let stays = !matches!(verdict.action, Action::Replace);
    let cleared = verdict.cleared.iter().filter(|_| stays).filter(is_value);
    case.wanted.attributes.keys().chain(cleared).cloned().collect()
}

/// Makes a value that is secret as a whole and known in part unknown as a whole: its keys would show. Its
/// residual is the expression by which apply computes it or, if there is none, a reference to the object
/// itself.
fn hide_partly_known(sealed: &Attributes, sensitive: &Paths, case: &Case<'_>) -> Attributes {
    let hide = |(name, value): (&Name, &Value)| {
        let is_secret = || sensitive.covers(&Path::attribute(name.clone()));
        let is_partly =
            matches!(value, Value::Map(_) | Value::List(_) | Value::Set(_)) && !value.is_known();
        if !is_partly || !is_secret() {
            return (name.clone(), value.clone());
        }
        let residual = case.wanted.secrets.get(name).cloned();
        let residual = residual.unwrap_or_else(|| Expr::slot(case.address, name));
        (name.clone(), Value::unknown(value.type_of().nameless(), residual))
    };
    sealed.iter().map(hide).collect()
}

fn causes(case: &Case<'_>, verdict: &Verdict) -> Vec<Cause> {
    if verdict.action == Action::NoOp {
        return Vec::new();
    }
    let cause = |name: &Name| Cause {
        attribute: name.clone(),
        replaces: verdict.replacing.contains(name),
        span: case.resource.attributes.get(name).map(|item| item.value.span),
        drifted: false,
        unset: verdict.cleared.contains(name),
    };
    verdict.changed.iter().map(cause).collect()
}

fn effects(schema: &TypeSchema, changed: &BTreeSet<Name>) -> Vec<String> {
    let mut effects = Vec::new();
    for effect in changed.iter().filter_map(|name| schema.attributes[name].effect.as_ref()) {
        if !effects.contains(effect) {
            effects.push(effect.clone());
        }
    }
    effects
}

/// Returns true if a delete of an object of the type loses data: a type with an attribute whose change loses
/// data loses it by any replace, too.
pub(in crate::plan) fn holds_data(schema: &TypeSchema) -> bool {
    schema.attributes.values().any(|attribute| attribute.data_loss)
}

/// Returns the TOML lines to write into the spec to keep the drift: a line for each attribute. None if the spec
/// does not give them all as plain values, or gives them for other instances, too.
pub(in crate::plan) fn proposal(
    resource: &ResourceConfig,
    drifted: &[Name],
    live: &Attributes,
) -> Option<String> {
    let is_shared = resource.for_each.is_some() || !resource.block.module.is_root();
    if is_shared || drifted.is_empty() {
        return None;
    }
    let line = |name: &Name| {
        constant(&resource.attributes.get(name)?.value.expr)?;
        Some(format!("{name} = {}", written::value(live.get(name)?)?))
    };
    let lines: Option<Vec<String>> = drifted.iter().map(line).collect();
    Some(lines?.join("\n"))
}
