//! The rules of types that look at other objects of the plan, for example that a parent exists, or that a
//! quota is kept.

use std::collections::BTreeMap;

use crate::address::Name;
use crate::config::ResourceConfig;
use crate::diagnostics::{Diagnostics, Severity};
use crate::expression::evaluate::residual;
use crate::expression::{Expr, Kind, Root};
use crate::plan::check::plan_words::plan_object;
use crate::plan::context::Context;
use crate::plan::decide::rules::{self, Verdict};
use crate::plan::draft::Draft;
use crate::plan::evaluate::scope::{RuleScope, object};
use crate::plan::facts::redactor;
use crate::plan::input::Mode;
use crate::plan::{Action, Change, Cost, diagnostics};
use crate::schema::Rule;
use crate::types::Type;
use crate::value::{Datum, Value};

/// Checks each change that does something against the rules of its type that see the plan. A rule whose
/// answer is not known yet is left to the API.
pub(in crate::plan) fn check(
    context: &Context<'_>,
    (drafts, costs): (&[Draft], &[Cost]),
    found: &mut Diagnostics,
) {
    let input = context.input;
    let is_asked = |draft: &&Draft| {
        !draft.change.action.is_idle() && draft.schema.rules.iter().any(Rule::sees_plan)
    };
    // Without a state, and without changes, there is no plan to check.
    let is_moot = input.options.validating || input.options.mode == Mode::RefreshOnly;
    if is_moot || !drafts.iter().any(|draft| is_asked(&draft)) {
        return;
    }
    let plan = plan_object(drafts, costs);
    let mut folded = BTreeMap::new();
    for draft in drafts.iter().filter(is_asked) {
        let key = (&draft.change.provider, &draft.change.address.block.ty);
        let rules = folded.entry(key).or_insert_with(|| fold(&draft.schema.rules, &plan));
        let resource = input.config.resources.get(&draft.change.address.block);
        check_one(resource, draft, (rules, &plan), found);
    }
}

/// Returns the rules that see the plan, with the parts that depend only on the plan already computed: the
/// rules may be checked for many objects.
fn fold(rules: &[Rule], plan: &Datum) -> Vec<Rule> {
    let word = |name: &str| {
        let root = Expr::nowhere(Kind::Root(Root::Named(Name::from(name))));
        Datum::plain(Value::unknown(Type::Any, root))
    };
    let (old, new, action) = (word("old"), word("new"), word("action"));
    let scope = RuleScope { old: &old, new: &new, action: &action, plan: Some(plan) };
    let folded = |rule: &Rule| {
        let assert = residual(&rule.assert, &scope).unwrap_or_else(|_| rule.assert.clone());
        Rule { assert, ..rule.clone() }
    };
    rules.iter().filter(|rule| rule.sees_plan()).map(folded).collect()
}

fn check_one(
    resource: Option<&ResourceConfig>,
    draft: &Draft,
    (own, plan): (&[Rule], &Datum),
    found: &mut Diagnostics,
) {
    let change = &draft.change;
    let none = || Datum::plain(Value::Null);
    let live = change.before.as_ref();
    let old = live.map(|live| redactor::in_clear(change, live, draft.redacted.as_deref()));
    let old = old.unwrap_or_else(none);
    let mut of = |action: Action, new: &Datum| {
        let scope = RuleScope { old: &old, new, action: &rules::word(action), plan: Some(plan) };
        let applying = own.iter().filter(|rule| rules::applies(rule.on, action));
        applying.for_each(|rule| report(rule, (resource, change), &scope, found));
    };
    if let Some(after) = change.after.as_ref().filter(|_| draft.deferral.is_none()) {
        of(change.action, &object(after.clone(), change.sensitive.clone()));
    }
    if draft.is_deleted() {
        of(Action::Delete, &none());
    }
}

fn report(
    rule: &Rule,
    (resource, change): (Option<&ResourceConfig>, &Change),
    scope: &RuleScope<'_>,
    found: &mut Diagnostics,
) {
    let span = resource.map(|resource| rules::span(rule, resource)).or(change.span);
    match rules::verdict(rule, scope) {
        Verdict::Holds | Verdict::Unknown => {}
        Verdict::Broken { message, help } if rule.severity == Severity::Warning => {
            found.push(diagnostics::rule_warns(span, message, help));
        }
        Verdict::Broken { message, help } => {
            found.push(diagnostics::rule_broken(span, message, help, None, &change.address));
        }
        Verdict::Unclear(error) => found.push(diagnostics::rule_unclear(&error, &change.address)),
    }
}
