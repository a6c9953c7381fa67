//! The resolution of a call in doubt, by its object as a look-up showed it.

use super::call::{CallInDoubt, Sent, Shown};
use super::ownership::{Owner, other_owner};
use crate::address::{Address, Name};
use crate::journal::Wait;
use crate::plan::{agree_in_form, is_stable};
use crate::schema::{Identity, ProgramKind, SeenIn, TypeSchema};
use crate::state::Snapshot;
use crate::value::{Attributes, Value};

/// The outcome of a call, as far as the evidence shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The call did its work.
    Done,
    /// The object of a create exists, and these attributes have other values than were sent.
    Mismatch(Vec<Name>),
    /// The object is as it was before the call.
    NotDone,
    /// The object exists, and nothing shows if the call did its work.
    Unproven,
    /// The create made nothing.
    NotMade,
    /// The object is gone.
    Gone,
    /// The create made an object, and this address stands for it.
    Claimed(Address),
    /// The API accepted the create, and its object does not show yet.
    Promised,
    /// The look-up was in another account than the call went to.
    Elsewhere,
}

/// Returns the outcome of a call, by its object; `shown` is `None` if the object is absent.
pub fn resolve(call: CallInDoubt<'_>, shown: Option<Shown<'_>>, snapshot: &Snapshot) -> Resolution {
    // A name that was drawn for the create is a proof in any account.
    if call.elsewhere && !(shown.is_some() && call.has_one_time_name()) {
        return Resolution::Elsewhere;
    }
    let Some(shown) = shown else { return absent(call) };
    match other_owner(call, shown, snapshot) {
        Some(Owner::Holder(owner)) if call.has_one_time_name() => {
            Resolution::Claimed(owner.clone())
        }
        Some(_) => absent(call),
        None if call.started.makes_its_object() => {
            let mismatch = create_mismatch(call, shown.attributes);
            if mismatch.is_empty() { Resolution::Done } else { Resolution::Mismatch(mismatch) }
        }
        None => changed(call, shown.attributes),
    }
}

fn absent(call: CallInDoubt<'_>) -> Resolution {
    if call.accepted {
        Resolution::Promised
    } else if call.started.makes_its_object() {
        Resolution::NotMade
    } else {
        Resolution::Gone
    }
}

/// Returns the outcome of a change, a drain or a delete, by its object. A value that no answer shows proves
/// nothing, so the change is sent again.
fn changed(call: CallInDoubt<'_>, shown: &Attributes) -> Resolution {
    let CallInDoubt { started, schema, key, .. } = call;
    // A drain and a wait may always be repeated, and an object that exists was not deleted.
    if started.phase.kind == ProgramKind::Delete || !started.phase.calls() {
        return Resolution::NotDone;
    }
    let Some(Sent { desired, changed, .. }) = call.sent else { return Resolution::Unproven };
    let is_one_of_several = started.phase.phases > 1 || changed.is_empty();
    if schema.acts_only(started.phase) && is_one_of_several {
        return Resolution::Unproven;
    }
    let is_visible =
        |name: &&Name| schema.sends(started.phase, name, changed) && !schema.is_hidden(name);
    let shows = |name: &Name| {
        let live = shown.get(name).unwrap_or(&Value::Null);
        let agree = |wanted| agree_in_form((schema, name), (wanted, live), key);
        desired.get(name).is_none_or(agree)
    };
    // A cleared attribute is no longer managed. The API then chooses a value that this run cannot predict.
    let cleared = || changed.iter().filter(|name| !started.managed.contains(*name));
    let is_open = |name: &Name| !desired.contains_key(name);
    if !started.managed.iter().chain(cleared()).filter(is_visible).all(shows) {
        Resolution::NotDone
    } else if started.unshown.is_empty() && !cleared().filter(is_visible).any(is_open) {
        Resolution::Done
    } else {
        Resolution::Unproven
    }
}

/// Returns the attributes of a created object that show another value than the create sent. If others may
/// have the name of the object, its existence is no proof: another create may have been first. If the name
/// was drawn only for this create, the object is its own, whatever values the API gave it. The wait of an
/// accepted create finds out when it is done, so its values do not count.
pub fn create_mismatch(call: CallInDoubt<'_>, shown: &Attributes) -> Vec<Name> {
    let CallInDoubt { started, schema, accepted, key, .. } = call;
    let (Some(sent), Some(phase)) = (call.sent, schema.phase(started.phase)) else {
        return Vec::new();
    };
    let is_waited_for = accepted && started.phase.wait == Wait::After;
    if is_waited_for || !call.may_be_another() {
        return Vec::new();
    }
    let differs = |name: &Name, wanted: &Value, live: &Value| {
        !wanted.is_null() && !agree_in_form((schema, name), (wanted, live), key)
    };
    let is_mismatch = |name: &&Name| {
        let pair = sent.desired.get(*name).zip(shown.get(*name));
        phase.carries(name)
            && !sent.ignored.contains(*name)
            && is_telling(schema, name)
            && pair.is_some_and(|(wanted, live)| differs(name, wanted, live))
    };
    started.managed.iter().filter(is_mismatch).cloned().collect()
}

/// Returns true if a difference in the attribute shows that the object came from another create. The
/// attribute by which the object was found shows nothing. If the object was found in a list, an attribute
/// that only reads show does not count either: a unique name is found in lists.
fn is_telling(schema: &TypeSchema, name: &Name) -> bool {
    let by_lists = matches!(schema.identity, Identity::UniqueName { .. });
    let is_shown = schema.attributes.get(name).is_some_and(|attribute| match attribute.seen_in {
        SeenIn::List => true,
        SeenIn::Read => !by_lists,
        SeenIn::Never => false,
    });
    is_shown && is_stable(schema, name) && schema.identity.chosen_attribute() != Some(name)
}
