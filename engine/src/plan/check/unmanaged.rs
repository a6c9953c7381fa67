//! What the last applied spec gave of an object that stays, and nothing gives now: nobody changes it, but what it
//! names may go.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{Address, Name};
use crate::diagnostics::Diagnostics;
use crate::plan::check::kept::Place;
use crate::plan::draft::Draft;
use crate::plan::facts::references::each_text;
use crate::plan::input::PlanInput;
use crate::plan::{Change, diagnostics};
use crate::state::ObjectId;
use crate::stored;
use crate::value::Value;

/// Warns of each such attribute, once it is known what goes; but not of one that keeps it from going, which was told.
pub(in crate::plan) fn warn(
    input: &PlanInput<'_>,
    drafts: &[Draft],
    told: &BTreeSet<Place>,
    found: &mut Diagnostics,
) {
    if drafts.iter().all(|draft| draft.unmanaged.is_empty()) {
        return;
    }
    let ends = drafts.iter().filter(|draft| draft.is_deleted()).map(|it| &it.change);
    let ends = ends.filter_map(|it| Some((&it.address, it.object.as_ref()?)));
    let mut gone = BTreeMap::<&Address, BTreeSet<&ObjectId>>::new();
    for (address, object) in ends {
        gone.entry(address).or_default().insert(object);
    }
    for draft in drafts {
        let change = &draft.change;
        let entry = input.snapshot.entries.get(&change.address);
        let dependencies = entry.into_iter().flat_map(|entry| &entry.dependencies);
        let gone: BTreeSet<&ObjectId> =
            dependencies.filter_map(|on| gone.get(on)).flatten().copied().collect();
        for name in &draft.unmanaged {
            let Some((span, value)) = change.span.zip(live(change, name)) else { continue };
            if told.contains(&(change.address.clone(), name.clone())) {
                continue;
            }
            let shown = draft.redacted.as_ref().and_then(|redacted| redacted.get(name));
            let stays = stays((value, shown.unwrap_or(value)), &gone);
            let said = diagnostics::no_longer_managed(span, &change.address, name, &stays);
            found.push(said);
        }
    }
}

fn live<'c>(change: &'c Change, name: &Name) -> Option<&'c Value> {
    change.before.as_ref()?.get(name).filter(|value| !value.is_null())
}

/// What becomes of a value that nobody changes, and what is shown of it.
fn stays((value, shown): (&Value, &Value), gone: &BTreeSet<&ObjectId>) -> String {
    let mut names_it = false;
    each_text(value, &mut |text| names_it |= gone.iter().any(|id| *id.0 == *text));
    match shown {
        _ if names_it => "and what it names is deleted by this plan".to_owned(),
        shown if shown.holds_sealed() => "stays as it is".to_owned(),
        shown => format!("stays {}", stored::to_json(shown)),
    }
}
