//! The reasons of changes, in sentences.

use engine::plan::{Change, Reason, Staying};

/// Returns the reason of a change as a sentence without a full stop.
pub(crate) fn sentence(change: &Change) -> String {
    let fixed = match &change.reason {
        Reason::Differs => return differs(change),
        Reason::CannotUpdate => return cannot_update(change),
        Reason::Leftover(nonce) => {
            return format!("a create that was given up surfaced after all, as {nonce}");
        }
        Reason::StillUsed(user) => {
            let by = &user.by;
            return match user.why {
                Staying::LeftOut => format!("{by}, which is left out, uses it"),
                Staying::InDoubt => format!("{by}, which waits for a call in doubt, uses it"),
                Staying::Ignores => format!("{by} ignores changes of its reference, and uses it"),
            };
        }
        Reason::InSync => "live object and spec agree",
        Reason::NotInState => "new in the spec",
        Reason::Vanished => "the state has it, and the API no longer does",
        Reason::Unfinished => "an earlier run created it and did not finish",
        Reason::HalfChanged => "an earlier run began to change it and did not finish",
        Reason::DeleteInterrupted => "an earlier run began to delete it, and the spec wants it",
        Reason::NotInSpec => "removed from the spec",
        Reason::KeyNotInSpec => "its key was removed from `for_each` in the spec",
        Reason::BecameMany => "its block has a `for_each` now, and this object has no key",
        Reason::BecameOne => "its block no longer has a `for_each`, and this object has a key",
        Reason::Disabled => "its `lifecycle.enabled` is false",
        Reason::Destroy => "a destroy deletes everything",
        Reason::Asked => "requested by `--replace`",
        Reason::Triggered => "one of its `lifecycle.replace_triggered_by` changes",
        Reason::Deposed => "a replace put this object aside and did not delete it yet",
        Reason::CannotDelete => "the API has no call that deletes it",
        Reason::Retained => "its `lifecycle.retain` says to leave the object alone",
        Reason::Untargeted => "it is outside `--target`, or in `--exclude`",
        Reason::InDoubt => "a call of an earlier run is in doubt",
        Reason::Imported => "the object exists, and an import names it",
        Reason::Moved => return moved(change),
        Reason::Removed => "a removal in the spec names it",
    };
    fixed.to_owned()
}

fn moved(change: &Change) -> String {
    let from = change.moved_from.as_ref().map(|from| format!("moved from {from}"));
    from.unwrap_or_else(|| "moved".to_owned())
}

fn differs(change: &Change) -> String {
    let names = |drifted: bool| {
        list(change.causes.iter().filter(|c| c.drifted == drifted).map(|c| &*c.attribute))
    };
    match (names(false), names(true)) {
        (None, None) => "spec and live object differ".to_owned(),
        (Some(spec), None) => format!("the spec changes {spec}"),
        (None, Some(live)) => format!("{live} changed outside"),
        (Some(spec), Some(live)) => format!("the spec changes {spec}, and {live} changed outside"),
    }
}

fn cannot_update(change: &Change) -> String {
    match list(change.causes.iter().filter(|c| c.replaces).map(|c| &*c.attribute)) {
        Some(names) => format!("{names} cannot be changed in place"),
        None => "what differs cannot be changed in place".to_owned(),
    }
}

/// Returns `a`, `a and b` or `a, b and c`; a count if there are five or more; none for no names.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    match &names[..] {
        [] => None,
        [only] => Some((*only).to_owned()),
        [first, second, third, _, rest @ ..] if !rest.is_empty() => {
            Some(format!("{first}, {second}, {third} and {} more", rest.len() + 1))
        }
        [head @ .., last] => Some(format!("{} and {last}", head.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names() {
        let check = |names: &[&str], expected: Option<&str>| {
            assert_eq!(list(names.iter().copied()).as_deref(), expected);
        };
        check(&[], None);
        check(&["a"], Some("a"));
        check(&["a", "b"], Some("a and b"));
        check(&["a", "b", "c", "d"], Some("a, b, c and d"));
        check(&["a", "b", "c", "d", "e"], Some("a, b, c and 2 more"));
    }
}
