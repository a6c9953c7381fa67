//! The conclusions from an answer, or from a missing one.
//!
//! Pure: a status, a body and an error table go in, a kind comes out. In case of doubt the kind says so; only
//! an answer that proves that nothing happened is a refusal.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use provider_port::{Error, Kind};
use serde_json::Value as Json;
use url::Url;

use crate::descriptor::model::{Api, ErrorRow, Meaning};
use crate::masker::Masker;
use crate::retry_after;
use crate::transport::{Broken, Response};
use crate::words::{declared, message, page_heading, status_words};

/// A failed call, with the facts that callers of this module need.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// The name of the row of the error table that matched; none if none did.
    pub(crate) row: Option<Box<str>>,
    /// True if the table says that the object is already as the call was to make it.
    pub(crate) done: bool,
    /// True if a read may be tried again.
    pub(crate) transient: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, row: None, done: false, transient: false }
    }
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { error: Error::new(kind, message), row: None, done: false, transient: false }
    }

    /// Adds the words of the server, masked.
    pub(crate) fn said(mut self, said: String) -> Self {
        self.error = self.error.said(said);
        self
    }

    /// Masks the message with another masker.
    pub(crate) fn masked_by(mut self, masker: &Masker) -> Self {
        self.error.said = self.error.said.map(|said| masker.line(&said).into());
        self
    }

    /// Marks the failure as one that the same call would meet again.
    pub(crate) fn refused(mut self) -> Self {
        self.error.is_refusal = true;
        self
    }

    /// Adds the time for which the API asks to wait.
    fn after(mut self, asked: Option<Duration>) -> Self {
        self.error.retry_after = asked;
        self
    }

    pub(crate) fn transient(mut self) -> Self {
        self.transient = true;
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.error = self.error.help(help);
        self
    }
}

/// The facts about a call that are needed to judge its answer.
pub(crate) struct Context<'a> {
    pub(crate) api: &'a Api,
    /// A description of the call, such as `POST /things`, without values.
    pub(crate) what: &'a str,
    /// Scheme, host and port.
    pub(crate) origin: &'a str,
    /// A sentence that says how to set the key, for an answer that refuses it.
    pub(crate) key_hint: &'a str,
    pub(crate) mutation: bool,
    /// True if the address names an object, so that a 404 is about that object.
    pub(crate) names_object: bool,
    pub(crate) masker: &'a Masker,
}

/// Returns the body of a successful answer, read by `read` (none if it is empty), or the failure.
pub(crate) fn judge<T>(
    context: &Context<'_>,
    answer: &Response,
    read: impl FnOnce(&[u8]) -> serde_json::Result<T>,
) -> Result<Option<T>, Failure> {
    if !(200..300).contains(&answer.status) {
        return Err(refused(context, answer));
    }
    let text = String::from_utf8_lossy(&answer.body);
    if text.trim().is_empty() {
        return Ok(None);
    }
    match read(&answer.body) {
        Ok(json) => Ok(Some(json)),
        Err(end) => Err(unreadable(context, answer, &text, &end)),
    }
}

/// Returns the failure of a success whose body is no JSON. The beginning of a web page is shown, because it
/// shows where the address leads. Any other text may be a truncated answer with the secrets of objects in it.
fn unreadable(
    context: &Context<'_>,
    answer: &Response,
    text: &str,
    end: &serde_json::Error,
) -> Failure {
    let Context { what, origin, masker, .. } = context;
    let is_page = text.trim_start().starts_with('<');
    let form = if is_html(answer, text) { "an HTML page" } else { "a text that is no JSON" };
    let place = if is_page { String::new() } else { format!(" ({})", where_it_ends(text, end)) };
    let message = format!(
        "{what} at {origin} answered {} with {form} where JSON was expected{place}",
        answer.status
    );
    let failure = Failure::new(Kind::InDoubt, message)
        .said(if is_page { masker.line_before_data(text) } else { String::new() })
        .help("check that the address leads to the API and not to a web page or a proxy");
    if is_html(answer, text) { failure } else { failure.transient() }
}

/// Returns the place where a text stops being JSON, without any of its content.
fn where_it_ends(text: &str, end: &serde_json::Error) -> String {
    match end.classify() {
        serde_json::error::Category::Eof => format!("it is cut off after {} bytes", text.len()),
        _ => format!("it is none from line {}, column {} on", end.line(), end.column()),
    }
}

