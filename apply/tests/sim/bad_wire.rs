//! The bugs planted between the HTTP provider and the wire: mistakes that an HTTP client might make.

use std::sync::Arc;

use async_trait::async_trait;
use provider_http::{Broken, Method, Request, Response, Transport};
use serde_json::Value as Json;

use crate::bugs::Bug;
use crate::service::{body, empty};

/// Returns the transport over which the HTTP provider of a run sends, with the bug.
pub(crate) fn wire(bug: Option<Bug>, inner: Arc<dyn Transport>) -> Arc<dyn Transport> {
    match bug {
        Some(bug) => Arc::new(BadWire { bug, inner }),
        None => inner,
    }
}

struct BadWire {
    bug: Bug,
    inner: Arc<dyn Transport>,
}

fn copy(request: &Request) -> Request {
    Request {
        method: request.method,
        url: request.url.clone(),
        connection: request.connection.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        within: request.within,
        answer_bytes_max: request.answer_bytes_max,
    }
}

fn mutates(request: &Request) -> bool {
    let body = request.body.as_deref().unwrap_or_default();
    request.method != Method::Get && !String::from_utf8_lossy(body).contains("query {")
}

#[async_trait]
impl Transport for BadWire {
    async fn send(&self, request: Request) -> Result<Response, Broken> {
        let (again, mutates) = (copy(&request), mutates(&request));
        let answer = self.inner.send(request).await;
        match (self.bug, answer) {
            (Bug::ResendAfterLoss, Err(Broken::Lost(_))) if mutates => self.inner.send(again).await,
            (Bug::LostIsNotSent, Err(Broken::Lost(why))) => Err(Broken::NotSent(why)),
            (_, Err(broken)) => Err(broken),
            (_, Ok(answer)) => Ok(self.misread(answer, mutates)),
        }
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}

impl BadWire {
    fn misread(&self, answer: Response, mutates: bool) -> Response {
        let html = answer.header("content-type") == Some("text/html");
        match self.bug {
            Bug::HtmlIsSuccess if html && answer.status == 200 && mutates => empty(204),
            Bug::InternalIsRefused if answer.status >= 500 && mutates => {
                body(400, &serde_json::json!({ "error": "it is wrong" }))
            }
            Bug::ErrorsAreRefusals if mutates => refused(answer),
            Bug::OnlyTheFirstPage if !mutates => first_page(answer),
            _ => answer,
        }
    }
}

/// Reads errors of GraphQL as refusals.
fn refused(answer: Response) -> Response {
    match serde_json::from_slice::<Json>(&answer.body) {
        Ok(json) if json.get("errors").is_some() => {
            body(400, &serde_json::json!({ "error": "it is wrong" }))
        }
        _ => answer,
    }
}

/// Keeps only the first object of each list, as if the others were on the next pages.
fn first_page(answer: Response) -> Response {
    let Ok(mut json) = serde_json::from_slice::<Json>(&answer.body) else { return answer };
    shorten(&mut json);
    body(answer.status, &json)
}

fn shorten(json: &mut Json) {
    match json {
        // Lists of objects are cut, lists in the attributes of an object are not.
        Json::Array(items) if items.iter().any(|item| item.get("id").is_some()) => {
            items.truncate(1);
        }
        Json::Object(entries) => entries.values_mut().for_each(shorten),
        _ => {}
    }
}
