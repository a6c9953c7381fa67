//! Rules of a type, checked on a planned change: true, false, or not known yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::address::{Address, Name};
use crate::condition;
use crate::config::ResourceConfig;
use crate::diagnostics::{Diagnostics, Severity, Span};
use crate::expression::{Expr, Kind, Root};
use crate::plan::decide::case::Case;
use crate::plan::evaluate::scope::{RuleScope, object};
use crate::plan::{Action, diagnostics};
use crate::schema::{Rule, RuleOn};
use crate::value::{Attributes, Datum, Path, Value};

/// Checks the rules of a create, an update or a replace. Returns the number of rules whose answer is not
/// known yet: they are checked again before the call.
pub(in crate::plan) fn check(
    case: &Case<'_>,
    action: Action,
    planned: &Arc<Attributes>,
    found: &mut Diagnostics,
) -> usize {
    // Rules do not matter to an object that does not change, or that is left alone.
    let rules = &case.resource.schema.rules;
    if rules.is_empty()
        || case.deferral.is_some()
        || !matches!(action, Action::Create | Action::Update | Action::Replace)
    {
        return 0;
    }
    let old = match case.live {
        Some(live) => object(live.attributes.clone(), case.wanted.sensitive.clone()),
        None => Datum::plain(Value::Null),
    };
    let new = object(planned.clone(), case.wanted.sensitive.clone());
    let scope = RuleScope { old: &old, new: &new, action: &word(action), plan: None };
    let mut deferred = 0;
    for rule in alone(rules).filter(|rule| applies(rule.on, action)) {
        match verdict(rule, &scope) {
            Verdict::Holds => {}
            Verdict::Unknown => deferred += usize::from(rule.severity == Severity::Error),
            Verdict::Broken { message, help } if rule.severity == Severity::Warning => {
                found.push(diagnostics::rule_warns(span(rule, case.resource), message, help));
            }
            Verdict::Broken { message, help } => {
                let span = Some(span(rule, case.resource));
                let detail = grew_outside(case, rule);
                found.push(diagnostics::rule_broken(span, message, help, detail, case.address));
            }
            Verdict::Unclear(error) => {
                found.push(diagnostics::rule_unclear(&error, case.address));
            }
        }
    }
    deferred
}

/// Checks the rules of a delete, or of the delete in a replace. A rule that cannot be evaluated refuses the
/// delete.
pub(in crate::plan) fn check_delete(
    rules: &[Rule],
    address: &Address,
    old: &Datum,
    span: Option<Span>,
    found: &mut Diagnostics,
) {
    let new = Datum::plain(Value::Null);
    let scope = RuleScope { old, new: &new, action: &word(Action::Delete), plan: None };
    for rule in alone(rules).filter(|rule| applies(rule.on, Action::Delete)) {
        match verdict(rule, &scope) {
            Verdict::Broken { message, help } if rule.severity == Severity::Warning => {
                found.push(diagnostics::rule_warns(span, message, help));
            }
            Verdict::Broken { message, help } => {
                found.push(diagnostics::rule_broken(span, message, help, None, address));
            }
            Verdict::Unclear(error) => found.push(diagnostics::rule_unclear(&error, address)),
            Verdict::Holds | Verdict::Unknown => {}
        }
    }
}

/// Returns the message and the help of a rule that forbids sending an object that is fully known; none if no
/// rule forbids it.
pub fn broken_before_call(
    rules: &[Rule],
    action: Action,
    old: &Datum,
    new: &Datum,
) -> Option<(String, Option<String>)> {
    // The changes of an import are an update of the object.
    let action = if action == Action::Import { Action::Update } else { action };
    let scope = RuleScope { old, new, action: &word(action), plan: None };
    let rules = alone(rules).filter(|rule| rule.severity == Severity::Error);
    rules.filter(|rule| applies(rule.on, action)).find_map(|rule| match verdict(rule, &scope) {
        Verdict::Broken { message, help } => Some((message, help)),
        Verdict::Unclear(error) => Some((format!("a rule cannot be evaluated: {error}"), None)),
        Verdict::Holds | Verdict::Unknown => None,
    })
}

