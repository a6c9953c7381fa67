//! Calls: their target, the time at which they may begin, and their repetition.
//!
//! A read is repeated as long as that may help. A mutation is repeated only if the failure proves that
//! nothing happened (it was not sent, or the API asked to slow down), or if it has an idempotency key, which
//! makes a repetition the same call. Each attempt needs a new permit, because another run may have taken over
//! during a pause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::address::Name;
use provider_port::{Kind, Notice, SendPermit};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use tokio::time::Instant;
use url::Url;

use crate::access::{Access, credentials, hint, key_hint};
use crate::asked_keys::AskedKeys;
use crate::bodies::Body;
use crate::classify::{self, Context, Failure};
use crate::client::Client;
use crate::connection::Connection;
use crate::descriptor::model::{Api, Descriptor, Method, Place};
use crate::graphql::{self, Answer, Selection};
use crate::key::Key;
use crate::limits::{Limiter, Turn};
use crate::link;
use crate::masker::Masker;
use crate::partial_json;
use crate::request_log::{self, AttemptLog, LogSubject};
use crate::retry_after;
use crate::settings::Settings;
use crate::timing::Timing;
use crate::transport::{Request, Response, Transport};
use crate::wire::Wire;

/// The time that an absence must last to count, if the descriptor gives none.
const SETTLE: Duration = Duration::from_secs(10);
/// The time that an absence must last to count if all addresses are on this machine.
const SETTLE_LOCAL: Duration = Duration::from_secs(1);

/// Makes calls for one configured provider.
pub(crate) struct Caller {
    apis: BTreeMap<Name, Api>,
    access: Access,
    connections: BTreeMap<Name, Arc<Connection>>,
    limiters: BTreeMap<Name, Arc<Limiter>>,
    transport: Arc<dyn Transport>,
    pub(crate) timing: Timing,
    /// The time that an absence must last to count.
    pub(crate) settle: Duration,
    pub(crate) masker: Masker,
    key_hint: String,
    /// The keys that have to be asked for.
    pub(crate) asked_keys: AskedKeys,
    attempts: AtomicU64,
}

/// A call with all its parts filled in.
pub(crate) struct Prepared<'a> {
    pub(crate) api: &'a Name,
    /// A description of the call, without values.
    pub(crate) what: String,
    pub(crate) payload: Payload<'a>,
    /// True if the call may change something.
    pub(crate) mutation: bool,
    /// True if the address of the call names an object.
    pub(crate) names_object: bool,
    /// The headers of the type and the phase.
    pub(crate) headers: Vec<(String, String)>,
    /// An idempotency key: header and value.
    pub(crate) header: Option<(String, String)>,
    pub(crate) masker: Masker,
    /// The permit that the call asks for before each sending; none for a call that changes nothing.
    pub(crate) permit: Option<&'a dyn SendPermit>,
}

impl Prepared<'_> {
    /// Returns the part of the call that the log shows.
    fn log_subject(&self) -> LogSubject<'_> {
        let path = match &self.payload {
            Payload::Rest { path, .. } | Payload::Text { path, .. } => Some(&**path),
            Payload::Link { .. } | Payload::Graphql { .. } => None,
        };
        LogSubject { api: self.api, what: &self.what, path, masker: &self.masker }
    }
}

/// The content of a call.
pub(crate) enum Payload<'a> {
    Rest {
        method: Method,
        path: String,
        body: Option<Body>,
    },
    /// A text body that is sent without a change; the answer is returned as text, too.
    Text {
        method: Method,
        path: String,
        body: Option<String>,
        /// The time for which the API may hold its answer back on purpose.
        held: Duration,
    },
    /// The next page of a list, at the address that the API gave.
    Link {
        url: Url,
    },
    Graphql {
        fields: &'a [String],
        arguments: Vec<(String, Wire)>,
        selection: Option<Selection>,
    },
}

impl Payload<'_> {
    /// Returns the header for the form of the body.
    fn content_type(&self) -> Vec<(String, String)> {
        let Self::Rest { body: Some(body), .. } = self else { return Vec::new() };
        vec![("Content-Type".to_owned(), body.content_type.clone())]
    }
}

