//! The JSON Schema of a spec, in draft 7, which editors of TOML read.
//!
//! It says what can be said of one file without computing anything: tables, keys, attributes and plain values. Any
//! value may also be a text with an expression, but where the spec takes none.

mod attributes;
mod forms;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::Name;
use engine::config::keys::TABLES;
use engine::schema::ProviderSchema;
use serde_json::{Map, Value, json};

/// The name of the file that holds the schema, beside the spec.
pub const FILE: &str = "plumb.schema.json";
/// The first line of a spec that tells editors where the schema is.
pub const FIRST_LINE: &str = "#:schema ./plumb.schema.json";

/// The types and settings that a schema is about.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// The schemas of the provider instances.
    pub providers: BTreeMap<Name, Arc<ProviderSchema>>,
    /// The settings of each provider instance.
    pub settings: BTreeMap<Name, Vec<String>>,
    /// True if a provider cannot be used, so that other types than the known ones may be right.
    pub is_open: bool,
}

/// The JSON Schema of a spec with these providers.
pub fn spec_schema(described: &Described) -> Value {
    let tables: Map<String, Value> = TABLES
        .iter()
        .map(|table| (table.name.to_owned(), tables::table(table, described)))
        .collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Plumb spec",
        "type": "object",
        "properties": tables,
        "additionalProperties": false,
        "definitions": forms::definitions(),
    })
}

/// With a description; taplo shows it in place of the title.
fn described(mut schema: Value, description: &str) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".to_owned(), description.into());
    }
    schema
}
