//! The messages about mistakes in a descriptor.

use engine::diagnostics::{Diagnostic, Span, nearest};

pub(super) fn not_toml(span: Option<Span>, reason: &str) -> Diagnostic {
    Diagnostic::error("the descriptor is not TOML").at(span).label(reason.to_owned())
}

pub(super) fn too_large(most: usize) -> Diagnostic {
    Diagnostic::error(format!("the descriptor is longer than {most} bytes"))
        .help("split it into several providers")
}

pub(super) fn wrong_value(span: Span, key: &str, wants: &str, found: &str) -> Diagnostic {
    Diagnostic::error(format!("`{key}` has the wrong form"))
        .at(span)
        .label(format!("found {found}"))
        .help(format!("`{key}` wants {wants}"))
}

pub(super) fn unknown_word(span: Span, key: &str, word: &str, words: &[&str]) -> Diagnostic {
    let help = near(word, words);
    Diagnostic::error(format!("`{word}` is no value of `{key}`")).at(span).help(help)
}

pub(super) fn missing_key(span: Span, what: &str, key: &str) -> Diagnostic {
    Diagnostic::error(format!("{what} has no `{key}`")).at(span).help(format!("add `{key} = …`"))
}

pub(super) fn unknown_key(span: Span, what: &str, key: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error(format!("{what} has no key `{key}`")).at(span).help(near(key, known))
}

pub(super) fn unknown_name(span: Span, kind: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error(format!("there is no {kind} `{name}`")).at(span).help(near(name, known))
}

pub(super) fn unknown_attribute(
    span: Span,
    ty: &str,
    user: &str,
    name: &str,
    known: &[&str],
) -> Diagnostic {
    Diagnostic::error(format!("type `{ty}`: {user} names the attribute `{name}`, which it lacks"))
        .at(span)
        .help(near(name, known))
}

pub(super) fn bad_name(span: Span, kind: &str, name: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` cannot be the name of {kind}"))
        .at(span)
        .help("names are lower-case letters, digits and underscores, and begin with a letter")
}

pub(super) fn reserved_name(span: Span, kind: &str, name: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` cannot be the name of {kind}"))
        .at(span)
        .detail("The word means something else in specs.")
        .help("choose another name, and give the API's name with `wire`")
}

pub(super) fn bad_expression(span: Span, error: &engine::expression::ExprError) -> Diagnostic {
    let diagnostic =
        Diagnostic::error("the expression cannot be read").at(span).label(error.message.clone());
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

pub(super) fn key_in_descriptor(span: Span) -> Diagnostic {
    misfit(
        span,
        "a descriptor holds no key",
        "this is read by everyone",
        "name an environment variable: key = { env = \"…\" }",
    )
}

pub(super) fn bad_header(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` cannot be the name of a header"))
        .at(span)
        .help("the client sets the length, the host and the connection of a request itself")
}

pub(super) fn bad_call(span: Span, reason: &str) -> Diagnostic {
    Diagnostic::error("the call cannot be read").at(span).label(reason.to_owned()).help(
        "write `api: METHOD /path/${id}`, `api: query field.field` or `api: mutation \
         field(name: ${value})`",
    )
}

/// Returns the error about a value that does not fit, with the reason as its label, and advice.
pub(super) fn misfit(span: Span, summary: &str, label: &str, help: &str) -> Diagnostic {
    Diagnostic::error(summary).at(span).label(label.to_owned()).help(help.to_owned())
}

fn near(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("known are {}", known.join(", ")),
    }
}
