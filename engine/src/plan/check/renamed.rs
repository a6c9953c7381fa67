//! What goes under one address and is made under another with the same attributes: a block that got another name is the
//! same object to people, and a new one to a plan.
//!
//! Nothing is decided by it. It is a note, with the command that moves the object.

use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::digest::SealKey;
use crate::plan::decide::diff;
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::input::PlanInput;
use crate::plan::{Action, Change, diagnostics};
use crate::value::{Attributes, Value};

/// How many pairs are compared: with very many, nobody reads a note about each.
const COMPARISONS_MAX: usize = 10_000;

/// Tells of what may have got another address.
pub(in crate::plan) fn note(
    input: &PlanInput<'_>,
    evaluation: &Evaluation<'_>,
    drafts: &[Draft],
    found: &mut Diagnostics,
) {
    let made: Vec<&Draft> = drafts.iter().filter(|draft| is_made(input, &draft.change)).collect();
    if made.is_empty() {
        return;
    }
    let key = &input.snapshot.seal_key;
    let (mut pairs, mut left) = (Vec::new(), COMPARISONS_MAX);
    let mut taken = vec![false; made.len()];
    for gone in drafts.iter().filter(|draft| has_left(evaluation, &draft.change)) {
        if left == 0 {
            break;
        }
        let like = made.iter().enumerate().position(|(index, made)| {
            left = left.saturating_sub(1);
            left > 0 && !taken[index] && is_like(&gone.change, &made.change, key)
        });
        if let Some(index) = like {
            taken[index] = true;
            pairs.push((&gone.change, &made[index].change));
        }
    }
    if let Some(said) = diagnostics::may_be_renamed(&pairs) {
        found.push(said);
    }
}

/// Whether it is made where the state has nothing.
fn is_made(input: &PlanInput<'_>, change: &Change) -> bool {
    let is_known = input.snapshot.entries.contains_key(&change.address);
    change.action == Action::Create && !is_known
}

/// Whether the spec has it no longer: what is disabled, or put aside, is no older name of anything.
fn has_left(evaluation: &Evaluation<'_>, change: &Change) -> bool {
    let is_named = evaluation.planned.has(&change.address);
    change.action == Action::Delete && !change.deposed && !is_named
}

/// Whether the spec gives the new one the attributes that it gave the old one, as far as they are known.
fn is_like(gone: &Change, made: &Change, key: &SealKey) -> bool {
    let same_type =
        gone.provider == made.provider && gone.address.block.ty == made.address.block.ty;
    if !same_type || gone.managed != made.managed {
        return false;
    }
    let of = |from: &Option<Arc<Attributes>>, name| {
        from.as_ref().and_then(|it| it.get(name)).cloned().unwrap_or(Value::Null)
    };
    let mut is_any_known = false;
    let agree = gone.managed.iter().all(|name| {
        let (live, wanted) = (of(&gone.before, name), of(&made.after, name));
        let is_known = wanted.is_known();
        is_any_known |= is_known;
        !is_known || diff::agree(&wanted, &live, key)
    });
    agree && is_any_known
}
