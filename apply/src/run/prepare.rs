//! Preparing a step: its object as it is to be, filled, and checked once more before the call.

use std::collections::BTreeSet;

use engine::address::{Address, Name};
use engine::constraint;
use engine::expression::visit::without_literals;
use engine::expression::{Expr, Kind};
use engine::journal::{PhaseRef, Started};
use engine::plan::facts::prior::overlay;
use engine::plan::{Action, Change, broken_before_call};
use engine::schema::{Attribute, Identity, Presence, Sends, TypeSchema};
use engine::state::{ObjectId, Snapshot};
use engine::value::{Attributes, Datum, Path, Paths, Value};

use crate::fill::{FillScope, fill, known};
use crate::refresh::sensitive;
use crate::step_error::StepError;
use crate::unseal::Unsealer;

/// The object that a change wants, in clear and fully known. What the API itself fills in is not
/// in it, nor what cannot be computed and is not sent by the phase, such as a secret that was shown
/// once and does not change.
pub(crate) fn desired(
    change: &Change,
    (schema, phase): (&TypeSchema, PhaseRef),
    scope: &FillScope<'_>,
) -> Result<Attributes, StepError> {
    let (mut desired, mut left_out) = (Attributes::new(), Attributes::new());
    let Some(after) = &change.after else { return Ok(desired) };
    let sensitive = sensitive(schema, &change.sensitive);
    let unsealer = Unsealer::of(change, scope.snapshot, schema);
    for (name, value) in after.iter() {
        let Some(attribute) = schema.attributes.get(name) else { continue };
        let filled = match change.secrets.get(name) {
            Some(expr) => known(expr, scope).map(|datum| datum.value),
            None if filled_by_api(value, change, name) => continue,
            None => fill(&unsealer.attribute(name, value), scope),
        };
        let filled = match filled {
            Ok(filled) => filled,
            Err(_) if !sends((schema, phase), change, name) => {
                left_out.insert(name.clone(), value.clone());
                continue;
            }
            Err(why) => return Err(StepError::new(format!("`{name}` is not known: {why}"))),
        };
        let filled = filled.convert(&attribute.ty).map_err(|misfit| {
            let misfit = misfit.shown(sensitive.touches(&Path::attribute(name.clone())));
            StepError::new(format!("`{name}` has the wrong type: {misfit}"))
        })?;
        let is_found_out = attribute.presence != Presence::Computed && !value.is_known();
        let filled = if is_found_out {
            let before = unsealer.before(change, name);
            let given = given((name, attribute), (change, value, before), filled)?;
            check_constraint((name, attribute), (change, &sensitive), &given)?;
            given
        } else {
            attribute.as_shown(filled)
        };
        desired.insert(name.clone(), filled);
    }
    check_rules(change, (schema, &unsealer), (&desired, &left_out))?;
    check_id(change, schema, &desired, scope.snapshot)?;
    Ok(desired)
}

/// What a spec gives with a value that nobody knew while planning, as the plan would have taken it: a null
/// gives nothing, so there is the default, or what must be given is missing, or what there was stays.
fn given(
    (name, attribute): (&Name, &Attribute),
    (change, planned, before): (&Change, &Value, Option<Value>),
    found: Value,
) -> Result<Value, StepError> {
    let is_required = attribute.presence == Presence::Required;
    let is_null = found.is_null();
    let shown = attribute.as_shown(found);
    match &attribute.default {
        Some(default) if is_null || is_required && shown.is_null() => Ok(default.clone()),
        None if is_required && shown.is_null() => Err(missing(name, change, planned)),
        None if is_null && matches!(change.action, Action::Update | Action::Import) => {
            kept(name, (change, before), planned)
        }
        _ => Ok(shown),
    }
}

