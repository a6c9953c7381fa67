//! The request of a check or a look-up: one GET, without a key, without redirects, with a bound on time and
//! size. A secret in its address goes to no host that only the spec names.

use std::time::Duration;

use engine::hosts::{AllowedHosts, is_loopback};
use engine::stored::from_json;
use engine::value::{Attributes, Datum, Value};
use reqwest::header::HeaderMap;

use super::{Fetched, fetched, job, shape};
use crate::environment;
use crate::error::chain;

/// The largest answer that is looked at, in bytes.
const BODY_MAX: usize = 1 << 20;

/// Fetches what `http` stands for: `status`, `body`, and `json` where the body is JSON.
pub(super) async fn fetch(datum: &Datum) -> Result<Fetched, String> {
    let entries = datum.value.as_map().ok_or("`http` is a table with `url`")?;
    shape::known_keys("http", entries.keys().map(|key| &**key))?;
    let url = entries.get("url").and_then(Value::as_str);
    let url = shape::url(url.ok_or("`url` is a text")?)?;
    let secret = !datum.sensitive.is_empty();
    let timeout = job::timeout(entries)?;
    let Answer { status, value } =
        ask(Get { url, headers: HeaderMap::new(), secret, timeout }).await?;
    Ok(fetched(value, secret, Some(format!("the answer has status {status}"))))
}

/// A request.
pub(crate) struct Get {
    pub(crate) url: reqwest::Url,
    pub(crate) headers: HeaderMap,
    /// True if a secret is in it.
    pub(crate) secret: bool,
    pub(crate) timeout: Duration,
}

/// The answer to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `status`, `body`, and `json` where the body is JSON.
    pub(crate) value: Value,
}

/// Sends a request, and reads its answer.
pub(crate) async fn ask(request: Get) -> Result<Answer, String> {
    let Get { url, headers, secret, timeout } = request;
    let allowed = environment::variable(environment::ALLOWED_HOSTS).unwrap_or_default();
    if secret && !may_have_secret(&url, &AllowedHosts::parse(&allowed)) {
        return Err(kept_back());
    }
    let asked = tokio::time::timeout(timeout, get(url, headers)).await;
    let (status, body) = asked.map_err(|_| "the request was not answered in time")??;
    let body = String::from_utf8_lossy(&body).into_owned();
    let json = serde_json::from_str(&body).ok();
    let value = Value::map(Attributes::from([
        ("status".into(), Value::Integer(i64::from(status))),
        ("json".into(), json.as_ref().map_or(Value::Null, from_json)),
        ("body".into(), Value::string(body)),
    ]));
    Ok(Answer { status, value })
}

/// Returns true if a secret may stand in this address: a spec may come from somebody else, and goes by the
/// rule that holds for the addresses of providers.
fn may_have_secret(url: &reqwest::Url, allowed: &AllowedHosts) -> bool {
    url.host_str().is_some_and(|host| is_loopback(host) || allowed.allows_at(url.scheme(), host))
}

/// Returns the message of a request that is not sent. The host may itself be made of the secret, so it is
/// not named.
fn kept_back() -> String {
    "nothing is sent: the request holds a secret, and only the spec names its host; if you trust \
     it, set PLUMB_ALLOWED_HOSTS to that host, and to http:// and that host for an address without \
     encryption"
        .to_owned()
}

async fn get(url: reqwest::Url, headers: HeaderMap) -> Result<(u16, Vec<u8>), String> {
    // An error says that one was chosen before, which is as good.
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
        let refused = fetch(&asking("http://hunter2.invalid/hunter2")).await.err().unwrap();
        assert!(refused.contains("PLUMB_ALLOWED_HOSTS"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
