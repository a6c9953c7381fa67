//! The plan: what differs, what will be done about it, and the steps that do it.
//!
//! A plan is a program: [`Plan::steps`] run exactly as listed, or not at all. Values that only apply will know
//! travel as residuals. It holds no secret: what is sensitive is sealed in `before` and `after`, and
//! [`Change::secrets`] says how apply computes it again. Nothing may branch on a reason; reasons are for people.

mod at_rest;
mod check;
pub mod compare;
mod context;
pub mod cost;
mod data_request;
mod decide;
mod decided_changes;
mod diagnostics;
mod draft;
mod evaluate;
pub mod facts;
pub mod file;
mod findings;
pub mod input;
mod limits;
pub mod lint;
mod look_up;
mod moves;
mod open_condition;
mod pipeline;
mod referred;
mod schedule;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Not;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use crate::plan::check::written_secrets::{WrittenSecret, written_secrets};
pub use crate::plan::compare::{Difference, compare};
pub use crate::plan::cost::{Cost, Estimate};
pub use crate::plan::data_request::{
    DataRequest, Fetch, HttpRequest, Question, StatePlace, Unanswered,
};
pub use crate::plan::decide::diff::{agree, agree_in_form, is_stable};
pub use crate::plan::decide::rules::broken_before_call;
pub use crate::plan::evaluate::secret_inputs::SecretInputs;
pub use crate::plan::facts::selection::Selection;
pub use crate::plan::facts::selection::moved::renamed as renamed_options;
pub use crate::plan::moves::Moves;
pub use crate::plan::open_condition::{OpenCondition, When};
pub use crate::plan::pipeline::{plan, plan_with};

use crate::address::{Address, MoveRule, Name};
use crate::diagnostics::Span;
use crate::digest::{Digest, Fingerprint, SealKey};
use crate::expression::Expr;
use crate::journal::{CallId, PhaseRef, Record};
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::{Nonce, ObjectId, Progress};
use crate::value::{Attributes, Datum, Paths, Value};

/// What will be done, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// True if it covers the whole spec; `--target` and `--exclude` make it incomplete.
    pub complete: bool,
    /// The state and the accounts that it was made for.
    pub base: Base,
    /// What changed outside since the last run, by address.
    pub drift: Vec<Drift>,
    /// One change for each address of the spec or the state, no-ops included, by address; those of
    /// deposed objects follow the one of their address.
    pub changes: Vec<Change>,
    /// What becomes of the outputs.
    pub outputs: BTreeMap<Name, OutputChange>,
    /// The cost of all objects with a price, by currency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// The program. A step needs only steps before it.
    pub steps: Vec<Step>,
    /// Calls of earlier runs whose end is not known.
    pub doubts: Vec<Doubt>,
    /// What the state takes over without a call: drift that is accepted, objects that are gone,
    /// leftovers that surfaced. Journaled at the start of the run, before the first step.
    pub seen: Vec<Record>,
    /// What its calls would send and nobody has, as far as lists tell. Where a read does not show it
    /// either, the plan must not be applied.
    #[serde(skip)]
    pub lacks: Vec<Lack>,
    /// The reads without which the plan cannot be made: it is to be made again with the answers.
    #[serde(skip)]
    pub requests: Vec<DataRequest>,
    /// Moves that the spec may mean: each of something that it no longer has to something new.
    #[serde(skip)]
    pub proposed_moves: Vec<ProposedMove>,
    /// The answers that look-ups fetched, in clear, for an apply to compute with.
    #[serde(skip)]
    pub looked_up: BTreeMap<Address, Datum>,
}

/// A move that the spec may mean.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedMove {
    /// The addresses before and after.
    pub rule: MoveRule,
    /// The place of the declaration of what may be moved to.
    pub span: Option<Span>,
}

/// An attribute that a call would send, and that cannot be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// Whose attribute.
    pub address: Address,
    /// Its name.
    pub attribute: Name,
    /// Where the spec gives it.
    pub span: Option<Span>,
    /// True if the object is there and stays.
    pub exists: bool,
    /// What it is computed from.
    pub missing: Vec<Missing>,
}

