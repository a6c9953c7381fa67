//! Whether a saved plan still fits: checked before its first call, over everything that it touches
//! or refers to, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::{Address, Name};
use engine::digest::Fingerprint;
use engine::journal::Record;
use engine::plan::input::{Observations, Observed};
use engine::plan::live::{overlay, stored_attributes};
use engine::plan::{Action, Change, Plan, fitness_digest, is_stable};
use engine::schema::TypeSchema;
use engine::spec::variables::environment_name;
use engine::state::{ObjectId, Snapshot};
use engine::stored::seal_attributes;
use engine::value::{Attributes, Datum, Value};

use crate::observe::{observe_chosen, observe_imports, sensitive};
use crate::{ApplyError, Providers};

/// Looks at what is live, as far as a saved plan is about it, and verifies the plan against that.
pub async fn look_and_verify(
    plan: &Plan,
    snapshot: &Snapshot,
    providers: &Providers,
) -> Result<(), ApplyError> {
    let touched = touched(plan);
    let is_chosen = |address: &Address| plan.complete || touched.contains(address);
    let none = BTreeSet::new();
    let (mut seen, question) = observe_chosen(snapshot, providers, &none, &is_chosen).await?;
    if let Some(question) = question {
        return Err(question);
    }
    observe_imports(snapshot, providers, imports(plan), &mut seen).await?;
    verify(plan, snapshot, &seen, providers)
}

/// What a plan changes, and what that refers to.
fn touched(plan: &Plan) -> BTreeSet<&Address> {
    let changed = plan.changes.iter().filter(|change| change.action != Action::NoOp);
    changed.map(|change| &change.address).chain(plan.base.objects.keys()).collect()
}

/// The objects that a plan takes over.
fn imports(plan: &Plan) -> impl Iterator<Item = (&Address, &Name, &ObjectId)> {
    let imports = plan.changes.iter().filter(|change| change.action == Action::Import);
    imports.filter_map(|change| Some((&change.address, &change.provider, change.object.as_ref()?)))
}

/// Says what moved, if something did.
pub fn verify(
    plan: &Plan,
    snapshot: &Snapshot,
    observations: &Observations,
    providers: &Providers,
) -> Result<(), ApplyError> {
    let stale = |why: String| Err(ApplyError::Stale(why));
    if plan.base.lineage != snapshot.lineage {
        return stale("it was made for another state (the lineage differs)".to_owned());
    }
    if let Some(pending) = snapshot.pending.values().next() {
        let address = &pending.started.address;
        return stale(format!("a call for {address} is in doubt since the plan was made"));
    }
    for change in &plan.changes {
        let used = change.action != Action::NoOp;
        let Some(provider) = providers.get(&change.provider) else {
            return stale(format!("the provider `{}` is not configured", change.provider));
        };
        if used && plan.base.providers.get(&change.provider) != Some(&provider.schema().digest) {
            return stale(format!("the descriptor of provider `{}` changed", change.provider));
        }
        let account = || {
            let account = provider.account()?;
            Some(Fingerprint::of_digest(&account, &snapshot.seal_key))
        };
        let planned = plan.base.accounts.get(&change.provider);
        if used && planned.is_some() && planned != account().as_ref() {
            return stale(format!("provider `{}` acts for another account", change.provider));
        }
    }
    for change in &plan.changes {
        verify_change(plan, change, snapshot, observations, providers)?;
    }
    verify_seen(plan, snapshot, observations)
}

/// What the plan takes into the state without a call must still be so, and what it deletes beside
/// an address's own object must still stand there.
fn verify_seen(
    plan: &Plan,
    snapshot: &Snapshot,
    observations: &Observations,
) -> Result<(), ApplyError> {
    let mut after = snapshot.clone();
    for record in &plan.seen {
        if let Record::Vanished { address, object } = record
            && !is_gone(observations, address, object)
        {
            return Err(ApplyError::Stale(format!("{address} is not what it was, {object}")));
        }
        if let Err(error) = after.fold(record) {
            return Err(ApplyError::Stale(format!("the state changed since then: {error}")));
        }
    }
    for change in plan.changes.iter().filter(|c| c.deposed && c.action != Action::NoOp) {
        let entry = after.entries.get(&change.address);
        let mut beside = entry.iter().flat_map(|entry| &entry.deposed);
        if !beside.any(|object| Some(&object.id) == change.object.as_ref()) {
            let address = &change.address;
            let what = format!("what stood beside {address} is gone since then");
            return Err(ApplyError::Stale(what));
        }
    }
    Ok(())
}

