//! Decides removals: entries of the state that the spec does not want, deposed objects and leftovers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::Address;
use crate::config::{RemovalConfig, ResourceConfig, SpecExpr};
use crate::diagnostics::Diagnostics;
use crate::journal::Record;
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::{accepted, resume};
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::gone::GoneInstances;
use crate::plan::facts::deferrals::{Deferral, UsedObjects};
use crate::plan::facts::prior::Live;
use crate::plan::findings::Findings;
use crate::plan::input::Mode;
use crate::plan::{Action, Change, Reason, Staying, Use, diagnostics};
use crate::schema::TypeSchema;
use crate::sorted::Set;
use crate::state::{Entry, Object, Progress, Watched};
use crate::stored::Stored;
use crate::value::{Attributes, Path, Value};

/// Plans the end of every object that the walk did not handle.
pub(in crate::plan) fn remove<'a>(
    context: &Context<'a>,
    evaluation: &Evaluation<'a>,
    used: &UsedObjects,
    decisions: &mut Decisions,
    found: &mut Findings,
) {
    let mut removal = Removal {
        context,
        decisions,
        used,
        gone: GoneInstances::new(context, evaluation),
        drafts: Vec::new(),
        found: Findings::default(),
    };
    remove_all(&mut removal);
    let Removal { drafts, found: own, .. } = removal;
    decisions.drafts.extend(drafts);
    found.add(own);
    report_still_used(&decisions.drafts, &mut found.diagnostics);
    report_kept_along(context, &mut found.diagnostics);
}

/// A removal that is being planned.
struct Removal<'r, 'a> {
    context: &'r Context<'a>,
    decisions: &'r Decisions,
    used: &'r UsedObjects,
    gone: GoneInstances<'r, 'a>,
    drafts: Vec<Draft>,
    found: Findings,
}

fn remove_all(removal: &mut Removal<'_, '_>) {
    let snapshot = removal.context.input.snapshot;
    for (address, entry) in &snapshot.entries {
        let Some(schema) = schema_of(removal, address, entry) else {
            removal
                .found
                .diagnostics
                .push(diagnostics::provider_is_missing(&entry.provider, address));
            continue;
        };
        if !removal.decisions.handled.contains(address)
            && let Some(current) = &entry.current
        {
            remove_current(removal, address, (entry, current), &schema);
        }
        for object in &entry.deposed {
            remove_deposed(removal, address, (entry, object), &schema);
        }
    }
    surface_leftovers(removal);
    let over = removal.context.input.observations.over.iter();
    removal.found.seen.extend(over.map(|nonce| Record::Unwatched { nonce: nonce.clone() }));
}

/// Reports each object that was to go and stays because another one uses it: a plan shows only changes. An
/// object that waits for a call in doubt is not reported, because the doubt is reported already.
fn report_still_used(drafts: &[Draft], found: &mut Diagnostics) {
    let stays = drafts.iter().filter_map(|draft| match &draft.deferral {
        Some(Deferral::StillUsed(user)) if user.why != Staying::InDoubt => {
            Some((&draft.change, &**user))
        }
        _ => None,
    });
    let stays: Vec<(&Change, &Use)> = stays.collect();
    if !stays.is_empty() {
        found.push(diagnostics::still_used(&stays));
    }
}

/// Reports the objects that a destroy keeps because they were made from excluded ones.
fn report_kept_along(context: &Context<'_>, found: &mut Diagnostics) {
    let entries = context.input.snapshot.entries.keys();
    let kept: Vec<&Address> =
        entries.filter(|address| context.selection.keeps_along(address)).collect();
    if !kept.is_empty() {
        found.push(diagnostics::kept_along(&kept));
    }
}

fn schema_of(
    removal: &Removal<'_, '_>,
    address: &Address,
    entry: &Entry,
) -> Option<Arc<TypeSchema>> {
    removal.context.input.providers.get(&entry.provider)?.types.get(&address.block.ty).cloned()
}

