//! Targets that name objects by their earlier addresses.

use std::borrow::Cow;

use crate::config::Config;
use crate::plan::input::{Options, Target};
use crate::plan::moves::Moves;

/// Returns the options with the new addresses in place of the old ones.
pub fn renamed<'o>(options: &'o Options, moves: &Moves, config: &Config) -> Cow<'o, Options> {
    if moves.origins().is_empty() {
        return Cow::Borrowed(options);
    }
    let all = |targets: &[Target]| -> Vec<Target> {
        targets.iter().flat_map(|target| target_now(target, moves, config)).collect()
    };
    let mut renamed = options.clone();
    renamed.targets = all(&options.targets);
    renamed.excludes = all(&options.excludes);
    for address in &mut renamed.replace {
        if let Some((to, _)) = moves.origins().iter().find(|(_, from)| *from == address) {
            *address = to.clone();
        }
    }
    Cow::Owned(renamed)
}

/// Returns the new addresses of the objects that a target names by their old ones, and the target itself if
/// it names others, too.
fn target_now(target: &Target, moves: &Moves, config: &Config) -> Vec<Target> {
    let moved = moves.origins().iter().filter(|(_, from)| target.names(from));
    let mut targets: Vec<Target> = moved.map(|(to, _)| Target::Instance(to.clone())).collect();
    if targets.is_empty() || config.resources.keys().any(|block| target.touches(block)) {
        targets.push(target.clone());
    }
    targets
}
