//! Whether a saved plan still fits: checked before its first call, over everything that it touches
//! or refers to, and nothing else. One that does nothing says of all that it looked at that it agrees, so
//! all of that is checked.

mod others;
mod outputs;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::config::variables::environment_name;
use engine::digest::{Digest, Fingerprint, SealKey};
use engine::journal::CallId;
use engine::plan::facts::prior::{overlay, stored_attributes};
use engine::plan::input::{Observations, Observed};
use engine::plan::{Action, Change, Doubt, Plan, claimed, fitness_digest, is_stable};
use engine::schema::TypeSchema;
use engine::state::{ObjectId, Snapshot};
use engine::stored::{KnownSecrets, seal_attributes, seal_like};
use engine::value::{Attributes, Datum, Path, Paths, Value};

use crate::doubt::lookup::account_of;
use crate::refresh::{observe_chosen, observe_imports, sensitive};
use crate::{ApplyError, Providers};

/// Looks at what is live, as far as a saved plan is about it, and verifies the plan against that.
pub async fn look_and_verify(
    plan: &Plan,
    snapshot: &Snapshot,
    providers: &Providers,
    secrets: &KnownSecrets,
) -> Result<(), ApplyError> {
    let touched = touched(plan);
    let is_chosen = |address: &Address| plan.complete || touched.contains(address);
    let named = named_types(plan, providers);
    let (mut seen, question) =
        observe_chosen(snapshot, providers, &named, secrets, &is_chosen).await?;
    if let Some(question) = question {
        return Err(question);
    }
    observe_imports(snapshot, providers, imports(plan), secrets, &mut seen).await?;
    verify(plan, snapshot, &seen, providers)
}

/// Returns true if a plan says of all of a spec that it agrees with what is live, and of the state that it does.
fn says_all_agrees(plan: &Plan) -> bool {
    plan.complete && plan.is_empty() && plan.seen.is_empty()
}

/// What a plan changes, and what that refers to; all that it saw where it says that all agrees, but for what it says
/// to be in doubt.
fn touched(plan: &Plan) -> BTreeSet<&Address> {
    let agrees = says_all_agrees(plan);
    let agrees = |change: &Change| agrees && !is_doubted(plan, &change.address);
    let changed = plan.changes.iter().filter(|it| agrees(it) || it.action != Action::NoOp);
    changed.map(|change| &change.address).chain(plan.base.objects.keys()).collect()
}

/// Returns true if a plan says of an address that a call for it is in doubt.
fn is_doubted(plan: &Plan, address: &Address) -> bool {
    plan.doubts.iter().any(|doubt| doubt.address == *address)
}

/// The types of what a plan gives a name to: others may have taken it since. The plan listed them, too.
fn named_types(plan: &Plan, providers: &Providers) -> BTreeSet<(Name, Name)> {
    let named = plan.changes.iter().filter(|change| {
        let schema = schema(providers, change);
        schema.is_some_and(|schema| claimed(change, &schema).is_some())
    });
    named.map(|change| (change.provider.clone(), change.address.block.ty.clone())).collect()
}

fn schema(providers: &Providers, change: &Change) -> Option<Arc<TypeSchema>> {
    let provider = providers.get(&change.provider)?;
    provider.schema().types.get(&change.address.block.ty).cloned()
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
    let fit = Fit { plan, snapshot, observations, providers };
    fit.check_state()?;
    for change in &plan.changes {
        fit.check_provider(change)?;
    }
    for change in &plan.changes {
        fit.check_change(change)?;
    }
    fit.check_names()?;
    fit.check_users()?;
    fit.check_seen()?;
    fit.check_unknown()?;
    fit.check_outputs()
}

fn stale(why: impl Into<String>) -> Result<(), ApplyError> {
    Err(ApplyError::Stale(why.into()))
}

/// A plan, and what there is now.
struct Fit<'a> {
    plan: &'a Plan,
    snapshot: &'a Snapshot,
    observations: &'a Observations,
    providers: &'a Providers,
}

