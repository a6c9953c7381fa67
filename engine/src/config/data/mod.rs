//! `[data.TYPE.NAME]` blocks: look-ups of objects that others made, and of data that is no object.
//!
//! Every type whose objects live in an API can be looked up. Its attributes are conditions here: the one
//! object that is meant has all the values that a block gives. A block may also give attributes that the API
//! computes.

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

/// The attribute that every object has, even if its schema does not list it.
pub(crate) const ID: &str = "id";

/// A data block.
#[derive(Clone, Debug)]
pub struct DataConfig {
    /// Its address.
    pub block: Block,
    /// Its header's place.
    pub header: Span,
    /// The provider instance that lists the objects; meaningless for data that is no object.
    pub provider: ProviderChoice,
    /// The schema of its type.
    pub schema: Arc<TypeSchema>,
    /// The attributes that the object must have; each fits its schema's type as far as types can tell.
    pub attributes: Table,
    /// The expression with one look-up for each of its entries; none for a single look-up.
    pub for_each: Option<SpecExpr>,
    /// The addresses that the block waits for without referring to them; an address without a key means all
    /// instances.
    pub depends_on: Vec<(Address, Span)>,
    /// Its preconditions and postconditions.
    pub lifecycle: Lifecycle,
}

/// The parts of a data block that its check returns.
pub(super) struct CheckedData {
    depends_on: Vec<(Address, Span)>,
    lifecycle: Lifecycle,
}

impl DataConfig {
    /// Returns the config of a block that was checked.
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

    /// Returns every expression of the block that may refer to other blocks.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &SpecExpr> {
        let conditions = self.lifecycle.conditions();
        let conditions = conditions.flat_map(|it| [&it.condition, &it.message]);
        self.attributes.values().map(|item| &item.value).chain(&self.for_each).chain(conditions)
    }

    /// Returns the blocks that the block waits for without referring to them.
    pub(crate) fn blocks_before(&self) -> impl Iterator<Item = &Block> {
        self.depends_on.iter().map(|(address, _)| &address.block)
    }

    /// Returns true if an object has attributes that only a read by its id shows.
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
