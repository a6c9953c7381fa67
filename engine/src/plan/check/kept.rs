//! What an object names that stays, and goes on naming it: where an API deletes nothing that is named there, it would
//! refuse the delete in each apply.
//!
//! References that the spec has are no matter of this: they follow, or who keeps them keeps what they name
//! (`removal::uses`). What is left is what the spec is silent about, so that nobody changes it, and ids that it has
//! word for word.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, Name};
use crate::diagnostics::Diagnostics;
use crate::plan::draft::Draft;
use crate::plan::facts::references::each_text;
use crate::plan::{Action, Change, diagnostics};
use crate::value::Value;

/// An object: the provider instance, the type and the id.
type Key<'a> = (&'a Name, &'a Name, &'a str);

/// An attribute of an instance.
pub(in crate::plan) type Place = (Address, Name);

/// Refuses to delete it, and returns what names it.
pub(in crate::plan) fn check(drafts: &[Draft], found: &mut Diagnostics) -> BTreeSet<Place> {
    let mut kept = BTreeSet::new();
    let gone = gone(drafts);
    if gone.is_empty() {
        return kept;
    }
    for user in drafts.iter().filter(|draft| stays(&draft.change)) {
        for (used, names) in named(user, &gone) {
            let names: Vec<&Name> = names.into_iter().collect();
            found.push(diagnostics::named_by_what_stays(used, user, first(user, &names)));
            let address = &user.change.address;
            kept.extend(names.into_iter().map(|name| (address.clone(), name.clone())));
        }
    }
    kept
}

/// The objects that go.
pub(in crate::plan) fn gone(drafts: &[Draft]) -> BTreeMap<Key<'_>, &Change> {
    let deleted = drafts.iter().filter(|draft| draft.is_deleted());
    let gone = deleted.filter_map(|Draft { change, .. }| {
        let id = &*change.object.as_ref()?.0;
        Some(((&change.provider, &change.address.block.ty, id), change))
    });
    gone.collect()
}

/// Whether it is the same object after the plan.
fn stays(change: &Change) -> bool {
    matches!(change.action, Action::NoOp | Action::Update | Action::Import)
}

/// What goes and is named by an object, now and after the plan, each with the attributes that do.
fn named<'d>(
    user: &'d Draft,
    gone: &BTreeMap<Key<'_>, &'d Change>,
) -> Vec<(&'d Change, BTreeSet<&'d Name>)> {
    let mut named = BTreeMap::<&str, (&Change, BTreeSet<&Name>)>::new();
    let Change { provider, before, after, .. } = &user.change;
    for (name, attribute) in &user.schema.attributes {
        let Some(ty) = &attribute.holds else { continue };
        let live = before.as_ref().and_then(|before| before.get(name));
        let planned = after.as_ref().and_then(|after| after.get(name));
        let (Some(live), Some(planned)) = (live, planned) else { continue };
        each_text(planned, &mut |id| {
            if let Some(used) = gone.get(&(provider, ty, id))
                && has(live, id)
            {
                named.entry(id).or_insert_with(|| (*used, BTreeSet::new())).1.insert(name);
            }
        });
    }
    named.into_values().collect()
}

fn has(value: &Value, id: &str) -> bool {
    let mut has = false;
    each_text(value, &mut |text| has |= text == id);
    has
}

/// The one to change: an attribute that the API derives from another one follows that.
fn first<'n>(user: &Draft, names: &[&'n Name]) -> &'n Name {
    let follows = |name: &Name| user.schema.attributes[name].follows.as_ref();
    let leads = |name: &&&Name| follows(name).is_none_or(|other| !names.contains(&other));
    names.iter().find(leads).unwrap_or(&names[0])
}
