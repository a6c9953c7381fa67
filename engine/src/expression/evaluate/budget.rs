//! Bounds of the work of an evaluation, and of the size of its result.

use std::cell::Cell;

use super::{Stop, stop};
use crate::expression::{DEPTH_MAX, Expr, ExprError, Kind, Range, TREE_DEPTH_MAX};
use crate::value::Value;

/// The most steps of one evaluation: expressions computed, and items walked.
const STEPS_MAX: usize = 1_000_000;
/// The number of values that may be looked at for one step.
const LOOKS_PER_STEP: usize = 16;
/// The most bytes that one evaluation produces.
pub(in crate::expression) const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The bytes that an item of a collection counts as.
const ITEM_BYTES: usize = 16;
/// The most values in one result, items and entries counted. A shared part counts for each place, because
/// code that walks the result meets it in each place.
const VALUES_MAX: usize = 4_000_000;
/// The most expressions in one residual, because a residual is copied to each place that uses it.
const RESIDUAL_SIZE_MAX: usize = 100_000;
/// The deepest nesting of a result. Plans, records and states nest it some levels deeper, and the parser of
/// their JSON stops at 128.
const VALUE_DEPTH_MAX: usize = 100;

/// The work and the size that are used up so far.
#[derive(Default)]
pub(super) struct Budget {
    steps: usize,
    bytes: usize,
    /// The number of values that were looked at since the last step.
    looked: Cell<usize>,
}

impl Budget {
    pub(super) fn step(&mut self, range: Range) -> Result<(), Stop> {
        self.steps(1, range)
    }

    pub(super) fn steps(&mut self, steps: usize, range: Range) -> Result<(), Stop> {
        self.steps += steps + self.looked.take() / LOOKS_PER_STEP;
        if self.steps <= STEPS_MAX {
            return Ok(());
        }
        let message = format!("the expression takes more than {STEPS_MAX} steps to compute");
        Err(fatal(range, message, "walk over fewer items, or compute parts of it in locals"))
    }

    /// Accounts for values that were looked at.
    pub(super) fn looked(&self, values: usize) {
        self.looked.set(self.looked.get().saturating_add(values));
    }

    pub(super) fn bytes(&mut self, bytes: usize, range: Range) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= BYTES_MAX {
            return Ok(());
        }
        let message = format!("the expression makes more than {} MiB of data", BYTES_MAX >> 20);
        Err(fatal(range, message, "make it smaller, or keep large data in a file"))
    }

    pub(super) fn items(&mut self, items: usize, range: Range) -> Result<(), Stop> {
        self.bytes(items.saturating_mul(ITEM_BYTES), range)
    }

    /// Counts the value that a function made.
    pub(super) fn made(&mut self, value: &Value, range: Range) -> Result<(), Stop> {
        match value {
            Value::String(text) => self.bytes(text.len(), range),
            Value::List(items) | Value::Set(items) => self.items(items.len(), range),
            Value::Map(entries) => self.items(entries.len(), range),
            _ => Ok(()),
        }
    }
}

fn fatal(range: Range, message: String, help: &str) -> Stop {
    Stop { fatal: true, ..stop(range, message, Some(help)) }
}

/// Refuses a result that is too large to be walked, stored or read back.
pub(super) fn check_result(value: &Value, range: Range) -> Result<(), ExprError> {
    measure(value, 0, &mut 0).map_err(|excess| refused(&excess, range))
}

/// Refuses a residual of a secret that is too large.
pub(super) fn check_residual(residual: &Expr, range: Range) -> Result<(), ExprError> {
    let mut nesting = Nesting { tree: 0, brackets: 0, size: 0, values: &mut 0 };
    nesting.expr(residual).map_err(|excess| refused(&excess, range))
}

fn refused(excess: &Excess, range: Range) -> ExprError {
    let (message, help) = match excess {
        Excess::Values => (
            format!("the value holds more than {VALUES_MAX} values"),
            "make it smaller: refer to the part that is needed",
        ),
        Excess::Depth => (
            format!("the value is nested more than {VALUE_DEPTH_MAX} levels deep"),
            "make it flatter",
        ),
        Excess::Size => (
            format!("what is left to compute after apply has more than {RESIDUAL_SIZE_MAX} parts"),
            "refer fewer times to what is secret or known only after apply",
        ),
        Excess::Residual => (
            "the expression is nested too deeply once what is known is filled in".to_owned(),
            "give what is secret or known only after apply fewer computations in a row",
        ),
    };
    ExprError { range, message, help: Some(help.to_owned()), meant: None }
}

