//! The form of a JSON value: its description, and the check of a value against it.

use serde_json::{Map, Value, json};

/// The form of a JSON value.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    kind: Kind,
    nullable: bool,
    note: &'static str,
}

#[derive(Debug, Clone)]
enum Kind {
    Any,
    Flag,
    Integer {
        min: Option<i64>,
        max: Option<i64>,
    },
    Number {
        min: Option<f64>,
    },
    Text {
        min: usize,
        max: Option<usize>,
        pattern: Option<&'static Pattern>,
    },
    OneOf(Vec<&'static str>),
    List {
        of: Box<Shape>,
        min: usize,
        max: Option<usize>,
        unique: bool,
    },
    Map {
        names: Option<&'static Pattern>,
        of: Box<Shape>,
    },
    Object {
        fields: Vec<Field>,
        closed: bool,
        min: usize,
    },
    Either(Vec<Shape>),
    /// A shape that the description lists under a name of its own.
    Named {
        name: &'static str,
        of: Box<Shape>,
    },
}

/// A field of an object.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    name: &'static str,
    shape: Shape,
    required: bool,
}

/// A rule for texts: a regular expression for readers, and a function for the check.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) expression: &'static str,
    pub(crate) holds: fn(&str) -> bool,
    /// The end of the message about a text that breaks the rule: "must …".
    pub(crate) rule: &'static str,
}

/// Texts that are not blank.
pub(crate) const NOT_BLANK: &Pattern =
    &Pattern { expression: r"\S", holds: |text| !text.trim().is_empty(), rule: "not be blank" };

/// Texts without a zero byte. A process cannot be started with another one.
pub(crate) const NO_ZERO: &Pattern = &Pattern {
    expression: r"^[^\u0000]*$",
    holds: |text| !text.contains('\0'),
    rule: "have no zero byte",
};

/// Names that an environment variable can have.
pub(crate) const VARIABLE: &Pattern = &Pattern {
    expression: r"^[^=\u0000]+$",
    holds: |text| !text.is_empty() && !text.contains(['=', '\0']),
    rule: "be the name of a variable",
};

fn shape(kind: Kind) -> Shape {
    Shape { kind, nullable: false, note: "" }
}

/// Returns the shape of any JSON value.
pub(crate) fn any() -> Shape {
    shape(Kind::Any)
}

/// Returns the shape of true or false.
pub(crate) fn flag() -> Shape {
    shape(Kind::Flag)
}

/// Returns the shape of a whole number.
pub(crate) fn integer() -> Shape {
    shape(Kind::Integer { min: None, max: None })
}

/// Returns the shape of a whole number from 0 to the largest of 32 bits.
pub(crate) fn count() -> Shape {
    integer().between(0, i64::from(i32::MAX))
}

/// Returns the shape of a number.
pub(crate) fn number() -> Shape {
    shape(Kind::Number { min: None })
}

/// Returns the shape of a text.
pub(crate) fn text() -> Shape {
    shape(Kind::Text { min: 0, max: None, pattern: None })
}

