//! An `OpenAPI` document: its text as JSON, and its references.

use serde_json::Value as Json;

use crate::names::is_hidden;
use crate::refusal::{self, Refusal};
use crate::yaml;

/// The longest document, in bytes.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest chain of references from one place to another.
const HOPS_MAX: usize = 32;

/// A document that describes an API.
pub(crate) struct Document {
    root: Json,
    /// True for Swagger 2.0, false for `OpenAPI` 3.
    pub(crate) is_swagger: bool,
}

impl Document {
    /// Reads a text, which is JSON if it begins with a brace, else YAML.
    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        if text.len() > BYTES_MAX {
            return Err(refusal::too_large(BYTES_MAX));
        }
        let text = text.trim_start_matches('\u{feff}');
        let root = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| refusal::not_json(&error))?
        } else {
            yaml::read(text)?
        };
        Self::of(root)
    }

    fn of(root: Json) -> Result<Self, Refusal> {
        let version = |key: &str| root.get(key).map(version_text);
        let is_swagger = match (version("openapi"), version("swagger")) {
            (Some(version), _) if version.starts_with("3.") => false,
            (None, Some(version)) if version == "2.0" || version == "2" => true,
            (Some(version), _) | (None, Some(version)) => {
                let shown: String = version.chars().filter(|it| !is_hidden(*it)).take(20).collect();
                return Err(refusal::not_openapi(&format!("version {shown} is not known")));
            }
            (None, None) => {
                return Err(refusal::not_openapi("it has neither `openapi` nor `swagger`"));
            }
        };
        if !root.get("paths").is_some_and(Json::is_object) {
            return Err(refusal::not_openapi("it has no `paths`"));
        }
        if let Some((reference, place)) = external_reference(&root) {
            return Err(refusal::external_reference(&reference, &place));
        }
        Ok(Self { root, is_swagger })
    }

    /// Returns the value below keys of the document; null if there is none.
    pub(crate) fn at(&self, keys: &[&str]) -> &Json {
        keys.iter().fold(&self.root, |json, key| json.get(key).unwrap_or(&Json::Null))
    }

    /// Returns the node itself, or the value that its reference leads to. Null if references lead nowhere or
    /// in a circle.
    pub(crate) fn resolve<'a>(&'a self, node: &'a Json) -> &'a Json {
        let mut node = node;
        for _ in 0..HOPS_MAX {
            let Some(reference) = reference(node) else { return node };
            let Some(target) = reference.strip_prefix('#').and_then(|at| self.pointed(at)) else {
                return &Json::Null;
            };
            node = target;
        }
        &Json::Null
    }

    /// Returns the value at a JSON pointer. The pointer stands in a fragment of a URL, so it may be
    /// percent-encoded.
    fn pointed(&self, pointer: &str) -> Option<&Json> {
        self.root.pointer(pointer).or_else(|| self.root.pointer(&percent_decoded(pointer)))
    }
}

/// Returns the reference that a node consists of; none for other nodes.
pub(crate) fn reference(node: &Json) -> Option<&str> {
    node.get("$ref")?.as_str()
}

fn version_text(version: &Json) -> String {
    version.as_str().map_or_else(|| version.to_string(), str::to_owned)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let encoded = (*first == b'%').then(|| Some(digit(0)? * 16 + digit(1)?)).flatten();
        let code = encoded.and_then(|code| u8::try_from(code).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The keys below which a reference is part of an example, and not of the document.
const EXAMPLES: [&str; 4] = ["example", "examples", "default", "enum"];

/// Returns the first reference that leads out of the document, and its place.
fn external_reference(root: &Json) -> Option<(String, String)> {
    let mut open: Vec<(String, &Json)> = vec![("#".to_owned(), root)];
    while let Some((place, node)) = open.pop() {
        if let Some(reference) = reference(node)
            && !reference.starts_with('#')
        {
            return Some((reference.to_owned(), place));
        }
        match node {
            Json::Object(entries) => {
                let is_read = |key: &str| !EXAMPLES.contains(&key) && !key.starts_with("x-");
                let below = entries.iter().rev().filter(|(key, node)| {
                    is_read(key) && matches!(node, Json::Object(_) | Json::Array(_))
                });
                let step =
                    |key: &str| format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                open.extend(below.map(|(key, node)| (step(key), node)));
            }
            Json::Array(items) => {
                let below = items.iter().enumerate().rev().filter(|(_, node)| node.is_object());
                open.extend(below.map(|(index, node)| (format!("{place}/{index}"), node)));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        Document::read(text).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    #[test]
    fn other_texts_are_refused_in_words() {
        for (text, words) in [
            ("", "the document describes no API: it has neither"),
            ("{\"openapi\": \"3.0.0\"", "the document is no JSON: line 1, column 19: EOF"),
            ("a: [", "the document is no YAML: line"),
            ("{\"openapi\": \"4.0.0\", \"paths\": {}}", "version 4.0.0 is not known"),
            ("swagger: '1.2'\npaths: {}", "version 1.2 is not known"),
            ("openapi: 3.0.3\n", "it has no `paths`"),
            ("[1, 2]", "it has neither `openapi` nor `swagger`"),
        ] {
            assert!(refused(text).contains(words), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn references_to_other_files_are_refused_with_their_place() {
        let text =
            json!({"openapi": "3.0.0", "paths": {"/a/b": {"get": {"$ref": "other.yml#/x"}}}});
        let message = refused(&text.to_string());
        assert_eq!(
            message,
            "the document refers to another one: `other.yml#/x` at #/paths/~1a~1b/get"
        );
        let example = json!({"openapi": "3.0.0", "paths": {}, "example": {"$ref": "other.yml"}});
        assert_eq!(refused(&example.to_string()), "", "an example is none");
    }

    #[test]
    fn references_lead_on_and_circles_to_nothing() {
        let root = json!({
            "openapi": "3.0.0",
            "paths": {},
            "a": {"$ref": "#/b"},
            "b": {"$ref": "#/c~1d"},
            "c/d": {"type": "string"},
            "e f": 1,
            "circle": {"$ref": "#/circle"},
        });
        let document = Document::of(root).unwrap();
        let resolve = |at: &str| document.resolve(&json!({"$ref": at})).clone();
        assert_eq!(resolve("#/a"), json!({"type": "string"}));
        assert_eq!(resolve("#/e%20f"), json!(1));
        assert_eq!(resolve("#/circle"), Json::Null);
        assert_eq!(resolve("#/none"), Json::Null);
        assert_eq!(resolve("#anchor%"), Json::Null);
    }
}
