//! What `lifecycle` says of an instance that is to go: `retain` and `prevent_destroy`.
//!
//! They are read as for an instance that stays, with its own `each`. What cannot be read is said,
//! and refuses the plan: nothing is deleted because a protection could not be understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::config::{ResourceConfig, SpecExpr};
use crate::diagnostics::Diagnostics;
use crate::expression::visit::roots;
use crate::expression::{Expr, Kind, Root};
use crate::plan::decide::action;
use crate::plan::diagnostics;
use crate::plan::evaluate::desired;
use crate::plan::evaluate::scope::{Each, EachSource, SpecScope, object};
use crate::plan::facts::prior;
use crate::plan::pipeline::Planner;
use crate::plan::secrets::parting;
use crate::sorted::Set;
use crate::types::Type;
use crate::value::{Datum, Path, Value};

/// What is known of `each` for the block that was looked at last; the state lists the instances of a
/// block one after the other.
#[derive(Default)]
pub(in crate::plan) struct EachCache<'a> {
    source: Option<(&'a Block, Arc<EachSource<'a>>)>,
    /// The values by key; none where `for_each` cannot be evaluated.
    values: Option<(Block, Option<BTreeMap<Name, Valued>>)>,
}

/// `each.value` of an entry, and the resources that it may come from.
type Valued = (Datum, Arc<Set<Address>>);

/// Plans every resource as the state has it, so that in a destroy, which decides nothing from the
/// spec, the flags still see what they refer to, and what is secret by now is known.
pub(in crate::plan) fn look_around(planner: &mut Planner<'_>) {
    let resources = &planner.input.config.resources;
    let is_computed = |item: &SpecExpr| !matches!(item.expr.kind, Kind::Literal(_));
    let has_flags = resources.values().flat_map(flags).any(is_computed);
    if !has_flags && !parting::are_secrets(planner) {
        return;
    }
    for resource in planner.input.graph.walk(planner.input.config).flatten() {
        let scope = SpecScope::new(planner.input.config, &planner.planned, &planner.locals);
        // What is wrong with a resource does not keep it from being destroyed.
        let instances = desired::expand(resource, &scope, &mut Diagnostics::new());
        if resource.for_each.is_some() {
            planner.planned.declare_many(&resource.block);
        }
        for instance in instances.unwrap_or_default().instances {
            let object = as_it_is(planner, resource, &instance);
            planner.planned.insert(&resource.block, instance.address.key.as_ref(), object);
        }
    }
}

fn flags(resource: &ResourceConfig) -> impl Iterator<Item = &SpecExpr> {
    resource.lifecycle.prevent_destroy.iter().chain(&resource.lifecycle.retain)
}

fn as_it_is(
    planner: &Planner<'_>,
    resource: &ResourceConfig,
    instance: &desired::Instance<'_>,
) -> Datum {
    let address = &instance.address;
    let entry = planner.input.snapshot.entries.get(address);
    let current = entry.and_then(|entry| entry.current.as_ref());
    if let Some(current) = current
        && let Ok(stored) = prior::stored_attributes(&current.attributes, &resource.schema)
    {
        let seen = planner.seen_of(address, current);
        let seen = seen.map_or(stored.clone(), |seen| prior::overlay(&stored, seen));
        let of_spec = (resource, instance.each.as_ref());
        let mut sensitive = parting::places(planner, of_spec, &seen);
        sensitive.extend_below(&Path::root(), &current.sensitive);
        return object(seen, sensitive);
    }
    let scope = SpecScope::new(planner.input.config, &planner.planned, &planner.locals)
        .with_each(instance.each.as_ref());
    let enabled = resource.lifecycle.enabled.as_ref();
    match desired::flag(enabled, "enabled", &scope, address, &mut Diagnostics::new()) {
        Some(false) => Datum::plain(Value::Null),
        _ => object(action::all_unknown(&resource.schema, address), resource.schema.sensitive()),
    }
}

/// Whether the object is to be left alone when its address goes.
pub(in crate::plan) fn retained<'a>(
    planner: &mut Planner<'a>,
    address: &Address,
    config: Option<&'a ResourceConfig>,
) -> bool {
    let item = config.and_then(|config| config.lifecycle.retain.as_ref());
    // What cannot be read was said, and the plan is refused; until it is mended, nothing goes.
    flag(planner, address, config, item, "retain").unwrap_or(true)
}

