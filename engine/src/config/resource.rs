//! The check of one `[resource.TYPE.NAME]` block against its schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::checker::{Checker, place};
use super::names::Managed;
use super::{
    Item, Lifecycle, RawBlock, ResourceConfig, SpecExpr, diagnostics as say, keys, lifecycle,
};
use crate::address::{Address, Block, Name, is_name};
use crate::diagnostics::{Advice, Span, nearest};
use crate::expression::Kind;
use crate::expression::visit::walk;
use crate::schema::{Attribute, Presence, TypeSchema};
use crate::types::Type;
use crate::value::Value;

/// The result of checking a block, without the parts that move from it into the config.
#[derive(Default)]
pub(super) struct Checked {
    depends_on: Vec<(Address, Span)>,
    /// The lifecycle; none if the block does not give one.
    lifecycle: Option<Arc<Lifecycle>>,
}

impl Checked {
    /// Returns the config of the block that was checked. `plain` is the lifecycle of all blocks that do not
    /// give one.
    pub(super) fn into_config(
        self,
        block: Block,
        raw: RawBlock,
        (provider, schema): Managed,
        plain: &Arc<Lifecycle>,
    ) -> ResourceConfig {
        let Self { depends_on, lifecycle } = self;
        let lifecycle = lifecycle.unwrap_or_else(|| Arc::clone(plain));
        let mut attributes = raw.items;
        let for_each = attributes.get("for_each").map(|item| item.value.clone());
        let given = |a: &Attribute| a.presence != Presence::Computed;
        attributes.retain(|name| {
            !keys::has(keys::RESOURCE, name) && schema.attributes.get(name).is_some_and(given)
        });
        let header = raw.header;
        ResourceConfig {
            block,
            header,
            provider,
            schema,
            attributes,
            for_each,
            depends_on,
            lifecycle,
        }
    }
}

/// Checks a block.
pub(super) fn resource<'a>(checker: &mut Checker<'a>, block: &'a Block, raw: &RawBlock) -> Checked {
    let known = checker.view.names.resources.get(block);
    let managed = known.and_then(|known| known.managed.as_ref());
    let schema = managed.map(|(_, schema)| &**schema);
    checker.block = Some(block);
    checker.view.own = Some(block);
    if let Some(item) = raw.items.get("for_each") {
        checker.view.each = Some(for_each(checker, &item.value));
    }
    let depends_on = raw.items.get("depends_on").map(|item| depends_on(checker, item));
    let lifecycle = raw.items.get("lifecycle");
    let lifecycle = lifecycle.map(|item| lifecycle::lifecycle(checker, block, item, schema));
    let allowed = lifecycle.as_ref().map(|lifecycle| &lifecycle.allow_unknown);
    let only_data = schema.is_some_and(|schema| schema.data_only);
    if only_data {
        checker.push(say::data_only(block, raw.header));
    }
    // No attribute of such a type can be given; one diagnostic about the type is enough.
    let schema = schema.filter(|_| !only_data);
    let meant = attributes(checker, raw, schema, allowed);
    if let Some(schema) = schema {
        required(checker, raw, schema, &meant);
    }
    Checked { depends_on: depends_on.unwrap_or_default(), lifecycle: lifecycle.map(Arc::new) }
}

/// Checks the attributes that are given; returns those that unknown ones may have meant.
fn attributes<'s>(
    checker: &mut Checker<'_>,
    raw: &RawBlock,
    schema: Option<&'s TypeSchema>,
    allow_unknown: Option<&BTreeSet<Name>>,
) -> BTreeSet<&'s str> {
    let mut meant = BTreeSet::new();
    for (name, item) in raw.items.iter().filter(|(name, _)| !keys::has(keys::RESOURCE, name)) {
        let Some(schema) = schema else {
            checker.expect(&item.value, &Type::Any);
            continue;
        };
        match schema.attributes.get(name) {
            None => {
                let known = schema.attributes.iter();
                let known = known.filter(|(_, a)| a.presence != Presence::Computed);
                let known = known.map(|(name, _)| &**name).chain(keys::names(keys::RESOURCE));
                meant.extend(nearest(name, known.clone()));
                checker.push(say::unknown_attribute(&schema.name, name, item.key, known));
                checker.expect(&item.value, &Type::Any);
            }
            Some(attribute) if attribute.presence == Presence::Computed => {
                checker.push(say::computed_attribute(name, item.key));
            }
            Some(attribute) => {
                let hidden = attribute.sensitive && holds_text(&item.value);
                checker.instead = hidden.then_some(raw.header);
                checker.expect(&item.value, &attribute.ty);
                address_texts(checker, &item.value);
                let allowed = allow_unknown.is_some_and(|allowed| allowed.contains(name));
                checker.constrain(name, attribute, &item.value, allowed);
                checker.instead = None;
            }
        }
    }
    meant
}

