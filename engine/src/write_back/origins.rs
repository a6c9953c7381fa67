//! The origins of a value: the places that an expression takes it from.

use crate::config::{Config, ResourceConfig, SpecExpr};
use crate::diagnostics::Span;
use crate::expression::visit::roots;
use crate::expression::{Expr, Root};

/// The number of definitions that are followed: a local value may be made from others.
const STEPS_MAX: usize = 32;

/// A place that a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The name of the place, such as "variable `env`".
    pub(super) name: String,
    /// The place of the declaration; none if there is none.
    pub(super) span: Option<Span>,
}

/// Returns the variables, local values, `for_each` and resources that an expression is made from, the direct
/// ones first.
pub(super) fn origins(
    config: &Config,
    resource: &ResourceConfig,
    expr: &Expr,
    at: Span,
) -> Vec<Origin> {
    let mut found: Vec<Origin> = Vec::new();
    let mut open = vec![SpecExpr { expr: expr.clone(), span: at }];
    while let Some(next) = open.pop() {
        roots(&next.expr, &mut |root, _| {
            let Some((origin, made_of)) = origin(config, resource, root) else { return };
            if found.len() < STEPS_MAX && !found.contains(&origin) {
                found.push(origin);
                open.extend(made_of.cloned());
            }
        });
    }
    found
}

/// Returns the origin that a root names, with the expression that makes it.
fn origin<'c>(
    config: &'c Config,
    resource: &'c ResourceConfig,
    root: &Root,
) -> Option<(Origin, Option<&'c SpecExpr>)> {
    let origin = |name: String, span: Option<Span>| Origin { name, span };
    match root {
        Root::Var(name) => {
            let span = config.variables.get(name).map(|variable| variable.span);
            Some((origin(format!("variable `{name}`"), span), None))
        }
        Root::Local(name) => {
            let value = config.locals.get(name).map(|local| &local.value);
            let shown = crate::address::local_shown(name);
            Some((origin(format!("`{shown}`"), value.map(|value| value.span)), value))
        }
        Root::EachKey | Root::EachValue => {
            let value = resource.for_each.as_ref();
            let span = value.map(|value| value.span);
            Some((origin("`for_each`".to_owned(), span), value))
        }
        Root::Resource(block) => {
            let span = config.resources.get(block).map(|other| other.header);
            Some((origin(format!("`{block}`"), span), None))
        }
        Root::Module(name) => Some((origin(format!("module `{name}`"), None), None)),
        Root::Named(_) => None,
    }
}
