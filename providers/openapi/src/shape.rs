//! The shape of the values that a schema allows: its alternatives and parts put together.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::document::Document;

/// The most schemas of which one shape is put together.
const PARTS_MAX: usize = 64;
/// The most schemas that are examined for one document, so that schemas that expand without end do not run
/// long.
const LOOKS_MAX: usize = 500_000;

/// The shapes of the schemas of a document.
pub(crate) struct Shapes<'a> {
    pub(crate) document: &'a Document,
    looks_left: Cell<usize>,
}

/// The schemas of one property.
#[derive(Clone, Default)]
pub(crate) struct Property<'a> {
    pub(crate) schemas: Vec<&'a Json>,
    /// True if one of the schemas has to fit, false if all have to.
    is_choice: bool,
    pub(crate) is_required: bool,
}

/// The properties of an object, by name.
pub(crate) type Properties<'a> = BTreeMap<&'a str, Property<'a>>;

/// The values that a schema allows.
#[derive(Clone, Default)]
pub(crate) struct Shape<'a> {
    /// The names of its types, without `null`.
    types: BTreeSet<&'a str>,
    pub(crate) properties: Properties<'a>,
    required: BTreeSet<&'a str>,
    /// The schema of further properties.
    pub(crate) rest: Option<&'a Json>,
    pub(crate) items: Option<&'a Json>,
    pub(crate) is_unique: bool,
    /// The allowed values.
    pub(crate) values: Option<Vec<&'a Json>>,
    pub(crate) default: Option<&'a Json>,
    pub(crate) description: Option<&'a str>,
    pub(crate) format: Option<&'a str>,
    pub(crate) bounds: Bounds,
    pub(crate) access: Access,
    /// True if the values are of several kinds.
    is_mixed: bool,
}

/// The calls that contain a value: all, unless the document excludes some.
#[derive(Clone, Copy, Default)]
pub(crate) struct Access {
    pub(crate) is_read_only: bool,
    pub(crate) is_write_only: bool,
}

/// The bounds of a number, or of the length of a text or a list.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bounds {
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) length_min: Option<u64>,
    pub(crate) length_max: Option<u64>,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Object,
    /// Any value: the kind is not known, or several kinds are allowed.
    Any,
}

impl<'a> Property<'a> {
    pub(crate) fn of(schema: &'a Json, is_required: bool) -> Self {
        Self { schemas: vec![schema], is_choice: false, is_required }
    }
}

impl<'a> Shapes<'a> {
    pub(crate) fn new(document: &'a Document) -> Self {
        Self { document, looks_left: Cell::new(LOOKS_MAX) }
    }