impl Fit<'_> {
    fn check_state(&self) -> Result<(), ApplyError> {
        if self.plan.base.lineage != self.snapshot.lineage {
            return stale("it was made for another state (the lineage differs)");
        }
        self.check_doubts()?;
        let mut pending = self.snapshot.pending.iter();
        match pending.find(|(call, pending)| !self.leaves_alone(**call, &pending.started.address)) {
            Some((_, pending)) => stale(format!(
                "a call for {} is in doubt since the plan was made",
                pending.started.address
            )),
            None => Ok(()),
        }
    }

    /// What a plan leaves out because of a call under way, or in doubt, it leaves out for good: once the call
    /// has ended, or somebody has decided, there is more to do than it says.
    fn check_doubts(&self) -> Result<(), ApplyError> {
        let is_open = |call: &CallId| self.snapshot.pending.contains_key(call);
        let mut ended = self.plan.doubts.iter().filter(|it| it.running || !is_open(&it.call));
        let Some(Doubt { address, operation, running, .. }) = ended.next() else { return Ok(()) };
        let operation = operation.word();
        stale(if *running {
            format!(
                "it was made while another run was at the {operation} of {address}, and leaves out \
                 what was to be done about that"
            )
        } else {
            format!(
                "what became of the {operation} of {address} is known by now, and it leaves that out"
            )
        })
    }

    /// Returns true if the plan was made with this call in doubt, and has nothing to do with its object.
    fn leaves_alone(&self, call: CallId, address: &Address) -> bool {
        let mut doubts = self.plan.doubts.iter();
        doubts.any(|doubt| doubt.call == call && doubt.address == *address)
            && !touched(self.plan).contains(address)
    }

    fn check_provider(&self, change: &Change) -> Result<(), ApplyError> {
        let (base, name) = (&self.plan.base, &change.provider);
        let Some(provider) = self.providers.get(name) else {
            return stale(format!("the provider `{name}` is not configured"));
        };
        if change.action == Action::NoOp {
            return Ok(());
        }
        if base.providers.get(name) != Some(&provider.schema().digest) {
            return stale(format!("the descriptor of provider `{name}` changed"));
        }
        let Some(planned) = base.accounts.get(name) else { return Ok(()) };
        if account_of(&**provider, self.snapshot).as_ref() != Some(planned) {
            return stale(format!(
                "provider `{name}` acts for another account or at another address"
            ));
        }
        Ok(())
    }

    fn check_change(&self, change: &Change) -> Result<(), ApplyError> {
        let address = &change.address;
        let entry = self.snapshot.entries.get(address);
        let current = entry.and_then(|entry| entry.current.as_ref());
        if change.action == Action::Import {
            return self.check_import(change);
        }
        if change.object.is_none() {
            return Ok(());
        }
        let expected = self.plan.base.objects.get(address);
        let agrees = says_all_agrees(self.plan) && !is_doubted(self.plan, address);
        if change.deposed || (expected.is_none() && !agrees) {
            return Ok(());
        }
        let Some(object) = current else {
            return stale(format!("the state has nothing at {address} any more"));
        };
        if Some(&object.id) != change.object.as_ref() {
            return stale(format!("{address} is another object since then"));
        }
        // It may be what the plan took for a change from outside.
        if self.plan.is_overtaken(address, &object.id, self.snapshot) {
            return stale(format!(
                "another run changed {address} in the state after this plan was made"
            ));
        }
        let Some(schema) = self.schema(change) else { return Ok(()) };
        let stored = || stored_attributes(&object.attributes, &schema).unwrap_or_default();
        let live = match self.observed(address, &object.id) {
            Some(Observed::Gone) => return stale(format!("{address} is gone since then")),
            Some(Observed::Live(seen)) => overlay(&stored(), seen),
            None => stored(),
        };
        let live = self.sealed_as_planned(change, live);
        match expected {
            Some(expected) => as_planned(change, &live, &schema, expected),
            None => as_seen(change, &live, &schema),
        }
    }

    /// Where all agrees, a plan knows all that the state has.
    fn check_unknown(&self) -> Result<(), ApplyError> {
        if !says_all_agrees(self.plan) {
            return Ok(());
        }
        let doubts = self.plan.doubts.iter().map(|doubt| &doubt.address);
        let known = self.plan.changes.iter().map(|change| &change.address).chain(doubts);
        let known: BTreeSet<&Address> = known.collect();
        let mut now = self.snapshot.entries.iter().filter(|(_, entry)| entry.current.is_some());
        match now.find(|(address, _)| !known.contains(address)) {
            Some((address, _)) => stale(format!("{address} exists since then")),
            None => Ok(()),
        }
    }

    /// What is to be taken over belongs to nobody, and is as it was.
    fn check_import(&self, change: &Change) -> Result<(), ApplyError> {
        let Change { address, object: Some(id), .. } = change else { return Ok(()) };
        let entry = self.snapshot.entries.get(address);
        if entry.is_some_and(|entry| entry.current.is_some()) {
            return stale(format!("{address} exists since then"));
        }
        if let Some(owner) = self.snapshot.owner(&change.provider, &address.block.ty, id) {
            return stale(format!("{owner} stands for {id} since then"));
        }
        let Some(schema) = self.schema(change) else { return Ok(()) };
        let Some(Observed::Live(seen)) = self.observed(address, id) else {
            return stale(format!("{id} is gone since then"));
        };
        let sensitive = sensitive(&schema, &change.sensitive);
        let live = seal_attributes(seen, &sensitive, &self.snapshot.seal_key);
        let live = self.sealed_as_planned(change, live);
        match self.plan.base.objects.get(address) {
            Some(expected) => as_planned(change, &live, &schema, expected),
            None => stale(changed(change, &live, &schema)),
        }
    }

    /// What is live, as who planned would have sealed it: they knew all secrets of the spec, and a
    /// saved plan takes only those that its steps need.
    fn sealed_as_planned(&self, change: &Change, live: Attributes) -> Attributes {
        match &change.before {
            Some(before) => sealed_like(live, before, &self.snapshot.seal_key),
            None => live,
        }
    }

    fn observed(&self, address: &Address, id: &ObjectId) -> Option<&Observed> {
        self.observations.objects.get(&(address.clone(), id.clone()))
    }

    fn is_gone(&self, address: &Address, id: &ObjectId) -> bool {
        self.observed(address, id) == Some(&Observed::Gone)
    }

    fn schema(&self, change: &Change) -> Option<Arc<TypeSchema>> {
        schema(self.providers, change)
    }
}

