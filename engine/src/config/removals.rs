//! `[[removed]]` blocks: they say whether objects that the spec no longer has are let go or deleted.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::modules::expand::Refactorings;
use super::moves::pattern;
use super::names::Names;
use super::{Document, RawBlock, RemovalConfig, diagnostics as say};
use crate::address::{Block, ModulePath};
use crate::diagnostics::Diagnostics;

/// Reads the removals, and refuses one for a resource that the spec still has.
pub(super) fn removals(
    document: &Document,
    names: &Names<'_>,
    refactorings: &Refactorings,
    diagnostics: &mut Diagnostics,
) -> Vec<RemovalConfig> {
    let mut checker = Checker::new(document, names, diagnostics);
    let read = |(path, raw): &(ModulePath, RawBlock)| one(&mut checker, path, raw);
    let removals: Vec<RemovalConfig> = refactorings.removed.iter().filter_map(read).collect();
    let mut origins = BTreeMap::new();
    for removal in &removals {
        if let Some(first) = origins.insert(&removal.from, removal.span) {
            diagnostics.push(say::removed_twice(&removal.from, removal.span, first));
        }
    }
    removals
}

fn one(checker: &mut Checker<'_>, path: &ModulePath, raw: &RawBlock) -> Option<RemovalConfig> {
    let found = pattern(checker, "this removal", raw, "from", path);
    let destroys = match raw.items.get("destroy") {
        None => Some(false),
        Some(item) => checker.constant_flag("`destroy`", &item.value),
    };
    let ((from, span), destroys) = (found?, destroys?);
    let resources = &checker.document.resources;
    // A key may be gone while its block stays; the plan shows that.
    let is_named = |block: &&Block| from.covers(&block.instance(None));
    if let Some((block, raw)) = resources.iter().find(|(block, _)| is_named(block)) {
        checker.push(say::removed_and_declared(block, span, raw.header));
        return None;
    }
    Some(RemovalConfig { from, destroys, span })
}