    /// Returns the shape of a schema.
    pub(crate) fn of(&self, schema: &'a Json) -> Shape<'a> {
        self.of_property(&Property::of(schema, false))
    }

    /// Returns the shape of a property.
    pub(crate) fn of_property(&self, property: &Property<'a>) -> Shape<'a> {
        if property.is_choice {
            return self.choice(&property.schemas, &Vec::new());
        }
        let (mut shape, mut seen) = (Shape::default(), Vec::new());
        for schema in &property.schemas {
            self.gather(schema, &mut shape, &mut seen);
        }
        shape.finish()
    }

    /// Returns true if there were too many schemas to examine.
    pub(crate) fn are_exhausted(&self) -> bool {
        self.looks_left.get() == 0
    }

    /// Adds a schema to a shape. `seen` has the schemas that the shape contains already: they add nothing,
    /// and may form a circle.
    fn gather(&self, schema: &'a Json, shape: &mut Shape<'a>, seen: &mut Vec<*const Json>) {
        let node = self.document.resolve(schema);
        let place = std::ptr::from_ref(node);
        let left = self.looks_left.get();
        if left == 0 || seen.len() == PARTS_MAX || seen.contains(&place) || !node.is_object() {
            return;
        }
        self.looks_left.set(left - 1);
        seen.push(place);
        // A reference may have a description beside it.
        shape.add_words(schema);
        shape.add_words(node);
        shape.add_facts(node);
        for part in parts(node, "allOf") {
            self.gather(part, shape, seen);
        }
        for key in ["oneOf", "anyOf"] {
            let alternatives: Vec<&Json> = parts(node, key).collect();
            if !alternatives.is_empty() {
                let choice = self.choice(&alternatives, seen);
                shape.add(choice);
            }
        }
    }

    /// Returns the shape of a value that fits one of several schemas.
    fn choice(&self, schemas: &[&'a Json], seen: &[*const Json]) -> Shape<'a> {
        let (mut shapes, mut places) = (Vec::new(), Vec::new());
        for schema in schemas {
            let node = self.document.resolve(schema);
            let place = std::ptr::from_ref(node);
            if is_null(node) || says_nothing(node) || places.contains(&place) {
                continue;
            }
            places.push(place);
            let mut shape = Shape::default();
            self.gather(schema, &mut shape, &mut seen.to_vec());
            shapes.push(shape.finish());
        }
        match shapes.len() {
            0 => Shape::default(),
            1 => shapes.remove(0),
            _ => united(shapes),
        }
    }
}

fn parts<'a>(node: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    node.get(key).and_then(Json::as_array).into_iter().flatten()
}

/// Returns true if a schema allows only null.
fn is_null(node: &Json) -> bool {
    node.get("type").is_some_and(|ty| ty == "null")
        || node.get("enum").and_then(Json::as_array).is_some_and(|it| it == &[Json::Null])
}

/// Returns true if an alternative only says which properties are required together.
fn says_nothing(node: &Json) -> bool {
    let keys = node.as_object();
    keys.is_some_and(|keys| {
        !keys.is_empty() && keys.keys().all(|key| key == "required" || key == "not")
    })
}

impl<'a> Shape<'a> {
    pub(crate) fn kind(&self) -> Kind {
        if self.is_mixed || self.types.len() > 1 {
            return Kind::Any;
        }
        match self.types.iter().next().copied() {
            Some("string") => Kind::Text,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some("array") => Kind::List,
            Some("object") => Kind::Object,
            Some(_) => Kind::Any,
            None if !self.properties.is_empty() || self.rest.is_some() => Kind::Object,
            None if self.items.is_some() => Kind::List,
            None => self.kind_of_values(),
        }
    }

    /// Returns the kind of a value if only the allowed values are known.
    fn kind_of_values(&self) -> Kind {
        let mut values = self.values.iter().flatten();
        match values.next() {
            Some(first) if first.is_string() && values.all(|it| it.is_string()) => Kind::Text,
            _ => Kind::Any,
        }
    }

    /// Adds the description of a schema if the shape has none.
    fn add_words(&mut self, node: &'a Json) {
        let text = |key: &str| node.get(key).and_then(Json::as_str);
        let flag = |key: &str| node.get(key).and_then(Json::as_bool) == Some(true);
        self.description = self.description.or(text("description")).or(text("title"));
        self.default = self.default.or(node.get("default")).filter(|it| !it.is_null());
        self.access.is_read_only |= flag("readOnly");
        self.access.is_write_only |= flag("writeOnly");
    }

    fn add_facts(&mut self, node: &'a Json) {
        let types = match node.get("type") {
            Some(Json::String(ty)) => vec![ty.as_str()],
            Some(Json::Array(types)) => types.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        self.narrow(types.into_iter().filter(|ty| *ty != "null").collect());
        for (name, schema) in node.get("properties").and_then(Json::as_object).into_iter().flatten()
        {
            let property = self.properties.entry(name).or_default();
            if !property.is_choice {
                property.schemas.push(schema);
            }
        }
        self.required.extend(parts(node, "required").filter_map(Json::as_str));
        let rest = node.get("additionalProperties");
        self.rest = self.rest.or(rest.filter(|it| it.is_object() || **it == Json::Bool(true)));
        self.items = self.items.or(node.get("items").filter(|it| it.is_object()));
        self.is_unique |= node.get("uniqueItems").and_then(Json::as_bool) == Some(true);
        let constant = node.get("const").map(|value| vec![value]);
        let values = node.get("enum").and_then(Json::as_array).map(|it| it.iter().collect());
        self.values = self.values.take().or(constant).or(values);
        self.format = self.format.or(node.get("format").and_then(Json::as_str));
        self.bounds.add(Bounds::of(node));
    }

    /// Adds another shape that has to fit, too.
    fn add(&mut self, other: Self) {
        self.narrow(other.types);
        for (name, property) in other.properties {
            let known = self.properties.entry(name).or_default();
            if known.schemas.is_empty() {
                *known = property;
            } else if !known.is_choice && !property.is_choice {
                known.schemas.extend(property.schemas);
            }
        }
        self.required.extend(other.required);
        self.rest = self.rest.or(other.rest);
        self.items = self.items.or(other.items);
        self.is_unique |= other.is_unique;
        self.values = self.values.take().or(other.values);
        self.default = self.default.or(other.default);
        self.description = self.description.or(other.description);
        self.format = self.format.or(other.format);
        self.bounds.add(other.bounds);
        self.access.is_read_only |= other.access.is_read_only;
        self.access.is_write_only |= other.access.is_write_only;
        self.is_mixed |= other.is_mixed;
    }

    /// Keeps the types that this schema and all before it allow.
    fn narrow(&mut self, types: BTreeSet<&'a str>) {
        if types.is_empty() {
            return;
        }
        if self.types.is_empty() {
            self.types = types;
            return;
        }
        let both: BTreeSet<&str> = self.types.intersection(&types).copied().collect();
        // An integer fits a number, too.
        let is_integer = self.types.union(&types).all(|ty| matches!(*ty, "integer" | "number"));
        match both.is_empty() {
            false => self.types = both,
            true if is_integer => self.types = BTreeSet::from(["integer"]),
            true => self.is_mixed = true,
        }
    }

    /// Marks the properties that are required.
    fn finish(mut self) -> Self {
        for (name, property) in &mut self.properties {
            property.is_required |= self.required.contains(name);
        }
        self
    }
}

/// Returns the shape of a value that has one of several shapes.
fn united(shapes: Vec<Shape<'_>>) -> Shape<'_> {
    let kinds: Vec<Kind> = shapes.iter().map(Shape::kind).collect();
    let first = kinds.first().copied().unwrap_or(Kind::Any);
    let is_number = kinds.iter().all(|kind| matches!(kind, Kind::Integer | Kind::Number));
    if is_number && kinds.iter().any(|kind| *kind != first) {
        return Shape { types: BTreeSet::from(["number"]), ..Shape::default() };
    }
    if first == Kind::Any || kinds.iter().any(|kind| *kind != first) {
        return Shape { is_mixed: true, ..Shape::default() };
    }
    let mut shapes = shapes.into_iter();
    let mut all = shapes.next().unwrap_or_default();
    for shape in shapes {
        all.widen(shape);
    }
    all
}

impl Shape<'_> {
    /// Allows the values of another shape of the same kind, too.
    fn widen(&mut self, other: Self) {
        for (name, property) in &mut self.properties {
            property.is_required &= other.properties.get(name).is_some_and(|it| it.is_required);
        }
        for (name, property) in other.properties {
            let is_new = !self.properties.contains_key(name);
            let known = self.properties.entry(name).or_default();
            for schema in property.schemas {
                if !has_schema(&known.schemas, schema) {
                    known.schemas.push(schema);
                }
            }
            known.is_choice = known.schemas.len() > 1;
            known.is_required &= !is_new;
        }
        self.required.retain(|name| other.required.contains(name));
        let same_items = self.items.is_none_or(|own| other.items.is_none_or(|it| it == own));
        self.is_mixed |= other.is_mixed || !same_items;
        self.rest = self.rest.or(other.rest);
        self.values = match (self.values.take(), other.values) {
            (Some(mut own), Some(others)) => {
                let new: Vec<&Json> = others.into_iter().filter(|it| !own.contains(it)).collect();
                own.extend(new);
                Some(own)
            }
            _ => None,
        };
        self.default = None;
        self.bounds = Bounds::default();
        self.is_unique &= other.is_unique;
        self.access.is_read_only &= other.access.is_read_only;
        self.access.is_write_only &= other.access.is_write_only;
    }
}

/// Returns true if a schema is among others.
fn has_schema(known: &[&Json], schema: &Json) -> bool {
    known.iter().any(|own| std::ptr::eq(*own, schema) || **own == *schema)
}

impl Bounds {
    fn of(node: &Json) -> Self {
        let number = |key: &str| node.get(key).and_then(Json::as_f64);
        let count = |keys: [&str; 2]| keys.iter().find_map(|key| node.get(key)?.as_u64());
        // An exclusive bound can be converted only for whole numbers.
        let is_whole = node.get("type").is_some_and(|ty| ty == "integer");
        let beyond = |key: &str, step: f64| number(key).filter(|_| is_whole).map(|it| it + step);
        let is_open = |key: &str| node.get(key).and_then(Json::as_bool) == Some(true);
        let min = number("minimum").filter(|_| !is_open("exclusiveMinimum"));
        let max = number("maximum").filter(|_| !is_open("exclusiveMaximum"));
        Self {
            min: min.or_else(|| beyond("exclusiveMinimum", 1.0)),
            max: max.or_else(|| beyond("exclusiveMaximum", -1.0)),
            length_min: count(["minLength", "minItems"]).filter(|count| *count > 0),
            length_max: count(["maxLength", "maxItems"]),
        }
    }

    fn add(&mut self, other: Self) {
        self.min = self.min.or(other.min);
        self.max = self.max.or(other.max);
        self.length_min = self.length_min.or(other.length_min);
        self.length_max = self.length_max.or(other.length_max);
    }
}
