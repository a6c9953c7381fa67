//! The checked body of `/run` and `/runsync`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value;
use serde_json::value::RawValue;

use super::record::Request;
use crate::problem::Problem;

/// The most bytes of a body of `/run`.
pub(crate) const RUN_MAX: usize = 10 << 20;
/// The most bytes of a body of `/runsync`.
pub(crate) const RUNSYNC_MAX: usize = 20 << 20;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The range of `policy.executionTimeout`, in milliseconds.
const TIMEOUT: RangeInclusive<i64> = 5000..=7 * DAY_MS;
/// The range of `policy.ttl`, in milliseconds.
pub(crate) const TTL: RangeInclusive<i64> = 10_000..=7 * DAY_MS;
/// The range of `wait`, in milliseconds.
const WAIT: RangeInclusive<i64> = 1000..=300_000;
const WAIT_DEFAULT: i64 = 90_000;

/// An accepted body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Submission {
    /// The JSON object as the client wrote it, with all keys.
    pub(crate) request: String,
    pub(crate) webhook: Option<String>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) ttl_ms: i64,
    pub(crate) low_priority: bool,
}

impl Submission {
    /// Reads and checks a body.
    pub(crate) fn parse(body: &[u8]) -> Result<Submission, Problem> {
        let text = std::str::from_utf8(body)
            .map_err(|_| Problem::invalid("the request body is not UTF-8"))?;
        let Request(fields) = serde_json::from_str(text).map_err(|error| {
            // The body is JSON, but not an object, if it can be read as any JSON value.
            match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Problem::invalid("the request body must be a JSON object"),
                Err(_) => Problem::invalid(format!("the request body is not JSON: {error}")),
            }
        })?;
        if fields.get("input").is_none_or(|input| input.get() == "null") {
            return Err(Problem::invalid("input is required"));
        }
        if fields.get("input").is_some_and(|input| !input.get().starts_with('{')) {
            return Err(Problem::invalid("input must be an object"));
        }
        let policy = &parsed(&fields, "policy")?;
        if !policy.is_null() && !policy.is_object() {
            return Err(Problem::invalid("policy must be an object"));
        }
        let ttl_ms = bounded(policy, "ttl", "policy.ttl", &TTL)?.unwrap_or(DAY_MS);
        let timeout_ms = bounded(policy, "executionTimeout", "policy.executionTimeout", &TIMEOUT)?;
        let low_priority = match &policy["lowPriority"] {
            Value::Null => false,
            Value::Bool(low) => *low,
            _ => return Err(Problem::invalid("policy.lowPriority must be true or false")),
        };
        let webhook = webhook(&parsed(&fields, "webhook")?)?;
        let s3_config = parsed(&fields, "s3Config")?;
        if !s3_config.is_null() && !s3_config.is_object() {
            return Err(Problem::invalid("s3Config must be an object"));
        }
        Ok(Submission { request: text.to_owned(), webhook, timeout_ms, ttl_ms, low_priority })
    }
}

/// Reads a field that the service itself needs; it is null if it is missing.
fn parsed(fields: &BTreeMap<String, Box<RawValue>>, name: &str) -> Result<Value, Problem> {
    let Some(raw) = fields.get(name) else { return Ok(Value::Null) };
    serde_json::from_str(raw.get())
        .map_err(|error| Problem::invalid(format!("{name} cannot be read: {error}")))
}

/// Returns the value of `wait` in milliseconds; without one, the default.
pub(crate) fn wait(given: Option<&str>) -> Result<i64, Problem> {
    match given {
        None | Some("") => Ok(WAIT_DEFAULT),
        Some(text) => in_range(text, "wait", &WAIT),
    }
}

/// Reads a number of a query string, and checks its range.
pub(crate) fn in_range(
    text: &str,
    name: &str,
    range: &RangeInclusive<i64>,
) -> Result<i64, Problem> {
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(out_of_range(name, range)),
    }
}

fn bounded(
    policy: &Value,
    key: &str,
    name: &str,
    range: &RangeInclusive<i64>,
) -> Result<Option<i64>, Problem> {
    match &policy[key] {
        Value::Null => Ok(None),
        value => match value.as_i64() {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(out_of_range(name, range)),
        },
    }
}

fn out_of_range(name: &str, range: &RangeInclusive<i64>) -> Problem {
    let (min, max) = (range.start(), range.end());
    Problem::invalid(format!("{name} must be a whole number of milliseconds, {min} to {max}"))
}

fn webhook(value: &Value) -> Result<Option<String>, Problem> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => {
            let parsed = reqwest::Url::parse(text).ok();
            let usable = parsed
                .is_some_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
            if usable {
                return Ok(Some(text.clone()));
            }
            Err(Problem::invalid("webhook must be an http or https address"))
        }
        _ => Err(Problem::invalid("webhook must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_checked() {
        let check = |body: &str, expected: &str| {
            let error = Submission::parse(body.as_bytes()).unwrap_err().message;
            assert!(error.contains(expected), "{body}: {error}");
        };
        check("{", "not JSON");
        check("[]", "JSON object");
        check("{}", "input is required");
        check(r#"{"input": null}"#, "input is required");
        for input in ["[1]", "5", "\"s\"", "true"] {
            check(&format!("{{\"input\": {input}}}"), "input must be an object");
        }
        check(r#"{"input": {}, "policy": 1}"#, "policy must be");
        check(r#"{"input": {}, "policy": {"ttl": 9999}}"#, "10000 to 604800000");
        check(r#"{"input": {}, "policy": {"ttl": "1"}}"#, "whole number");
        check(r#"{"input": {}, "policy": {"executionTimeout": 4999}}"#, "5000 to");
        check(r#"{"input": {}, "policy": {"lowPriority": 1}}"#, "true or false");
        check(r#"{"input": {}, "webhook": "ftp://x"}"#, "http or https");
        check(r#"{"input": {}, "s3Config": "x"}"#, "s3Config");
        let body = r#"{"input": {}, "extra": [1], "policy": {"ttl": 10000, "lowPriority": true}}"#;
        let accepted = Submission::parse(body.as_bytes()).unwrap();
        assert_eq!(
            (accepted.ttl_ms, accepted.timeout_ms, accepted.low_priority),
            (10_000, None, true)
        );
        assert!(accepted.request.contains("extra"));
        assert_eq!(wait(None), Ok(90_000));
        assert!(wait(Some("999")).is_err() && wait(Some("x")).is_err());
    }
}
