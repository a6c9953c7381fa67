//! The request of a check or a look-up: one GET, without redirects, with limits on time and size. A secret in
//! the request is not sent to a host that only the spec names. The key is sent only to the service, and only
//! if the check asks for that.

use std::time::Duration;

use apply::checks::Live;
use engine::hosts::{AllowedHosts, is_loopback};
use engine::stored::from_json;
use engine::value::{Attributes, Datum, Value};
use provider_serverless::jobs::takes_jobs;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Fetched, World, fetched, job, shape};
use crate::environment;
use crate::error::chain;

/// The maximum number of bytes that are read of an answer.
const BODY_MAX: usize = 1 << 20;

impl World<'_> {
    /// Sends the request that `http` describes. Returns `status`, `body`, and `json` if the body is JSON.
    pub(super) async fn request(&self, datum: &Datum, live: &Live) -> Result<Fetched, String> {
        let (mut request, with_key) = asked(datum)?;
        let secret = request.secret;
        let answered = |answer: Answer| {
            let status = answer.status;
            fetched(answer.value, secret, Some(format!("the answer has status {status}")))
        };
        if !with_key {
            return ask(request).await.map(answered);
        }
        let api = self.configured.jobs.as_ref().ok_or(NO_KEY)?;
        let key = api.key_for(&request.url, |id| live.stands_for(id, |ty| takes_jobs(ty)));
        let (name, value) = key.and_then(|(name, value)| header(&name, &value)).ok_or(NO_KEY)?;
        request.headers.insert(name, value);
        let (status, body) = send(request).await?;
        Ok(answered(answer(status, api.hide(&body))))
    }
}

/// The message for a request with a key that is not sent.
const NO_KEY: &str = "nothing is sent: `key = true` is for the addresses of the serverless service, such as `base_url` of \
                      an endpoint of this spec";

fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name.parse().ok()?, value))
}

/// Reads the request of a check. Returns the request, and true if it carries the key of the service.
fn asked(datum: &Datum) -> Result<(Get, bool), String> {
    let entries = datum.value.as_map().ok_or("`http` is a table with `url`")?;
    shape::known_keys("http", entries.keys().map(|key| &**key))?;
    let url = entries.get("url").and_then(Value::as_str);
    let url = shape::url(url.ok_or("`url` is a text")?)?;
    let with_key = match entries.get("key") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(with_key)) => *with_key,
        Some(_) => return Err("`key` is true or false".to_owned()),
    };
    let secret = !datum.sensitive.is_empty();
    let timeout = job::timeout(entries)?;
    Ok((Get { url, headers: HeaderMap::new(), secret, timeout }, with_key))
}

/// A request.
pub(crate) struct Get {
    pub(crate) url: reqwest::Url,
    pub(crate) headers: HeaderMap,
    /// True if the request holds a secret.
    pub(crate) secret: bool,
    pub(crate) timeout: Duration,
}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// A map of `status`, `body`, and `json` if the body is JSON.
    pub(crate) value: Value,
}

/// Sends a request, and reads its answer.
pub(crate) async fn ask(request: Get) -> Result<Answer, String> {
    let (status, body) = send(request).await?;
    Ok(answer(status, body))
}

/// Sends a request, and returns the status and the body of the answer.
async fn send(request: Get) -> Result<(u16, String), String> {
    let Get { url, headers, secret, timeout } = request;
    let allowed = environment::variable(environment::ALLOWED_HOSTS).unwrap_or_default();
    if secret && !may_have_secret(&url, &AllowedHosts::parse(&allowed)) {
        return Err(kept_back());
    }
    let asked = tokio::time::timeout(timeout, get(url, headers)).await;
    let (status, body) = asked.map_err(|_| "the request was not answered in time")??;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

fn answer(status: u16, body: String) -> Answer {
    let json = serde_json::from_str(&body).ok();
    let value = Value::map(Attributes::from([
        ("status".into(), Value::Integer(i64::from(status))),
        ("json".into(), json.as_ref().map_or(Value::Null, from_json)),
        ("body".into(), Value::string(body)),
    ]));
    Answer { status, value }
}

/// Returns true if a secret may be sent to this address. The spec may come from someone else, so the rule for
/// the addresses of providers applies.
fn may_have_secret(url: &reqwest::Url, allowed: &AllowedHosts) -> bool {
    url.host_str().is_some_and(|host| is_loopback(host) || allowed.allows_at(url.scheme(), host))
}

/// Returns the message for a request that is not sent. It does not name the host, which may be made of the
/// secret.
fn kept_back() -> String {
    "nothing is sent: the request holds a secret, and only the spec names its host; if you trust \
     it, set PLUMB_ALLOWED_HOSTS to that host, and to http:// and that host for an address without \
     encryption"
        .to_owned()
}

async fn get(url: reqwest::Url, headers: HeaderMap) -> Result<(u16, Vec<u8>), String> {
    // An error here says that a TLS implementation was chosen before, so it is ignored.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| chain(&error))?;
    // The address may hold a secret.
    let failed = |error: reqwest::Error| chain(&error.without_url());
    let mut answer = client.get(url).headers(headers).send().await.map_err(failed)?;
    let status = answer.status().as_u16();
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(failed)? {
        if body.len() + part.len() > BODY_MAX {
            return Err("the answer is larger than 1 MiB".to_owned());
        }
        body.extend_from_slice(&part);
    }
    Ok((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(url: &str) -> Datum {
        let entries = Attributes::from([("url".into(), Value::string(url.to_owned()))]);
        let value = Value::map(entries);
        Datum { value, sensitive: engine::value::Paths::whole() }
    }

    #[test]
    fn a_secret_goes_to_this_machine_and_where_the_user_lets_it() {
        let allowed = AllowedHosts::parse("a.example");
        let may = |url: &str| may_have_secret(&shape::url(url).unwrap(), &allowed);
        for url in
            ["http://127.0.0.1:1/x", "http://[::1]/", "http://localhost/", "https://A.Example/"]
        {
            assert!(may(url), "{url}");
        }
        for url in [
            "http://0.0.0.0:1/x",
            "http://a.example/",
            "https://b.a.example/",
            "https://a.example@evil.example/",
        ] {
            assert!(!may(url), "{url}");
        }
    }

    #[tokio::test]
    async fn what_is_not_sent_is_not_shown() {
        let (request, _) = asked(&asking("http://hunter2.invalid/hunter2")).unwrap();
        let refused = send(request).await.unwrap_err();
        assert!(refused.contains("PLUMB_ALLOWED_HOSTS"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
