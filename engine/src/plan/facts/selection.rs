//! The instances that `--target` and `--exclude` choose for a plan. `needs` finds the targets that a target
//! refers to.

pub(in crate::plan) mod moved;
pub(in crate::plan) mod needs;

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, Block};
use crate::config::Config;
use crate::diagnostics::{Diagnostic, Diagnostics, nearest};
use crate::graph::Graph;
use crate::plan::diagnostics;
use crate::plan::input::{Mode, Options, PlanInput, Target};
use crate::state::Snapshot;

/// The chosen instances.
#[derive(Debug, Default)]
pub struct Selection {
    /// The chosen instances; none if all are.
    targets: Option<Chosen>,
    excludes: Chosen,
}

/// The targets that an option names, and those that it includes with them.
#[derive(Debug, Default)]
struct Chosen {
    named: Vec<Target>,
    /// The targets that are included by the references of the spec.
    along: BTreeSet<Target>,
    /// The single instances that are included by the dependencies in the state.
    instances: BTreeSet<Address>,
}

impl Chosen {
    fn has(&self, address: &Address) -> bool {
        self.names(address)
            || self.along.contains(&Target::Block(address.block.clone()))
            || self.along.contains(&Target::Instance(address.clone()))
    }

    /// Returns true if the option names the instance, or the dependencies in the state include it. References
    /// of the spec do not count.
    fn names(&self, address: &Address) -> bool {
        self.named.iter().any(|target| target.names(address)) || self.instances.contains(address)
    }
}

impl Selection {
    /// Computes the selection that the options ask for.
    pub fn new(config: &Config, graph: &Graph, snapshot: &Snapshot, options: &Options) -> Self {
        let up: Next<'_> = &|target| needs::of(config, target);
        let down: Next<'_> = &|target| needs::users(config, graph, target);
        let chosen = |named: &[Target], next: Next<'_>| match options.mode {
            Mode::Destroy => with_dependents(named, snapshot),
            Mode::Apply | Mode::RefreshOnly => with_references(named, next),
        };
        let targets = (!options.targets.is_empty()).then(|| chosen(&options.targets, up));
        Self { targets, excludes: chosen(&options.excludes, down) }
    }

    /// Returns true if an instance is chosen.
    pub fn includes(&self, address: &Address) -> bool {
        !self.excludes.has(address)
            && self.targets.as_ref().is_none_or(|targets| targets.has(address))
    }

    /// Returns true if a destroy keeps an instance only because it was made from an excluded one.
    pub(in crate::plan) fn keeps_along(&self, address: &Address) -> bool {
        let excludes = &self.excludes;
        excludes.instances.contains(address)
            && !excludes.named.iter().any(|target| target.names(address))
    }

    /// Returns true if an instance that the spec does not want is chosen. No instance is made from one that
    /// is removed, so the references of a target never include it.
    pub(in crate::plan) fn includes_removal(&self, address: &Address) -> bool {
        !self.excludes.has(address)
            && self.targets.as_ref().is_none_or(|targets| targets.names(address))
    }
}

/// Computes the selection of a plan, and reports each option that names nothing.
pub(in crate::plan) fn select(input: &PlanInput<'_>, found: &mut Diagnostics) -> Selection {
    let options = input.options;
    for (targets, option) in [(&options.targets, "--target"), (&options.excludes, "--exclude")] {
        for target in targets.iter().filter(|target| !exists(input, target)) {
            found.push(nothing_named(input, target, option));
        }
    }
    for target in options.replace.iter().cloned().map(Target::Instance) {
        if !exists(input, &target) {
            found.push(nothing_named(input, &target, "--replace"));
        }
    }
    Selection::new(input.config, input.graph, input.snapshot, options)
}

type Next<'a> = &'a dyn Fn(&Target) -> Vec<Target>;

/// Chooses the named targets and all that `next` leads to from them. For `--target` these are the targets
/// that a named one refers to, because it cannot be made without them; for `--exclude`, those that refer to
/// it.
fn with_references(named: &[Target], next: Next<'_>) -> Chosen {
    let along = needs::reached(named.iter().flat_map(next).collect(), next);
    Chosen { named: named.to_vec(), along, instances: BTreeSet::new() }
}

/// Chooses the named targets and all instances that were made from them, directly or through others. Only the
/// state knows those: the spec may have other references by now.
fn with_dependents(named: &[Target], snapshot: &Snapshot) -> Chosen {
    let mut chosen = Chosen { named: named.to_vec(), ..Chosen::default() };
    if named.is_empty() {
        return chosen;
    }
    let mut dependents: BTreeMap<&Address, Vec<&Address>> = BTreeMap::new();
    for (address, entry) in &snapshot.entries {
        for dependency in &entry.dependencies {
            dependents.entry(dependency).or_default().push(address);
        }
    }
    let mut open: Vec<&Address> = snapshot.entries.keys().filter(|at| chosen.has(at)).collect();
    while let Some(address) = open.pop() {
        if chosen.instances.insert(address.clone()) {
            open.extend(dependents.get(address).into_iter().flatten());
        }
    }
    chosen
}

/// Returns the error for an option that names nothing, with the block of the spec or the state that may be
/// meant.
fn nothing_named(input: &PlanInput<'_>, target: &Target, option: &str) -> Diagnostic {
    let blocks: BTreeSet<String> = input
        .config
        .resources
        .keys()
        .chain(input.snapshot.entries.keys().map(|address| &address.block))
        .map(Block::to_string)
        .collect();
    let named = target.to_string();
    let word = match target {
        Target::Instance(address) => address.block.to_string(),
        Target::Block(_) | Target::Module(_) => named.clone(),
    };
    let meant = nearest(&word, blocks.iter().map(String::as_str));
    diagnostics::nothing_named(&named, option, meant)
}

/// Returns true if the spec or the state has the target. The keys of the spec are not known yet, so a block
/// is enough.
fn exists(input: &PlanInput<'_>, target: &Target) -> bool {
    input.config.resources.keys().any(|block| target.touches(block))
        || input.snapshot.entries.keys().any(|address| target.names(address))
}
