//! The host names of endpoints: `<endpoint>.localhost`.

use axum::http::header::HOST;
use axum::http::uri::PathAndQuery;
use axum::http::{Request, Uri};

use super::PREFIX;
use crate::ids;

/// Turns a request to the host of an endpoint into a request to the path of that endpoint.
pub(crate) fn resolved<B>(mut request: Request<B>) -> Request<B> {
    if let Some(uri) = uri_of_endpoint(&request) {
        *request.uri_mut() = uri;
    }
    request
}

fn uri_of_endpoint<B>(request: &Request<B>) -> Option<Uri> {
    let header = || request.headers().get(HOST)?.to_str().ok();
    let host = request.uri().host().or_else(header)?;
    let endpoint = endpoint_of(host)?;
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{PREFIX}{endpoint}{slash}{path}").parse().ok()
}

fn endpoint_of(host: &str) -> Option<String> {
    let name = host.split(':').next()?;
    let (label, domain) = name.split_once('.')?;
    if !domain.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return None;
    }
    let label = label.to_ascii_lowercase();
    ids::is_long(&label).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(host: &str, uri: &str) -> String {
        let request = Request::get(uri).header(HOST, host).body(()).unwrap();
        resolved(request).uri().to_string()
    }

    #[test]
    fn the_host_of_an_endpoint_is_its_path() {
        let id = "0a1b2c3d4e5f6g";
        assert_eq!(
            uri(&format!("{id}.localhost:8080"), "/a%2Fb?c=d"),
            format!("/lb/{id}/a%2Fb?c=d")
        );
        assert_eq!(uri(&format!("{id}.LOCALHOST."), "/"), format!("/lb/{id}/"));
        let absolute = format!("http://{id}.localhost:1/x");
        assert_eq!(uri("elsewhere", &absolute), format!("/lb/{id}/x"));
        for other in ["localhost:8080", "127.0.0.1", "v1.localhost", "0a1b2c3d4e5f6g.example.com"] {
            assert_eq!(uri(other, "/v1/pods"), "/v1/pods", "{other}");
        }
    }
}
