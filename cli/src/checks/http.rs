//! The request of a check: one GET, without a key, without redirects, with a bound on time and
//! size.

use engine::stored::from_json;
use engine::value::{Attributes, Datum, Value};

use super::{Fetched, fetched, job, shape};
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
    let asked = tokio::time::timeout(job::timeout(entries)?, get(url)).await;
    let (status, body) = asked.map_err(|_| "the request was not answered in time")??;
    let body = String::from_utf8_lossy(&body).into_owned();
    let json = serde_json::from_str(&body).ok();
    let value = Value::map(Attributes::from([
        ("status".into(), Value::Integer(i64::from(status))),
        ("json".into(), json.as_ref().map_or(Value::Null, from_json)),
        ("body".into(), Value::string(body)),
    ]));
    Ok(fetched(value, secret, Some(format!("the answer has status {status}"))))
}

async fn get(url: reqwest::Url) -> Result<(u16, Vec<u8>), String> {
    // An error says that one was chosen before, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| chain(&error))?;
    // The address may hold a secret.
    let failed = |error: reqwest::Error| chain(&error.without_url());
    let mut answer = client.get(url).send().await.map_err(failed)?;
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
