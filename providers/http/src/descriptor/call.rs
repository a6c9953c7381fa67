//! Reads calls: `rest: GET /things/${id}` and `graphql: mutation save(input: ${sends})`.

use engine::expression::parse::{Dialect, expression};
use engine::expression::{Kind, Root};

use super::Context;
use super::api::path;
use super::diagnostics;
use super::model::{Argument, CallModel, ListCall, Method, Paging, ReadCall, ReadList, Request};
use super::reader::{Keys, Node, Reader};
use crate::codec::is_graphql_name;
use crate::template::{PathTemplate, ValueTemplate};

/// The name of the values that a phase sends.
const SENDS: &str = "sends";

/// Reads a call's text.
pub(super) fn call(reader: &mut Reader, context: &Context, node: Node<'_>) -> Option<CallModel> {
    let text = reader.text(node, "call")?;
    let span = reader.span(node.span());
    let Some((api, rest)) = text.split_once(':') else {
        reader.push(diagnostics::bad_call(span, "it names no API"));
        return None;
    };
    let api = api.trim();
    if !context.apis.contains_key(api) {
        reader.push(diagnostics::unknown_name(span, "API", api, &context.api_names()));
        return None;
    }
    match request(rest.trim()) {
        Ok(request) => Some(CallModel { api: api.into(), request, span }),
        Err(reason) => {
            reader.push(diagnostics::bad_call(span, &reason));
            None
        }
    }
}

fn request(text: &str) -> Result<Request, String> {
    let (word, rest) = text.split_once(' ').ok_or("there is no method")?;
    let rest = rest.trim();
    let method = match word {
        "query" => return graphql(rest, false),
        "mutation" => return graphql(rest, true),
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => return Err(format!("`{other}` is no method")),
    };
    let path = PathTemplate::parse(rest).map_err(|error| error.message)?;
    Ok(Request::Rest { method, path })
}

fn graphql(text: &str, mutation: bool) -> Result<Request, String> {
    let (fields, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((fields, rest)) => {
            (fields, rest.strip_suffix(')').ok_or("the bracket is not closed")?)
        }
    };
    let fields: Vec<String> = fields.trim().split('.').map(str::to_owned).collect();
    if let Some(field) = fields.iter().find(|field| !is_graphql_name(field)) {
        return Err(format!("`{field}` is no name in GraphQL"));
    }
    let parts = split(arguments).into_iter().filter(|part| !part.trim().is_empty());
    let arguments = parts.map(argument).collect::<Result<_, _>>()?;
    Ok(Request::Graphql { mutation, fields, arguments })
}

fn argument(text: &str) -> Result<(String, Argument), String> {
    let (name, value) = text.split_once(':').ok_or("an argument has no colon")?;
    let (name, value) = (name.trim(), value.trim());
    if !is_graphql_name(name) {
        return Err(format!("`{name}` is no name in GraphQL"));
    }
    let template = if value.starts_with("${") {
        ValueTemplate::parse(value).map_err(|error| error.message)?
    } else {
        ValueTemplate(expression(value, Dialect::Names).map_err(|error| error.message)?)
    };
    let is_sends = matches!(&template.0.kind, Kind::Root(Root::Named(root)) if &**root == SENDS);
    let value = if is_sends { Argument::Sends } else { Argument::Value(template) };
    Ok((name.to_owned(), value))
}

/// Splits arguments at the commas outside brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut quoted) = (Vec::new(), 0_usize, 0, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Reads `list`: a call, a table with a call, or a list of them whose results are joined.
pub(super) fn lists(reader: &mut Reader, context: &Context, node: Node<'_>) -> Vec<ListCall> {
    Reader::items(node)
        .into_iter()
        .filter_map(|item| {
            if item.get_ref().is_str() {
                let call = call(reader, context, item)?;
                return Some(ListCall { call, items: Vec::new(), may_lack: false, paging: None });
            }
            let mut keys = Keys::of(reader, item, "list")?;
            let call = keys.must(reader, "call").and_then(|node| call(reader, context, node));
            let items = keys.text(reader, "items").map(|text| path(&text)).unwrap_or_default();
            let request = call.as_ref().map(|call| &call.request);
            let paging = keys.node("paging").and_then(|node| paging(reader, node, request));
            let may_lack = keys.flag(reader, "may_be_left_out");
            keys.finish(reader);
            Some(ListCall { call: call?, items, may_lack, paging })
        })
        .collect()
}

