//! Templates: scalars, joined into one text.

use super::{Eval, Evaluator, Part, Source, Stop, stop};
use crate::expression::text::text_of;
use crate::expression::{Expr, Kind, Range};
use crate::types::Type;
use crate::value::{Paths, Value};

/// The advice about null inside a text.
pub(in crate::expression) const NULL_TEXT_HELP: &str =
    "give a text for that case: coalesce(…, \"none\")";
/// The advice about a collection inside a text.
pub(in crate::expression) const NO_TEXT_HELP: &str = "use jsonencode(…) or join(\", \", …)";

impl Evaluator<'_> {
    pub(super) fn template(&mut self, exprs: &[Expr], range: Range) -> Eval {
        let mut text = String::new();
        let mut parts = Vec::with_capacity(exprs.len());
        let (mut known, mut secret) = (true, false);
        for expr in exprs {
            let part = match &expr.kind {
                Kind::Literal(value) => Part::plain(value.clone()),
                _ => self.eval(expr)?,
            };
            secret |= self.looks_into(&part);
            match &part.value {
                Value::Unknown(unknown) => {
                    self.refuse_collection(&unknown.ty, &part, expr.range)?;
                    known = false;
                }
                Value::Sealed(_) => known = false,
                value => {
                    let piece = text_of(value).ok_or_else(|| self.no_text(&part, expr.range))?;
                    self.budget.bytes(piece.len(), range)?;
                    text.push_str(&piece);
                }
            }
            parts.push(part);
        }
        if known && !secret {
            return Ok(Part::plain(Value::string(text)));
        }
        let folded = self.folded(&parts, range);
        if !known {
            let residual = Expr { kind: folded?, range };
            return Ok(Part::unknown(Type::String, residual, secret));
        }
        let source = folded.map_or(Source::Barred, |kind| Source::built(Expr { kind, range }));
        Ok(Part { value: Value::string(text), sensitive: Paths::whole(), source })
    }

    fn refuse_collection(&self, ty: &Type, part: &Part, range: Range) -> Result<(), Stop> {
        match ty {
            Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Object(_) => {
                Err(self.no_text(part, range))
            }
            _ => Ok(()),
        }
    }

    fn no_text(&self, part: &Part, range: Range) -> Stop {
        let message = format!("{} cannot stand in a text", self.word(part));
        match &part.value {
            _ if self.secret(part) => stop(range, message, None),
            Value::Null => stop(range, message, Some(NULL_TEXT_HELP)),
            _ => stop(range, message, Some(NO_TEXT_HELP)),
        }
    }

    /// Returns the template with its known parts as text; a template inside it is taken apart.
    fn folded(&mut self, parts: &[Part], range: Range) -> Result<Kind, Stop> {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            let expr = self.reify(part, range)?;
            match expr.kind {
                Kind::Literal(value) => {
                    let text = text_of(&value).unwrap_or_default();
                    pieces.push(Expr::literal(Value::string(text)));
                }
                Kind::Template(inner) => pieces.extend(inner),
                _ => pieces.push(expr),
            }
        }
        Ok(Kind::template(pieces))
    }
}