/// What an object has of an attribute that an update leaves as it is. A secret that it has nobody could send
/// again, and null would take it away.
fn kept(
    name: &Name,
    (change, live): (&Change, Option<Value>),
    planned: &Value,
) -> Result<Value, StepError> {
    match live {
        Some(live) if live.holds_sealed() => Err(StepError {
            message: format!(
                "{} comes to null, and the secret that the object has in `{name}` is not known",
                source(name, change, planned)
            ),
            help: Some(format!(
                "give `{name}` a value, or leave it alone: lifecycle = {{ ignore_changes = [\"{name}\"] }}"
            )),
        }),
        Some(live) if live.is_known() => Ok(live),
        _ => Ok(Value::Null),
    }
}

/// What an attribute is computed from, for people.
fn source(name: &Name, change: &Change, planned: &Value) -> String {
    match (change.secrets.get(name), planned) {
        (Some(expr), _) => format!("`{}`", without_literals(expr)),
        (None, Value::Unknown(unknown)) => format!("`{}`", unknown.residual),
        _ => "what it is computed from".to_owned(),
    }
}

fn missing(name: &Name, change: &Change, planned: &Value) -> StepError {
    let source = source(name, change, planned);
    StepError {
        message: format!("`{name}` is required, and {source} comes to null"),
        help: Some(
            "apply again once it has a value; where an API gives it a moment later, a descriptor \
             waits for it with `until`"
                .to_owned(),
        ),
    }
}

/// Returns true if a phase needs an attribute. What makes an object needs all of it, for the phases after it.
fn sends((schema, phase): (&TypeSchema, PhaseRef), change: &Change, name: &Name) -> bool {
    let Some(model) = schema.phase(phase).filter(|_| !phase.makes()) else { return true };
    match &model.sends {
        Sends::All => phase.calls() && model.carries(name),
        Sends::Changed => phase.calls() && changed(change).contains(name),
        Sends::These(names) => phase.calls() && names.contains(name),
        Sends::Nothing => false,
    }
}

/// An id that the plan did not know yet is nobody's: a create under that of an object of ours would
/// change this one, and the end of the one would be that of both.
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

/// Who stands for an object that is not the one which the change has made itself, or makes it now.
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

/// An unknown that stands for the object's own attribute: only the API can say it.
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

fn check_constraint(
    (name, attribute): (&Name, &Attribute),
    (change, sensitive): (&Change, &Paths),
    value: &Value,
) -> Result<(), StepError> {
    let unit = attribute.unit.as_deref();
    let violations = constraint::violations(name, unit, &attribute.constraint, value);
    // As the plan does with what it knows.
    let is_tolerated = change.allow_unknown.contains(name);
    let mut wrong = violations.into_iter().filter(|it| !(it.outside_list && is_tolerated));
    match wrong.next() {
        // The message of a violation names the value, and its help what is near to it.
        Some(violation) if sensitive.touches(&Path::attribute(name.clone())) => {
            Err(StepError::new(violation.without_value(&format!("the value of `{name}`"))))
        }
        Some(violation) => Err(StepError { message: violation.message, help: violation.help }),
        None => Ok(()),
    }
}

fn check_rules(
    change: &Change,
    (schema, unsealer): (&TypeSchema, &Unsealer),
    (desired, left_out): (&Attributes, &Attributes),
) -> Result<(), StepError> {
    if change.deferred_rules == 0 {
        return Ok(());
    }
    let sensitive = sensitive(schema, &change.sensitive);
    let old = match &change.before {
        Some(before) => {
            Datum { value: Value::map(unsealer.object(before)), sensitive: sensitive.clone() }
        }
        None => Datum::plain(Value::Null),
    };
    let new = Datum { value: Value::map(overlay(left_out, desired)), sensitive };
    match broken_before_call(&schema.rules, change.action, &old, &new) {
        Some((message, help)) => Err(StepError { message, help }),
        None => Ok(()),
    }
}

/// The attributes that a change sends as changed.
pub(crate) fn changed(change: &Change) -> BTreeSet<Name> {
    match change.action {
        Action::Create | Action::Replace => change.managed.iter().cloned().collect(),
        _ => change.causes.iter().map(|cause| cause.attribute.clone()).collect(),
    }
}
