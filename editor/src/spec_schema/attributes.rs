//! Resource types and their attributes as schemas.

use engine::config::keys::{DATA, RESOURCE};
use engine::schema::{Attribute, Constraint, OneOf, Presence, SeenIn, TypeSchema};
use engine::stored::to_json;
use engine::types::Type;
use serde_json::{Map, Value, json};

use super::{described, forms};
use crate::words;

/// A block of a resource type.
pub(super) fn resource(ty: &TypeSchema) -> Value {
    let given = || ty.attributes.iter().filter(|(_, it)| it.presence != Presence::Computed);
    let mut properties: Map<String, Value> =
        given().map(|(name, it)| (name.to_string(), attribute(it))).collect();
    // A key of all resources hides an attribute of the same name.
    properties.extend(RESOURCE.iter().map(|key| (key.name.to_owned(), forms::key(key))));
    let needed = given().filter(|(_, it)| it.presence == Presence::Required);
    let needed: Vec<&str> = needed.map(|(name, _)| &**name).collect();
    described(
        json!({
            "type": "object",
            "properties": properties,
            "required": needed.clone(),
            "additionalProperties": false,
            "x-taplo": { "initKeys": needed },
        }),
        &ty.description,
    )
}

/// A data block of a type: every attribute that answers show is a condition.
pub(super) fn data(ty: &TypeSchema) -> Value {
    let shown = ty.attributes.iter().filter(|(_, it)| it.seen_in != SeenIn::Never && !it.local);
    let mut properties: Map<String, Value> =
        shown.map(|(name, it)| (name.to_string(), attribute(it))).collect();
    properties.entry("id").or_insert_with(|| json!({ "type": "string" }));
    properties.extend(DATA.iter().map(|key| (key.name.to_owned(), forms::key(key))));
    let block = json!({
        "type": "object",
        "properties": properties,
        "minProperties": 1,
        "additionalProperties": false,
    });
    described(block, &ty.description)
}

/// A data block of what is no object.
pub(super) fn fetched(ty: &TypeSchema) -> Value {
    let given = || ty.attributes.iter().filter(|(_, it)| it.presence != Presence::Computed);
    let mut properties: Map<String, Value> =
        given().map(|(name, it)| (name.to_string(), attribute(it))).collect();
    let keys = DATA.iter().filter(|key| key.name != "provider");
    properties.extend(keys.map(|key| (key.name.to_owned(), forms::key(key))));
    let needed = given().filter(|(_, it)| it.presence == Presence::Required);
    let needed: Vec<&str> = needed.map(|(name, _)| &**name).collect();
    let block = json!({
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    });
    described(block, &ty.description)
}

/// The value of an attribute.
fn attribute(attribute: &Attribute) -> Value {
    let mut schema = value(&attribute.ty, &attribute.constraint);
    if !attribute.nulls.is_empty() {
        let words: Vec<Value> = attribute.nulls.iter().map(to_json).collect();
        schema = json!({ "anyOf": [schema, { "enum": words }] });
    }
    if let Some(default) = attribute.default.as_ref().filter(|_| !attribute.sensitive) {
        schema["default"] = to_json(default);
    }
    described(schema, &words::attribute(attribute))
}

/// A value of a type, as far as its constraint is about plain values.
fn value(ty: &Type, constraint: &Constraint) -> Value {
    let mut schema = forms::of_type(ty);
    let mut bound = |key: &str, bound: Option<Value>| {
        if let Some(bound) = bound {
            schema[key] = bound;
        }
    };
    bound("minimum", constraint.min.map(number));
    bound("maximum", constraint.max.map(number));
    let (least, most) =
        (constraint.length_min.map(Value::from), constraint.length_max.map(Value::from));
    match ty {
        Type::List(_) | Type::Set(_) => {
            bound("minItems", least);
            bound("maxItems", most);
        }
        Type::Map(_) => {
            bound("minProperties", least);
            bound("maxProperties", most);
        }
        Type::String => return text(constraint, least, most),
        _ => {}
    }
    if let (Type::List(_) | Type::Set(_) | Type::Map(_), Some(one_of)) = (ty, &constraint.one_of) {
        let key = if matches!(ty, Type::Map(_)) { "additionalProperties" } else { "items" };
        schema[key] = listed(one_of);
    }
    schema
}

/// A text: of an expression, the length is not that of its value.
fn text(constraint: &Constraint, least: Option<Value>, most: Option<Value>) -> Value {
    if let Some(one_of) = &constraint.one_of {
        return listed(one_of);
    }
    let mut plain = json!({ "type": "string" });
    if least.is_none() && most.is_none() {
        return plain;
    }
    if let Some(least) = least {
        plain["minLength"] = least;
    }
    if let Some(most) = most {
        plain["maxLength"] = most;
    }
    json!({ "anyOf": [plain, forms::expression()] })
}

/// One of some texts, or several of them where one text may hold several.
fn listed(one_of: &OneOf) -> Value {
    let values: Vec<&str> = one_of.values.iter().map(|value| &**value).collect();
    let mut forms = vec![json!({ "enum": values }), forms::expression()];
    let marks = one_of.separator.iter().map(|mark| literal(mark));
    let starts = one_of.exclusion.iter().map(|mark| format!("^{}", literal(mark)));
    let marks: Vec<String> = marks.chain(starts).collect();
    if !marks.is_empty() {
        forms.push(json!({ "type": "string", "pattern": marks.join("|") }));
    }
    json!({ "anyOf": forms })
}

/// A pattern that stands for a text itself.
fn literal(text: &str) -> String {
    let special = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && !"-,;:_".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A whole number without a fraction.
fn number(bound: f64) -> Value {
    let whole = engine::value::Value::Float(bound).as_integer();
    whole.map_or_else(|| bound.into(), Value::from)
}
