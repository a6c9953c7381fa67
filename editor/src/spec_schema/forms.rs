//! The forms of keys and types as schemas.

use engine::config::keys::{Form, Key};
use engine::types::Type;
use serde_json::{Map, Value, json};

use super::described;

/// The schemas that others refer to.
pub(super) fn definitions() -> Value {
    json!({
        "expression": {
            "description": "A text with an expression: `${var.name}`.",
            "type": "string",
            "pattern": EXPRESSION,
        },
    })
}

/// The pattern of a text with an expression.
const EXPRESSION: &str = r"[$%]\{";

/// A text with an expression.
pub(super) fn expression() -> Value {
    json!({ "$ref": "#/definitions/expression" })
}

/// A value of one JSON type, or a text with an expression.
fn or_expression(ty: &str) -> Value {
    json!({ "type": [ty, "string"], "pattern": EXPRESSION })
}

/// A value of a type, or an expression of one.
pub(super) fn of_type(ty: &Type) -> Value {
    let with = |mut schema: Value, key: &str, value: Value| {
        schema[key] = value;
        schema
    };
    match ty {
        Type::Any | Type::Null => json!({}),
        Type::Boolean => or_expression("boolean"),
        Type::Integer => or_expression("integer"),
        Type::Number => or_expression("number"),
        Type::String => json!({ "type": "string" }),
        Type::List(item) | Type::Set(item) => with(or_expression("array"), "items", of_type(item)),
        Type::Map(item) => with(or_expression("object"), "additionalProperties", of_type(item)),
        Type::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|(name, field)| (name.to_string(), of_type(&field.ty))).collect();
            let needed = fields.iter().filter(|(_, field)| !field.optional);
            let needed: Vec<&str> = needed.map(|(name, _)| &**name).collect();
            let mut schema = or_expression("object");
            schema["properties"] = properties.into();
            schema["required"] = needed.into();
            schema["additionalProperties"] = false.into();
            schema
        }
    }
}

/// The schema of a key's value.
pub(super) fn key(key: &Key) -> Value {
    described(form(key.form), key.description)
}

fn form(form: Form) -> Value {
    let text = || json!({ "type": "string" });
    match form {
        Form::Text | Form::Message | Form::Address | Form::Provider => text(),
        Form::TypeName => {
            let usual =
                ["string", "integer", "number", "boolean", "any", "list(string)", "map(string)"];
            json!({ "type": "string", "anyOf": [{ "enum": usual }, {}] })
        }
        Form::Flag => json!({ "type": "boolean" }),
        Form::Constant | Form::Value => json!({}),
        Form::Constants => json!({ "type": "array" }),
        Form::Addresses | Form::Attributes => json!({ "type": "array", "items": text() }),
        Form::TextMap => json!({ "type": "object", "additionalProperties": text() }),
        Form::Boolean => or_expression("boolean"),
        Form::Condition => json!({ "type": ["string", "boolean"] }),
        Form::References => json!({ "type": "array", "items": expression() }),
        Form::Table(keys) => object(keys),
        Form::Tables(keys) => {
            let one = object(keys);
            json!({ "anyOf": [{ "type": "array", "items": one.clone() }, one] })
        }
    }
}

/// A table with these keys and no others.
pub(super) fn object(keys: &[Key]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|one| (one.name.to_owned(), key(one))).collect();
    let needed = keys.iter().filter(|key| key.is_required).map(|key| key.name);
    let needed: Vec<&str> = needed.collect();
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !needed.is_empty() {
        schema["x-taplo"] = json!({ "initKeys": needed });
        schema["required"] = needed.into();
    }
    schema
}
