//! The form of what a check fetches, as far as the spec shows it without computing anything.

use engine::diagnostics::{Diagnostic, Diagnostics, nearest};
use engine::expression::Kind;
use engine::spec::{CheckConfig, Config, SpecExpr};
use engine::value::Value;

/// What a source needs, and what it may have beside.
fn keys(word: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match word {
        "job" => (&["endpoint", "input"], &["timeout"]),
        _ => (&["url"], &["timeout"]),
    }
}

/// What is wrong with the sources of all checks.
pub(crate) fn check(config: &Config) -> Diagnostics {
    let mut found = Diagnostics::new();
    for check in config.checks.values() {
        check_one(check, &mut found);
    }
    found
}

fn check_one(check: &CheckConfig, found: &mut Diagnostics) {
    for (word, item) in check.sources.iter() {
        source(word, &item.value, found);
    }
}

fn source(word: &str, value: &SpecExpr, found: &mut Diagnostics) {
    let Kind::Map(entries) = &value.expr.kind else { return };
    let mut given = Vec::new();
    for (key, _) in entries {
        let Kind::Literal(Value::String(name)) = &key.kind else { return };
        if let Err(wrong) = known_keys(word, [&**name].into_iter()) {
            found.push(Diagnostic::error(wrong).at(value.span_of(key.range)));
        }
        given.push(&**name);
    }
    for needed in keys(word).0 {
        if !given.contains(needed) {
            let summary = format!("`{word}` of the check has no `{needed}`");
            found.push(Diagnostic::error(summary).at(value.span));
        }
    }
}

/// Refuses the first key that means nothing.
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
    fn keys_that_mean_nothing_are_named() {
        assert!(known_keys("job", ["input", "endpoint", "timeout"].into_iter()).is_ok());
        assert_eq!(
            known_keys("job", ["endpont"].into_iter()).unwrap_err(),
            "`job` has no `endpont`; did you mean `endpoint`?"
        );
        assert_eq!(
            known_keys("http", ["body"].into_iter()).unwrap_err(),
            "`http` has no `body`; it has url, timeout"
        );
    }
}
