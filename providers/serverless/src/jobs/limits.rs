//! The limits on a job, checked before anything is sent.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use engine::value::Value;
use serde::Serialize;
use serde_json::value::RawValue;

/// The largest body that `/run` accepts, in bytes.
pub const RUN_BYTES_MAX: usize = 10 << 20;
/// The largest body that `/runsync` accepts, in bytes.
pub const RUNSYNC_BYTES_MAX: usize = 20 << 20;

const WEEK_MS: u128 = 7 * 24 * 60 * 60 * 1000;
/// The execution timeout that a job may have, in milliseconds.
const EXECUTION_TIMEOUT_MS: RangeInclusive<u128> = 5_000..=WEEK_MS;
/// The lifetime that a job may have, in milliseconds.
const TTL_MS: RangeInclusive<u128> = 10_000..=WEEK_MS;
/// The wait that the service accepts, in milliseconds.
const WAIT_MS: RangeInclusive<u128> = 1_000..=300_000;

/// The reason that a job is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The input is no JSON.
    #[error("the input is not JSON: {0}")]
    NotJson(String),
    /// The input is no JSON object.
    #[error("the input must be a JSON object, such as {{\"prompt\": \"hello\"}}")]
    NotObject,
    /// The body is too large.
    #[error("the job has {bytes} bytes, and the service takes {max} here")]
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The largest size that is accepted.
        max: usize,
    },
    /// A time is out of its range.
    #[error("{what} is {ms} ms, and may be {min} to {max} ms")]
    OutOfRange {
        /// A description of the time.
        what: &'static str,
        /// Its value.
        ms: u128,
        /// The least allowed value.
        min: u128,
        /// The greatest allowed value.
        max: u128,
    },
    /// The webhook is no URL.
    #[error("the webhook is not an http or https address")]
    Webhook,
    /// The object storage does not have the right form. The message does not quote the mistake, because it
    /// may be a secret.
    #[error(
        "the object storage is not a JSON object of texts: accessId, accessSecret, bucketName, endpointUrl"
    )]
    S3Config,
}

/// A job before it is submitted.
#[derive(Clone, Debug, Serialize)]
pub struct Submission {
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<String>,
    #[serde(skip_serializing_if = "Policy::is_empty")]
    policy: Policy,
    #[serde(rename = "s3Config", skip_serializing_if = "Option::is_none")]
    s3_config: Option<S3Config>,
}

/// The object storage for the worker, sent without a change. Contains a secret, so `Debug` does not show it.
#[derive(Clone, Serialize)]
#[serde(transparent)]
struct S3Config(Box<RawValue>);

impl std::fmt::Debug for S3Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3Config")
    }
}

/// The rules for the execution of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    low_priority: bool,
}

impl Policy {
    fn is_empty(&self) -> bool {
        self.execution_timeout.is_none() && self.ttl.is_none() && !self.low_priority
    }
}

impl Submission {
    /// Returns a job with this input, a JSON text, which is sent without a change.
    pub fn new(input: &str) -> Result<Self, Refused> {
        let input: Box<RawValue> =
            serde_json::from_str(input).map_err(|error| Refused::NotJson(error.to_string()))?;
        if !input.get().starts_with('{') {
            return Err(Refused::NotObject);
        }
        Ok(Self { input, webhook: None, policy: Policy::default(), s3_config: None })
    }

    /// Sets the URL that the service calls when the job has ended.
    pub fn webhook(mut self, url: &str) -> Result<Self, Refused> {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let plain = url.bytes().all(|b| b.is_ascii_graphic());
        if !plain || rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(Refused::Webhook);
        }
        self.webhook = Some(url.to_owned());
        Ok(self)
    }

    /// Sets the longest time that the job may run once a worker has it.
    pub fn execution_timeout(mut self, time: Duration) -> Result<Self, Refused> {
        self.policy.execution_timeout =
            Some(in_range("the execution timeout", time, &EXECUTION_TIMEOUT_MS)?);
        Ok(self)
    }

    /// Sets the time after which the job is deleted, in whatever state it is.
    pub fn ttl(mut self, time: Duration) -> Result<Self, Refused> {
        self.policy.ttl = Some(in_range("the time to live", time, &TTL_MS)?);
        Ok(self)
    }

    /// Sets that no worker is started for the job.
    #[must_use]
    pub fn low_priority(mut self, low: bool) -> Self {
        self.policy.low_priority = low;
        self
    }

    /// Sets the object storage for the worker: a JSON object of texts, which is sent without a change.
    pub fn s3_config(mut self, json: &str) -> Result<Self, Refused> {
        let texts: Result<BTreeMap<String, String>, _> = serde_json::from_str(json);
        let raw: Result<Box<RawValue>, _> = serde_json::from_str(json);
        match (texts, raw) {
            (Ok(texts), Ok(raw)) if !texts.is_empty() => self.s3_config = Some(S3Config(raw)),
            _ => return Err(Refused::S3Config),
        }
        Ok(self)
    }

    /// Returns the credentials of the object storage. Its address is no secret.
    pub(super) fn secrets(&self) -> Vec<Value> {
        let raw = self.s3_config.as_ref().map_or("{}", |config| config.0.get());
        let texts: BTreeMap<String, String> = serde_json::from_str(raw).unwrap_or_default();
        let is_place = |name: &str| matches!(name, "bucketName" | "endpointUrl");
        texts
            .into_iter()
            .filter(|(name, _)| !is_place(name))
            .map(|(_, v)| Value::string(v))
            .collect()
    }

    /// Returns the body to send. Refuses one that is too large.
    pub fn body(&self, max: usize) -> Result<String, Refused> {
        // Texts, numbers and JSON that was parsed before can be written.
        let body = serde_json::to_string(self).expect("a submission can be written as JSON");
        if body.len() > max {
            return Err(Refused::TooLarge { bytes: body.len(), max });
        }
        Ok(body)
    }
}