/// The bounds on the attempts of one call.
struct AttemptBound {
    /// The most attempts; none if time bounds them.
    attempts: Option<u32>,
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The body, or in GraphQL the value of the called field; none if the body was empty.
    pub(crate) json: Option<Json>,
    /// The headers: names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    /// The header `Link` with all its fields; none if there is none.
    pub(crate) link: Option<String>,
    /// The body without a change, if the call was a [`Payload::Text`]; else none.
    pub(crate) text: Option<Box<RawValue>>,
    /// True if the API only promised to do it: status 202.
    pub(crate) is_promise: bool,
}

impl Caller {
    pub(crate) fn new(descriptor: &Descriptor, access: Access, settings: &Settings<'_>) -> Self {
        let (timing, network) = (settings.timing, settings.network.as_deref());
        let limiter = |address: &str, bound| match network {
            Some(network) => network.limiter(address, bound),
            None => Limiter::of(address, bound),
        };
        let connection = |name: &Name| {
            let socket = access.sockets.get(name).cloned();
            (name.clone(), Arc::new(Connection { socket, tls: access.tls.clone() }))
        };
        let limiters = descriptor
            .apis
            .iter()
            .filter_map(|(name, api)| {
                let address = access.addresses.get(name)?;
                let socket = access.sockets.get(name);
                let socket = socket.map(|path| path.display().to_string()).unwrap_or_default();
                let server = format!("{socket}{address}");
                Some((name.clone(), limiter(&server, api.concurrency)))
            })
            .collect();
        Self {
            apis: descriptor.apis.clone(),
            masker: Masker::of_keys(access.secrets(descriptor)),
            settle: settle(descriptor.settle, access.is_local()),
            asked_keys: AskedKeys::new(access.asked.clone()),
            connections: descriptor.apis.keys().map(connection).collect(),
            access,
            limiters,
            transport: match network {
                Some(network) => network.transport.clone(),
                None => Arc::new(Client::new(timing)),
            },
            timing,
            key_hint: key_hint(descriptor),
            attempts: AtomicU64::new(0),
        }
    }

    pub(crate) fn api(&self, name: &Name) -> &Api {
        &self.apis[name]
    }

    pub(crate) fn address(&self, name: &Name) -> Option<&Url> {
        self.access.addresses.get(name)
    }

    /// Returns the header that carries the key in calls of an API; none if no header does.
    pub(crate) fn key_header(&self, name: &Name) -> Option<(String, String)> {
        let api = self.api(name);
        let is_sent = api.auth.iter().any(|auth| matches!(auth.place, Place::Header(_)));
        // The headers of keys come before the other headers of an API.
        credentials(api, &self.access.keys).ok().filter(|_| is_sent)?.headers.into_iter().next()
    }

    /// Returns the address of an API if only a spec, or a file beside it, names its host; else none.
    pub(crate) fn unproven_address(&self, name: &Name) -> Option<&Url> {
        self.access.unproven.get(name)?;
        self.address(name)
    }

    /// Makes a call, and repeats it if its failure allows that.
    pub(crate) async fn call(
        &self,
        prepared: &Prepared<'_>,
        progress: &(dyn Fn(Notice) + Send + Sync),
    ) -> Result<Shown, Failure> {
        let began = Instant::now();
        let (mut tries, mut doubt, mut renewed) = (0, None::<String>, false);
        loop {
            tries += 1;
            let keys = self.keys(prepared).await;
            let failure = match &keys {
                Ok(keys) => match self.attempt(prepared, keys, tries).await {
                    Ok(shown) => return Ok(shown),
                    Err(failure) => failure,
                },
                Err(failure) => failure.clone(),
            };
            // A refused key proves that nothing happened, so the call may be repeated with a new key.
            let is_refused = failure.error.kind == Kind::Unauthenticated && !renewed;
            if let (Ok(keys), true) = (&keys, is_refused)
                && self.asked_keys.forget(keys).await
            {
                renewed = true;
                continue;
            }
            let after = self.pause(tries, failure.error.retry_after);
            let Some(bound) = self.next_attempt(prepared, &failure, tries, began, after) else {
                let failure = match doubt.filter(|_| prepared.mutation) {
                    Some(doubt) => still_in_doubt(&doubt, failure),
                    None => failure,
                };
                return Err(self.given_up(prepared, failure, tries));
            };
            let reason = failure.error.to_string();
            let attempt = tries + 1;
            request_log::retry(&prepared.what, attempt, after);
            progress(Notice::Retrying { reason, after, attempt, attempts: bound.attempts });
            if failure.error.kind == Kind::InDoubt {
                doubt.get_or_insert(failure.error.message);
            }
            // The limiter makes throttled calls wait, together with all other calls.
            if failure.error.kind != Kind::Throttled {
                tokio::time::sleep(after).await;
            }
        }
    }

