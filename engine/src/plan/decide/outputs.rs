//! Outputs: what the spec shows of its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::condition::Verdict;
use crate::config::OutputConfig;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::digest::SealKey;
use crate::expression::evaluate;
use crate::expression::{Kind, visit};
use crate::plan::context::Context;
use crate::plan::decide::conditions;
use crate::plan::decide::decisions::Decisions;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::facts::unavailable::UnavailableSecrets;
use crate::plan::input::Mode;
use crate::plan::{Action, OpenCondition, OutputChange, SecretInputs, When, diagnostics};
use crate::sorted::Set;
use crate::state::OutputValue;
use crate::stored;
use crate::value::{Datum, Paths, Sealed, Value};

/// Evaluates the outputs and compares them with the last run's.
pub(in crate::plan) fn outputs(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    decisions: &mut Decisions,
    found: &mut Diagnostics,
) -> BTreeMap<Name, OutputChange> {
    let mut changes = BTreeMap::new();
    if context.input.options.mode == Mode::Apply {
        for (name, output) in &context.input.config.outputs {
            if let Some(change) = output_change(context, evaluation, decisions, name, output, found)
            {
                changes.insert(name.clone(), change);
            }
        }
    }
    for (name, last) in &context.input.snapshot.outputs {
        // A plan for some of the resources leaves the outputs of the others alone.
        let gone = context.input.options.cover_all()
            && context.input.options.mode != Mode::RefreshOnly
            && (context.input.options.mode == Mode::Destroy
                || !context.input.config.outputs.contains_key(name));
        if gone {
            changes.insert(name.clone(), gone_output(context, name, last));
        }
    }
    changes
}

/// Decides about an output that goes. In a destroy the spec may still have it; then the spec says if it is
/// sensitive.
fn gone_output(context: &Context<'_>, name: &Name, last: &OutputValue) -> OutputChange {
    let declared = context.input.config.outputs.get(name).is_some_and(|output| output.sensitive);
    let sensitive = last.sensitive || declared;
    let before = last.value.value().ok();
    OutputChange {
        action: Action::Delete,
        before: before.map(|before| context.redactor.redact_value(&before, sensitive)),
        after: None,
        sensitive,
        secret: None,
        conditions: Vec::new(),
    }
}

fn output_change(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    decisions: &Decisions,
    name: &Name,
    output: &OutputConfig,
    found: &mut Diagnostics,
) -> Option<OutputChange> {
    let scope = context.scope(evaluation);
    let datum = match evaluate::evaluate(&output.value.expr, &scope) {
        Ok(datum) => datum,
        Err(error) => {
            let span = output.value.span_of(error.range);
            found.push(diagnostics::evaluation(span, &error, &label(name)));
            return None;
        }
    };
    if waits_for_others(decisions, &scope.touched()) {
        return None;
    }
    let datum = without_unshown(datum, output, &scope, &evaluation.planned.unavailable);
    let sensitive = output.sensitive || !datum.sensitive.is_empty();
    if sensitive && !output.sensitive {
        found.push(leaks(name, output));
    }
    let paths = if sensitive { Paths::whole() } else { Paths::none() };
    let key = &context.input.snapshot.seal_key;
    let after = stored::seal(&datum.value, &paths, key);
    let last = context.input.snapshot.outputs.get(name);
    let before = last.and_then(|last| last.value.value().ok());
    let kept = before.as_ref().filter(|_| last.is_some_and(|last| last.sensitive));
    let unmakeable = unmakeable(&datum.value, kept, output, &scope, key);
    let after = unmakeable.unwrap_or(after);
    let action = match &before {
        None => Action::Create,
        Some(before) if same(&after, before) => Action::NoOp,
        Some(_) => Action::Update,
    };
    // An output that stays has the value in the state, so apply needs no expression in a plan file for it.
    let is_made = sensitive && (action != Action::NoOp || !datum.value.is_known());
    let secret = is_made.then(|| evaluate::residual(&output.value.expr, &scope).ok()).flatten();
    let before = before.map(|before| match &before {
        // A value that does not change is shown after the change, so there is no use in hiding it before.
        before if *before == after => before.clone(),
        before => context.redactor.redact_value(before, sensitive),
    });
    let conditions = open_conditions(name, output, &scope, found);
    Some(OutputChange { action, before, after: Some(after), sensitive, secret, conditions })
}

