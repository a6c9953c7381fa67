//! Keys that are asked for when they are needed: a command prints them, or an authorization server gives
//! them.
//!
//! Each key is kept until its time ends, or until an API refuses it. No message shows the output of a
//! command.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::address::Name;
use provider_port::Kind;
use serde_json::Value as Json;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use crate::classify::Failure;
use crate::connection::Connection;
use crate::key::Key;
use crate::masker::Masker;
use crate::template::query_pair;
use crate::timing::Timing;
use crate::transport::{Broken, Method, Request, Response, Transport};

/// The longest output of a command, in bytes.
const OUTPUT_MAX: u64 = 64 * 1024;
/// The longest answer of an authorization server, in bytes.
const ANSWER_MAX: usize = 1024 * 1024;
/// The share of a token's lifetime during which it is used.
const USED_FOR: f64 = 0.9;

/// A way to ask for a key.
#[derive(Clone)]
pub(crate) enum Asked {
    /// A command prints the key: the variable that holds the command, and the command.
    Command { variable: String, text: String },
    /// An authorization server gives the key to a client (`OAuth2`, client credentials).
    Token(TokenRequest),
}

/// A request for a token, with its keys filled in. Has no `Debug`: it holds keys.
#[derive(Clone)]
pub(crate) struct TokenRequest {
    pub(crate) url: Url,
    pub(crate) connection: Arc<Connection>,
    pub(crate) client: String,
    pub(crate) secret: String,
    pub(crate) scope: Option<String>,
}

/// The keys of a provider that have to be asked for.
#[derive(Default)]
pub(crate) struct AskedKeys {
    ways: BTreeMap<Name, Asked>,
    asked: Mutex<Answers>,
}

/// The keys that were received, and the refusals that calls may still wait for.
#[derive(Default)]
struct Answers {
    held: BTreeMap<Name, Held>,
    refused: BTreeMap<Name, Refusal>,
}

struct Held {
    key: Key,
    /// The time from which the key is asked for again; none if it has no end.
    until: Option<Instant>,
}

/// A request for a key that failed.
struct Refusal {
    at: Instant,
    failure: Failure,
}

impl AskedKeys {
    pub(crate) fn new(ways: BTreeMap<Name, Asked>) -> Self {
        Self { ways, asked: Mutex::default() }
    }

    /// Returns true if the key is one that has to be asked for.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.ways.contains_key(name)
    }

    /// Returns a key: the one that is held, or a new one. Calls that wait for the same request share its
    /// answer.
    pub(crate) async fn key(
        &self,
        name: &Name,
        (transport, timing, masker): (&dyn Transport, &Timing, &Masker),
    ) -> Result<Key, Failure> {
        let began = Instant::now();
        let mut asked = self.asked.lock().await;
        let is_good = |held: &&Held| held.until.is_none_or(|until| Instant::now() < until);
        if let Some(held) = asked.held.get(name).filter(is_good) {
            return Ok(held.key.clone());
        }
        if let Some(refusal) = asked.refused.get(name).filter(|refusal| refusal.at >= began) {
            return Err(refusal.failure.clone());
        }
        let answer = match &self.ways[name] {
            Asked::Command { variable, text } => of_command(variable, text, timing.total).await,
            Asked::Token(request) => token(request, transport, timing, masker).await,
        };
        match answer {
            Ok(new) => {
                let key = new.key.clone();
                asked.held.insert(name.clone(), new);
                Ok(key)
            }
            Err(failure) => {
                let refusal = Refusal { at: Instant::now(), failure: failure.clone() };
                asked.refused.insert(name.clone(), refusal);
                Err(failure)
            }
        }
    }

    /// Returns the keys that are held now.
    pub(crate) async fn held(&self) -> Vec<Key> {
        self.asked.lock().await.held.values().map(|held| held.key.clone()).collect()
    }

    /// Forgets the keys that an API refused. Returns true if one of them can be asked for again.
    pub(crate) async fn forget(&self, refused: &BTreeMap<Name, Key>) -> bool {
        let held = &mut self.asked.lock().await.held;
        let count = held.len();
        held.retain(|name, held| refused.get(name) != Some(&held.key));
        held.len() < count
    }
}

fn no_key(reason: &str) -> Failure {
    Failure::new(Kind::Unauthenticated, format!("there is no key: {reason}"))
}

/// Returns a key that a command prints.
async fn of_command(variable: &str, command: &str, within: Duration) -> Result<Held, Failure> {
    match printed(command, within).await {
        Ok(key) => Ok(Held { key: Key::new(key), until: None }),
        Err(reason) => Err(no_key(&format!("the command in {variable} {reason}")).help(
            "run the command in a shell, and see what it prints: its output is not shown here",
        )),
    }
}

/// The processes of a command that has not ended; dropping this ends them.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        if let Some(leader) = leader {
            let _gone = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// Returns the line that a command prints. The error contains nothing that the command printed.