/// Returns the rules that look at one object only. The others are checked once all changes are decided.
fn alone(rules: &[Rule]) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(|rule| !rule.sees_plan())
}

/// Returns the word for an action, as rules see it.
pub(in crate::plan) fn word(action: Action) -> Datum {
    Datum::plain(Value::string(action.word()))
}

/// Returns true if a rule is checked on an action.
pub(in crate::plan) fn applies(on: RuleOn, action: Action) -> bool {
    match on {
        RuleOn::Any => matches!(action, Action::Create | Action::Update | Action::Replace),
        RuleOn::Create => matches!(action, Action::Create | Action::Replace),
        RuleOn::Update => action == Action::Update,
        RuleOn::Delete => action == Action::Delete,
    }
}

/// The answer to a rule.
pub(in crate::plan) enum Verdict {
    Holds,
    Unknown,
    Broken { message: String, help: Option<String> },
    Unclear(crate::expression::ExprError),
}

/// Judges a rule.
pub(in crate::plan) fn verdict(rule: &Rule, scope: &RuleScope<'_>) -> Verdict {
    match condition::judge(&rule.assert, Some(&rule.message), scope) {
        condition::Verdict::Holds => Verdict::Holds,
        condition::Verdict::Broken(broken) => Verdict::Broken {
            message: broken
                .message
                .unwrap_or_else(|| format!("a rule does not hold: {}", rule.assert)),
            help: rule.help.as_ref().and_then(|help| condition::text(help, scope)),
        },
        condition::Verdict::Unclear(error) => Verdict::Unclear(error),
        condition::Verdict::Unknown => Verdict::Unknown,
    }
}

/// Returns the line to show for a rule: the line of the rule's attribute, else of the first attribute that
/// the rule names and the spec gives, else of the resource.
pub(in crate::plan) fn span(rule: &Rule, resource: &ResourceConfig) -> Span {
    let mut names = Vec::new();
    match &rule.attribute {
        Some(name) => names.push(name.clone()),
        None => attributes_of(&rule.assert, "new", &mut names),
    }
    let given = names.iter().find_map(|name| resource.attributes.get(name));
    given.map_or(resource.header, |item| item.value.span)
}

/// Returns a text that says which value changed outside Plumb, for a broken rule that compares with the old
/// object: then the spec's line is not what changed. None if no such value changed, or it is a secret.
fn grew_outside(case: &Case<'_>, rule: &Rule) -> Option<String> {
    let live = case.live?;
    let mut names = Vec::new();
    attributes_of(&rule.assert, "old", &mut names);
    let names: BTreeSet<Name> = names.into_iter().collect();
    let moved = names.iter().find(|name| {
        let (stored, now) = (live.stored.get(*name), live.attributes.get(*name));
        stored.zip(now).is_some_and(|(stored, now)| !stored.same(now))
    })?;
    let (was, is) = (live.stored.get(moved)?, live.attributes.get(moved)?);
    let is_secret = case.wanted.sensitive.touches(&Path::attribute(Name::clone(moved)));
    if is_secret || was.holds_sealed() || is.holds_sealed() {
        return None;
    }
    let (was, is) = (crate::stored::to_json(was), crate::stored::to_json(is));
    Some(format!("`{moved}` changed outside Plumb: the last run left {was}, and now it is {is}."))
}

/// Adds the attributes of `root` that an expression names, in the order of the text.
fn attributes_of(expr: &Expr, root: &str, names: &mut Vec<Name>) {
    crate::expression::visit::walk(expr, &mut |part| {
        if let Kind::Attribute(base, name) = &part.kind
            && matches!(&base.kind, Kind::Root(Root::Named(named)) if &**named == root)
        {
            names.push(name.clone());
        }
    });
}