    /// Returns the bound on the attempts of a call if there is to be another one after a pause; else none.
    fn next_attempt(
        &self,
        prepared: &Prepared<'_>,
        failure: &Failure,
        tries: u32,
        began: Instant,
        pause: Duration,
    ) -> Option<AttemptBound> {
        let timing = &self.timing;
        let up_to = |attempts| Some(AttemptBound { attempts: Some(attempts) });
        match failure.error.kind {
            Kind::Throttled => {
                let limiter = self.limiters.get(prepared.api)?;
                let patient = limiter.refused_for() < timing.throttle_patience;
                patient.then_some(AttemptBound { attempts: None })
            }
            Kind::NotSent if failure.transient && tries < timing.connect_tries => {
                up_to(timing.connect_tries)
            }
            Kind::InDoubt if failure.transient && tries < timing.read_tries => {
                let repeatable = !prepared.mutation || prepared.header.is_some();
                // A pause that the API asks for is kept once more, however long it is.
                let own_pause = failure.error.retry_after.map_or(pause, |_| Duration::ZERO);
                let time_left = began.elapsed() + own_pause < timing.read_patience;
                up_to(timing.read_tries).filter(|_| repeatable && time_left)
            }
            _ => None,
        }
    }

    /// Returns the pause after a number of attempts.
    pub(crate) fn pause(&self, attempts: u32, requested: Option<Duration>) -> Duration {
        retry_after::pause(&self.timing, attempts, requested, self.transport.random())
    }

    /// Adds to the failure of a call that is not repeated: the number of attempts, or the time for which a
    /// throttling service was waited for. For a call that changes something, the run adds this.
    fn given_up(&self, prepared: &Prepared<'_>, mut failure: Failure, attempts: u32) -> Failure {
        if failure.error.kind == Kind::Throttled && failure.error.help.is_none() {
            let seconds = self.timing.throttle_patience.as_secs();
            failure = failure.help(format!(
                "it refused every call for {seconds} s: try again later, or with a smaller `--parallelism`"
            ));
        }
        if !prepared.mutation && attempts > 1 {
            let last = &failure.error.message;
            failure.error.message = format!("gave up after {attempts} attempts; the last: {last}");
        }
        failure
    }

    /// Returns the keys of a call, including those that have to be asked for.
    async fn keys(&self, prepared: &Prepared<'_>) -> Result<BTreeMap<Name, Key>, Failure> {
        let mut keys = self.access.keys.clone();
        let network = (&*self.transport, &self.timing, &self.masker);
        for name in self.api(prepared.api).key_names() {
            if self.asked_keys.has(name) {
                keys.insert(name.clone(), self.asked_keys.key(name, network).await?);
            }
        }
        Ok(keys)
    }

