//! Resources of modules in residuals: there `module.x["eu"].value.a` is always a block, and never an output.

use crate::address::{Block, ModulePath, Name};
use crate::expression::visit::change;
use crate::expression::{Expr, Kind, Root};
use crate::value::Value;

/// Replaces each reference to a resource of a module by the block.
pub(super) fn resources(expr: &mut Expr) {
    change(expr, &mut |part| {
        let Some(name) = module_of(part) else { return true };
        let mut rest = Vec::new();
        take_steps(part, &mut rest);
        let block = block(&name, &mut rest);
        *part = rest.into_iter().rev().fold(Expr::nowhere(Kind::Root(block)), Step::onto);
        // The remaining indexes may contain such references, too.
        true
    });
}

/// Returns the name of the module that a chain of attributes and indexes begins with.
fn module_of(mut expr: &Expr) -> Option<Name> {
    while let Kind::Attribute(base, _) | Kind::Index(base, _) = &expr.kind {
        expr = base;
    }
    if let Kind::Root(Root::Module(name)) = &expr.kind { Some(name.clone()) } else { None }
}

/// One step of a chain.
enum Step {
    Attribute(Name),
    Index(Box<Expr>),
}

impl Step {
    fn onto(base: Expr, step: Self) -> Expr {
        let base = Box::new(base);
        Expr::nowhere(match step {
            Self::Attribute(name) => Kind::Attribute(base, name),
            Self::Index(index) => Kind::Index(base, index),
        })
    }
}

/// Takes the steps off a chain, the last first.
fn take_steps(expr: &mut Expr, steps: &mut Vec<Step>) {
    let mut expr = std::mem::replace(expr, Expr::literal(Value::Null));
    loop {
        let (base, step) = match expr.kind {
            Kind::Attribute(base, name) => (base, Step::Attribute(name)),
            Kind::Index(base, index) => (base, Step::Index(index)),
            _ => return,
        };
        steps.push(step);
        expr = *base;
    }
}

/// Returns the root of a chain that begins with the module `name`; removes the steps that lead to it.
fn block(name: &Name, steps: &mut Vec<Step>) -> Root {
    let mut path = ModulePath::root().join(name, take_key(steps).as_deref());
    while let Some(first) = take_attribute(steps) {
        let is_data = &*first == "data";
        let Some(ty) = (if is_data { take_attribute(steps) } else { Some(first) }) else { break };
        let Some(name) = take_attribute(steps) else { break };
        if is_data || &*ty != "module" {
            return Root::Resource(Block { module: path, is_data, ty, name });
        }
        path = path.join(&name, take_key(steps).as_deref());
    }
    Root::Module(name.clone())
}

fn take_key(steps: &mut Vec<Step>) -> Option<Name> {
    let Some(Step::Index(index)) = steps.last() else { return None };
    let Kind::Literal(Value::String(key)) = &index.kind else { return None };
    let key = key.clone();
    steps.pop();
    Some(key)
}

fn take_attribute(steps: &mut Vec<Step>) -> Option<Name> {
    let Some(Step::Attribute(name)) = steps.last() else { return None };
    let name = name.clone();
    steps.pop();
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::super::residual;

    #[test]
    fn what_is_printed_of_a_resource_in_a_module_reads_back() {
        for text in [
            "module.x.value.a.id",
            "module.x.data.value.a.id",
            "data.value.a[\"k\"].id",
            "module.x[\"eu\"].module.y.value.a[\"k\"].id",
            "[module.x.value.a.list[module.y.value.b.index]]",
        ] {
            let expr = residual(text).unwrap();
            assert!(!format!("{expr:?}").contains("Module("), "{expr:?}");
            assert_eq!(expr.to_string(), text);
        }
    }
}
