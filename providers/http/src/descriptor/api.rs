//! Reading `[api.<name>]`: address, authentication, bounds and the error table.

use std::collections::BTreeSet;

use super::model::{Api, ErrorRow, Meaning, Naming};
use super::reader::{Keys, Node, Reader};
use super::{auth, diagnostics, headers, texts};

/// The number of simultaneous calls to an API if its descriptor gives none.
const CONCURRENCY: usize = 16;
/// The most simultaneous calls to an API, whatever its descriptor gives.
const CONCURRENCY_MAX: usize = 256;

pub(super) fn read(reader: &mut Reader, node: Node<'_>) -> Option<Api> {
    let mut keys = Keys::of(reader, node, "api")?;
    let address =
        keys.must(reader, "address").and_then(|node| texts::source(reader, node, "address"));
    let auth = keys.node("auth").map(|node| auth::read(reader, node)).unwrap_or_default();
    let headers =
        keys.node("headers").map(|node| headers::with_keys(reader, node)).unwrap_or_default();
    let concurrency = keys.count(reader, "concurrency").unwrap_or(CONCURRENCY);
    let body_max = keys.count(reader, "body_max");
    let naming = keys.node("names").and_then(|node| {
        reader.word(node, "names", &[("same", Naming::Same), ("camel", Naming::Camel)])
    });
    let omits_empty = keys.flag(reader, "omits_empty");
    let message_at = keys.node("message").map(|node| reader.texts(node, "message"));
    let rows = keys.node("error").map(Reader::items).unwrap_or_default();
    let errors = rows.into_iter().filter_map(|node| row(reader, node)).collect();
    keys.finish(reader);
    Some(Api {
        address: address?,
        auth,
        headers,
        concurrency: concurrency.clamp(1, CONCURRENCY_MAX),
        body_max,
        naming: naming.unwrap_or(Naming::Same),
        omits_empty,
        message_at: message_at.unwrap_or_default().iter().map(|text| path(text)).collect(),
        errors,
    })
}

/// A dotted path into a body.
pub(super) fn path(text: &str) -> Vec<String> {
    text.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

fn row(reader: &mut Reader, node: Node<'_>) -> Option<ErrorRow> {
    let mut keys = Keys::of(reader, node, "error")?;
    let name = keys.text(reader, "name");
    let matching = keys.text(reader, "match").map(|text| text.to_lowercase());
    let statuses = keys.node("status").map(|node| statuses(reader, node)).unwrap_or_default();
    let meaning = keys.node("kind").and_then(|node| {
        reader.word(
            node,
            "kind",
            &[
                ("rejected", Meaning::Rejected),
                ("not_found", Meaning::NotFound),
                ("throttled", Meaning::Throttled),
                ("unauthenticated", Meaning::Unauthenticated),
                ("in_doubt", Meaning::InDoubt),
                ("done", Meaning::Done),
            ],
        )
    });
    let help = keys.text(reader, "help");
    keys.finish(reader);
    if matching.is_none() && statuses.is_empty() {
        let span = reader.span(node.span());
        reader.push(diagnostics::misfit(
            span,
            "this row would match every error",
            "it has neither `match` nor `status`",
            "say which errors it knows",
        ));
    }
    let (meaning, span) = (meaning.unwrap_or(Meaning::Rejected), reader.span(node.span()));
    Some(ErrorRow { name, statuses, matching, meaning, span, help })
}

fn statuses(reader: &mut Reader, node: Node<'_>) -> BTreeSet<u16> {
    let mut statuses = BTreeSet::new();
    for item in Reader::items(node) {
        let number = reader.json(item, "status").and_then(|json| json.as_u64());
        match number.and_then(|number| u16::try_from(number).ok()) {
            Some(status) if (200..600).contains(&status) => {
                statuses.insert(status);
            }
            _ => reader.wrong(item, "status", "HTTP statuses, 200 to 599"),
        }
    }
    statuses
}
