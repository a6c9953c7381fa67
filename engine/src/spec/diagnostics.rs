//! The diagnostics of reading a spec, one constructor each.
//!
//! A summary is short and always the same for one kind of mistake; the label says what is wrong
//! with the underlined words; the help says what to write instead. None of them shows a value.

use crate::address::{AddressError, Block};
use crate::constraint::Violation;
use crate::diagnostics::{Diagnostic, Span, nearest};
use crate::expression::ExprError;
use crate::types::Type;
use crate::value::Value;

/// Every file is within the limit, all of them together are not.
pub fn too_large(bytes: usize, bytes_max: usize) -> Diagnostic {
    let mebibytes = |bytes: usize| bytes.div_ceil(1024 * 1024);
    Diagnostic::error("the spec is too large")
        .detail(format!(
            "Its files have {} MiB together; {} MiB are allowed.",
            mebibytes(bytes),
            mebibytes(bytes_max)
        ))
        .help("split it into several folders, or declare many alike resources with `for_each`")
}

/// A file of the spec is not text.
pub fn not_utf8(path: &str, offset: usize) -> Diagnostic {
    Diagnostic::error("a file of the spec is not text")
        .detail(format!("`{path}` is not UTF-8: the byte at offset {offset} is wrong."))
        .help("save it as UTF-8")
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

/// There are more mistakes of the kind than anyone reads.
pub fn more_errors(path: &str, omitted: usize) -> Diagnostic {
    Diagnostic::note(format!("{omitted} more TOML errors in `{path}` are not shown"))
}

/// The rest of the spec was not looked at.
pub fn not_checked() -> Diagnostic {
    Diagnostic::error("the spec was not checked any further")
        .detail("A file could not be read whole, so what seems missing may stand in it.")
        .help("mend the TOML first")
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
pub fn unknown_table(name: &str, at: Span, known: &[&str]) -> Diagnostic {
    Diagnostic::error("unknown table")
        .at(at)
        .label(format!("`{}` means nothing here", shown(name)))
        .help(did_you_mean(name, known.iter().copied()))
}

/// A part of the language that a later version brings.
pub fn not_supported_yet(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("not supported yet")
        .at(at)
        .label(format!("`{name}` is not supported by this version"))
        .help("remove it, or use a version that supports it")
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
    Diagnostic::error("not a name")
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
        .help(did_you_mean(name, known.iter().copied()))
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
    Diagnostic::error("not a usable number")
        .at(at)
        .label("numbers are finite, and whole ones have 64 bits")
        .help("write a smaller number, or put it in quotes if it is a name")
}

/// Something wrong inside an expression.
pub fn expression(error: &ExprError, at: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(error.message.clone()).at(at);
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

/// `file(…)` of something that is only known later.
pub fn file_not_literal(at: Span) -> Diagnostic {
    Diagnostic::error("`file` takes a path in quotes")
        .at(at)
        .label("the path must stand here as it is")
        .help("write file(\"some/path\"): files are read before expressions are computed")
}

/// `file(…)` outside the folder of the spec.
pub fn file_outside(path: &str, at: Span) -> Diagnostic {
    Diagnostic::error("`file` stays in the folder of the spec")
        .at(at)
        .label(format!("`{}` leads out of it", shown(path)))
        .help("write a path relative to the spec, without `..`")
}

/// A file that `file(…)` names.
pub fn unreadable_file(path: &str, reason: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a file cannot be read").at(at).label(format!("`{}`: {reason}", shown(path)))
}

/// A value for a variable that the spec does not declare.
pub fn unknown_variable<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("a value for an unknown variable")
        .detail(format!("The spec declares no variable `{}`.", shown(name)))
        .help(did_you_mean(name, known))
}

/// A variable without a value.
pub fn missing_variable(name: &str, at: Span) -> Diagnostic {
    let environment = super::variables::environment_name(name);
    Diagnostic::error("a variable has no value")
        .at(at)
        .label(format!("`{name}` has no default and none was given"))
        .help(format!(
            "give it with --var {name}=VALUE, {environment}=VALUE in the environment, or --var-file FILE"
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
    let help = match nearest(text, words) {
        Some(word) => format!("did you mean `{word}`?"),
        None => "write string, integer, number, boolean, any, list(…), set(…), map(…) or \
                 object{name = type, other? = type}"
            .to_owned(),
    };
    Diagnostic::error("unknown type")
        .at(at)
        .label(format!("`{}` is not a type", shown(text)))
        .help(help)
}

/// Something computed where a plain value must stand.
pub fn not_constant(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a plain value")
        .at(at)
        .label(format!("{what} cannot be computed"))
        .help("write the value itself, without `${…}`")
}

/// A value of a variable's block that does not fit the variable's type.
pub fn misfit(reason: &str, at: Span) -> Diagnostic {
    Diagnostic::error("wrong type").at(at).label(reason)
}

/// A value given for a variable that does not fit its type.
pub fn bad_given(name: &str, ty: &Type, reason: &str, at: Span) -> Diagnostic {
    let help = match ty {
        Type::String => format!("give text: --var {name}=TEXT"),
        ty => format!("give a {ty} as TOML writes it, such as --var '{name}={}'", example(ty)),
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
    match (want, value) {
        (Type::Integer | Type::Number, Some(Value::String(text)))
            if text.parse::<f64>().is_ok() =>
        {
            diagnostic.help("write the number without quotes")
        }
        (Type::Boolean, Some(Value::String(text))) if matches!(&**text, "true" | "false") => {
            diagnostic.help("write it without quotes")
        }
        (Type::String, Some(Value::Integer(_) | Value::Float(_) | Value::Bool(_))) => {
            diagnostic.help("put it in quotes")
        }
        (Type::Integer, Some(Value::Float(_))) => diagnostic.help("write a whole number"),
        (Type::List(_) | Type::Set(_), Some(Value::String(_))) => {
            diagnostic.help("put it in brackets: a list of one")
        }
        _ => diagnostic,
    }
}

/// An expression of a type that does not fit.
pub fn wrong_static_type(want: &Type, found: &Type, at: Span) -> Diagnostic {
    Diagnostic::error("wrong type").at(at).label(format!(
        "expected {}, found {}",
        plainly(want),
        plainly(found)
    ))
}

/// A key of an object that is computed.
pub fn computed_key(at: Span) -> Diagnostic {
    Diagnostic::error("expected a plain name")
        .at(at)
        .label("the attributes of an object have fixed names")
}

/// A nested attribute that an object does not have.
pub fn unknown_nested_attribute<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown attribute")
        .at(at)
        .label(format!("there is no attribute `{}` here", shown(name)))
        .help(did_you_mean(name, known))
}

/// Nested attributes that are missing.
pub fn missing_nested(names: &[&str], at: Span) -> Diagnostic {
    let names = listed(names.iter().copied());
    Diagnostic::error("missing attribute").at(at).label(format!("it needs {names}"))
}

/// An attribute that a type does not have.
pub fn unknown_attribute<'a>(
    ty: &str,
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown attribute")
        .at(at)
        .label(format!("`{ty}` has no attribute `{}`", shown(name)))
        .help(did_you_mean(name, known))
}

/// An attribute that only the provider sets.
pub fn computed_attribute(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a computed attribute cannot be given")
        .at(at)
        .label(format!("the provider sets `{name}`"))
        .help("remove it; others can refer to it")
}

/// Attributes that must be given and are not.
pub fn missing_attributes(ty: &str, names: &[&str], at: Span) -> Diagnostic {
    let names = listed(names.iter().copied());
    Diagnostic::error("missing attribute")
        .at(at)
        .label(format!("`{ty}` needs {names}"))
        .help("add the missing lines to this block")
}

/// A key that a block must have.
pub fn missing_key(what: &str, key: &str, at: Span) -> Diagnostic {
    Diagnostic::error("missing key")
        .at(at)
        .label(format!("{what} has no `{key}`"))
        .help(format!("add `{key} = …`"))
}

/// A value outside its range or list.
pub fn value_not_allowed(violation: &Violation, only_warn: bool, at: Span) -> Diagnostic {
    let summary = "a value that is not allowed";
    let diagnostic =
        if only_warn { Diagnostic::warning(summary) } else { Diagnostic::error(summary) };
    let diagnostic = diagnostic.at(at).label(violation.message.clone());
    match &violation.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

/// A sensitive value outside its range or list.
pub fn secret_not_allowed(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a value that is not allowed")
        .at(at)
        .label(format!("the value of `{name}` breaks its limits"))
}

/// A resource type that no provider has.
pub fn unknown_type<'a>(
    ty: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    at: Span,
) -> Diagnostic {
    Diagnostic::error("unknown resource type")
        .at(at)
        .label(format!("no provider has the type `{}`", shown(ty)))
        .help(did_you_mean(ty, known))
}

/// A resource type that several provider instances have.
pub fn several_providers(ty: &str, instances: &[&str], at: Span) -> Diagnostic {
    let first = instances.first().copied().unwrap_or("NAME");
    Diagnostic::error("several providers have this type")
        .at(at)
        .label(format!("`{ty}` is a type of {}", listed(instances.iter().copied())))
        .help(format!("choose one: `provider = \"{first}\"`"))
}

/// A provider instance that is not there.
pub fn unknown_provider<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown provider")
        .at(at)
        .label(format!("there is no provider `{}`", shown(name)))
        .help(did_you_mean(name, known))
}

/// A type that the chosen provider instance does not have.
pub fn not_of_provider<'a>(
    ty: &str,
    instance: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    at: Span,
) -> Diagnostic {
    Diagnostic::error("unknown resource type")
        .at(at)
        .label(format!("the provider `{instance}` has no type `{}`", shown(ty)))
        .help(did_you_mean(ty, known))
}

/// A `for_each` that gives no keys.
pub fn bad_for_each(found: &Type, at: Span) -> Diagnostic {
    Diagnostic::error("wrong type")
        .at(at)
        .label(format!("`for_each` takes a table or a list of strings, found {}", plainly(found)))
        .help("write `[\"a\", \"b\"]` or `{ a = …, b = … }`")
}

/// A key of `for_each` that is there already.
pub fn repeated_key(key: &str, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("a key that is there twice")
        .at(at)
        .label(format!("`{}` is in the list already", shown(key)))
        .related(first, "first here")
        .help("remove one of the two")
}

/// Something else where a list of texts must stand.
pub fn not_a_list(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a list of names")
        .at(at)
        .label(format!("{what} is a list of plain texts"))
        .help("write `[\"…\", \"…\"]`, without `${…}`")
}

/// Something else where a table must stand.
pub fn not_a_table(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a table")
        .at(at)
        .label(format!("`{what}` is a table of keys"))
        .help(format!("write `{what} = {{ KEY = VALUE }}`"))
}

/// Something else where references must stand.
pub fn not_references(at: Span) -> Diagnostic {
    Diagnostic::error("expected references")
        .at(at)
        .label("`replace_triggered_by` is a list of references to resources or their attributes")
        .help("write `[\"${TYPE.NAME.ATTRIBUTE}\"]`")
}

/// A resource that is to be replaced when it changes itself.
pub fn own_trigger(at: Span) -> Diagnostic {
    Diagnostic::error("a resource cannot trigger itself")
        .at(at)
        .label("this is the resource that is to be replaced")
        .help("name another resource, or remove it")
}

/// A text that is no address.
pub fn bad_address(error: &AddressError, at: Span) -> Diagnostic {
    Diagnostic::error("not an address").at(at).label(error.to_string())
}

/// The address of a resource that is not there.
pub fn no_resource(block: &Block, help: String, at: Span) -> Diagnostic {
    Diagnostic::error("reference to nothing")
        .at(at)
        .label(format!("there is no resource `{}`", shown(&block.to_string())))
        .help(help)
}

/// The address of an instance of a resource that has no instances by key.
pub fn no_instances(block: &Block, at: Span) -> Diagnostic {
    Diagnostic::error("reference to nothing")
        .at(at)
        .label(format!("`{block}` has no `for_each`, so it has no keys"))
        .help(format!("write `{block}`"))
}

/// Members of a cycle in order, each with the place where it refers to the next; `size` counts
/// all that are caught in it.
pub fn cycle(members: &[(String, Span)], size: usize) -> Diagnostic {
    const SHOWN: usize = 20;
    let mut names: Vec<&str> = members.iter().take(SHOWN).map(|(name, _)| &**name).collect();
    let more = members.len().saturating_sub(SHOWN);
    let rest = format!("{more} more");
    if more > 0 {
        names.push(&rest);
    }
    names.extend(members.first().map(|(name, _)| &**name));
    let detail = format!("They need each other: {}.", names.join(" → "));
    let diagnostic = Diagnostic::error("a cycle")
        .at(members.first().map(|(_, at)| *at))
        .label("this reference begins it")
        .detail(if size > members.len() {
            format!("{detail} {} more are caught in it.", size - members.len())
        } else {
            detail
        })
        .help("remove one of the references, or move what both need into a third");
    members.iter().skip(1).take(SHOWN).fold(diagnostic, |diagnostic, (name, at)| {
        diagnostic.related(*at, format!("`{name}` refers to the next here"))
    })
}

/// A type as people say it: an object's attributes are too many to list.
fn plainly(ty: &Type) -> String {
    match ty {
        Type::Object(_) => "object".to_owned(),
        Type::List(item) => format!("list({})", plainly(item)),
        Type::Set(item) => format!("set({})", plainly(item)),
        Type::Map(item) => format!("map({})", plainly(item)),
        ty => ty.to_string(),
    }
}

/// A value of a type as TOML writes it.
fn example(ty: &Type) -> &'static str {
    match ty {
        Type::Boolean => "true",
        Type::Integer | Type::Number => "3",
        Type::List(_) | Type::Set(_) => "[\"a\"]",
        Type::Map(_) | Type::Object(_) => "{ key = \"a\" }",
        Type::String | Type::Any | Type::Null => "\"text\"",
    }
}

/// "did you mean …", or all there is to choose from.
pub(super) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(word, known.clone()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => format!("known are {}", listed(known)),
    }
}

/// Words in backticks with commas; the first dozen of many.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let words: Vec<&str> = words.into_iter().collect();
    let mut text: Vec<String> =
        words.iter().take(SHOWN).map(|word| format!("`{}`", shown(word))).collect();
    if words.len() > SHOWN {
        text.push(format!("{} more", words.len() - SHOWN));
    }
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

/// A word of the user's in one line of bounded length, without control characters.
pub(super) fn shown(word: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let clean = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match word.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", clean(&word[..end])),
        None => clean(word),
    }
}
