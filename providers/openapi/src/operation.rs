//! One operation of a document, with the same form for Swagger 2 and `OpenAPI` 3.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::document::Document;

/// The method of an operation that a descriptor can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub(crate) const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Returns the key of the method in a document.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// The content type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// An operation.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) document: &'a Document,
    pub(crate) method: Method,
    /// The path as the document writes it.
    pub(crate) path: &'a str,
    node: &'a Json,
    /// The part that all operations of its path share.
    shared: &'a Json,
}

/// The body that an operation takes.
pub(crate) enum Body<'a> {
    None,
    /// JSON of a schema, with its content type if that is not `application/json`.
    Json {
        schema: &'a Json,
        content_type: Option<&'a str>,
    },
    /// A form of a schema.
    Form {
        schema: &'a Json,
    },
    /// Another content type.
    Other(&'a str),
}

/// The operations of a document, by path and method.
pub(crate) fn operations(document: &Document) -> BTreeMap<&str, BTreeMap<Method, Operation<'_>>> {
    let mut paths = BTreeMap::new();
    let entries = document.at(&["paths"]).as_object().into_iter().flatten();
    for (path, item) in entries {
        let shared = document.resolve(item);
        let of_path = Method::ALL.into_iter().filter_map(|method| {
            let node = document.resolve(shared.get(method.key())?);
            let operation = Operation { document, method, path, node, shared };
            node.is_object().then_some((method, operation))
        });
        let of_path: BTreeMap<_, _> = of_path.collect();
        paths.insert(path.as_str(), of_path);
    }
    paths
}

impl<'a> Operation<'a> {
    /// Returns the parameters; a parameter of the operation replaces one of its path with the same name and
    /// place.
    fn parameters(self) -> impl Iterator<Item = &'a Json> {
        let of = move |node: &'a Json| {
            let list = node.get("parameters").and_then(Json::as_array).into_iter().flatten();
            list.map(move |parameter| self.document.resolve(parameter))
        };
        let own: Vec<&Json> = of(self.node).collect();
        let is_hidden = {
            let own = own.clone();
            move |shared: &&Json| {
                own.iter().any(|it| {
                    it.get("name") == shared.get("name") && it.get("in") == shared.get("in")
                })
            }
        };
        own.into_iter().chain(of(self.shared).filter(move |shared| !is_hidden(shared)))
    }

    /// Returns the parameters in one place, by name.
    pub(crate) fn parameters_in(self, place: &str) -> Vec<(&'a str, &'a Json)> {
        let here =
            self.parameters().filter(|it| it.get("in").and_then(Json::as_str) == Some(place));
        here.filter_map(|it| Some((it.get("name")?.as_str()?, it))).collect()
    }

    pub(crate) fn body(self) -> Body<'a> {
        if self.document.is_swagger {
            return self.swagger_body();
        }
        let body = self.node.get("requestBody").map(|body| self.document.resolve(body));
        let Some(content) = body.and_then(|body| body.get("content")).and_then(Json::as_object)
        else {
            return Body::None;
        };
        let json = content.iter().filter(|(name, _)| is_json(name));
        let json = json.min_by_key(|(name, _)| preference(name));
        match (json, content.keys().next()) {
            (Some((name, media)), _) => {
                let content_type = (preference(name) > 0).then_some(name.as_str());
                Body::Json { schema: media.get("schema").unwrap_or(&Json::Null), content_type }
            }
            (None, Some(other)) => match content.get(FORM) {
                Some(media) => Body::Form { schema: media.get("schema").unwrap_or(&Json::Null) },
                None => Body::Other(other),
            },
            (None, None) => Body::None,
        }
    }

    fn swagger_body(self) -> Body<'a> {
        if let Some((_, body)) = self.parameters_in("body").into_iter().next() {
            let schema = body.get("schema").unwrap_or(&Json::Null);
            return Body::Json { schema, content_type: None };
        }
        if self.parameters_in("formData").is_empty() {
            return Body::None;
        }
        let consumes = self.node.get("consumes").and_then(|it| it.get(0)).and_then(Json::as_str);
        Body::Other(consumes.unwrap_or(FORM))
    }

    /// Returns the answers with a status that begins with a digit, the lowest status first.
    fn answers(self, digit: char) -> impl Iterator<Item = &'a Json> {
        let answers = self.node.get("responses").and_then(Json::as_object).into_iter().flatten();
        let answers = answers.filter(move |(status, _)| status.starts_with(digit));
        answers.map(move |(_, answer)| self.document.resolve(answer))
    }

    /// Returns the schema of a successful answer.
    pub(crate) fn answer(self) -> Option<&'a Json> {
        self.answers('2').find_map(|answer| self.schema_of(answer))
    }

    fn schema_of(self, answer: &'a Json) -> Option<&'a Json> {
        if self.document.is_swagger {
            return answer.get("schema");
        }
        let content = answer.get("content")?.as_object()?;
        let json = content.iter().find(|(name, _)| is_json(name));
        json.and_then(|(_, media)| media.get("schema"))
    }

    /// Returns the schemas of error answers.
    pub(crate) fn errors(self) -> impl Iterator<Item = &'a Json> {
        let answers = self.answers('4').chain(self.answers('5')).chain(self.answers('d'));
        answers.filter_map(move |answer| self.schema_of(answer))
    }

    /// Returns true if a successful answer has a header.
    pub(crate) fn answers_with(self, header: &str) -> bool {
        let names = self.answers('2').filter_map(|answer| answer.get("headers")?.as_object());
        names.flat_map(|headers| headers.keys()).any(|name| name.eq_ignore_ascii_case(header))
    }

    /// Returns the summary of the operation.
    pub(crate) fn summary(self) -> Option<&'a str> {
        let text = |key: &str| self.node.get(key).and_then(Json::as_str);
        text("summary").or_else(|| text("description"))
    }
}

/// Returns the schema of a parameter: in Swagger 2, it is the parameter itself.
pub(crate) fn parameter_schema(parameter: &Json) -> &Json {
    parameter.get("schema").unwrap_or(parameter)
}

/// Returns true if a content type is JSON with the plain object.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "*/*"
        || essence == "application/json"
        || essence.ends_with("+json") && essence != "application/json-patch+json"
}

/// Returns the rank of a content type, the best first; 0 is the default content type.
fn preference(content_type: &str) -> u8 {
    u8::from(!content_type.starts_with("application/json") && content_type != "*/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_other_contents() {
        for (content_type, json) in [
            ("application/json", true),
            ("application/json; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("application/json-patch+json", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data", false),
        ] {
            assert_eq!(is_json(content_type), json, "{content_type}");
        }
        assert_eq!(preference("application/json; charset=utf-8"), 0);
        assert_eq!(preference("application/merge-patch+json"), 1);
    }
}
