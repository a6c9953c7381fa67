//! The preparation of a step: the object that its change wants is filled and checked once more before the
//! call.

use std::collections::BTreeSet;

use engine::address::{Address, Name};
use engine::constraint;
use engine::expression::visit::without_literals;
use engine::expression::{Expr, Kind};
use engine::journal::{PhaseRef, Started};
use engine::plan::facts::prior::overlay;
use engine::plan::{Action, Change, broken_before_call};
use engine::schema::{Attribute, Identity, Presence, Sends, TypeSchema, Unset};
use engine::state::{ObjectId, Snapshot};
use engine::value::{Attributes, Datum, Path, Paths, Value};

use crate::fill::{FillScope, fill, known};
use crate::refresh::sensitive;
use crate::step_error::StepError;
use crate::unseal::Unsealer;

/// Returns the object that a change wants, in clear and fully known. Leaves out the attributes that the API
/// fills in, and those that cannot be computed and that the phase does not send, such as an unchanged secret
/// that the API showed only once.
pub(crate) fn desired(
    change: &Change,
    schema: &TypeSchema,
    phase: PhaseRef,
    scope: &FillScope<'_>,
) -> Result<Attributes, StepError> {
    let sensitive = sensitive(schema, &change.sensitive);
    let unsealer = Unsealer::of(change, scope.snapshot, schema);
    Preparation { change, schema, phase, scope, sensitive, unsealer }.desired()
}

/// A change whose object is prepared for a phase.
struct Preparation<'a> {
    change: &'a Change,
    schema: &'a TypeSchema,
    phase: PhaseRef,
    scope: &'a FillScope<'a>,
    sensitive: Paths,
    unsealer: Unsealer,
}

/// An attribute of the wanted object, with its value in the plan.
#[derive(Clone, Copy)]
struct Planned<'a> {
    name: &'a Name,
    attribute: &'a Attribute,
    value: &'a Value,
}

