//! Errors of `[[moved]]` and `[[removed]]`.

use super::shown;
use crate::address::{AddressPattern, Block, ModulePath, MoveRuleError};
use crate::diagnostics::{Advice, Diagnostic, Span};

/// Two addresses between which nothing can move.
pub fn no_move(why: MoveRuleError, to: Span, from: Span) -> Diagnostic {
    let help = match why {
        MoveRuleError::Same => "remove this block: it does nothing",
        MoveRuleError::OtherKind => {
            "write two modules, such as `module.a` and `module.b`, or two resources"
        }
        MoveRuleError::OtherType => {
            "another type is another object: to keep this one, write `[[removed]]` and `[[import]]`"
        }
        MoveRuleError::OtherStars => "write `*` at the same places of both, or in neither",
    };
    Diagnostic::error("a move that cannot be")
        .at(to)
        .label(why.to_string())
        .related(from, "from here")
        .help(help)
}

/// A second move from one address.
pub fn moved_twice(from: &AddressPattern, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("moved twice")
        .at(at)
        .label(format!("another block moves `{}` already", shown(&from.to_string())))
        .related(first, "this one")
        .help("keep one of them: an object has one address")
}

/// A second move to one address.
pub fn moved_into_one(to: &AddressPattern, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("two moves to one address")
        .at(at)
        .label(format!("another block moves something to `{}` already", shown(&to.to_string())))
        .related(first, "this one")
        .help("give each object an address of its own, or remove the block that is done")
}

/// Moves that lead back to where they began.
pub fn moves_in_a_circle(path: &[&AddressPattern], at: Span) -> Diagnostic {
    const SHOWN: usize = 12;
    let mut names: Vec<String> = path.iter().take(SHOWN).map(ToString::to_string).collect();
    if path.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.extend(path.first().map(ToString::to_string));
    Diagnostic::error("moves in a circle")
        .at(at)
        .label("this leads back to where it began")
        .detail(format!("{}.", names.join(" → ")))
        .help(
            "to exchange two addresses, use a third one and `plumb state mv`, or keep the names as they are",
        )
}

/// A move away from a resource that the spec has.
pub fn moved_and_declared(block: &Block, at: Span, header: Option<Span>) -> Diagnostic {
    let diagnostic = Diagnostic::error("moved and still in the spec")
        .at(at)
        .label(format!("`{}` is in the spec", shown(&block.to_string())))
        .help(
            "remove the resource, give it another name, or remove this block if its move is done",
        );
    match header {
        Some(header) => diagnostic.related(header, "declared here"),
        None => diagnostic,
    }
}

/// A move to a resource that the spec does not have.
pub fn move_to_nothing(block: &Block, advice: Advice, at: Span) -> Diagnostic {
    Diagnostic::error("a move to an unknown resource")
        .at(at)
        .label(format!("there is no resource `{}`", shown(&block.to_string())))
        .help(advice)
}

/// A move to a module that holds nothing.
pub fn move_to_no_module(module: &ModulePath, at: Span) -> Diagnostic {
    Diagnostic::error("a move to an unknown module")
        .at(at)
        .label(format!("the spec has no resource in `{}`", shown(module.as_str())))
        .help("write the name of a module, with its key if it has `for_each`")
}

/// A move to a block with keys without one, or the other way round.
pub fn move_key(block: &Block, keyed: bool, at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error("a move to one instance").at(at);
    if keyed {
        return diagnostic
            .label(format!("`{block}` has for_each, and this names none of its instances"))
            .help(format!("write the key, too: `{block}[KEY]`"));
    }
    diagnostic
        .label(format!("`{block}` has no for_each, so it has no keys"))
        .help(format!("write `{block}`"))
}

/// A removal of a resource that the spec has.
pub fn removed_and_declared(block: &Block, at: Span, header: Span) -> Diagnostic {
    Diagnostic::error("removed and still in the spec")
        .at(at)
        .label(format!("`{}` is in the spec", shown(&block.to_string())))
        .related(header, "declared here")
        .help("remove the resource, or this block")
}

/// A second removal of one address.
pub fn removed_twice(from: &AddressPattern, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("removed twice")
        .at(at)
        .label(format!("another block removes `{}` already", shown(&from.to_string())))
        .related(first, "this one")
        .help("keep one of them: an object has one end")
}