/// Warns about each text that is exactly the address of something in the spec: it is probably a reference
/// without its `${…}`.
fn address_texts(checker: &mut Checker<'_>, value: &SpecExpr) {
    if checker.is_broken(value) {
        return;
    }
    let mut found = Vec::new();
    walk(&value.expr, &mut |part| {
        if let Kind::Literal(Value::String(text)) = &part.kind
            && text.contains('.')
            && is_address(checker, text)
        {
            found.push((text.clone(), place(value.span.file, part.range)));
        }
    });
    for (text, at) in found {
        checker.push(say::text_like_address(&text, at));
    }
}

/// Returns true if a text names a variable, a local value or a resource of the spec, or an attribute of one.
fn is_address(checker: &Checker<'_>, text: &str) -> bool {
    let mut parts = text.split('.');
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return false };
    let name = second.split('[').next().unwrap_or_default();
    if !is_name(first) || !is_name(name) {
        return false;
    }
    match first {
        "var" => checker.document.variables.contains_key(name),
        "local" => checker.document.locals.contains_key(name),
        first => checker.document.resources.contains_key(&Block::new(first, name)),
    }
}

/// Returns true if a part of a value is written in the spec as plain text.
pub(super) fn holds_text(value: &SpecExpr) -> bool {
    let mut found = false;
    walk(&value.expr, &mut |part| found |= matches!(part.kind, Kind::Literal(_)));
    found
}

fn required(
    checker: &mut Checker<'_>,
    raw: &RawBlock,
    schema: &TypeSchema,
    meant: &BTreeSet<&str>,
) {
    let missing: Vec<&str> = schema
        .attributes
        .iter()
        .filter(|(name, attribute)| {
            attribute.presence == Presence::Required
                && !raw.items.contains_key(name)
                && !meant.contains(&***name)
        })
        .map(|(name, _)| &**name)
        .collect();
    if !missing.is_empty() {
        checker.push(say::missing_attributes(&schema.name, &missing, raw.header));
    }
}

/// Checks `for_each`; returns the type of `each.value`.
pub(super) fn for_each(checker: &mut Checker<'_>, value: &SpecExpr) -> Type {
    if checker.is_broken(value) {
        return Type::Any;
    }
    let errors_before = checker.diagnostics.len();
    let found = checker.infer(value);
    distinct(checker, value);
    match found {
        Type::Map(item) => *item,
        Type::Object(fields) => fields
            .values()
            .map(|field| field.ty.clone())
            .reduce(|a, b| a.unify(&b))
            .unwrap_or(Type::Any),
        Type::List(item) | Type::Set(item) if item.fits(&Type::String) => Type::String,
        Type::Any => Type::Any,
        found => {
            if checker.diagnostics.len() == errors_before {
                checker.push(say::bad_for_each(&found, value.span));
            }
            Type::Any
        }
    }
}

/// Refuses a plain list of texts that has one text twice.
fn distinct(checker: &mut Checker<'_>, value: &SpecExpr) {
    let Kind::List(items) = &value.expr.kind else { return };
    let mut seen: std::collections::BTreeMap<&Name, Span> = std::collections::BTreeMap::new();
    for item in items {
        let Kind::Literal(Value::String(text)) = &item.kind else { continue };
        let at = place(value.span.file, item.range);
        match seen.get(text) {
            Some(first) => checker.push(say::repeated_key(text, at, *first)),
            None => {
                seen.insert(text, at);
            }
        }
    }
}

pub(super) fn depends_on(checker: &mut Checker<'_>, item: &Item) -> Vec<(Address, Span)> {
    let mut addresses = Vec::new();
    for (text, at) in checker.constant_texts("`depends_on`", &item.value) {
        // An address of a data block has no key: a resource depends on all look-ups of the block.
        let data = text.parse::<Block>().ok().filter(|block| block.is_data);
        let address: Address = match data.map_or_else(|| text.parse(), |it| Ok(it.instance(None))) {
            Ok(address) => address,
            Err(error) => {
                checker.push(say::bad_address(&error, at));
                continue;
            }
        };
        let names = checker.view.names;
        match names.resources.get(&address.block) {
            None => {
                let nothing = names.nothing_there(&address.block, checker.block);
                let (text, correction) = (nothing.help.unwrap_or_default(), nothing.meant);
                let advice = Advice { text, correction };
                checker.push(say::no_resource(&nothing.message, advice, at));
            }
            Some(known) if !known.keyed && address.key.is_some() => {
                checker.push(say::no_instances(&address.block, at));
            }
            Some(_) => addresses.push((address, at)),
        }
    }
    addresses
}