/// Returns the failure of a success that the error table knows as a failure: some APIs answer 200 and
/// describe the refusal in the body. Only the text at `message` is compared, because any other text may
/// belong to an object.
pub(crate) fn told(context: &Context<'_>, answer: &Response, body: &Json) -> Option<Failure> {
    let said = declared(body, context.api)?;
    let named = |row: &&ErrorRow| row.statuses.contains(&answer.status);
    let row = context.api.errors.iter().filter(named).find(|row| fits(row, &said))?;
    let Context { what, origin, .. } = context;
    let message = format!("{what} at {origin} answered {} with an error", answer.status);
    let failure = known(context, row, message).after(retry_after::requested(answer));
    Some(with_words(context, &context.masker.with_body(Some(body)), failure, &said, false))
}

fn is_html(answer: &Response, text: &str) -> bool {
    answer.header("content-type").is_some_and(|form| form.contains("html"))
        || text.trim_start().starts_with('<')
}

/// Returns the failure of an answer that is no success.
fn refused(context: &Context<'_>, answer: &Response) -> Failure {
    let text = String::from_utf8_lossy(&answer.body);
    let json = serde_json::from_slice::<Json>(&answer.body).ok();
    let said = json.as_ref().and_then(|json| message(json, context.api));
    let is_page = said.is_none() && !text.trim().is_empty() && is_html(answer, &text);
    let form = if is_page { " with an HTML page" } else { "" };
    let message = format!(
        "{} at {} answered {}{form}",
        context.what,
        context.origin,
        status_words(answer.status)
    );
    let said = said.unwrap_or_else(|| page_heading(&text).unwrap_or(&text).to_owned());
    let failure = match row(context.api, answer.status, &said) {
        Some(row) => known(context, row, message).after(retry_after::requested(answer)),
        None => by_status(context, answer, is_page, message).after(retry_after::requested(answer)),
    };
    let masker = context.masker.with_body(json.as_ref());
    with_words(context, &masker, failure, &said, answer.status >= 500)
}

/// Adds the words of the server, without the secrets of an object in them. The words about a read, or about a
/// server error, may be about any object and contain it, so only the words before such data are shown.
fn with_words(
    context: &Context<'_>,
    masker: &Masker,
    failure: Failure,
    said: &str,
    breaks: bool,
) -> Failure {
    if context.mutation && !breaks {
        return failure.said(masker.line(said));
    }
    let words = masker.line_before_data(said);
    if !words.is_empty() || said.trim().is_empty() || failure.error.help.is_some() {
        return failure.said(words);
    }
    failure.help(
        "what it said is not shown, because it may hold an object with its secrets; `message` in \
         the descriptor says where an error's text stands",
    )
}

fn by_status(context: &Context<'_>, answer: &Response, is_page: bool, message: String) -> Failure {
    match answer.status {
        401 | 403 => unauthenticated(context, message),
        // A proxy before the API answers with its own page if it does not know the address.
        404 if is_page => Failure::new(Kind::Rejected, message).help(
            "a page is not the API's word, so nothing is known of the object: give an address that leads to the API",
        ),
        404 if context.names_object => Failure::new(Kind::NotFound, message),
        404 => Failure::new(Kind::Rejected, message)
            .help("nothing was changed; check the address and the ids that the object refers to"),
        429 => Failure::new(Kind::Throttled, message),
        410 => Failure::new(Kind::Rejected, message).help(
            "this version of the API was retired and answers no more: use a descriptor for a \
             newer version, or an address that still serves this one",
        ),
        412 if context.mutation && context.names_object => outdated(message),
        400 | 405 | 409 | 412 | 413 | 414 | 415 | 422 | 431 => {
            Failure::new(Kind::Rejected, message)
        }
        300..400 => redirected(context, answer, message),
        408 | 425 | 500..600 => Failure::new(Kind::InDoubt, message).transient(),
        // A status for a mistake of the client leaves a doubt, but a repetition is useless: the same call
        // would get the same answer.
        400..=498 => Failure::new(Kind::InDoubt, message).refused(),
        _ => Failure::new(Kind::InDoubt, message),
    }
}

/// Returns the failure of a condition of a call that does not hold, such as `If-Match` with an old version.
fn outdated(message: String) -> Failure {
    let mut failure = Failure::new(Kind::Rejected, message).help(
        "it changed outside since the plan looked, and nothing was done: plan again, and review the plan",
    );
    failure.error.is_outdated = true;
    failure
}

