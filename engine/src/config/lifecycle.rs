//! The `lifecycle` of a resource or a data block.

use std::collections::BTreeSet;

use super::checker::{Checker, place};
use super::conditions::{self, Condition, Wording};
use super::constant::literal_key;
use super::names::Word;
use super::{Item, Lifecycle, SpecExpr, diagnostics as say, keys};
use crate::address::{Block, Name};
use crate::expression::{Expr, Kind, Root};
use crate::schema::TypeSchema;
use crate::types::Type;

/// Reads and checks a `lifecycle`; `schema` is none if the resource's type is not known.
pub(super) fn lifecycle(
    checker: &mut Checker<'_>,
    block: &Block,
    item: &Item,
    schema: Option<&TypeSchema>,
) -> Lifecycle {
    let mut lifecycle = Lifecycle::default();
    if checker.is_broken(&item.value) {
        return lifecycle;
    }
    let Kind::Map(entries) = &item.value.expr.kind else {
        checker.push(say::not_a_table("lifecycle", item.value.span));
        return lifecycle;
    };
    let file = item.value.span.file;
    let known = if block.is_data { keys::DATA_LIFECYCLE } else { keys::LIFECYCLE };
    for (key, value) in entries {
        let Some(name) = literal_key(key) else { continue };
        if !keys::has(known, name) {
            let at = place(file, key.range);
            checker.push(say::unknown_key(name, "`lifecycle`", at, &keys::names(known)));
            continue;
        }
        let own = conditions::entry(&item.value, (key, value));
        let value = own.value.clone();
        let flag = match &**name {
            "enabled" => &mut lifecycle.enabled,
            "prevent_destroy" => &mut lifecycle.prevent_destroy,
            "allow_data_loss" => &mut lifecycle.allow_data_loss,
            "retain" => &mut lifecycle.retain,
            "create_before_destroy" => &mut lifecycle.create_before_destroy,
            "ignore_changes" => {
                lifecycle.ignore_changes = attributes(checker, name, &value, schema);
                continue;
            }
            "allow_unknown" => {
                lifecycle.allow_unknown = attributes(checker, name, &value, schema);
                continue;
            }
            "replace_triggered_by" => {
                lifecycle.replace_triggered_by = triggers(checker, block, &value);
                continue;
            }
            "precondition" => {
                lifecycle.preconditions = preconditions(checker, block, &own);
                continue;
            }
            "postcondition" => {
                lifecycle.postconditions = postconditions(checker, block, &own, schema);
                continue;
            }
            _ => continue,
        };
        checker.expect(&value, &Type::Boolean);
        *flag = Some(value);
    }
    lifecycle
}

fn wording(key: &'static str, one: &'static str, block: &Block) -> Wording {
    let kind = if block.is_data { "data" } else { "resource" };
    Wording {
        key,
        one,
        whose: format!("{one} of `{block}`"),
        form: format!("[[{kind}.{}.{}.lifecycle.{key}]]", block.ty, block.name),
    }
}

fn preconditions(checker: &mut Checker<'_>, block: &Block, item: &Item) -> Vec<Condition> {
    conditions::of_item(checker, item, &wording("precondition", "a precondition", block))
}

/// Reads the postconditions, which see the object as `self`.
fn postconditions(
    checker: &mut Checker<'_>,
    block: &Block,
    item: &Item,
    schema: Option<&TypeSchema>,
) -> Vec<Condition> {
    let ty = schema.map_or(Type::Any, TypeSchema::object_type);
    let outside = checker.view.words.len();
    checker.view.words.push(Word { name: "self", ty: Some(ty) });
    let wording = wording("postcondition", "a postcondition", block);
    let conditions = conditions::of_item(checker, item, &wording);
    checker.view.words.truncate(outside);
    conditions
}

/// Returns the attributes that a list names.
fn attributes(
    checker: &mut Checker<'_>,
    key: &str,
    value: &SpecExpr,
    schema: Option<&TypeSchema>,
) -> BTreeSet<Name> {
    let texts = checker.constant_texts(&format!("`{key}`"), value);
    let mut names = BTreeSet::new();
    for (name, at) in texts {
        match schema {
            Some(schema) if !schema.attributes.contains_key(&name) => {
                let known = schema.attributes.keys().map(|name| &**name);
                checker.push(say::unknown_attribute(&schema.name, &name, at, known));
            }
            _ => {
                names.insert(name);
            }
        }
    }
    names
}

/// Returns the references of `replace_triggered_by`.
fn triggers(checker: &mut Checker<'_>, block: &Block, value: &SpecExpr) -> Vec<SpecExpr> {
    let Kind::List(items) = &value.expr.kind else {
        checker.push(say::not_references(value.span));
        return Vec::new();
    };
    let mut triggers = Vec::new();
    for item in items {
        let trigger = SpecExpr { span: place(value.span.file, item.range), expr: item.clone() };
        match base(item) {
            Some(other) if other.is_data => checker.push(say::trigger_of_data(trigger.span)),
            Some(other) if other != block => {
                checker.infer(&trigger);
                triggers.push(trigger);
            }
            Some(_) => checker.push(say::own_trigger(trigger.span)),
            None => checker.push(say::not_references(trigger.span)),
        }
    }
    triggers
}

/// Returns the resource if an expression names its object, an attribute of it, or a part of one; else none.
fn base(expr: &Expr) -> Option<&Block> {
    let mut expr = expr;
    loop {
        match &expr.kind {
            Kind::Root(Root::Resource(block)) => return Some(block),
            Kind::Attribute(base, _) | Kind::Index(base, _) => expr = base,
            _ => return None,
        }
    }
}
