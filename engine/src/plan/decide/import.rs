//! Imports: the checks that an object which the spec wants to take over may be taken over, and the form in
//! which the state gets it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::address::Address;
use crate::config::{ImportConfig, ImportedObject, ResourceConfig};
use crate::diagnostics::Diagnostics;
use crate::journal::Record;
use crate::plan::context::Context;
use crate::plan::decide::Refused;
use crate::plan::decide::action::Decision;
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::facts::prior::Live;
use crate::plan::input::{Observed, PlanInput};
use crate::plan::{Action, Change, Reason, diagnostics};
use crate::schema::Identity;
use crate::state::{Nonce, Object, ObjectId, Progress};
use crate::stored::{KnownSecrets, SecretScanner, Stored, seal_attributes};
use crate::value::{Attributes, Value};

/// An object that is to be taken over, as the state will hold it.
pub(in crate::plan) struct Imported {
    pub(in crate::plan) object: Object,
    pub(in crate::plan) attributes: Arc<Attributes>,
}

/// Returns the object that is to be taken over for an instance; none if there is none. Its attributes are
/// sealed where the spec or the schema says that they are secret.
pub(in crate::plan) fn imported(
    input: &PlanInput<'_>,
    resource: &ResourceConfig,
    address: &Address,
    wanted: &Wanted,
    found: &mut Diagnostics,
) -> Result<Option<Imported>, Refused> {
    let Some(import) = input.config.imports.get(address) else { return Ok(None) };
    let (provider, ty) = (resource.provider.of(address), &resource.block.ty);
    let id = input.observations.imported(&provider, ty, &import.object);
    if input.options.validating {
        return match refusal(input, (resource, address), id) {
            None => Ok(None),
            Some(why) => Err(refuse(address, import, &why, found)),
        };
    }
    if let Some(why) = is_done(input, address, import) {
        if !why.is_empty() {
            found.push(diagnostics::import_does_nothing(import, address, &why));
        }
        return Ok(None);
    }
    match observed(input, resource, address, (import, id)) {
        Ok((id, observed)) => Ok(Some(Imported::new(input, id, observed, wanted))),
        Err(why) => Err(refuse(address, import, &why, found)),
    }
}

/// Returns the reason that an import has nothing to do; an empty text if the import is done; none if it is
/// still to be done. The imported object may have been replaced since, or it may have gone and been made
/// anew, or a run may have ended between the two. A block that stays in the spec must not prevent a plan.
fn is_done(input: &PlanInput<'_>, address: &Address, import: &ImportConfig) -> Option<String> {
    let entry = input.snapshot.entries.get(address);
    let current = entry.and_then(|entry| entry.current.as_ref());
    if let Some(current) = current {
        let is_it = match &import.object {
            ImportedObject::Id(id) => current.id == *id,
            // The spec may have given the object another name by now.
            ImportedObject::Named(_) => true,
        };
        let why = (!is_it).then(|| format!("{address} stands for {} already", current.id));
        return Some(why.unwrap_or_default());
    }
    if import.of_type {
        return None;
    }
    let was_taken = match &import.object {
        ImportedObject::Id(id) => input.snapshot.has_taken_over(address, id),
        ImportedObject::Named(_) => input.snapshot.taken_over.contains_key(address),
    };
    was_taken.then(|| format!("{address} stood for it, and it went since"))
}

/// Returns the id of the object and its observed attributes, or the reason that it cannot be taken over.
fn observed<'a>(
    input: &'a PlanInput<'_>,
    resource: &ResourceConfig,
    address: &Address,
    (import, id): (&ImportConfig, Option<&'a ObjectId>),
) -> Result<(&'a ObjectId, &'a Attributes), Cow<'static, str>> {
    if let Some(why) = refusal(input, (resource, address), id) {
        return Err(why);
    }
    let Some(id) = id else { return Err(not_one(input, (resource, address), import)) };
    if let Some(other) = imported_by_id(input, resource, address, (import, id)) {
        return Err(format!("the import to {other} names the same object").into());
    }
    let observed = match input.observations.objects.get(&(address.clone(), id.clone())) {
        Some(Observed::Live(observed)) => observed,
        Some(Observed::Gone) => {
            return Err(format!("there is no {} with the id {id}", address.block.ty).into());
        }
        None => return Err("it was not looked at: leave out --no-refresh".into()),
    };
    match made_for(input, (resource, address), observed) {
        Some(other) if other != address => Err(format!(
            "the create of {other} made it, which is in doubt: it has its one-time name"
        )
        .into()),
        _ => Ok((id, observed)),
    }
}

/// Returns the address of another import that names the same object by its id; none if there is none, or this
/// import names it by its id, too.
fn imported_by_id<'a>(
    input: &'a PlanInput<'_>,
    resource: &ResourceConfig,
    address: &Address,
    (import, id): (&ImportConfig, &ObjectId),
) -> Option<&'a Address> {
    if matches!(import.object, ImportedObject::Id(_)) {
        return None;
    }
    let is_same = |(other, it): &(&Address, &ImportConfig)| {
        let config = input.config.resources.get(&other.block);
        *other != address
            && other.block.ty == resource.block.ty
            && it.object == ImportedObject::Id(id.clone())
            && config
                .is_some_and(|config| config.provider.of(other) == resource.provider.of(address))
    };
    input.config.imports.iter().find(is_same).map(|(other, _)| other)
}

