//! The paging of a list, found in the parameters and the answer of the call that lists.

use serde_json::Value as Json;

use crate::operation::{Operation, parameter_schema};
use crate::shape::{Kind, Properties, Shape, Shapes};

/// The paging of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    /// The answer is the whole list.
    None,
    /// Parameters of the call's query, and the value of `paging`.
    Known { query: Option<String>, value: String },
    /// The list has pages, and the document does not say how to ask for them.
    Unknown(String),
}

const PAGES: [&str; 4] = ["page", "page_number", "pageNumber", "p"];
const OFFSETS: [&str; 4] = ["offset", "skip", "start", "from"];
const SIZES: [&str; 12] = [
    "per_page",
    "limit",
    "page_size",
    "pageSize",
    "perPage",
    "size",
    "page_limit",
    "max_results",
    "maxResults",
    "count",
    "take",
    "page[size]",
];
const CURSORS: [&str; 14] = [
    "cursor",
    "page_token",
    "pageToken",
    "after",
    "starting_after",
    "marker",
    "next_token",
    "nextToken",
    "continue",
    "continuation_token",
    "page_cursor",
    "pageCursor",
    "startingAfter",
    "next",
];
const NEXT: [&str; 12] = [
    "next_cursor",
    "nextCursor",
    "next_page_token",
    "nextPageToken",
    "next_token",
    "nextToken",
    "next_page",
    "cursor",
    "continue",
    "next",
    "after",
    "endCursor",
];
/// The size of a page if the document gives no bound.
const SIZE: u64 = 100;
/// The largest page size that a descriptor asks for.
const SIZE_MAX: u64 = 1000;

/// Returns the paging of a list.
pub(crate) fn paging<'a>(shapes: &Shapes<'a>, list: Operation<'a>, answer: &Shape<'a>) -> Paging {
    let query = list.parameters_in("query");
    let has = |names: &[&'static str]| {
        names.iter().copied().find(|name| query.iter().any(|(own, _)| own == name))
    };
    let size = has(&SIZES).map(|name| (name, page_size(shapes, list, name)));
    if list.answers_with("Link") {
        let query = size.map(|(name, size)| format!("{name}={size}"));
        return Paging::Known { query, value: "{ link = true }".to_owned() };
    }
    if let Some(cursor) = has(&CURSORS) {
        let query = size.map(|(name, size)| format!("{name}={size}"));
        if let Some(next) = next_place(shapes, &answer.properties) {
            let value = format!("{{ cursor = \"{cursor}\", next = \"{next}\" }}");
            return Paging::Known { query, value };
        }
        if has(&PAGES).is_none() && has(&OFFSETS).is_none() {
            let why =
                format!("the query has `{cursor}`, and no field of the answer is its next value");
            return Paging::Unknown(why);
        }
    }
    let sized =
        size.map_or(String::new(), |(name, size)| format!(", size_as = \"{name}\", size = {size}"));
    if let Some(page) = has(&PAGES) {
        let first = if counts_from_zero(shapes, list, page) { ", first = 0" } else { "" };
        let value = format!("{{ page = \"{page}\"{sized}{first} }}");
        return Paging::Known { query: None, value };
    }
    match (has(&OFFSETS), size) {
        (Some(offset), Some(_)) => {
            Paging::Known { query: None, value: format!("{{ offset = \"{offset}\"{sized} }}") }
        }
        (Some(offset), None) => {
            Paging::Unknown(format!("the query has `{offset}`, and nothing that bounds a page"))
        }
        (None, _) => Paging::None,
    }
}

/// Returns the shape of a parameter of the query.
fn parameter<'a>(shapes: &Shapes<'a>, list: Operation<'a>, name: &str) -> Shape<'a> {
    let parameters = list.parameters_in("query");
    let parameter = parameters.iter().find(|(own, _)| *own == name);
    let schema = parameter.map(|(_, parameter)| parameter_schema(parameter));
    schema.map(|schema| shapes.of(schema)).unwrap_or_default()
}

