//! The diagnostics of data blocks, one constructor each.

pub(super) use crate::config::diagnostics::unknown_attribute;
use crate::diagnostics::{Diagnostic, Span};
use crate::schema::TypeSchema;

/// A data block of a type that no API has.
pub(super) fn nothing_to_look_up(schema: &TypeSchema, at: Span) -> Diagnostic {
    Diagnostic::error("nothing to look up")
        .at(at)
        .label(format!("no API has a `{}`: it lives in a state only", schema.name))
        .help("refer to the resource that makes it")
}

/// An attribute by which nothing can be found.
pub(super) fn invisible(ty: &str, name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("nothing can be looked up by this attribute")
        .at(at)
        .label(format!("no answer of the API shows `{name}` of a `{ty}`"))
        .help("name another attribute, such as the id")
}

/// A data block that would take any object.
pub(super) fn no_condition(schema: &TypeSchema, at: Span) -> Diagnostic {
    let name = schema.name_attribute.as_deref().unwrap_or(super::ID);
    Diagnostic::error("missing attribute")
        .at(at)
        .label("it says nothing of the object that is meant")
        .help(format!("give an attribute that only this object has: `{name} = \"…\"`"))
}
