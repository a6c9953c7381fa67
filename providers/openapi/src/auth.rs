//! The keys of an API, by the security schemes of its document.

use serde_json::Value as Json;

use crate::attribute::quoted;
use crate::document::Document;

/// The keys of a provider, and the way to send them, as lines of a descriptor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Auth {
    /// The lines of `[provider]`.
    pub(crate) keys: Vec<String>,
    /// The value of `auth`; none if the API takes no key.
    pub(crate) value: Option<String>,
    /// The fact that is still to be proved; none if there is none.
    pub(crate) proof: Option<&'static str>,
}

/// Returns the keys that most calls need.
pub(crate) fn auth(document: &Document, provider: &str) -> Auth {
    let schemes = if document.is_swagger {
        document.at(&["securityDefinitions"])
    } else {
        document.at(&["components", "securitySchemes"])
    };
    let wanted = document.at(&["security"]).as_array().into_iter().flatten();
    let wanted = wanted.filter_map(Json::as_object).filter(|it| !it.is_empty());
    let wanted: Vec<Vec<&Json>> =
        wanted.map(|all| all.keys().filter_map(|name| schemes.get(name)).collect()).collect();
    let all = schemes.as_object().into_iter().flatten().map(|(_, scheme)| vec![scheme]).collect();
    let prefix = provider.to_uppercase().replace('-', "_");
    let best = best(document, &wanted, &prefix).or_else(|| best(document, &all, &prefix));
    best.map_or_else(|| unknown(&prefix), joined)
}

/// Returns the best of several ways, each of which may use several keys together.
fn best(document: &Document, ways: &Vec<Vec<&Json>>, prefix: &str) -> Option<Vec<Part>> {
    let parts = |all: &Vec<&Json>| {
        let parts = all.iter().map(|scheme| scheme_auth(document.resolve(scheme), prefix));
        parts.collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())
    };
    let rank = |parts: &Vec<Part>| parts.iter().map(|part| part.rank).max().unwrap_or_default();
    ways.iter().filter_map(parts).min_by_key(rank)
}

/// One way to send a key.
struct Part {
    /// The order of preference.
    rank: u8,
    keys: Vec<String>,
    value: String,
    proof: Option<&'static str>,
}

/// Returns the most common way, for a document without one.
fn unknown(prefix: &str) -> Auth {
    Auth {
        keys: vec![key(prefix)],
        value: Some(bearer()),
        proof: Some("the document does not say how a key is sent"),
    }
}

fn joined(parts: Vec<Part>) -> Auth {
    let mut keys: Vec<String> = Vec::new();
    let mut values = Vec::new();
    let proof = parts.iter().find_map(|part| part.proof);
    for part in parts {
        keys.extend(part.keys.into_iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
        values.push(part.value);
    }
    let value =
        if values.len() == 1 { values.remove(0) } else { format!("[{}]", values.join(", ")) };
    Auth { keys, value: Some(value), proof }
}

fn key(prefix: &str) -> String {
    format!("key = {{ env = \"{prefix}_KEY\" }}")
}

fn bearer() -> String {
    "{ header = \"Authorization\", value = \"Bearer ${key}\" }".to_owned()
}

fn scheme_auth(scheme: &Json, prefix: &str) -> Option<Part> {
    let text = |name: &str| scheme.get(name).and_then(Json::as_str).unwrap_or_default();
    let part = |rank, value: String, proof| Part { rank, keys: vec![key(prefix)], value, proof };
    match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
        ("http", "bearer", _) => Some(part(0, bearer(), None)),
        ("http" | "basic", "basic" | "", _)
            if text("type") == "basic" || !text("scheme").is_empty() =>
        {
            Some(basic(prefix))
        }
        ("apiKey", _, "header") if text("name").eq_ignore_ascii_case("authorization") => {
            let proof = "some APIs want a word such as `Bearer` before the key";
            Some(part(1, bearer(), Some(proof)))
        }
        ("apiKey", _, "header") if is_header_name(text("name")) => {
            let name = quoted(text("name"));
            Some(part(0, format!("{{ header = {name} }}"), None))
        }
        ("apiKey", _, "query") => {
            let name = quoted(text("name"));
            Some(part(2, format!("{{ query = {name} }}"), None))
        }
        ("oauth2", ..) => Some(oauth(scheme, prefix)),
        ("openIdConnect", ..) => Some(part(3, bearer(), None)),
        _ => None,
    }
}

fn basic(prefix: &str) -> Part {
    let user = format!(
        "keys = {{ user = {{ env = \"{prefix}_USER\", setting = \"user\", public = true }} }}"
    );
    Part {
        rank: 1,
        keys: vec![key(prefix), user],
        value: "{ basic = \"${user}:${key}\" }".to_owned(),
        proof: None,
    }
}

/// Returns a token of client credentials if there is such a flow, else one that a person has.
fn oauth(scheme: &Json, prefix: &str) -> Part {
    let flow = scheme.pointer("/flows/clientCredentials");
    let of_swagger = Some(scheme).filter(|it| it.get("flow").is_some_and(|it| it == "application"));
    let url = flow.or(of_swagger).and_then(|flow| flow.get("tokenUrl")).and_then(Json::as_str);
    let Some(url) = url.filter(|url| url.starts_with("http")) else {
        return Part { rank: 3, keys: vec![key(prefix)], value: bearer(), proof: None };
    };
    let client =
        format!("keys = {{ client_id = {{ env = \"{prefix}_CLIENT_ID\", public = true }} }}");
    let token = format!(
        "token = {{ address = {{ env = \"{prefix}_TOKEN_URL\", default = {} }}, client = \"${{client_id}}\", secret = \
         \"${{key}}\" }}",
        quoted(url)
    );
    let value = "{ header = \"Authorization\", value = \"Bearer ${token}\" }".to_owned();
    Part { rank: 4, keys: vec![key(prefix), client, token], value, proof: None }
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(schemes: &Json, security: &Json) -> String {
        let root = json!({
            "openapi": "3.0.0", "paths": {}, "security": security, "components": {"securitySchemes": schemes},
        });
        let document = Document::read(&root.to_string()).unwrap();
        auth(&document, "acme").value.unwrap()
    }

    #[test]
    fn keys_are_sent_as_the_document_says() {
        let schemes = json!({
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "Basic"},
            "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "query": {"type": "apiKey", "in": "query", "name": "api_key"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "session"},
            "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://a.example/t", "scopes": {}}}},
        });
        for (security, expected) in [
            (json!([{"bearer": []}]), "{ header = \"Authorization\", value = \"Bearer ${key}\" }"),
            (json!([{"cookie": []}, {"basic": []}]), "{ basic = \"${user}:${key}\" }"),
            (
                json!([{"header": [], "query": []}]),
                "[{ header = \"X-Key\" }, { query = \"api_key\" }]",
            ),
            (json!([{"cookie": []}]), "{ header = \"Authorization\", value = \"Bearer ${key}\" }"),
        ] {
            assert_eq!(value(&schemes, &security), expected, "{security}");
        }
        let one = |name: &str| value(&json!({name: schemes[name].clone()}), &json!([]));
        assert_eq!(one("basic"), "{ basic = \"${user}:${key}\" }");
        assert_eq!(one("query"), "{ query = \"api_key\" }");
        assert_eq!(one("oauth"), "{ header = \"Authorization\", value = \"Bearer ${token}\" }");
        assert_eq!(one("cookie"), "{ header = \"Authorization\", value = \"Bearer ${key}\" }");
    }
}
