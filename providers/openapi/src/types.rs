//! The type of a value in a descriptor's words, such as `list(string)`.

use serde_json::Value as Json;

use crate::names::{camel, snake};
use crate::shape::{Kind, Property, Shape, Shapes};

/// The deepest nesting of a type in a descriptor.
const DEPTH_MAX: usize = 5;
/// The longest text of a type, in bytes. A longer one is not readable.
const LENGTH_MAX: usize = 1500;

/// The most values in one type: with more, its text is too long anyway.
const VALUES_MAX: usize = 400;

/// The schemas on the way to a value, and the number of values so far.
#[derive(Default)]
struct Walk {
    trail: Vec<*const Json>,
    values: usize,
}

/// The rule that makes wire names from names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Same,
    Camel,
}

impl Naming {
    /// Returns the wire name for a name.
    pub(crate) fn wire(self, name: &str) -> String {
        match self {
            Self::Same => name.to_owned(),
            Self::Camel => camel(name),
        }
    }

    /// Returns the name in an object type for a wire name; none if there is none.
    fn field(self, wire: &str) -> Option<String> {
        match self {
            Self::Same => Some(wire.to_owned()),
            Self::Camel => {
                let name = snake(wire).filter(|name| self.wire(name) == wire);
                name.or_else(|| (!wire.contains('_')).then(|| wire.to_owned()))
            }
        }
    }
}

/// Writes types as text.
pub(crate) struct Types<'a, 'b> {
    pub(crate) shapes: &'b Shapes<'a>,
    pub(crate) naming: Naming,
    /// True for values that a spec gives: their objects may have required fields.
    pub(crate) is_given: bool,
}

impl<'a> Types<'a, '_> {
    /// Returns the type of a property.
    pub(crate) fn of(&self, property: &Property<'a>) -> String {
        let text = self.below(property, 0, &mut Walk::default());
        if text.len() > LENGTH_MAX { "any".to_owned() } else { text }
    }

    fn text(&self, shape: &Shape<'a>, depth: usize, walk: &mut Walk) -> String {
        match shape.kind() {
            Kind::Text => "string".to_owned(),
            Kind::Integer => "integer".to_owned(),
            Kind::Number => "number".to_owned(),
            Kind::Boolean => "boolean".to_owned(),
            Kind::Any => "any".to_owned(),
            Kind::List => {
                let item = shape.items.map(|items| Property::of(items, false));
                let item = item.map_or("any".to_owned(), |item| self.below(&item, depth, walk));
                let word = if shape.is_unique { "set" } else { "list" };
                format!("{word}({item})")
            }
            Kind::Object => self.object(shape, depth, walk),
        }
    }

    /// Returns the type of the value of a property; a type that contains itself becomes any.
    fn below(&self, property: &Property<'a>, depth: usize, walk: &mut Walk) -> String {
        let places: Vec<*const Json> = property
            .schemas
            .iter()
            .map(|schema| std::ptr::from_ref(self.shapes.document.resolve(schema)))
            .collect();
        let is_circle = places.iter().any(|place| walk.trail.contains(place));
        if depth == DEPTH_MAX || walk.values == VALUES_MAX || is_circle {
            return "any".to_owned();
        }
        walk.values += 1;
        let length = walk.trail.len();
        walk.trail.extend(places);
        let text = self.text(&self.shapes.of_property(property), depth + 1, walk);
        walk.trail.truncate(length);
        text
    }

    fn object(&self, shape: &Shape<'a>, depth: usize, walk: &mut Walk) -> String {
        if shape.properties.is_empty() {
            let Some(rest) = shape.rest.filter(|rest| rest.is_object()) else {
                return "any".to_owned();
            };
            let item = self.below(&Property::of(rest, false), depth, walk);
            return format!("map({item})");
        }
        if shape.rest.is_some_and(|rest| rest.as_object().is_some_and(|it| !it.is_empty())) {
            return "any".to_owned();
        }
        let mut fields = Vec::new();
        let mut length = 0;
        for (wire, property) in &shape.properties {
            let Some(name) = self.naming.field(wire) else { return "any".to_owned() };
            let mark = if property.is_required && self.is_given { "" } else { "?" };
            let field = format!("{}{mark} = {}", quoted(&name), self.below(property, depth, walk));
            length += field.len();
            if length > LENGTH_MAX {
                return "any".to_owned();
            }
            fields.push(field);
        }
        format!("object{{{}}}", fields.join(", "))
    }
}

/// Returns the name of a field, in quotes if it is no plain word.
fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_plain) {
        return name.to_owned();
    }
    Json::from(name).to_string()
}

/// Returns true if a type is as exact as it can be.
pub(crate) fn is_typed(ty: &str) -> bool {
    ty != "any" && ty != "list(any)" && ty != "map(any)" && ty != "set(any)"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::Document;

    fn ty(schema: &Json, naming: Naming) -> String {
        let schemas = json!({
            "tree": {"type": "object", "properties": {"below": {"$ref": "#/schemas/tree"}, "name": {"type": "string"}}},
            "all": {"allOf": [{"$ref": "#/schemas/all"}, {"type": "integer"}]},
            "schema": schema,
        });
        let root = json!({"openapi": "3.1.0", "paths": {}, "schemas": schemas});
        let document = Document::read(&root.to_string()).unwrap();
        let shapes = Shapes::new(&document);
        let property = Property::of(document.at(&["schemas", "schema"]), false);
        Types { shapes: &shapes, naming, is_given: true }.of(&property)
    }

    #[test]
    fn schemas_in_words() {
        for (schema, text) in [
            (json!({"type": ["string", "null"]}), "string"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "integer"),
            (json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}), "number"),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
                "any",
            ),
            (json!({"enum": ["a", "b"]}), "string"),
            (
                json!({"type": "array", "uniqueItems": true, "items": {"type": "number"}}),
                "set(number)",
            ),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), "map(string)"),
            (json!({"type": "object"}), "any"),
            (json!({"$ref": "#/schemas/tree"}), "object{below? = any, name? = string}"),
            (json!({"$ref": "#/schemas/all"}), "integer"),
            (json!({"$ref": "#/schemas/none"}), "any"),
            (
                json!({"required": ["a b"], "properties": {"a b": {"type": "string"}, "c": {"type": "boolean"}}}),
                "object{\"a b\" = string, c? = boolean}",
            ),
            (
                json!({"oneOf": [
                    {"type": "object", "required": ["kind", "a"], "properties": {"kind": {"enum": ["x"]}, "a": {"type": "string"}}},
                    {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["y"]}}},
                ]}),
                "object{a? = string, kind = string}",
            ),
        ] {
            assert_eq!(ty(&schema, Naming::Same), text, "{schema}");
        }
    }

    #[test]
    fn fields_have_names_that_lead_to_the_wire() {
        let schema =
            json!({"properties": {"dataCenter": {"type": "string"}, "cpuCPU": {"type": "string"}}});
        assert_eq!(ty(&schema, Naming::Camel), "object{cpuCPU? = string, data_center? = string}");
        let schema = json!({"properties": {"a_b": {"type": "string"}}});
        assert_eq!(ty(&schema, Naming::Camel), "any");
    }
}
