//! Which instances a plan is about: `--target` and `--exclude`.

use std::collections::BTreeSet;

use super::diagnostics;
use super::input::{Mode, PlanInput, Target};
use super::planner::Planner;
use crate::address::{Address, Block};
use crate::diagnostics::Diagnostics;
use crate::journal::Record;

/// The chosen instances.
#[derive(Default)]
pub(super) struct Selection {
    /// None: all. Else the targets, and whole blocks that they depend on.
    targets: Option<(Vec<Target>, BTreeSet<Block>)>,
    /// The excluded ones, and whole blocks that depend on them.
    excludes: (Vec<Target>, BTreeSet<Block>),
}

impl Selection {
    /// Says whether an instance is chosen.
    pub(super) fn includes(&self, address: &Address) -> bool {
        let (excluded, dependents) = &self.excludes;
        if excluded.iter().any(|target| target.names(address))
            || dependents.contains(&address.block)
        {
            return false;
        }
        self.targets.as_ref().is_none_or(|(targets, dependencies)| {
            targets.iter().any(|target| target.names(address))
                || dependencies.contains(&address.block)
        })
    }
}

/// Works out what was asked for, and says where it names nothing.
pub(super) fn select(input: &PlanInput<'_>, found: &mut Diagnostics) -> Selection {
    let options = input.options;
    for (targets, option) in [(&options.targets, "--target"), (&options.excludes, "--exclude")] {
        for target in targets.iter().filter(|target| !exists(input, target)) {
            found.push(diagnostics::nothing_named(&text(target), option));
        }
    }
    for address in &options.replace {
        if !exists(input, &Target::Instance(address.clone())) {
            found.push(diagnostics::nothing_named(&address.to_string(), "--replace"));
        }
    }
    let closure = |targets: &[Target], next: &dyn Fn(&Block) -> Vec<Block>| {
        let mut reached = BTreeSet::new();
        let mut open: Vec<Block> = targets.iter().flat_map(|t| next(block(t))).collect();
        while let Some(block) = open.pop() {
            if reached.insert(block.clone()) {
                open.extend(next(&block));
            }
        }
        reached
    };
    let up =
        |block: &Block| input.graph.dependencies(block).into_iter().cloned().collect::<Vec<_>>();
    let down =
        |block: &Block| input.graph.dependents(block).into_iter().cloned().collect::<Vec<_>>();
    let targets = (!options.targets.is_empty())
        .then(|| (options.targets.clone(), closure(&options.targets, &up)));
    let excludes = (options.excludes.clone(), closure(&options.excludes, &down));
    Selection { targets, excludes }
}

/// Leaves out what is seen of objects that were not chosen, where seeing is all that a plan does.
/// Any other plan goes by what is live of all that it refers to.
pub(super) fn narrow_seen(planner: &mut Planner<'_>) {
    if planner.input.options.mode != Mode::RefreshOnly {
        return;
    }
    let Planner { selection, drift, seen, .. } = planner;
    drift.retain(|drift| selection.includes(&drift.address));
    seen.retain(|record| match record {
        Record::Seen { address, .. } | Record::Vanished { address, .. } => {
            selection.includes(address)
        }
        _ => true,
    });
}

/// Says where an option names an instance that neither the spec nor the state has. Which keys a
/// spec has is known only after the walk.
pub(super) fn report_unmatched(planner: &mut Planner<'_>) {
    if planner.diagnostics.has_errors() {
        return;
    }
    let input = planner.input;
    let options = input.options;
    let instances = |targets: &'static str, list: &[Target]| -> Vec<(Address, &'static str)> {
        list.iter().filter_map(|t| Some((instance(t)?.clone(), targets))).collect()
    };
    let mut named = instances("--target", &options.targets);
    named.extend(instances("--exclude", &options.excludes));
    named.extend(options.replace.iter().map(|address| (address.clone(), "--replace")));
    for (address, option) in named {
        if !planner.planned.has(&address) && !input.snapshot.entries.contains_key(&address) {
            planner.diagnostics.push(diagnostics::no_instance(&address, option));
        }
    }
}

fn instance(target: &Target) -> Option<&Address> {
    match target {
        Target::Block(_) => None,
        Target::Instance(address) => Some(address),
    }
}

fn block(target: &Target) -> &Block {
    match target {
        Target::Block(block) => block,
        Target::Instance(address) => &address.block,
    }
}

fn text(target: &Target) -> String {
    match target {
        Target::Block(block) => block.to_string(),
        Target::Instance(address) => address.to_string(),
    }
}

/// Whether the spec or the state has it. Keys of the spec are not known yet, so a block is enough.
fn exists(input: &PlanInput<'_>, target: &Target) -> bool {
    input.config.resources.contains_key(block(target))
        || input.snapshot.entries.keys().any(|address| target.names(address))
}
