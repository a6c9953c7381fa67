//! Operators: arithmetic with checks, comparisons, and the two operators that need not look at both sides.

use super::{Eval, Evaluator, Part, Source, Stop, stop, word};
use crate::expression::print::symbol;
use crate::expression::typing::binary_of;
use crate::expression::typing::type_word;
use crate::expression::{BinaryOp, Expr, Kind, Range, UnaryOp};
use crate::types::Type;
use crate::value::{Paths, Value};

impl Evaluator<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &Expr, range: Range) -> Eval {
        let part = self.eval(operand)?;
        self.looks_into(&part);
        let want = match op {
            UnaryOp::Negate => Type::Number,
            UnaryOp::Not => Type::Boolean,
        };
        self.expect(&part, &want, operand.range)?;
        let parts = [part];
        let ty = || match parts[0].value.type_of() {
            Type::Integer => Type::Integer,
            _ => want.clone(),
        };
        self.combine(
            &parts,
            ty,
            range,
            |exprs| unary_kind(op, exprs),
            |_| match &parts[0].value {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                Value::Integer(number) => {
                    number.checked_neg().map(Value::Integer).ok_or_else(|| too_large(range))
                }
                Value::Float(number) => finite(-number, range),
                other => Err(stop(
                    operand.range,
                    format!("expected {}, found {}", type_word(&want), word(other)),
                    None,
                )),
            },
        )
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, range: Range) -> Eval {
        match op {
            BinaryOp::And => self.logic(false, op, left, right, range),
            BinaryOp::Or => self.logic(true, op, left, right, range),
            BinaryOp::Equal | BinaryOp::NotEqual => self.equality(op, left, right, range),
            _ => self.numeric(op, left, right, range),
        }
    }

    /// Computes `&&` or `||`: `decides` is the value of one side that decides the result.
    fn logic(
        &mut self,
        decides: bool,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        range: Range,
    ) -> Eval {
        let a = self.eval(left)?;
        self.looks_into(&a);
        self.expect(&a, &Type::Boolean, left.range)?;
        if a.value == Value::Bool(decides) {
            return Ok(self.settled(decides, op, a, right, range));
        }
        let b = self.eval(right)?;
        self.looks_into(&b);
        self.expect(&b, &Type::Boolean, right.range)?;
        // A deciding value decides on either side; if the left side is secret, the result is secret.
        if b.value == Value::Bool(decides) && !self.secret(&a) {
            return Ok(b);
        }
        if a.value == Value::Bool(!decides) && !self.secret(&a) {
            return Ok(b);
        }
        if b.value == Value::Bool(!decides) && !self.secret(&b) {
            return Ok(a);
        }
        let parts = [a, b];
        self.combine(
            &parts,
            || Type::Boolean,
            range,
            |exprs| binary_kind(op, exprs),
            |_| Ok(parts[1].value.clone()),
        )
    }

    /// Returns the result that the left side decides. If the left side is secret, the residual contains the
    /// right side, too, so that it does not show if that was looked at.
    fn settled(
        &mut self,
        decides: bool,
        op: BinaryOp,
        a: Part,
        right: &Expr,
        range: Range,
    ) -> Part {
        if !self.secret(&a) {
            return a;
        }
        let b = self.aside(right);
        if let Ok(b) = &b
            && b.value == Value::Bool(!decides)
            && !self.secret(b)
        {
            return a;
        }
        let b = b.and_then(|b| self.reify(&b, range));
        let b = b.unwrap_or_else(|_| Expr::literal(Value::Null));
        let source = match self.reify(&a, range) {
            Ok(a) => Source::built(Expr { kind: binary_kind(op, vec![a, b]), range }),
            Err(_) => Source::Barred,
        };
        Part { source, ..a }
    }

    fn equality(&mut self, op: BinaryOp, left: &Expr, right: &Expr, range: Range) -> Eval {
        let parts = [self.eval(left)?, self.eval(right)?];
        for part in &parts {
            self.looks_into(part);
        }
        let answer = |same: bool| Value::Bool(same == (op == BinaryOp::Equal));
        // A comparison with null needs no complete value; a sealed value is never null.
        if let [Value::Null, other] | [other, Value::Null] = [&parts[0].value, &parts[1].value]
            && !matches!(other, Value::Unknown(_))
        {
            let value = answer(other.is_null());
            let whole = crate::value::Path::root();
            if !parts.iter().any(|part| part.sensitive.covers(&whole)) {
                return Ok(Part::plain(value));
            }
            let source = self.source_if(&parts, range, |exprs| binary_kind(op, exprs));
            return Ok(Part { value, sensitive: Paths::whole(), source });
        }
        self.combine(
            &parts,
            || Type::Boolean,
            range,
            |exprs| binary_kind(op, exprs),
            |_| Ok(answer(parts[0].value.same(&parts[1].value))),
        )
    }

    fn numeric(&mut self, op: BinaryOp, left: &Expr, right: &Expr, range: Range) -> Eval {
        let parts = [self.eval(left)?, self.eval(right)?];
        for part in &parts {
            self.looks_into(part);
        }
        for (part, place) in parts.iter().zip([left.range, right.range]) {
            let secret = self.secret(part);
            self.expect(part, &Type::Number, place).map_err(|mut stop| {
                if op == BinaryOp::Add && !secret && matches!(part.value, Value::String(_)) {
                    let help = "join texts with a template: \"${a}${b}\"";
                    stop.error.help = Some(help.to_owned());
                }
                stop
            })?;
        }
        let ty = || binary_of(op, &parts[0].value.type_of(), &parts[1].value.type_of());
        self.combine(
            &parts,
            ty,
            range,
            |exprs| binary_kind(op, exprs),
            |evaluator| {
                let result = arithmetic(op, &parts[0].value, &parts[1].value, range);
                let secret = evaluator.any_secret(&parts);
                result.map_err(|stop| if secret { no_number(stop, range) } else { stop })
            },
        )
    }

    /// Refuses a value of another type. An unknown value is refused by its type.
    pub(super) fn expect(&self, part: &Part, want: &Type, range: Range) -> Result<(), Stop> {
        if fits(&part.value, want) {
            return Ok(());
        }
        let message = format!("expected {}, found {}", type_word(want), self.word(part));
        let is_null = part.value.is_null() && !self.secret(part);
        let help = is_null.then_some("use coalesce(…, default) where null is possible");
        Err(stop(range, message, help))
    }
}