fn remove_current<'a>(
    removal: &mut Removal<'_, 'a>,
    address: &Address,
    (entry, current): (&Entry, &'a Object),
    schema: &Arc<TypeSchema>,
) {
    let Some(live) = live(removal, address, current, schema) else { return };
    let config = removal.context.input.config.resources.get(&address.block);
    let deferral = deferral(removal, address, current);
    let reason = reason(removal, address, config);
    let (mut draft, kept) = ending(removal, (address, schema), entry, &live);
    if let Some(deferral) = &deferral {
        let change = &mut draft.change;
        change.after.clone_from(&change.before);
        change.reason = deferral.reason();
        if *deferral != Deferral::InDoubt {
            removal.found.seen.extend(accepted(address, &kept, entry));
        }
    } else {
        end(removal, &mut draft, &live, reason);
        // An attribute that a drain changes can be set back only if the state knows its value.
        if schema.delete.iter().any(|program| program.phases.len() > 1) {
            removal.found.seen.extend(accepted(address, &kept, entry));
        }
    }
    removal.drafts.push(Draft { deferral, ..draft });
}

fn remove_deposed<'a>(
    removal: &mut Removal<'_, 'a>,
    address: &Address,
    (entry, object): (&Entry, &'a Object),
    schema: &Arc<TypeSchema>,
) {
    let Some(live) = live(removal, address, object, schema) else { return };
    let (mut draft, _) = ending(removal, (address, schema), entry, &live);
    draft.change.deposed = true;
    let deferral = deferral(removal, address, object);
    if let Some(deferral) = &deferral {
        draft.change.reason = deferral.reason();
    } else {
        end(removal, &mut draft, &live, Reason::Deposed);
    }
    removal.drafts.push(Draft { deferral, ..draft });
}

/// Decides the end of an object that nothing keeps: the object of an address, one that was put aside, or a
/// leftover. A half-made object holds nobody's data, so nothing protects it.
fn end(removal: &mut Removal<'_, '_>, draft: &mut Draft, live: &Live<'_>, reason: Reason) {
    let Draft { change, schema, flags, .. } = draft;
    let config = removal.context.input.config.resources.get(&change.address.block);
    let key = &removal.context.input.snapshot.seal_key;
    let is_whole = !resume::is_half_made(&live.object.progress, &live.attributes, (&*schema, key));
    let removed = removal_config(removal.context, &change.address);
    if let Some(removed) = removed.filter(|removed| is_whole && !removed.destroys) {
        let drained = resume::drained(live, (&*schema, key));
        if !drained.is_empty() {
            let found = &mut removal.found.diagnostics;
            found.push(diagnostics::drained_is_removed(&change.address, &drained, removed.span));
        }
        (change.action, change.reason) = (Action::Forget, Reason::Removed);
        return;
    }
    if is_whole && schema.delete.is_empty() {
        (change.action, change.reason) = (Action::Forget, Reason::CannotDelete);
        return;
    }
    if is_whole && is_retained(removal, &change.address, config) {
        let drained = resume::drained(live, (&*schema, key));
        if let (Some(config), false) = (config, drained.is_empty()) {
            removal
                .found
                .diagnostics
                .push(diagnostics::drained_is_retained(config, change, &drained));
        }
        (change.action, change.reason) = (Action::Forget, Reason::Retained);
        return;
    }
    (change.action, change.reason) = (Action::Delete, reason);
    if !is_whole {
        return;
    }
    change.loss.clone_from(&schema.delete_effect);
    // The replace that put the object aside was checked already.
    if let (Some(config), false) = (config, change.deposed) {
        let item = config.lifecycle.prevent_destroy.as_ref();
        let address = change.address.clone();
        let is_protected = flag(removal, &address, config, item, "prevent_destroy");
        flags.prevent_destroy = is_protected == Some(true);
    }
}

/// Returns the removal in the spec that names the object of an address; of several, the most exact one.
fn removal_config<'a>(context: &Context<'a>, address: &Address) -> Option<&'a RemovalConfig> {
    let removals = context.input.config.removals.iter();
    let naming = removals.filter(|removal| removal.from.covers(address));
    naming.min_by_key(|removal| removal.from.generality())
}