/// An attribute of an object that nobody has.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// Whose attribute.
    pub address: Address,
    /// Its name.
    pub attribute: Name,
    /// Why nobody has it.
    pub why: Why,
    /// True if reading the object may show it after all.
    pub may_show: bool,
}

impl Missing {
    /// Returns true if at least its fingerprint is known.
    fn has_fingerprint(&self) -> bool {
        matches!(self.why, Why::Fingerprint | Why::LookedUp)
    }

    /// An attribute that stays as it is, and that a call sends along.
    fn kept(address: &Address, attribute: &Name) -> Self {
        let (address, attribute) = (address.clone(), attribute.clone());
        Self { address, attribute, why: Why::Kept, may_show: false }
    }
}

/// Why nobody has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The state has its fingerprint, and the API does not show it again.
    Fingerprint,
    /// No answer has shown it so far.
    Unshown,
    /// The API never shows it.
    Never,
    /// It is a secret of an object that was looked up: only its fingerprint leaves the answer.
    LookedUp,
    /// It stays as it is, and a call sends it along: the state has its fingerprint at most, and the API never shows it.
    Kept,
}

/// The state and the accounts that a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The state's lineage.
    pub lineage: String,
    /// On a first run: the fingerprint key that the state will be made with, so that the
    /// fingerprints of a saved plan fit. It says as much about secrets as the state does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_key: Option<SealKey>,
    /// The digest of each provider instance's schema, by instance.
    pub providers: BTreeMap<Name, Digest>,
    /// The fingerprint of the account that each provider instance acts for, by instance. An account
    /// is told from another by its key, so not even a digest of it is kept without the seal key.
    pub accounts: BTreeMap<Name, Fingerprint>,
    /// The objects outside the state that have a name which the plan gives to another object, by
    /// that one's address. One that is not among them has come since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namesakes: BTreeMap<Address, BTreeSet<ObjectId>>,
    /// The addresses whose objects use what the plan deletes, by the address of what they use. One that is not among
    /// them has come to use it since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<Address, BTreeSet<Address>>,
}

/// One address and what will be done about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Whose change.
    pub address: Address,
    /// The address that the object has in the state, where the spec moves it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<Address>,
    /// True if it is about an object that a replace, or a given-up create, left beside the
    /// current one.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub deposed: bool,
    /// The provider instance.
    pub provider: Name,
    /// What will be done.
    pub action: Action,
    /// Why, for people.
    pub reason: Reason,
    /// The live object, secrets sealed; none when there is none.
    #[serde(with = "at_rest")]
    pub before: Option<Arc<Attributes>>,
    /// The planned object, secrets sealed, with residuals; none when there will be none.
    #[serde(with = "at_rest")]
    pub after: Option<Arc<Attributes>>,
    /// The attributes that make the action necessary, each with what caused it.
    pub causes: Vec<Cause>,
    /// The id of the object that is there now.
    pub object: Option<ObjectId>,
    /// How far an unfinished operation on it has come.
    pub progress: Progress,
    /// The sensitive places of `after`.
    pub sensitive: Paths,
    /// The expressions of the sensitive attributes that the plan cannot hold, by attribute. Not written: the text
    /// of a secret may stand in it.
    #[serde(skip)]
    pub secrets: BTreeMap<Name, Expr>,
    /// The attributes that the spec or a default gives, and those that the spec gave and that are cleared.
    pub managed: Set<Name>,
    /// What it depends on.
    pub dependencies: Set<Address>,
    /// What happens beside the change, such as "replaces workers"; each once, in order.
    pub effects: Vec<String>,
    /// What is lost for good, in words, when something is.
    pub loss: Option<String>,
    /// The cost of the object, where its type has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Rules whose answer is not known yet: they are checked before the call.
    pub deferred_rules: usize,
    /// The conditions that a run judges, in the order of the spec. Not written, as with secrets.
    #[serde(skip)]
    pub conditions: Vec<OpenCondition>,
    /// The attributes that may have values outside their lists: those of `lifecycle.allow_unknown`.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub allow_unknown: Set<Name>,
    /// The attributes that may differ from what the spec gives: those of `lifecycle.ignore_changes`.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub ignored: Set<Name>,
    /// Where the spec declares it.
    #[serde(skip)]
    pub span: Option<Span>,
}

