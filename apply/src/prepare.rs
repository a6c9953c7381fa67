//! Preparing a step: its object as it is to be, filled, and checked once more before the call.

use std::collections::BTreeSet;

use engine::address::{Address, Name};
use engine::constraint;
use engine::expression::{Expr, Kind};
use engine::plan::{Action, Change, rules};
use engine::schema::{Presence, TypeSchema};
use engine::value::{Attributes, Datum, Value};

use crate::fill::{FillScope, fill, known};
use crate::trouble::Trouble;

/// The object that a change wants, in clear and fully known. What the API itself fills in is not
/// in it.
pub(crate) fn desired(
    change: &Change,
    schema: &TypeSchema,
    scope: &FillScope<'_>,
) -> Result<Attributes, Trouble> {
    let mut desired = Attributes::new();
    let Some(after) = &change.after else { return Ok(desired) };
    for (name, value) in after.iter() {
        let Some(attribute) = schema.attributes.get(name) else { continue };
        let filled = match change.secrets.get(name) {
            Some(expr) => known(expr, scope).map(|datum| datum.value),
            None if filled_by_api(value, change, name) => continue,
            None => fill(value, scope),
        };
        let filled = filled.map_err(|why| Trouble::new(format!("`{name}` is not known: {why}")))?;
        let filled = filled
            .convert(&attribute.ty)
            .map_err(|misfit| Trouble::new(format!("`{name}` has the wrong type {misfit}")))?;
        if attribute.presence != Presence::Computed && !value.is_known() {
            check_constraint(name, schema, &filled)?;
        }
        desired.insert(name.clone(), filled);
    }
    check_rules(change, schema, &desired)?;
    Ok(desired)
}

/// An unknown that stands for the object's own attribute: only the API can say it.
fn filled_by_api(value: &Value, change: &Change, name: &Name) -> bool {
    let Value::Unknown(unknown) = value else { return false };
    unknown.residual == Expr::slot(&change.address, name)
        || refers_to(&unknown.residual, &change.address)
}

/// Whether an expression refers to the resource itself, as derived attributes do.
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

fn check_constraint(name: &Name, schema: &TypeSchema, value: &Value) -> Result<(), Trouble> {
    let attribute = &schema.attributes[name];
    let unit = attribute.unit.as_deref();
    let violations = constraint::violations(name, unit, &attribute.constraint, value);
    match violations.into_iter().find(|violation| !violation.outside_list) {
        Some(violation) => Err(Trouble { message: violation.message, help: violation.help }),
        None => Ok(()),
    }
}

fn check_rules(change: &Change, schema: &TypeSchema, desired: &Attributes) -> Result<(), Trouble> {
    if change.deferred_rules == 0 {
        return Ok(());
    }
    let sensitive = crate::observe::sensitive(schema, &change.sensitive);
    let old = match &change.before {
        Some(before) => Datum { value: Value::Map(before.clone()), sensitive: sensitive.clone() },
        None => Datum::plain(Value::Null),
    };
    let new = Datum { value: Value::map(desired.clone()), sensitive };
    match rules::broken_before_call(&schema.rules, change.action, &old, &new) {
        Some((message, help)) => Err(Trouble { message, help }),
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
