//! What a plan is made from: everything that was read from outside, as plain data.

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
    /// The moves that gave objects the addresses by which the state has them here.
    pub moves: &'a Moves,
    /// What is live.
    pub observations: &'a Observations,
    /// What was asked for.
    pub options: &'a Options,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Which kind of plan.
    pub mode: Mode,
    /// Only these and what they depend on, in a destroy what depends on them; empty for all.
    pub targets: Vec<Target>,
    /// Not these, and not what depends on them.
    pub excludes: Vec<Target>,
    /// Replaced even without a difference.
    pub replace: Vec<Address>,
    /// True if only the spec is asked about, and nothing could be looked at: what is to be taken
    /// over is planned as if it were to be made.
    #[serde(skip)]
    pub validating: bool,
}

impl Options {
    /// Returns true if the plan is to be for all of the spec.
    pub fn cover_all(&self) -> bool {
        self.targets.is_empty() && self.excludes.is_empty()
    }
}

/// Which kind of plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Make the world what the spec says.
    #[default]
    Apply,
    /// Remove everything that the state names.
    Destroy,
    /// Accept into the state what is live, and call nothing that changes anything.
    RefreshOnly,
}

/// What a `--target` or `--exclude` names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// A block: all its instances.
    Block(Block),
    /// One instance.
    Instance(Address),
    /// A module: all that it and the modules in it hold.
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
    /// Returns true if an instance of the block may be meant.
    pub fn touches(&self, block: &Block) -> bool {
        match self {
            Self::Block(own) => own == block,
            Self::Instance(address) => address.block == *block,
            Self::Module(path) => block.module.is_within(path),
        }
    }

    /// Returns true if the address is meant.
    pub fn names(&self, address: &Address) -> bool {
        match self {
            Self::Block(block) => *block == address.block,
            Self::Instance(instance) => instance == address,
            Self::Module(path) => address.block.module.is_within(path),
        }
    }
}

/// What refresh saw. What it did not look at is not in it: the state stands for that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// The objects of the state, by address and id.
    pub objects: BTreeMap<(Address, ObjectId), Observed>,
    /// Objects that bear a watched nonce.
    pub leftovers: Vec<Leftover>,
    /// Watched nonces whose time was over when lists showed nothing under them.
    pub over: Vec<Nonce>,
    /// The names of live objects that are not in the state, by provider instance, type and name.
    pub strangers: BTreeMap<(Name, Name, Name), Vec<ObjectId>>,
    /// The calls in doubt that another run is at right now.
    pub running: std::collections::BTreeSet<CallId>,
    /// All objects of the types that data blocks look up, by provider instance and type, secrets sealed.
    pub listed: BTreeMap<(Name, Name), BTreeMap<ObjectId, Attributes>>,
    /// The objects that look-ups asked for, by the address of the look-up.
    pub read: BTreeMap<Address, Observed>,
    /// The answers to their other questions, in clear, or the reason that there is none.
    pub answers: BTreeMap<Address, Result<Datum, Unanswered>>,
}

impl Observations {
    /// The objects of a type that have a name and that no state has.
    pub fn named(&self, provider: &Name, ty: &Name, name: &Name) -> &[ObjectId] {
        let key = (provider.clone(), ty.clone(), name.clone());
        self.strangers.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The object that an import of a type means; none where no object, or more than one, has its name.
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

/// What was seen of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// It is there, with these attributes, secrets sealed. What the answer left out is not in it.
    Live(Attributes),
    /// It is gone, confirmed.
    Gone,
}

/// An object that a given-up create left after all.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// The nonce that it bears.
    pub nonce: Nonce,
    /// Its id.
    pub id: ObjectId,
    /// Its attributes, secrets sealed.
    pub attributes: Attributes,
}
