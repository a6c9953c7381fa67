//! A network that records the last refusal of an API, for tools that try an API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value as Json;

use crate::client::Client;
use crate::timing::Timing;
use crate::transport::{Broken, Network, Request, Response, Transport};

/// A recorder of the last refusal, and of the rate limits in answers.
pub struct Recorder {
    client: Client,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    refusal: Option<RefusedAnswer>,
    limits: BTreeMap<String, String>,
}

/// An answer with a status that is no success.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedAnswer {
    /// The status.
    pub status: u16,
    /// The body; none if it is not JSON.
    pub body: Option<Json>,
}

impl Recorder {
    /// Returns a recorder of real calls.
    pub fn new(timing: Timing) -> Arc<Self> {
        Arc::new(Self { client: Client::new(timing), kept: Mutex::default() })
    }

    /// Returns the network whose calls it records.
    pub fn network(self: &Arc<Self>) -> Arc<Network> {
        Arc::new(Network::new(self.clone()))
    }

    /// Returns the last refusal, and forgets it.
    pub fn take_refusal(&self) -> Option<RefusedAnswer> {
        self.kept().refusal.take()
    }

    /// Returns the headers about the number of allowed calls, with their last values.
    pub fn limits(&self) -> BTreeMap<String, String> {
        self.kept().limits.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, response: &Response) {
        let mut kept = self.kept();
        let limits = response.headers.iter().filter(|(name, _)| {
            name.replace('-', "").ends_with("ratelimitlimit") || name == "ratelimit-policy"
        });
        kept.limits.extend(limits.cloned());
        if response.status >= 300 {
            let body = serde_json::from_slice(&response.body).ok();
            kept.refusal = Some(RefusedAnswer { status: response.status, body });
        }
    }
}

#[async_trait]
impl Transport for Recorder {
    async fn send(&self, request: Request) -> Result<Response, Broken> {
        let answer = self.client.send(request).await;
        if let Ok(response) = &answer {
            self.keep(response);
        }
        answer
    }

    fn random(&self) -> u64 {
        self.client.random()
    }
}