/// Returns the shape of a text that is one of these.
pub(crate) fn one_of(texts: &[&'static str]) -> Shape {
    shape(Kind::OneOf(texts.to_vec()))
}

/// Returns the shape of a list.
pub(crate) fn list(of: Shape) -> Shape {
    shape(Kind::List { of: Box::new(of), min: 0, max: None, unique: false })
}

/// Returns the shape of a list of texts.
pub(crate) fn texts() -> Shape {
    list(text())
}

/// Returns the shape of an environment: an object of texts, with names of variables.
pub(crate) fn environment() -> Shape {
    let of = Box::new(text().like(NO_ZERO));
    shape(Kind::Map { names: Some(VARIABLE), of })
}

/// Returns the shape of an object. Fields that it does not name are ignored.
pub(crate) fn object(fields: impl IntoIterator<Item = Field>) -> Shape {
    shape(Kind::Object { fields: fields.into_iter().collect(), closed: false, min: 0 })
}

/// Returns the shape of a value that has one of these shapes.
pub(crate) fn either(shapes: impl IntoIterator<Item = Shape>) -> Shape {
    shape(Kind::Either(shapes.into_iter().collect()))
}

/// Returns a shape that the description lists under a name of its own.
pub(crate) fn named(name: &'static str, of: Shape) -> Shape {
    shape(Kind::Named { name, of: Box::new(of) })
}

/// Returns a required field.
pub(crate) fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

/// Returns an optional field.
pub(crate) fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

impl Shape {
    /// Allows null too.
    pub(crate) fn or_null(mut self) -> Shape {
        self.nullable = true;
        self
    }

    /// Adds a sentence for readers of the description.
    pub(crate) fn note(mut self, note: &'static str) -> Shape {
        self.note = note;
        self
    }

    /// Sets the range of a whole number.
    pub(crate) fn between(mut self, least: i64, most: i64) -> Shape {
        if let Kind::Integer { min, max } = &mut self.kind {
            (*min, *max) = (Some(least), Some(most));
        }
        self
    }

    /// Sets a least number, a least length of a text or a list, or a least count of fields.
    pub(crate) fn at_least(mut self, least: u32) -> Shape {
        match &mut self.kind {
            Kind::Integer { min, .. } => *min = Some(i64::from(least)),
            Kind::Number { min } => *min = Some(f64::from(least)),
            Kind::Text { min, .. } | Kind::List { min, .. } | Kind::Object { min, .. } => {
                *min = least as usize;
            }
            _ => {}
        }
        self
    }

    /// Sets a least number with a fraction.
    pub(crate) fn from(mut self, least: f64) -> Shape {
        if let Kind::Number { min } = &mut self.kind {
            *min = Some(least);
        }
        self
    }

    /// Sets the greatest length of a text or a list.
    pub(crate) fn at_most(mut self, most: usize) -> Shape {
        if let Kind::Text { max, .. } | Kind::List { max, .. } = &mut self.kind {
            *max = Some(most);
        }
        self
    }

    /// Sets a rule for a text.
    pub(crate) fn like(mut self, rule: &'static Pattern) -> Shape {
        if let Kind::Text { pattern, .. } = &mut self.kind {
            *pattern = Some(rule);
        }
        self
    }

    /// Forbids equal elements in a list.
    pub(crate) fn unique(mut self) -> Shape {
        if let Kind::List { unique, .. } = &mut self.kind {
            *unique = true;
        }
        self
    }

    /// Makes an object refuse fields that it does not name.
    pub(crate) fn closed(mut self) -> Shape {
        if let Kind::Object { closed, .. } = &mut self.kind {
            *closed = true;
        }
        self
    }

    /// Returns the fields of an object, also of a named one.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Object { fields, .. } => fields,
            Kind::Named { of, .. } => of.fields(),
            _ => &[],
        }
    }

    /// Adds fields to an object.
    pub(crate) fn and(mut self, more: impl IntoIterator<Item = Field>) -> Shape {
        if let Kind::Object { fields, .. } = &mut self.kind {
            fields.extend(more);
        }
        self
    }

    /// Allows null in optional fields of an object; it means the same as leaving the field out.
    pub(crate) fn null_is_absent(mut self) -> Shape {
        if let Kind::Object { fields, .. } = &mut self.kind {
            let optional = fields.iter_mut().filter(|field| !field.required);
            optional.for_each(|field| field.shape.nullable = true);
        }
        self
    }

    /// Reads the texts of a query string as a JSON value, which is then checked like a body.
    pub(crate) fn read_texts(&self, given: &[String]) -> Value {
        let first = given.first().map_or("", String::as_str);
        let plain = || Value::from(first);
        match &self.kind {
            Kind::Flag => match first {
                "true" | "1" => Value::Bool(true),
                "false" | "0" => Value::Bool(false),
                _ => plain(),
            },
            Kind::Integer { .. } => first.parse::<i64>().map_or_else(|_| plain(), Value::from),
            Kind::List { of, .. } => {
                let parts = given.iter().flat_map(|text| text.split(',')).map(str::to_owned);
                parts.map(|part| of.read_texts(&[part])).collect()
            }
            _ => plain(),
        }
    }

    /// Returns each fault of a value with its place; the list is empty if the value has this shape.
    pub(crate) fn faults(&self, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.find_faults(value, "", &mut faults);
        faults
    }

    fn find_faults(&self, value: &Value, place: &str, faults: &mut Vec<String>) {
        if value.is_null() && self.nullable {
            return;
        }
        let rule = match (&self.kind, value) {
            (Kind::Any, _) => None,
            (Kind::Flag, value) => (!value.is_boolean()).then(|| "be true or false".to_owned()),
            (Kind::Integer { min, max }, value) => broken_integer_rule(value, *min, *max),
            (Kind::Number { min }, value) => broken_number_rule(value, *min),
            (Kind::Text { min, max, pattern }, value) => match value.as_str() {
                Some(text) => broken_text_rule(text, *min, *max, *pattern),
                None => Some("be a string".to_owned()),
            },
            (Kind::OneOf(known), value) => {
                let is_known = value.as_str().is_some_and(|text| known.contains(&text));
                (!is_known).then(|| format!("be one of {}", known.join(", ")))
            }
            (Kind::List { of, min, max, unique }, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    of.find_faults(item, &format!("{place}[{at}]"), faults);
                }
                broken_list_rule(items, *min, *max, *unique)
            }
            (Kind::List { .. }, _) => Some("be a list".to_owned()),
            (Kind::Map { names, of }, Value::Object(fields)) => {
                for (name, value) in fields {
                    if let Some(names) = names.filter(|names| !(names.holds)(name)) {
                        faults.push(format!("a name in {place} must {}", names.rule));
                    }
                    of.find_faults(value, &inside(place, name), faults);
                }
                None
            }
            (Kind::Object { fields, closed, min }, Value::Object(given)) => {
                check_fields(fields, *closed, given, place, faults);
                (given.len() < *min).then(|| format!("have at least {min} fields"))
            }
            (Kind::Map { .. } | Kind::Object { .. }, _) => Some("be an object".to_owned()),
            (Kind::Either(shapes), value) => {
                // The faults against the shape that fits best are the most useful ones.
                let found = shapes.iter().map(|shape| shape.faults(value));
                let closest = found.min_by_key(Vec::len).unwrap_or_default();
                faults.extend(closest.into_iter().map(|fault| inside(place, &fault)));
                None
            }
            (Kind::Named { of, .. }, value) => {
                of.find_faults(value, place, faults);
                None
            }
        };
        let place = if place.is_empty() { "the body" } else { place };
        faults.extend(rule.map(|rule| format!("{place} must {rule}")));
    }

    /// Returns the shape as JSON Schema. Named shapes are put into `components`, and the schema
    /// refers to them.
    pub(crate) fn schema(&self, components: &mut Map<String, Value>) -> Value {
        let mut schema = self.kind.schema(components);
        if self.nullable {
            schema = or_null(schema);
        }
        if !self.note.is_empty() {
            schema["description"] = Value::from(self.note);
        }
        schema
    }
}

