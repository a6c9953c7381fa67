//! The diagnostics of moves and removals.

use std::collections::BTreeSet;

use crate::address::{Address, Name};
use crate::config::MoveConfig;
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::plan::ProposedMove;

/// Returns the error about a chain of moves without an end.
pub(in crate::plan) fn endless_move(address: &Address, config: &MoveConfig) -> Diagnostic {
    Diagnostic::error(format!("the moves of {address} never end"))
        .at(config.to)
        .label("an object with this address would be moved again, and again")
        .about(address)
        .help("write a `to` that no `from` fits")
}

/// Returns the error about two objects that would get one address.
pub(in crate::plan) fn moves_meet(
    first: &Address,
    second: &Address,
    to: &Address,
    config: &MoveConfig,
) -> Diagnostic {
    Diagnostic::error(format!("{first} and {second} would both become {to}"))
        .at(config.to)
        .label("this is where they meet")
        .about(to)
        .detail("Moves are followed one after the other: an object goes where its last one leads.")
        .help("give each object an address of its own, or remove the block that is done")
}

/// Returns the error about a move to an address that has an object.
pub(in crate::plan) fn move_is_taken(
    from: &Address,
    to: &Address,
    config: &MoveConfig,
) -> Diagnostic {
    Diagnostic::error(format!("{from} cannot become {to}: the state has an object there"))
        .at(config.to)
        .label(format!("{to} stands for another object"))
        .related(config.from, format!("{from} is in the state, too"))
        .about(to)
        .help(format!(
            "remove this block, and {from} is deleted; or let one of the two go: plumb state rm '{from}'"
        ))
}

/// Returns the error about a move away from an instance that the spec wants.
pub(in crate::plan) fn moved_and_wanted(from: &Address, at: Span) -> Diagnostic {
    Diagnostic::error(format!("{from} is moved, and still in the spec"))
        .at(at)
        .label("the spec has this instance")
        .about(from)
        .help("take it out of `for_each`, or remove this block if its move is done")
}

/// Returns the error about a move to an instance that the spec does not have.
pub(in crate::plan) fn move_to_no_instance(to: &Address, at: Span) -> Diagnostic {
    Diagnostic::error(format!("something is moved to {to}, which the spec does not have"))
        .at(at)
        .label("`for_each` has no such key")
        .about(to)
        .help("write one of its keys, or add this one to `for_each`")
}

/// Returns a note for each move that the spec may mean; if there are many, only for the first ones.
pub(in crate::plan) fn proposed_moves(moves: &[ProposedMove]) -> Diagnostics {
    const NAMED_MAX: usize = 10;
    let help = "`plumb plan --write-moves` writes the `[[moved]]` block, and the object stays";
    let note = |proposed: &ProposedMove| {
        let (from, to) = (proposed.rule.from(), proposed.rule.to());
        Diagnostic::note(format!("{from} may be called {to} now"))
            .at(proposed.span)
            .label(format!("the object of {from} is as this one is to be"))
            .detail("Without a move, it is deleted and another one is created.")
            .help(help)
    };
    let mut notes: Diagnostics = moves.iter().take(NAMED_MAX).map(note).collect();
    if moves.len() > NAMED_MAX {
        let more = moves.len() - NAMED_MAX;
        notes.push(Diagnostic::note(format!("{more} more may have other names now")).help(help));
    }
    notes
}

/// Returns the error about an object that would be let go although an earlier run has begun to delete it.
pub(in crate::plan) fn drained_is_removed(
    address: &Address,
    drained: &BTreeSet<Name>,
    at: Span,
) -> Diagnostic {
    let names = drained.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Diagnostic::error(format!("{address} would stay half deleted"))
        .at(at)
        .label("this lets the object go as it is")
        .about(address)
        .detail(format!("An earlier run began to delete it, and changed {names}."))
        .help("write `destroy = true`, and the delete goes on")
}

/// Returns the error about a removal of an instance that the spec wants.
pub(in crate::plan) fn removed_and_wanted(from: &Address, at: Span) -> Diagnostic {
    Diagnostic::error(format!("{from} is removed, and still in the spec"))
        .at(at)
        .label("the spec has this instance")
        .about(from)
        .help("take it out of `for_each`, or remove this block")
}
