//! What an object names that is let go of: nobody makes it name another, and where an API deletes nothing that is
//! named there, it would refuse each delete.

use std::collections::BTreeMap;

use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::plan::planner::Draft;
use crate::plan::removal::uses::each_text;
use crate::plan::{Change, diagnostics};

/// An object: the provider instance, the type and the id.
type Key<'a> = (&'a Name, &'a Name, &'a str);

/// Refuses to delete it.
pub(in crate::plan) fn check(drafts: &[Draft], found: &mut Diagnostics) {
    let mut kept = drafts.iter().filter(|draft| draft.is_let_go()).peekable();
    if kept.peek().is_none() {
        return;
    }
    let gone: BTreeMap<Key<'_>, &Change> = drafts
        .iter()
        .filter(|draft| draft.is_deleted())
        .filter_map(|Draft { change, .. }| {
            let id = &*change.object.as_ref()?.0;
            Some(((&change.provider, &change.address.block.ty, id), change))
        })
        .collect();
    for user in kept {
        for (name, attribute) in &user.schema.attributes {
            let value = user.change.before.as_ref().and_then(|before| before.get(name));
            let (Some(ty), Some(value)) = (&attribute.holds, value) else { continue };
            each_text(value, &mut |id| {
                if let Some(used) = gone.get(&(&user.change.provider, ty, id)) {
                    let by = (&user.change, name);
                    found.push(diagnostics::named_by_what_is_let_go(used, by));
                }
            });
        }
    }
}