impl Kind {
    fn schema(&self, components: &mut Map<String, Value>) -> Value {
        match self {
            Kind::Any => json!({}),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Integer { min, max } => {
                let bounds = [("minimum", json!(min)), ("maximum", json!(max))];
                with(json!({ "type": "integer" }), &bounds)
            }
            Kind::Number { min } => with(json!({ "type": "number" }), &[("minimum", json!(min))]),
            Kind::Text { min, max, pattern } => {
                let min = (*min > 0).then_some(min);
                let pattern = pattern.map(|pattern| json!(pattern.expression));
                let bounds = [
                    ("minLength", json!(min)),
                    ("maxLength", json!(max)),
                    ("pattern", json!(pattern)),
                ];
                with(json!({ "type": "string" }), &bounds)
            }
            Kind::OneOf(known) => json!({ "type": "string", "enum": known }),
            Kind::List { of, min, max, unique } => {
                let base = json!({ "type": "array", "items": of.schema(components) });
                let (min, unique) = ((*min > 0).then_some(min), unique.then_some(true));
                let bounds = [
                    ("minItems", json!(min)),
                    ("maxItems", json!(max)),
                    ("uniqueItems", json!(unique)),
                ];
                with(base, &bounds)
            }
            Kind::Map { names, of } => {
                let of = of.schema(components);
                let base = json!({ "type": "object", "additionalProperties": of });
                let names = names.map(|names| json!({ "pattern": names.expression }));
                with(base, &[("propertyNames", json!(names))])
            }
            Kind::Object { fields, closed, min } => {
                let base = object_schema(fields, components);
                let (closed, min) = (closed.then_some(false), (*min > 0).then_some(min));
                let bounds =
                    [("additionalProperties", json!(closed)), ("minProperties", json!(min))];
                with(base, &bounds)
            }
            Kind::Either(shapes) => {
                let shapes: Vec<_> = shapes.iter().map(|shape| shape.schema(components)).collect();
                json!({ "oneOf": shapes })
            }
            Kind::Named { name, of } => {
                let schema = of.schema(components);
                components.insert((*name).to_owned(), schema);
                json!({ "$ref": format!("#/components/schemas/{name}") })
            }
        }
    }
}