fn fits(value: &Value, want: &Type) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) => *want == Type::Boolean,
        Value::Integer(_) | Value::Float(_) => *want == Type::Number,
        Value::String(_) => *want == Type::String,
        Value::Unknown(unknown) => unknown.ty.fits(want),
        Value::Sealed(sealed) => sealed.ty.fits(want),
        Value::List(_) | Value::Set(_) | Value::Map(_) => false,
    }
}

/// Returns the error of two numbers without a result, for the case that one of them is secret.
fn no_number(stop: Stop, range: Range) -> Stop {
    let message = "a secret divisor is zero, or the result is too large for a number";
    stop.over_a_secret(range, message, Some("whole numbers have 64 bits"))
}

fn unary_kind(op: UnaryOp, mut exprs: Vec<Expr>) -> Kind {
    let operand = exprs.pop().unwrap_or_else(|| Expr::literal(Value::Null));
    Kind::Unary(op, Box::new(operand))
}

fn binary_kind(op: BinaryOp, mut exprs: Vec<Expr>) -> Kind {
    let right = exprs.pop().unwrap_or_else(|| Expr::literal(Value::Null));
    let left = exprs.pop().unwrap_or_else(|| Expr::literal(Value::Null));
    Kind::Binary(op, Box::new(left), Box::new(right))
}

