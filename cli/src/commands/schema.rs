//! `plumb schema`: shows the resource types, the attributes of one of them, or the JSON Schema of a spec.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use editor::spec_schema::{Described, spec_schema};
use editor::words;
use engine::diagnostics::nearest;
use engine::expression::Expr;
use engine::schema::{Attribute, OnChange, Price, ProviderSchema, TypeSchema};
use engine::shell;
use render::json;
use serde_json::json;

use crate::args::{Schema, SpecArgs};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::{providers, resolved, stored_state};

pub(crate) fn run(base: &Path, args: &Schema, output: &Output) -> Result<Status, CommandError> {
    if args.spec {
        let described = described(&Folder::new(base, None)?, base)?;
        output.data(&json::pretty(&spec_schema(&described)));
        return Ok(Status::Done);
    }
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
            _ if let Some(help) = of_spec(base, wanted) => error.help(help),
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

/// Returns the advice for a type of a provider that the spec declares; `None` if no such provider has it.
fn of_spec(base: &Path, wanted: &str) -> Option<String> {
    let all = described(&Folder::new(base, None).ok()?, base).ok()?;
    let has = |provider: &ProviderSchema| provider.types.contains_key(wanted);
    let (name, _) = all.providers.iter().find(|(_, provider)| has(provider))?;
    let (name, wanted) = (shell::quoted(name), shell::quoted(wanted));
    Some(format!("the spec declares its provider: `plumb provider show {name} --type {wanted}`"))
}

/// Returns the providers that come with Plumb, and those that the spec of the folder declares, if there is
/// one.
fn described(folder: &Folder, base: &Path) -> Result<Described, CommandError> {
    let mut all = known()?;
    if folder.spec_if_any()?.is_some() {
        let spec = SpecArgs { unset: true, ..SpecArgs::default() };
        let resolved = resolved::read(folder, base, &spec, &stored_state::no_state())?;
        all.providers.extend(resolved.schemas().clone());
        all.settings.extend(resolved.described.settings());
        all.is_open = resolved.described.is_broken();
    }
    Ok(all)
}

/// Returns the providers that come with Plumb.
fn known() -> Result<Described, CommandError> {
    let (providers, settings) = (providers::known_schemas()?, providers::known_settings()?);
    Ok(Described { providers, settings, is_open: false })
}

/// Returns the JSON Schema of a spec that uses the providers that come with Plumb.
pub(super) fn of_every_spec() -> Result<String, CommandError> {
    Ok(json::pretty(&spec_schema(&known()?)))
}

/// Returns the list of types, one per line.
fn list<'a>(types: impl Iterator<Item = &'a Arc<TypeSchema>> + Clone) -> String {
    let width = types.clone().map(|ty| ty.name.len()).max().unwrap_or(0);
    types.fold(String::new(), |mut text, ty| {
        let _ = writeln!(text, "{:width$}  {}", ty.name, ty.description);
        text
    })
}

/// Returns the description of a type with its attributes and rules, for people.
pub(super) fn type_text(ty: &TypeSchema) -> String {
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

/// Returns the facts about an attribute, each in a few words.
fn facts(attribute: &Attribute) -> Vec<String> {
    let mut facts = words::facts(attribute);
    if let Some(allowed) = &attribute.constraint.one_of {
        facts.push(format!("one of {}", allowed.values.join(", ")));
    }
    facts
}

fn type_json(ty: &TypeSchema) -> serde_json::Value {
    let attributes: serde_json::Map<_, _> =
        ty.attributes.iter().map(|(name, a)| (name.to_string(), attribute_json(a))).collect();
    json!({
        "type": *ty.name,
        "description": ty.description,
        "data_only": ty.data_only,
        "attributes": attributes,
        "price": ty.price.as_ref().map(price_json),
        "rules": ty.rules.iter().map(|rule| rule.assert.to_string()).collect::<Vec<_>>(),
    })
}

fn price_json(price: &Price) -> serde_json::Value {
    let text = |expr: &Option<Expr>| expr.as_ref().map(ToString::to_string);
    json!({
        "currency": *price.currency,
        "hourly": text(&price.hourly),
        "monthly": text(&price.monthly),
        "count": text(&price.count),
        "count_max": text(&price.count_max),
        "rates": engine::stored::to_json(&price.rates),
    })
}

fn attribute_json(attribute: &Attribute) -> serde_json::Value {
    let constraint = &attribute.constraint;
    json!({
        "type": attribute.ty.to_string(),
        "description": attribute.description,
        "presence": words::presence(attribute.presence),
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
