//! The evaluation of expressions, with unknown and sensitive values.
//!
//! An evaluation computes three things at once, kept together in a [`part::Part`]: the value, its sensitive
//! places, and the expression that stands for it in a residual. An unknown part makes the result unknown, and
//! the residual of the result has all known parts filled in. A sensitive value stands in a residual as the
//! reference that it came from. So no residual contains a secret, except one that the spec's own text
//! declares, and that only if [`residual`] is called. Messages show no values. A message about a secret
//! reveals neither its length or type nor the place of the mistake inside it.
//!
//! Steps, produced bytes, and the size and depth of the result are bounded, so that no spec can make the
//! engine run long, fill the memory or overflow the stack.

mod access;
mod attempts;
mod below;
mod budget;
mod calls;
mod choice;
mod files;
mod kept;
mod operators;
mod part;
mod templates;
mod walks;

use std::sync::Arc;

use self::attempts::Watch;
use self::below::Below;
use self::budget::Budget;
use self::part::{Part, Source};
use super::typing::type_word;
use super::{Expr, ExprError, Kind, Range, Root, keys};
use crate::address::{Block, Name};
use crate::types::Type;
use crate::value::{Attributes, Datum, Path, Paths, Value};

pub(super) use self::budget::BYTES_MAX;
pub(super) use self::operators::float;
pub(super) use self::templates::{NO_TEXT_HELP, NULL_TEXT_HELP};
use crate::expression::text::text_of;

/// The values that an expression may refer to. An implementation may record the look-ups.
pub trait Scope {
    /// Returns the value of a root that is no resource.
    fn root(&self, root: &Root) -> Result<Datum, String>;

    /// Returns the object of a resource instance (`key` given, or a resource without `for_each`), or the map
    /// of all instances' objects. A disabled resource is null.
    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String>;

    /// Records that any instance of a resource may be meant, because its key is known only later.
    fn touch_all(&self, block: &Block) {
        let _ = block;
    }

    /// Returns true if a resource is known to have instances by key: a name after it is a key then, and no
    /// attribute.
    fn is_keyed(&self, block: &Block) -> bool {
        let _ = block;
        false
    }

    /// Returns the expression for a sensitive root in a residual, if the root itself would mean nothing at
    /// apply: the expression that a local or `each.value` was computed from. None for other roots.
    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        let _ = root;
        Ok(None)
    }

    /// Returns true if a root cannot be computed, maybe because of a secret ([`evaluate_telling`]).
    fn fails_over_a_secret(&self, root: &Root) -> bool {
        let _ = root;
        false
    }

    /// Returns the content of a file that the spec names.
    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        Err(format!("files cannot be read here, so not `{path}`"))
    }
}

/// Computes an expression. A value that is not known yet gives an unknown with its residual.
pub fn evaluate(expr: &Expr, scope: &dyn Scope) -> Result<Datum, ExprError> {
    evaluate_telling(expr, scope).map_err(|failure| failure.error)
}

/// Computes an expression; a failure says if it may come from a secret. For values that other expressions
/// refer to.
pub fn evaluate_telling(expr: &Expr, scope: &dyn Scope) -> Result<Datum, Failure> {
    // Most expressions are one literal.
    if let Kind::Literal(value) = &expr.kind {
        return Ok(Datum::plain(value.clone()));
    }
    let mut evaluator = Evaluator::new(scope);
    let part = evaluator.eval(expr).map_err(|stop| stop.error).and_then(|part| {
        budget::check_result(&part.value, expr.range)?;
        Ok(part)
    });
    let part = part.map_err(|error| Failure { error, over_secret: evaluator.watch.looked })?;
    Ok(Datum { value: part.value, sensitive: part.sensitive })
}

/// The reason that a value for other expressions cannot be computed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The error.
    pub error: ExprError,
    /// True if the evaluation looked at a secret before it failed.
    pub over_secret: bool,
}

/// Folds an expression. Known values that are not sensitive become literals, unknown values become their
/// residuals, and sensitive variables stay references. So the result contains no secret, except one that the
/// expression itself declares with `sensitive(…)`, which stays inside such a call.
pub fn residual(expr: &Expr, scope: &dyn Scope) -> Result<Expr, ExprError> {
    let mut evaluator = Evaluator { discloses: true, ..Evaluator::new(scope) };
    let part = evaluator.eval(expr).map_err(|stop| stop.error)?;
    budget::check_result(&part.value, expr.range)?;
    let residual = evaluator.reify(&part, expr.range).map_err(|stop| stop.error)?;
    budget::check_residual(&residual, expr.range)?;
    Ok(residual)
}

/// Returns the entry of a residual: the entry itself if the residual is a written map, else an access to it.
pub fn residual_of_entry(residual: &Expr, name: &Name) -> Expr {
    let key = Value::String(name.clone());
    let step = Below::Index(&key);
    let kind = || step.kind(Box::new(residual.clone()));
    step.written(residual).cloned().unwrap_or_else(|| Expr::nowhere(kind()))
}

