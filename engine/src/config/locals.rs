//! Locals: the order in which they depend on each other, and their types.

use std::collections::BTreeMap;

use super::checker::{Checker, place};
use super::names::Names;
use super::{Document, diagnostics as say};
use crate::address::{Name, local_shown};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::visit::roots;
use crate::expression::{DEPTH_MAX, Root};
use crate::graph::links::Links;
use crate::types::Type;

/// The most parts of the type of one local.
const PARTS_MAX: usize = 10_000;
/// The most parts of the types of all locals.
const ALL_PARTS_MAX: usize = 1_000_000;

/// Infers the types of all locals into `names`, each after those that it refers to.
pub(super) fn infer(document: &Document, names: &mut Names<'_>, diagnostics: &mut Diagnostics) {
    let all: Vec<&Name> = document.locals.keys().collect();
    let links = links(document, &all);
    let mut parts_left = ALL_PARTS_MAX;
    for group in links.groups() {
        if links.is_cycle(&group) {
            let cycle = links.cycle(&group);
            let members: Vec<(String, Span)> = cycle
                .iter()
                .map(|(node, at)| (local_shown(all[*node]).into_owned(), **at))
                .collect();
            diagnostics.push(say::cycle(&members, group.len()));
            names.locals.extend(group.iter().map(|node| (all[*node].clone(), Type::Any)));
            continue;
        }
        for node in group {
            let value = &document.locals[all[node]].value;
            let declared = names.modules.input_types.get(all[node]).cloned();
            let mut checker = Checker::new(document, names, diagnostics);
            let ty = if checker.is_broken(value) {
                Type::Any
            } else if let Some(declared) = declared {
                checker.expect(value, &declared);
                declared
            } else {
                checker.infer(value)
            };
            names.locals.insert(all[node].clone(), bounded(ty, &mut parts_left));
        }
    }
}

/// Returns the type, or `any` if it is too deep or too large. Without the bound, locals could make a type
/// grow without end: each may nest the one before it, or hold it twice.
fn bounded(ty: Type, parts_left: &mut usize) -> Type {
    let parts_most = PARTS_MAX.min(*parts_left);
    let mut left = parts_most;
    if !is_within(&ty, DEPTH_MAX, &mut left) {
        return Type::Any;
    }
    *parts_left -= parts_most - left;
    ty
}

fn is_within(ty: &Type, depth_left: usize, parts_left: &mut usize) -> bool {
    let (Some(depth), Some(parts)) = (depth_left.checked_sub(1), parts_left.checked_sub(1)) else {
        return false;
    };
    *parts_left = parts;
    match ty {
        Type::List(item) | Type::Set(item) | Type::Map(item) => is_within(item, depth, parts_left),
        Type::Object(fields) => {
            fields.values().all(|field| is_within(&field.ty, depth, parts_left))
        }
        _ => true,
    }
}

/// Returns the references between locals, with the place of each.
fn links(document: &Document, all: &[&Name]) -> Links<Span> {
    let numbers: BTreeMap<&Name, usize> =
        all.iter().enumerate().map(|(number, name)| (*name, number)).collect();
    let mut links = Links::new(all.len());
    for (from, item) in document.locals.values().enumerate() {
        roots(&item.value.expr, &mut |root, range| {
            if let Root::Local(name) = root
                && let Some(to) = numbers.get(name)
            {
                links.add(from, *to, place(item.value.span.file, range));
            }
        });
    }
    links
}