impl Preparation<'_> {
    fn desired(&self) -> Result<Attributes, StepError> {
        let (mut desired, mut left_out) = (Attributes::new(), Attributes::new());
        let Some(after) = &self.change.after else { return Ok(desired) };
        for (name, value) in after.iter() {
            let Some(attribute) = self.schema.attributes.get(name) else { continue };
            let filled = match self.change.secrets.get(name) {
                Some(expr) => known(expr, self.scope).map(|datum| datum.value),
                None if filled_by_api(value, self.change, name) => continue,
                None => fill(&self.unsealer.attribute(name, value), self.scope),
            };
            match filled {
                Ok(filled) => {
                    let value = self.checked(Planned { name, attribute, value }, &filled)?;
                    desired.insert(name.clone(), value);
                }
                Err(_) if !self.sends(name) => {
                    left_out.insert(name.clone(), value.clone());
                }
                Err(why) => return Err(StepError::new(format!("`{name}` is not known: {why}"))),
            }
        }
        self.check_rules(&desired, &left_out)?;
        check_id(self.change, self.schema, &desired, self.scope.snapshot)?;
        Ok(desired)
    }

    /// Returns the value of an attribute, checked and completed as the plan does with known values.
    fn checked(&self, planned: Planned<'_>, filled: &Value) -> Result<Value, StepError> {
        let Planned { name, attribute, value } = planned;
        let filled = filled.convert(&attribute.ty).map_err(|misfit| {
            let misfit = misfit.shown(self.sensitive.touches(&Path::attribute(name.clone())));
            StepError::new(format!("`{name}` has the wrong type: {misfit}"))
        })?;
        if attribute.presence == Presence::Computed || value.is_known() {
            return Ok(attribute.as_shown(filled));
        }
        let given = self.given(planned, filled)?;
        self.check_constraint(planned, &given)?;
        Ok(given)
    }

    /// Returns the value of an attribute that was unknown while planning. Null counts as not given: then the
    /// default applies, or a required attribute is missing, or an update keeps the value of the object.
    fn given(&self, planned: Planned<'_>, found: Value) -> Result<Value, StepError> {
        let attribute = planned.attribute;
        let is_required = attribute.presence == Presence::Required;
        let is_null = found.is_null();
        let shown = attribute.as_shown(found);
        match &attribute.default {
            Some(default) if is_null || is_required && shown.is_null() => Ok(default.clone()),
            None if is_required && shown.is_null() => Err(self.missing(planned)),
            None if is_null && matches!(self.change.action, Action::Update | Action::Import) => {
                self.kept(planned)
            }
            _ => Ok(shown),
        }
    }

    /// Returns the value of an attribute that an update leaves as it is, or the value that clears an
    /// attribute which the last applied spec gave. Fails if the object has a secret there: it could not be
    /// sent, and null would remove it.
    fn kept(&self, planned: Planned<'_>) -> Result<Value, StepError> {
        let name = planned.name;
        if let Some(Unset::Value(value)) = &planned.attribute.unset
            && self.was_managed(name)
        {
            return Ok(planned.attribute.as_shown(value.clone()));
        }
        match self.unsealer.before(self.change, name) {
            Some(live) if live.holds_sealed() => Err(StepError {
                message: format!(
                    "{} comes to null, and the secret that the object has in `{name}` is not known",
                    self.source(planned)
                ),
                help: Some(format!(
                    "give `{name}` a value, or leave it alone: lifecycle = {{ ignore_changes = [\"{name}\"] }}"
                )),
            }),
            Some(live) if live.is_known() => Ok(live),
            _ => Ok(Value::Null),
        }
    }

    /// Returns true if the last applied spec gave an attribute.
    fn was_managed(&self, name: &Name) -> bool {
        let entry = self.scope.snapshot.entries.get(&self.change.address);
        let object = self.change.object.as_ref().and_then(|id| entry?.object(id));
        object.is_some_and(|object| object.managed.contains(name))
    }

    /// Returns what an attribute is computed from, for messages.
    fn source(&self, planned: Planned<'_>) -> String {
        match (self.change.secrets.get(planned.name), planned.value) {
            (Some(expr), _) => format!("`{}`", without_literals(expr)),
            (None, Value::Unknown(unknown)) => format!("`{}`", unknown.residual),
            _ => "what it is computed from".to_owned(),
        }
    }

    fn missing(&self, planned: Planned<'_>) -> StepError {
        let (name, source) = (planned.name, self.source(planned));
        StepError {
            message: format!("`{name}` is required, and {source} comes to null"),
            help: Some(
                "apply again once it has a value; where an API gives it a moment later, a \
                 descriptor waits for it with `until`"
                    .to_owned(),
            ),
        }
    }

    /// Returns true if the phase sends an attribute. A phase that makes an object needs all of them, for the
    /// phases after it.
    fn sends(&self, name: &Name) -> bool {
        let phase = self.phase;
        let Some(model) = self.schema.phase(phase).filter(|_| !phase.makes()) else { return true };
        phase.calls()
            && match &model.sends {
                Sends::All => model.carries(name),
                Sends::Changed => changed(self.change).contains(name),
                Sends::These(names) => names.contains(name),
                Sends::Nothing => false,
            }
    }

    fn check_constraint(&self, planned: Planned<'_>, value: &Value) -> Result<(), StepError> {
        let Planned { name, attribute, .. } = planned;
        let unit = attribute.unit.as_deref();
        let violations = constraint::violations(name, unit, &attribute.constraint, value);
        // The plan tolerates these values, too.
        let is_tolerated = self.change.allow_unknown.contains(name);
        let mut wrong = violations.into_iter().filter(|it| !(it.outside_list && is_tolerated));
        match wrong.next() {
            // The message of a violation repeats the value, and its help names similar ones.
            Some(violation) if self.sensitive.touches(&Path::attribute(name.clone())) => {
                Err(StepError::new(violation.without_value(&format!("the value of `{name}`"))))
            }
            Some(violation) => Err(StepError { message: violation.message, help: violation.help }),
            None => Ok(()),
        }
    }

    fn check_rules(&self, desired: &Attributes, left_out: &Attributes) -> Result<(), StepError> {
        if self.change.deferred_rules == 0 {
            return Ok(());
        }
        let sensitive = self.sensitive.clone();
        let old = match &self.change.before {
            Some(before) => {
                let value = Value::map(self.unsealer.object(before));
                Datum { value, sensitive: sensitive.clone() }
            }
            None => Datum::plain(Value::Null),
        };
        let new = Datum { value: Value::map(overlay(left_out, desired)), sensitive };
        match broken_before_call(&self.schema.rules, self.change.action, &old, &new) {
            Some((message, help)) => Err(StepError { message, help }),
            None => Ok(()),
        }
    }
}