/// Returns true if the first page has the number 0: it is the default, or without one the least number.
fn counts_from_zero<'a>(shapes: &Shapes<'a>, list: Operation<'a>, page: &str) -> bool {
    let shape = parameter(shapes, list, page);
    let least = shape.default.map_or(shape.bounds.min, Json::as_f64);
    least == Some(0.0)
}

/// Returns the largest size of a page that the document allows.
fn page_size<'a>(shapes: &Shapes<'a>, list: Operation<'a>, name: &str) -> u64 {
    let max = parameter(shapes, list, name).bounds.max.filter(|max| *max >= 1.0 && *max < 1e9);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded")]
    max.map_or(SIZE, |max| (max as u64).min(SIZE_MAX))
}

/// Returns the place of the next cursor in an answer: at its top, or one level below.
fn next_place<'a>(shapes: &Shapes<'a>, properties: &Properties<'a>) -> Option<String> {
    let is_text = |properties: &Properties<'a>, name: &str| {
        properties.get(name).is_some_and(|property| {
            matches!(shapes.of_property(property).kind(), Kind::Text | Kind::Integer)
        })
    };
    if let Some(next) = NEXT.iter().find(|name| is_text(properties, name)) {
        return Some((*next).to_owned());
    }
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    properties.iter().filter(|(name, _)| is_plain(name)).find_map(|(name, property)| {
        let below = shapes.of_property(property);
        let next = NEXT.iter().find(|next| is_text(&below.properties, next))?;
        Some(format!("{name}.{next}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::Document;
    use crate::operation::{Method, operations};

    fn found(query: &[&str], answer: &Json, headers: &Json) -> Paging {
        let parameter = |name: &&str| json!({"in": "query", "name": name, "schema": {"type": "integer", "maximum": 50}});
        let parameters: Vec<Json> = query.iter().map(parameter).collect();
        let answer =
            json!({"headers": headers, "content": {"application/json": {"schema": answer}}});
        let get = json!({"parameters": parameters, "responses": {"200": answer}});
        let root = json!({"openapi": "3.0.0", "paths": {"/a": {"get": get}}});
        let document = Document::read(&root.to_string()).unwrap();
        let shapes = Shapes::new(&document);
        let list = operations(&document)["/a"][&Method::Get];
        let answer = list.answer().map(|schema| shapes.of(schema)).unwrap();
        paging(&shapes, list, &answer)
    }

    #[test]
    fn pages_are_told_by_their_parameters() {
        let list = json!({"type": "array", "items": {"type": "object"}});
        let meta =
            json!({"properties": {"meta": {"properties": {"next_cursor": {"type": "string"}}}}});
        let known = |query: Option<&str>, value: &str| Paging::Known {
            query: query.map(str::to_owned),
            value: value.to_owned(),
        };
        for (query, answer, headers, expected) in [
            (vec![], &list, json!({}), Paging::None),
            (vec!["filter", "limit"], &list, json!({}), Paging::None),
            (
                vec!["page", "per_page"],
                &list,
                json!({}),
                known(None, "{ page = \"page\", size_as = \"per_page\", size = 50 }"),
            ),
            (
                vec!["page", "per_page"],
                &list,
                json!({"Link": {}}),
                known(Some("per_page=50"), "{ link = true }"),
            ),
            (
                vec!["offset", "limit"],
                &list,
                json!({}),
                known(None, "{ offset = \"offset\", size_as = \"limit\", size = 50 }"),
            ),
            (
                vec!["cursor", "limit"],
                &meta,
                json!({}),
                known(Some("limit=50"), "{ cursor = \"cursor\", next = \"meta.next_cursor\" }"),
            ),
        ] {
            assert_eq!(found(&query, answer, &headers), expected, "{query:?}");
        }
        let Paging::Unknown(why) = found(&["starting_after"], &list, &json!({})) else { panic!() };
        assert!(why.contains("`starting_after`"));
    }
}