impl Change {
    /// A change of nothing, at a provider instance.
    pub fn new(address: Address, provider: Name) -> Self {
        Self {
            address,
            moved_from: None,
            deposed: false,
            provider,
            action: Action::NoOp,
            reason: Reason::InSync,
            before: None,
            after: None,
            causes: Vec::new(),
            object: None,
            progress: Progress::Ready,
            sensitive: Paths::none(),
            secrets: BTreeMap::new(),
            managed: Set::new(),
            dependencies: Set::new(),
            effects: Vec::new(),
            loss: None,
            cost: None,
            deferred_rules: 0,
            conditions: Vec::new(),
            allow_unknown: Set::new(),
            ignored: Set::new(),
            span: None,
        }
    }
}

/// What will be done about an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Nothing.
    #[default]
    NoOp,
    /// Make the object.
    Create,
    /// Change it in place.
    Update,
    /// Put another in its place; the steps say in which order.
    Replace,
    /// Remove it.
    Delete,
    /// Take it out of the state and leave it alone.
    Forget,
    /// Take it over into the state; its steps, if it has any, change it in place.
    Import,
    /// Keep the object under another address.
    Move,
    /// Look at it.
    Read,
}

impl Action {
    /// Returns true if the object stays as it is, under whatever address.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::NoOp | Self::Move)
    }

    /// The word for it in every format.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoOp => "no-op",
            Self::Create => "create",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Forget => "forget",
            Self::Import => "import",
            Self::Move => "move",
            Self::Read => "read",
        }
    }

    /// The mark at the head of a line.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::NoOp => " ",
            Self::Create => "+",
            Self::Update => "~",
            Self::Replace => "±",
            Self::Delete => "-",
            Self::Forget => "×",
            Self::Import => "←",
            Self::Move => "→",
            Self::Read => "?",
        }
    }
}

/// Why something will be done. For people: nothing may branch on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Live object and spec agree.
    InSync,
    /// The spec has it and the state does not.
    NotInState,
    /// It was in the state, and the API no longer has it.
    Vanished,
    /// Attributes differ.
    Differs,
    /// Attributes differ that cannot be changed in place.
    CannotUpdate,
    /// An earlier run created it and did not finish.
    Unfinished,
    /// An earlier run began to change it and did not finish.
    HalfChanged,
    /// An earlier run began to delete it; the spec wants it.
    DeleteInterrupted,
    /// The spec no longer has it.
    NotInSpec,
    /// The spec no longer has its key in `for_each`.
    KeyNotInSpec,
    /// The spec gives its block a `for_each`, which it had not: it is instances by key that are wanted.
    BecameMany,
    /// The spec has its block without a `for_each`: it is one instance, without a key, that is wanted.
    BecameOne,
    /// Its `lifecycle.enabled` is false.
    Disabled,
    /// Everything is to be destroyed.
    Destroy,
    /// It was asked for with `--replace`.
    Asked,
    /// One of its `replace_triggered_by` changes.
    Triggered,
    /// A replace put this object aside.
    Deposed,
    /// A create that was given up surfaced after all.
    Leftover(Nonce),
    /// The spec says to leave it alone when it goes.
    Retained,
    /// The API has no call that deletes it.
    CannotDelete,
    /// It was not looked at: outside `--target`, or in `--exclude`.
    Untargeted,
    /// A call of an earlier run is in doubt.
    InDoubt,
    /// Something that stays as it is uses it.
    StillUsed(Use),
    /// The object exists, and an import names it.
    Imported,
    /// A move names it; nothing else becomes different.
    Moved,
    /// A removal in the spec names it.
    Removed,
}

