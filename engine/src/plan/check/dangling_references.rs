//! References that survive the plan and whose target the plan deletes. Where the API deletes
//! nothing that is named in an attribute, it would refuse such a delete in each apply.
//!
//! References in the spec follow their target. Those that survive are in attributes about which the
//! spec is silent, in ids that the spec has word for word, and in objects that are let go.

use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::facts::reference_index::ReferenceIndex;

/// Refuses each delete of an object that is still named after the plan.
pub(in crate::plan) fn check(
    drafts: &[Draft],
    references: &ReferenceIndex<'_>,
    found: &mut Diagnostics,
) {
    for reference in references.iter() {
        let (user, used) = (&drafts[reference.user], &drafts[reference.used].change);
        let names: Vec<&Name> = reference.surviving().collect();
        let Some(attribute) = first(user, &names) else { continue };
        found.push(if user.is_forgotten() {
            diagnostics::named_by_what_is_let_go(used, (&user.change, attribute))
        } else {
            diagnostics::named_by_what_stays(used, user, attribute)
        });
    }
}

/// Returns the attribute to change. One that the API derives from another of them follows that one.
fn first<'n>(user: &Draft, names: &[&'n Name]) -> Option<&'n Name> {
    let follows = |name: &Name| user.schema.attributes.get(name)?.follows.as_ref();
    let leads = |name: &&&Name| follows(name).is_none_or(|other| !names.contains(&other));
    names.iter().find(leads).or(names.first()).copied()
}
