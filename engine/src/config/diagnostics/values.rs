//! Errors of values: variables, types, ranges and lists. None of them shows one.

use super::{listed, plainly, shown};
use crate::address::Name;
use crate::config::Variable;
use crate::constraint::Violation;
use crate::diagnostics::{Diagnostic, Span, nearest};
use crate::stored::to_json;
use crate::types::Type;
use crate::value::Value;

/// A file that `file(…)` names.
pub fn unreadable_file(path: &str, reason: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a file cannot be read").at(at).label(format!("`{}`: {reason}", shown(path)))
}

/// A value for a variable that the spec does not declare.
pub fn unknown_variable<'a>(
    name: &str,
    place: Option<&String>,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let name_shown = shown(name);
    let detail = match place {
        Some(place) => {
            let place = shown(place);
            format!("The spec declares no variable `{name_shown}`, which {place} gives a value.")
        }
        None => format!("The spec declares no variable `{name_shown}`."),
    };
    Diagnostic::error("a value for an unknown variable").detail(detail).choices(name, known)
}

/// Adds the place that gave the value of a variable.
pub fn given_by(diagnostic: Diagnostic, place: Option<&String>) -> Diagnostic {
    match place {
        Some(place) => diagnostic.detail(format!("The value is from {}.", shown(place))),
        None => diagnostic,
    }
}

/// A variable without a value. Where it is sensitive, no argument of a command is proposed: others on
/// the machine can see those.
pub fn missing_variable(name: &str, sensitive: bool, at: Span) -> Diagnostic {
    let environment = crate::config::variables::environment_name(name);
    let argument = if sensitive { String::new() } else { format!("--var {name}=VALUE, ") };
    Diagnostic::error("a variable has no value")
        .at(at)
        .label(format!("`{name}` has no default and none was given"))
        .help(format!(
            "give it with {argument}{environment}=VALUE in the environment, or --var-file FILE"
        ))
}

/// A variable whose type nothing tells.
pub fn no_type(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a variable has no type")
        .at(at)
        .label(format!("`{name}` has neither a type nor a default"))
        .help("add `type = \"string\"`, or the type that it has")
}

/// A text that names no type.
pub fn unknown_value_type(text: &str, at: Span) -> Diagnostic {
    let words = ["any", "boolean", "integer", "list(string)", "map(string)", "number", "string"];
    let diagnostic =
        Diagnostic::error("unknown type").at(at).label(format!("`{}` is not a type", shown(text)));
    match nearest(text, words) {
        Some(_) => diagnostic.choices(text, words),
        None => diagnostic.help(
            "write string, integer, number, boolean, any, list(…), set(…), map(…) or \
             object{name = type, other? = type}",
        ),
    }
}

/// Something computed where a plain value must stand.
pub fn not_constant(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a plain value")
        .at(at)
        .label(format!("{what} cannot be computed"))
        .help("write the value itself, without `${…}`")
}

/// Null as the value of a variable with `nullable = false`.
pub fn null_not_allowed(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a variable has no value")
        .at(at)
        .label(format!("`{name}` is null, and has `nullable = false`"))
        .help("give it a value, or a default that is not null")
}

/// A value that a validation refuses. `message` is the text of the spec, unless it holds a secret; `values` are the
/// variables that the condition looks at.
pub fn not_valid<'a>(
    message: Option<&str>,
    values: impl Iterator<Item = (&'a Name, &'a Variable)>,
    at: Span,
) -> Diagnostic {
    let value = |(name, variable): (&Name, &Variable)| {
        if !variable.value.sensitive.is_empty() {
            return format!("`{name}` is a secret");
        }
        let text = to_json(&variable.value.value).to_string();
        let end = if text.chars().nth(VALUE_MAX).is_some() { "…" } else { "" };
        let text: String = text.chars().take(VALUE_MAX).collect();
        format!("`{name}` is {}{end}", shown(&text))
    };
    let label = values.map(value).collect::<Vec<_>>().join(", ");
    let diagnostic = Diagnostic::error("a value that is not valid").at(at).label(label);
    match message {
        Some(message) => diagnostic.help(message),
        None => diagnostic,
    }
}

/// The longest value that a message shows, in characters.
const VALUE_MAX: usize = 80;

/// A `required_version` that is no requirement.
pub fn no_version_requirement(text: &str, at: Span) -> Diagnostic {
    Diagnostic::error("no requirement of a version")
        .at(at)
        .label(format!("`{}` names no versions", shown(text)))
        .help("write it such as \">=0.1, <0.3\"; Terraform's `~> 1.2` is \"^1.2\", and `~> 1.2.3` is \"~1.2.3\"")
}

/// A spec for another version of Plumb.
pub fn other_version_required(required: &str, version: &str, at: Span) -> Diagnostic {
    Diagnostic::error(format!("this spec is not for Plumb {version}"))
        .at(at)
        .label(format!("it requires {}", shown(required)))
        .help("install a version of Plumb that fits, or change `required_version` if the spec works with this one")
}

/// A value of a variable's block that does not fit the variable's type.
pub fn misfit(reason: &str, want: &Type, value: &Value, at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error("wrong type").at(at).label(reason);
    helped(diagnostic, help_for_value(want, value))
}

/// A value for a variable whose type follows from a default with nothing in it.
pub fn default_tells_no_type(name: &str, spelled: &Type, at: Span) -> Diagnostic {
    Diagnostic::error("the value given for a variable does not fit")
        .at(at)
        .label(format!("`{name}` has no `type`, and its empty default does not imply one"))
        .help(format!("write `type = \"{spelled}\"` here, or the type that it holds"))
}

