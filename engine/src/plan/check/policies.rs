//! Policies: conditions on each change, and on the whole plan.

use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::condition::{Broken, Verdict, judge};
use crate::config::policies::{PolicyConfig, Subject};
use crate::diagnostics::{Diagnostics, Severity};
use crate::expression::evaluate::{self, Scope};
use crate::expression::{Expr, Root, visit};
use crate::plan::check::plan_words::{Facts, plan_object};
use crate::plan::context::Context;
use crate::plan::draft::Draft;
use crate::plan::evaluate::Evaluation;
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::input::Mode;
use crate::plan::open_condition::{OpenCondition, When};
use crate::plan::{Action, Cost, diagnostics};
use crate::value::{Datum, Value};

/// Judges all policies. A policy that only a run can judge is added to the change, and the run judges it
/// before the first call of the change.
pub(in crate::plan) fn check(
    context: &Context<'_>,
    evaluation: &Evaluation<'_>,
    (drafts, costs): (&mut [Draft], &[Cost]),
    found: &mut Diagnostics,
) {
    let input = context.input;
    let policies = &input.config.policies;
    // Without a state, and without changes, there is no plan to judge.
    let is_moot = input.options.validating || input.options.mode == Mode::RefreshOnly;
    if policies.is_empty() || is_moot {
        return;
    }
    let scope = context.scope(evaluation);
    for (name, policy) in policies {
        let policy = Policy { name, config: policy };
        if policy.config.subject == Subject::Plan {
            policy.check_plan((drafts, costs), &scope, found);
            continue;
        }
        for draft in drafts.iter_mut() {
            let change = &draft.change;
            if change.action != Action::NoOp
                && policy.config.subject.covers(&change.address.block.ty)
            {
                policy.check_change(draft, &scope, found);
            }
        }
    }
    drop(scope.touched());
}

#[derive(Clone, Copy)]
struct Policy<'a> {
    name: &'a Name,
    config: &'a PolicyConfig,
}

impl Policy<'_> {
    fn judge(&self, scope: &dyn Scope) -> Verdict {
        let message = self.config.message.as_ref().map(|message| &message.expr);
        judge(&self.config.assert.expr, message, scope)
    }

    fn check_plan(
        &self,
        (drafts, costs): (&[Draft], &[Cost]),
        scope: &SpecScope<'_>,
        found: &mut Diagnostics,
    ) {
        let plan = plan_object(drafts, costs);
        let words = |name: &str| (name == "plan").then(|| plan.clone());
        let scope = WithWords { inner: scope, words: &words };
        match self.judge(&scope) {
            Verdict::Holds => {}
            Verdict::Broken(broken) => self.broken(None, &broken, found),
            Verdict::Unknown => self.unknown(None, found),
            Verdict::Unclear(error) => found.push(diagnostics::policy_unclear(
                self.name,
                self.config.assert.span_of(error.range),
                &error,
                None,
            )),
        }
    }

    fn check_change(&self, draft: &mut Draft, scope: &SpecScope<'_>, found: &mut Diagnostics) {
        let facts = Facts::of(draft);
        let address = draft.change.address.clone();
        let words = |name: &str| facts.word(name);
        let scope = WithWords { inner: scope, words: &words };
        let about = Some((&address, draft.change.action));
        match self.judge(&scope) {
            Verdict::Holds => {}
            Verdict::Broken(broken) => self.broken(about, &broken, found),
            Verdict::Unknown => {
                let open = self.open(&scope).filter(|open| is_known_in_time(open, draft));
                match open.filter(|_| self.config.severity == Severity::Error) {
                    Some(open) => draft.change.conditions.push(open),
                    None => self.unknown(about, found),
                }
            }
            Verdict::Unclear(error) => found.push(diagnostics::policy_unclear(
                self.name,
                self.config.assert.span_of(error.range),
                &error,
                Some(&address),
            )),
        }
    }

    fn broken(&self, about: Option<(&Address, Action)>, broken: &Broken, found: &mut Diagnostics) {
        let (span, severity) = (self.config.assert.span, self.config.severity);
        found.push(diagnostics::policy_broken(self.name, (span, severity), about, broken));
    }

    fn unknown(&self, about: Option<(&Address, Action)>, found: &mut Diagnostics) {
        let (span, severity) = (self.config.assert.span, self.config.severity);
        found.push(diagnostics::policy_unknown(self.name, (span, severity), about));
    }

    /// Returns the policy for a run, with the known values filled in.
    fn open(&self, scope: &dyn Scope) -> Option<OpenCondition> {
        let message = self.config.message.as_ref();
        let message = message.and_then(|it| evaluate::residual(&it.expr, scope).ok());
        Some(OpenCondition {
            when: When::Before,
            kind: format!("policy `{}`", self.name),
            condition: evaluate::residual(&self.config.assert.expr, scope).ok()?,
            message: message.unwrap_or_else(|| Expr::literal(Value::Null)),
            span: self.config.assert.span,
            place: None,
            holds_so_far: false,
        })
    }
}

/// Returns true if a condition can be judged before the first call of a change: everything that it refers to
/// is made by then.
fn is_known_in_time(open: &OpenCondition, draft: &Draft) -> bool {
    let change = &draft.change;
    let makes =
        matches!(change.action, Action::Create | Action::Update | Action::Replace | Action::Import);
    let mut is_there = makes;
    // A secret of the object is a word of the policy, such as `new`, and a run does not know these words.
    visit::roots(&open.condition, &mut |root, _| {
        is_there &= !matches!(root, Root::Named(name) if matches!(&**name, "old" | "new"));
    });
    visit::resources(&open.condition, &mut |block, _| {
        is_there &= *block != change.address.block
            && change.dependencies.iter().any(|other| other.block == *block);
    });
    is_there
}

/// The scope of a policy: the scope of the spec outside any resource, with the policy's own words.
struct WithWords<'s> {
    inner: &'s SpecScope<'s>,
    words: &'s dyn Fn(&str) -> Option<Datum>,
}

impl Scope for WithWords<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return self.inner.root(root) };
        (self.words)(name).ok_or_else(|| format!("there is no `{name}` here"))
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.inner.resource(block, key)
    }

    fn touch_all(&self, block: &Block) {
        self.inner.touch_all(block);
    }

    fn is_keyed(&self, block: &Block) -> bool {
        self.inner.is_keyed(block)
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.inner.source(root)
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        self.inner.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.inner.file(path)
    }
}
