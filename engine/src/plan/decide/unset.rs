//! Attributes that the last applied spec gave and this one does not, if the type says how to clear them.

use crate::address::Name;
use crate::expression::Expr;
use crate::plan::decide::case::Case;
use crate::plan::decide::programs::{Judged, choose};
use crate::plan::decide::resume;
use crate::plan::facts::prior::{Live, overlay};
use crate::schema::{Attribute, Unset};
use crate::value::{Attributes, Value};

/// Returns the values that clear the attributes which the spec no longer gives. An attribute that the update
/// of this object cannot clear stays as it is.
pub(in crate::plan) fn cleared(case: &Case<'_>, live: &Live<'_>, goal: &Attributes) -> Attributes {
    let schema = &case.resource.schema;
    let mut cleared: Attributes = live
        .object
        .managed
        .iter()
        .filter(|name| !case.wanted.attributes.contains_key(*name))
        .filter(|name| !is_left_to_others(case, live, name))
        .filter_map(|name| {
            let value = value(case, name, schema.attributes.get(name)?)?;
            Some((name.clone(), value))
        })
        .collect();
    if cleared.is_empty() {
        return cleared;
    }
    let planned = overlay(&overlay(&live.attributes, goal), &cleared);
    let judged = Judged::changed(Some(&live.attributes), Some(&planned));
    let program = choose(&schema.update, judged);
    let phases = program.map_or(&[][..], |program| &schema.update[program].phases);
    cleared.retain(|name, _| {
        let unset = schema.attributes[name].unset.as_ref();
        unset.is_some_and(|unset| phases.iter().any(|phase| unset.is_done_by(phase, name)))
    });
    cleared
}

/// Returns true if the spec ignores the attribute, or the API derives it anew in the same update.
fn is_left_to_others(case: &Case<'_>, live: &Live<'_>, name: &Name) -> bool {
    let resource = case.resource;
    resource.lifecycle.ignore_changes.contains(name)
        || resume::is_derived_anew(name, resource, (&case.wanted.attributes, live))
}

/// Returns the value of a cleared attribute. If the API then chooses a value, it is known only after apply.
fn value(case: &Case<'_>, name: &Name, attribute: &Attribute) -> Option<Value> {
    Some(match attribute.unset.as_ref()? {
        Unset::Value(value) => attribute.as_shown(value.clone()),
        Unset::Absent if attribute.server_default => {
            Value::unknown(attribute.ty.clone(), Expr::slot(case.address, name))
        }
        Unset::Absent => Value::Null,
    })
}
