//! The conditions on the values of variables: `[[variable.NAME.validation]]`.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::{self, Condition, Wording};
use super::convert::file_request;
use super::scope::{Locals, PlainScope};
use super::{Document, SpecExpr, Variable, diagnostics as say};
use crate::address::Name;
use crate::condition::{Verdict, judge};
use crate::diagnostics::{Advice, Diagnostics, nearest};
use crate::expression::check::{self, Types, Unresolved};
use crate::expression::visit::{roots, walk};
use crate::expression::{ExprError, Range, Root};
use crate::types::Type;

/// Reports the variables whose values break their conditions. `wrong` are the variables without a value.
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
        let wording = Wording {
            key: "validation",
            one: "a validation",
            whose: format!("a validation of `{name}`"),
            form: format!("[[variable.{name}.validation]]"),
        };
        let mut push = |found| diagnostics.push(found);
        for condition in conditions::read(&item.value, item.key, &wording, &mut push) {
            checker.validation(name, &condition, diagnostics);
        }
    }
}

struct Checker<'a> {
    document: &'a Document,
    variables: &'a BTreeMap<Name, Variable>,
    wrong: &'a BTreeSet<Name>,
}

impl Checker<'_> {
    fn validation(&self, name: &Name, validation: &Condition, diagnostics: &mut Diagnostics) {
        let Condition { condition, message } = validation;
        if self.is_typed(condition, &Type::Boolean, diagnostics)
            && self.is_typed(message, &Type::String, diagnostics)
        {
            self.evaluate(name, condition, message, diagnostics);
        }
    }

    /// Reports mistakes in the names and types of an expression; returns true if there are none.
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
        // A condition on a variable without a value cannot be judged.
        if names.iter().any(|name| self.wrong.contains(*name)) {
            return;
        }
        let (locals, files) = (BTreeMap::new(), BTreeMap::new());
        let (variables, locals) = (self.variables, Locals::new(&locals));
        let scope = PlainScope { variables, locals, files: &files };
        match judge(&condition.expr, Some(&message.expr), &scope) {
            Verdict::Holds | Verdict::Unknown => {}
            Verdict::Broken(broken) => {
                let values =
                    names.iter().filter_map(|name| Some((*name, self.variables.get(*name)?)));
                let message = broken.message.as_deref();
                diagnostics.push(say::not_valid(message, values, condition.span));
            }
            Verdict::Unclear(error) => {
                diagnostics.push(say::expression(&error, condition.span_of(error.range)));
            }
        }
    }

    fn declared_near(&self, name: &Name) -> Option<Advice> {
        let known = self.document.variables.keys().map(|name| &**name);
        nearest(name, known).map(|near| Advice::meant(format!("var.{name}"), format!("var.{near}")))
    }
}

impl Types for Checker<'_> {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let help = match root {
            Root::Var(name) => {
                return self.variables.get(name).map(|variable| variable.ty.clone()).ok_or_else(
                    || {
                        let message = format!("there is no variable `{name}`");
                        match self.declared_near(name) {
                            Some(advice) => Unresolved::advised(message, advice),
                            None => Unresolved { message, help: None, meant: None },
                        }
                    },
                );
            }
            Root::Local(_) => "write out what the local says",
            _ => "write var.NAME",
        };
        let message = "a validation sees only variables".to_owned();
        Err(Unresolved::advised(message, help))
    }
}

fn reads_a_file(range: Range) -> ExprError {
    ExprError {
        range,
        message: "a validation reads no files".to_owned(),
        help: Some("hold the value against a variable, or write the text out".to_owned()),
        meant: None,
    }
}
