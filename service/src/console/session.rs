//! Sessions of the console: a cookie and a token in the browser instead of the key.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;

use super::{Console, Shared};
use crate::auth::same;
use crate::body;
use crate::ids;
use crate::keys::{Access, Interface};
use crate::problem::{Kind, Problem};
use crate::rest::answer::json_response;

/// The header in which the page shows its token.
const TOKEN: &str = "x-plumb-console";

/// The most sessions. A further one ends the session that has not been used for the longest time.
const SESSIONS_MAX: usize = 64;

/// The time without use after which a session ends.
const LIFETIME: Duration = Duration::from_hours(12);

/// The right that a key needs for a session: the page shows the whole account.
const READING: Access<'static> =
    Access { interface: Interface::Rest, changes: false, endpoint: None };

/// The most bytes of the sign-in form.
const FORM_MAX: usize = 8 << 10;

/// The open sessions, the least recently used one first. All of them end with the service.
#[derive(Default)]
pub(super) struct Sessions(Mutex<VecDeque<Session>>);

struct Session {
    /// The value of the cookie.
    cookie: String,
    /// The token that the page sends with each call. A browser sends a cookie to every port of an
    /// address, but only the pages of this port hold the token.
    token: String,
    key: String,
    used_at: Instant,
}

/// The session of a request, which was found by cookie and token.
#[derive(Clone)]
pub(super) struct SignedIn {
    /// The key that the session was opened with.
    pub(super) key: String,
    cookie: String,
}

impl Sessions {
    /// Opens a session and returns its cookie and its token.
    fn open(&self, key: &str) -> (String, String) {
        let (cookie, token) = (ids::secret(), ids::secret());
        let mut sessions = self.lock();
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back(Session {
            cookie: cookie.clone(),
            token: token.clone(),
            key: key.to_owned(),
            used_at: Instant::now(),
        });
        (cookie, token)
    }

    /// Returns the session with this cookie and this token, and notes that it was used now.
    fn find(&self, cookie: &str, token: &str) -> Option<SignedIn> {
        let mut sessions = self.lock();
        sessions.retain(|session| session.used_at.elapsed() < LIFETIME);
        let at = sessions.iter().position(|session| {
            same(session.cookie.as_bytes(), cookie.as_bytes())
                & same(session.token.as_bytes(), token.as_bytes())
        })?;
        let mut session = sessions.remove(at)?;
        session.used_at = Instant::now();
        let found = SignedIn { key: session.key.clone(), cookie: cookie.to_owned() };
        sessions.push_back(session);
        Some(found)
    }

    /// Returns true if a session has neither been ended nor been replaced by newer ones.
    fn has(&self, signed_in: &SignedIn) -> bool {
        self.lock().iter().any(|session| session.cookie == signed_in.cookie)
    }