/// Refuses the end of a protected object.
pub(in crate::plan) fn protect<'a>(
    planner: &mut Planner<'a>,
    address: &Address,
    config: Option<&'a ResourceConfig>,
) {
    let item = config.and_then(|config| config.lifecycle.prevent_destroy.as_ref());
    if flag(planner, address, config, item, "prevent_destroy") == Some(true) {
        let span = item.map(|item| item.span);
        planner.diagnostics.push(diagnostics::destroy_prevented(span, address, "delete"));
    }
}

/// The value of a flag; none where it cannot be read, which is said as an error.
fn flag<'a>(
    planner: &mut Planner<'a>,
    address: &Address,
    config: Option<&'a ResourceConfig>,
    item: Option<&SpecExpr>,
    word: &'static str,
) -> Option<bool> {
    let (Some(config), Some(item)) = (config, item) else { return Some(false) };
    let mut found = Diagnostics::new();
    let Ok(each) = each(planner, address, config, item) else {
        planner.diagnostics.push(diagnostics::flag_of_gone_key(item.span, word, address));
        return None;
    };
    let gone = each.as_ref().is_some_and(|each| matches!(each.value.value, Value::Unknown(_)));
    let scope = SpecScope::new(planner.input.config, &planner.planned, &planner.locals);
    let scope = scope.with_each(each.as_ref());
    let value = desired::flag(Some(item), word, &scope, address, &mut found);
    if value.is_none() && gone {
        // What was said of the unknown value is not what the reader needs to know.
        found = Diagnostics::new();
        found.push(diagnostics::flag_of_gone_key(item.span, word, address));
    }
    let looked_at = scope.touched();
    planner.deciding.of_flags(address, looked_at);
    planner.diagnostics.extend(found);
    value
}

/// The flag reads `each`, and the instance has none in the spec as it is.
pub(in crate::plan) struct NoEach;

/// `each` of an instance as the spec has it now; with an unknown value where the key is gone,
/// because the flag may follow without it.
pub(in crate::plan) fn each<'a>(
    planner: &mut Planner<'a>,
    address: &Address,
    config: &'a ResourceConfig,
    item: &SpecExpr,
) -> Result<Option<Each<'a>>, NoEach> {
    let Some(for_each) = config.for_each.as_ref().filter(|_| reads(&item.expr, false)) else {
        return Ok(None);
    };
    let key = address.key.clone().ok_or(NoEach)?;
    let value =
        if reads(&item.expr, true) { value_of(planner, address, config, &key) } else { None };
    let (value, touched) = value.unwrap_or_else(|| {
        let unknown = Value::unknown(Type::Any, Expr::nowhere(Kind::Root(Root::EachValue)));
        (Datum::plain(unknown), Arc::default())
    });
    let source = source_of(planner, (&config.block, &for_each.expr));
    Ok(Some(Each { key, value, source, touched }))
}

/// What a block is made for, the same one for all its instances.
fn source_of<'a>(
    planner: &mut Planner<'a>,
    (block, for_each): (&'a Block, &'a Expr),
) -> Arc<EachSource<'a>> {
    match &planner.each.source {
        Some((known, source)) if *known == block => source.clone(),
        _ => {
            let source = EachSource::new(for_each);
            planner.each.source = Some((block, source.clone()));
            source
        }
    }
}

/// Whether an expression reads `each`, or `each.value` in particular.
pub(in crate::plan) fn reads(expr: &Expr, value_only: bool) -> bool {
    let mut found = false;
    roots(expr, &mut |root, _| {
        found |= *root == Root::EachValue || (!value_only && *root == Root::EachKey);
    });
    found
}

fn value_of(
    planner: &mut Planner<'_>,
    address: &Address,
    config: &ResourceConfig,
    key: &Name,
) -> Option<Valued> {
    if planner.each.values.as_ref().is_none_or(|(block, _)| *block != address.block) {
        let scope = SpecScope::new(planner.input.config, &planner.planned, &planner.locals);
        // Outside a destroy the walk has said what is wrong with it; in one, the flag will.
        let instances = desired::expand(config, &scope, &mut Diagnostics::new());
        let values = instances.map(|expanded| {
            let each = expanded.instances.into_iter().filter_map(|instance| instance.each);
            each.map(|each| (each.key, (each.value, each.touched))).collect()
        });
        planner.each.values = Some((address.block.clone(), values));
    }
    let (_, values) = planner.each.values.as_ref()?;
    values.as_ref()?.get(key).cloned()
}