/// Reads `find`, which has the form of `list`, but only one call.
pub(super) fn search(reader: &mut Reader, context: &Context, node: Node<'_>) -> Option<ListCall> {
    let mut calls = lists(reader, context, node);
    if calls.len() > 1 {
        let (span, label) = (reader.span(node.span()), format!("these are {}", calls.len()));
        let help = "keep the one that shows what a lost create has made";
        reader.push(diagnostics::misfit(span, "a search is one call", &label, help));
    }
    calls.pop()
}

/// Reads `read`: a call, a table with a call, or a list of them whose results are joined.
pub(super) fn reads(reader: &mut Reader, context: &Context, node: Node<'_>) -> Vec<ReadCall> {
    Reader::items(node)
        .into_iter()
        .filter_map(|item| {
            if item.get_ref().is_str() {
                let call = call(reader, context, item)?;
                return Some(ReadCall { call, item: Vec::new(), list: None });
            }
            let mut keys = Keys::of(reader, item, "read")?;
            let call = keys.must(reader, "call").and_then(|node| call(reader, context, node));
            let item = keys.text(reader, "item").map(|text| path(&text)).unwrap_or_default();
            let request = call.as_ref().map(|call| &call.request);
            let list = keys.text(reader, "as").map(|field| ReadList {
                field,
                items: keys.text(reader, "items").map(|text| path(&text)).unwrap_or_default(),
                paging: keys.node("paging").and_then(|node| paging(reader, node, request)),
            });
            keys.finish(reader);
            Some(ReadCall { call: call?, item, list })
        })
        .collect()
}

/// Reads the form of paging of a list. Pages are asked for in the query of a path. A GraphQL call has no
/// query, so paging is an error there: if it were ignored, the rest of a list would look absent.
fn paging(reader: &mut Reader, node: Node<'_>, request: Option<&Request>) -> Option<Paging> {
    if matches!(request, Some(Request::Graphql { .. })) {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(
            span,
            "the paging needs a REST call",
            "a GraphQL list is read in one call",
            "list with a REST call, or with arguments that show all, such as `first: 1000`",
        ));
    }
    let mut keys = Keys::of(reader, node, "paging")?;
    let page = keys.text(reader, "page");
    let first = keys.count(reader, "first");
    let size = keys.text(reader, "size_as");
    let count = keys.count(reader, "size");
    let offset = keys.text(reader, "offset");
    let cursor = keys.text(reader, "cursor");
    let next = keys.text(reader, "next");
    let link = keys.flag(reader, "link");
    keys.finish(reader);
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    if let (Some(offset), None, None, None, false, None) =
        (&offset, &page, &cursor, &next, link, first)
        && let (Some(name), Some(size @ 1..)) = (&size, count)
    {
        let (offset, size) = (offset.clone(), (name.clone(), number(size)));
        return Some(Paging::Offset { offset, size });
    }
    match (page.filter(|_| offset.is_none()), cursor, next, link) {
        (Some(page), None, None, false) => Some(Paging::Page {
            page,
            first: first.map_or(1, number),
            size: size.zip(count.map(number)),
        }),
        (None, Some(cursor), Some(next), false) => {
            Some(Paging::Cursor { cursor, next: path(&next) })
        }
        (None, None, None, true) => Some(Paging::Link),
        _ => {
            let span = reader.span(node.span());
            reader.push(diagnostics::misfit(
                span,
                "unknown kind of paging",
                "it mixes them, or lacks a part",
                "write `{ page = \"page\", size_as = \"limit\", size = 100 }`, \
                 `{ offset = \"offset\", size_as = \"limit\", size = 100 }`, \
                 `{ cursor = \"cursor\", next = \"meta.next\" }` or `{ link = true }`",
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_explained() {
        for (text, reason) in [
            ("FETCH /x", "`FETCH` is no method"),
            ("GET", "there is no method"),
            ("GET things", "begins with no slash"),
            ("query a b", "is no name in GraphQL"),
            ("mutation save(input: 1", "not closed"),
            ("mutation save(input)", "no colon"),
            ("mutation save(in put: 1)", "is no name in GraphQL"),
        ] {
            let found = request(text).unwrap_err();
            assert!(found.contains(reason), "{text}: {found}");
        }
    }

    #[test]
    fn graphql_calls() {
        let Request::Graphql { mutation, fields, arguments } =
            request("mutation account.save(input: ${sends}, id: ${id})").unwrap()
        else {
            panic!("a GraphQL call");
        };
        assert!(mutation);
        assert_eq!(fields, ["account", "save"]);
        assert!(matches!(arguments[0].1, Argument::Sends));
        assert!(matches!(arguments[1].1, Argument::Value(_)));
    }
}