    async fn attempt(
        &self,
        prepared: &Prepared<'_>,
        keys: &BTreeMap<Name, Key>,
        attempt: u32,
    ) -> Result<Shown, Failure> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let alias = format!("a{number}");
        let outgoing = self.outgoing(prepared, keys, &alias)?;
        let asked = keys.iter().filter(|(name, _)| self.asked_keys.has(name));
        let masker = prepared.masker.clone().with_keys(asked.map(|(_, key)| key));
        let context = Context {
            api: self.api(prepared.api),
            what: &prepared.what,
            origin: &origin(&outgoing),
            key_hint: &self.key_hint,
            mutation: prepared.mutation,
            names_object: prepared.names_object,
            masker: &masker,
        };
        let Some(limiter) = self.limiters.get(prepared.api) else {
            return Err(self.no_address(prepared.api));
        };
        let turn = limiter.turn().await;
        if let Some(permit) = prepared.permit {
            permit.ask().await.inspect_err(|_| turn.unused()).map_err(Failure::from)?;
        }
        let log = AttemptLog::begin(prepared.log_subject(), &outgoing, attempt);
        let sent = self.transport.send(outgoing).await;
        if let Some(log) = log {
            log.end(&sent);
        }
        match sent {
            Err(broken) => Err(classify::broken(&context, &broken)),
            Ok(incoming) => {
                let judged = shown(&context, &prepared.payload, &alias, &incoming);
                self.learn(&turn, judged.as_ref().err());
                judged
            }
        }
    }

    fn learn(&self, turn: &Turn, failure: Option<&Failure>) {
        match failure.map(|failure| &failure.error) {
            Some(error) if error.kind == Kind::Throttled => {
                turn.throttled(self.pause(2, error.retry_after));
            }
            _ => turn.accepted(),
        }
    }

    fn outgoing(
        &self,
        prepared: &Prepared<'_>,
        keys: &BTreeMap<Name, Key>,
        alias: &str,
    ) -> Result<Request, Failure> {
        let Some(address) = self.address(prepared.api) else {
            return Err(self.no_address(prepared.api));
        };
        let mut held = Duration::ZERO;
        let (method, mut url, body) = match &prepared.payload {
            Payload::Rest { method, path, body } => {
                (*method, append(address, path)?, body.as_ref().map(|body| body.bytes.clone()))
            }
            Payload::Text { method, path, body, held: time } => {
                held = *time;
                (*method, append(address, path)?, body.clone().map(String::into_bytes))
            }
            Payload::Link { url } => (Method::Get, url.clone(), None),
            Payload::Graphql { fields, arguments, selection } => {
                let document = graphql::document(&graphql::Operation {
                    mutation: prepared.mutation,
                    alias,
                    fields,
                    arguments,
                    selection: selection.as_ref(),
                });
                let document = document.map_err(|reason| unwritable(&prepared.what, &reason))?;
                let body = serde_json::json!({ "query": document }).to_string();
                (Method::Post, address.clone(), Some(body.into_bytes()))
            }
        };
        let credentials = credentials(self.api(prepared.api), keys);
        let credentials = credentials.map_err(|name| self.no_key(&name))?;
        // The more specific header comes before the more general one.
        let mut headers = prepared.payload.content_type();
        headers.extend(credentials.headers);
        headers.extend(prepared.headers.iter().chain(&prepared.header).cloned());
        for pair in credentials.query {
            let with = url.query().map_or_else(|| pair.clone(), |own| format!("{own}&{pair}"));
            url.set_query(Some(&with));
        }
        Ok(Request {
            method,
            url,
            connection: self.connections[prepared.api].clone(),
            headers,
            body,
            within: self.timing.total + held,
            answer_bytes_max: self.timing.answer_bytes_max,
        })
    }

    fn no_address(&self, api: &Name) -> Failure {
        Failure::new(Kind::NotSent, format!("there is no address for the API {api}"))
            .help(hint(&self.api(api).address))
    }

    fn no_key(&self, name: &Name) -> Failure {
        Failure::new(Kind::Unauthenticated, format!("there is no {name} for the API"))
            .help(self.key_hint.clone())
    }

    /// Returns the next page at the address in the header `Link`; none on the last page. A link to another
    /// server is an error, because the key would be sent there.
    pub(crate) fn next_link(
        &self,
        prepared: &Prepared<'_>,
        link: &str,
    ) -> Result<Option<Url>, Failure> {
        let wrong = |kind, reason: &str| Failure::new(kind, format!("{}: {reason}", prepared.what));
        let next = link::next(link).map_err(|reason| wrong(Kind::InDoubt, reason))?;
        let Some(target) = next else { return Ok(None) };
        let page = self.page(prepared)?;
        match page.join(target) {
            Ok(url) if url == page => Err(wrong(Kind::InDoubt, "a page names itself as the next")),
            Ok(url) if url.origin() == page.origin() => Ok(Some(url)),
            _ => {
                let reason = "the next page of a list stands on another server, where the key is \
                              not sent";
                Err(wrong(Kind::Rejected, reason))
            }
        }
    }

    /// Returns the address in the header `Location` of an answer. An address on another server is an error,
    /// because the key would be sent there.
    pub(crate) fn location(&self, prepared: &Prepared<'_>, location: &str) -> Result<Url, Failure> {
        let page = self.page(prepared)?;
        match page.join(location) {
            Ok(url) if url.origin() == page.origin() => Ok(url),
            _ => {
                let reason = "what it began shows on another server, where the key is not sent";
                Err(Failure::new(Kind::InDoubt, format!("{}: {reason}", prepared.what)))
            }
        }
    }

    /// Returns the address of a page of a list. A link in the answer may be relative to it.
    fn page(&self, prepared: &Prepared<'_>) -> Result<Url, Failure> {
        let address = self.address(prepared.api).ok_or_else(|| self.no_address(prepared.api))?;
        match &prepared.payload {
            Payload::Link { url } => Ok(url.clone()),
            Payload::Rest { path, .. } => append(address, path),
            _ => Ok(address.clone()),
        }
    }
}

