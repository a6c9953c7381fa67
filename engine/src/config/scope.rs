//! The values of variables, locals and files, for all code that evaluates expressions of a spec.
//!
//! The planner adds resources and `each`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{LocalConfig, Variable};
use crate::address::{Block, Name, local_shown};
use crate::expression::evaluate::{Scope, evaluate_telling};
use crate::expression::visit::roots;
use crate::expression::{Expr, Root};
use crate::value::Datum;

/// The values of locals, each computed when it is first asked for.
///
/// A local has the same value in all places, because it sees no `each`. So one set of values serves all
/// scopes of a run, as long as the resources that locals refer to are the same in all of them.
#[derive(Debug)]
pub struct Locals<'a> {
    exprs: &'a BTreeMap<Name, LocalConfig>,
    values: RefCell<BTreeMap<Name, Result<Datum, String>>>,
    /// The locals that cannot be computed, maybe because of a secret.
    over_secret: RefCell<BTreeSet<Name>>,
    busy: RefCell<BTreeSet<Name>>,
}

impl<'a> Locals<'a> {
    /// The locals of a config.
    pub fn new(exprs: &'a BTreeMap<Name, LocalConfig>) -> Self {
        let (values, busy) = (RefCell::default(), RefCell::default());
        Self { exprs, values, over_secret: RefCell::default(), busy }
    }

    /// Returns the value of a local; `scope` gives the values that it refers to, including other locals.
    pub fn get(&self, name: &Name, scope: &dyn Scope) -> Result<Datum, String> {
        if let Some(value) = self.values.borrow().get(name) {
            return value.clone();
        }
        if !self.exprs.contains_key(name) {
            return Err(format!("there is no local value `{name}`"));
        }
        if self.busy.borrow().contains(name) {
            return Err(format!("`{}` refers to itself", local_shown(name)));
        }
        // The locals that it refers to are computed first, so a long chain of locals needs no deep stack.
        for name in self.order(name) {
            self.busy.borrow_mut().insert(name.clone());
            let local = &self.exprs[&name];
            let value = evaluate_telling(&local.value.expr, scope);
            if value.as_ref().is_err_and(|failure| failure.over_secret) {
                self.over_secret.borrow_mut().insert(name.clone());
            }
            let value = value.map_err(|failure| failure.error.to_string());
            let value = value.and_then(|value| local.typed(value));
            let value = value.map_err(|error| format!("in `{}`: {error}", local_shown(&name)));
            self.busy.borrow_mut().remove(&name);
            self.values.borrow_mut().insert(name, value);
        }
        self.values
            .borrow()
            .get(name)
            .cloned()
            .unwrap_or_else(|| Err(format!("`{}` refers to itself", local_shown(name))))
    }

    /// Returns true if a local cannot be computed, maybe because of a secret.
    pub fn fails_over_a_secret(&self, root: &Root) -> bool {
        matches!(root, Root::Local(name) if self.over_secret.borrow().contains(name))
    }

    /// Returns the expression that a local is computed from.
    pub fn source(&self, name: &Name) -> Option<Arc<Expr>> {
        self.exprs.get(name).map(|local| Arc::new(local.value.expr.clone()))
    }

    /// Returns the locals that a local needs and that are not known yet, each after those that it needs
    /// itself.
    fn order(&self, name: &Name) -> Vec<Name> {
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        let mut stack = vec![(name.clone(), false)];
        while let Some((name, is_ready)) = stack.pop() {
            if is_ready {
                order.push(name);
                continue;
            }
            let known = self.values.borrow().contains_key(&name);
            let Some(value) = self.exprs.get(&name).filter(|_| !known) else { continue };
            if !seen.insert(name.clone()) {
                continue;
            }
            stack.push((name, true));
            roots(&value.value.expr, &mut |root, _| {
                if let Root::Local(other) = root {
                    stack.push((other.clone(), false));
                }
            });
        }
        order
    }
}

/// A scope with variables, locals and files, and without values that only a run finds out.
#[derive(Debug)]
pub struct PlainScope<'a> {
    /// The variables.
    pub variables: &'a BTreeMap<Name, Variable>,
    /// The locals.
    pub locals: Locals<'a>,
    /// The contents of files.
    pub files: &'a BTreeMap<String, Arc<str>>,
}

impl Scope for PlainScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match root {
            Root::Var(name) => match self.variables.get(name) {
                Some(variable) => Ok(variable.value.clone()),
                None => Err(format!("there is no variable `{name}`")),
            },
            Root::Local(name) => self.locals.get(name, self),
            Root::Named(name) => Err(format!("unknown name `{name}`")),
            Root::Module(name) => {
                Err(format!("only `var` and `local` are known here, not the module `{name}`"))
            }
            Root::EachKey | Root::EachValue => {
                Err("`each` is not available here: it needs a `for_each`".to_owned())
            }
            Root::Resource(block) => self.resource(block, None),
        }
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        Err(format!("only `var` and `local` are known here, not the resource `{block}`"))
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        Ok(if let Root::Local(name) = root { self.locals.source(name) } else { None })
    }

    fn fails_over_a_secret(&self, root: &Root) -> bool {
        self.locals.fails_over_a_secret(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.files.get(path).cloned().ok_or_else(|| format!("the file `{path}` was not read"))
    }
}
