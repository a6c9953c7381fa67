//! A part: a value during an evaluation, with its sensitive places and its expression in a residual.

use std::sync::Arc;

use super::below::{self, Below};
use super::{Evaluator, Stop, stop};
use crate::expression::visit::walk;
use crate::expression::{Call, Expr, Kind, Range};
use crate::types::Type;
use crate::value::{Datum, Path, Paths, Value};

/// A value during an evaluation.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) value: Value,
    pub(super) sensitive: Paths,
    pub(super) source: Source,
}

/// The expression that stands for a value in a residual if the value itself cannot, because a part of it is
/// sensitive or sealed.
#[derive(Clone)]
pub(super) enum Source {
    /// None is needed.
    None,
    /// A reference whose root the scope may replace ([`super::Scope::source`]).
    Reference(Arc<Expr>),
    /// An expression of parts that were folded already.
    Built(Arc<Expr>),
    /// There is none: the expression itself declares the value sensitive.
    Barred,
}

impl Source {
    pub(super) fn built(expr: Expr) -> Self {
        Self::Built(Arc::new(expr))
    }

    /// Returns the source of the part that a step leads to.
    pub(super) fn step(&self, range: Range, step: Below<'_>) -> Self {
        let around =
            |base: &Expr| Arc::new(Expr { kind: step.kind(Box::new(base.clone())), range });
        match self {
            Self::None => Self::None,
            Self::Reference(base) => Self::Reference(around(base)),
            Self::Built(base) => match step.written(base) {
                Some(part) => Self::built(part.clone()),
                None => Self::Built(around(base)),
            },
            Self::Barred => Self::Barred,
        }
    }
}

impl Part {
    pub(super) fn plain(value: Value) -> Self {
        Self { value, sensitive: Paths::none(), source: Source::None }
    }

    pub(super) fn unknown(ty: Type, residual: Expr, secret: bool) -> Self {
        let sensitive = if secret { Paths::whole() } else { Paths::none() };
        Self { value: Value::unknown(ty, residual), sensitive, source: Source::None }
    }

    /// Returns the value that a reference names. A collection always keeps its reference: a search for sealed
    /// parts is not worth its time before it is needed.
    pub(super) fn referred(datum: Datum, reference: impl FnOnce() -> Expr) -> Self {
        let collection = matches!(
            datum.value,
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Sealed(_)
        );
        let source = if collection || !datum.sensitive.is_empty() {
            Source::Reference(Arc::new(reference()))
        } else {
            Source::None
        };
        Self { value: datum.value, sensitive: datum.sensitive, source }
    }
}

/// Returns true if all of a value is known and in clear; counts the values that it looks at.
fn is_plain(value: &Value, seen: &mut usize) -> bool {
    *seen += 1;
    match value {
        Value::Unknown(_) | Value::Sealed(_) => false,
        Value::List(items) | Value::Set(items) => items.iter().all(|item| is_plain(item, seen)),
        Value::Map(entries) => entries.values().all(|item| is_plain(item, seen)),
        Value::String(text) => {
            *seen += text.len() / 64;
            true
        }
        _ => true,
    }
}

/// Returns true if a part is secret as a whole, and not only a part of it.
pub(super) fn is_secret(part: &Part) -> bool {
    matches!(part.value, Value::Sealed(_)) || part.sensitive.covers(&Path::root())
}