/// The reason that an evaluation ended early.
#[derive(Debug)]
struct Stop {
    error: ExprError,
    /// True if a bound was exceeded: `try` and `can` do not catch that.
    fatal: bool,
}

type Eval = Result<Part, Stop>;

impl Stop {
    /// Returns the same stop without details about a secret: the mistake may be its length, or a part of it.
    /// One message stands for all mistakes at `range`.
    fn over_a_secret(self, range: Range, message: impl Into<String>, help: Option<&str>) -> Self {
        // An exceeded bound reveals nothing else.
        if self.fatal { self } else { stop(range, message, help) }
    }
}

fn stop(range: Range, message: impl Into<String>, help: Option<&str>) -> Stop {
    let error =
        ExprError { range, message: message.into(), help: help.map(str::to_owned), meant: None };
    Stop { error, fatal: false }
}

struct Evaluator<'s> {
    scope: &'s dyn Scope,
    budget: Budget,
    /// The variables of the enclosing `for` expressions, the innermost last.
    bound: Vec<(Name, Part)>,
    /// The names in residuals of the variables of walks over unknown collections.
    residual_names: Vec<Name>,
    watch: Watch,
    /// True if a value that the expression itself declares sensitive may stand in the residual. False if a
    /// value is computed: its unknown parts are shown, so they must not contain it.
    discloses: bool,
}

impl<'s> Evaluator<'s> {
    fn new(scope: &'s dyn Scope) -> Self {
        Self {
            scope,
            budget: Budget::default(),
            bound: Vec::new(),
            residual_names: Vec::new(),
            watch: Watch::default(),
            discloses: false,
        }
    }

    fn eval(&mut self, expr: &Expr) -> Eval {
        self.budget.step(expr.range)?;
        self.watched(expr)
    }

    fn compute(&mut self, expr: &Expr) -> Eval {
        match &expr.kind {
            Kind::Literal(value) => Ok(Part::plain(value.clone())),
            Kind::Template(parts) => self.template(parts, expr.range),
            Kind::Root(root) => self.root(root, expr.range),
            Kind::Attribute(..) | Kind::Index(..) => self.chain(expr),
            Kind::Splat(base, rest) => self.splat(base, rest, expr.range),
            Kind::Unary(op, operand) => self.unary(*op, operand, expr.range),
            Kind::Binary(op, left, right) => self.binary(*op, left, right, expr.range),
            Kind::Conditional(conditional) => self.conditional(conditional, expr.range),
            Kind::Call(call) => self.call(call, expr.range),
            Kind::For(walk) => self.walk(walk, expr.range),
            Kind::List(items) => self.list(items, expr.range),
            Kind::Map(entries) => self.map(entries, expr.range),
        }
    }

    fn eval_all(&mut self, exprs: &[Expr]) -> Result<Vec<Part>, Stop> {
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    fn root(&mut self, root: &Root, range: Range) -> Eval {
        if let Root::Named(name) = root
            && let Some((_, part)) = self.bound.iter().rev().find(|(bound, _)| bound == name)
        {
            return Ok(part.clone());
        }
        let found = match root {
            Root::Resource(block) => self.scope.resource(block, None),
            other => self.scope.root(other),
        };
        let datum = found.map_err(|message| self.unfound(root, message, range))?;
        Ok(Part::referred(datum, || Expr { kind: Kind::Root(root.clone()), range }))
    }

    /// Returns the failure of a local. If it fails because of a secret, `try` must not catch it: that would
    /// reveal something about the secret.
    fn unfound(&mut self, root: &Root, message: String, range: Range) -> Stop {
        let over_secret = self.scope.fails_over_a_secret(root);
        self.watch.looked |= over_secret;
        Stop { fatal: over_secret, ..stop(range, message, None) }
    }

    fn list(&mut self, items: &[Expr], range: Range) -> Eval {
        let parts = self.eval_all(items)?;
        self.budget.items(parts.len(), range)?;
        Ok(self.list_of(parts, range))
    }

    /// Returns a list of parts, with the sensitive places of the items.
    fn list_of(&mut self, parts: Vec<Part>, range: Range) -> Part {
        let mut sensitive = Paths::none();
        for (index, part) in parts.iter().enumerate().filter(|(_, p)| !p.sensitive.is_empty()) {
            sensitive.extend_below(&Path::root().join(index), &part.sensitive);
        }
        let source = self.source_if(&parts, range, Kind::List);
        let value = Value::list(parts.into_iter().map(|part| part.value).collect());
        Part { value, sensitive, source }
    }

    fn map(&mut self, entries: &[(Expr, Expr)], range: Range) -> Eval {
        self.budget.items(entries.len(), range)?;
        let mut keys = Vec::with_capacity(entries.len());
        let mut parts = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            keys.push(self.eval(key)?);
            parts.push(self.eval(value)?);
        }
        let mut names = Vec::with_capacity(keys.len());
        let mut secret_key = false;
        for (part, (key, _)) in keys.iter().zip(entries) {
            secret_key |= self.looks_into(part);
            names.push(self.key_text(part, key.range)?);
        }
        let rebuild = |evaluator: &mut Self| {
            let mut rebuilt = Vec::with_capacity(parts.len());
            for (key, value) in keys.iter().zip(&parts) {
                rebuilt.push((evaluator.reify(key, range)?, evaluator.reify(value, range)?));
            }
            Ok(rebuilt)
        };
        let Some(names) = names.into_iter().collect::<Option<Vec<_>>>() else {
            let ty = parts.iter().fold(Type::Null, |ty, part| ty.unify(&part.value.type_of()));
            let secret = secret_key || parts.iter().any(|part| !part.sensitive.is_empty());
            let rebuilt = rebuild(self)?;
            if let Some(again) = keys::repeated(&rebuilt) {
                return Err(twice(entries[again].0.range));
            }
            let residual = Expr { kind: Kind::Map(rebuilt), range };
            return Ok(Part::unknown(Type::map(ty), residual, secret));
        };
        let source = if secret_key || self.any_secret(&parts) {
            let built = |rebuilt| Source::built(Expr { kind: Kind::Map(rebuilt), range });
            rebuild(self).map_or(Source::Barred, built)
        } else {
            Source::None
        };
        let mut part = entries_of(names.into_iter().zip(parts), entries)?;
        part.source = source;
        if secret_key {
            part.sensitive = Paths::whole();
        }
        Ok(part)
    }

