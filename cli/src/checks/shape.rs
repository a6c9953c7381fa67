//! The form of the sources of checks, checked as far as the spec shows it without any computing.

use engine::address::Address;
use engine::config::{Config, SpecExpr};
use engine::diagnostics::{Diagnostic, Diagnostics, nearest};
use engine::expression::Kind;
use engine::value::Value;

use crate::args;

/// Returns the keys that a source needs, and those that it may have in addition.
fn keys(word: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match word {
        "job" => (&["endpoint", "input"], &["timeout"]),
        _ => (&["url"], &["key", "timeout"]),
    }
}

/// Returns the mistakes in the sources of all checks.
pub(crate) fn check(config: &Config) -> Diagnostics {
    let mut found = Diagnostics::new();
    for check in config.checks.values() {
        for (word, item) in check.sources.iter() {
            source(word, &item.value, &mut found);
        }
    }
    found
}

fn source(word: &str, value: &SpecExpr, found: &mut Diagnostics) {
    let entries = match &value.expr.kind {
        Kind::Map(entries) => entries,
        Kind::Literal(_) | Kind::Template(_) | Kind::List(_) => {
            let summary = format!("`{word}` of a check is a table");
            return found.push(Diagnostic::error(summary).at(value.span));
        }
        _ => return,
    };
    let mut given = Vec::new();
    for (key, part) in entries {
        let Kind::Literal(Value::String(name)) = &key.kind else { return };
        if let Err(wrong) = known_keys(word, [&**name].into_iter()) {
            found.push(Diagnostic::error(wrong).at(value.span_of(key.range)));
        } else if let Err(wrong) = known_part(name, &part.kind) {
            found.push(Diagnostic::error(wrong).at(value.span_of(part.range)));
        }
        given.push(&**name);
    }
    for needed in keys(word).0.iter().filter(|needed| !given.contains(needed)) {
        let summary = format!("`{word}` of the check has no `{needed}`");
        found.push(Diagnostic::error(summary).at(value.span));
    }
}

/// Refuses a literal part of a source that cannot be valid.
fn known_part(name: &str, part: &Kind) -> Result<(), String> {
    let text = match part {
        Kind::Literal(Value::Bool(_)) if name == "key" => return Ok(()),
        Kind::Literal(_) if name == "key" => return Err("`key` is true or false".to_owned()),
        Kind::Literal(Value::String(text)) => text,
        Kind::Literal(_) | Kind::List(_) | Kind::Map(_) if name != "input" => {
            return Err(format!("`{name}` is a text"));
        }
        _ => return Ok(()),
    };
    match name {
        "endpoint" => id(text),
        "timeout" => args::duration(text).map(drop).map_err(|why| format!("`timeout`: {why}")),
        "url" => url(text).map(drop).map_err(ToOwned::to_owned),
        _ => Ok(()),
    }
}

/// Refuses an address in place of an id. Without this check, only the run of the job would show the mistake.
fn id(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("`endpoint` is empty: it is the id of an endpoint".to_owned());
    }
    let Ok(address) = text.parse::<Address>() else { return Ok(()) };
    Err(format!("`{text}` is an address, and a job needs the id: write `${{{address}.id}}`"))
}

/// Parses the address that a request is sent to.
pub(crate) fn url(text: &str) -> Result<reqwest::Url, &'static str> {
    let url = reqwest::Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or("`url` is not an http or https address")
}

/// Refuses the first unknown key.
pub(super) fn known_keys<'k>(
    word: &str,
    mut given: impl Iterator<Item = &'k str>,
) -> Result<(), String> {
    let (needed, optional) = keys(word);
    let known = || needed.iter().chain(optional).copied();
    let Some(unknown) = given.find(|key| !known().any(|known| known == *key)) else {
        return Ok(());
    };
    let help = match nearest(unknown, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", known().collect::<Vec<_>>().join(", ")),
    };
    Err(format!("`{word}` has no `{unknown}`; {help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_cannot_be_what_they_should_be() {
        assert!(url("https://api.example/x").is_ok() && id("jpnw0v75y3qoql").is_ok());
        for wrong in ["", "5", "file:///etc/passwd", "api.example"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            id("endpoint.chat[eu]").unwrap_err(),
            "`endpoint.chat[eu]` is an address, and a job needs the id: write `${endpoint.chat[\"eu\"].id}`"
        );
    }

    #[test]
    fn keys_that_mean_nothing_are_named() {
        assert!(known_keys("job", ["input", "endpoint", "timeout"].into_iter()).is_ok());
        assert_eq!(
            known_keys("job", ["endpont"].into_iter()).unwrap_err(),
            "`job` has no `endpont`; did you mean `endpoint`?"
        );
        assert_eq!(
            known_keys("http", ["body"].into_iter()).unwrap_err(),
            "`http` has no `body`; it has url, key, timeout"
        );
    }
}