/// Two numbers of the same kind.
enum Pair {
    Integers(i64, i64),
    Floats(f64, f64),
}

fn pair(left: &Value, right: &Value) -> Option<Pair> {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => Some(Pair::Integers(*a, *b)),
        _ => Some(Pair::Floats(float(left)?, float(right)?)),
    }
}

/// A number as a float.
#[expect(clippy::cast_precision_loss, reason = "mixed arithmetic is floating-point arithmetic")]
pub(in crate::expression) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

fn arithmetic(op: BinaryOp, left: &Value, right: &Value, range: Range) -> Result<Value, Stop> {
    let Some(pair) = pair(left, right) else {
        let message = format!("`{}` takes two numbers", symbol(op));
        return Err(stop(range, message, None));
    };
    match (op, pair) {
        (BinaryOp::Divide | BinaryOp::Remainder, pair) => divide(op, &pair, range),
        (_, Pair::Integers(a, b)) => {
            let number = match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Subtract => a.checked_sub(b),
                BinaryOp::Multiply => a.checked_mul(b),
                _ => return Ok(Value::Bool(compares(op, a.cmp(&b)))),
            };
            number.map(Value::Integer).ok_or_else(|| too_large(range))
        }
        (_, Pair::Floats(a, b)) => match op {
            BinaryOp::Add => finite(a + b, range),
            BinaryOp::Subtract => finite(a - b, range),
            BinaryOp::Multiply => finite(a * b, range),
            // Every float in a value is finite, so floats have an order.
            _ => Ok(Value::Bool(a.partial_cmp(&b).is_some_and(|order| compares(op, order)))),
        },
    }
}

/// Divides two numbers. Whole numbers stay whole if the division has no remainder.
#[expect(clippy::cast_precision_loss, reason = "a division with a rest gives a float")]
fn divide(op: BinaryOp, pair: &Pair, range: Range) -> Result<Value, Stop> {
    let zero = match pair {
        Pair::Integers(_, b) => *b == 0,
        Pair::Floats(_, b) => *b == 0.0,
    };
    if zero {
        let help = "test the divisor first: `b == 0 ? 0 : a / b`";
        return Err(stop(range, "division by zero", Some(help)));
    }
    match (op, pair) {
        (BinaryOp::Remainder, Pair::Integers(a, b)) => {
            Ok(Value::Integer(a.checked_rem(*b).unwrap_or(0)))
        }
        (BinaryOp::Remainder, Pair::Floats(a, b)) => finite(a % b, range),
        (_, Pair::Integers(a, b)) => match (a.checked_rem(*b), a.checked_div(*b)) {
            (Some(0), Some(whole)) => Ok(Value::Integer(whole)),
            (Some(_), _) => finite(*a as f64 / *b as f64, range),
            (None, _) => Err(too_large(range)),
        },
        (_, Pair::Floats(a, b)) => finite(a / b, range),
    }
}

fn compares(op: BinaryOp, order: std::cmp::Ordering) -> bool {
    match op {
        BinaryOp::Less => order.is_lt(),
        BinaryOp::LessOrEqual => order.is_le(),
        BinaryOp::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Returns a float without a sign on zero, so that equal numbers are one value.
fn finite(number: f64, range: Range) -> Result<Value, Stop> {
    if number.is_finite() { Ok(Value::Float(number + 0.0)) } else { Err(too_large(range)) }
}

fn too_large(range: Range) -> Stop {
    stop(range, "the result is too large for a number", Some("whole numbers have 64 bits"))
}

/// Returns a value that a secret chose. Its residual contains the choice, and not only the chosen value.
pub(super) fn chosen(value: Value, source: Source) -> Part {
    let value = match (value, &source) {
        (Value::Unknown(unknown), Source::Built(residual)) => {
            Value::unknown(unknown.ty.clone(), (**residual).clone())
        }
        (other, _) => other,
    };
    Part { value, sensitive: Paths::whole(), source }
}