fn verify_change(
    plan: &Plan,
    change: &Change,
    snapshot: &Snapshot,
    observations: &Observations,
    providers: &Providers,
) -> Result<(), ApplyError> {
    let address = &change.address;
    let stale = |why: String| Err(ApplyError::Stale(why));
    let entry = snapshot.entries.get(address);
    let current = entry.and_then(|entry| entry.current.as_ref());
    if change.action == Action::Import {
        return verify_import(plan, change, snapshot, observations, providers);
    }
    if change.object.is_none() {
        let vanished = current.is_some_and(|object| is_gone(observations, address, &object.id));
        return match current {
            Some(object) if change.action == Action::Create && !vanished => {
                stale(format!("{address} exists since then, as {}", object.id))
            }
            _ => Ok(()),
        };
    }
    let Some(expected) = plan.base.objects.get(address).filter(|_| !change.deposed) else {
        return Ok(());
    };
    let Some(object) = current.filter(|object| Some(&object.id) == change.object.as_ref()) else {
        return stale(format!("{address} is another object since then"));
    };
    let Some(schema) = type_schema(providers, change) else { return Ok(()) };
    let live = match observations.objects.get(&(address.clone(), object.id.clone())) {
        Some(Observed::Gone) => return stale(format!("{address} is gone since then")),
        Some(Observed::Live(seen)) => {
            overlay(&stored_attributes(&object.attributes, &schema).unwrap_or_default(), seen)
        }
        None => stored_attributes(&object.attributes, &schema).unwrap_or_default(),
    };
    if fitness_digest(&schema, &live) == *expected {
        return Ok(());
    }
    let moved = moved(change.before.as_deref(), &live, &schema);
    stale(format!("{address} changed since then: {moved}"))
}

/// What is to be taken over belongs to nobody, and is as it was.
fn verify_import(
    plan: &Plan,
    change: &Change,
    snapshot: &Snapshot,
    observations: &Observations,
    providers: &Providers,
) -> Result<(), ApplyError> {
    let Change { address, object: Some(id), .. } = change else { return Ok(()) };
    let stale = |why: String| Err(ApplyError::Stale(why));
    if snapshot.entries.get(address).is_some_and(|entry| entry.current.is_some()) {
        return stale(format!("{address} exists since then"));
    }
    let owner = snapshot.entries.iter().find(|(other, entry)| {
        other.block.ty == address.block.ty
            && entry.provider == change.provider
            && entry.object(id).is_some()
    });
    if let Some((owner, _)) = owner {
        return stale(format!("{owner} stands for {id} since then"));
    }
    let Some(schema) = type_schema(providers, change) else { return Ok(()) };
    let seen = observations.objects.get(&(address.clone(), id.clone()));
    let Some(Observed::Live(seen)) = seen else {
        return stale(format!("{id} is gone since then"));
    };
    let live = seal_attributes(seen, &sensitive(&schema, &change.sensitive), &snapshot.seal_key);
    if plan.base.objects.get(address) == Some(&fitness_digest(&schema, &live)) {
        return Ok(());
    }
    let moved = moved(change.before.as_deref(), &live, &schema);
    stale(format!("{address} changed since then: {moved}"))
}

fn is_gone(observations: &Observations, address: &Address, id: &engine::state::ObjectId) -> bool {
    observations.objects.get(&(address.clone(), id.clone())) == Some(&Observed::Gone)
}

fn type_schema(providers: &Providers, change: &Change) -> Option<std::sync::Arc<TypeSchema>> {
    providers.get(&change.provider)?.schema().types.get(&change.address.block.ty).cloned()
}

/// The attributes that moved, with their values where they may be shown.
fn moved(before: Option<&Attributes>, live: &Attributes, schema: &TypeSchema) -> String {
    let empty = Attributes::new();
    let before = before.unwrap_or(&empty);
    let names = before.keys().chain(live.keys()).filter(|name| is_stable(schema, name));
    let mut texts: Vec<String> = Vec::new();
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        // A plan that comes from a file has lists where the schema says sets.
        let was = before.get(name).map_or(Value::Null, |was| in_type(was, schema, name));
        let was = &was;
        let is = live.get(name).unwrap_or(&Value::Null);
        if was.same(is) {
            continue;
        }
        texts.push(if was.holds_sealed() || is.holds_sealed() {
            format!("`{name}`")
        } else {
            format!("`{name}` was {} and is {}", shown(was), shown(is))
        });
    }
    texts.join(", ")
}

fn in_type(value: &Value, schema: &TypeSchema, name: &Name) -> Value {
    let attribute = schema.attributes.get(name);
    attribute.and_then(|a| value.convert(&a.ty).ok()).unwrap_or_else(|| value.clone())
}

fn shown(value: &Value) -> String {
    let text = engine::stored::to_json(value).to_string();
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(57).chain("...".chars()).collect()
}

/// Checks that the sensitive variables of a saved plan are given again, with the same values.
pub fn verify_secrets(
    plan: &Plan,
    variables: &BTreeMap<Name, Datum>,
    snapshot: &Snapshot,
) -> Result<(), ApplyError> {
    for (name, fingerprint) in &plan.base.secrets {
        let Some(datum) = variables.get(name) else {
            return Err(ApplyError::Secret(format!(
                "the plan needs the sensitive variable `{name}` again, which it does not hold: \
                 give it with --var, --var-file or {}",
                environment_name(name)
            )));
        };
        let given = engine::digest::Fingerprint::of(&datum.value, &snapshot.seal_key);
        if given != *fingerprint {
            return Err(ApplyError::Stale(format!(
                "the sensitive variable `{name}` has another value than when the plan was made"
            )));
        }
    }
    Ok(())
}