async fn printed(command: &str, within: Duration) -> Result<String, String> {
    let spawned = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = spawned.map_err(|error| format!("cannot start: {error}"))?;
    let mut group = ProcessGroup(child.id());
    let Some(stdout) = child.stdout.take() else { return Err("has no output".to_owned()) };
    let mut output = Vec::new();
    let ends = async {
        stdout.take(OUTPUT_MAX + 1).read_to_end(&mut output).await?;
        if output.len() as u64 > OUTPUT_MAX { Ok(None) } else { child.wait().await.map(Some) }
    };
    let status = match tokio::time::timeout(within, ends).await {
        Err(_) => return Err(format!("did not end within {} s", within.as_secs_f64())),
        Ok(Err(error)) => return Err(format!("cannot be read: {error}")),
        Ok(Ok(None)) => return Err(format!("printed more than {OUTPUT_MAX} bytes")),
        Ok(Ok(Some(status))) => status,
    };
    group.0 = None;
    if !status.success() {
        return Err(format!("failed: {status}"));
    }
    let text = String::from_utf8(output).map_err(|_| "printed no text".to_owned())?;
    match text.trim() {
        "" => Err("printed nothing".to_owned()),
        key if key.chars().any(char::is_control) => Err("printed more than one line".to_owned()),
        key => Ok(key.to_owned()),
    }
}

async fn token(
    request: &TokenRequest,
    transport: &dyn Transport,
    timing: &Timing,
    masker: &Masker,
) -> Result<Held, Failure> {
    let host = request.url.host_str().unwrap_or_default().to_owned();
    let what = format!("the request for a token at {host}");
    let asked = Instant::now();
    let answer = match transport.send(outgoing(request, timing)).await {
        Ok(answer) => answer,
        Err(Broken::NotSent(reason) | Broken::Lost(reason)) => {
            let message = format!("{what} failed: {}", masker.line(&reason));
            return Err(Failure::new(Kind::NotSent, message).transient());
        }
    };
    let body: Option<Json> = serde_json::from_slice(&answer.body).ok();
    if !(200..300).contains(&answer.status) {
        return Err(refused(&what, &answer, body.as_ref(), masker));
    }
    let token = body.as_ref().and_then(|body| body["access_token"].as_str());
    let Some(token) =
        token.filter(|token| !token.is_empty() && !token.chars().any(char::is_control))
    else {
        return Err(no_key(&format!("{what} got an answer without `access_token`")));
    };
    let seconds = body.as_ref().and_then(|body| {
        let ends = &body["expires_in"];
        ends.as_f64().or_else(|| ends.as_str()?.parse().ok())
    });
    let lasts = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds * USED_FOR).ok());
    let until = lasts.and_then(|lasts| asked.checked_add(lasts));
    Ok(Held { key: Key::new(token), until })
}

fn outgoing(request: &TokenRequest, timing: &Timing) -> Request {
    let TokenRequest { url, connection, client, secret, scope } = request;
    let mut body = query_pair("grant_type", "client_credentials");
    if let Some(scope) = scope {
        body.push('&');
        body.push_str(&query_pair("scope", scope));
    }
    let basic = STANDARD.encode(format!("{client}:{secret}"));
    Request {
        method: Method::Post,
        url: url.clone(),
        connection: connection.clone(),
        headers: vec![
            ("Authorization".to_owned(), format!("Basic {basic}")),
            ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ],
        body: Some(body.into_bytes()),
        within: timing.total,
        answer_bytes_max: ANSWER_MAX,
    }
}

/// Returns the failure of an authorization server that gives no token; the server describes it in fields of
/// its own (RFC 6749).
fn refused(what: &str, answer: &Response, body: Option<&Json>, masker: &Masker) -> Failure {
    let said = body.and_then(|body| body["error_description"].as_str().or(body["error"].as_str()));
    let message = format!("{what} was answered with status {}", answer.status);
    let failure = match answer.status {
        429 | 500..600 => Failure::new(Kind::NotSent, message).transient(),
        _ => Failure::new(Kind::Unauthenticated, message),
    };
    failure.said(masker.line(said.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_are_bounded_and_their_output_is_never_shown() {
        let within = Duration::from_secs(5);
        assert_eq!(printed("echo s3cret", within).await, Ok("s3cret".to_owned()));
        for (command, reason) in [
            ("echo canary; exit 3", "failed: exit status: 3"),
            ("echo canary >&2", "printed nothing"),
            ("echo canary; echo canary", "printed more than one line"),
            ("printf 'canary\\377'", "printed no text"),
            ("yes canary", "printed more than 65536 bytes"),
        ] {
            assert_eq!(printed(command, within).await, Err(reason.to_owned()), "{command}");
        }
        let hung = printed("echo canary; sleep 60", Duration::from_millis(100)).await;
        assert_eq!(hung, Err("did not end within 0.1 s".to_owned()));
    }

    #[tokio::test]
    async fn what_a_command_started_ends_where_it_is_given_up() {
        let file = std::env::temp_dir().join(format!("plumb-started-{}", std::process::id()));
        let command = format!("sh -c 'echo $$ > {0}; exec sleep 60'; true", file.display());
        let hung = printed(&command, Duration::from_millis(300)).await;
        assert!(hung.is_err_and(|reason| reason.contains("did not end")));
        let started = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let state = format!("/proc/{}/stat", started.trim());
        let is_gone = || std::fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_gone() {
            assert!(Instant::now() < deadline, "{started} still runs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