/// Reports the removals that name an instance which the spec wants.
pub(in crate::plan) fn report_wanted(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    found: &mut Diagnostics,
) {
    for removal in &context.input.config.removals {
        let wanted = removal.from.instance().filter(|address| evaluation.planned.has(address));
        if let Some(address) = wanted {
            found.push(diagnostics::removed_and_wanted(&address, removal.span));
        }
    }
}

/// Returns true if the object is to be left alone when its address goes. If the flag cannot be read, that is
/// an error, and no object goes until it is fixed.
fn is_retained<'a>(
    removal: &mut Removal<'_, 'a>,
    address: &Address,
    config: Option<&'a ResourceConfig>,
) -> bool {
    let Some(config) = config else { return false };
    let item = config.lifecycle.retain.as_ref();
    flag(removal, address, config, item, "retain").unwrap_or(true)
}

/// Reads a flag of an object that goes.
fn flag<'a>(
    removal: &mut Removal<'_, 'a>,
    address: &Address,
    config: &'a ResourceConfig,
    item: Option<&SpecExpr>,
    word: &'static str,
) -> Option<bool> {
    let found = &mut removal.found.diagnostics;
    removal.gone.flag(address, config, item, word, found)
}

fn live<'a>(
    removal: &mut Removal<'_, 'a>,
    address: &Address,
    object: &'a Object,
    schema: &TypeSchema,
) -> Option<Live<'a>> {
    removal.context.live(address, object, schema, &mut removal.found)
}

/// Returns the reason that an object which is to go stays for now; none if it goes.
fn deferral(removal: &Removal<'_, '_>, address: &Address, object: &Object) -> Option<Deferral> {
    if removal.decisions.in_doubt.contains(address) {
        return Some(Deferral::InDoubt);
    }
    if removal.context.input.options.mode == Mode::RefreshOnly
        || !removal.decisions.is_chosen(removal.context, address)
    {
        return Some(Deferral::LeftOut);
    }
    removal.used.user(address, &object.id).map(Deferral::still_used)
}

/// Plans the delete of objects that bear a watched nonce. A run of Plumb made them, and the spec does not
/// want them. The state takes them over as deposed.
fn surface_leftovers(removal: &mut Removal<'_, '_>) {
    let watched: BTreeMap<_, _> = removal
        .context
        .input
        .snapshot
        .watched
        .iter()
        .map(|watched| (&watched.nonce, watched))
        .collect();
    for leftover in &removal.context.input.observations.leftovers {
        let Some(watched) = watched.get(&leftover.nonce) else { continue };
        // The nonce stays watched, and a plan that covers its address deletes the object.
        if !removal.decisions.is_chosen(removal.context, &watched.address) {
            continue;
        }
        let provider = removal.context.input.providers.get(&watched.provider);
        let Some(schema) = provider.and_then(|p| p.types.get(&watched.ty)).cloned() else {
            continue;
        };
        let object = Object {
            id: leftover.id.clone(),
            // No record says which program made the object. It is half made, and no run finishes it.
            progress: Progress::Created {
                program: 0,
                done: 1,
                called: false,
                nonce: leftover.nonce.clone(),
            },
            attributes: Stored::default(),
            managed: Set::new(),
            sensitive: watched.sensitive.clone(),
            delete_sent_ms: None,
            made_with: BTreeMap::new(),
            input_fingerprints: BTreeMap::new(),
        };
        let address = place_of(removal, watched);
        let attributes = Arc::new(leftover.attributes.clone());
        let sealed = redacted(removal, (&address, &schema), &object, &attributes);
        let object = Object { attributes: Stored::of_sealed(&Value::Map(sealed)), ..object };
        removal.found.seen.push(Record::Adopted {
            address: address.clone(),
            provider: watched.provider.clone(),
            object: object.clone(),
            dependencies: Set::new(),
            deposed: true,
        });
        let entry = Entry::without_object(watched.provider.clone());
        let live = Live { object: &object, stored: attributes.clone(), attributes };
        let (mut draft, _) = ending(removal, (&address, &schema), &entry, &live);
        draft.change.deposed = true;
        let reason = Reason::Leftover(leftover.nonce.clone());
        if removal.context.input.options.mode == Mode::RefreshOnly {
            draft.change.reason = reason;
        } else {
            end(removal, &mut draft, &live, reason);
        }
        removal.drafts.push(draft);
    }
}

