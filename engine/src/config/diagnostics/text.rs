//! Errors of the text of a spec: TOML, tables, keys and names.

use super::shown;
use crate::diagnostics::{Advice, Diagnostic, Span};
use crate::expression::ExprError;

/// Every file is within the limit, all of them together are not.
pub fn too_large(bytes: usize, bytes_max: usize) -> Diagnostic {
    let mebibytes = |bytes: usize| bytes.div_ceil(1024 * 1024);
    Diagnostic::error("the spec is too large")
        .detail(format!(
            "Its files have {} MiB together; {} MiB are allowed.",
            mebibytes(bytes),
            mebibytes(bytes_max)
        ))
        .help("split it into several folders, or declare similar resources with `for_each`")
}

/// The files hold more values than memory should be spent on.
pub fn too_many_values(path: &str, values_max: usize) -> Diagnostic {
    Diagnostic::error("the spec is too large")
        .detail(format!(
            "With `{path}` its files hold more than {values_max} values, which are not read."
        ))
        .help("split it into several folders, or declare similar resources with `for_each`")
}

/// Brackets inside brackets, too many.
pub fn too_deep(at: Span, nesting_max: usize) -> Diagnostic {
    Diagnostic::error("nested too deeply")
        .at(at)
        .label(format!("more than {nesting_max} levels"))
        .help("name the inner parts in `[local]` and refer to them")
}

/// A table header or a dotted key with too many parts.
pub fn key_too_deep(at: Option<Span>) -> Diagnostic {
    Diagnostic::error("nested too deeply").at(at).label("this key has too many parts")
}

/// The TOML parser's own complaint.
pub fn syntax(at: Option<Span>, message: &str) -> Diagnostic {
    Diagnostic::error("invalid TOML").at(at).label(message)
}

/// A reference without quotes, which TOML takes for the beginning of another value.
pub fn bare_reference(at: Span, reference: &str) -> Diagnostic {
    let quote = if reference.contains('"') { '\'' } else { '"' };
    let written = |reference: &str| format!("{quote}${{{reference}}}{quote}");
    Diagnostic::error("a reference without quotes")
        .at(at)
        .label("TOML knows no references")
        .help(format!(
            "a reference stands in `${{…}}` and in quotes: {}",
            written(&shown(reference))
        ))
        .meant(reference, written(reference))
}

/// A file in the language of Terraform.
pub fn hcl(at: Span) -> Diagnostic {
    Diagnostic::error("this is HCL, and a spec is TOML")
        .at(at)
        .label("a block of Terraform's language")
        .help("write `[resource.TYPE.NAME]` in place of `resource \"TYPE\" \"NAME\" {`, and one `key = value` a line below it; `plumb init` writes an example")
}

/// A text that is the address of something in the spec.
pub fn text_like_address(text: &str, at: Span) -> Diagnostic {
    Diagnostic::warning("a text that is the address of something in this spec")
        .at(at)
        .label("this is plain text, and no reference")
        .help(format!("if it is meant as a reference, write \"${{{}}}\"", shown(text)))
        .meant(text, format!("${{{text}}}"))
}

/// The advice where a quote inside an expression ends the string around it.
pub const QUOTES_HELP: &str = "a double quote ends the string: write '${…}' with single quotes \
     around an expression that holds double quotes";

/// There are more mistakes of the kind than anyone reads.
pub fn more_errors(path: &str, omitted: usize) -> Diagnostic {
    Diagnostic::note(format!("{omitted} more TOML errors in `{path}` are not shown"))
}

/// The rest of the spec was not looked at.
pub fn not_checked() -> Diagnostic {
    Diagnostic::error("the spec was not checked any further")
        .detail("What seems missing may stand in what could not be read.")
        .help("fix what is said above first")
}

/// A block or a key that is there already.
pub fn declared_twice(what: &str, at: Span, first: Option<Span>) -> Diagnostic {
    let diagnostic = Diagnostic::error("declared twice")
        .at(at)
        .label(format!("{what} is declared again here"))
        .help("remove one of the two, or give it another name");
    match first {
        Some(first) => diagnostic.related(first, "first declared here"),
        None => diagnostic,
    }
}

/// A table at the top of a file that means nothing.
pub fn unknown_table(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'static str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown table")
        .at(at)
        .label(format!("`{}` is not a table of a spec", shown(name)))
        .choices(name, known)
}

/// A value where a block must stand.
pub fn not_a_block(path: &str, form: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a table")
        .at(at)
        .label(format!("`{}` is not a table", shown(path)))
        .help(format!("write `{form}`"))
}

/// A name that is none.
pub fn bad_name(what: &str, name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("invalid name")
        .at(at)
        .label(format!("`{}` cannot name a {what}", shown(name)))
        .help("begin with a small letter, then use small letters, digits, `_` and `-`")
}

/// A resource type that expressions could not refer to.
pub fn reserved_type(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("not a resource type")
        .at(at)
        .label(format!("`{name}` means something else in expressions"))
        .help("write `[resource.TYPE.NAME]` with a type of a provider")
}

/// A key that a block does not have.
pub fn unknown_key(name: &str, block: &str, at: Span, known: &[&str]) -> Diagnostic {
    Diagnostic::error("unknown key")
        .at(at)
        .label(format!("{block} has no `{}`", shown(name)))
        .choices(name, known.iter().copied())
}

/// A TOML date or time.
pub fn date(at: Span) -> Diagnostic {
    Diagnostic::error("dates are not values")
        .at(at)
        .label("TOML reads this as a date or time")
        .help("put it in quotes")
}

/// A number outside what values can hold.
pub fn bad_number(at: Span) -> Diagnostic {
    Diagnostic::error("number out of range")
        .at(at)
        .label("numbers must be finite, and integers must fit into 64 bits")
        .help("write a smaller number, or put it in quotes if it is a name")
}

/// Something wrong inside an expression.
pub fn expression(error: &ExprError, at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.message.clone()).at(at);
    match &error.help {
        Some(text) => {
            diagnostic.help(Advice { text: text.clone(), correction: error.meant.clone() })
        }
        None => diagnostic,
    }
}

/// `file(…)` of something that is only known later.
pub fn file_not_literal(at: Span) -> Diagnostic {
    Diagnostic::error("the path of a file stands in quotes")
        .at(at)
        .label("the path must be a plain text")
        .help("write file(\"some/path\"), relative to the spec's folder: files are read before expressions are computed")
}

/// `file(…)` outside the folder of the spec.
pub fn file_outside(path: &str, at: Span) -> Diagnostic {
    Diagnostic::error("only files in the folder of the spec are read")
        .at(at)
        .label(format!("`{}` leads out of it", shown(path)))
        .help("write a path relative to the spec, without `..`")
}
