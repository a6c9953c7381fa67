//! Attributes that an object has otherwise than they were sent: an API may ignore a value, or write it in a form
//! of its own.

use engine::address::Name;
use engine::digest::SealKey;
use engine::journal::ProgramKind;
use engine::plan::{agree_in_form, is_stable};
use provider_port::Object;

use super::call::InFlight;

/// Returns the changed attributes that the answer to the last call of a create or an update shows otherwise than
/// they were sent, sorted by name.
pub(super) fn answer_differences(flight: &InFlight, object: &Object, key: &SealKey) -> Vec<Name> {
    let (schema, phase) = (&flight.schema, flight.started.phase);
    if phase.kind == ProgramKind::Delete || !phase.is_last() {
        return Vec::new();
    }
    let is_other = |name: &&Name| {
        let wanted = flight.sent.desired.get(*name).filter(|it| it.is_known() && !it.is_null());
        let pair = wanted.zip(object.attributes.get(*name));
        pair.is_some_and(|pair| !agree_in_form((schema, name), pair, key))
    };
    let comparable = |name: &&Name| {
        !flight.sent.ignored.contains(*name) && is_stable(schema, name) && !schema.is_hidden(name)
    };
    flight.sent.changed.iter().filter(comparable).filter(is_other).cloned().collect()
}
