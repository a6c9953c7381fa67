//! Evaluation for instances that go: their `each`, and the flags of their `lifecycle`.
//!
//! Flags are read as for an instance that stays. A flag that cannot be read is an error, which refuses the
//! plan, so that no object is deleted because its protection could not be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::config::{ResourceConfig, SpecExpr};
use crate::diagnostics::Diagnostics;
use crate::expression::visit::roots;
use crate::expression::{Expr, Kind, Root};
use crate::plan::context::Context;
use crate::plan::diagnostics;
use crate::plan::evaluate::scope::{Each, EachSource};
use crate::plan::evaluate::{Evaluation, desired};
use crate::sorted::Set;
use crate::types::Type;
use crate::value::{Datum, Value};

/// Evaluates instances that go. Keeps the values of the block that it was asked about last: the state lists
/// the instances of a block one after the other.
pub(in crate::plan) struct GoneInstances<'r, 'a> {
    pub(in crate::plan) context: &'r Context<'a>,
    pub(in crate::plan) evaluation: &'r Evaluation<'a>,
    source: Option<(&'a Block, Arc<EachSource<'a>>)>,
    /// The block asked about last, with its values by key; none instead of the values if `for_each` cannot be
    /// evaluated.
    values: Option<(Block, Option<BTreeMap<Name, Valued>>)>,
}

/// The `each.value` of an entry, and the resources that it may come from.
type Valued = (Datum, Arc<Set<Address>>);

/// An error: the flag reads `each`, and the spec has no entry for the instance any more.
struct NoEach;

impl<'r, 'a> GoneInstances<'r, 'a> {
    pub(in crate::plan) fn new(context: &'r Context<'a>, evaluation: &'r Evaluation<'a>) -> Self {
        Self { context, evaluation, source: None, values: None }
    }

    /// Reads a flag of a block's `lifecycle` for one of its instances. A flag that the spec does not give is
    /// false. If it cannot be read, reports that and returns none.
    pub(in crate::plan) fn flag(
        &mut self,
        address: &Address,
        config: &'a ResourceConfig,
        item: Option<&SpecExpr>,
        word: &'static str,
        found: &mut Diagnostics,
    ) -> Option<bool> {
        let Some(item) = item else { return Some(false) };
        let Ok(each) = self.each(address, config, item) else {
            found.push(diagnostics::flag_of_gone_key(item.span, word, address));
            return None;
        };
        let gone = each.as_ref().is_some_and(|each| matches!(each.value.value, Value::Unknown(_)));
        let scope = self.context.scope(self.evaluation).with_each(each.as_ref());
        let mut said = Diagnostics::new();
        let value = desired::flag(Some(item), word, &scope, address, &mut said);
        if value.is_none() && gone {
            // The user needs to know that the key is gone; that its value is unknown would not help.
            found.push(diagnostics::flag_of_gone_key(item.span, word, address));
        } else {
            found.extend(said);
        }
        value
    }

    /// Returns `each` of an instance as the spec has it now. If the key is gone, the value is unknown,
    /// because the flag may not depend on it.
    fn each(
        &mut self,
        address: &Address,
        config: &'a ResourceConfig,
        item: &SpecExpr,
    ) -> Result<Option<Each<'a>>, NoEach> {
        let Some(for_each) = config.for_each.as_ref().filter(|_| reads(&item.expr, false)) else {
            return Ok(None);
        };
        let key = address.key.clone().ok_or(NoEach)?;
        let value = if reads(&item.expr, true) { self.value(address, config, &key) } else { None };
        let (value, touched) = value.unwrap_or_else(|| {
            let unknown = Value::unknown(Type::Any, Expr::nowhere(Kind::Root(Root::EachValue)));
            (Datum::plain(unknown), Arc::default())
        });
        let source = self.source(&config.block, &for_each.expr);
        Ok(Some(Each { key, value, source, touched }))
    }

    /// Returns the source of a block's `for_each`, the same one for all its instances.
    fn source(&mut self, block: &'a Block, for_each: &'a Expr) -> Arc<EachSource<'a>> {
        match &self.source {
            Some((known, source)) if *known == block => source.clone(),
            _ => {
                let source = EachSource::new(for_each);
                self.source = Some((block, source.clone()));
                source
            }
        }
    }

    fn value(&mut self, address: &Address, config: &ResourceConfig, key: &Name) -> Option<Valued> {
        if self.values.as_ref().is_none_or(|(block, _)| *block != address.block) {
            let scope = self.context.scope(self.evaluation);
            // Outside a destroy the walk reports errors in the resource; in a destroy the flag reports them.
            let instances = desired::expand(config, &scope, &mut Diagnostics::new());
            let values = instances.map(|instances| {
                let each = instances.into_iter().filter_map(|instance| instance.each);
                each.map(|each| (each.key, (each.value, each.touched))).collect()
            });
            self.values = Some((address.block.clone(), values));
        }
        let (_, values) = self.values.as_ref()?;
        values.as_ref()?.get(key).cloned()
    }
}

/// Returns true if an expression reads `each`; with `value_only`, if it reads `each.value`.
fn reads(expr: &Expr, value_only: bool) -> bool {
    let mut found = false;
    roots(expr, &mut |root, _| {
        found |= *root == Root::EachValue || (!value_only && *root == Root::EachKey);
    });
    found
}
