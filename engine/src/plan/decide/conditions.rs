//! The preconditions and postconditions of an instance, as far as they can be judged while planning.

use std::sync::Arc;

use crate::address::{Address, Block};
use crate::condition::{Verdict, judge};
use crate::config::{Condition, ResourceConfig};
use crate::diagnostics::Diagnostics;
use crate::expression::evaluate::{self, Scope};
use crate::expression::{Expr, Kind, Root};
use crate::plan::decide::action;
use crate::plan::decide::decisions::Decisions;
use crate::plan::draft::Draft;
use crate::plan::evaluate::scope::{SpecScope, object};
use crate::plan::open_condition::{OpenCondition, When};
use crate::plan::{Action, Change, diagnostics};
use crate::sorted::Set;
use crate::value::{Datum, Value};

/// The conditions of one instance, with the scope of its attributes.
pub(in crate::plan) struct Conditions<'c> {
    resource: &'c ResourceConfig,
    address: &'c Address,
    scope: &'c SpecScope<'c>,
}

impl<'c> Conditions<'c> {
    pub(in crate::plan) fn new(
        resource: &'c ResourceConfig,
        address: &'c Address,
        scope: &'c SpecScope<'c>,
    ) -> Self {
        Self { resource, address, scope }
    }

    /// Returns the objects that the conditions refer to: they are decided, made and changed before the
    /// instance.
    pub(in crate::plan) fn dependencies(&self) -> Set<Address> {
        let lifecycle = &self.resource.lifecycle;
        if lifecycle.conditions().next().is_none() {
            return Set::new();
        }
        let unknown = self.unknown();
        let scope = self.with_object(&unknown);
        for condition in lifecycle.conditions() {
            // `judge` below reports an error in the condition; here only the references count.
            let _verdict = judge(&condition.condition.expr, None, &scope);
            let _text = evaluate::evaluate(&condition.message.expr, &scope);
        }
        self.scope.touched()
    }

    /// Judges the conditions of a change. A false condition is an error. A condition that a run has to judge
    /// is added to the change.
    pub(in crate::plan) fn judge(
        &self,
        planned: &Datum,
        change: &mut Change,
        found: &mut Diagnostics,
    ) {
        let lifecycle = &self.resource.lifecycle;
        for condition in &lifecycle.preconditions {
            let what = ("precondition", condition);
            if verdict(what, self.scope, self.address, found) == Some(Verdict::Unknown) {
                change.conditions.extend(open(When::Before, what, self.scope));
            }
        }
        let (planned, unknown) = (self.with_object(planned), self.unknown());
        for condition in &lifecycle.postconditions {
            let what = ("postcondition", condition);
            let Some(verdict) = verdict(what, &planned, self.address, found) else { continue };
            // An object that is made or changed may differ from the planned one in the end.
            let scope = self.with_object(&unknown);
            let open = if makes_or_changes(change) {
                open(When::After, what, &scope)
            } else if verdict == Verdict::Unknown {
                open(When::After, what, &planned)
            } else {
                None
            };
            let holds_so_far = verdict == Verdict::Holds;
            change.conditions.extend(open.map(|open| OpenCondition { holds_so_far, ..open }));
        }
        // `dependencies` has recorded these references already.
        drop(self.scope.touched());
    }

    /// Returns the object with all attributes unknown.
    fn unknown(&self) -> Datum {
        let schema = &self.resource.schema;
        object(action::all_unknown(schema, self.address), schema.sensitive())
    }

    fn with_object<'s>(&'s self, object: &'s Datum) -> WithObject<'s> {
        WithObject::new(self.scope, self.address, object)
    }
}