/// A value given for a variable that does not fit its type. For a sensitive one no argument of a
/// command is proposed, as in [`missing_variable`].
pub fn bad_given(name: &str, ty: &Type, sensitive: bool, reason: &str, at: Span) -> Diagnostic {
    let environment = crate::config::variables::environment_name(name);
    let help = match ty {
        Type::String if sensitive => {
            format!("give text: {environment}=TEXT in the environment, or --var-file FILE")
        }
        ty if sensitive => format!(
            "give the {ty} as TOML writes it: {environment}={} in the environment, or --var-file FILE",
            example(ty)
        ),
        Type::String => format!("give text: --var {name}=TEXT"),
        ty => format!("give the {ty} as TOML writes it, such as --var '{name}={}'", example(ty)),
    };
    Diagnostic::error("the value given for a variable does not fit")
        .at(at)
        .label(format!("`{name}` is declared as {ty}: {reason}"))
        .help(help)
}

/// A value outside a variable's `allowed`.
pub fn not_allowed(name: &str, given: bool, choices: Option<Vec<&str>>, at: Span) -> Diagnostic {
    let which = if given { "the value given for" } else { "the default of" };
    let diagnostic = Diagnostic::error("a value that is not allowed")
        .at(at)
        .label(format!("{which} `{name}` is not among its `allowed` values"));
    match choices {
        Some(choices) => diagnostic.help(format!("choose one of {}", listed(choices))),
        None => diagnostic,
    }
}

/// A value in the spec that does not fit.
pub fn wrong_type(want: &Type, value: Option<&Value>, at: Span) -> Diagnostic {
    let found = value.map(|value| match value {
        Value::Map(_) => "table".to_owned(),
        value => value.type_of().to_string(),
    });
    let label = match found {
        Some(found) => format!("expected {}, found {found}", plainly(want)),
        None => format!("expected {}", plainly(want)),
    };
    let diagnostic = Diagnostic::error("wrong type").at(at).label(label);
    helped(diagnostic, value.and_then(|value| help_for_value(want, value)))
}

/// Returns how a value that stands in the spec is written as one of a type.
fn help_for_value(want: &Type, value: &Value) -> Option<&'static str> {
    match (want, value) {
        (Type::Integer | Type::Number, Value::String(text)) if text.parse::<f64>().is_ok() => {
            Some("write the number without quotes")
        }
        (Type::Boolean, Value::String(text)) if matches!(&**text, "true" | "false") => {
            Some("write it without quotes")
        }
        (Type::String, Value::Integer(_) | Value::Float(_) | Value::Bool(_)) => {
            Some("put it in quotes")
        }
        (Type::Integer, Value::Float(_)) => Some("write a whole number"),
        (Type::List(_) | Type::Set(_), Value::String(_)) => {
            Some("put it in brackets: a list of one")
        }
        _ => None,
    }
}

fn helped(diagnostic: Diagnostic, help: Option<&str>) -> Diagnostic {
    match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

/// An expression of a type that does not fit.
pub fn wrong_static_type(want: &Type, found: &Type, at: Span) -> Diagnostic {
    let label = format!("expected {}, found {}", plainly(want), plainly(found));
    helped(Diagnostic::error("wrong type").at(at).label(label), found.conversion_to(want))
}

/// A value outside its range or list.
pub fn value_not_allowed(violation: &Violation, only_warn: bool, at: Span) -> Diagnostic {
    let summary = "a value that is not allowed";
    let diagnostic =
        if only_warn { Diagnostic::warning(summary) } else { Diagnostic::error(summary) };
    let diagnostic = diagnostic.at(at).label(violation.message.clone());
    let diagnostic = match &violation.correction {
        Some(correction) => diagnostic.meant(&*correction.word, &*correction.meant),
        None => diagnostic,
    };
    match &violation.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

/// A sensitive value outside its range or list.
pub fn secret_not_allowed(name: &str, violation: &Violation, at: Span) -> Diagnostic {
    Diagnostic::error("a value that is not allowed")
        .at(at)
        .label(violation.without_value(&format!("the value of `{name}`")))
}

/// A value of a type as TOML writes it: one that fits.
// Recursion is bounded by the nesting of types.
fn example(ty: &Type) -> String {
    match ty {
        Type::Boolean => "true".to_owned(),
        Type::Integer | Type::Number => "3".to_owned(),
        Type::List(item) | Type::Set(item) => format!("[{}]", example(item)),
        Type::Map(item) => format!("{{ key = {} }}", example(item)),
        Type::Object(fields) => {
            let needed = fields.iter().filter(|(_, field)| !field.optional);
            let parts: Vec<_> =
                needed.map(|(name, field)| format!("{name} = {}", example(&field.ty))).collect();
            if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
        }
        Type::String | Type::Any | Type::Null => "\"a\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Field;

    #[test]
    fn an_example_fits_its_type() {
        let field = |ty, optional| Field { ty, optional };
        let workers = Type::Object(std::collections::BTreeMap::from([
            ("max".into(), field(Type::Integer, false)),
            ("min".into(), field(Type::list(Type::Boolean), false)),
            ("note".into(), field(Type::String, true)),
        ]));
        assert_eq!(example(&workers), "{ max = 3, min = [true] }");
        assert_eq!(example(&Type::map(workers)), "{ key = { max = 3, min = [true] } }");
        assert_eq!(example(&Type::list(Type::String)), "[\"a\"]");
    }
}
