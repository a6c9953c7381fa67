//! Refuses a change whose program cannot be chosen while planning.

use std::collections::BTreeSet;

use crate::address::{Address, Block, Name};
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostics;
use crate::expression::{Expr, Kind, Root, visit};
use crate::plan::decide::programs::{Judged, OLD, answer};
use crate::plan::draft::Draft;
use crate::plan::{Action, diagnostics};
use crate::schema::Program;
use crate::value::Value;

/// Refuses a draft if the choice of its program depends on a value that is not known yet: the wrong program
/// might run.
pub(in crate::plan) fn check(resource: &ResourceConfig, draft: &Draft, found: &mut Diagnostics) {
    let change = &draft.change;
    let programs = match change.action {
        Action::Create | Action::Replace => &draft.schema.create,
        Action::Update => &draft.schema.update,
        Action::Import if !draft.changed.is_empty() => &draft.schema.update,
        _ => return,
    };
    // Most types have one program for each operation.
    let (Some(after), [_, _, ..]) = (change.after.as_deref(), &**programs) else { return };
    let judged = match change.action {
        Action::Create | Action::Replace => Judged::made(Some(after)),
        _ => Judged::changed(change.before.as_deref(), Some(after)),
    };
    if let Some((when, sources)) = open_question(programs, judged, &change.address) {
        let asked = asked(when);
        found.push(diagnostics::program_unknown(resource, &change.address, (&asked, &sources)));
    }
}

/// Returns the `when` that has to be answered for the choice, and that is not known, with the resources that
/// its answer depends on; none if the choice is known.
fn open_question<'p>(
    programs: &'p [Program],
    judged: Judged<'_>,
    address: &Address,
) -> Option<(&'p Expr, BTreeSet<Block>)> {
    for program in programs {
        let when = program.when.as_ref()?;
        match answer(when, judged) {
            Some(Value::Bool(true)) => return None,
            Some(Value::Unknown(unknown)) => {
                let sources = sources(&unknown.residual, address);
                if let Some(sources) = sources {
                    return Some((when, sources));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the other resources that a residual depends on; `None` if the residual depends only on the object
/// itself. A residual over a sensitive variable depends on no resource: the set is empty, and the question is
/// open all the same.
fn sources(residual: &Expr, address: &Address) -> Option<BTreeSet<Block>> {
    let (mut sources, mut is_own) = (BTreeSet::new(), true);
    visit::roots(residual, &mut |root, _| match root {
        Root::Resource(block) if *block == address.block => {}
        Root::Resource(block) => {
            is_own = false;
            sources.insert(block.clone());
        }
        _ => is_own = false,
    });
    (!is_own).then_some(sources)
}

/// Returns the attributes of the planned object that a `when` depends on.
fn asked(when: &Expr) -> BTreeSet<Name> {
    let mut asked = BTreeSet::new();
    visit::walk(when, &mut |part| {
        if let Kind::Root(Root::Named(name)) = &part.kind
            && &**name != OLD
        {
            asked.insert(name.clone());
        }
    });
    asked
}
