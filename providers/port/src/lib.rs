//! The provider port: the interface by which a step becomes a call.
//!
//! A provider decides nothing. It describes the types that it manages ([`Provider::schema`]), shows live
//! objects, and performs one phase of one object at a time. `apply` keeps the journal, orders the steps,
//! waits after a doubt and decides when an absence is believed. Values and types belong to `engine`.
//!
//! Every provider runs the suite in [`conformance`].

pub mod conformance;
pub mod sample;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::address::Name;
use engine::digest::Digest;
use engine::journal::PhaseRef;
use engine::schema::ProviderSchema;
use engine::state::{Nonce, ObjectId};
use engine::value::{Attributes, Path, Paths, Value};

/// A provider instance, configured with its addresses and its keys.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the schema of the types that it manages. Makes no call.
    fn schema(&self) -> Arc<ProviderSchema>;

    /// Returns all objects of a type, in a number of calls that does not depend on their number.
    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error>;

    /// Returns one object, including the attributes that lists do not show. If the object does not exist, the
    /// error has the kind [`Kind::NotFound`].
    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error>;

    /// Returns the objects that an in-doubt create made: those that have its nonce, or that the type's
    /// identity finds in another way. There are several if a server executed one request twice.
    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error>;

    /// Performs one phase: at most one mutating call, then at most one wait. A delete of an object that does
    /// not exist is an error of kind [`Kind::NotFound`].
    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error>;

    /// Refuses a phase of a type that may not carry a secret attribute. Makes no call, so that a plan can
    /// report it. A call that carries such an attribute fails with the same message.
    fn may_carry(&self, _ty: &str, _phase: PhaseRef, _secret: &Name) -> Result<(), Error> {
        Ok(())
    }

    /// Returns a digest that identifies the account, made from its key and the place of its API; none if the
    /// provider has no account. The objects of another account prove nothing about the objects of this one.
    fn account(&self) -> Option<Digest> {
        None
    }

    /// Returns the time that an absence in a list must last to count.
    fn settle(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the largest number of simultaneous calls. Calls to one API address share one bound, even
    /// between instances. The provider enforces it; the scheduler need not start more calls.
    fn concurrency(&self) -> usize {
        16
    }
}

/// A live object.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// The id of the object.
    pub id: ObjectId,
    /// The attributes in the types of the schema, secrets in clear: the caller seals them before it passes
    /// them on. An attribute that the answer did not show is missing.
    pub attributes: Attributes,
}

impl fmt::Debug for Object {
    /// Shows the names of the attributes only: their values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("id", &self.id)
            .field("attributes", &self.attributes.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// The facts about a create that is looked up.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// The nonce of the create.
    pub nonce: &'a Nonce,
    /// The object that the create was to make; none if it is not known any more.
    pub desired: Option<&'a Attributes>,
}

/// One phase to perform.
pub struct Call<'a> {
    /// The resource type.
    pub ty: &'a str,
    /// The phase, as a reference into the schema's programs.
    pub phase: PhaseRef,
    /// The object; none for the first phase of a create.
    pub id: Option<&'a ObjectId>,
    /// The one-time name or key of a create.
    pub nonce: Option<&'a Nonce>,
    /// The desired object, in clear and fully known: managed attributes with their wanted values, unmanaged
    /// ones with their live values. For a delete: the secrets of the object that the call sends, as far as
    /// they are known.
    pub desired: &'a Attributes,
    /// The object as it was last seen, with secrets sealed, or left out for a delete; none for a create.
    pub live: Option<&'a Attributes>,
    /// The attributes that change.
    pub changed: &'a BTreeSet<Name>,
    /// The secrets of the call.
    pub secrets: &'a Secrets,
    /// The permit that the provider asks for right before each sending of the mutating request.
    pub permit: &'a dyn SendPermit,
    /// A function that is called when the phase begins to wait, or is tried again. It may be called often.
    pub progress: &'a (dyn Fn(Notice) + Send + Sync),
}

/// The secrets that a call sends, and the variables that they may be made of.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The sensitive places of the sent attributes.
    pub places: Paths,
    /// The values of sensitive variables, in clear: sent texts may contain them.
    pub variables: Arc<[Value]>,
}

impl Secrets {
    /// Returns the attributes that contain a secret.
    pub fn carried<'a>(
        &self,
        attributes: &'a Attributes,
    ) -> impl Iterator<Item = (&'a Name, &'a Value)> {
        let secret = |name: &Name| self.places.touches(&Path::attribute(name.clone()));
        attributes.iter().filter(move |(name, value)| !value.is_null() && secret(name))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("places", &self.places).finish_non_exhaustive()
    }
}

