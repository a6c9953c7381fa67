//! The conversion of a descriptor to the schema that the engine plans with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::Name;
use engine::expression::{Expr, Kind, Root};
use engine::schema::{Phase, PhaseWords, Program, ProviderSchema, Sends, TypeSchema};
use engine::value::Value;
use url::Url;

use super::model::{AttributeModel, Descriptor, PhaseModel, ProgramModel, SendsModel, TypeModel};
use crate::template::names;

/// The first word of addresses in derivations, as in `${api.rest}`.
const API: &str = "api";

impl Descriptor {
    /// Returns the schema without addresses: attributes derived from an address are known only after apply.
    pub fn schema(&self) -> ProviderSchema {
        self.schema_at(&BTreeMap::new())
    }

    /// Returns the schema with the addresses filled into derivations.
    pub(crate) fn schema_at(&self, addresses: &BTreeMap<Name, Url>) -> ProviderSchema {
        let types = self.types.iter();
        ProviderSchema {
            name: self.name.clone(),
            digest: self.digest.clone(),
            types: types
                .map(|(name, model)| (name.clone(), Arc::new(type_schema(name, model, addresses))))
                .collect(),
        }
    }
}

fn type_schema(name: &Name, model: &TypeModel, addresses: &BTreeMap<Name, Url>) -> TypeSchema {
    let mut attributes = BTreeMap::new();
    for (name, attribute) in &model.attributes {
        let mut schema = attribute.schema.clone();
        schema.derived = schema
            .derived
            .and_then(|expr| with_addresses(&expr, addresses))
            .filter(|expr| !names(expr).iter().any(|name| &**name == API));
        attributes.insert(name.clone(), schema);
    }
    TypeSchema {
        name: name.clone(),
        description: model.description.clone(),
        attributes,
        create: model.create.iter().map(|it| program(model, it)).collect(),
        update: model.update.iter().map(|it| program(model, it)).collect(),
        delete: model.delete.iter().map(|it| program(model, it)).collect(),
        identity: model.identity.clone(),
        replace: model.replace,
        unique_name: model.unique_name,
        name_attribute: model.name_attribute.clone(),
        delete_effect: model.delete_effect.clone(),
        price: model.price.as_ref().map(|(price, _)| price.clone()),
        rules: model.rules.clone(),
        remote: true,
        data_only: model.data_only,
        singleton: model.singleton.clone(),
    }
}

fn program(ty: &TypeModel, model: &ProgramModel) -> Program {
    let phase = |phase: &PhaseModel| Phase {
        operation: phase.operation,
        sends: sends(phase),
        without: without(ty, phase),
        waits_for: phase.wait.as_ref().map(|wait| wait.words.clone()),
        words: words(phase),
    };
    Program { when: model.when.clone(), phases: model.phases.iter().map(phase).collect() }
}

/// Returns the words for a phase. A phase without a call only waits until the object is ready.
fn words(phase: &PhaseModel) -> PhaseWords {
    let PhaseWords { doing, done } = phase.words.clone();
    let only_waits = phase.call.is_none();
    let or =
        |own: Option<String>, usual: &str| own.or_else(|| only_waits.then(|| usual.to_owned()));
    PhaseWords { doing: or(doing, "waiting"), done: or(done, "ready") }
}

/// Returns the attributes that a phase sends with the object's own values. An attribute that is sent with
/// another value (a one-time name) does not count, in whatever form the descriptor gives it.
fn sends(phase: &PhaseModel) -> Sends {
    let beside = phase.sends_beside();
    match &phase.sends {
        SendsModel::Nothing if !beside.is_empty() => Sends::These(beside),
        SendsModel::Nothing => Sends::Nothing,
        SendsModel::All => Sends::All,
        SendsModel::Changed => Sends::Changed,
        SendsModel::These(templates) => {
            let own = templates.iter().filter(|(name, template)| {
                matches!(&template.0.kind, Kind::Root(Root::Named(root)) if root == *name)
            });
            Sends::These(own.map(|(name, _)| name.clone()).chain(beside).collect())
        }
    }
}

/// Returns the attributes for which the phase's call has no place, and which the phase does not mention
/// either.
fn without(ty: &TypeModel, phase: &PhaseModel) -> BTreeSet<Name> {
    let Some(call) = &phase.call else { return BTreeSet::new() };
    let in_address = call.names();
    let has_no_place = |name: &Name, it: &AttributeModel| {
        it.is_written_elsewhere(&call.api) || it.is_only_shown() && !phase.tells(name)
    };
    let left_out = ty.attributes.iter().filter(|(name, it)| has_no_place(name, it));
    let names = left_out.map(|(name, _)| name);
    names.filter(|name| !in_address.contains(name)).cloned().collect()
}

/// Returns the derivation with addresses in place of `api.<name>`; none if one is not known. Only texts,
/// conditionals and calls may contain one, because an address is of no use in other expressions.
fn with_addresses(expr: &Expr, addresses: &BTreeMap<Name, Url>) -> Option<Expr> {
    if let Kind::Attribute(base, api) = &expr.kind
        && matches!(&base.kind, Kind::Root(Root::Named(name)) if &**name == API)
    {
        let address = addresses.get(api)?.as_str().trim_end_matches('/');
        return Some(Expr::literal(Value::string(address)));
    }
    let kind = match &expr.kind {
        Kind::Template(parts) => Kind::Template(
            parts.iter().map(|part| with_addresses(part, addresses)).collect::<Option<_>>()?,
        ),
        Kind::Conditional(parts) => Kind::Conditional(Box::new(engine::expression::Conditional {
            condition: with_addresses(&parts.condition, addresses)?,
            yes: with_addresses(&parts.yes, addresses)?,
            no: with_addresses(&parts.no, addresses)?,
        })),
        Kind::Call(call) => Kind::Call(Box::new(engine::expression::Call {
            name: call.name.clone(),
            arguments: call
                .arguments
                .iter()
                .map(|argument| with_addresses(argument, addresses))
                .collect::<Option<_>>()?,
            spread: call.spread,
        })),
        other => other.clone(),
    };
    Some(Expr { kind, range: expr.range })
}
