//! The places of an error's text in the answers of an API.

use std::collections::BTreeMap;

use crate::operation::Operation;
use crate::shape::{Kind, Shape, Shapes};

/// The usual places of an error's text, the best first.
pub(crate) const PLACES: [&str; 12] = [
    "message",
    "error.message",
    "error_description",
    "detail",
    "error",
    "errors.message",
    "reason",
    "msg",
    "errorMessage",
    "error_message",
    "description",
    "title",
];
/// The number of error schemas that are looked at.
const LOOKS_MAX: usize = 200;
/// The number of places that a descriptor names.
const KEPT_MAX: usize = 3;

/// Returns the places in the schemas of errors, the best first; empty if no schema shows one.
pub(crate) fn message_places<'a>(
    shapes: &Shapes<'a>,
    operations: impl Iterator<Item = Operation<'a>>,
) -> Vec<&'static str> {
    let mut found: BTreeMap<usize, &str> = BTreeMap::new();
    for schema in operations.flat_map(Operation::errors).take(LOOKS_MAX) {
        let shape = shapes.of(schema);
        let known = PLACES.iter().enumerate().filter(|(_, place)| has_text(shapes, &shape, place));
        found.extend(known.map(|(rank, place)| (rank, *place)));
    }
    found.into_values().take(KEPT_MAX).collect()
}

/// Returns true if a shape has a text at a place.
fn has_text<'a>(shapes: &Shapes<'a>, shape: &Shape<'a>, place: &str) -> bool {
    let (first, rest) = match place.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (place, None),
    };
    let Some(property) = shape.properties.get(first) else { return false };
    let below = shapes.of_property(property);
    match rest {
        Some(rest) => below.kind() == Kind::Object && has_text(shapes, &below, rest),
        None => below.kind() == Kind::Text,
    }
}
