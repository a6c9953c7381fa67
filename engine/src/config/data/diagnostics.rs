//! The diagnostics of data blocks, one constructor each.

pub(super) use crate::config::diagnostics::{missing_attributes, unknown_attribute};
use crate::diagnostics::{Diagnostic, Span};
use crate::schema::TypeSchema;

/// Returns the error about a data block of a type that no API has.
pub(super) fn nothing_to_look_up(schema: &TypeSchema, at: Span) -> Diagnostic {
    Diagnostic::error("nothing to look up")
        .at(at)
        .label(format!("no API has a `{}`: it lives in a state only", schema.name))
        .help("refer to the resource, or read the outputs of its state: `[data.state.NAME]`")
}

/// Returns the error about an attribute by which no object can be found.
pub(super) fn invisible(ty: &str, name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("nothing can be looked up by this attribute")
        .at(at)
        .label(format!("no answer of the API shows `{name}` of a `{ty}`"))
        .help("name another attribute, such as the id")
}

/// Returns the error about an attribute that the block reads and therefore cannot give.
pub(super) fn read_attribute(kind: &str, name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("this attribute cannot be given")
        .at(at)
        .label(format!("`{name}` is what is read"))
        .help(format!("remove it, and refer to it: `data.{kind}.NAME.{name}`"))
}

/// Returns the error about a state without a place.
pub(super) fn no_place(at: Span) -> Diagnostic {
    Diagnostic::error("missing attribute")
        .at(at)
        .label("it does not say where the state is")
        .help("write `path = \"../FOLDER\"` for the state of another spec, or `backend = \"…\"` as in `[state]`")
}

/// Returns the error about a state with two places.
pub(super) fn two_places(at: Span) -> Diagnostic {
    Diagnostic::error("one place too many")
        .at(at)
        .label("beside `path`: the spec in that folder says where its state is")
        .help("remove it, or remove `path` and name the backend")
}

/// Returns the error about a data block without any attribute to search for.
pub(super) fn no_condition(schema: &TypeSchema, at: Span) -> Diagnostic {
    let name = schema.name_attribute.as_deref().unwrap_or(super::ID);
    Diagnostic::error("missing attribute")
        .at(at)
        .label("it says nothing of the object that is meant")
        .help(format!("give an attribute that only this object has: `{name} = \"…\"`"))
}