/// Judges the preconditions of an output; returns those that can be judged only at the end of a run.
fn open_conditions(
    name: &Name,
    output: &OutputConfig,
    scope: &SpecScope<'_>,
    found: &mut Diagnostics,
) -> Vec<OpenCondition> {
    let mut all = Vec::new();
    for condition in &output.preconditions {
        let what = ("precondition", condition);
        if conditions::verdict(what, scope, &label(name), found) == Some(Verdict::Unknown) {
            all.extend(conditions::open(When::After, what, scope));
        }
    }
    all
}

/// Returns the value that the state keeps for an output made of a secret of which only the fingerprint is
/// known. No apply knows more, so the output keeps the value from the run that knew the secret. If there is
/// no such value, it is the fingerprint of the inputs. Returns none if an apply can compute the output.
fn unmakeable(
    value: &Value,
    kept: Option<&Value>,
    output: &OutputConfig,
    scope: &SpecScope<'_>,
    key: &SealKey,
) -> Option<Value> {
    let ty = value.type_of().nameless();
    let kept = kept.filter(|kept| kept.type_of().nameless().fits(&ty));
    if value.is_known() {
        // A value that is sealed in parts cannot be compared with one that was sealed as a whole.
        let is_in_parts = value.holds_sealed() && !matches!(value, Value::Sealed(_));
        return kept.filter(|kept| is_in_parts && matches!(kept, Value::Sealed(_))).cloned();
    }
    // If no input is a secret without a value, an apply will know what is unknown now.
    let inputs = SecretInputs::new(&output.value.expr, scope)?;
    Some(kept.cloned().unwrap_or_else(|| {
        let fingerprint = inputs.fingerprint(&Value::Null, key);
        Value::Sealed(Arc::new(Sealed { ty, fingerprint }))
    }))
}

/// Returns the value of an output as it is shown: with null for values that no answer has shown.
fn without_unshown(
    datum: Datum,
    output: &OutputConfig,
    scope: &SpecScope<'_>,
    unavailable: &UnavailableSecrets,
) -> Datum {
    if unavailable.is_empty() || datum.value.is_known() {
        return datum;
    }
    let Ok(mut expr) = evaluate::residual(&output.value.expr, scope) else { return datum };
    visit::references_mut(&mut expr, &mut |part| {
        let known = evaluate::evaluate(part, scope).ok().map(|datum| datum.value);
        let shown = known.filter(|known| !known.is_known());
        let shown = shown.map(|known| unavailable.without_unshown(&known));
        if let Some(shown) = shown.filter(Value::is_known) {
            part.kind = Kind::Literal(shown);
        }
    });
    match evaluate::evaluate(&expr, scope) {
        Ok(shown) => Datum { value: shown.value, ..datum },
        Err(_) => datum,
    }
}

/// Returns true if an output shows an object that does not exist and that this plan does not make: the output
/// keeps its last value until there is such an object.
fn waits_for_others(decisions: &Decisions, looked_at: &Set<Address>) -> bool {
    let mut changes =
        looked_at.iter().filter_map(|address| Some(&decisions.draft(address)?.change));
    changes.any(|change| change.action == Action::NoOp && change.after.is_none())
}

fn same(after: &Value, before: &Value) -> bool {
    // Numbers and sets lose their exact kind in JSON, so both go through it.
    stored::Stored::of_sealed(after) == stored::Stored::of_sealed(before)
}

/// Returns an address for diagnostics about an output. An output has no address; this one has the type
/// `output`.
fn label(name: &Name) -> Address {
    Block::new("output", name.clone()).instance(None)
}

fn leaks(name: &Name, output: &OutputConfig) -> Diagnostic {
    Diagnostic::error(format!("output `{name}` shows something sensitive"))
        .at(output.value.span)
        .label("this is computed from a sensitive value")
        .help("add `sensitive = true` to the output, or leave the secret out of it")
}