/// Attributes with that sealed which is sealed at the same places of the planned ones.
fn sealed_like(mut live: Attributes, planned: &Attributes, key: &SealKey) -> Attributes {
    for (name, planned) in planned {
        if planned.holds_sealed()
            && let Some(value) = live.get_mut(name)
        {
            *value = seal_like(value, planned, key);
        }
    }
    live
}

/// Whether an object is the one that the plan was made for.
fn as_planned(
    change: &Change,
    live: &Attributes,
    schema: &TypeSchema,
    expected: &Digest,
) -> Result<(), ApplyError> {
    let fits = fitness_digest(schema, live) == *expected;
    if fits { Ok(()) } else { stale(changed(change, live, schema)) }
}

/// Whether an object is as the plan saw it.
fn as_seen(change: &Change, live: &Attributes, schema: &TypeSchema) -> Result<(), ApplyError> {
    let moved = moved((change.before.as_deref(), live), schema, &change.sensitive);
    if moved.is_empty() { Ok(()) } else { stale(changed(change, live, schema)) }
}

fn changed(change: &Change, live: &Attributes, schema: &TypeSchema) -> String {
    let moved = moved((change.before.as_deref(), live), schema, &change.sensitive);
    format!("{} changed since then: {moved}", change.address)
}

/// The attributes that moved, with their values where they may be shown.
fn moved(
    (before, live): (Option<&Attributes>, &Attributes),
    schema: &TypeSchema,
    places: &Paths,
) -> String {
    let places = sensitive(schema, places);
    let empty = Attributes::new();
    let before = before.unwrap_or(&empty);
    let names = before.keys().chain(live.keys()).filter(|name| is_stable(schema, name));
    let mut texts: Vec<String> = Vec::new();
    for name in names.collect::<BTreeSet<_>>() {
        // A plan that comes from a file has lists where the schema says sets.
        let was = before.get(name).map_or(Value::Null, |was| in_type(was, schema, name));
        let was = &was;
        let is = live.get(name).unwrap_or(&Value::Null);
        if was.same(is) {
            continue;
        }
        let is_secret = places.touches(&Path::attribute(name.clone()));
        texts.push(if is_secret || was.holds_sealed() || is.holds_sealed() {
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

/// Checks that the sensitive variables of a saved plan are given again, with the same values. A plan that
/// computes nothing sends none of them, so it asks for none.
pub fn verify_secrets(
    plan: &Plan,
    variables: &BTreeMap<Name, Datum>,
    snapshot: &Snapshot,
) -> Result<(), ApplyError> {
    if plan.computes_nothing() {
        return Ok(());
    }
    for (name, fingerprint) in &plan.base.secrets {
        let Some(datum) = variables.get(name) else {
            return Err(ApplyError::MissingSecret(format!(
                "the plan needs the sensitive variable `{name}` again, which it does not hold, also where it was its default in the spec: \
                 give it with {} in the environment, or with --var-file FILE",
                environment_name(name)
            )));
        };
        let given = Fingerprint::of(&datum.value, &snapshot.seal_key);
        if given != *fingerprint {
            return Err(ApplyError::Stale(format!(
                "the sensitive variable `{name}` has another value than when the plan was made"
            )));
        }
    }
    Ok(())
}
