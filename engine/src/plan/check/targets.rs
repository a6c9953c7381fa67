//! Reports options that name an instance which neither the spec nor the state has.

use std::collections::BTreeSet;

use crate::address::{Address, Block, Name};
use crate::diagnostics::Diagnostics;
use crate::plan::context::Context;
use crate::plan::diagnostics;
use crate::plan::evaluate::Evaluation;
use crate::plan::input::Target;

/// Reports each option that names an instance which neither the spec nor the state has. The keys of the spec
/// are known only after the walk.
pub(in crate::plan) fn report_unmatched(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    found: &mut Diagnostics,
) {
    if found.has_errors() {
        return;
    }
    let input = context.input;
    let options = input.options;
    let instances = |targets: &'static str, list: &[Target]| -> Vec<(Address, &'static str)> {
        list.iter().filter_map(|t| Some((instance(t)?.clone(), targets))).collect()
    };
    let mut named = instances("--target", &options.targets);
    named.extend(instances("--exclude", &options.excludes));
    named.extend(options.replace.iter().map(|address| (address.clone(), "--replace")));
    for (address, option) in named {
        if !evaluation.planned.has(&address) && !input.snapshot.entries.contains_key(&address) {
            let keys = keys(context, evaluation, &address.block);
            found.push(diagnostics::no_instance(&address, option, &keys));
        }
    }
}

/// Returns the keys that a block has, in the spec or in the state.
fn keys<'k>(
    context: &'k Context<'_>,
    evaluation: &'k Evaluation<'_>,
    block: &Block,
) -> Vec<&'k Name> {
    let known = context.input.snapshot.entries.keys().filter(|address| address.block == *block);
    let keys: BTreeSet<&Name> = known
        .filter_map(|address| address.key.as_ref())
        .chain(evaluation.planned.keys(block).into_iter().flatten())
        .collect();
    keys.into_iter().collect()
}

fn instance(target: &Target) -> Option<&Address> {
    match target {
        Target::Block(_) | Target::Module(_) => None,
        Target::Instance(address) => Some(address),
    }
}
