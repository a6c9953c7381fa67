//! Locals: in which order they follow from each other, and of which types they are.

use std::collections::BTreeMap;

use super::checker::{Checker, place};
use super::names::Names;
use super::{Document, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::Root;
use crate::expression::visit::roots;
use crate::graph::links::Links;
use crate::types::Type;

/// Infers the types of all locals into `names`, each after those that it refers to.
pub(super) fn infer(document: &Document, names: &mut Names<'_>, diagnostics: &mut Diagnostics) {
    let all: Vec<&Name> = document.locals.keys().collect();
    let links = links(document, &all);
    for group in links.groups() {
        if links.is_cycle(&group) {
            let cycle = links.cycle(&group);
            let members: Vec<(String, Span)> =
                cycle.iter().map(|(node, at)| (format!("local.{}", all[*node]), **at)).collect();
            diagnostics.push(say::cycle(&members, group.len()));
            names.locals.extend(group.iter().map(|node| (all[*node].clone(), Type::Any)));
            continue;
        }
        for node in group {
            let value = &document.locals[all[node]].value;
            let mut checker = Checker::new(document, names, diagnostics);
            let ty = if checker.is_broken(value) { Type::Any } else { checker.infer(value) };
            names.locals.insert(all[node].clone(), ty);
        }
    }
}

/// Which locals refer to which, with the place of the reference.
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