/// Returns the address under which the state keeps a leftover until it is gone. That is the address of its
/// create, unless the object of that address is, or will be, at another provider: there the same id may
/// belong to somebody else's object.
fn place_of(removal: &Removal<'_, '_>, watched: &Watched) -> Address {
    let Watched { address, provider, .. } = watched;
    let snapshot = removal.context.input.snapshot;
    let entry = snapshot.entries.get(address).map(|entry| &entry.provider);
    let calls = snapshot.pending.values().map(|pending| &pending.started);
    let called = calls.filter(|call| call.address == *address).map(|call| &call.provider);
    let config = removal.context.input.config.resources.get(&address.block);
    let config = config.map(|it| it.provider.of(address));
    if entry.into_iter().chain(config.as_ref()).chain(called).all(|own| own == provider) {
        return address.clone();
    }
    let key = address.key.as_ref().map_or_else(String::new, |key| format!("{key}, "));
    let key = format!("{key}left at {provider}");
    Address { block: address.block.clone(), key: Some(key.into()) }
}

/// Returns a draft of an object that is to go, without a decision, and the object as the state takes it over
/// if it stays for now, or if a value is set back before its end.
fn ending<'a>(
    removal: &Removal<'_, '_>,
    (address, schema): (&Address, &Arc<TypeSchema>),
    entry: &Entry,
    live: &Live<'a>,
) -> (Draft, Live<'a>) {
    let redacted = redacted(removal, (address, schema), live.object, &live.attributes);
    // If a part of the object may have become a secret, the state keeps the object as it has it.
    let is_clear = redacted == live.attributes;
    let taken = if is_clear { &live.attributes } else { &live.stored }.clone();
    let kept = Live { object: live.object, attributes: taken, stored: live.stored.clone() };
    let mut change = nothing_done(address, entry, live);
    change.sensitive.extend_below(&Path::root(), &schema.sensitive());
    let draft = Draft { redacted: Some(redacted), ..Draft::new(change, schema.clone()) };
    (draft, kept)
}

/// Returns the attributes of an object that goes, with all values sealed that are, or may be, secrets.
fn redacted(
    removal: &Removal<'_, '_>,
    (address, schema): (&Address, &TypeSchema),
    object: &Object,
    attributes: &Arc<Attributes>,
) -> Arc<Attributes> {
    let context = removal.context;
    let sensitive = context.taint().paths(&address.block, schema, &object.sensitive);
    context.redactor.redact_at(attributes, &sensitive)
}

fn nothing_done(address: &Address, entry: &Entry, live: &Live<'_>) -> Change {
    let object = live.object;
    Change {
        before: Some(live.attributes.clone()),
        object: Some(object.id.clone()),
        progress: object.progress.clone(),
        sensitive: object.sensitive.clone(),
        managed: object.managed.clone(),
        dependencies: entry.dependencies.clone(),
        ..Change::new(address.clone(), entry.provider.clone())
    }
}

fn reason(removal: &Removal<'_, '_>, address: &Address, config: Option<&ResourceConfig>) -> Reason {
    match config {
        _ if removal.context.input.options.mode == Mode::Destroy => Reason::Destroy,
        _ if removal_config(removal.context, address).is_some() => Reason::Removed,
        None => Reason::NotInSpec,
        Some(resource) if resource.for_each.is_some() == address.key.is_some() => {
            if address.key.is_some() && !removal.gone.evaluation.planned.has(address) {
                Reason::KeyNotInSpec
            } else {
                Reason::Disabled
            }
        }
        // The object is in the state from before the block got a for_each, or from before it lost it.
        Some(_) if address.key.is_none() => Reason::BecameMany,
        Some(_) => Reason::BecameOne,
    }
}
