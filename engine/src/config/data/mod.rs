//! `[data.TYPE.NAME]` blocks: look-ups of objects that others made, and of what is no object.
//!
//! Every type whose objects live in an API is one. Its attributes are conditions here: one object must bear all the
//! values that a block gives. Those that the API computes can be given, too.

mod diagnostics;
mod fetched;

use std::collections::BTreeSet;
use std::sync::Arc;

use self::diagnostics as say;
pub use self::fetched::Fetched;
use super::checker::Checker;
use super::lifecycle::lifecycle;
use super::names::Managed;
use super::resource::{depends_on, for_each, holds_text};
use super::{Lifecycle, ProviderChoice, RawBlock, SpecExpr, Table};
use crate::address::{Address, Block};
use crate::diagnostics::Span;
use crate::schema::{Attribute, SeenIn, TypeSchema};
use crate::types::Type;

/// The keys of a data block that are not attributes.
const RESERVED: [&str; 4] = ["depends_on", "for_each", "lifecycle", "provider"];

/// The attribute that every object has, whether its schema says so or not.
pub(crate) const ID: &str = "id";

/// A data block.
#[derive(Clone, Debug)]
pub struct DataConfig {
    /// Its address.
    pub block: Block,
    /// Its header's place.
    pub header: Span,
    /// The provider instance that lists the objects; of what is no object, nothing that counts.
    pub provider: ProviderChoice,
    /// The schema of its type.
    pub schema: Arc<TypeSchema>,
    /// The attributes that the object must have; each fits its schema's type as far as types can tell.
    pub attributes: Table,
    /// One look-up for each entry.
    pub for_each: Option<SpecExpr>,
    /// The addresses that it comes after without referring to them; a key of none means all instances.
    pub depends_on: Vec<(Address, Span)>,
    /// Its preconditions and postconditions.
    pub lifecycle: Lifecycle,
}

/// The parts of a data block that its check reads.
pub(super) struct CheckedData {
    depends_on: Vec<(Address, Span)>,
    lifecycle: Lifecycle,
}

impl DataConfig {
    /// The config of a block that was checked.
    pub(super) fn new(
        block: Block,
        raw: RawBlock,
        (provider, schema): Managed,
        CheckedData { depends_on, lifecycle }: CheckedData,
    ) -> Self {
        let RawBlock { header, items: mut attributes } = raw;
        let for_each = attributes.get("for_each").map(|item| item.value.clone());
        attributes.retain(|name| !RESERVED.contains(&&**name));
        Self { block, header, provider, schema, attributes, for_each, depends_on, lifecycle }
    }

    /// Every expression of the block that may refer to others.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &SpecExpr> {
        let conditions = self.lifecycle.conditions();
        let conditions = conditions.flat_map(|it| [&it.condition, &it.message]);
        self.attributes.values().map(|item| &item.value).chain(&self.for_each).chain(conditions)
    }

    /// The blocks that it comes after without referring to them.
    pub(crate) fn blocks_before(&self) -> impl Iterator<Item = &Block> {
        self.depends_on.iter().map(|(address, _)| &address.block)
    }

    /// Returns true if an object has attributes that only reading it by its id shows.
    pub fn is_read_by_id(&self) -> bool {
        self.schema.attributes.values().any(|attribute| attribute.seen_in == SeenIn::Read)
    }
}

/// Checks a block.
pub(super) fn data<'a>(checker: &mut Checker<'a>, block: &'a Block, raw: &RawBlock) -> CheckedData {
    let known = checker.view.names.resources.get(block);
    let schema = known.and_then(|known| known.managed.as_ref()).map(|(_, schema)| &**schema);
    checker.block = Some(block);
    checker.view.own = Some(block);
    if let Some(item) = raw.items.get("for_each") {
        checker.view.each = Some(for_each(checker, &item.value));
    }
    match (Fetched::of(block), schema) {
        (Some(kind), _) => fetched::check(checker, raw, kind),
        (None, Some(schema)) if !schema.remote => {
            checker.push(say::nothing_to_look_up(schema, raw.header));
        }
        (None, Some(schema)) => conditions(checker, raw, schema),
        (None, None) => {}
    }
    let item = raw.items.get("lifecycle");
    let lifecycle = item.map(|item| lifecycle(checker, block, item, schema)).unwrap_or_default();
    let item = raw.items.get("depends_on");
    let depends_on = item.map(|item| depends_on(checker, item)).unwrap_or_default();
    CheckedData { depends_on, lifecycle }
}

/// Checks the attributes that the object must have.
fn conditions(checker: &mut Checker<'_>, raw: &RawBlock, schema: &TypeSchema) {
    let mut is_bare = true;
    for (name, item) in raw.items.iter().filter(|(name, _)| !RESERVED.contains(&&***name)) {
        is_bare = false;
        match schema.attributes.get(name) {
            None if &**name == ID => checker.expect(&item.value, &Type::String),
            None => {
                let known = visible(schema).chain([ID]).chain(RESERVED);
                let known: BTreeSet<&str> = known.collect();
                checker.push(say::unknown_attribute(&schema.name, name, item.key, known));
                checker.expect(&item.value, &Type::Any);
            }
            Some(attribute) if is_invisible(attribute) => {
                checker.push(say::invisible(&schema.name, name, item.key));
            }
            Some(attribute) => {
                let hidden = attribute.sensitive && holds_text(&item.value);
                checker.instead = hidden.then_some(raw.header);
                checker.expect(&item.value, &attribute.ty);
                checker.instead = None;
            }
        }
    }
    if is_bare {
        checker.push(say::no_condition(schema, raw.header));
    }
}

/// Returns true if no answer shows an attribute, so that nothing can be found by it.
fn is_invisible(attribute: &Attribute) -> bool {
    attribute.seen_in == SeenIn::Never || attribute.local
}

fn visible(schema: &TypeSchema) -> impl Iterator<Item = &str> {
    let attributes = schema.attributes.iter();
    attributes.filter(|(_, attribute)| !is_invisible(attribute)).map(|(name, _)| &**name)
}

#[cfg(test)]
mod tests;