/// Who goes on using an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// Whose object uses it.
    pub by: Address,
    /// Why that one stays as it is.
    pub why: Staying,
}

/// Why an object stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Staying {
    /// The plan leaves it out.
    LeftOut,
    /// A call of an earlier run is in doubt.
    InDoubt,
    /// It ignores changes of the attribute that names what it uses.
    Ignores,
}

/// An attribute that makes a change necessary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The attribute.
    pub attribute: Name,
    /// True if it forces a replace.
    pub replaces: bool,
    /// Where the spec says it; none for a default or a live value.
    #[serde(skip)]
    pub span: Option<Span>,
    /// True if the live value moved since the last run, rather than the spec.
    pub drifted: bool,
    /// True if the spec gave it the last time and no longer does, and it is cleared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unset: bool,
}

/// An object that changed outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Whose object.
    pub address: Address,
    /// What it was after the last run, secrets sealed.
    #[serde(with = "at_rest")]
    pub before: Attributes,
    /// What it is now; none when it is gone.
    #[serde(with = "at_rest")]
    pub after: Option<Attributes>,
    /// The managed attributes that differ.
    pub attributes: Vec<Name>,
    /// What to write into the spec to keep it as it now is: TOML, a line for each attribute of which a
    /// line can say it.
    pub proposal: Option<String>,
    /// The values that the spec gives the attributes that differ, secrets sealed. Not written: it is for who changes
    /// the spec.
    #[serde(skip)]
    pub wanted: Attributes,
}

/// What becomes of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputChange {
    /// What will be done.
    pub action: Action,
    /// Its last value.
    #[serde(with = "at_rest")]
    pub before: Option<Value>,
    /// Its next value, secrets sealed, with residuals.
    #[serde(with = "at_rest")]
    pub after: Option<Value>,
    /// True if it is sensitive.
    pub sensitive: bool,
    /// The expression by which apply computes it when the plan cannot hold it. Not written, as with a change.
    #[serde(skip)]
    pub secret: Option<Expr>,
    /// The preconditions that the end of a run judges. Not written either.
    #[serde(skip)]
    pub conditions: Vec<OpenCondition>,
}

/// The name of a step: `s0`, `s1`, … in the order of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

impl std::fmt::Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// One step: at most one mutating call and at most one wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name: its index in the program.
    pub id: StepId,
    /// What it does.
    pub operation: Operation,
    /// Whose object.
    pub address: Address,
    /// The index in [`Plan::changes`] of the change that it belongs to.
    pub change: usize,
    /// The phase to perform; none for what only touches the state.
    pub phase: Option<PhaseRef>,
    /// The object that it acts on, when that is not the one a step before it makes.
    pub object: Option<ObjectId>,
    /// For a create: whether the current object is put aside.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub deposes: bool,
    /// The steps that must have succeeded; each before this one.
    pub needs: Vec<StepId>,
}

/// A call of an earlier run whose end is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// The call.
    pub call: CallId,
    /// Whose object.
    pub address: Address,
    /// What the call was to do.
    pub operation: Operation,
    /// Why its end is not known.
    pub reason: String,
    /// True if another run is at it right now.
    pub running: bool,
}

impl Plan {
    /// The change of an address; not those of deposed objects.
    pub fn change(&self, address: &Address) -> Option<&Change> {
        let key = (address, false);
        let index = self.changes.binary_search_by(|c| (&c.address, c.deposed).cmp(&key)).ok()?;
        self.changes.get(index)
    }

    /// Returns true if it computes nothing any more: no call, and no change of an output.
    pub fn computes_nothing(&self) -> bool {
        self.steps.is_empty() && self.outputs.values().all(|output| output.action == Action::NoOp)
    }

    /// Returns true if nothing becomes different but what the state knows: no step, and no change of a resource
    /// or an output. What it takes into the state ([`Plan::seen`]) does not count.
    pub fn is_empty(&self) -> bool {
        self.computes_nothing() && self.changes.iter().all(|change| change.action == Action::NoOp)
    }
}
