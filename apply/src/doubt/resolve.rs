//! `resolve`: what a person says became of a call in doubt, as the record that decides it.
//!
//! An object that is named is read, so that the state knows what it is; nothing is changed but the
//! journal.

use engine::address::{Address, Name};
use engine::doubt::{CallInDoubt, Owner, holder, other_owner};
use engine::journal::{CallId, Pending, Record, Resolution};
use engine::schema::TypeSchema;
use engine::state::{ObjectId, Snapshot};
use engine::stored::{KnownSecrets, SecretScanner};
use provider_port::Provider;

use crate::Providers;
use crate::doubt::lookup::{seen, shown};
use crate::read::read_object;

/// A call in doubt that a person decides.
#[derive(Clone, Copy)]
pub struct OpenCall<'a> {
    snapshot: &'a Snapshot,
    call: CallId,
    pending: &'a Pending,
}

/// A reason not to take an object for a call's own.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The call was about an object that is known, and this is another.
    #[error("{0} stands for another object")]
    AnotherObject(Address),
    /// An address stands for it.
    #[error("{0} stands for this object already")]
    Taken(Address),
    /// It has the one-time name of another create.
    #[error("it was made for {0}: it has the one-time name of that create")]
    MadeFor(Address),
    /// Nothing can read it.
    #[error("there is no provider `{0}`")]
    NoProvider(Name),
    /// It cannot be read.
    #[error("cannot read the object: {0}")]
    Unread(provider_port::Error),
}

impl<'a> OpenCall<'a> {
    /// The calls in doubt about an address. There are two where what a replace has put aside is
    /// deleted while its address's own object is worked on.
    pub fn about(snapshot: &'a Snapshot, address: &Address) -> impl Iterator<Item = Self> {
        let pending = snapshot.pending.iter().filter(|(_, own)| own.started.address == *address);
        pending.map(move |(call, pending)| Self { snapshot, call: *call, pending })
    }

    /// The number of the call.
    pub fn call(&self) -> CallId {
        self.call
    }

    /// The call.
    pub fn pending(&self) -> &'a Pending {
        self.pending
    }

    /// The provider instance that was called.
    pub fn provider(&self) -> &'a Name {
        &self.pending.started.provider
    }

    /// Decides that no object is there: the call made none, or the one that it was about is gone.
    pub fn absent(&self, at_ms: u64) -> Record {
        self.record(self.pending.started.absence(at_ms))
    }

    /// The object that the call was about, where it is known.
    pub fn object(&self) -> Option<&'a ObjectId> {
        self.pending.started.object.as_ref()
    }

    /// Returns true if an object is there. An error where that cannot be seen.
    pub async fn shows(&self, id: &ObjectId, providers: &Providers) -> Result<bool, ResolveError> {
        let provider = self.provider_in(providers)?;
        match provider.read(&self.pending.started.address.block.ty, id).await {
            Ok(object) => Ok(object.id == *id),
            Err(error) if error.kind == provider_port::Kind::NotFound => Ok(false),
            Err(error) => Err(ResolveError::Unread(error)),
        }
    }

    /// Refuses an object that cannot be the call's own, whatever it is like.
    pub fn check(&self, id: &ObjectId) -> Result<(), ResolveError> {
        let started = &self.pending.started;
        if started.object.as_ref().is_some_and(|own| own != id) {
            return Err(ResolveError::AnotherObject(started.address.clone()));
        }
        match holder(self.snapshot, started, id) {
            Some(owner) => Err(ResolveError::Taken(owner.clone())),
            None => Ok(()),
        }
    }

    /// Decides that an object is the call's own, and reads it.
    pub async fn adopt(
        &self,
        id: &ObjectId,
        providers: &Providers,
    ) -> Result<Record, ResolveError> {
        self.check(id)?;
        let (snapshot, started) = (self.snapshot, &self.pending.started);
        let provider = self.provider_in(providers)?;
        let ty = &started.address.block.ty;
        let object = read_object(provider, ty, id).await.map_err(ResolveError::Unread)?;
        let schema = provider.schema();
        let schema: &TypeSchema = schema.types.get(ty).ok_or_else(|| self.nobody())?;
        let call = CallInDoubt {
            started,
            schema,
            sent: None,
            accepted: self.pending.accepted,
            elsewhere: false,
            key: &snapshot.seal_key,
        };
        match other_owner(call, shown(&object), snapshot) {
            Some(Owner::Holder(owner)) => return Err(ResolveError::Taken(owner.clone())),
            Some(Owner::Maker(owner)) => return Err(ResolveError::MadeFor(owner.clone())),
            None => {}
        }
        // No spec is resolved for this: what only its variables tell is sealed by the next refresh.
        let secrets = KnownSecrets::default();
        let sealer = SecretScanner::new(&snapshot.seal_key, &secrets);
        let object = seen(&object, &call.known(snapshot), call, sealer);
        Ok(self.record(Resolution::Found { object }))
    }

    /// Returns the provider that reads objects of the call's type.
    fn provider_in<'p>(&self, providers: &'p Providers) -> Result<&'p dyn Provider, ResolveError> {
        providers.get(self.provider()).map(|provider| &**provider).ok_or_else(|| self.nobody())
    }

    fn nobody(&self) -> ResolveError {
        ResolveError::NoProvider(self.provider().clone())
    }

    fn record(&self, resolution: Resolution) -> Record {
        Record::Resolved { call: self.call, resolution }
    }
}
