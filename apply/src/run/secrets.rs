//! Values that a step needs of other objects and that the state does not have in clear: secrets, of which the
//! state keeps fingerprints, and attributes that no answer has shown so far. They are computed from the
//! plan's expressions, else read from the API, and kept in memory for one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::expression::Expr;
use engine::journal::ProgramKind;
use engine::plan::Change;
use engine::plan::facts::prior::{derive, overlay, stored_attributes};
use engine::schema::TypeSchema;
use engine::stored::KnownSecrets;
use engine::types::Type;
use engine::value::{Attributes, Datum, Paths, Value};

use super::call::InFlight;
use super::{Run, StepContext};
use crate::fill::{is_told_by_api, known, named};
use crate::read::read_object;
use crate::refresh::sensitive;

/// An object that must be known in clear, with the attribute names that the residuals read, on whatever
/// object.
struct Needed {
    address: Address,
    names: Arc<BTreeSet<Name>>,
}

/// Clear values of one run, in memory only.
pub(super) struct ClearValues {
    /// The values of sensitive variables.
    pub(super) variables: Arc<[Value]>,
    /// The texts of the secrets. No record may show them, wherever an answer has them.
    pub(super) known: KnownSecrets,
    /// The attributes of objects with secrets, in clear.
    pub(super) objects: BTreeMap<Address, Attributes>,
    /// The objects that were read for missing values since their last call.
    pub(super) asked: BTreeSet<Address>,
}

