//! A value under way: what it is, what in it is sensitive, and what stands for it in a residual.

use super::{Evaluator, Scope, Stop, stop};
use crate::address::Name;
use crate::expression::visit::walk;
use crate::expression::{Call, Expr, Kind, Range, Root};
use crate::types::Type;
use crate::value::{Datum, Path, Paths, Value};

/// A value under way.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) value: Value,
    pub(super) sensitive: Paths,
    pub(super) source: Source,
}

/// What stands for a value where it cannot stand itself: for what is sensitive or sealed in it.
#[derive(Clone)]
pub(super) enum Source {
    /// Nothing needs to.
    None,
    /// A reference whose root the scope may replace ([`super::Scope::source`]).
    Reference(Box<Expr>),
    /// An expression of parts that were folded already.
    Built(Box<Expr>),
    /// Nothing can: the value was declared sensitive where it stands.
    Barred,
}

impl Source {
    pub(super) fn built(expr: Expr) -> Self {
        Self::Built(Box::new(expr))
    }

    /// The source of a part of the value.
    pub(super) fn step(&self, range: Range, kind: impl FnOnce(Box<Expr>) -> Kind) -> Self {
        match self {
            Self::None => Self::None,
            Self::Reference(base) => {
                Self::Reference(Box::new(Expr { kind: kind(base.clone()), range }))
            }
            Self::Built(base) => {
                Self::Built(Box::new(simplified(Expr { kind: kind(base.clone()), range })))
            }
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

    /// What a reference names. A collection keeps its reference in any case: whether something in
    /// it is sealed is not worth looking for before somebody asks.
    pub(super) fn referred(datum: Datum, reference: impl FnOnce() -> Expr) -> Self {
        let collection = matches!(
            datum.value,
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Sealed(_)
        );
        let source = if collection || !datum.sensitive.is_empty() {
            Source::Reference(Box::new(reference()))
        } else {
            Source::None
        };
        Self { value: datum.value, sensitive: datum.sensitive, source }
    }
}

/// Says whether all of a value is known and in clear, and counts what it looks at.
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

/// Says whether a part is secret itself, and not only something in it.
pub(super) fn is_secret(part: &Part) -> bool {
    matches!(part.value, Value::Sealed(_)) || part.sensitive.covers(&Path::root())
}

/// Walks over values. Each is paid for at the next step, so that looking into large values again
/// and again does not run long.
impl Evaluator<'_> {
    /// Says whether something in the part is sensitive: then what is computed from all of it is,
    /// and the part cannot stand in a residual itself.
    pub(super) fn secret(&self, part: &Part) -> bool {
        !part.sensitive.is_empty() || self.holds_sealed(&part.value)
    }

    /// Notes that what comes next follows from a part, wherever something in it is secret, which it
    /// says.
    pub(super) fn looks_into(&mut self, part: &Part) -> bool {
        let secret = self.secret(part);
        self.watch.looked |= secret;
        secret
    }

    /// The same of what follows from the part itself, and not from what is in it.
    pub(super) fn looks_at(&mut self, part: &Part) {
        self.watch.looked |= is_secret(part);
    }

    /// The same of what takes the items out of it.
    pub(super) fn looks_at_items(&mut self, part: &Part) -> bool {
        let hidden = self.hides_items(part);
        self.watch.looked |= hidden;
        hidden
    }

    /// Says whether it is a secret which items there are: those of a set have no place of their own, so
    /// what is secret in one is in all.
    pub(super) fn hides_items(&self, part: &Part) -> bool {
        is_secret(part) || (matches!(part.value, Value::Set(_)) && self.secret(part))
    }

    pub(super) fn any_secret(&self, parts: &[Part]) -> bool {
        parts.iter().any(|part| self.secret(part))
    }

    /// Says whether all of a value is known and in clear.
    pub(super) fn plain(&self, value: &Value) -> bool {
        let mut seen = 0;
        let plain = is_plain(value, &mut seen);
        self.budget.looked(seen);
        plain
    }

    /// Says whether nothing in a value is unknown.
    pub(super) fn known(&self, value: &Value) -> bool {
        self.plain(value) || value.is_known()
    }

    pub(super) fn holds_sealed(&self, value: &Value) -> bool {
        !self.plain(value) && value.holds_sealed()
    }

    /// The expression that stands for a part in a residual.
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
            // A residual is copied whole, and it may be large.
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
                    let source = source.step(range, |base| index_of(base, index));
                    exprs.push(self.reify_value(item, &inside, &source, range)?);
                }
                Ok(Expr::nowhere(Kind::List(exprs)))
            }
            Value::Map(entries) => {
                let mut exprs = Vec::with_capacity(entries.len());
                for (name, item) in entries.iter() {
                    let inside = sensitive.inside(&name.clone().into());
                    let source = source.step(range, |base| entry_below(self.scope, base, name));
                    let key = Expr::literal(Value::String(name.clone()));
                    exprs.push((key, self.reify_value(item, &inside, &source, range)?));
                }
                Ok(Expr::nowhere(Kind::Map(exprs)))
            }
            // The items of a set have no place of their own.
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

    /// The source as it means something at apply.
    fn resolve(&mut self, source: &Source, range: Range) -> Result<Expr, Stop> {
        match source {
            Source::Built(expr) => Ok((**expr).clone()),
            Source::Reference(expr) => {
                let expr = self.replace_root((**expr).clone())?;
                // What stands for the root may be large, and wherever it is used it is copied.
                self.budget.steps(size_of(&expr), range)?;
                // What a local declares sensitive would stand in the residual of an unknown, which
                // is shown.
                if self.discloses || !declares(&expr) { Ok(expr) } else { Err(barred(range)) }
            }
            Source::None | Source::Barred => Err(barred(range)),
        }
    }

    /// A chain with the expression that the scope gives for its root.
    fn replace_root(&self, expr: Expr) -> Result<Expr, Stop> {
        let range = expr.range;
        let kind = match expr.kind {
            Kind::Attribute(base, name) => {
                Kind::Attribute(Box::new(self.replace_root(*base)?), name)
            }
            Kind::Index(base, index) => Kind::Index(Box::new(self.replace_root(*base)?), index),
            Kind::Root(root) => {
                match self.scope.source(&root).map_err(|message| stop(range, message, None))? {
                    Some(replacement) => return Ok(replacement),
                    None => Kind::Root(root),
                }
            }
            other => other,
        };
        Ok(Expr { kind, range })
    }
}

