//! `try` and `can`: a decision during planning must have the same result at apply.
//!
//! An expression may be known although a part of it is not: `[1, value.a.ports[7]][0]` is 1. At apply that
//! part may fail, and the whole expression with it, which matters only if the failure is caught. So inside an
//! attempt, expressions are watched: an unknown part that the result does not need stays beside the result,
//! as `[1, value.a.ports[7]][0]`, which makes the result unknown. Outside of an attempt expressions are not
//! watched: there such a failure is an error, which the user sees.
//!
//! A failure may reveal something about a secret. So if any part of an attempt looked at a secret, its value
//! is secret, whether it is the first argument or a fallback.

use super::operators::chosen;
use super::part::{barred, declares};
use super::{Eval, Evaluator, Part, Source, Stop, stop};
use crate::expression::visit::{roots, walk};
use crate::expression::{Call, Expr, Kind, Range, Root};
use crate::types::Type;
use crate::value::{Paths, Value};

/// The unknown values inside the running attempts.
#[derive(Default)]
pub(super) struct Watch {
    /// The number of nested attempts that are running.
    attempts: usize,
    /// The residuals that may fail, of the expression that is being computed.
    met: Vec<Expr>,
    /// True if a part looked at a secret, so that the result reveals something about it.
    pub(super) looked: bool,
}