impl ClearValues {
    /// Takes the values of sensitive variables, and the answers of look-ups that hold secrets.
    pub(super) fn new<'d>(given: impl Iterator<Item = &'d Datum> + Clone) -> Self {
        let secret = given.clone().filter(|datum| !datum.sensitive.is_empty());
        Self {
            variables: secret.map(|datum| datum.value.clone()).collect(),
            known: KnownSecrets::of(given),
            objects: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Keeps the attributes of an object with secrets, in memory: those of earlier answers, those that were
    /// sent, and those of this answer. Many APIs show a token only once, in the answer to the create.
    pub(super) fn keep(&mut self, flight: &InFlight, object: Option<&provider_port::Object>) {
        let InFlight { started, schema, .. } = flight;
        let desired = &flight.sent.desired;
        if started.phase.kind == ProgramKind::Delete {
            return;
        }
        // After this call, the API may show more of the object.
        self.asked.remove(&started.address);
        // A create makes another object than the one before, so earlier answers do not count.
        let before = self.objects.remove(&started.address).filter(|_| !started.phase.makes());
        if before.is_none() && sensitive(schema, &started.sensitive).is_empty() {
            return;
        }
        let mut clear = overlay(&before.unwrap_or_default(), desired);
        let answered = object.into_iter().flat_map(|object| &object.attributes);
        // An attribute that the API never shows, by its descriptor, keeps the value that was sent.
        let is_true = |name: &Name| !(schema.is_hidden(name) && desired.contains_key(name));
        clear.extend(
            answered
                .filter(|(name, _)| is_true(name))
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        self.objects.insert(started.address.clone(), clear);
    }
}

impl Run<'_> {
    /// Gets in clear the values of other objects that the residuals of a change need.
    pub(super) async fn reveal(&mut self, change: &Change) {
        let mut residuals: Vec<Value> = change.secrets.values().map(unknown).collect();
        residuals.extend(change.after.iter().flat_map(|after| after.values()).cloned());
        self.reveal_for(&residuals, Some(&change.address)).await;
    }

    /// Gets in clear the values that outputs need which only this run can compute. The other outputs are kept
    /// as the plan has them.
    pub(super) async fn reveal_outputs(&mut self) {
        let outputs = self.input.plan.outputs.values();
        let open = outputs.filter(|it| it.after.as_ref().is_some_and(|after| !after.is_known()));
        let residuals: Vec<Value> =
            open.filter_map(|it| Some(unknown(it.secret.as_ref()?))).collect();
        self.reveal_for(&residuals, None).await;
    }

    pub(super) async fn reveal_for(&mut self, residuals: &[Value], own: Option<&Address>) {
        for Needed { address, names } in self.context().needed(residuals, own) {
            if !self.secrets.asked.insert(address.clone()) {
                continue;
            }
            let clear = self.secrets.objects.get(&address).cloned().unwrap_or_default();
            let revealed = self.context().revealed(&address, &names, &clear).await;
            // A value from an answer of this run counts more.
            self.secrets.objects.insert(address, overlay(&revealed, &clear));
        }
    }
}

impl StepContext<'_> {
    /// Returns the objects of which values are missing to compute the residuals. Each comes after the objects
    /// that its own secrets are computed from.
    fn needed(&self, residuals: &[Value], own: Option<&Address>) -> Vec<Needed> {
        let mut seen: BTreeSet<Address> = own.into_iter().cloned().collect();
        let mut found = Vec::new();
        // True marks an object whose own inputs are already in the list before it.
        let mut open: Vec<(Needed, bool)> =
            self.named_in(residuals).map(|it| (it, false)).collect();
        while let Some((needed, is_left)) = open.pop() {
            if is_left {
                found.push(needed);
            } else if seen.insert(needed.address.clone()) && self.lacks_something(&needed) {
                let change = self.input.plan.change(&needed.address);
                let secrets = change.into_iter().flat_map(|change| change.secrets.values());
                let secrets: Vec<Value> = secrets.map(unknown).collect();
                open.push((needed, true));
                open.extend(self.named_in(&secrets).map(|it| (it, false)));
            }
        }
        found
    }

    /// Returns the objects that residuals refer to, with the attribute names that the residuals read.
    fn named_in(&self, residuals: &[Value]) -> impl Iterator<Item = Needed> + use<> {
        let mut names = BTreeSet::new();
        for value in residuals {
            name_all(value, &mut names);
        }
        let names = Arc::new(names);
        let addresses = self.input.plan.referred(residuals).into_iter();
        addresses.map(move |address| Needed { address, names: names.clone() })
    }

    fn lacks_something(&self, Needed { address, names }: &Needed) -> bool {
        let nothing = Attributes::new();
        let clear = self.clear.get(address).unwrap_or(&nothing);
        !self.lacking(address, names, clear).is_empty()
    }

    /// Returns the attributes of an object of which only fingerprints are known, and those among `names` that
    /// no answer has shown. Leaves out the attributes in `has`.
    fn lacking(
        &self,
        address: &Address,
        names: &BTreeSet<Name>,
        has: &Attributes,
    ) -> BTreeSet<Name> {
        let Some((stored, schema)) = self.stored(address) else { return BTreeSet::new() };
        let sealed = stored.iter().filter(|(_, value)| value.holds_sealed()).map(|(name, _)| name);
        // An expression may name more instances than an object has attributes.
        let unshown = schema.attributes.iter().filter(|(name, attribute)| {
            names.contains(*name) && is_told_by_api(attribute) && !stored.contains_key(*name)
        });
        let unshown = unshown.map(|(name, _)| name);
        sealed.chain(unshown).filter(|name| !has.contains_key(*name)).cloned().collect()
    }

    /// Returns the attributes of an address's object as the state has them.
    fn stored(&self, address: &Address) -> Option<(Attributes, Arc<TypeSchema>)> {
        let entry = self.snapshot.entries.get(address)?;
        let provider = self.input.providers.get(&entry.provider)?;
        let schema = provider.schema().types.get(&address.block.ty)?.clone();
        let stored = stored_attributes(&entry.current.as_ref()?.attributes, &schema).ok()?;
        Some((stored, schema))
    }

    /// Returns the missing values of an object that can be known in clear: computed from its own spec, else
    /// read from the API.
    async fn revealed(
        &self,
        address: &Address,
        names: &BTreeSet<Name>,
        has: &Attributes,
    ) -> Attributes {
        let Some((stored, schema)) = self.stored(address) else { return Attributes::new() };
        let said = self.said(address, &stored, &schema);
        let is_shown = |name: &Name| !schema.is_hidden(name);
        let mut lacking = self.lacking(address, names, &overlay(has, &said));
        lacking.retain(is_shown);
        if lacking.is_empty() {
            return said;
        }
        let mut shown = self.read_for(address).await.unwrap_or_default();
        // A value of an attribute that the API never shows, by its descriptor, is not believed.
        shown.retain(|name, _| is_shown(name));
        overlay(&shown, &said)
    }

    /// Returns the secrets that an object's own spec gives, and the derived attributes that follow from them.
    fn said(&self, address: &Address, stored: &Attributes, schema: &TypeSchema) -> Attributes {
        let change = self.input.plan.change(address);
        let secrets = change.into_iter().flat_map(|change| &change.secrets);
        let scope = self.scope();
        let said: Attributes = secrets
            .filter_map(|(name, expr)| Some((name.clone(), known(expr, &scope).ok()?.value)))
            .collect();
        if said.is_empty() {
            return said;
        }
        let mut whole = overlay(stored, &said);
        derive(schema, &mut whole, &mut Paths::none());
        let follows = |name: &Name| {
            schema.attributes.get(name).is_some_and(|attribute| attribute.derived.is_some())
        };
        whole.retain(|name, value| {
            (said.contains_key(name) || follows(name)) && value.is_known() && !value.holds_sealed()
        });
        whole
    }

    async fn read_for(&self, address: &Address) -> Option<Attributes> {
        let entry = self.snapshot.entries.get(address)?;
        let provider = self.input.providers.get(&entry.provider)?;
        let id = &entry.current.as_ref()?.id;
        tokio::select! {
            // The order is fixed, not random: a slow read does not hold up a stop.
            biased;
            () = self.input.stop.cancelled() => None,
            object = read_object(&**provider, &address.block.ty, id) => Some(object.ok()?.attributes),
        }
    }
}

fn unknown(expr: &Expr) -> Value {
    Value::unknown(Type::Any, expr.clone())
}

/// Adds the attribute names that the residuals in a value read, on whatever object.
fn name_all(value: &Value, names: &mut BTreeSet<Name>) {
    match value {
        Value::Unknown(unknown) => names.extend(named(&unknown.residual).into_iter().cloned()),
        Value::List(items) | Value::Set(items) => {
            for item in items.iter() {
                name_all(item, names);
            }
        }
        Value::Map(entries) => {
            for item in entries.values() {
                name_all(item, names);
            }
        }
        _ => {}
    }
}
