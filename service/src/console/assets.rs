//! The files of the console's page, served from `assets/` as they are, without a build step.

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// A file of the page.
struct Asset {
    name: &'static str,
    media: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $media:expr),* $(,)?) => {
        &[$(Asset {
            name: $name,
            media: $media,
            text: include_str!(concat!("assets/", $name)),
        }),*]
    };
}

const ASSETS: &[Asset] = assets![
    "base.css": STYLE,
    "parts.css": STYLE,
    "icon.svg": IMAGE,
    "main.js": SCRIPT,
    "api.js": SCRIPT,
    "charts.js": SCRIPT,
    "dom.js": SCRIPT,
    "format.js": SCRIPT,
    "json.js": SCRIPT,
    "keyboard.js": SCRIPT,
    "parts.js": SCRIPT,
    "shell.js": SCRIPT,
    "table.js": SCRIPT,
    "theme.js": SCRIPT,
    "log_pane.js": SCRIPT,
    "view_account.js": SCRIPT,
    "view_balancer.js": SCRIPT,
    "view_endpoint.js": SCRIPT,
    "view_endpoints.js": SCRIPT,
    "view_job.js": SCRIPT,
    "view_logs.js": SCRIPT,
    "view_pods.js": SCRIPT,
    "view_submit.js": SCRIPT,
];

const PAGE: Asset =
    Asset { name: "index.html", media: HTML, text: include_str!("assets/index.html") };

impl Asset {
    fn answer(&self) -> Response {
        let mut response = self.text.into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// `GET /`
pub(super) async fn page() -> Response {
    PAGE.answer()
}

/// `GET /console/{name}`
pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|asset| asset.name == name);
    found.map(Asset::answer).ok_or_else(|| Problem::not_found("path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file that the page or one of its scripts loads is in `assets/`, and nothing is loaded
    /// from elsewhere.
    #[test]
    fn each_file_that_is_loaded_is_there() {
        for asset in ASSETS.iter().chain([&PAGE]) {
            let words = asset.text.split(['"', '\'', '(', ')']);
            for word in words {
                let name = word.strip_prefix("./").or_else(|| word.strip_prefix("/console/"));
                let is_file =
                    |name: &&str| [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end));
                if let Some(name) = name.filter(is_file) {
                    let known = ASSETS.iter().any(|asset| asset.name == name);
                    assert!(known, "{} loads {name}", asset.name);
                }
            }
            let outside =
                asset.text.replace("http://www.w3.org/", "").replace("http://127.0.0.1", "");
            assert!(
                !outside.contains("http://") && !outside.contains("https://"),
                "{}",
                asset.name
            );
            assert!(!asset.text.contains("innerHTML"), "{}", asset.name);
        }
    }
}
