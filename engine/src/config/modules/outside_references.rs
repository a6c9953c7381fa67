//! References of an expression that stands outside the spec, such as one that a person types.

use crate::address::{Address, Block};
use crate::config::Config;
use crate::expression::visit::change;
use crate::expression::{Expr, Kind, Root};

/// Gives the references to outputs and resources of modules the names that they have in the whole spec. Others, and
/// those to modules that the spec does not have, stay.
pub fn name_from_outside(expr: &mut Expr, config: &Config) {
    change(expr, &mut |part| {
        let Some(kind) = from_outside(part, config) else { return true };
        *part = Expr { kind, range: part.range };
        false
    });
}

fn from_outside(part: &Expr, config: &Config) -> Option<Kind> {
    match &part.kind {
        Kind::Root(Root::Module(name)) => {
            let (outputs, _) = config.locals.get_key_value(&*format!("module.{name}"))?;
            Some(Kind::Root(Root::Local(outputs.clone())))
        }
        Kind::Attribute(..) => {
            let block = block(part)?;
            let is_known =
                config.resources.contains_key(&block) || config.data.contains_key(&block);
            is_known.then_some(Kind::Root(Root::Resource(block)))
        }
        _ => None,
    }
}

/// Returns the block of a module that an expression names, such as `module.x["eu"].value.a`.
fn block(expr: &Expr) -> Option<Block> {
    let mut base = expr;
    while let Kind::Attribute(inner, _) | Kind::Index(inner, _) = &base.kind {
        base = inner;
    }
    if !matches!(base.kind, Kind::Root(Root::Module(_))) {
        return None;
    }
    let address: Address = expr.to_string().parse().ok()?;
    address.key.is_none().then_some(address.block)
}