impl Evaluator<'_> {
    pub(super) fn first_that_works(&mut self, arguments: &[Expr], range: Range) -> Eval {
        let (part, looked) = self.looking(|evaluator| evaluator.tried(arguments, range));
        if looked { self.decided("try", arguments, part?, range) } else { part }
    }

    fn tried(&mut self, arguments: &[Expr], range: Range) -> Eval {
        let mut last = None;
        for (index, argument) in arguments.iter().enumerate() {
            let part = match self.attempt(argument) {
                Ok(part) => part,
                Err(stop) if stop.fatal => return Err(stop),
                Err(stop) => {
                    last = Some(stop);
                    continue;
                }
            };
            if self.known(&part.value) {
                return Ok(part);
            }
            return self.may_work(part, &arguments[index + 1..], range);
        }
        Err(last.unwrap_or_else(|| stop(range, "`try` has nothing to try", None)))
    }

    /// Handles an unknown argument, which may fail at apply: the arguments after it stay in the residual,
    /// except those that fail already.
    fn may_work(&mut self, first: Part, rest: &[Expr], range: Range) -> Eval {
        let mut ty = first.value.type_of();
        let mut secret = self.secret(&first);
        let mut arguments = vec![self.reify(&first, range)?];
        for argument in rest {
            match self.attempt(argument) {
                Ok(part) => {
                    ty = ty.unify(&part.value.type_of());
                    secret |= self.secret(&part);
                    arguments.push(self.reify(&part, argument.range)?);
                }
                Err(stop) if stop.fatal => return Err(stop),
                Err(_) => {}
            }
        }
        if arguments.len() == 1 {
            return Ok(first);
        }
        let call = Call { name: "try".into(), arguments, spread: false };
        let residual = Expr { kind: Kind::Call(Box::new(call)), range };
        Ok(Part::unknown(ty, residual, secret))
    }

    pub(super) fn works(&mut self, argument: &Expr, range: Range) -> Eval {
        let (part, looked) = self.looking(|evaluator| evaluator.whether_it_works(argument, range));
        let arguments = std::slice::from_ref(argument);
        if looked { self.decided("can", arguments, part?, range) } else { part }
    }

    /// Computes something; returns true in addition if it looked at a secret.
    pub(super) fn looking(&mut self, compute: impl FnOnce(&mut Self) -> Eval) -> (Eval, bool) {
        let outside = std::mem::take(&mut self.watch.looked);
        let part = compute(self);
        let looked = self.watch.looked;
        self.watch.looked |= outside;
        (part, looked)
    }

    /// Returns the value of an attempt that looked at a secret. Its residual is the whole attempt.
    fn decided(&mut self, name: &str, arguments: &[Expr], part: Part, range: Range) -> Eval {
        let kept = self.kept_call(name, arguments, range)?;
        let source = match kept {
            Some(kept) if self.discloses || !declares(&kept) => Source::built(kept),
            // The residual of the part would reveal the decision.
            _ if matches!(part.value, Value::Unknown(_)) => {
                return Err(Stop { fatal: true, ..barred(range) });
            }
            _ => Source::Barred,
        };
        Ok(chosen(part.value, source))
    }

    fn whether_it_works(&mut self, argument: &Expr, range: Range) -> Eval {
        let part = match self.attempt(argument) {
            Ok(part) => part,
            Err(stop) if stop.fatal => return Err(stop),
            Err(_) => return Ok(Part::plain(Value::Bool(false))),
        };
        let secret = self.secret(&part);
        let works = Value::Bool(true);
        if part.value.is_known() && !secret {
            return Ok(Part::plain(works));
        }
        let folded = self.reify(&part, range).map(|argument| {
            let call = Call { name: "can".into(), arguments: vec![argument], spread: false };
            Expr { kind: Kind::Call(Box::new(call)), range }
        });
        if part.value.is_known() {
            let source = folded.map_or(Source::Barred, Source::built);
            return Ok(Part { value: works, sensitive: Paths::whole(), source });
        }
        Ok(Part::unknown(Type::Boolean, folded?, secret))
    }

    fn attempt(&mut self, argument: &Expr) -> Eval {
        self.watch.attempts += 1;
        let part = self.eval(argument);
        self.watch.attempts -= 1;
        if self.watch.attempts == 0 {
            self.watch.met.clear();
        }
        part
    }

    /// Computes an expression that is no part of the result, without keeping its unknown parts.
    pub(super) fn aside(&mut self, expr: &Expr) -> Eval {
        let before = self.watch.met.len();
        let part = self.eval(expr);
        self.watch.met.truncate(before);
        part
    }

    /// Computes an expression; inside an attempt, keeps the unknown parts beside it that its result does not
    /// need.
    pub(super) fn watched(&mut self, expr: &Expr) -> Eval {
        if self.watch.attempts == 0 {
            return self.compute(expr);
        }
        let before = self.watch.met.len();
        let part = self.compute(expr);
        let inside = self.watch.met.split_off(before);
        let part = part?;
        let (mut met, mut passed) = (Vec::new(), Vec::new());
        for residual in inside {
            if self.keeps(&part.value, &residual) {
                met.push(residual);
            } else if !passed.contains(&residual) && !self.is_of_a_walk_that_ended(&residual) {
                passed.push(residual);
            }
        }
        let part = if passed.is_empty() { part } else { self.beside(&part, passed, expr.range)? };
        match &part.value {
            Value::Unknown(unknown) if may_fail(&unknown.residual) => {
                self.watch.met.push(unknown.residual.clone());
            }
            _ => self.watch.met.append(&mut met),
        }
        Ok(part)
    }

    /// Returns `[part, passed…][0]`, which is known only if all of them are.
    fn beside(&mut self, part: &Part, passed: Vec<Expr>, range: Range) -> Eval {
        let secret = self.secret(part);
        // If the part cannot stand in a plan, the attempt did not fail: it cannot be planned.
        let first = self.reify(part, range).map_err(|stop| Stop { fatal: true, ..stop })?;
        let items = std::iter::once(first).chain(passed).collect();
        let list = Expr { kind: Kind::List(items), range };
        let index = Expr { kind: Kind::Literal(Value::Integer(0)), range };
        let residual = Expr { kind: Kind::Index(Box::new(list), Box::new(index)), range };
        Ok(Part::unknown(part.value.type_of(), residual, secret))
    }

    /// Returns true if computing the value includes computing the residual.
    fn keeps(&self, value: &Value, residual: &Expr) -> bool {
        match value {
            Value::Unknown(unknown) => {
                let (mut found, mut looked) = (false, 0);
                walk(&unknown.residual, &mut |part| {
                    looked += 1;
                    found = found || part == residual;
                });
                self.budget.looked(looked);
                found
            }
            Value::List(items) | Value::Set(items) => {
                items.iter().any(|item| self.keeps(item, residual))
            }
            Value::Map(entries) => entries.values().any(|item| self.keeps(item, residual)),
            _ => {
                self.budget.looked(1);
                false
            }
        }
    }

    /// Returns true if a residual names a variable of a walk that has ended.
    fn is_of_a_walk_that_ended(&self, residual: &Expr) -> bool {
        let mut own = Vec::new();
        walk(residual, &mut |part| {
            if let Kind::For(walk) = &part.kind {
                own.extend(walk.key_variable.iter().chain([&walk.value_variable]));
            }
        });
        let mut ended = false;
        roots(residual, &mut |root, _| {
            if let Root::Named(name) = root {
                ended |= !self.residual_names.contains(name) && !own.contains(&name);
            }
        });
        ended
    }
}

/// Returns true if computing a residual may fail. An attribute in the schema never fails.
fn may_fail(residual: &Expr) -> bool {
    let base = match &residual.kind {
        Kind::Attribute(base, _) => base,
        _ => residual,
    };
    !matches!(base.kind, Kind::Root(_))
}
