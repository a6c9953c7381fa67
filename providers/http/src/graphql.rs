//! GraphQL documents, printed from typed values, and the answers to them.
//!
//! A document is never assembled from texts of a user: names are checked when the descriptor is read, and
//! literals are printed from [`Wire`] values here. Each attempt has its own alias, so an answer to another
//! attempt is recognised.

use std::fmt::Write as _;

use engine::types::Type;
use serde_json::Value as Json;

use crate::codec::is_graphql_name;
use crate::descriptor::model::{AttributeModel, Naming, TypeModel};
use crate::wire::{Unwritable, Wire};

/// The selected fields: names, each with its own selection (empty for a scalar).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection(Vec<(String, Selection)>);

impl Selection {
    /// Returns the fields that an answer about objects of a type must show through an API.
    pub(crate) fn of(model: &TypeModel, api: &str, naming: Naming) -> Self {
        let mut selection = Self::default();
        for attribute in model.attributes.values() {
            if let Some((path, inner)) = of_attribute(attribute, api, naming) {
                selection.add(&path, inner);
            }
        }
        selection
    }

    fn add(&mut self, path: &[String], inner: Selection) {
        let Some((first, rest)) = path.split_first() else { return };
        let index = self.0.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.0.push((first.clone(), Self::default()));
            self.0.len() - 1
        });
        if rest.is_empty() {
            self.0[index].1.0.extend(inner.0);
        } else {
            self.0[index].1.add(rest, inner);
        }
    }

    fn print(&self, text: &mut String) {
        if self.0.is_empty() {
            return;
        }
        text.push_str(" {");
        for (name, inner) in &self.0 {
            text.push(' ');
            text.push_str(name);
            inner.print(text);
        }
        text.push_str(" }");
    }
}

fn of_attribute(
    attribute: &AttributeModel,
    api: &str,
    naming: Naming,
) -> Option<(Vec<String>, Selection)> {
    let shape = attribute.wires.get(api)?;
    let path = shape.read_at.clone().filter(|path| !path.is_empty())?;
    let inner = match shape.read.iter().find_map(crate::codec::Codec::selects) {
        Some(names) => {
            Selection(names.into_iter().map(|n| (n.to_owned(), Selection::default())).collect())
        }
        // A text codec hides the form of the type: the field is a scalar.
        None if !shape.read.is_empty() => Selection::default(),
        None => of_type(&attribute.schema.ty, naming),
    };
    Some((path, inner))
}

fn of_type(ty: &Type, naming: Naming) -> Selection {
    match ty {
        Type::List(item) | Type::Set(item) => of_type(item, naming),
        Type::Object(fields) => Selection(
            fields
                .iter()
                .map(|(name, field)| (naming.wire(name), of_type(&field.ty, naming)))
                .collect(),
        ),
        _ => Selection::default(),
    }
}

/// An operation to print.
pub(crate) struct Operation<'a> {
    pub(crate) mutation: bool,
    pub(crate) alias: &'a str,
    /// The path of fields; the arguments belong to the last one, the alias to the first.
    pub(crate) fields: &'a [String],
    pub(crate) arguments: &'a [(String, Wire)],
    pub(crate) selection: Option<&'a Selection>,
}

/// Returns the text of a document with one operation.
pub(crate) fn document(operation: &Operation<'_>) -> Result<String, Unwritable> {
    let mut text = String::from(if operation.mutation { "mutation {" } else { "query {" });
    let _ = write!(text, " {}:", operation.alias);
    let last = operation.fields.len().saturating_sub(1);
    for (index, field) in operation.fields.iter().enumerate() {
        let _ = write!(text, " {field}");
        if index < last {
            text.push_str(" {");
        }
    }
    if !operation.arguments.is_empty() {
        text.push('(');
        for (index, (name, value)) in operation.arguments.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{name}: ");
            literal(value, &mut text)?;
        }
        text.push(')');
    }
    if let Some(selection) = operation.selection {
        selection.print(&mut text);
    }
    for _ in 0..=last {
        text.push_str(" }");
    }
    Ok(text)
}

/// Prints a literal. JSON's escapes of texts are all escapes of GraphQL.
fn literal(value: &Wire, text: &mut String) -> Result<(), Unwritable> {
    match value {
        Wire::Null => text.push_str("null"),
        Wire::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Wire::Number(number) => text.push_str(&number.to_string()),
        Wire::Text(string) => text.push_str(&Json::from(string.as_str()).to_string()),
        Wire::Enum(name) if is_enum_value(name) => text.push_str(name),
        Wire::Enum(_) => return Err(Unwritable::Shape("the name of an enum value".to_owned())),
        Wire::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                literal(item, text)?;
            }
            text.push(']');
        }
        Wire::Object(entries) => {
            text.push('{');
            for (index, (name, value)) in entries.iter().enumerate() {
                if !is_graphql_name(name) {
                    return Err(Unwritable::Shape("keys that are names in GraphQL".to_owned()));
                }
                let comma = if index == 0 { "" } else { ", " };
                let _ = write!(text, "{comma}{name}: ");
                literal(value, text)?;
            }
            text.push('}');
        }
    }
    Ok(())
}

