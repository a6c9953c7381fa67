//! Facts about a whole API in the text of a descriptor: the place of an error's text, and the time after
//! which an object shows. Comments and order stay.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, Item, TableLike, Value};

use crate::errors::PLACES;
use crate::marks::MESSAGE;
use crate::proof::unmark;

/// Returns the place of the text in the body of a refusal; none if no known place has one.
pub fn message_place(body: &Json) -> Option<String> {
    PLACES.iter().find_map(|place| place_in(body, place))
}

/// Returns the place as the body has it: through the first item of a list on the way.
fn place_in(body: &Json, place: &str) -> Option<String> {
    let (mut at, mut found) = (body, Vec::new());
    for key in place.split('.') {
        at = at.get(key)?;
        found.push(key);
        if let Some(first) = at.as_array().and_then(|items| items.first()) {
            at = first;
            found.push("0");
        }
    }
    at.as_str().filter(|text| !text.is_empty()).map(|_| found.join("."))
}

/// Returns the text of a descriptor in which the API of a type has the place of a refusal's text, without the
/// mark that asks for it. None if nothing has to be changed.
pub fn with_message(text: &str, ty: &str, body: &Json) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let create = document.get("type")?.get(ty)?.get("create")?.as_array()?;
    let call = create.get(0)?.as_inline_table()?.get("call")?.as_str()?;
    let api = call.split_once(':')?.0.trim().to_owned();
    let api = document.get_mut("api")?.as_table_like_mut()?.get_mut(&api)?.as_table_like_mut()?;
    let place = message_place(body)?;
    let known = places(api.get("message"));
    let is_known = |known: &String| body.pointer(&pointer(known)).is_some_and(Json::is_string);
    if !known.iter().any(is_known) {
        let mut places: Array = known.iter().collect();
        places.insert(0, place.as_str());
        places.fmt();
        let only = places.len() == 1;
        put(api, "message", if only { place.into() } else { places.into() });
    }
    if let Some(message) = api.get_mut("message").and_then(Item::as_value_mut) {
        unmark(message.decor_mut(), MESSAGE);
    }
    Some(document.to_string()).filter(|changed| changed != text)
}

fn pointer(place: &str) -> String {
    place.split('.').fold(String::new(), |text, key| text + "/" + key)
}

fn places(item: Option<&Item>) -> Vec<String> {
    match item.and_then(Item::as_value) {
        Some(Value::String(one)) => vec![one.value().clone()],
        Some(Value::Array(several)) => {
            several.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the text of a descriptor with the settle time of the provider, in seconds; none if the descriptor
/// has a settle time already.
pub fn with_settle(text: &str, seconds: u64) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let provider = document.get_mut("provider")?.as_table_like_mut()?;
    if provider.contains_key("settle") {
        return None;
    }
    put(provider, "settle", format!("{seconds}s").into());
    Some(document.to_string())
}

/// Sets the value of a key; the comments around the old value stay.
fn put(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, toml_edit::value(value))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = r#"[provider]
name = "acme" # A comment.

[api.rest]
address = { setting = "url" }
message = ["message", "error"] # to prove: the document does not tell where an error has its text

[type.zone]
create = [ { call = "rest: POST /zones" } ]
"#;

    #[test]
    fn places_of_texts() {
        for (body, place) in [
            (json!({"message": "no"}), Some("message")),
            (json!({"message": "", "error": {"message": "no"}}), Some("error.message")),
            (json!({"errors": [{"message": "no"}]}), Some("errors.0.message")),
            (json!({"error": ["no"]}), Some("error.0")),
            (json!({"code": 3}), None),
            (json!("no"), None),
        ] {
            assert_eq!(message_place(&body).as_deref(), place, "{body}");
        }
    }

    #[test]
    fn the_place_of_a_text_is_written() {
        let changed = |body| {
            let text = with_message(TEXT, "zone", &body).unwrap();
            let line = text.lines().find(|line| line.starts_with("message")).unwrap().to_owned();
            assert_eq!(text.lines().count(), TEXT.lines().count());
            line
        };
        assert_eq!(changed(json!({"error": "no"})), r#"message = ["message", "error"]"#);
        assert_eq!(
            changed(json!({"errors": [{"message": "no"}]})),
            r#"message = ["errors.0.message", "message", "error"]"#
        );
        let without = TEXT.replace(TEXT.lines().nth(5).unwrap(), "");
        let text = with_message(&without, "zone", &json!({"detail": "no"})).unwrap();
        assert!(text.contains("message = \"detail\"\n"), "{text}");
        assert_eq!(with_message(&text, "zone", &json!({"detail": "no"})), None);
        assert_eq!(with_message(TEXT, "zone", &json!({"code": 1})), None);
    }

    #[test]
    fn the_time_to_settle_is_written_once() {
        let text = with_settle(TEXT, 4).unwrap();
        assert!(text.contains("name = \"acme\" # A comment.\nsettle = \"4s\"\n"), "{text}");
        assert_eq!(with_settle(&text, 8), None);
    }
}
