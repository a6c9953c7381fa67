//! What stands under the name that a create was to give, and does not hold what the create sent. Presence
//! is no proof there: settings come with what they belong to, and a stranger may have been first.

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::{Started, Wait};
use engine::plan::{agree, is_stable};
use engine::schema::{Identity, SeenIn, TypeSchema};
use engine::sorted::Set;
use engine::value::{Attributes, Value};
use provider_port::Object;

/// What a create was sent with.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    /// Its attributes.
    pub(crate) desired: &'a Attributes,
    /// Those that may differ, as the spec says.
    pub(crate) ignored: &'a Set<Name>,
    /// True if the API accepted it and showed nothing of it.
    pub(crate) accepted: bool,
}

/// The attributes that a create sent, of which its object shows another value. What is not shown, and what
/// changes by itself, says nothing; and what bears a name that was drawn for it alone was made by the
/// create, whatever the API made of what it was sent. Of what was `accepted` the wait of its phase says when
/// it is done.
pub(crate) fn unlike(
    (schema, started): (&TypeSchema, &Started),
    Sent { desired, ignored, accepted }: Sent<'_>,
    object: &Object,
) -> Vec<Name> {
    let Some(phase) = schema.phase(started.phase) else { return Vec::new() };
    let is_waited_for = accepted && started.phase.wait == Wait::After;
    if is_waited_for || !may_be_another(schema, started) {
        return Vec::new();
    }
    // Both sides are in clear here, so no fingerprint is made of either: any key does.
    let key = SealKey::from_random([0; 32]);
    let differs = |wanted: &Value, live: &Value| !wanted.is_null() && !agree(wanted, live, &key);
    let mut unlike = started.managed.iter().cloned().collect::<Vec<_>>();
    unlike.retain(|name| {
        let shown = desired.get(name).zip(object.attributes.get(name));
        phase.carries(name)
            && !ignored.contains(name)
            && tells(schema, name)
            && shown.is_some_and(|(wanted, live)| differs(wanted, live))
    });
    unlike
}

/// Returns true if what answers show of an attribute tells something of a create. What the object was found by does
/// not, nor does a list of what only reads show: a unique name is found in lists.
fn tells(schema: &TypeSchema, name: &Name) -> bool {
    let by_lists = matches!(schema.identity, Identity::UniqueName { .. });
    let is_hidden = schema.attributes.get(name).is_none_or(|attribute| match attribute.seen_in {
        SeenIn::List => false,
        SeenIn::Read => by_lists,
        SeenIn::Never => true,
    });
    !is_hidden && is_stable(schema, name) && schema.identity.chosen_attribute() != Some(name)
}

/// Returns true if the object that shows may be another one, which had the name or the id before and is gone
/// since.
pub(crate) fn may_be_another(schema: &TypeSchema, started: &Started) -> bool {
    let Started { name, nonce, .. } = started;
    let is_drawn = || nonce.as_ref().is_some_and(|nonce| name.as_ref() == Some(&nonce.0));
    started.makes_its_object()
        && match schema.identity {
            Identity::UniqueName { .. } => true,
            Identity::ClientId { .. } => !is_drawn(),
            _ => false,
        }
}
