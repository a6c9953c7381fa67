//! The input of a plan: everything that was read from outside, as plain data.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::{Address, AddressError, Block, ModulePath, Name};
use crate::config::{Config, ImportedObject};
use crate::digest::Digest;
use crate::graph::Graph;
use crate::journal::CallId;
use crate::plan::data_request::Unanswered;
use crate::plan::moves::Moves;
use crate::schema::ProviderSchema;
use crate::state::{Nonce, ObjectId, Snapshot};
use crate::value::{Attributes, Datum};

/// The input of [`super::plan`].
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The resolved spec.
    pub config: &'a Config,
    /// Its dependency graph.
    pub graph: &'a Graph,
    /// The schema of each provider instance.
    pub providers: &'a BTreeMap<Name, Arc<ProviderSchema>>,
    /// The account of each provider instance that has one.
    pub accounts: &'a BTreeMap<Name, Digest>,
    /// The state, with the journal folded in.
    pub snapshot: &'a Snapshot,
    /// The moves by which the addresses in the snapshot were already changed.
    pub moves: &'a Moves,
    /// The live objects that refresh saw.
    pub observations: &'a Observations,
    /// The options of the plan.
    pub options: &'a Options,
}

/// The options of a plan, as the user gave them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The kind of plan.
    pub mode: Mode,
    /// The instances to plan, with what they depend on or, in a destroy, what depends on them; empty for all.
    pub targets: Vec<Target>,
    /// The instances to leave out, with what depends on them.
    pub excludes: Vec<Target>,
    /// The instances to replace even without a difference.
    pub replace: Vec<Address>,
    /// True if only the spec is checked and nothing was read from outside: an object that is to be taken over
    /// is planned as a create.
    #[serde(skip)]
    pub validating: bool,
}

impl Options {
    /// Returns true if the plan covers the whole spec.
    pub fn cover_all(&self) -> bool {
        self.targets.is_empty() && self.excludes.is_empty()
    }
}

/// The kind of plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Makes the world what the spec says.
    #[default]
    Apply,
    /// Deletes everything that the state names.
    Destroy,
    /// Accepts the live objects into the state, and calls nothing that changes anything.
    RefreshOnly,
}

/// The argument of a `--target` or `--exclude`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// All instances of a block.
    Block(Block),
    /// One instance.
    Instance(Address),
    /// All instances in a module and in the modules inside it.
    Module(ModulePath),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(block) => block.fmt(f),
            Self::Instance(address) => address.fmt(f),
            Self::Module(path) => path.fmt(f),
        }
    }
}

impl FromStr for Target {
    type Err = AddressError;

    /// Reads `TYPE.NAME` as a block, `TYPE.NAME["KEY"]` as an instance, and `module.NAME` as a module.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Ok(path) = text.parse() {
            return Ok(Self::Module(path));
        }
        let address: Address = text.parse()?;
        Ok(match address.key {
            None => Self::Block(address.block),
            Some(_) => Self::Instance(address),
        })
    }
}

impl TryFrom<String> for Target {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

impl Target {
    /// Returns true if the target may name an instance of the block.
    pub fn touches(&self, block: &Block) -> bool {
        match self {
            Self::Block(own) => own == block,
            Self::Instance(address) => address.block == *block,
            Self::Module(path) => block.module.is_within(path),
        }
    }

    /// Returns true if the target names the address.
    pub fn names(&self, address: &Address) -> bool {
        match self {
            Self::Block(block) => *block == address.block,
            Self::Instance(instance) => instance == address,
            Self::Module(path) => address.block.module.is_within(path),
        }
    }
}

/// The result of a refresh. For an object that refresh did not look at there is no entry: the attributes in
/// the state count as its live ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// The objects of the state, by address and id.
    pub objects: BTreeMap<(Address, ObjectId), Observed>,
    /// The objects that bear a watched nonce.
    pub leftovers: Vec<Leftover>,
    /// The watched nonces that lists still did not show after the end of their time.
    pub over: Vec<Nonce>,
    /// The ids of the live objects that are not in the state, by provider instance, type and name.
    pub strangers: BTreeMap<(Name, Name, Name), Vec<ObjectId>>,
    /// The calls in doubt that another run is performing right now.
    pub running: std::collections::BTreeSet<CallId>,
    /// All objects of the types that data blocks look up, by provider instance and type, secrets sealed.
    pub listed: BTreeMap<(Name, Name), BTreeMap<ObjectId, Attributes>>,
    /// The objects that look-ups asked for, by the address of the look-up.
    pub read: BTreeMap<Address, Observed>,
    /// The answers to the other questions of look-ups, in clear, or the reason that there is no answer, by
    /// the address of the look-up.
    pub answers: BTreeMap<Address, Result<Datum, Unanswered>>,
}

impl Observations {
    /// Returns the objects of a type that have a certain name and are in no state.
    pub fn named(&self, provider: &Name, ty: &Name, name: &Name) -> &[ObjectId] {
        let key = (provider.clone(), ty.clone(), name.clone());
        self.strangers.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the id of the object that an import of a type means; none if no object, or more than one, has
    /// its name.
    pub fn imported<'a>(
        &'a self,
        provider: &Name,
        ty: &Name,
        object: &'a ImportedObject,
    ) -> Option<&'a ObjectId> {
        match object {
            ImportedObject::Id(id) => Some(id),
            ImportedObject::Named(name) => match self.named(provider, ty, name) {
                [id] => Some(id),
                _ => None,
            },
        }
    }
}

/// The result of looking at an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// The object exists, with these attributes, secrets sealed. An attribute that the answer left out is
    /// missing.
    Live(Attributes),
    /// The object is gone, and this is confirmed.
    Gone,
}

/// An object that exists although the create that made it was given up.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// The nonce that the object bears.
    pub nonce: Nonce,
    /// The id of the object.
    pub id: ObjectId,
    /// The attributes of the object, secrets sealed.
    pub attributes: Attributes,
}
