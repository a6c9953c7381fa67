//! The text form of the spec's tests: a spec goes in, one line for each diagnostic comes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::Name;
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, Sources};
use crate::digest::Digest;
use crate::schema::{
    Attribute, Constraint, Identity, OneOf, Presence, ProviderSchema, ReplaceOrder, TypeSchema,
};

/// Reads a spec; a line `--- NAME` begins another file, the first is `plumb.toml`.
pub(crate) fn sources(text: &str) -> (Sources, Vec<FileId>) {
    let mut sources = Sources::default();
    let mut files = Vec::new();
    for (index, part) in text.split("--- ").enumerate() {
        let (name, body) = match index {
            0 => ("plumb.toml", part),
            _ => part.split_once('\n').unwrap_or((part, "")),
        };
        files.push(sources.add(name.trim(), body));
    }
    (sources, files)
}

/// The diagnostics as text: `file:line:col severity: summary [words] label | help`.
pub(crate) fn lines(sources: &Sources, diagnostics: &Diagnostics) -> String {
    diagnostics.iter().map(|diagnostic| line(sources, diagnostic) + "\n").collect()
}

fn line(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let place = |span| {
        let position = sources.position(span).expect("the span lies in a file");
        let path = &sources.get(span.file).expect("the file is known").path;
        format!("{path}:{}:{}", position.line, position.column)
    };
    let mut parts: Vec<String> = diagnostic.span.map(place).into_iter().collect();
    parts.push(format!("{}: {}", diagnostic.severity.word(), diagnostic.summary));
    if let Some(span) = diagnostic.span {
        let words = sources.text(span).expect("the span covers text").replace('\n', "⏎");
        parts.push(format!("[{words}]"));
    }
    parts.extend([&diagnostic.label, &diagnostic.detail].into_iter().flatten().cloned());
    parts.extend(diagnostic.related.iter().map(|(span, why)| format!("({}: {why})", place(*span))));
    parts.extend(diagnostic.help.iter().map(|help| format!("| {help}")));
    parts.join(" ")
}

/// Compares line by line; if the texts differ, shows the whole text that was found.
#[track_caller]
pub(crate) fn assert_lines(found: &str, expected: &str) {
    let expected: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines == expected, "found:\n{found}\nexpected:\n{}", expected.join("\n"));
}

/// Returns a provider with the type `value`, and with `box`, which has an attribute of every kind.
pub(crate) fn schema() -> ProviderSchema {
    let attribute = |ty: &str| Attribute::new(ty.parse().expect("the type is right"));
    let required = |ty| Attribute { presence: Presence::Required, ..attribute(ty) };
    let computed = |ty| Attribute { presence: Presence::Computed, ..attribute(ty) };
    let size = Constraint { min: Some(0.0), max: Some(4000.0), ..Constraint::default() };
    let kinds =
        OneOf { values: vec!["red".into(), "green".into()], separator: None, exclusion: None };
    let kinds = Constraint { one_of: Some(kinds), ..Constraint::default() };
    let secret = Constraint { length_min: Some(8), ..Constraint::default() };
    let types = [
        ("value", vec![("id", computed("string")), ("value", attribute("any"))]),
        (
            "box",
            vec![
                ("id", computed("string")),
                ("name", required("string")),
                (
                    "size",
                    Attribute { constraint: size, unit: Some("GB".into()), ..required("integer") },
                ),
                ("kind", Attribute { constraint: kinds.clone(), ..attribute("string") }),
                ("kinds", Attribute { constraint: kinds, ..attribute("list(string)") }),
                ("tags", attribute("map(string)")),
                ("parts", attribute("set(string)")),
                ("lid", attribute("object{colour = string, hinges? = integer}")),
                ("open", attribute("boolean")),
                ("key", Attribute { constraint: secret, sensitive: true, ..attribute("string") }),
            ],
        ),
        ("bill", vec![("id", computed("string")), ("amount", computed("number"))]),
    ];
    let types = types.into_iter().map(|(name, attributes)| {
        let attributes = attributes.into_iter().map(|(name, a)| (name.into(), a)).collect();
        (name.into(), Arc::new(type_schema(name, attributes)))
    });
    ProviderSchema { name: "builtin".into(), digest: Digest::of(b"test"), types: types.collect() }
}

fn type_schema(name: &str, attributes: BTreeMap<Name, Attribute>) -> TypeSchema {
    TypeSchema {
        name: name.into(),
        description: String::new(),
        attributes,
        create: Vec::new(),
        update: Vec::new(),
        delete: Vec::new(),
        identity: Identity::Local,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: name != "value",
        data_only: name == "bill",
        singleton: None,
    }
}
