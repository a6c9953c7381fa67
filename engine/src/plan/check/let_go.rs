//! What an object names that is let go of: nobody makes it name another, and where an API deletes nothing that is
//! named there, it would refuse each delete.

use crate::diagnostics::Diagnostics;
use crate::plan::check::kept::gone;
use crate::plan::diagnostics;
use crate::plan::draft::Draft;
use crate::plan::facts::references::each_text;

/// Refuses to delete it.
pub(in crate::plan) fn check(drafts: &[Draft], found: &mut Diagnostics) {
    let mut kept = drafts.iter().filter(|draft| draft.is_let_go()).peekable();
    if kept.peek().is_none() {
        return;
    }
    let gone = gone(drafts);
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