fn object_schema(fields: &[Field], components: &mut Map<String, Value>) -> Value {
    let required = fields.iter().filter(|field| field.required).map(|field| field.name);
    let required: Vec<_> = required.collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), field.shape.schema(components)))
        .collect();
    let required = (!required.is_empty()).then_some(required);
    let base = json!({ "type": "object", "properties": properties });
    with(base, &[("required", json!(required))])
}

fn broken_integer_rule(value: &Value, min: Option<i64>, max: Option<i64>) -> Option<String> {
    let Some(number) = whole(value) else { return Some("be a whole number".to_owned()) };
    match (min, max) {
        (Some(min), Some(max)) if number < min || number > max => {
            Some(format!("be between {min} and {max}, not {number}"))
        }
        (Some(min), None) if number < min => Some(format!("be at least {min}, not {number}")),
        _ => None,
    }
}

fn broken_number_rule(value: &Value, min: Option<f64>) -> Option<String> {
    let Some(number) = value.as_f64() else { return Some("be a number".to_owned()) };
    let min = min.filter(|min| number < *min)?;
    Some(format!("be at least {min}, not {number}"))
}

fn broken_text_rule(
    text: &str,
    min: usize,
    max: Option<usize>,
    pattern: Option<&Pattern>,
) -> Option<String> {
    let length = text.chars().count();
    if min == 1 && length == 0 {
        return Some("not be empty".to_owned());
    }
    if length < min {
        return Some(format!("have at least {min} characters"));
    }
    if let Some(max) = max.filter(|max| length > *max) {
        return Some(format!("have at most {max} characters"));
    }
    let broken = pattern.filter(|pattern| !(pattern.holds)(text))?;
    Some(broken.rule.to_owned())
}

fn broken_list_rule(
    items: &[Value],
    min: usize,
    max: Option<usize>,
    unique: bool,
) -> Option<String> {
    let twice = || items.iter().enumerate().any(|(at, item)| items[..at].contains(item));
    if min == 1 && items.is_empty() {
        return Some("not be empty".to_owned());
    }
    if items.len() < min {
        return Some(format!("have at least {min} elements"));
    }
    if let Some(max) = max.filter(|max| items.len() > *max) {
        return Some(format!("have at most {max} elements"));
    }
    (unique && twice()).then(|| "have no element twice".to_owned())
}

