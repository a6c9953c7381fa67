//! Reads and checks `parent`: the type below whose objects the objects of a type are.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::Name;
use engine::diagnostics::Span;
use engine::schema::{Identity, SeenIn};
use engine::types::Type;

use super::diagnostics;
use super::model::{AttributeModel, Parent, TypeModel};
use super::reader::{Keys, Node, Reader, named};
use crate::template::names;

/// Reads `{ type = "zone", attributes = { zone = "id" } }`.
pub(super) fn read(reader: &mut Reader, node: Node<'_>) -> Option<Parent> {
    let mut keys = Keys::of(reader, node, "parent")?;
    let ty = keys.must(reader, "type").and_then(|node| reader.text(node, "type"));
    let pairs = keys.must(reader, "attributes");
    let mut attributes = BTreeMap::new();
    for (own, _, node) in named(reader, pairs, "attributes") {
        if let Some(of_parent) = reader.text(node, own) {
            attributes.insert(Name::from(own), Name::from(of_parent));
        }
    }
    keys.finish(reader);
    let span = reader.span(node.span());
    if pairs.is_some() && attributes.is_empty() {
        reader.push(diagnostics::misfit(
            span,
            "a child does not know its parent",
            "`attributes` is empty",
            "name the attribute that holds the parent's id, such as `attributes = { zone = \"id\" }`",
        ));
    }
    Some(Parent { ty: ty?.into(), attributes, span })
}

/// Tells each attribute that repeats a parent's key the type of the parent.
pub(super) fn name_parents(models: &mut BTreeMap<Name, TypeModel>) {
    let keys: BTreeMap<Name, Name> =
        models.iter().map(|(ty, model)| (ty.clone(), model.key.clone())).collect();
    for model in models.values_mut() {
        let Some(parent) = &model.parent else { continue };
        for (own, theirs) in &parent.attributes {
            if let Some(attribute) = model.attributes.get_mut(own)
                && keys.get(&parent.ty) == Some(theirs)
            {
                attribute.schema.parent = Some(parent.ty.clone());
            }
        }
    }
}

/// Marks the attributes that repeat a parent's as shown in lists, whatever their form on the wire.
pub(super) fn show(parent: &Parent, attributes: &mut BTreeMap<Name, AttributeModel>) {
    for name in parent.attributes.keys() {
        if let Some(attribute) = attributes.get_mut(name) {
            attribute.schema.local = false;
            attribute.schema.seen_in = SeenIn::List;
        }
    }
}

/// Checks the parents of all types.
pub(super) fn check(reader: &mut Reader, models: &BTreeMap<Name, TypeModel>) {
    for (name, model) in models {
        let Some(parent) = &model.parent else { continue };
        let Some(of_parent) = models.get(&parent.ty) else {
            let known: Vec<&str> = models.keys().map(|name| &**name).collect();
            reader.push(diagnostics::unknown_name(parent.span, "type", &parent.ty, &known));
            continue;
        };
        if is_own_ancestor(name, models) {
            let summary = format!("type `{name}`: its parents go round in a circle");
            let label = "it stands below itself";
            let help = "take `parent` from the type at the top";
            reader.push(diagnostics::misfit(parent.span, &summary, label, help));
            continue;
        }
        check_attributes(reader, name, model, of_parent);
        check_unique_name(reader, name, model);
    }
}

fn is_own_ancestor(name: &Name, models: &BTreeMap<Name, TypeModel>) -> bool {
    let mut seen = BTreeSet::new();
    let mut at = name;
    while let Some(parent) = models.get(at).and_then(|model| model.parent.as_ref()) {
        if !seen.insert(&parent.ty) {
            break;
        }
        at = &parent.ty;
    }
    seen.contains(name)
}

/// Checks the attributes that a child repeats, and those that the call of its list needs.
fn check_attributes(reader: &mut Reader, name: &Name, model: &TypeModel, of_parent: &TypeModel) {
    let Some(parent) = &model.parent else { return };
    for (own, theirs) in &parent.attributes {
        let types = (type_of(model, own), type_of(of_parent, theirs));
        match types {
            (None, _) => unknown(reader, parent.span, (name, model), own),
            (_, None) => unknown(reader, parent.span, (&parent.ty, of_parent), theirs),
            (Some(one), Some(other)) if one != other => {
                let summary = format!(
                    "type `{name}`: `{own}` is of another type than its parent's `{theirs}`"
                );
                let label = format!("{one} and {other}");
                let help = "give both the same type";
                reader.push(diagnostics::misfit(parent.span, &summary, &label, help));
            }
            _ => {}
        }
    }
    for call in model.list.iter().map(|list| &list.call) {
        for theirs in call.names_of_parent() {
            if type_of(of_parent, &theirs).is_none() {
                unknown(reader, call.span, (&parent.ty, of_parent), &theirs);
            } else if theirs != of_parent.key && !of_parent.is_listed(&theirs) {
                let summary = "`list` cannot be filled in with what no list shows";
                let label = format!("`{theirs}` of a {} does not show in lists", parent.ty);
                let help = "list with `${parent.id}`";
                reader.push(diagnostics::misfit(call.span, summary, &label, help));
            }
        }
    }
}

fn type_of<'a>(model: &'a TypeModel, attribute: &Name) -> Option<&'a Type> {
    model.attributes.get(attribute).map(|attribute| &attribute.schema.ty)
}

/// Reports an attribute that a type lacks.
fn unknown(reader: &mut Reader, span: Span, (ty, model): (&Name, &TypeModel), attribute: &Name) {
    let known: Vec<&str> = model.attributes.keys().map(|name| &**name).collect();
    reader.push(diagnostics::unknown_attribute(span, ty, "`parent`", attribute, &known));
}

/// Refuses a name that is unique only below one parent: it may find another object below another parent.
fn check_unique_name(reader: &mut Reader, name: &Name, model: &TypeModel) {
    let (Identity::UniqueName { attribute }, Some(parent)) = (&model.identity, &model.parent)
    else {
        return;
    };
    let derived = model.attributes.get(attribute).and_then(|it| it.schema.derived.as_ref());
    let used = derived.map(names).unwrap_or_default();
    if parent.attributes.keys().any(|own| used.contains(own)) {
        return;
    }
    let own = parent.attributes.keys().next().map_or("zone", |own| &**own);
    reader.push(diagnostics::misfit(
        parent.span,
        &format!("type `{name}`: its name is unique below one parent only"),
        &format!("`{attribute}` may be the name of an object below another {}", parent.ty),
        &format!(
            "say `name_attribute = \"full_name\"`, with `full_name = {{ type = \"string\", computed = true, derived = \
             \"${{{own}}}|${{{attribute}}}\" }}`"
        ),
    ));
}
