//! The residuals of attempts that a secret decided. They contain all arguments of the attempt, so that they
//! do not show which argument was taken, or if one failed.
//!
//! An argument that fails has no value to fold. So the text is folded here: each reference is replaced by the
//! expression that stands for it, and the rest stays as written.

use super::walks::captured;
use super::{Evaluator, Stop, stop};
use crate::address::Name;
use crate::expression::functions;
use crate::expression::text::text_of;
use crate::expression::visit::{push_parts_mut, roots};
use crate::expression::{Call, Expr, For, Kind, Range, Root};
use crate::value::{Attributes, Value};

impl Evaluator<'_> {
    /// Returns the call as a residual; none if a part of it has no expression for a residual.
    pub(super) fn kept_call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        range: Range,
    ) -> Result<Option<Expr>, Stop> {
        let mut kept = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match self.kept(argument, &mut Vec::new()) {
                Ok(argument) => kept.push(argument),
                Err(stop) if stop.fatal => return Err(stop),
                Err(_) => return Ok(None),
            }
        }
        let call = Call { name: name.into(), arguments: kept, spread: false };
        Ok(Some(Expr { kind: Kind::Call(Box::new(call)), range }))
    }

    /// Returns the expression with its references replaced; `own` are the variables of the walks in it.
    fn kept(&mut self, expr: &Expr, own: &mut Vec<Name>) -> Result<Expr, Stop> {
        self.budget.step(expr.range)?;
        if is_folded(expr) && !refers_to(expr, own) {
            let (part, looked) = self.looking(|evaluator| evaluator.aside(expr));
            match part {
                Err(stop) if stop.fatal => return Err(stop),
                // If a secret was looked at, the success itself reveals something, and so would the form of
                // the residual.
                Ok(part) if !looked => return unshadowed(self.reify(&part, expr.range)?, own),
                _ => {}
            }
        }
        match &expr.kind {
            Kind::Root(Root::Named(name)) if own.contains(name) => Ok(expr.clone()),
            Kind::Root(Root::Var(_) | Root::Resource(_)) => unshadowed(expr.clone(), own),
            Kind::Root(_) => Err(stop(expr.range, "nothing stands for this at apply", None)),
            Kind::For(walk) => self.kept_walk(walk, expr.range, own),
            Kind::Call(call) if &*call.name == "templatefile" => {
                Err(stop(expr.range, "no file is read at apply", None))
            }
            _ => {
                let mut kept = expr.clone();
                let mut parts = Vec::new();
                push_parts_mut(&mut kept, &mut parts);
                for part in parts {
                    *part = self.kept(part, own)?;
                }
                Ok(Expr { kind: as_printed(kept.kind), ..kept })
            }
        }
    }

    fn kept_walk(&mut self, walk: &For, range: Range, own: &mut Vec<Name>) -> Result<Expr, Stop> {
        let mut kept = walk.clone();
        kept.collection = self.kept(&walk.collection, own)?;
        let outside = own.len();
        own.extend(walk.key_variable.iter().chain([&walk.value_variable]).cloned());
        let inside = kept.key.iter_mut().chain([&mut kept.value]).chain(&mut kept.condition);
        for part in inside {
            *part = self.kept(part, own)?;
        }
        own.truncate(outside);
        Ok(Expr { kind: Kind::For(Box::new(kept)), range })
    }
}

/// Returns true if an expression is replaced in a residual: a reference, or a file.
fn is_folded(expr: &Expr) -> bool {
    let mut base = expr;
    while let Kind::Attribute(inner, _) | Kind::Index(inner, _) = &base.kind {
        base = inner;
    }
    match &base.kind {
        Kind::Root(_) => true,
        Kind::Call(call) => {
            let reads = functions::file_request(&call.name).is_some();
            // The text of a template depends on values, too.
            std::ptr::eq(base, expr) && reads && &*call.name != "templatefile"
        }
        _ => false,
    }
}

/// Returns a kind in the form in which it would be read back: texts are joined, and collections of literals
/// are literals.
fn as_printed(kind: Kind) -> Kind {
    match kind {
        Kind::Template(parts) => {
            let text = |part: Expr| match &part.kind {
                Kind::Literal(value) => {
                    text_of(value).map_or(part.clone(), |text| Expr::literal(Value::string(text)))
                }
                _ => part,
            };
            let flat = parts.into_iter().flat_map(|part| match part.kind {
                Kind::Template(inner) => inner,
                _ => vec![part],
            });
            Kind::template(flat.map(text).collect())
        }
        Kind::List(items) => match items.iter().map(literal).collect() {
            Some(values) => Kind::Literal(Value::list(values)),
            None => Kind::List(items),
        },
        Kind::Map(entries) => {
            let entry = |(key, value): &(Expr, Expr)| match literal(key)? {
                Value::String(key) => Some((key, literal(value)?)),
                _ => None,
            };
            match entries.iter().map(entry).collect::<Option<Attributes>>() {
                // A duplicate key is a mistake, and stays one.
                Some(values) if values.len() == entries.len() => Kind::Literal(Value::map(values)),
                _ => Kind::Map(entries),
            }
        }
        Kind::Call(call) => match (&*call.name, call.arguments.as_slice()) {
            ("toset", [Expr { kind: Kind::Literal(Value::List(items)), .. }]) if !call.spread => {
                Kind::Literal(Value::set(items.to_vec()))
            }
            _ => Kind::Call(call),
        },
        other => other,
    }
}

fn literal(expr: &Expr) -> Option<Value> {
    if let Kind::Literal(value) = &expr.kind { Some(value.clone()) } else { None }
}

fn refers_to(expr: &Expr, names: &[Name]) -> bool {
    let mut found = false;
    roots(expr, &mut |root, _| {
        found |= matches!(root, Root::Named(name) if names.contains(name));
    });
    found
}

/// Refuses an expression that would mean something else among the variables of the enclosing walks.
fn unshadowed(expr: Expr, own: &[Name]) -> Result<Expr, Stop> {
    let names: Vec<&Name> = own.iter().collect();
    if refers_to(&expr, own) || captured(&expr, &names) {
        return Err(stop(expr.range, "this name means something else here", None));
    }
    Ok(expr)
}
