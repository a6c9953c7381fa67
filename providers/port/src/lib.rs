//! The provider port: how a step becomes a call.
//!
//! A provider decides nothing. It says what it manages ([`Provider::schema`]), shows what is live,
//! and performs one phase of one object at a time. Journaling, ordering, waiting after a doubt and
//! believing an absence are `apply`'s; values and types are `engine`'s.
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

/// A provider instance: configured, with its addresses and its key.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the schema of the types that it manages. Makes no call.
    fn schema(&self) -> Arc<ProviderSchema>;

    /// All objects of a type, in a number of calls that does not depend on their number.
    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error>;

    /// One object, with the attributes that lists do not show. An object that does not exist is
    /// an error of kind [`Kind::NotFound`].
    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error>;

    /// The objects that an in-doubt create made: those that bear its nonce, or what else the
    /// type's identity says. Several when a server executed one request twice.
    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error>;

    /// Performs one phase: at most one mutating call, then at most one wait. A delete of what is not
    /// there is an error of kind [`Kind::NotFound`].
    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error>;

    /// Refuses a phase of a type that may not carry a secret attribute. Makes no call, so that a plan reports it; a
    /// call that carries what it may not fails with the same words.
    fn may_carry(&self, _ty: &str, _phase: PhaseRef, _secret: &Name) -> Result<(), Error> {
        Ok(())
    }

    /// A digest that tells one account from another, from what is known of its key and of where its
    /// API is; or none when the provider has no account. What another account shows says nothing
    /// about the objects of this one.
    fn account(&self) -> Option<Digest> {
        None
    }

    /// Returns the time that an absence in a list must last to count.
    fn settle(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the largest number of simultaneous calls. Calls to one API address share one bound, even
    /// between instances; the provider keeps it, this is what the scheduler need not exceed.
    fn concurrency(&self) -> usize {
        16
    }
}

/// A live object.
#[derive(Clone, PartialEq)]
pub struct Object {
    /// Its id.
    pub id: ObjectId,
    /// Its attributes in the types of the schema, secrets in clear: the caller seals them before
    /// anything else sees them. An attribute that the answer did not show is not in the map.
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
    /// Its nonce.
    pub nonce: &'a Nonce,
    /// The object that it was to make, where that is still known.
    pub desired: Option<&'a Attributes>,
}

/// One phase to perform.
pub struct Call<'a> {
    /// The resource type.
    pub ty: &'a str,
    /// The phase, into the schema's programs.
    pub phase: PhaseRef,
    /// The object; none for the first phase of a create.
    pub id: Option<&'a ObjectId>,
    /// The one-time name or key of a create.
    pub nonce: Option<&'a Nonce>,
    /// The object as it is to be, in clear and fully known: managed attributes with their wanted
    /// values, unmanaged ones with their live value. For a delete: the object's secrets that it
    /// sends, as far as they are known.
    pub desired: &'a Attributes,
    /// The object as it was last seen, secrets sealed, or left out for a delete; none for a create.
    pub live: Option<&'a Attributes>,
    /// The attributes that change.
    pub changed: &'a BTreeSet<Name>,
    /// The secrets of the call.
    pub secrets: &'a Secrets,
    /// Asked right before the mutating request goes out, each time that it does.
    pub permit: &'a dyn SendPermit,
    /// Told when the phase begins to wait, or tries again. May be called often.
    pub progress: &'a (dyn Fn(Notice) + Send + Sync),
}

/// The secrets that a call sends, and the variables that they may be made of.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The sensitive places of what is sent.
    pub places: Paths,
    /// The values of sensitive variables, in clear: what is sent may hold them inside other text.
    pub variables: Arc<[Value]>,
}

impl Secrets {
    /// The attributes that hold something secret.
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

/// The longest time between a permit and the sending of its request; a later request is not sent. A provider bounds
/// by it the work in between, such as connecting.
pub const SENT_AFTER_PERMIT: Duration = Duration::from_secs(3);

/// Permission to send a request. Between two tries of a call, or while it waits its turn, the run that it
/// belongs to may have been stopped, or driven out by another one.
#[async_trait]
pub trait SendPermit: Send + Sync {
    /// Returns when the request may go out, within [`SENT_AFTER_PERMIT`]. An error says that it may not be sent.
    /// A provider that was refused so returns that error where no try of its call may have been carried out, and [`Kind::InDoubt`] where
    /// one may have been: of a call that was not sent, the run may begin another.
    async fn ask(&self) -> Result<(), Error>;
}

/// Permission without a question, for calls that belong to no run.
#[derive(Clone, Copy, Debug)]
pub struct Always;

#[async_trait]
impl SendPermit for Always {
    async fn ask(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A notice of a phase while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It waits for a condition.
    Waiting(String),
    /// It tries again.
    Retrying {
        /// The reason, without secrets.
        reason: String,
        /// After how long.
        after: Duration,
        /// The number of the attempt that follows.
        attempt: u32,
        /// The largest number of attempts, where their number bounds them.
        attempts: Option<u32>,
    },
}

/// The result of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The object as the answer showed it; none after the last phase of a delete. An answer that
    /// showed only part of the object has that part; the caller keeps what it knew of the rest.
    /// An answer to a create that showed none says that it was accepted.
    pub object: Option<Object>,
}

/// The kind of a failure, by what may be concluded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such object. Nothing happened.
    NotFound,
    /// The answer proves that nothing happened (400, 404, 409 and their like, or a refusal that the
    /// descriptor knows).
    Rejected,
    /// The API asks to slow down; nothing happened.
    Throttled,
    /// No byte reached the server.
    NotSent,
    /// The effect is unknown: every 5xx, a timeout, a cut or unreadable answer.
    InDoubt,
    /// The key is wrong or lacks a right (401, 403). Nothing happened, and nothing will.
    Unauthenticated,
    /// The object was made or changed, and the wait after it did not come true in time.
    StillWaiting,
}

impl Kind {
    /// Returns true if a create that failed so made nothing.
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

/// A failed call. Its texts hold no key, no address with a key, and no value of an attribute.
///
/// Shown, it says what happened and what the server said. What is kept is `message` alone: a
/// server's words may repeat what it was sent, however they are looked through.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}{}", self.words())]
pub struct Error {
    /// The kind of the failure.
    pub kind: Kind,
    /// A sentence without a full stop that tells what happened.
    pub message: String,
    /// The message of the server, masked, for people.
    pub said: Option<Box<str>>,
    /// The advice, if there is one.
    pub help: Option<String>,
    /// The pause that the API asked for before the next attempt.
    pub retry_after: Option<Duration>,
    /// True if a call in doubt was answered by a status that blames the client: if nothing happened, the
    /// same call would meet the same answer.
    pub is_refusal: bool,
    /// True if a call was refused because its object changed since the plan looked.
    pub is_outdated: bool,
    /// The object of a call that did its work, where its answer or the wait after it showed it.
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

    /// With what the server said.
    #[must_use]
    pub fn said(mut self, said: impl Into<String>) -> Self {
        self.said = Some(said.into().into_boxed_str()).filter(|said| !said.is_empty());
        self
    }

    /// With the object of the call.
    #[must_use]
    pub fn about(mut self, object: Option<Object>) -> Self {
        self.object = object.map(Box::new);
        self
    }

    fn words(&self) -> String {
        self.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default()
    }

    /// With what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
