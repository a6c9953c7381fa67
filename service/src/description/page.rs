//! The description of an API as a page for people, with the content of the `OpenAPI` document.

use std::fmt::Write as _;

use serde_json::Value;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
nav a{margin-right:1rem}\
section{border-top:1px solid #8888;margin-top:2rem}\
article{margin:1.5rem 0}\
h3{font:600 1rem ui-monospace,monospace;margin-bottom:.25rem;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%;table-layout:fixed;margin:.75rem 0}\
th:first-child{width:28%}th:last-child{width:30%}td{overflow-wrap:anywhere}\
td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884}\
code{font-family:ui-monospace,monospace}";

/// Returns the page of an `OpenAPI` document.
pub(super) fn page(document: &Value) -> String {
    let info = &document["info"];
    let title = escaped(text(&info["title"]));
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style>\
         <h1>{title} {}</h1><p>{}</p><p>Address: <code>{}</code>. \
         The same as a document for programs: <a href=openapi.json>openapi.json</a>.</p><nav>",
        escaped(text(&info["version"])),
        escaped(text(&info["description"])),
        escaped(text(&document["servers"][0]["url"])),
    );
    let groups: Vec<&str> = items(&document["tags"]).map(|group| text(&group["name"])).collect();
    for group in &groups {
        put(&mut page, format_args!("<a href=\"#{0}\">{0}</a>", escaped(group)));
    }
    page.push_str("</nav>");
    for group in groups {
        put(&mut page, format_args!("<section id=\"{0}\"><h2>{0}</h2>", escaped(group)));
        for (path, methods) in fields(&document["paths"]) {
            for (method, operation) in fields(methods) {
                if operation["tags"][0] == group {
                    article(&mut page, document, (method, path), operation);
                }
            }
        }
        page.push_str("</section>");
    }
    page
}

fn article(page: &mut String, document: &Value, (method, path): (&str, &str), operation: &Value) {
    put(
        page,
        format_args!(
            "<article id=\"{}\"><h3>{} {}</h3><p>{}</p>",
            escaped(text(&operation["operationId"])),
            method.to_ascii_uppercase(),
            escaped(path),
            escaped(text(&operation["summary"])),
        ),
    );
    let query: Vec<&Value> =
        items(&operation["parameters"]).filter(|parameter| parameter["in"] == "query").collect();
    if !query.is_empty() {
        page.push_str("<table><tr><th>Query<th>Value<th>Note");
        for parameter in query {
            row(page, text(&parameter["name"]), &parameter["schema"], "", document);
        }
        page.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    table(page, "Body", body, "Required. ", document);
    for (status, answer) in fields(&operation["responses"]) {
        if !status.starts_with('2') {
            continue;
        }
        let schemas = fields(&answer["content"]).next();
        match schemas {
            Some((_, content)) => {
                table(page, &format!("Answer {status}"), &content["schema"], "", document);
            }
            None => put(page, format_args!("<p>Answer {status}, without a body.</p>")),
        }
    }
    page.push_str("</article>");
}

/// Writes the fields of an object, or of the objects in a list, as a table. Required fields are
/// marked with `mark`.
fn table(page: &mut String, heading: &str, schema: &Value, mark: &str, document: &Value) {
    if schema.is_null() {
        return;
    }
    let whole = resolved(schema, document);
    let object = if whole["type"] == "array" { resolved(&whole["items"], document) } else { whole };
    if object.get("properties").is_none() {
        put(page, format_args!("<p>{}: {}</p>", escaped(heading), kind(schema, document)));
        return;
    }
    let list = if whole["type"] == "array" { ": list of objects" } else { "" };
    put(page, format_args!("<table><tr><th>{}{list}<th>Value<th>Note", escaped(heading)));
    for (name, field) in fields(&object["properties"]) {
        let required = items(&object["required"]).any(|required| required == name);
        row(page, name, field, if required { mark } else { "" }, document);
    }
    page.push_str("</table>");
}

fn row(page: &mut String, name: &str, schema: &Value, mark: &str, document: &Value) {
    put(
        page,
        format_args!(
            "<tr><td><code>{}</code><td>{}<td>{mark}{}",
            escaped(name),
            kind(schema, document),
            escaped(text(&schema["description"])),
        ),
    );
}

/// Returns the kind of a value, in a few words.
fn kind(schema: &Value, document: &Value) -> String {
    let schema = resolved(schema, document);
    if let Some(known) = schema["enum"].as_array() {
        let known: Vec<_> = known.iter().filter_map(Value::as_str).map(escaped).collect();
        return known.join(" | ");
    }
    let choices = ["oneOf", "anyOf"].map(|name| schema[name].as_array());
    if let Some(choices) = choices.into_iter().flatten().next() {
        let choices: Vec<_> = choices.iter().map(|choice| kind(choice, document)).collect();
        return choices.join(" or ");
    }
    let word = match &schema["type"] {
        Value::Array(words) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        word => word.as_str().unwrap_or("any value").to_owned(),
    };
    if word.starts_with("array") {
        return format!("list of {}", kind(&schema["items"], document));
    }
    if word == "object" && schema.get("properties").is_some() {
        let names: Vec<_> = fields(&schema["properties"]).map(|(name, _)| escaped(name)).collect();
        return format!("object: {}", names.join(", "));
    }
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => word,
        (min, max) if max.is_null() || *max == i32::MAX => format!("{word}, at least {min}"),
        (min, max) => format!("{word}, {min} to {max}"),
    }
}

/// Returns the schema that a reference points to; a schema without a reference is returned itself.
fn resolved<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a text does not fail.
    let _written = page.write_fmt(text);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
