//! The objects of the state as expressions see them, for a destroy, which decides nothing from the spec.

use crate::config::{DataConfig, ResourceConfig, SpecExpr};
use crate::diagnostics::Diagnostics;
use crate::expression::Kind;
use crate::graph::Declared;
use crate::plan::context::Context;
use crate::plan::decide::action;
use crate::plan::evaluate::desired::Instance;
use crate::plan::evaluate::scope::object;
use crate::plan::evaluate::{Evaluation, desired};
use crate::plan::facts::prior;
use crate::plan::look_up;
use crate::value::{Datum, Path, Value};

/// Plans every resource with the attributes that the state has. A destroy decides nothing from the spec, but
/// its flags need the objects that they refer to.
pub(in crate::plan) fn objects<'a>(context: &Context<'a>) -> Evaluation<'a> {
    let mut evaluation = Evaluation::default();
    let resources = &context.input.config.resources;
    let is_computed = |item: &SpecExpr| !matches!(item.expr.kind, Kind::Literal(_));
    let has_flags = resources.values().flat_map(flags).any(is_computed);
    if !has_flags {
        return evaluation;
    }
    for declared in context.input.graph.walk(context.input.config).flatten() {
        let resource = match declared {
            Declared::Resource(resource) => resource,
            Declared::Data(data) => {
                declare_data(context, &mut evaluation, data);
                continue;
            }
        };
        let scope = context.scope(&evaluation);
        // An error in a resource does not prevent its destruction.
        let instances = desired::expand(resource, &scope, &mut Diagnostics::new());
        if resource.for_each.is_some() {
            evaluation.planned.declare_many(&resource.block);
        }
        for instance in instances.unwrap_or_default() {
            let object = prior_object(context, &evaluation, resource, &instance);
            evaluation.planned.insert(&resource.block, instance.address.key.as_ref(), object);
        }
    }
    evaluation
}

/// Declares the instances of a data block as unknown: a destroy looks nothing up.
fn declare_data<'a>(context: &Context<'a>, evaluation: &mut Evaluation<'a>, data: &'a DataConfig) {
    let scope = context.scope(evaluation);
    let block = (&data.block, data.for_each.as_ref());
    let instances = desired::expand_block(block, &scope, &mut Diagnostics::new());
    if data.for_each.is_some() {
        evaluation.planned.declare_many(&data.block);
    }
    for Instance { address, .. } in instances.unwrap_or_default() {
        let object = look_up::unknown(data, &address);
        evaluation.planned.insert(&data.block, address.key.as_ref(), object);
    }
}

fn flags(resource: &ResourceConfig) -> impl Iterator<Item = &SpecExpr> {
    resource.lifecycle.prevent_destroy.iter().chain(&resource.lifecycle.retain)
}

fn prior_object<'a>(
    context: &Context<'a>,
    evaluation: &Evaluation<'a>,
    resource: &ResourceConfig,
    instance: &desired::Instance<'_>,
) -> Datum {
    let address = &instance.address;
    let entry = context.input.snapshot.entries.get(address);
    let current = entry.and_then(|entry| entry.current.as_ref());
    if let Some(current) = current
        && let Ok(stored) = prior::stored_attributes(&current.attributes, &resource.schema)
    {
        let seen = context.observed(address, current);
        let seen = seen.map_or(stored.clone(), |seen| prior::overlay(&stored, seen));
        let mut sensitive = resource.schema.sensitive();
        sensitive.extend_below(&Path::root(), &current.sensitive);
        prior::derive(&resource.schema, &mut seen.clone(), &mut sensitive);
        return object(seen, sensitive);
    }
    let scope = context.scope(evaluation).with_each(instance.each.as_ref());
    let enabled = resource.lifecycle.enabled.as_ref();
    match desired::flag(enabled, "enabled", &scope, address, &mut Diagnostics::new()) {
        Some(false) => Datum::plain(Value::Null),
        _ => object(action::all_unknown(&resource.schema, address), resource.schema.sensitive()),
    }
}