    fn close(&self, cookie: &str) {
        self.lock().retain(|session| session.cookie != cookie);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fields of the sign-in form.
#[derive(Deserialize)]
struct Form {
    key: String,
}

/// `POST /console/session`: opens a session for a key.
pub(super) async fn open(State(console): Shared, request: Request) -> Result<Response, Problem> {
    let media = request.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    if !media.is_some_and(|media| media.starts_with("application/json")) {
        return Err(Problem::invalid("the form must be sent as JSON"));
    }
    let body = body::read(request.into_body(), FORM_MAX).await?;
    let form: Form = serde_json::from_slice(&body)
        .map_err(|_| Problem::invalid("the form must be an object with the key"))?;
    let key = form.key.trim();
    let Some(principal) = bearer(key).and_then(|_| console.app.keys.principal(key)) else {
        return Err(Problem::new(
            Kind::Unauthorized,
            "This service does not know that key. The key of the account stands in `serve.json` \
             of the data folder, and `plumb serve --print-env` prints it.",
        ));
    };
    principal.permit(READING)?;
    let (cookie, token) = console.sessions.open(key);
    let mut response = json_response(StatusCode::OK, &json!({ "token": token }));
    response.headers_mut().insert(SET_COOKIE, console.cookie(&cookie, ""));
    Ok(response)
}

/// `GET /console/session`: 200 for a request with an open session, else 401.
pub(super) async fn show(State(console): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    console.signed_in(&headers)?;
    Ok(json_response(StatusCode::OK, &json!({ "version": env!("CARGO_PKG_VERSION") })))
}

/// `DELETE /console/session`: signs out.
pub(super) async fn close(State(console): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let signed_in = console.signed_in(&headers)?;
    console.sessions.close(&signed_in.cookie);
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(SET_COOKIE, console.cookie("", "; Max-Age=0"));
    Ok(response)
}

/// The middleware of the routes that need a session.
pub(super) async fn require(State(console): Shared, mut request: Request, next: Next) -> Response {
    match console.signed_in(request.headers()) {
        Ok(signed_in) => {
            request.extensions_mut().insert(signed_in);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns the value of the authorization header for a key; `None` for a text that cannot be a key.
pub(super) fn bearer(key: &str) -> Option<HeaderValue> {
    let is_usable = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    let mut value = is_usable.then(|| HeaderValue::try_from(format!("Bearer {key}")).ok())??;
    value.set_sensitive(true);
    Some(value)
}

impl Console {
    /// Returns true if a session is still open, and its key was not revoked.
    pub(super) fn is_open(&self, signed_in: &SignedIn) -> bool {
        let principal = self.app.keys.principal(&signed_in.key);
        principal.is_some_and(|principal| principal.permit(READING).is_ok())
            && self.sessions.has(signed_in)
    }

    fn signed_in(&self, headers: &HeaderMap) -> Result<SignedIn, Problem> {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key.trim() == name).then(|| value.trim())
        });
        let token = headers.get(TOKEN).and_then(|token| token.to_str().ok());
        let found = pairs.find_map(|cookie| self.sessions.find(cookie, token?));
        let found = found.filter(|signed_in| self.is_open(signed_in));
        let ended = "You are not signed in, or the session has ended. Sign in with the key.";
        found.ok_or_else(|| Problem::new(Kind::Unauthorized, ended))
    }

    /// Returns the name of the cookie. It contains the port, because a browser sends the same
    /// cookies to all ports of this machine.
    fn cookie_name(&self) -> String {
        let port = self.app.base_url().rsplit(':').next().unwrap_or("");
        format!("plumb-console-{port}")
    }

    fn cookie(&self, value: &str, more: &str) -> HeaderValue {
        let name = self.cookie_name();
        let secure = if self.app.base_url().starts_with("https:") { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/console; HttpOnly; SameSite=Strict{secure}{more}");
        HeaderValue::try_from(text).expect("a cookie is made of plain letters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_needs_both_of_its_secrets() {
        let sessions = Sessions::default();
        let (cookie, token) = sessions.open("key");
        let (other_cookie, other_token) = sessions.open("other");
        let signed_in = sessions.find(&cookie, &token).unwrap();
        assert_eq!(signed_in.key, "key");
        assert!(sessions.find(&cookie, &other_token).is_none());
        assert!(sessions.find(&other_cookie, &token).is_none());
        assert!(sessions.find("", "").is_none());
        assert!(![&cookie, &token].into_iter().any(|secret| secret.contains("key")));
        sessions.close(&cookie);
        assert!(!sessions.has(&signed_in) && sessions.find(&cookie, &token).is_none());
    }

    #[test]
    fn one_session_too_many_ends_the_least_lately_used() {
        let sessions = Sessions::default();
        let open: Vec<_> = (0..SESSIONS_MAX).map(|_| sessions.open("key")).collect();
        let is_open = |(cookie, token): &(String, String)| sessions.find(cookie, token).is_some();
        assert!(is_open(&open[0]));
        sessions.open("key");
        assert!(is_open(&open[0]) && !is_open(&open[1]) && is_open(&open[2]));
    }

    #[test]
    fn what_cannot_be_a_key_is_none() {
        assert!(bearer("").is_none() && bearer("a b").is_none() && bearer("a\r\nb").is_none());
        assert_eq!(bearer("k").unwrap(), "Bearer k");
    }
}
