//! The passes of planning, in their order. Each pass is a function of the results of those before it.

use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::digest::{Digest, Fingerprint};
use crate::plan::check::{self, budget, plan_rules, policies, targets};
use crate::plan::context::Context;
use crate::plan::decide::decisions::Decisions;
use crate::plan::decide::walk;
use crate::plan::decide::{
    conditions, import, move_proposals, moved, outputs, removal, used_objects,
};
use crate::plan::decided_changes::DecidedChanges;
use crate::plan::evaluate::{self, Evaluation};
use crate::plan::facts::redactor;
use crate::plan::findings::Findings;
use crate::plan::input::{Mode, PlanInput};
use crate::plan::schedule::unused_secrets;
use crate::plan::{Base, Plan, cost, diagnostics, lint, schedule};
use crate::work::{InTurn, Workers};

/// Makes the plan. A plan with errors among the diagnostics must not be applied.
pub fn plan(input: &PlanInput<'_>) -> (Plan, Diagnostics) {
    plan_with(input, &InTurn)
}

/// Makes the plan; the workers decide the instances.
pub fn plan_with(input: &PlanInput<'_>, workers: &dyn Workers) -> (Plan, Diagnostics) {
    let mut found = Findings::default();
    found.diagnostics.extend(input.moves.diagnostics.clone());
    found.seen.extend(input.moves.records());
    let context = Context::new(input, &mut found.diagnostics);
    let (evaluation, mut decisions) = decide_spec(&context, workers, &mut found);
    let used = used_objects::find(&context, &decisions);
    used_objects::keep_old_objects(input, &used, &mut decisions, &mut found.diagnostics);
    removal::remove(&context, &evaluation, &used, &mut decisions, &mut found);
    finish(&context, &evaluation, decisions, found, workers)
}

/// Decides every instance of the spec. A destroy wants none of them; only the protections of the spec count.
fn decide_spec<'a>(
    context: &Context<'a>,
    workers: &dyn Workers,
    found: &mut Findings,
) -> (Evaluation<'a>, Decisions) {
    if context.input.options.mode == Mode::Destroy {
        return (evaluate::prior::objects(context), Decisions::new(context));
    }
    let (evaluation, decisions) = walk::walk(context, workers, found);
    import::report_unused(context, &evaluation, &mut found.diagnostics);
    targets::report_unmatched(context, &evaluation, &mut found.diagnostics);
    moved::check(context, &evaluation, &mut found.diagnostics);
    removal::report_wanted(context, &evaluation, &mut found.diagnostics);
    (evaluation, decisions)
}

/// Checks the decisions, schedules their steps and assembles the plan.
fn finish<'a>(
    context: &Context<'a>,
    evaluation: &Evaluation<'a>,
    mut decisions: Decisions,
    mut found: Findings,
    workers: &dyn Workers,
) -> (Plan, Diagnostics) {
    let input = context.input;
    if input.options.mode == Mode::RefreshOnly {
        found.narrow(&context.selection);
    }
    decisions.sort();
    conditions::drop_unknowable(&mut decisions, &mut found.diagnostics);
    let costs = cost::estimate(&mut decisions.drafts);
    let errors = found.diagnostics.errors();
    policies::check(context, evaluation, (&mut decisions.drafts, &costs), &mut found.diagnostics);
    plan_rules::check(context, (&decisions.drafts, &costs), &mut found.diagnostics);
    let denials = found.diagnostics.errors() - errors;
    found.sort();
    let changes = DecidedChanges::new(&decisions.drafts, input.snapshot);
    check::check(context, &changes, &mut found);
    let proposed_moves = move_proposals::propose(context, evaluation, &decisions.drafts);
    found.diagnostics.extend(diagnostics::proposed_moves(&proposed_moves));
    let steps = schedule::steps(&changes, &input.snapshot.seal_key, &mut found.diagnostics);
    let users = changes.references.users(&decisions.drafts);
    let outputs = outputs::outputs(context, evaluation, &mut decisions, &mut found.diagnostics);
    decisions.drafts.iter_mut().for_each(redactor::hide);
    moved::mark(input.moves, &mut decisions.drafts);
    if evaluation.planned.spent.is_over() && !found.diagnostics.has_errors() {
        let drafts = &decisions.drafts;
        found.diagnostics.push(budget::exceeded(input.config, drafts, &evaluation.locals, &[]));
    }
    let base = Base { users, namesakes: found.namesakes, ..base(input) };
    let mut plan = Plan {
        complete: input.options.cover_all(),
        base,
        drift: found.drift,
        changes: decisions.drafts.into_iter().map(|draft| draft.change).collect(),
        outputs,
        costs,
        steps,
        doubts: context.doubts.clone(),
        seen: found.seen,
        lacks: found.lacks,
        requests: found.requests,
        proposed_moves,
        looked_up: found.looked_up,
        denials,
    };
    unused_secrets::prune(&mut plan);
    let mut diagnostics = found.diagnostics;
    if !diagnostics.has_errors() {
        for note in lint::lint_with(&plan, workers) {
            diagnostics.push(diagnostics::internal(note));
        }
    }
    diagnostics.sort();
    (plan, diagnostics)
}

/// Returns the state and the accounts that the plan is made for.
fn base(input: &PlanInput<'_>) -> Base {
    let snapshot = input.snapshot;
    let account = |(name, account): (&Name, &Digest)| {
        (name.clone(), Fingerprint::of_digest(account, &snapshot.seal_key))
    };
    Base {
        lineage: snapshot.lineage.clone(),
        first_key: (snapshot.serial == 0).then(|| snapshot.seal_key.clone()),
        providers: input.providers.iter().map(|(n, it)| (n.clone(), it.digest.clone())).collect(),
        accounts: input.accounts.iter().map(account).collect(),
        ..Base::default()
    }
}