enum Excess {
    Values,
    Depth,
    Residual,
    Size,
}

fn measure(value: &Value, depth: usize, values: &mut usize) -> Result<(), Excess> {
    *values += 1;
    if *values > VALUES_MAX {
        return Err(Excess::Values);
    }
    if depth > VALUE_DEPTH_MAX {
        return Err(Excess::Depth);
    }
    match value {
        Value::List(items) | Value::Set(items) => {
            items.iter().try_for_each(|item| measure(item, depth + 1, values))
        }
        Value::Map(entries) => {
            entries.values().try_for_each(|item| measure(item, depth + 1, values))
        }
        Value::Unknown(unknown) => {
            let mut nesting = Nesting { tree: 0, brackets: 0, size: 0, values };
            nesting.expr(&unknown.residual)
        }
        _ => Ok(()),
    }
}

/// The greatest depth of a residual: as a tree, and in brackets as it will be printed. The bounds leave room
/// for nesting that only the parser counts (parentheses, `toset`).
struct Nesting<'v> {
    tree: usize,
    brackets: usize,
    size: usize,
    values: &'v mut usize,
}

impl Nesting<'_> {
    fn expr(&mut self, expr: &Expr) -> Result<(), Excess> {
        self.size += 1;
        if self.size > RESIDUAL_SIZE_MAX {
            return Err(Excess::Size);
        }
        match &expr.kind {
            Kind::Literal(value) => self.literal(value),
            Kind::Root(_) => Ok(()),
            Kind::Attribute(base, _) => self.deeper(0, base),
            Kind::Index(base, index) => self.deeper(0, base).and_then(|()| self.deeper(1, index)),
            Kind::Binary(op, left, right) => {
                // An operator of lower precedence is printed in parentheses.
                let looser = |side: &Expr| match &side.kind {
                    Kind::Binary(other, ..) if other == op => 0,
                    Kind::Binary(..) | Kind::Conditional(_) => 1,
                    _ => 0,
                };
                self.deeper(looser(left), left)?;
                let right_brackets =
                    usize::from(matches!(right.kind, Kind::Binary(..) | Kind::Conditional(_)));
                self.deeper(right_brackets, right)
            }
            Kind::Unary(_, operand) => self.deeper(2, operand),
            Kind::Map(entries) => {
                let brackets = if entries.len() > super::super::print::ENTRIES_MAX { 3 } else { 2 };
                entries.iter().try_for_each(|(key, value)| {
                    self.deeper(brackets, key)?;
                    self.deeper(brackets, value)
                })
            }
            _ => {
                let mut parts = Vec::new();
                crate::expression::visit::push_parts(expr, &mut parts);
                parts.into_iter().try_for_each(|part| self.deeper(2, part))
            }
        }
    }

    fn deeper(&mut self, brackets: usize, part: &Expr) -> Result<(), Excess> {
        self.tree += 1;
        self.brackets += brackets;
        // The parser of residuals stops at a depth of 64, and one step adds at most 2 levels.
        if self.tree > TREE_DEPTH_MAX - DEPTH_MAX / 2 || self.brackets > DEPTH_MAX - 4 {
            return Err(Excess::Residual);
        }
        self.expr(part)?;
        self.tree -= 1;
        self.brackets -= brackets;
        Ok(())
    }

    /// A set or a large map is printed with a call around it.
    fn literal(&mut self, value: &Value) -> Result<(), Excess> {
        let levels = depth_of(value, self.values)?;
        if self.brackets + 3 * levels > DEPTH_MAX - 4 {
            return Err(Excess::Residual);
        }
        Ok(())
    }
}

fn depth_of(value: &Value, values: &mut usize) -> Result<usize, Excess> {
    *values += 1;
    if *values > VALUES_MAX {
        return Err(Excess::Values);
    }
    let (mut inner, mut most) = match value {
        Value::List(items) | Value::Set(items) => (items.iter().collect::<Vec<_>>(), 0),
        Value::Map(entries) => (entries.values().collect(), 0),
        _ => return Ok(0),
    };
    while let Some(item) = inner.pop() {
        most = most.max(depth_of(item, values)?);
    }
    Ok(1 + most)
}
