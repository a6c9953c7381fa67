//! `plumb schema`: which resource types there are, and what one of them is made of.

use std::fmt::Write as _;
use std::sync::Arc;

use engine::diagnostics::nearest;
use engine::schema::{Attribute, OnChange, Presence, TypeSchema};
use render::json;
use serde_json::json;

use crate::args::Schema;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::providers;

pub(crate) fn run(args: &Schema, output: &Output) -> Result<Status, CommandError> {
    let providers = providers::known_schemas()?;
    let types = || providers.values().flat_map(|provider| provider.types.values());
    let Some(wanted) = &args.ty else {
        let text = if args.form.is_json() {
            json::pretty(&types().map(|ty| type_json(ty)).collect::<Vec<_>>())
        } else {
            list(types())
        };
        output.data(&text);
        return Ok(Status::Done);
    };
    let Some(found) = types().find(|ty| *ty.name == **wanted) else {
        let error = CommandError::new(format!("there is no resource type `{wanted}`"));
        return Err(match nearest(wanted, types().map(|ty| &*ty.name)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("`plumb schema` lists the resource types"),
        });
    };
    output.data(&if args.form.is_json() {
        json::pretty(&type_json(found))
    } else {
        type_text(found)
    });
    Ok(Status::Done)
}

/// The types, one a line.
fn list<'a>(types: impl Iterator<Item = &'a Arc<TypeSchema>> + Clone) -> String {
    let width = types.clone().map(|ty| ty.name.len()).max().unwrap_or(0);
    types.fold(String::new(), |mut text, ty| {
        let _ = writeln!(text, "{:width$}  {}", ty.name, ty.description);
        text
    })
}

fn type_text(ty: &TypeSchema) -> String {
    let mut text = format!("{}: {}\n\nAttributes:\n", ty.name, ty.description);
    let width = ty.attributes.keys().map(|name| name.len()).max().unwrap_or(0);
    for (name, attribute) in &ty.attributes {
        let facts = facts(attribute).join(", ");
        let _ = writeln!(text, "  {name:width$}  {facts}");
        if !attribute.description.is_empty() {
            let _ = writeln!(text, "  {:width$}  {}", "", attribute.description);
        }
    }
    if !ty.rules.is_empty() {
        text.push_str("\nRules:\n");
        for rule in &ty.rules {
            let _ = writeln!(text, "  {}", rule.assert);
        }
    }
    text
}

/// Returns the facts about an attribute, in a few words each.
fn facts(attribute: &Attribute) -> Vec<String> {
    let constraint = &attribute.constraint;
    let mut facts = vec![attribute.ty.to_string(), presence(attribute).to_owned()];
    facts.extend(attribute.unit.as_ref().map(|unit| format!("in {unit}")));
    facts.extend(constraint.min.map(|min| format!("at least {min}")));
    facts.extend(constraint.max.map(|max| format!("at most {max}")));
    if let Some(allowed) = &constraint.one_of {
        facts.push(format!("one of {}", allowed.values.join(", ")));
    }
    let nulls = attribute.nulls.iter().map(engine::stored::to_json);
    facts.extend(nulls.map(|word| format!("{word} for none")));
    if let Some(default) = &attribute.default {
        facts.push(format!("default {}", engine::stored::to_json(default)));
    }
    if attribute.on_change == OnChange::Replace {
        let loss = if attribute.data_loss { ", which loses data" } else { "" };
        facts.push(format!("a change replaces the object{loss}"));
    }
    if attribute.sensitive {
        facts.push("sensitive".to_owned());
    }
    facts.extend(attribute.effect.as_ref().map(|effect| format!("a change {effect}")));
    facts
}

fn presence(attribute: &Attribute) -> &'static str {
    match attribute.presence {
        Presence::Required => "required",
        Presence::Optional => "optional",
        Presence::Computed => "computed",
    }
}

fn type_json(ty: &TypeSchema) -> serde_json::Value {
    let attributes: serde_json::Map<_, _> =
        ty.attributes.iter().map(|(name, a)| (name.to_string(), attribute_json(a))).collect();
    json!({
        "type": *ty.name,
        "description": ty.description,
        "attributes": attributes,
        "rules": ty.rules.iter().map(|rule| rule.assert.to_string()).collect::<Vec<_>>(),
    })
}

fn attribute_json(attribute: &Attribute) -> serde_json::Value {
    let constraint = &attribute.constraint;
    json!({
        "type": attribute.ty.to_string(),
        "description": attribute.description,
        "presence": presence(attribute),
        "sensitive": attribute.sensitive,
        "default": attribute.default.as_ref().map(engine::stored::to_json),
        "replaces": attribute.on_change == OnChange::Replace,
        "unit": attribute.unit,
        "min": constraint.min,
        "max": constraint.max,
        "allowed": constraint.one_of.as_ref()
            .map(|one_of| one_of.values.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "effect": attribute.effect,
    })
}
