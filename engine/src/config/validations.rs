//! The conditions that the values of variables must meet: `[[variable.NAME.validation]]`.

use std::collections::{BTreeMap, BTreeSet};

use super::constant::literal_key;
use super::convert::file_request;
use super::scope::{Locals, PlainScope};
use super::{Document, Item, SpecExpr, Variable, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::expression::check::{self, Types, Unresolved};
use crate::expression::evaluate::evaluate;
use crate::expression::visit::{roots, walk};
use crate::expression::{Expr, ExprError, Kind, Range, Root};
use crate::types::Type;
use crate::value::Value;

/// The keys of a validation.
const KEYS: [&str; 2] = ["condition", "message"];

/// Says which variables have values that their conditions refuse. `wrong` are the variables without a value.
pub(super) fn check(
    document: &Document,
    variables: &BTreeMap<Name, Variable>,
    wrong: &BTreeSet<Name>,
    diagnostics: &mut Diagnostics,
) {
    let checker = Checker { document, variables, wrong };
    for (name, block) in &document.variables {
        let Some(item) = block.items.get("validation") else { continue };
        if document.broken.contains(&item.value.span) {
            continue;
        }
        let one = std::slice::from_ref(&item.value.expr);
        let validations = if let Kind::List(items) = &item.value.expr.kind { items } else { one };
        for validation in validations {
            checker.validation(name, item, validation, diagnostics);
        }
    }
}

struct Checker<'a> {
    document: &'a Document,
    variables: &'a BTreeMap<Name, Variable>,
    wrong: &'a BTreeSet<Name>,
}

impl Checker<'_> {
    fn validation(&self, name: &Name, item: &Item, expr: &Expr, diagnostics: &mut Diagnostics) {
        let part = |expr: &Expr| {
            let span = item.value.span_of(expr.range);
            SpecExpr { expr: expr.clone(), span }
        };
        let header = part(expr).span;
        let Kind::Map(entries) = &expr.kind else {
            let form = format!("[[variable.{name}.validation]]");
            return diagnostics.push(say::not_a_block("validation", &form, item.key));
        };
        let mut found = BTreeMap::new();
        for (key, value) in entries {
            let at = item.value.span_of(key.range);
            let key = literal_key(key).map_or("", |key| key);
            if let Some(known) = KEYS.iter().find(|known| **known == key) {
                found.insert(*known, part(value));
            } else {
                diagnostics.push(say::unknown_key(key, "a validation", at, &KEYS));
            }
        }
        let what = format!("a validation of `{name}`");
        let both = KEYS.map(|key| {
            let part = found.remove(key);
            if part.is_none() {
                diagnostics.push(say::missing_key(&what, key, header));
            }
            part
        });
        if let [Some(condition), Some(message)] = both
            && self.is_typed(&condition, &Type::Boolean, diagnostics)
            && self.is_typed(&message, &Type::String, diagnostics)
        {
            self.evaluate(name, &condition, &message, diagnostics);
        }
    }

    /// Says what is wrong with the names and types in an expression, and returns true if nothing is.
    fn is_typed(&self, expr: &SpecExpr, want: &Type, diagnostics: &mut Diagnostics) -> bool {
        let mut errors = Vec::new();
        let ty = check::check(&expr.expr, self, &mut errors);
        walk(&expr.expr, &mut |part| {
            if file_request(part).is_some() {
                errors.push(reads_a_file(part.range));
            }
        });
        if errors.is_empty() && !matches!(ty, Type::Any) && ty != *want {
            diagnostics.push(say::wrong_static_type(want, &ty, expr.span));
            return false;
        }
        for error in &errors {
            diagnostics.push(say::expression(error, expr.span_of(error.range)));
        }
        errors.is_empty()
    }

    fn evaluate(
        &self,
        name: &Name,
        condition: &SpecExpr,
        message: &SpecExpr,
        diagnostics: &mut Diagnostics,
    ) {
        let mut names = BTreeSet::from([name]);
        roots(&condition.expr, &mut |root, _| {
            if let Root::Var(name) = root {
                names.insert(name);
            }
        });
        // Of what has no value nothing follows.
        if names.iter().any(|name| self.wrong.contains(*name)) {
            return;
        }
        let (locals, files) = (BTreeMap::new(), BTreeMap::new());
        let (variables, locals) = (self.variables, Locals::new(&locals));
        let scope = PlainScope { variables, locals, files: &files };
        match evaluate(&condition.expr, &scope).map(|datum| datum.value) {
            Ok(Value::Bool(true) | Value::Unknown(_)) => {}
            Ok(Value::Bool(false)) => {
                let message = evaluate(&message.expr, &scope).ok();
                let open = message.filter(|message| message.sensitive.is_empty());
                let text = open.as_ref().and_then(|message| message.value.as_str());
                let values =
                    names.iter().filter_map(|name| Some((*name, self.variables.get(*name)?)));
                diagnostics.push(say::not_valid(text, values, condition.span));
            }
            Ok(_) => diagnostics.push(say::wrong_type(&Type::Boolean, None, condition.span)),
            Err(error) => {
                diagnostics.push(say::expression(&error, condition.span_of(error.range)));
            }
        }
    }

    fn declared_near(&self, name: &Name) -> Option<String> {
        let known = self.document.variables.keys().map(|name| &**name);
        crate::diagnostics::nearest(name, known).map(|near| format!("did you mean `var.{near}`?"))
    }
}

impl Types for Checker<'_> {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let help = match root {
            Root::Var(name) => {
                return self.variables.get(name).map(|variable| variable.ty.clone()).ok_or_else(
                    || {
                        let message = format!("there is no variable `{name}`");
                        Unresolved { message, help: self.declared_near(name) }
                    },
                );
            }
            Root::Local(_) => "write out what the local says",
            _ => "write var.NAME",
        };
        let message = "a validation sees only variables".to_owned();
        Err(Unresolved { message, help: Some(help.to_owned()) })
    }
}

fn reads_a_file(range: Range) -> ExprError {
    ExprError {
        range,
        message: "a validation reads no files".to_owned(),
        help: Some("hold the value against a variable, or write the text out".to_owned()),
    }
}
