//! The tables of a spec as schemas.

use engine::config::keys::{self, Header, TableForm};
use engine::config::{Fetched, backends, provider_choice};
use engine::schema::TypeSchema;
use engine::types::Type;
use serde_json::{Map, Value, json};

use super::{Described, attributes, described as with_description, forms};

/// The pattern of a name.
const NAME: &str = "^[a-z][a-z0-9_-]*$";

/// The schema of a table with all its blocks.
pub(super) fn table(table: &TableForm, described: &Described) -> Value {
    let schema = match (table.name, table.header) {
        ("local", _) => named(&json!({})),
        ("state", _) => state(),
        ("provider", _) => providers(described),
        ("resource", _) => resources(described),
        ("data", _) => data(described, &named(&block(table))),
        (_, Header::Single) => block(table),
        (_, Header::List) => json!({ "type": "array", "items": block(table) }),
        _ => named(&block(table)),
    };
    with_description(schema, table.description)
}

/// One table of a kind.
fn block(table: &TableForm) -> Value {
    let mut schema = forms::object(table.keys);
    if table.is_open {
        schema["additionalProperties"] = true.into();
    }
    with_description(schema, table.description)
}

/// Tables by name.
fn named(one: &Value) -> Value {
    json!({ "type": "object", "patternProperties": { NAME: one }, "additionalProperties": false })
}

fn resources(described: &Described) -> Value {
    let types = described.providers.values().flat_map(|provider| provider.types.values());
    let of = |ty: &std::sync::Arc<TypeSchema>| {
        let blocks = with_description(named(&attributes::resource(ty)), &ty.description);
        (ty.name.to_string(), blocks)
    };
    let types: Map<String, Value> = types.filter(|ty| !ty.data_only).map(of).collect();
    json!({ "type": "object", "properties": types, "additionalProperties": described.is_open })
}

/// Look-ups by type; `other` is the form of what is no object of a provider.
fn data(described: &Described, other: &Value) -> Value {
    let types = described.providers.values().flat_map(|provider| provider.types.values());
    let of = |ty: &std::sync::Arc<TypeSchema>| {
        let blocks = with_description(named(&attributes::data(ty)), &ty.description);
        (ty.name.to_string(), blocks)
    };
    let mut types: Map<String, Value> = types.filter(|ty| ty.remote).map(of).collect();
    types.extend(Fetched::ALL.map(Fetched::schema).map(|ty| {
        let blocks = with_description(named(&attributes::fetched(ty)), &ty.description);
        (ty.name.to_string(), blocks)
    }));
    json!({ "type": "object", "properties": types, "additionalProperties": other })
}

/// The provider instances: one that the spec declares has the settings of its descriptor.
fn providers(described: &Described) -> Value {
    let source = || {
        let keys = keys::PROVIDER_SOURCE.iter();
        keys.map(|key| (key.name.to_owned(), forms::key(key)))
    };
    let instances = described.settings.iter().map(|(name, settings)| {
        let known = settings.iter().map(|key| (key.clone(), setting(key)));
        let known: Map<String, Value> = known.chain(source()).collect();
        (
            // Instances of one block have one table.
            provider_choice::base(name).to_owned(),
            json!({ "type": "object", "properties": known, "additionalProperties": false }),
        )
    });
    let instances: Map<String, Value> = instances.collect();
    let other = json!({
        "type": "object",
        "properties": source().collect::<Map<String, Value>>(),
        "additionalProperties": { "type": "string" },
    });
    json!({
        "type": "object",
        "properties": instances,
        "additionalProperties": other,
    })
}

fn setting(key: &str) -> Value {
    if key == "local" {
        let meaning = "True: the service on this machine.";
        return with_description(json!({ "type": "boolean" }), meaning);
    }
    json!({ "type": "string" })
}

/// `[state]`: the backend decides the other keys.
fn state() -> Value {
    let names: Vec<&str> = backends::names().collect();
    let mut all = Map::new();
    let mut cases = Vec::new();
    for name in &names {
        let settings: Vec<_> = backends::settings(name).collect();
        let of = |it: &backends::Setting| (it.name.to_owned(), plain(it.ty));
        let own: Map<String, Value> = settings.iter().map(of).collect();
        let needed = settings.iter().filter(|it| it.is_required).map(|it| it.name);
        let needed: Vec<&str> = needed.collect();
        let mut keys: Vec<&str> = settings.iter().map(|it| it.name).collect();
        keys.push("backend");
        cases.push(json!({
            "if": { "properties": { "backend": { "const": name } }, "required": ["backend"] },
            "then": { "required": needed, "propertyNames": { "enum": keys } },
        }));
        all.extend(own);
    }
    all.insert("backend".to_owned(), json!({ "enum": names, "default": "file" }));
    json!({
        "type": "object",
        "properties": all,
        "additionalProperties": false,
        "allOf": cases,
    })
}

/// A value of a type without expressions.
fn plain(ty: &Type) -> Value {
    json!({ "type": match ty {
        Type::Integer => "integer",
        Type::Boolean => "boolean",
        _ => "string",
    }})
}