    /// Returns the text of a map's key; none if it is not known.
    fn key_text(&self, part: &Part, range: Range) -> Result<Option<Name>, Stop> {
        match &part.value {
            Value::String(text) => Ok(Some(Arc::clone(text))),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) => {
                Ok(text_of(&part.value).map(Name::from))
            }
            Value::Unknown(_) | Value::Sealed(_) => Ok(None),
            _ => Err(stop(range, format!("a key is text, and this is {}", self.word(part)), None)),
        }
    }

    /// Returns a word for a value, for messages; for a secret, a word that does not reveal its type.
    fn word(&self, part: &Part) -> &'static str {
        if self.secret(part) { SECRET_WORD } else { word(&part.value) }
    }

    /// Returns the source of a value made of `parts`; none if no part needs one.
    fn source_if(
        &mut self,
        parts: &[Part],
        range: Range,
        kind: impl FnOnce(Vec<Expr>) -> Kind,
    ) -> Source {
        if !self.any_secret(parts) {
            return Source::None;
        }
        match self.reify_all(parts, range) {
            Ok(exprs) => Source::built(Expr { kind: kind(exprs), range }),
            Err(_) => Source::Barred,
        }
    }

    /// Returns a value computed from `parts` as a whole: unknown if one of them is unknown, and sensitive if
    /// one of them is sensitive.
    fn combine(
        &mut self,
        parts: &[Part],
        ty: impl FnOnce() -> Type,
        range: Range,
        kind: impl FnOnce(Vec<Expr>) -> Kind,
        compute: impl FnOnce(&mut Self) -> Result<Value, Stop>,
    ) -> Eval {
        let secret = self.any_secret(parts);
        if parts.iter().any(|part| !self.plain(&part.value)) {
            let exprs = self.reify_all(parts, range)?;
            return Ok(Part::unknown(ty(), Expr { kind: kind(exprs), range }, secret));
        }
        let value = compute(self)?;
        if !secret {
            return Ok(Part::plain(value));
        }
        let source = self.source_if(parts, range, kind);
        Ok(Part { value, sensitive: Paths::whole(), source })
    }
}

/// Returns a map of entries, with the sensitive places of the values.
fn entries_of(
    entries: impl Iterator<Item = (Name, Part)>,
    places: &[(Expr, Expr)],
) -> Result<Part, Stop> {
    let (mut map, mut sensitive) = (Attributes::with_capacity(places.len()), Paths::none());
    for ((name, part), (place, _)) in entries.zip(places) {
        if !part.sensitive.is_empty() {
            sensitive.extend_below(&Path::attribute(Name::clone(&name)), &part.sensitive);
        }
        if map.insert(name, part.value).is_some() {
            return Err(twice(place.range));
        }
    }
    Ok(Part { value: Value::map(map), sensitive, source: Source::None })
}

fn twice(key: Range) -> Stop {
    stop(key, "this key stands twice in the map", None)
}

/// The word for a secret of the wrong type.
const SECRET_WORD: &str = "a secret that is something else";

/// Returns a word for a value, for messages: never the value itself.
pub(super) fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::String(_) => "a string",
        Value::List(_) => "a list",
        Value::Set(_) => "a set",
        Value::Map(_) => "an object or map",
        Value::Unknown(unknown) => type_word(&unknown.ty),
        Value::Sealed(sealed) => type_word(&sealed.ty),
    }
}

#[cfg(test)]
mod soundness;
#[cfg(test)]
mod tests;