/// Judges a condition of some kind, about an address. Reports an error in the condition and returns none
/// then.
pub(in crate::plan) fn verdict(
    (kind, condition): (&str, &Condition),
    scope: &dyn Scope,
    address: &Address,
    found: &mut Diagnostics,
) -> Option<Verdict> {
    let Condition { condition, message } = condition;
    let verdict = judge(&condition.expr, Some(&message.expr), scope);
    match &verdict {
        Verdict::Broken(broken) => {
            let label = format!("a {kind} of {address}");
            let diagnostic = diagnostics::condition_broken(condition.span, &label, broken);
            found.push(diagnostic.about(address));
        }
        Verdict::Unclear(error) => {
            let span = condition.span_of(error.range);
            found.push(diagnostics::evaluation(span, error, address));
        }
        Verdict::Holds | Verdict::Unknown => return Some(verdict),
    }
    None
}

/// Returns a condition for a run, with the known values filled in; none if that would be too large.
pub(in crate::plan) fn open(
    when: When,
    (kind, condition): (&str, &Condition),
    scope: &dyn Scope,
) -> Option<OpenCondition> {
    let Condition { condition, message } = condition;
    let message = evaluate::residual(&message.expr, scope);
    Some(OpenCondition {
        when,
        kind: kind.to_owned(),
        condition: evaluate::residual(&condition.expr, scope).ok()?,
        message: message.unwrap_or_else(|_| Expr::literal(Value::Null)),
        span: condition.span,
        place: None,
        holds_so_far: false,
    })
}

/// Drops the conditions of unchanged objects if nothing that they refer to changes either: no run knows more.
/// The drafts must be sorted.
pub(in crate::plan) fn drop_unknowable(decisions: &mut Decisions, found: &mut Diagnostics) {
    let stays = |draft: &Draft| matches!(draft.change.action, Action::NoOp);
    let waits = |draft: &Draft| {
        let mut others = draft.change.dependencies.iter();
        others.any(|other| decisions.draft(other).is_some_and(|other| !stays(other)))
    };
    let is_idle =
        |draft: &Draft| !draft.change.conditions.is_empty() && stays(draft) && !waits(draft);
    let idle: Vec<usize> =
        (0..decisions.drafts.len()).filter(|&at| is_idle(&decisions.drafts[at])).collect();
    for at in idle {
        let change = &mut decisions.drafts[at].change;
        for open in std::mem::take(&mut change.conditions) {
            found.push(diagnostics::condition_unknown(open.span, &open.kind, &change.address));
        }
    }
}

/// Returns true if a change has steps that make or change its object.
fn makes_or_changes(change: &Change) -> bool {
    match change.action {
        Action::Create | Action::Update | Action::Replace => true,
        Action::Import => !change.causes.is_empty(),
        _ => false,
    }
}

/// The scope of a postcondition: the scope of the instance, with the object as `self`.
pub(in crate::plan) struct WithObject<'s> {
    inner: &'s SpecScope<'s>,
    address: &'s Address,
    object: &'s Datum,
}

impl<'s> WithObject<'s> {
    pub(in crate::plan) fn new(
        inner: &'s SpecScope<'s>,
        address: &'s Address,
        object: &'s Datum,
    ) -> Self {
        Self { inner, address, object }
    }

    /// Returns true if a root is the word for the object.
    fn is_self(root: &Root) -> bool {
        matches!(root, Root::Named(name) if &**name == "self")
    }
}

impl Scope for WithObject<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        if Self::is_self(root) { Ok(self.object.clone()) } else { self.inner.root(root) }
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

    /// In a residual, a secret of the object is a reference to the object's address.
    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        if !Self::is_self(root) {
            return self.inner.source(root);
        }
        let block = Expr::nowhere(Kind::Root(Root::Resource(self.address.block.clone())));
        Ok(Some(Arc::new(match &self.address.key {
            None => block,
            Some(key) => {
                let key = Expr::literal(Value::String(key.clone()));
                Expr::nowhere(Kind::Index(Box::new(block), Box::new(key)))
            }
        })))
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        !Self::is_self(root) && self.inner.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.inner.file(path)
    }
}
