//! `resolve`: turns what a person says about a call in doubt into the record that decides the call.
//!
//! If the person names an object, it is read, so that the state knows its attributes. Nothing is written but
//! the journal.

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

/// A call in doubt about which a person decides.
#[derive(Clone, Copy)]
pub struct OpenCall<'a> {
    snapshot: &'a Snapshot,
    call: CallId,
    pending: &'a Pending,
}

/// The reason why an object cannot be the one of a call.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The call was about a known object, and this is another one.
    #[error("{0} stands for another object")]
    AnotherObject(Address),
    /// An address stands for the object already.
    #[error("{0} stands for this object already")]
    Taken(Address),
    /// The object has the one-time name of another create.
    #[error("it was made for {0}: it has the one-time name of that create")]
    MadeFor(Address),
    /// No provider can read the object.
    #[error("there is no provider `{0}`")]
    NoProvider(Name),
    /// The object cannot be read.
    #[error("cannot read the object: {0}")]
    Unread(provider_port::Error),
}

impl<'a> OpenCall<'a> {
    /// Returns the calls in doubt about an address. There can be two: a call that deletes an object which a
    /// replace put aside, and a call about the address's current object.
    pub fn about(snapshot: &'a Snapshot, address: &Address) -> impl Iterator<Item = Self> {
        let pending = snapshot.pending.iter().filter(|(_, own)| own.started.address == *address);
        pending.map(move |(call, pending)| Self { snapshot, call: *call, pending })
    }

    /// Returns the number of the call.
    pub fn call(&self) -> CallId {
        self.call
    }

    /// Returns the call.
    pub fn pending(&self) -> &'a Pending {
        self.pending
    }

    /// Returns the provider instance that was called.
    pub fn provider(&self) -> &'a Name {
        &self.pending.started.provider
    }

    /// Returns the record that no object is there: the call made none, or the object of the call is gone.
    pub fn absent(&self, at_ms: u64) -> Record {
        self.record(self.pending.started.absence(at_ms))
    }

    /// Returns the object that the call was about; `None` for a create, whose object is not known.
    pub fn object(&self) -> Option<&'a ObjectId> {
        self.pending.started.object.as_ref()
    }

    /// Returns true if the object is there. Returns an error if that cannot be told.
    pub async fn shows(&self, id: &ObjectId, providers: &Providers) -> Result<bool, ResolveError> {
        let provider = self.provider_in(providers)?;
        match provider.read(&self.pending.started.address.block.ty, id).await {
            Ok(object) => Ok(object.id == *id),
            Err(error) if error.kind == provider_port::Kind::NotFound => Ok(false),
            Err(error) => Err(ResolveError::Unread(error)),
        }
    }

    /// Refuses an object that cannot be the one of the call.
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

    /// Returns the record that an object is the one of the call. Reads the object.
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
        // No spec is resolved here, so its sensitive variables are not known. The next refresh seals their
        // values.
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
