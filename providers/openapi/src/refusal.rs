//! The reasons for which no descriptor can be written from a document.

use crate::names::is_hidden;

/// The reason that a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The mistake, with its place if it has one.
    pub message: String,
    /// The advice.
    pub help: &'static str,
}

const HELP_DOCUMENT: &str =
    "give a document of OpenAPI 3.0 or 3.1, or Swagger 2.0, as JSON or YAML";

fn refusal(message: impl Into<String>, help: &'static str) -> Refusal {
    Refusal { message: message.into(), help }
}

/// Refuses a text beyond the bound.
pub(crate) fn too_large(bytes_max: usize) -> Refusal {
    let megabytes = bytes_max / 1024 / 1024;
    refusal(
        format!("the document is larger than {megabytes} MB"),
        "take one without expanded references",
    )
}

/// Refuses a text that is no JSON, at a place of it.
pub(crate) fn not_json(error: &serde_json::Error) -> Refusal {
    let (line, column) = (error.line(), error.column());
    refusal(
        format!("the document is no JSON: line {line}, column {column}: {}", reason(error)),
        HELP_DOCUMENT,
    )
}

/// Returns the message of an error without its place.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Refuses a text that is neither JSON nor YAML, at a line of it.
pub(crate) fn not_yaml(line: usize, reason: &str) -> Refusal {
    refusal(format!("the document is no YAML: line {line}: {reason}"), HELP_DOCUMENT)
}

/// Refuses JSON or YAML that describes no API.
pub(crate) fn not_openapi(reason: &str) -> Refusal {
    refusal(format!("the document describes no API: {reason}"), HELP_DOCUMENT)
}

/// Refuses a reference to another file or address.
pub(crate) fn external_reference(reference: &str, place: &str) -> Refusal {
    let shown: String = reference.chars().filter(|it| !is_hidden(*it)).take(200).collect();
    let place: String = place.chars().filter(|it| !is_hidden(*it)).take(300).collect();
    refusal(
        format!("the document refers to another one: `{shown}` at {place}"),
        "bundle all files into one document first, such as with `npx @redocly/cli bundle`; nothing is fetched here",
    )
}

/// Refuses a type that the document does not have.
pub(crate) fn unknown_type(wanted: &str, known: &[&str]) -> Refusal {
    let near = engine::diagnostics::nearest(wanted, known.iter().copied());
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "it has none that a descriptor can hold".to_owned(),
        None => format!("it has {}", known.join(", ")),
    };
    refusal(
        format!("the document has no type `{wanted}`: {hint}"),
        "without --type, all types are written",
    )
}

/// Refuses a document whose schemas expand to too many.
pub(crate) fn too_involved() -> Refusal {
    refusal(
        "the schemas of the document refer to each other too often",
        "take out the parts that no wanted type needs",
    )
}

/// Refuses a document without any type.
pub(crate) fn no_types() -> Refusal {
    refusal(
        "no type of the document can be managed",
        "a type needs a call that creates, one that lists, and one that deletes by id",
    )
}
