//! Conditionals: one arm is computed when the condition is known, both when it is not.

use super::operators::chosen;
use super::{Eval, Evaluator, Part, Source};
use crate::expression::{Conditional, Expr, Kind, Range};
use crate::types::Type;
use crate::value::Value;

impl Evaluator<'_> {
    pub(super) fn conditional(&mut self, conditional: &Conditional, range: Range) -> Eval {
        let condition = self.eval(&conditional.condition)?;
        self.looks_into(&condition);
        self.expect(&condition, &Type::Boolean, conditional.condition.range)?;
        let Value::Bool(holds) = condition.value else {
            return self.both_arms(conditional, &condition, range);
        };
        let (taken, other) = if holds {
            (&conditional.yes, &conditional.no)
        } else {
            (&conditional.no, &conditional.yes)
        };
        let part = self.eval(taken)?;
        if !self.secret(&condition) {
            return Ok(part);
        }
        // The residual contains the condition and both arms, so that it does not show which arm is taken. If
        // an arm fails now, a later computation with this condition does not take it either.
        let taken = self.reify(&part, range);
        let other = self.aside(other).and_then(|part| self.reify(&part, range));
        let other = other.unwrap_or_else(|_| Expr::literal(Value::Null));
        let source = match (self.reify(&condition, range), taken) {
            (Ok(condition), Ok(taken)) => {
                let (yes, no) = if holds { (taken, other) } else { (other, taken) };
                let kind = Kind::Conditional(Box::new(Conditional { condition, yes, no }));
                Source::built(Expr { kind, range })
            }
            _ => Source::Barred,
        };
        Ok(chosen(part.value, source))
    }

    /// Computes a conditional with an unknown condition. If both arms are equal, the result is the arm. If
    /// the condition is secret, the result stays unknown and is secret, even if both arms are equal.
    fn both_arms(&mut self, conditional: &Conditional, condition: &Part, range: Range) -> Eval {
        let yes = self.eval(&conditional.yes)?;
        let no = self.eval(&conditional.no)?;
        self.plain(&yes.value);
        let is_secret = self.secret(condition);
        if !is_secret && yes.value == no.value && yes.sensitive == no.sensitive {
            return Ok(yes);
        }
        let ty = yes.value.type_of().unify(&no.value.type_of());
        let secret = is_secret || self.secret(&yes) || self.secret(&no);
        let kind = Kind::Conditional(Box::new(Conditional {
            condition: self.reify(condition, range)?,
            yes: self.reify(&yes, range)?,
            no: self.reify(&no, range)?,
        }));
        Ok(Part::unknown(ty, Expr { kind, range }, secret))
    }
}