impl Field {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

fn check_fields(
    fields: &[Field],
    closed: bool,
    given: &Map<String, Value>,
    place: &str,
    faults: &mut Vec<String>,
) {
    for field in fields {
        match given.get(field.name) {
            Some(value) => field.shape.find_faults(value, &inside(place, field.name), faults),
            None if field.required => {
                faults.push(format!("{} is required", inside(place, field.name)));
            }
            None => {}
        }
    }
    if closed {
        let unknown =
            given.keys().filter(|name| !fields.iter().any(|field| field.name == name.as_str()));
        faults.extend(unknown.map(|name| format!("there is no field {}", inside(place, name))));
    }
}

/// Returns the place of a field inside of another field.
fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// Returns a whole number; `None` for another value. In JSON 200.0 is a whole number too.
fn whole(value: &Value) -> Option<i64> {
    let fraction = value.as_f64().filter(|float| float.fract() == 0.0);
    #[expect(clippy::cast_possible_truncation, reason = "a cast to i64 saturates")]
    value.as_i64().or(fraction.map(|float| float as i64))
}

/// Adds the bounds that are not null to a schema.
fn with(mut schema: Value, bounds: &[(&str, Value)]) -> Value {
    for (name, bound) in bounds.iter().filter(|(_, bound)| !bound.is_null()) {
        schema[*name] = bound.clone();
    }
    schema
}

fn or_null(mut schema: Value) -> Value {
    let kind = schema.get("type").cloned();
    match kind {
        Some(kind) => {
            schema["type"] = json!([kind, "null"]);
            if let Some(known) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                known.push(Value::Null);
            }
            schema
        }
        None => json!({ "anyOf": [schema, { "type": "null" }] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Shape {
        object([
            must("name", text().at_least(1).at_most(3)),
            must("size", integer().between(10, 20)),
            may("kind", one_of(&["A", "B"])),
            may("env", environment()),
            may("ids", texts().unique()),
        ])
        .closed()
    }

    #[test]
    fn values_are_checked_with_the_place_of_each_fault() {
        let check = |value: Value, expected: &[&str]| {
            assert_eq!(volume().faults(&value), expected, "{value}");
        };
        check(json!({ "name": "x", "size": 10.0, "env": { "A": "b" } }), &[]);
        check(json!([]), &["the body must be an object"]);
        check(
            json!({ "name": "", "size": 9 }),
            &["name must not be empty", "size must be between 10 and 20, not 9"],
        );
        check(
            json!({ "name": "x", "size": 10, "kind": "C", "ids": ["a", "a"] }),
            &["kind must be one of A, B", "ids must have no element twice"],
        );
        check(
            json!({ "name": "x", "size": 1.5, "env": { "A=": 1 }, "more": 1 }),
            &[
                "size must be a whole number",
                "a name in env must be the name of a variable",
                "env.A= must be a string",
                "there is no field more",
            ],
        );
        assert!(
            volume()
                .null_is_absent()
                .faults(&json!({ "name": "x", "size": 10, "kind": null }))
                .is_empty()
        );
    }

    #[test]
    fn schemas_say_what_is_checked() {
        let mut components = Map::new();
        let shape = named("Volume", volume()).or_null();
        let schema = shape.schema(&mut components);
        assert_eq!(schema["anyOf"][0]["$ref"], "#/components/schemas/Volume");
        let volume = &components["Volume"];
        assert_eq!(volume["required"], json!(["name", "size"]));
        assert_eq!(
            volume["properties"]["size"],
            json!({ "type": "integer", "minimum": 10, "maximum": 20 })
        );
        assert_eq!(volume["additionalProperties"], false);
    }
}
