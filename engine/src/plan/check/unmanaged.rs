//! Attributes of an object that the last applied spec gave and that the spec no longer gives. They stay as
//! they are, but the object that one of them names may be deleted.

use std::collections::BTreeMap;

use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::facts::reference_index::ReferenceIndex;
use crate::stored;
use crate::value::Value;

/// Warns about each such attribute, except one that forbids a delete, which is an error already.
pub(in crate::plan) fn warn(
    drafts: &[Draft],
    references: &ReferenceIndex<'_>,
    found: &mut Diagnostics,
) {
    if drafts.iter().all(|draft| draft.unmanaged.is_empty()) {
        return;
    }
    // The attributes that name a deleted object; true if the attribute forbids the delete.
    let mut naming: BTreeMap<(usize, &Name), bool> = BTreeMap::new();
    for reference in references.iter() {
        naming.extend(reference.naming().map(|name| ((reference.user, name), false)));
    }
    for reference in references.iter() {
        naming.extend(reference.surviving().map(|name| ((reference.user, name), true)));
    }
    for (index, draft) in drafts.iter().enumerate() {
        let change = &draft.change;
        for name in &draft.unmanaged {
            let live = change.before.as_ref().and_then(|before| before.get(name));
            let live = live.filter(|value| !value.is_null());
            let (Some(span), Some(live)) = (change.span, live) else { continue };
            let stays = match naming.get(&(index, name)) {
                Some(true) => continue,
                Some(false) => "and what it names is deleted by this plan".to_owned(),
                None => {
                    stays(draft.redacted.as_ref().and_then(|shown| shown.get(name)).unwrap_or(live))
                }
            };
            found.push(diagnostics::no_longer_managed(span, &change.address, name, &stays));
        }
    }
}

/// Returns the text about a value that nothing changes.
fn stays(shown: &Value) -> String {
    if shown.holds_sealed() {
        return "stays as it is".to_owned();
    }
    format!("stays {}", stored::to_json(shown))
}
