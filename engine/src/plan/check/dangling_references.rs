//! References that remain after the plan although the plan deletes their target. If the API refuses to delete
//! an object that is named in the attribute, it would refuse such a delete in each apply.
//!
//! References in the spec follow their target. The ones that remain are in attributes that the spec does not
//! give, in ids that the spec has word for word, and in objects that are let go.

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

/// Returns the attribute to change. If the API derives one attribute from another, the other has to change.
fn first<'n>(user: &Draft, names: &[&'n Name]) -> Option<&'n Name> {
    let follows = |name: &Name| user.schema.attributes.get(name)?.follows.as_ref();
    let leads = |name: &&&Name| follows(name).is_none_or(|other| !names.contains(&other));
    names.iter().find(leads).or(names.first()).copied()
}
