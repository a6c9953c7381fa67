//! Objects that stay because another object still uses them: the old objects of replaces, and objects that
//! the spec no longer wants.

use rustc_hash::FxHashSet;

use crate::address::Address;
use crate::diagnostics::Diagnostics;
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::ignored_references;
use crate::plan::draft::Draft;
use crate::plan::facts::deferrals::{Deferral, Search, UsedObjects};
use crate::plan::facts::names;
use crate::plan::input::{Mode, PlanInput};
use crate::plan::{Action, Staying, Use, diagnostics};
use crate::sorted::Set;
use crate::state::Progress;

/// Finds the objects of the state that another object still uses, once the spec is decided.
pub(in crate::plan) fn find(context: &Context<'_>, decisions: &Decisions) -> UsedObjects {
    let input = context.input;
    if input.options.mode == Mode::RefreshOnly {
        return UsedObjects::default();
    }
    let changes = decisions.drafts.iter().map(|draft| &draft.change);
    let replaced = changes.filter(|change| change.action == Action::Replace);
    let replaced: FxHashSet<&Address> = replaced.map(|change| &change.address).collect();
    // A decided object follows the objects that it uses, unless it is replaced.
    let follows =
        |address: &Address, _| decisions.handled.contains(address) && !replaced.contains(address);
    let mut search = Search::new(input, &follows);
    // Doubts come first, because nothing else can be done about their objects before they are resolved.
    search.doubts();
    search.stay(&decisions.in_doubt, Staying::InDoubt);
    for draft in &decisions.drafts {
        if let Some(Deferral::StillUsed(user)) = &draft.deferral {
            search.stay([&draft.change.address], user.why);
        }
    }
    search.left_out(&|address| !decisions.is_chosen(context, address));
    mark_ignored(input, decisions, &mut search);
    search.used
}

/// Marks the objects whose id is kept in an attribute that ignores changes.
fn mark_ignored<'a>(input: &PlanInput<'a>, decisions: &Decisions, search: &mut Search<'_, 'a>) {
    let resources = &input.config.resources;
    if resources.values().all(|resource| resource.lifecycle.ignore_changes.is_empty()) {
        return;
    }
    for Draft { change, .. } in &decisions.drafts {
        let Some(resource) = resources.get(&change.address.block) else { continue };
        let kept = ignored_references::kept(input, resource, change, &Set::new());
        for (used, object) in kept {
            search.mark(used, object, &change.address, Staying::Ignores);
        }
    }
    search.follow();
}

/// Returns the user of the object that a draft would delete, or whose name the draft would take.
pub(in crate::plan) fn user_of_old<'u>(
    input: &PlanInput<'_>,
    used: &'u UsedObjects,
    draft: &Draft,
) -> Option<&'u Use> {
    let change = &draft.change;
    match change.action {
        // A retained object is not deleted.
        Action::Replace if draft.retains => None,
        Action::Replace => used.user(&change.address, change.object.as_ref()?),
        // The rest of a replace: the old object was put aside.
        Action::Update if matches!(change.progress, Progress::Created { .. }) => {
            let deposed = &input.snapshot.entries.get(&change.address)?.deposed;
            let mut old = deposed.iter().filter(|object| names::takes_the_name_of(draft, object));
            old.find_map(|object| used.user(&change.address, &object.id))
        }
        _ => None,
    }
}

/// Decides about the old object of a replace that another object still uses. A replace that creates first
/// leaves the old object beside the new one; one that deletes first is refused.
pub(in crate::plan) fn keep_old_objects(
    input: &PlanInput<'_>,
    used: &UsedObjects,
    decisions: &mut Decisions,
    found: &mut Diagnostics,
) {
    for draft in &mut decisions.drafts {
        let Some(user) = user_of_old(input, used, draft) else { continue };
        let takes_its_name = names::takes_its_name(draft);
        let is_beside = draft.create_first && draft.change.action == Action::Replace;
        if is_beside && (user.why == Staying::LeftOut || !takes_its_name) {
            draft.change.loss = None;
            draft.keeps_old = true;
            found.push(diagnostics::old_object_stays(&draft.change, user));
        } else {
            found.push(diagnostics::replace_takes_what_is_used(draft, takes_its_name, user));
        }
    }
}