/// Returns the server of a request as text: scheme, host and port, or a socket.
fn origin(request: &Request) -> String {
    match &request.connection.socket {
        Some(path) => format!("unix:{}", path.display()),
        None => request.url.origin().ascii_serialization(),
    }
}

/// Reads the form of an answer, without its meaning.
fn shown(
    context: &Context<'_>,
    payload: &Payload<'_>,
    alias: &str,
    incoming: &Response,
) -> Result<Shown, Failure> {
    let is_promise = incoming.status == 202;
    let headers = incoming.headers.clone();
    if let Payload::Text { .. } = payload {
        let whole = |body: &[u8]| serde_json::from_slice(partial_json::without_bom(body));
        let text = classify::judge(context, incoming, whole)?;
        return Ok(Shown { json: None, headers, link: None, text, is_promise });
    }
    let json = classify::judge(context, incoming, partial_json::read)?;
    let Payload::Graphql { fields, .. } = payload else {
        if let Some(failure) =
            json.as_ref().and_then(|body| classify::told(context, incoming, body))
        {
            return Err(failure);
        }
        let link = incoming.joined("link");
        return Ok(Shown { json, headers, link, text: None, is_promise });
    };
    let body = json.unwrap_or(Json::Null);
    match graphql::answer(&body, alias, fields) {
        Answer::Value(value) => {
            Ok(Shown { json: Some(value.clone()), headers, link: None, text: None, is_promise })
        }
        Answer::Errors(said) => Err(classify::graphql_errors(context, &body, &said)),
        Answer::Foreign => Err(classify::foreign(context, "it does not show what was asked for")),
    }
}

/// Returns the time that an absence must last to count. A time in the descriptor always counts: an address on
/// this machine may be the end of a tunnel.
fn settle(said: Option<Duration>, is_local: bool) -> Duration {
    said.unwrap_or(if is_local { SETTLE_LOCAL } else { SETTLE })
}

/// Returns the address of an API with a path, which must not lead to another server.
fn append(address: &Url, path: &str) -> Result<Url, Failure> {
    let text = format!("{}{path}", address.as_str().trim_end_matches('/'));
    match Url::parse(&text) {
        Ok(url) if url.origin() == address.origin() => Ok(url),
        _ => Err(Failure::new(Kind::NotSent, "the address of a call cannot be made")),
    }
}

/// Returns the failure of a call that cannot be written with the values that it needs.
pub(crate) fn unwritable(what: &str, reason: &crate::wire::Unwritable) -> Failure {
    use crate::wire::Unwritable;
    match reason {
        Unwritable::Sealed => Failure::new(
            Kind::Rejected,
            format!("{what} sends a secret of which only the fingerprint is known"),
        )
        .help("give the attribute in the spec: this API takes the object as a whole"),
        Unwritable::Unknown => {
            Failure::new(Kind::Rejected, format!("{what} sends a value that is not known yet"))
        }
        Unwritable::Shape(shape) => {
            Failure::new(Kind::Rejected, format!("{what} sends a value that is not {shape}"))
        }
    }
}

/// Returns the failure of a call of which an earlier attempt may have taken effect, whatever the result of
/// the last one.
fn still_in_doubt(doubt: &str, mut last: Failure) -> Failure {
    if last.error.kind != Kind::InDoubt {
        last.error.kind = Kind::InDoubt;
        last.error.message = format!("{doubt}; then: {}", last.error.message);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_descriptor_says_of_settling_holds_everywhere() {
        let said = Duration::from_secs(8);
        assert_eq!([true, false].map(|local| settle(Some(said), local)), [said, said]);
        assert_eq!([true, false].map(|local| settle(None, local)), [SETTLE_LOCAL, SETTLE]);
    }

    #[test]
    fn paths_stay_on_their_server() {
        let address = Url::parse("https://host/v1").unwrap();
        assert_eq!(append(&address, "/a%2Fb?x=1").unwrap().as_str(), "https://host/v1/a%2Fb?x=1");
        let root = Url::parse("https://host").unwrap();
        assert_eq!(append(&root, "/a").unwrap().as_str(), "https://host/a");
    }
}
