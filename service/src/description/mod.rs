//! The description of a management API. The router is built from it, requests are checked against
//! it, and clients and people can read it: as an `OpenAPI` document and as a page.

mod openapi;
pub(crate) mod operation;
mod page;
pub(crate) mod shape;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;

use crate::app::App;
use crate::gate;
pub(crate) use openapi::ApiInfo;
use operation::Operation;

/// Returns the routes that describe an API: `openapi.json`, and a page for people. They need no
/// key, because they contain nothing that is not in the public source code.
pub(crate) fn documents(
    about: &ApiInfo,
    operations: &[Operation],
    server: &str,
) -> Router<Arc<App>> {
    let document = openapi::document(about, operations, server);
    let page: Arc<str> = page::page(&document).into();
    let document: Arc<str> = format!("{document:#}").into();
    let serve = |text: Arc<str>, media: &'static str| {
        get(move |State(app): State<Arc<App>>, request: Request| async move {
            let entry = app.access.entry(request.method().as_str(), &gate::whole_path(&request));
            let mut response = text.to_string().into_response();
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
            gate::finished(&entry, response)
        })
    };
    Router::new()
        .route("/openapi.json", serve(document, "application/json"))
        .route("/docs", serve(page, "text/html; charset=utf-8"))
}