/// Returns the failure of a redirect. If the same call is to be made at the other address (307, 308), it was
/// not executed here; other redirects may also show the result of the call.
fn redirected(context: &Context<'_>, answer: &Response, message: String) -> Failure {
    let proves = !context.mutation || matches!(answer.status, 307 | 308);
    let kind = if proves { Kind::Rejected } else { Kind::InDoubt };
    let location = answer.header("location").filter(|location| !location.is_empty());
    let place = location.and_then(|location| place(context, location));
    let help = match place {
        Some(place) => format!(
            "it leads to {place}, and redirects are never followed: look whether the call names what \
             is there, and whether the address of the API is right"
        ),
        None => "redirects are never followed: give the address that it leads to".to_owned(),
    };
    Failure::new(kind, message).help(help)
}

/// Returns the target of a redirect as text: a path on the same server, or another server without the path.
/// The paths and queries of other servers may contain anything.
fn place(context: &Context<'_>, location: &str) -> Option<String> {
    let origin = Url::parse(context.origin).ok()?;
    let url = origin.join(location).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let place = if url.origin() == origin.origin() {
        percent_decode_str(url.path()).decode_utf8_lossy().into_owned()
    } else {
        url.origin().ascii_serialization()
    };
    Some(context.masker.line(&place)).filter(|place| !place.is_empty())
}

/// Adds the setting of the key, which the answer cannot name.
fn unauthenticated(context: &Context<'_>, message: String) -> Failure {
    Failure::new(Kind::Unauthenticated, message)
        .help(format!("the key is wrong or lacks a right: {}", context.key_hint))
}

/// Returns the failure of a GraphQL answer with errors. If no row matches, a mutation is in doubt: a resolver
/// may have failed after its effect.
pub(crate) fn graphql_errors(context: &Context<'_>, body: &Json, said: &str) -> Failure {
    let Context { what, origin, .. } = context;
    let message = format!("{what} at {origin} answered with an error");
    let failure = match row(context.api, 200, said) {
        Some(row) => known(context, row, message),
        None if context.mutation => Failure::new(Kind::InDoubt, message),
        None => Failure::new(Kind::Rejected, message),
    };
    with_words(context, &context.masker.with_body(Some(body)), failure, said, false)
}

/// Returns the failure of a GraphQL answer that does not belong to the request.
pub(crate) fn foreign(context: &Context<'_>, detail: &str) -> Failure {
    let Context { what, origin, .. } = context;
    let message = format!("{what} at {origin} got an answer that does not fit it: {detail}");
    Failure::new(Kind::InDoubt, message).transient()
}

/// Returns the failure of a call without an answer.
pub(crate) fn broken(context: &Context<'_>, broken: &Broken) -> Failure {
    let Context { what, origin, masker, .. } = context;
    match broken {
        // The TLS handshake ended before a request was sent, and the next handshake would end in the same
        // way.
        Broken::NotSent(reason) if reason.contains("certificate") => {
            let message = format!("{what} did not reach {origin}: {}", masker.line(reason));
            Failure::new(Kind::NotSent, message).help(
                "the certificate of the server is not trusted, or it wants one of yours: a descriptor says with `ca` and \
                 `certificate` of `[provider]` where they come from",
            )
        }
        Broken::NotSent(reason) => {
            let message = format!("{what} did not reach {origin}: {}", masker.line(reason));
            Failure::new(Kind::NotSent, message)
                .help("check the address, and that the service runs")
                .transient()
        }
        Broken::Lost(reason) => {
            let message =
                format!("{what} at {origin} got no whole answer: {}", masker.line(reason));
            Failure::new(Kind::InDoubt, message)
                .help("see whether the service is well, and run the command again")
                .transient()
        }
    }
}

fn known(context: &Context<'_>, row: &ErrorRow, message: String) -> Failure {
    let kind = match row.meaning {
        Meaning::Rejected | Meaning::Done => Kind::Rejected,
        Meaning::NotFound => Kind::NotFound,
        Meaning::Throttled => Kind::Throttled,
        Meaning::Unauthenticated => Kind::Unauthenticated,
        Meaning::InDoubt => Kind::InDoubt,
    };
    let mut failure = match kind {
        Kind::Unauthenticated => unauthenticated(context, message),
        kind => Failure::new(kind, message),
    };
    if row.help.is_some() {
        failure.error.help.clone_from(&row.help);
    }
    failure.row = row.name.as_deref().map(Box::from);
    failure.done = row.meaning == Meaning::Done;
    failure.transient = row.meaning == Meaning::InDoubt;
    failure
}

