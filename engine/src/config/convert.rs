//! The conversion of TOML values to expressions, with their places in the file.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::offsets::Offsets;
use super::{SpecExpr, diagnostics as say, span};
use crate::diagnostics::{Diagnostics, FileId, Span};
use crate::expression::functions;
use crate::expression::parse::{Dialect, expression, template};
use crate::expression::visit::{move_ranges, walk};
use crate::expression::{Expr, ExprError, Kind, Range};
use crate::value::Value;

/// The way to read the strings of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    /// As text with `${…}` in it.
    Template,
    /// As an expression, with or without `${…}` around it.
    Expression,
    /// In a list of tables: each `condition` as an expression, the rest as templates.
    Conditions,
    /// In a table: its preconditions and postconditions as conditions, the rest as templates.
    Lifecycle,
}

/// A file, or a piece of one, that is being read.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    /// The file.
    pub(super) id: FileId,
    /// All of its text.
    pub(super) text: &'a str,
    /// The start of the piece in the file: the parser counts its places from there.
    pub(super) start: usize,
}

impl File<'_> {
    /// Returns the place in the file of something that the parser found in the piece.
    pub(super) fn span(self, range: std::ops::Range<usize>) -> Span {
        span(self.id, range.start + self.start..range.end + self.start)
    }
}

/// Converts the values of one file.
pub(super) struct Converter<'a> {
    /// The file.
    pub(super) file: File<'a>,
    /// Collects the paths of `file("…")`.
    pub(super) files: &'a mut BTreeSet<String>,
    /// Collects the mistakes.
    pub(super) diagnostics: &'a mut Diagnostics,
    /// True if a part of the value could not be read.
    pub(super) broken: bool,
}

impl Converter<'_> {
    /// Returns the value as an expression. A part that cannot be read becomes null, and sets `broken`.
    pub(super) fn value(&mut self, value: &Spanned<DeValue<'_>>, text: Text) -> SpecExpr {
        let span = self.file.span(value.span());
        SpecExpr { expr: self.expr(value, text), span }
    }

    // Recursion is bounded: the parser refuses deeper nesting than 80 of each kind.
    fn expr(&mut self, value: &Spanned<DeValue<'_>>, text: Text) -> Expr {
        let place = self.file.span(value.span());
        let range = Range { start: place.start, end: place.end };
        let kind = match value.get_ref() {
            DeValue::String(string) => return self.string(string, place, text),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    // The parser puts such a number in place of a missing value, and reports the mistake.
                    Ok(_) if value.span().is_empty() => self.broken_value(None),
                    Ok(number) => Kind::Literal(Value::Integer(number)),
                    Err(_) => self.broken_value(Some(say::bad_number(place))),
                }
            }
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => Kind::Literal(Value::Float(number)),
                _ => self.broken_value(Some(say::bad_number(place))),
            },
            DeValue::Boolean(value) => Kind::Literal(Value::Bool(*value)),
            DeValue::Datetime(_) => self.broken_value(Some(say::date(place))),
            DeValue::Array(items) => {
                Kind::List(items.iter().map(|item| self.expr(item, text)).collect())
            }
            DeValue::Table(table) => self.table(table, text),
        };
        Expr { kind, range }
    }

    fn table(&mut self, table: &DeTable<'_>, text: Text) -> Kind {
        let entries = table.iter().map(|(key, value)| {
            let place = self.file.span(key.span());
            let name = Expr {
                kind: Kind::Literal(Value::string(&**key.get_ref())),
                range: Range { start: place.start, end: place.end },
            };
            let text = match text {
                Text::Conditions if &**key.get_ref() == "condition" => Text::Expression,
                Text::Lifecycle if matches!(&**key.get_ref(), "precondition" | "postcondition") => {
                    Text::Conditions
                }
                Text::Conditions | Text::Lifecycle => Text::Template,
                text => text,
            };
            (name, self.expr(value, text))
        });
        Kind::Map(entries.collect())
    }

    fn string(&mut self, string: &str, place: Span, text: Text) -> Expr {
        let range = Range { start: place.start, end: place.end };
        // Most texts hold no brace, and that check is faster.
        let marked = string.contains('{') && (string.contains("${") || string.contains("%{"));
        if text != Text::Expression && !marked {
            return Expr { kind: Kind::Literal(Value::string(string)), range };
        }
        let raw = self.file.text.get(place.start as usize..place.end as usize).unwrap_or_default();
        let offsets = Offsets::of(raw, place.start, string.len());
        let parsed = match text {
            Text::Expression if !marked => expression(string, Dialect::Spec),
            _ => template(string, Dialect::Spec),
        };
        match parsed {
            Ok(mut expr) => {
                move_ranges(&mut expr, &|part| offsets.place(part));
                if string.contains("file") {
                    self.collect_files(&expr);
                }
                expr
            }
            Err(error) => {
                let at = if error.range == Range::default() {
                    place
                } else {
                    let part = offsets.place(error.range);
                    Span { file: self.file.id, start: part.start, end: part.end }
                };
                self.error(&error, at);
                Expr { kind: Kind::Literal(Value::Null), range }
            }
        }
    }

    fn error(&mut self, error: &ExprError, at: Span) {
        self.broken = true;
        self.diagnostics.push(say::expression(error, at));
    }

    fn broken_value(&mut self, diagnostic: Option<crate::diagnostics::Diagnostic>) -> Kind {
        self.broken = true;
        if let Some(diagnostic) = diagnostic {
            self.diagnostics.push(diagnostic);
        }
        Kind::Literal(Value::Null)
    }

    fn collect_files(&mut self, expr: &Expr) {
        let file = self.file.id;
        let place = |range: Range| Span { file, start: range.start, end: range.end };
        walk(expr, &mut |part| {
            let Some((path, request)) = file_request(part) else { return };
            match &path.kind {
                Kind::Literal(Value::String(text)) if stays_inside(text) => {
                    self.files.extend(request);
                }
                Kind::Literal(Value::String(text)) => {
                    self.broken = true;
                    self.diagnostics.push(say::file_outside(text, place(path.range)));
                }
                _ => {
                    self.broken = true;
                    self.diagnostics.push(say::file_not_literal(place(path.range)));
                }
            }
        });
    }
}