/// The time for which the service is asked to wait for the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait(u64);

impl Wait {
    /// Returns the wait for a time in the range that the service accepts.
    pub fn new(time: Duration) -> Result<Self, Refused> {
        in_range("the wait", time, &WAIT_MS).map(Self)
    }

    /// Returns the wait that the service accepts and that is nearest to a time.
    pub fn nearest(time: Duration) -> Self {
        let ms = time.as_millis().clamp(*WAIT_MS.start(), *WAIT_MS.end());
        Self(u64::try_from(ms).unwrap_or(1_000))
    }

    /// Returns the wait in milliseconds.
    pub fn ms(self) -> u64 {
        self.0
    }

    /// Returns the wait as a duration.
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

fn in_range(
    what: &'static str,
    time: Duration,
    range: &RangeInclusive<u128>,
) -> Result<u64, Refused> {
    let ms = time.as_millis();
    match u64::try_from(ms) {
        Ok(number) if range.contains(&ms) => Ok(number),
        _ => Err(Refused::OutOfRange { what, ms, min: *range.start(), max: *range.end() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_was_written() {
        let submission = Submission::new(r#" {"n":12345678901234567890123,"f":1.50} "#).unwrap();
        assert_eq!(
            submission.body(100).unwrap(),
            r#"{"input":{"n":12345678901234567890123,"f":1.50}}"#
        );
        let submission = submission
            .webhook("https://h/x")
            .and_then(|s| s.ttl(Duration::from_secs(10)))
            .and_then(|s| s.execution_timeout(Duration::from_secs(5)))
            .unwrap();
        assert!(submission.low_priority(true).body(1000).unwrap().ends_with(
            r#","webhook":"https://h/x","policy":{"executionTimeout":5000,"ttl":10000,"lowPriority":true}}"#
        ));
    }

    #[test]
    fn what_opens_the_object_storage_is_secret() {
        let storage = r#"{"accessId": "id", "accessSecret": "s3cret", "bucketName": "b",
            "endpointUrl": "http://x"}"#;
        let submission = Submission::new("{}").unwrap();
        assert!(submission.secrets().is_empty());
        let secrets = submission.s3_config(storage).unwrap().secrets();
        assert_eq!(secrets, [Value::string("id"), Value::string("s3cret")]);
    }

    #[test]
    fn inputs_that_no_service_takes() {
        assert!(matches!(Submission::new("{"), Err(Refused::NotJson(_))));
        assert!(matches!(Submission::new(""), Err(Refused::NotJson(_))));
        for input in [" null ", "[1]", "5", "\"text\""] {
            assert_eq!(Submission::new(input).unwrap_err(), Refused::NotObject);
        }
    }

    #[test]
    fn sizes_are_those_of_the_whole_body() {
        let submission = Submission::new("{\"x\":1}").unwrap();
        let bytes = r#"{"input":{"x":1}}"#.len();
        assert!(submission.body(bytes).is_ok());
        assert_eq!(
            submission.body(bytes - 1).unwrap_err(),
            Refused::TooLarge { bytes, max: bytes - 1 }
        );
    }

    #[test]
    fn ranges_have_ends() {
        let submission = Submission::new("{}").unwrap();
        let ttl = |ms| submission.clone().ttl(Duration::from_millis(ms));
        assert!(ttl(10_000).is_ok() && ttl(604_800_000).is_ok());
        assert_eq!(
            ttl(9_999).unwrap_err().to_string(),
            "the time to live is 9999 ms, and may be 10000 to 604800000 ms"
        );
        assert!(ttl(604_800_001).is_err());
        let timeout = |ms| submission.clone().execution_timeout(Duration::from_millis(ms));
        assert!(timeout(5_000).is_ok() && timeout(4_999).is_err());
        let wait = |ms| Wait::new(Duration::from_millis(ms));
        assert!(wait(1_000).is_ok() && wait(300_000).is_ok());
        assert!(wait(999).is_err() && wait(300_001).is_err());
        assert_eq!(Wait::nearest(Duration::ZERO).ms(), 1_000);
        assert_eq!(Wait::nearest(Duration::MAX).ms(), 300_000);
    }

    #[test]
    fn object_storage_is_handed_through_and_not_shown() {
        let storage = r#"{"accessId": "a", "accessSecret": "canary", "bucketName":"b"}"#;
        let submission = Submission::new("{}").unwrap().s3_config(storage).unwrap();
        assert_eq!(
            submission.body(200).unwrap(),
            format!(r#"{{"input":{{}},"s3Config":{storage}}}"#)
        );
        assert!(!format!("{submission:?}").contains("canary"));
        for wrong in ["", "{}", "[]", r#"{"accessSecret": 1, "x": "canary"}"#, "canary"] {
            let refused = Submission::new("{}").unwrap().s3_config(wrong).unwrap_err();
            assert_eq!(refused, Refused::S3Config);
            assert!(!refused.to_string().contains("canary"));
        }
    }

    #[test]
    fn webhooks_are_addresses() {
        let webhook = |url: &str| Submission::new("{}").unwrap().webhook(url).is_ok();
        assert!(webhook("http://127.0.0.1:1/x") && webhook("https://h"));
        assert!(!webhook("ftp://h") && !webhook("http://") && !webhook("http:///x"));
        assert!(!webhook("http://a b") && !webhook("h"));
    }
}
