//! The objects inside bodies and answers.

use crate::names::{singular, snake};
use crate::shape::{Kind, Properties, Shape, Shapes};

/// The names of keys that contain an object and are no attributes of it.
const ENVELOPES: [&str; 6] = ["data", "result", "item", "object", "resource", "response"];
/// The names of lists of objects, the best first.
const LISTS: [&str; 8] =
    ["items", "data", "results", "result", "values", "records", "objects", "resources"];

/// An object, and its place in a body or an answer.
#[derive(Clone, Default)]
pub(crate) struct Found<'a> {
    /// The key that contains the object; none if the object is the body itself.
    pub(crate) at: Option<&'a str>,
    pub(crate) properties: Properties<'a>,
}

/// The objects in the bodies and answers of all calls.
pub(crate) struct Objects<'a> {
    pub(crate) create: Found<'a>,
    pub(crate) update: Option<Found<'a>>,
    pub(crate) listed: Found<'a>,
    pub(crate) read: Option<Found<'a>>,
    /// The object in the answer to a create; none if it shows none.
    pub(crate) created: Option<Found<'a>>,
    /// The object in the answer to an update; none if it shows none.
    pub(crate) updated: Option<Found<'a>>,
}

/// Returns the object in an answer or a body; none if there is no object.
pub(crate) fn object<'a>(
    shapes: &Shapes<'a>,
    shape: Shape<'a>,
    nouns: &[String],
) -> Option<Found<'a>> {
    if shape.kind() != Kind::Object {
        return None;
    }
    let is_envelope = |name: &str| {
        let word = snake(name).unwrap_or_default();
        let is_noun = nouns.first().is_some_and(|noun| is_form_of(&word, noun));
        is_noun || ENVELOPES.contains(&word.as_str())
    };
    let has_key =
        ["id", "name", "uuid", "key"].iter().any(|key| shape.properties.contains_key(key));
    let envelopes =
        shape.properties.iter().filter(|(name, _)| is_envelope(name) && !name.contains('.'));
    let inner = envelopes.filter_map(|(name, property)| {
        let inner = shapes.of_property(property);
        let is_object = inner.kind() == Kind::Object && !inner.properties.is_empty();
        is_object.then_some((*name, inner))
    });
    let mut inner = inner.filter(|_| !has_key);
    Some(match (inner.next(), inner.next()) {
        (Some((name, inner)), None) => Found { at: Some(name), properties: inner.properties },
        _ => Found { at: None, properties: shape.properties },
    })
}

/// Returns true if a word is a noun, or its singular: `records` and `record`, `dns_record` and `record`.
fn is_form_of(word: &str, noun: &str) -> bool {
    let (one, noun) = (singular(word), singular(noun));
    one == noun || noun.ends_with(&format!("_{one}")) || one.ends_with(&format!("_{noun}"))
}

/// Returns the objects of a list and the place of the list, or the reason that there is none.
pub(crate) fn listed<'a>(
    shapes: &Shapes<'a>,
    shape: &Shape<'a>,
    nouns: &[String],
) -> Result<Found<'a>, &'static str> {
    if shape.kind() == Kind::List {
        return Ok(Found { at: None, properties: items(shapes, shape).unwrap_or_default() });
    }
    if shape.kind() != Kind::Object {
        return Err("no schema tells what its list shows");
    }
    let lists = shape.properties.iter().filter(|(name, _)| !name.contains('.'));
    let lists = lists.filter_map(|(name, property)| {
        let below = shapes.of_property(property);
        let properties = (below.kind() == Kind::List).then(|| items(shapes, &below)).flatten()?;
        Some(Found { at: Some(*name), properties })
    });
    let mut lists: Vec<Found<'a>> = lists.collect();
    let rank = |found: &Found<'a>| {
        let word = found.at.and_then(snake).unwrap_or_default();
        match nouns.first() {
            Some(noun) if is_form_of(&word, noun) => 0,
            _ => LISTS.iter().position(|name| *name == word).map_or(usize::MAX, |at| at + 1),
        }
    };
    lists.sort_by_key(rank);
    let is_clear = lists.len() == 1 || lists.first().is_some_and(|found| rank(found) < usize::MAX);
    match lists.into_iter().next() {
        Some(found) if is_clear => Ok(found),
        Some(_) => Err("its list shows several lists of objects"),
        None => Err("its list shows no list of objects"),
    }
}

/// Returns the properties of the items of a list of objects.
fn items<'a>(shapes: &Shapes<'a>, list: &Shape<'a>) -> Option<Properties<'a>> {
    let item = shapes.of(list.items?);
    (item.kind() == Kind::Object && !item.properties.is_empty()).then_some(item.properties)
}