/// The longest time between a permit and the sending of its request; a later request is not sent. A provider
/// bounds the work in between, such as connecting, by this time.
pub const SENT_AFTER_PERMIT: Duration = Duration::from_secs(3);

/// Permission to send a request. Between two attempts of a call, or while the call waits for its turn, its
/// run may have been stopped, or another run may have taken over.
#[async_trait]
pub trait SendPermit: Send + Sync {
    /// Returns when the request may be sent, within [`SENT_AFTER_PERMIT`]. After an error it must not be
    /// sent. If no attempt of the call can have been executed, the provider returns that error; if one may
    /// have been, it returns [`Kind::InDoubt`]. For a call that was not sent, the run may begin another one.
    async fn ask(&self) -> Result<(), Error>;
}

/// A permit that is always given, for calls outside of a run.
#[derive(Clone, Copy, Debug)]
pub struct Always;

#[async_trait]
impl SendPermit for Always {
    async fn ask(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A notice about a running phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The phase waits for a condition.
    Waiting(String),
    /// The phase tries its call again.
    Retrying {
        /// The reason, without secrets.
        reason: String,
        /// The pause before the next attempt.
        after: Duration,
        /// The number of the next attempt.
        attempt: u32,
        /// The most attempts; none if their number has no bound.
        attempts: Option<u32>,
    },
}

/// The result of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The object as the answer showed it; none after the last phase of a delete. If the answer showed a part
    /// of the object, only that part is here, and the caller keeps the known rest. None after a create means
    /// that the API accepted it and showed no object.
    pub object: Option<Object>,
}

/// The kind of a failure, by the conclusion that it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such object. Nothing happened.
    NotFound,
    /// The answer proves that nothing happened (400, 404, 409 and similar ones, or a refusal that the
    /// descriptor knows).
    Rejected,
    /// The API asks to slow down; nothing happened.
    Throttled,
    /// No byte reached the server.
    NotSent,
    /// The effect is unknown: every 5xx, a timeout, a cut or unreadable answer.
    InDoubt,
    /// The key is wrong or lacks a right (401, 403). Nothing happened, and nothing will happen.
    Unauthenticated,
    /// The object was made or changed, and the condition of the wait after it did not come true in time.
    StillWaiting,
}

impl Kind {
    /// Returns the kind in words for people.
    pub fn words(&self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Rejected => "rejected",
            Self::Throttled => "throttled",
            Self::NotSent => "not sent",
            Self::InDoubt => "in doubt",
            Self::Unauthenticated => "the key is refused",
            Self::StillWaiting => "still waiting",
        }
    }

    /// Returns true if a create that failed in this way made nothing.
    pub fn made_nothing(&self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::Rejected
                | Self::Throttled
                | Self::NotSent
                | Self::Unauthenticated
        )
    }
}

/// A failed call. Its texts contain no key, no address with a key, and no value of an attribute.
///
/// The shown text includes the words of the server. Only `message` is stored, because a server's words may
/// repeat sent values, however thoroughly they are checked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}{}", self.words())]
pub struct Error {
    /// The kind of the failure.
    pub kind: Kind,
    /// A sentence without a full stop that describes the failure.
    pub message: String,
    /// The message of the server, masked, for people.
    pub said: Option<Box<str>>,
    /// The advice, if there is one.
    pub help: Option<String>,
    /// The pause that the API asked for before the next attempt.
    pub retry_after: Option<Duration>,
    /// True if a call in doubt was answered with a status for a mistake of the client: if nothing happened, a
    /// repetition would get the same answer.
    pub is_refusal: bool,
    /// True if a call was refused because its object changed since planning.
    pub is_outdated: bool,
    /// The object of a call that took effect, if its answer or the wait after it showed the object.
    pub object: Option<Box<Object>>,
}

impl Error {
    /// An error of a kind with a message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            kind,
            message,
            said: None,
            help: None,
            retry_after: None,
            is_refusal: false,
            is_outdated: false,
            object: None,
        }
    }

    /// Adds the words of the server.
    #[must_use]
    pub fn said(mut self, said: impl Into<String>) -> Self {
        self.said = Some(said.into().into_boxed_str()).filter(|said| !said.is_empty());
        self
    }

    /// Adds the object of the call.
    #[must_use]
    pub fn about(mut self, object: Option<Object>) -> Self {
        self.object = object.map(Box::new);
        self
    }

    fn words(&self) -> String {
        self.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default()
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