/// The entry of this name below an expression: an instance of a resource is written by its key, which an attribute
/// of the same name is not.
pub(super) fn entry_below(scope: &dyn Scope, base: Box<Expr>, name: &Name) -> Kind {
    match &base.kind {
        Kind::Root(Root::Resource(block)) if scope.is_keyed(block) => {
            Kind::Index(base, Box::new(Expr::literal(Value::String(name.clone()))))
        }
        _ => Kind::Attribute(base, name.clone()),
    }
}

pub(super) fn barred(range: Range) -> Stop {
    stop(
        range,
        "what is declared sensitive here cannot be combined with what is known only after apply",
        Some(
            "give it by a variable with `sensitive = true`: a plan can name that, and holds no secret",
        ),
    )
}

/// Says whether a secret stands in a residual as it is: only `sensitive(…)` leaves one there.
pub(super) fn declares(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |part| {
        found |= matches!(&part.kind, Kind::Call(call) if &*call.name == "sensitive");
    });
    found
}

/// The part itself, where a part is taken of a list or map that is written out.
fn simplified(expr: Expr) -> Expr {
    let (base, key) = match &expr.kind {
        Kind::Attribute(base, name) => (base, Value::String(name.clone())),
        Kind::Index(base, index) => match &index.kind {
            Kind::Literal(key) => (base, key.clone()),
            _ => return expr,
        },
        _ => return expr,
    };
    let found = match (&base.kind, &key) {
        (Kind::List(items), Value::Integer(at)) => {
            usize::try_from(*at).ok().and_then(|at| items.get(at))
        }
        (Kind::Map(entries), Value::String(_)) => entries
            .iter()
            .find(|(name, _)| matches!(&name.kind, Kind::Literal(name) if *name == key))
            .map(|(_, value)| value),
        _ => None,
    };
    found.cloned().unwrap_or(expr)
}

/// How many expressions an expression is made of.
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

fn index_of(base: Box<Expr>, index: usize) -> Kind {
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    Kind::Index(base, Box::new(Expr::literal(Value::Integer(index))))
}