fn row<'a>(api: &'a Api, status: u16, said: &str) -> Option<&'a ErrorRow> {
    let of_status = |row: &&ErrorRow| row.statuses.is_empty() || row.statuses.contains(&status);
    api.errors.iter().filter(of_status).find(|row| fits(row, said))
}

/// Returns true if a row matches these words.
fn fits(row: &ErrorRow, said: &str) -> bool {
    let said = || said.to_lowercase();
    row.matching.as_ref().is_none_or(|part| said().contains(part.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use engine::diagnostics::{FileId, Span};

    use super::*;
    use crate::descriptor::model::{Naming, Source};
    use crate::key::Key;

    const SPAN: Span = Span { file: FileId(0), start: 0, end: 0 };

    fn api() -> Api {
        Api {
            address: Source::default(),
            auth: Vec::new(),
            headers: Vec::new(),
            concurrency: 1,
            body_max: None,
            naming: Naming::Same,
            omits_empty: false,
            message_at: vec![vec!["deep".to_owned(), "text".to_owned()]],
            errors: vec![
                ErrorRow {
                    name: Some("in_use".to_owned()),
                    statuses: BTreeSet::new(),
                    matching: Some("is in use".to_owned()),
                    meaning: Meaning::Rejected,
                    span: SPAN,
                    help: Some("wait".to_owned()),
                },
                ErrorRow {
                    name: None,
                    statuses: [418].into(),
                    matching: None,
                    meaning: Meaning::Done,
                    span: SPAN,
                    help: None,
                },
                ErrorRow {
                    name: None,
                    statuses: BTreeSet::new(),
                    matching: Some("who are you".to_owned()),
                    meaning: Meaning::Unauthenticated,
                    span: SPAN,
                    help: None,
                },
            ],
        }
    }

    fn judged(
        status: u16,
        content_type: &str,
        body: &str,
        mutation: bool,
    ) -> Result<Option<Json>, Failure> {
        let (api, masker) = (api(), Masker::of_keys(Some(&Key::new("canary-key"))));
        let context = Context {
            api: &api,
            what: "POST /things",
            origin: "http://host",
            key_hint: "set KEY",
            mutation,
            names_object: !mutation,
            masker: &masker,
        };
        let answer = Response {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.as_bytes().to_vec(),
        };
        judge(&context, &answer, crate::partial_json::read)
    }

    fn verdict(status: u16, content_type: &str, body: &str, mutation: bool) -> String {
        match judged(status, content_type, body, mutation) {
            Ok(body) => format!("ok {body:?}"),
            Err(failure) => {
                let retry = if failure.transient { " transient" } else { "" };
                let done = if failure.done { " done" } else { "" };
                let refusal = if failure.error.is_refusal { " refusal" } else { "" };
                format!("{:?}{retry}{done}{refusal}: {}", failure.error.kind, failure.error)
            }
        }
    }

    /// Both a status and a row of the table lead to a message that says how to set the key.
    #[test]
    fn a_key_that_is_refused_is_named() {
        for (status, body) in [(401, ""), (400, r#"{"message":"Who are you?"}"#)] {
            let error = judged(status, "", body, false).unwrap_err().error;
            assert_eq!(error.kind, Kind::Unauthenticated);
            assert_eq!(error.help.unwrap(), "the key is wrong or lacks a right: set KEY");
        }
    }

    #[test]
    fn statuses() {
        let kinds: Vec<String> = [
            200, 204, 301, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413,
            418, 422, 423, 425, 428, 429, 451, 499, 500, 502, 503, 520, 99,
        ]
        .into_iter()
        .map(|status| {
            let (mutation, read) = (verdict(status, "", "", true), verdict(status, "", "", false));
            let kind = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
            format!("{status} {} | {}", kind(&mutation), kind(&read))
        })
        .collect();
        insta::assert_snapshot!(kinds.join("\n"), @"
200 ok None | ok None
204 ok None | ok None
301 InDoubt | Rejected
304 InDoubt | Rejected
307 Rejected | Rejected
308 Rejected | Rejected
400 Rejected | Rejected
401 Unauthenticated | Unauthenticated
402 InDoubt refusal | InDoubt refusal
403 Unauthenticated | Unauthenticated
404 Rejected | NotFound
405 Rejected | Rejected
406 InDoubt refusal | InDoubt refusal
408 InDoubt transient | InDoubt transient
409 Rejected | Rejected
410 Rejected | Rejected
413 Rejected | Rejected
418 Rejected done | Rejected done
422 Rejected | Rejected
423 InDoubt refusal | InDoubt refusal
425 InDoubt transient | InDoubt transient
428 InDoubt refusal | InDoubt refusal
429 Throttled | Throttled
451 InDoubt refusal | InDoubt refusal
499 InDoubt | InDoubt
500 InDoubt transient | InDoubt transient
502 InDoubt transient | InDoubt transient
503 InDoubt transient | InDoubt transient
520 InDoubt transient | InDoubt transient
99 InDoubt | InDoubt
");
    }

    /// The words about a list, a read or a server error may show any object, with secrets that are not known
    /// here, so they are not shown.
    #[test]
    fn what_may_be_an_object_is_not_shown() {
        let rows = r#"[{"id": "1", "token": "hunter2"#;
        for (status, form, body) in [
            (200, "application/json", rows.to_owned()),
            (200, "text/html", rows.to_owned()),
            (200, "text/plain", "id: 1, token: hunter2".to_owned()),
            (401, "application/json", serde_json::json!({ "error": rows }).to_string()),
            (429, "application/json", serde_json::json!({ "rows": rows }).to_string()),
            (500, "text/plain", format!("panic: cannot write {rows}")),
        ] {
            for mutation in [false, true] {
                if mutation && (400..500).contains(&status) {
                    continue;
                }
                let error = judged(status, form, &body, mutation).unwrap_err().error;
                let all = format!("{error} {:?}", error.help);
                assert!(!all.contains("hunter2"), "{status} {form}: {all}");
            }
        }
        let refusal = judged(400, "", r#"{"row": "E7"}"#, false).unwrap_err().error;
        assert!(refusal.help.unwrap().starts_with("what it said is not shown"));
    }

    #[test]
    fn messages() {
        let all: Vec<String> = [
            (400, "application/json", r#"{"message":"size must grow"}"#),
            (400, "application/json", r#"{"error":{"message":"nested"}}"#),
            (400, "application/json", r#"{"deep":{"text":"declared"},"message":"other"}"#),
            (400, "application/json", r#"{"errors":[{"message":"first"}]}"#),
            (400, "application/json", r#"{"error":"The thing IS IN USE."}"#),
            (400, "application/json", r#"["key canary-key"]"#),
            (500, "text/plain", "boom canary-key\n\u{1b}[0m"),
            (502, "text/html", "<html><h1>Bad gateway</h1></html>"),
            (200, "text/html", "<!doctype html><title>Sign in</title>"),
            (200, "application/json", "{\"cut\": "),
            (410, "", ""),
            (302, "", ""),
            (402, "application/json", r#"{"error":{"title":"balance too low"}}"#),
            (423, "text/plain", "locked by an operator"),
            (451, "text/html", "<title>Blocked here</title>"),
            (500, "application/json", r#"{"code":"E7","msg":"the disk is full"}"#),
            (503, "application/problem+json", r#"{"title":"Maintenance","detail":"until noon"}"#),
        ]
        .into_iter()
        .map(|(status, content_type, body)| verdict(status, content_type, body, true))
        .collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
Rejected: POST /things at http://host answered 400 (bad request): size must grow
Rejected: POST /things at http://host answered 400 (bad request): nested
Rejected: POST /things at http://host answered 400 (bad request): declared
Rejected: POST /things at http://host answered 400 (bad request): first
Rejected: POST /things at http://host answered 400 (bad request): The thing IS IN USE
Rejected: POST /things at http://host answered 400 (bad request): ["key …"]
InDoubt transient: POST /things at http://host answered 500 (internal error): boom …
InDoubt transient: POST /things at http://host answered 502 (bad gateway) with an HTML page: Bad gateway
InDoubt: POST /things at http://host answered 200 with an HTML page where JSON was expected: <!doctype html><title>Sign in</title>
InDoubt transient: POST /things at http://host answered 200 with a text that is no JSON where JSON was expected (it is cut off after 8 bytes)
Rejected: POST /things at http://host answered 410 (gone)
InDoubt: POST /things at http://host answered 302 (a redirect)
InDoubt refusal: POST /things at http://host answered 402 (payment required): balance too low
InDoubt refusal: POST /things at http://host answered 423 (locked): locked by an operator
InDoubt refusal: POST /things at http://host answered 451 (unavailable for legal reasons) with an HTML page: Blocked here
InDoubt transient: POST /things at http://host answered 500 (internal error): the disk is full
InDoubt transient: POST /things at http://host answered 503 (unavailable): until noon
"#);
    }
}