/// Returns the reason that a name does not identify one object.
fn not_one(
    input: &PlanInput<'_>,
    (resource, address): (&ResourceConfig, &Address),
    import: &ImportConfig,
) -> Cow<'static, str> {
    const NAMED_MAX: usize = 8;
    let ImportedObject::Named(name) = &import.object else { return "".into() };
    let ty = &resource.block.ty;
    match input.observations.named(&resource.provider.of(address), ty, name) {
        [] => format!(
            "no {ty} outside the state has this name; with --no-refresh nothing is looked at"
        )
        .into(),
        several => {
            let ids: Vec<String> =
                several.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            format!("{} have this name: give the id of one, of {}", several.len(), ids.join(", "))
                .into()
        }
    }
}

fn refuse(address: &Address, import: &ImportConfig, why: &str, found: &mut Diagnostics) -> Refused {
    found.push(diagnostics::cannot_import(import.span, address, &import.object, why));
    Refused
}

/// Returns the reason that an object may not be taken over, whatever its live attributes are; none if it may
/// be.
fn refusal(
    input: &PlanInput<'_>,
    (resource, address): (&ResourceConfig, &Address),
    id: Option<&ObjectId>,
) -> Option<Cow<'static, str>> {
    if !resource.schema.remote {
        let ty = &resource.block.ty;
        return Some(format!("a {ty} lives in the state only: no API has it").into());
    }
    let id = id?;
    let snapshot = input.snapshot;
    let provider = resource.provider.of(address);
    if let Some(owner) = snapshot.owner(&provider, &resource.block.ty, id) {
        return Some(format!("{owner} stands for this object already").into());
    }
    let here = |nonce: &Nonce| {
        let place = (&provider, &resource.block.ty);
        let mut watched = snapshot.watched.iter().filter(|watched| watched.nonce == *nonce);
        watched.any(|watched| (&watched.provider, &watched.ty) == place)
    };
    let mut leftovers = input.observations.leftovers.iter();
    if leftovers.any(|leftover| leftover.id == *id && here(&leftover.nonce)) {
        return Some("a create that was given up made it, and this plan deletes it".into());
    }
    None
}

/// Returns the address whose create in doubt made an object; none if the object bears no one-time name of a
/// create in doubt.
fn made_for<'a>(
    input: &'a PlanInput<'_>,
    (resource, address): (&ResourceConfig, &Address),
    observed: &Attributes,
) -> Option<&'a Address> {
    let Identity::OneTimeName { attribute } = &resource.schema.identity else { return None };
    let Some(Value::String(name)) = observed.get(attribute) else { return None };
    let provider = resource.provider.of(address);
    input.snapshot.named_in_doubt(&provider, &resource.block.ty, name).next()
}

impl Imported {
    fn new(input: &PlanInput<'_>, id: &ObjectId, observed: &Attributes, wanted: &Wanted) -> Self {
        let key = &input.snapshot.seal_key;
        // The object may have a secret of the spec in another place, or may have another secret.
        let secrets = KnownSecrets::default().with(&wanted.attributes, &wanted.sensitive);
        let recorded = seal_attributes(&wanted.attributes, &wanted.sensitive, key);
        let sealer = SecretScanner::new(key, &secrets);
        let attributes = sealer.seal(observed, &wanted.sensitive, &[&recorded]);
        let object = Object {
            id: id.clone(),
            progress: Progress::Ready,
            attributes: Stored::of_sealed(&Value::map(attributes.clone())),
            managed: wanted.attributes.keys().cloned().collect(),
            sensitive: wanted.sensitive.clone(),
            delete_sent_ms: None,
            made_with: std::collections::BTreeMap::new(),
            input_fingerprints: std::collections::BTreeMap::new(),
        };
        Self { object, attributes: Arc::new(attributes) }
    }

    /// Returns the object as it is now.
    pub(in crate::plan) fn live(&self) -> Live<'_> {
        Live {
            object: &self.object,
            attributes: self.attributes.clone(),
            stored: self.attributes.clone(),
        }
    }

    /// Turns the decision about the object into an import, and returns the record that takes the object over.
    /// If the object would have to be replaced, it is not the one that the spec means: reports that and
    /// returns none.
    pub(in crate::plan) fn take_over(
        &self,
        decision: &mut Decision,
        import: &ImportConfig,
        found: &mut Diagnostics,
    ) -> Option<Record> {
        let Draft { change, .. } = &mut decision.draft;
        if change.action == Action::Replace {
            found.push(diagnostics::import_would_replace(import.span, change));
            change.action = Action::NoOp;
            return None;
        }
        change.action = Action::Import;
        change.reason = Reason::Imported;
        Some(adopted(change, self.object.clone()))
    }
}

fn adopted(change: &Change, object: Object) -> Record {
    Record::Adopted {
        address: change.address.clone(),
        provider: change.provider.clone(),
        object,
        dependencies: change.dependencies.clone(),
        deposed: false,
    }
}

/// Reports the imports that name an instance which their block does not have.
pub(in crate::plan) fn report_unused(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    found: &mut Diagnostics,
) {
    let imports = &context.input.config.imports;
    let unused =
        imports.iter().filter(|(address, it)| !it.of_type && !evaluation.planned.has(address));
    let unused: BTreeSet<&Address> = unused.map(|(address, _)| address).collect();
    for address in unused {
        let span = imports[address].span;
        found.push(diagnostics::import_of_no_instance(span, address));
    }
}