fn is_enum_value(name: &str) -> bool {
    is_graphql_name(name) && !matches!(name, "true" | "false" | "null")
}

/// The answer to one operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer<'a> {
    /// The value of the called field, which may be null.
    Value(&'a Json),
    /// The error messages, in one line.
    Errors(String),
    /// The answer belongs to another operation, or cannot be understood.
    Foreign,
}

/// Reads an answer: the value at the path of fields, below the alias.
pub(crate) fn answer<'a>(body: &'a Json, alias: &str, fields: &[String]) -> Answer<'a> {
    if let Some(errors) = body.get("errors").and_then(Json::as_array).filter(|e| !e.is_empty()) {
        return Answer::Errors(messages(errors));
    }
    let Some(mut value) = body.get("data").and_then(|data| data.get(alias)) else {
        return Answer::Foreign;
    };
    for field in fields.iter().skip(1) {
        match value.get(field) {
            Some(inner) => value = inner,
            None => return Answer::Foreign,
        }
    }
    Answer::Value(value)
}

fn messages(errors: &[Json]) -> String {
    let texts: Vec<&str> = errors
        .iter()
        .filter_map(|error| error.get("message").and_then(Json::as_str).or(error.as_str()))
        .collect();
    if texts.is_empty() { "an error without a message".to_owned() } else { texts.join("; ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn print(input: &Json) -> Result<String, Unwritable> {
        document(&Operation {
            mutation: true,
            alias: "a1",
            fields: &["save".to_owned()],
            arguments: &[("input".to_owned(), Wire::from_json(input))],
            selection: Some(&Selection(vec![
                ("id".into(), Selection::default()),
                ("pods".into(), Selection(vec![("status".into(), Selection::default())])),
            ])),
        })
    }

    #[test]
    fn documents() {
        insta::assert_snapshot!(
            print(&json!({"name": "x", "min": 0, "ratio": 0.5, "none": null, "list": ["a", true]}))
                .unwrap(),
            @r#"mutation { a1: save(input: {list: ["a", true], min: 0, name: "x", none: null, ratio: 0.5}) { id pods { status } } }"#
        );
        let query = Operation {
            mutation: false,
            alias: "a2",
            fields: &["myself".to_owned(), "things".to_owned()],
            arguments: &[],
            selection: Some(&Selection(vec![("id".into(), Selection::default())])),
        };
        assert_eq!(document(&query).unwrap(), "query { a2: myself { things { id } } }");
        let delete = Operation {
            mutation: true,
            alias: "a3",
            fields: &["delete".to_owned()],
            arguments: &[("id".to_owned(), Wire::Text("x".into()))],
            selection: None,
        };
        assert_eq!(document(&delete).unwrap(), r#"mutation { a3: delete(id: "x") }"#);
    }

    #[test]
    fn texts_cannot_leave_their_quotes() {
        for evil in [
            r#"x"}) { id } evil: deleteAll(id: "y"#,
            "x\\",
            "x\\\"",
            "line\nbreak\r\t\u{8}\u{c}\u{0}",
            "\"\"\" block",
            "\u{2028}ü😀",
        ] {
            let text = print(&json!({"name": evil})).unwrap();
            let start = text.find("name: ").unwrap() + 6;
            let end = text.rfind("}) { id").unwrap();
            let read: String = serde_json::from_str(&text[start..end]).unwrap();
            assert_eq!(read, evil, "{text}");
        }
    }

    #[test]
    fn names_cannot_carry_syntax() {
        assert!(print(&json!({"a: 1}) { x } evil(b": 1})).is_err());
        let mut text = String::new();
        assert!(literal(&Wire::Enum("QB} x".into()), &mut text).is_err());
        assert!(literal(&Wire::Enum("null".into()), &mut text).is_err());
        assert!(literal(&Wire::Enum("FLASHBOOT".into()), &mut text).is_ok());
        assert_eq!(text, "FLASHBOOT");
    }

    #[test]
    fn answers() {
        let fields = ["myself".to_owned(), "things".to_owned()];
        let read = |body: &Json| match answer(body, "a1", &fields) {
            Answer::Value(value) => format!("value {value}"),
            Answer::Errors(text) => format!("errors {text}"),
            Answer::Foreign => "foreign".to_owned(),
        };
        for (body, expected) in [
            (json!({"data": {"a1": {"things": [1]}}}), "value [1]"),
            (json!({"data": {"a1": {"things": null}}}), "value null"),
            (json!({"data": {"a2": {"things": []}}}), "foreign"),
            (json!({"data": {"a1": null}}), "foreign"),
            (json!({"data": {"a1": {"things": 1}}, "errors": []}), "value 1"),
            (json!({"data": {"a1": {"things": 1}}, "errors": [{"message": "no"}]}), "errors no"),
            (json!({"errors": [{"message": "a"}, "b", {}]}), "errors a; b"),
            (json!([1]), "foreign"),
        ] {
            assert_eq!(read(&body), expected, "{body}");
        }
    }
}