/// Returns the path in a call of a function that reads files, and the name of its
/// [request](crate::expression::FileRequest). The type checker reports a wrong number of arguments.
pub(super) fn file_request(expr: &Expr) -> Option<(&Expr, Option<String>)> {
    let Kind::Call(call) = &expr.kind else { return None };
    let request = functions::file_request(&call.name)?;
    let path = call.arguments.first()?;
    let request = match &path.kind {
        Kind::Literal(Value::String(text)) => request.with_path(text).name(),
        _ => None,
    };
    Some((path, request))
}

/// Returns the plain path in a call of a function that reads files, for a change.
pub(super) fn file_path_mut(expr: &mut Expr) -> Option<&mut Value> {
    file_request(expr)?;
    let Kind::Call(call) = &mut expr.kind else { return None };
    match &mut call.arguments.first_mut()?.kind {
        Kind::Literal(path) => Some(path),
        _ => None,
    }
}

/// Returns true if a path is relative and never leaves its folder by `..`. The shell checks links.
fn stays_inside(path: &str) -> bool {
    let rooted = path.starts_with(['/', '\\', '~']) || path.as_bytes().get(1) == Some(&b':');
    let climbs = path.split(['/', '\\']).any(|part| part == "..");
    !path.is_empty() && !rooted && !climbs && !path.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

    #[test]
    fn paths_of_files() {
        for good in ["a", "a/b.txt", "./a", "a..b", "..."] {
            assert!(stays_inside(good), "{good}");
        }
        for bad in ["", "/a", "../a", "a/../b", r"a\..\b", r"\a", "C:/a", "~/a", "a\0"] {
            assert!(!stays_inside(bad), "{bad}");
        }
    }
}