/// Walks over values. The next step pays for each value that was looked at, so that repeated looks into large
/// values do not run long.
impl Evaluator<'_> {
    /// Returns true if a part contains something sensitive: then a result computed from all of it is
    /// sensitive, and the part cannot stand in a residual itself.
    pub(super) fn secret(&self, part: &Part) -> bool {
        !part.sensitive.is_empty() || self.holds_sealed(&part.value)
    }

    /// Records that the following computation depends on a part, if something in it is secret. Returns true
    /// in that case.
    pub(super) fn looks_into(&mut self, part: &Part) -> bool {
        let secret = self.secret(part);
        self.watch.looked |= secret;
        secret
    }

    /// Records that the following computation depends on the part itself, and not on its contents.
    pub(super) fn looks_at(&mut self, part: &Part) {
        self.watch.looked |= is_secret(part);
    }

    /// Records that the following computation takes the items out of a part.
    pub(super) fn looks_at_items(&mut self, part: &Part) -> bool {
        let hidden = self.hides_items(part);
        self.watch.looked |= hidden;
        hidden
    }

    /// Returns true if the selection of items is a secret. The items of a set have no places of their own, so
    /// if one is secret, all are.
    pub(super) fn hides_items(&self, part: &Part) -> bool {
        is_secret(part) || (matches!(part.value, Value::Set(_)) && self.secret(part))
    }

    pub(super) fn any_secret(&self, parts: &[Part]) -> bool {
        parts.iter().any(|part| self.secret(part))
    }

    /// Returns true if all of a value is known and in clear.
    pub(super) fn plain(&self, value: &Value) -> bool {
        let mut seen = 0;
        let plain = is_plain(value, &mut seen);
        self.budget.looked(seen);
        plain
    }

    /// Returns true if nothing in a value is unknown.
    pub(super) fn known(&self, value: &Value) -> bool {
        self.plain(value) || value.is_known()
    }

    pub(super) fn holds_sealed(&self, value: &Value) -> bool {
        !self.plain(value) && value.holds_sealed()
    }

    /// Returns the expression that stands for a part in a residual.
    pub(super) fn reify(&mut self, part: &Part, range: Range) -> Result<Expr, Stop> {
        self.reify_value(&part.value, &part.sensitive, &part.source, range)
    }

    pub(super) fn reify_all(&mut self, parts: &[Part], range: Range) -> Result<Vec<Expr>, Stop> {
        parts.iter().map(|part| self.reify(part, range)).collect()
    }

    fn reify_value(
        &mut self,
        value: &Value,
        sensitive: &Paths,
        source: &Source,
        range: Range,
    ) -> Result<Expr, Stop> {
        self.budget.step(range)?;
        if let Value::Unknown(unknown) = value {
            // A residual is copied as a whole, and it may be large.
            self.budget.steps(size_of(&unknown.residual), range)?;
            return Ok(unknown.residual.clone());
        }
        if sensitive.covers(&Path::root()) || matches!(value, Value::Sealed(_)) {
            return self.resolve(source, range);
        }
        if sensitive.is_empty() && self.plain(value) {
            return Ok(Expr::literal(value.clone()));
        }
        match value {
            Value::List(items) => {
                let mut exprs = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let inside = sensitive.inside(&index.into());
                    let source = source.step(range, Below::Index(&index_of(index)));
                    exprs.push(self.reify_value(item, &inside, &source, range)?);
                }
                Ok(Expr::nowhere(Kind::List(exprs)))
            }
            Value::Map(entries) => {
                let mut exprs = Vec::with_capacity(entries.len());
                for (name, item) in entries.iter() {
                    let inside = sensitive.inside(&name.clone().into());
                    let source = source.step(range, Below::Name(self.scope, name));
                    let key = Expr::literal(Value::String(name.clone()));
                    exprs.push((key, self.reify_value(item, &inside, &source, range)?));
                }
                Ok(Expr::nowhere(Kind::Map(exprs)))
            }
            // The items of a set have no places of their own.
            Value::Set(items) if sensitive.is_empty() && !self.holds_sealed(value) => {
                let list = items
                    .iter()
                    .map(|item| self.reify_value(item, &Paths::none(), &Source::None, range))
                    .collect::<Result<_, _>>()?;
                let arguments = vec![Expr::nowhere(Kind::List(list))];
                let call = Call { name: "toset".into(), arguments, spread: false };
                Ok(Expr::nowhere(Kind::Call(Box::new(call))))
            }
            _ => self.resolve(source, range),
        }
    }

    /// Returns the source in a form that is valid at apply.
    fn resolve(&mut self, source: &Source, range: Range) -> Result<Expr, Stop> {
        match source {
            Source::Built(expr) => Ok((**expr).clone()),
            Source::Reference(expr) => {
                let expr = self.replace_root(expr)?;
                // The expression for the root may be large, and it is copied to each place that uses it.
                self.budget.steps(size_of(&expr), range)?;
                // A value that a local declares sensitive would appear in the residual of an unknown, which
                // is shown.
                if self.discloses || !declares(&expr) { Ok(expr) } else { Err(barred(range)) }
            }
            Source::None | Source::Barred => Err(barred(range)),
        }
    }

    /// Returns a chain with the expression that the scope gives for its root; steps into written lists and
    /// maps are taken.
    fn replace_root(&self, expr: &Expr) -> Result<Expr, Stop> {
        let (mut steps, mut base) = (Vec::new(), expr);
        while let Some((inner, step)) = below::last(base, self.scope) {
            steps.push((base.range, step));
            base = inner;
        }
        let Kind::Root(root) = &base.kind else { return Ok(expr.clone()) };
        let range = base.range;
        let source = self.scope.source(root).map_err(|message| stop(range, message, None))?;
        let Some(source) = source else { return Ok(expr.clone()) };
        let mut written = &*source;
        while let Some(part) = steps.last().and_then(|(_, step)| step.written(written)) {
            written = part;
            steps.pop();
        }
        let around = |base, (range, step): (Range, Below<'_>)| Expr {
            kind: step.kind(Box::new(base)),
            range,
        };
        Ok(steps.into_iter().rev().fold(written.clone(), around))
    }
}

pub(super) fn barred(range: Range) -> Stop {
    stop(
        range,
        "what is declared sensitive here cannot be combined with what is known only after apply",
        Some(
            "a plan holds no secret, and names the variable that gives it: give it by one with `sensitive = true`, or, \
             where one does, to fewer entries at once",
        ),
    )
}

/// Returns true if a residual contains a secret as text: only `sensitive(…)` leaves one there.
pub(super) fn declares(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(&part.kind, Kind::Call(call) if &*call.name == "sensitive");
    });
    found
}

/// Returns the number of expressions inside an expression.
fn size_of(expr: &Expr) -> usize {
    let mut size = 0;
    let mut base = expr;
    loop {
        size += 1;
        match &base.kind {
            Kind::Attribute(inner, _) => base = inner,
            Kind::Root(_) | Kind::Literal(_) => return size,
            _ => break,
        }
    }
    walk(base, &mut |_| size += 1);
    size
}

/// Returns an index as a value.
pub(super) fn index_of(at: usize) -> Value {
    Value::Integer(i64::try_from(at).unwrap_or(i64::MAX))
}
