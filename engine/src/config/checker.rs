//! The check of expressions in a spec against the wanted types; a diagnostic underlines the wrong words.

use std::collections::BTreeMap;

use super::constant::{known_parts, literal_key, part_at};
use super::diagnostics as say;
use super::names::{Names, View};
use super::{Document, SpecExpr};
use crate::address::{Block, Name};
use crate::constraint;
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, Span};
use crate::expression::Kind;
use crate::expression::{Expr, Range, check};
use crate::schema::{Attribute, Constraint};
use crate::types::{Field, Type};
use crate::value::Value;

/// Checks the expressions of one block.
pub(super) struct Checker<'a> {
    /// The parsed document.
    pub(super) document: &'a Document,
    /// The names that may be referred to.
    pub(super) view: View<'a>,
    /// The resource that diagnostics are about.
    pub(super) block: Option<&'a Block>,
    /// The place to underline in place of a line that holds a secret; none if the line itself may be shown.
    pub(super) instead: Option<Span>,
    /// The errors.
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        document: &'a Document,
        names: &'a Names<'a>,
        diagnostics: &'a mut Diagnostics,
    ) -> Self {
        let view = View { names, each: None, own: None, words: Vec::new() };
        Self { document, view, block: None, instead: None, diagnostics }
    }

    pub(super) fn push(&mut self, mut diagnostic: Diagnostic) {
        if let Some(instead) = self.instead {
            diagnostic = diagnostic.at(instead);
        }
        self.diagnostics.push(match self.block {
            Some(block) => diagnostic.about(&block.instance(None)),
            None => diagnostic,
        });
    }

    /// Returns true if a part of a value could not be read, which a diagnostic has reported.
    pub(super) fn is_broken(&self, value: &SpecExpr) -> bool {
        self.document.broken.contains(&value.span)
    }

    /// Returns the type of a value, and reports the mistakes in it.
    pub(super) fn infer(&mut self, value: &SpecExpr) -> Type {
        self.infer_part(&value.expr, value.span.file)
    }

    fn infer_part(&mut self, expr: &Expr, file: FileId) -> Type {
        let mut errors = Vec::new();
        let ty = check::check(expr, &self.view, &mut errors);
        for error in errors {
            let range = if error.range == Range::default() { expr.range } else { error.range };
            self.push(say::expression(&error, place(file, range)));
        }
        ty
    }

    /// Checks that a value has the type `want`.
    pub(super) fn expect(&mut self, value: &SpecExpr, want: &Type) {
        if !self.is_broken(value) {
            self.expect_part(&value.expr, want, value.span.file);
        }
    }

    // Recursion is bounded by the nesting of TOML and of expressions.
    fn expect_part(&mut self, expr: &Expr, want: &Type, file: FileId) {
        match (&expr.kind, want) {
            (Kind::Literal(value), want) => {
                if value.convert(want).is_err() {
                    let at = place(file, expr.range);
                    self.push(say::wrong_type(want, Some(value), at));
                }
            }
            (Kind::List(items), Type::List(item) | Type::Set(item)) => {
                for part in items {
                    self.expect_part(part, item, file);
                }
            }
            (Kind::Map(entries), Type::Map(item)) => {
                for (key, value) in entries {
                    self.expect_part(key, &Type::String, file);
                    self.expect_part(value, item, file);
                }
            }
            (Kind::Map(entries), Type::Object(fields)) => {
                self.expect_object(entries, fields, place(file, expr.range));
            }
            _ => {
                let found = self.infer_part(expr, file);
                if !found.fits(want) {
                    self.push(say::wrong_static_type(want, &found, place(file, expr.range)));
                }
            }
        }
    }

    fn expect_object(
        &mut self,
        entries: &[(Expr, Expr)],
        fields: &BTreeMap<Name, Field>,
        at: Span,
    ) {
        let mut given = Vec::new();
        for (key, value) in entries {
            let Some(name) = literal_key(key) else {
                return self.push(say::computed_key(place(at.file, key.range)));
            };
            given.push(name);
            if let Some(field) = fields.get(name) {
                self.expect_part(value, &field.ty, at.file);
            } else {
                let known = fields.keys().map(|name| &**name);
                self.push(say::unknown_nested_attribute(name, place(at.file, key.range), known));
            }
        }
        let missing: Vec<&str> = fields
            .iter()
            .filter(|(name, field)| !field.optional && !given.contains(name))
            .map(|(name, _)| &**name)
            .collect();
        if !missing.is_empty() {
            self.push(say::missing_nested(&missing, at));
        }
    }

    /// Checks the known parts of an attribute's value against its range or list.
    pub(super) fn constrain(
        &mut self,
        name: &Name,
        attribute: &Attribute,
        value: &SpecExpr,
        allow_unknown: bool,
    ) {
        if attribute.constraint == Constraint::default() {
            return;
        }
        let Some(known) = known_parts(&value.expr).filter(|_| !self.is_broken(value)) else {
            return;
        };
        let (unit, known) = (attribute.unit.as_deref(), attribute.as_shown(known));
        for violation in constraint::violations(name, unit, &attribute.constraint, &known) {
            let part = part_at(&value.expr, &violation.path);
            let at = place(value.span.file, part.range);
            let diagnostic = if attribute.sensitive {
                say::secret_not_allowed(name, &violation, at)
            } else {
                say::value_not_allowed(&violation, allow_unknown && violation.outside_list, at)
            };
            self.push(diagnostic);
        }
    }

    /// Returns the value of a key that must not be computed; none if it is computed, which is reported.
    pub(super) fn constant(&mut self, what: &str, value: &SpecExpr) -> Option<Value> {
        if self.is_broken(value) {
            return None;
        }
        let constant = super::constant::constant(&value.expr);
        if constant.is_none() {
            self.push(say::not_constant(what, value.span));
        }
        constant
    }

    /// Returns the text of a key that must not be computed; none if it is computed, which is reported.
    pub(super) fn constant_text(&mut self, what: &str, value: &SpecExpr) -> Option<Name> {
        match self.constant(what, value)? {
            Value::String(text) => Some(text),
            other => {
                self.push(say::wrong_type(&Type::String, Some(&other), value.span));
                None
            }
        }
    }

    /// Returns a boolean that must not be computed; none if it cannot be read, which is reported.
    pub(super) fn constant_flag(&mut self, what: &str, value: &SpecExpr) -> Option<bool> {
        match self.constant(what, value)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.push(say::wrong_type(&Type::Boolean, Some(&other), value.span));
                None
            }
        }
    }

    /// Returns the texts of a list that must not be computed, each with its place.
    pub(super) fn constant_texts(&mut self, what: &str, value: &SpecExpr) -> Vec<(Name, Span)> {
        if self.is_broken(value) {
            return Vec::new();
        }
        let Kind::List(items) = &value.expr.kind else {
            self.push(say::not_a_list(what, value.span));
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            let at = place(value.span.file, item.range);
            match &item.kind {
                Kind::Literal(Value::String(text)) => texts.push((text.clone(), at)),
                _ => self.push(say::not_a_list(what, at)),
            }
        }
        texts
    }
}

/// Returns the place of a range in a file.
pub(super) fn place(file: FileId, range: Range) -> Span {
    Span { file, start: range.start, end: range.end }
}