/// Checks that no other address has an id which the plan did not know yet. A create under the id of another
/// object would change that object, and the delete of one would delete both.
fn check_id(
    change: &Change,
    schema: &TypeSchema,
    desired: &Attributes,
    snapshot: &Snapshot,
) -> Result<(), StepError> {
    let Identity::ClientId { attribute } = &schema.identity else { return Ok(()) };
    let planned = change.after.as_ref().and_then(|after| after.get(attribute));
    let makes = matches!(change.action, Action::Create | Action::Replace);
    if !makes || planned.is_none_or(Value::is_known) {
        return Ok(());
    }
    let Some(id) = desired.get(attribute).and_then(id_of) else { return Ok(()) };
    match other_bearer(change, snapshot, &id) {
        Some(owner) => Err(StepError {
            message: format!("the object {id} exists already, and {owner} stands for it"),
            help: Some("plan again: what had to wait for this value is known by now".to_owned()),
        }),
        None => Ok(()),
    }
}

fn id_of(value: &Value) -> Option<ObjectId> {
    match value {
        Value::String(text) => Some(ObjectId(text.clone())),
        Value::Integer(number) => Some(ObjectId(number.to_string().into())),
        _ => None,
    }
}

/// Returns another address that stands for an object or is making it now. The address of the change counts,
/// too, if the object is not the one that the change has made.
fn other_bearer<'s>(change: &Change, snapshot: &'s Snapshot, id: &ObjectId) -> Option<&'s Address> {
    let Change { address, provider, .. } = change;
    let is_other = |owner: &&Address| {
        let current = snapshot.entries.get(*owner).and_then(|entry| entry.current.as_ref());
        let is_made = current.is_some_and(|it| it.id == *id) && change.object.as_ref() != Some(id);
        *owner != address || !is_made
    };
    let mut owners = snapshot.owners(provider, &address.block.ty, id);
    owners.find(is_other).or_else(|| {
        let pending = snapshot.pending.values().map(|pending| &pending.started);
        let mut makers = pending.filter(|it| it.phase.makes() && it.provider == *provider);
        let makes_it = |it: &&Started| {
            it.address != *address
                && it.address.block.ty == address.block.ty
                && it.name.as_deref() == Some(&*id.0)
        };
        makers.find(|it| makes_it(it)).map(|it| &it.address)
    })
}

/// Returns true if a planned value is unknown because only the API can say it: it refers to the object's own
/// attributes.
fn filled_by_api(value: &Value, change: &Change, name: &Name) -> bool {
    let Value::Unknown(unknown) = value else { return false };
    unknown.residual == Expr::slot(&change.address, name)
        || refers_to(&unknown.residual, &change.address)
}

/// Returns true if an expression refers to the resource itself, as derived attributes do.
fn refers_to(expr: &Expr, address: &Address) -> bool {
    let mut found = false;
    engine::expression::visit::walk(expr, &mut |part| {
        if let Kind::Attribute(base, name) = &part.kind
            && *part == Expr::slot(address, name)
            && !matches!(base.kind, Kind::Literal(_))
        {
            found = true;
        }
    });
    found
}

/// Returns the names of the attributes that a change sends as changed.
pub(crate) fn changed(change: &Change) -> BTreeSet<Name> {
    match change.action {
        Action::Create | Action::Replace => change.managed.iter().cloned().collect(),
        _ => change.causes.iter().map(|cause| cause.attribute.clone()).collect(),
    }
}
