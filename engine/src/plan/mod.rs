//! The plan: the differences between spec and live objects, the changes that remove them, and the steps that
//! make these changes.
//!
//! A plan is a program: a run performs [`Plan::steps`] exactly as listed, or not at all. A value that becomes
//! known only during apply stands in the plan as a residual. A plan holds no secret: the sensitive values in
//! `before` and `after` are sealed, and [`Change::secrets`] has the expressions by which apply computes them
//! again. No code may branch on a reason; reasons are for people.

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

/// The planned changes, with their reasons and the steps that make them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// True if the plan covers the whole spec; `--target` and `--exclude` make it incomplete.
    pub complete: bool,
    /// The state and the accounts that the plan was made for.
    pub base: Base,
    /// The objects that changed outside Plumb since the last run, by address.
    pub drift: Vec<Drift>,
    /// One change for each address of the spec or the state, no-ops included, in the order of the addresses;
    /// the changes of deposed objects follow the change of their address.
    pub changes: Vec<Change>,
    /// The changes of the outputs, by name.
    pub outputs: BTreeMap<Name, OutputChange>,
    /// The cost of all objects with a price, by currency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// The program. A step needs only steps that stand before it.
    pub steps: Vec<Step>,
    /// The calls of earlier runs whose outcome is unknown.
    pub doubts: Vec<Doubt>,
    /// The records that bring the state up to date without a call: accepted drift, objects that are gone,
    /// leftovers that surfaced. The run writes them to the journal at its start, before the first step.
    pub seen: Vec<Record>,
    /// The attributes that calls of the plan would send and whose values no run has, as far as lists show. If
    /// reading the objects does not show the values either, the plan must not be applied.
    #[serde(skip)]
    pub lacks: Vec<Lack>,
    /// The reads without which the plan cannot be made: the caller performs them and plans again with the
    /// answers.
    #[serde(skip)]
    pub requests: Vec<DataRequest>,
    /// The moves that the spec may mean: each goes from an address that the spec no longer has to a new one.
    #[serde(skip)]
    pub proposed_moves: Vec<ProposedMove>,
    /// The answers that look-ups fetched, in clear; apply computes with them.
    #[serde(skip)]
    pub looked_up: BTreeMap<Address, Datum>,
    /// The number of errors that only say that a policy, or a rule of a type about the plan, does not hold. With
    /// no other errors, the plan is whole and can be shown.
    #[serde(skip)]
    pub denials: usize,
}

/// A move that the spec may mean.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedMove {
    /// The address before the move and the one after it.
    pub rule: MoveRule,
    /// The place where the spec declares the address after the move.
    pub span: Option<Span>,
}

/// An attribute that a call would send, and that cannot be computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// The address of the object that the attribute belongs to.
    pub address: Address,
    /// The name of the attribute.
    pub attribute: Name,
    /// The place in the spec that gives the attribute.
    pub span: Option<Span>,
    /// True if the object is there and stays.
    pub exists: bool,
    /// The attributes without values that this one is computed from.
    pub missing: Vec<Missing>,
}

/// An attribute of an object whose value no run has in clear.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// The address of the object.
    pub address: Address,
    /// The name of the attribute.
    pub attribute: Name,
    /// The reason that no run has the value.
    pub why: Why,
    /// True if reading the object may show the value after all.
    pub may_show: bool,
}

impl Missing {
    /// Returns true if at least the fingerprint of the value is known.
    fn has_fingerprint(&self) -> bool {
        matches!(self.why, Why::Fingerprint | Why::LookedUp)
    }

    /// Returns an attribute that stays as it is, and that a call sends along.
    fn kept(address: &Address, attribute: &Name) -> Self {
        let (address, attribute) = (address.clone(), attribute.clone());
        Self { address, attribute, why: Why::Kept, may_show: false }
    }
}

/// The reason that no run has the value of an attribute in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The state has the fingerprint of the value, and the API does not show the value again.
    Fingerprint,
    /// No answer has shown the value so far.
    Unshown,
    /// The API never shows the value.
    Never,
    /// The value is a secret of an object that was looked up: only its fingerprint leaves the answer.
    LookedUp,
    /// The value stays as it is, and a call sends it along: the state has its fingerprint at most, and the
    /// API never shows it.
    Kept,
}

/// The state and the accounts that a plan was made for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The state's lineage.
    pub lineage: String,
    /// On a first run: the fingerprint key that the state will be made with, so that the fingerprints of a
    /// saved plan fit. The key reveals as much about secrets as the state does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_key: Option<SealKey>,
    /// The digest of each provider instance's schema, by instance.
    pub providers: BTreeMap<Name, Digest>,
    /// The fingerprint of the account that each provider instance acts for, by instance. An account is
    /// identified by its key, so a digest of it that needs no seal key would reveal too much to be kept.
    pub accounts: BTreeMap<Name, Fingerprint>,
    /// The objects outside the state that have a name which the plan gives to another object, by the address
    /// of that other object. An object that is not listed got the name after planning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namesakes: BTreeMap<Address, BTreeSet<ObjectId>>,
    /// The addresses whose objects use an object that the plan deletes, by the address of the deleted object.
    /// An address that is not listed began to use it after planning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<Address, BTreeSet<Address>>,
}

/// An address and the action on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The address.
    pub address: Address,
    /// The address that the object has in the state, where the spec moves it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<Address>,
    /// True if the change is about an object that a replace, or a given-up create, left beside the current
    /// object.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub deposed: bool,
    /// The provider instance.
    pub provider: Name,
    /// The planned action.
    pub action: Action,
    /// The reason for the action, for people.
    pub reason: Reason,
    /// The live object, secrets sealed; none if there is no such object.
    #[serde(with = "at_rest")]
    pub before: Option<Arc<Attributes>>,
    /// The planned object, secrets sealed, with residuals; none if there will be no such object.
    #[serde(with = "at_rest")]
    pub after: Option<Arc<Attributes>>,
    /// The attributes that make the action necessary, each with what caused it.
    pub causes: Vec<Cause>,
    /// The id of the object that exists now.
    pub object: Option<ObjectId>,
    /// The progress of an operation on the object that an earlier run did not finish.
    pub progress: Progress,
    /// The sensitive places of `after`.
    pub sensitive: Paths,
    /// The expressions of the sensitive attributes that the plan cannot hold, by attribute. Not written to a
    /// plan file: the text of a secret may stand in an expression.
    #[serde(skip)]
    pub secrets: BTreeMap<Name, Expr>,
    /// The attributes that the spec or a default gives, and those that the spec gave earlier and that are
    /// cleared.
    pub managed: Set<Name>,
    /// The addresses that the object depends on.
    pub dependencies: Set<Address>,
    /// The side effects of the change, such as "replaces workers"; each once, in order.
    pub effects: Vec<String>,
    /// A description of the data that the change destroys for good; none if it destroys nothing.
    pub loss: Option<String>,
    /// The cost of the object, where its type has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The number of rules whose answer is not known yet: the run checks them before the call.
    pub deferred_rules: usize,
    /// The conditions that a run judges, in the order of the spec. Not written to a plan file, for the reason
    /// given at `secrets`.
    #[serde(skip)]
    pub conditions: Vec<OpenCondition>,
    /// The attributes that may have values outside their lists: those of `lifecycle.allow_unknown`.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub allow_unknown: Set<Name>,
    /// The attributes that may differ from what the spec gives: those of `lifecycle.ignore_changes`.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub ignored: Set<Name>,
    /// The place where the spec declares the address.
    #[serde(skip)]
    pub span: Option<Span>,
}

impl Change {
    /// Returns a no-op change of an address, at a provider instance.
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

/// The planned effect on an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Change nothing.
    #[default]
    NoOp,
    /// Make the object.
    Create,
    /// Change the object in place.
    Update,
    /// Put another object in place of the current one; the steps say in which order.
    Replace,
    /// Delete the object.
    Delete,
    /// Take the object out of the state and leave it alone.
    Forget,
    /// Take the object over into the state; its steps, if it has any, change it in place.
    Import,
    /// Keep the object under another address.
    Move,
    /// Read the object.
    Read,
}

impl Action {
    /// Returns true if the object stays as it is, under whatever address.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::NoOp | Self::Move)
    }

    /// Returns the word for the action, the same in every output format.
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

    /// Returns the symbol that starts the line of the action.
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

/// The reason for an action. For people: no code may branch on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The live object and the spec agree.
    InSync,
    /// The spec has the address and the state does not.
    NotInState,
    /// The object was in the state, and the API no longer has it.
    Vanished,
    /// Attributes differ, and all of them can be changed in place.
    Differs,
    /// Attributes differ that cannot be changed in place.
    CannotUpdate,
    /// An earlier run created the object and did not finish.
    Unfinished,
    /// An earlier run began to change the object and did not finish.
    HalfChanged,
    /// An earlier run began to delete the object, and the spec wants it.
    DeleteInterrupted,
    /// The spec no longer has the address.
    NotInSpec,
    /// The spec no longer has the key of the address in `for_each`.
    KeyNotInSpec,
    /// The block has a `for_each` now and had none before: the spec wants instances by key.
    BecameMany,
    /// The block has no `for_each` any more: the spec wants one instance, without a key.
    BecameOne,
    /// The `lifecycle.enabled` of the resource is false.
    Disabled,
    /// Everything is to be destroyed.
    Destroy,
    /// The user asked for the replace with `--replace`.
    Asked,
    /// One of the `replace_triggered_by` of the resource changes.
    Triggered,
    /// A replace put this object aside.
    Deposed,
    /// A create that was given up made this object after all.
    Leftover(Nonce),
    /// The spec says to leave the object alone when its address goes.
    Retained,
    /// The API has no call that deletes the object.
    CannotDelete,
    /// The plan leaves the address out: it is outside `--target`, or in `--exclude`.
    Untargeted,
    /// A call of an earlier run is in doubt.
    InDoubt,
    /// Another object, which stays as it is, uses this one.
    StillUsed(Use),
    /// The object exists, and an import names it.
    Imported,
    /// A move names the address; nothing else changes.
    Moved,
    /// A removal in the spec names the address.
    Removed,
}

/// The object that goes on using another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// The address of the object that uses the other one.
    pub by: Address,
    /// The reason that the using object stays as it is.
    pub why: Staying,
}

/// The reason that an object stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Staying {
    /// The plan leaves it out.
    LeftOut,
    /// A call of an earlier run is in doubt.
    InDoubt,
    /// The spec ignores changes of the attribute that names the used object.
    Ignores,
}

/// An attribute that makes a change necessary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// The attribute.
    pub attribute: Name,
    /// True if the attribute forces a replace.
    pub replaces: bool,
    /// The place in the spec that gives the attribute; none for a default or a live value.
    #[serde(skip)]
    pub span: Option<Span>,
    /// True if the live value changed since the last run, rather than the spec.
    pub drifted: bool,
    /// True if the spec gave the attribute the last time and no longer does, and the change clears it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unset: bool,
}

/// An object that changed outside Plumb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// The address of the object.
    pub address: Address,
    /// The attributes of the object after the last run, secrets sealed.
    #[serde(with = "at_rest")]
    pub before: Attributes,
    /// The attributes of the object now, secrets sealed; none if it is gone.
    #[serde(with = "at_rest")]
    pub after: Option<Attributes>,
    /// The managed attributes that differ.
    pub attributes: Vec<Name>,
    /// The TOML text to write into the spec to keep the object as it now is: a line for each attribute. None
    /// if such lines would not do, or would change other objects, too.
    pub proposal: Option<String>,
    /// The values that the spec gives the attributes that differ, secrets sealed. Not written to a plan file:
    /// only code that edits the spec needs them.
    #[serde(skip)]
    pub wanted: Attributes,
}

/// The planned effect on an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputChange {
    /// The planned action.
    pub action: Action,
    /// The last value of the output.
    #[serde(with = "at_rest")]
    pub before: Option<Value>,
    /// The next value of the output, secrets sealed, with residuals.
    #[serde(with = "at_rest")]
    pub after: Option<Value>,
    /// True if the output is sensitive.
    pub sensitive: bool,
    /// The expression by which apply computes the output when the plan cannot hold its value. Not written to
    /// a plan file, like [`Change::secrets`].
    #[serde(skip)]
    pub secret: Option<Expr>,
    /// The preconditions that the end of a run judges. Not written to a plan file.
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
    /// The name of the step, which is its index in the program.
    pub id: StepId,
    /// The operation that the step performs.
    pub operation: Operation,
    /// The address of the object.
    pub address: Address,
    /// The index in [`Plan::changes`] of the change that the step belongs to.
    pub change: usize,
    /// The phase to perform; none if the step touches only the state.
    pub phase: Option<PhaseRef>,
    /// The object that the step acts on; none if an earlier step makes it.
    pub object: Option<ObjectId>,
    /// For a create: true if the current object is put aside.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub deposes: bool,
    /// The steps that must have succeeded before this one; all stand before it in the program.
    pub needs: Vec<StepId>,
}

/// A call of an earlier run whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// The call.
    pub call: CallId,
    /// The address of the object.
    pub address: Address,
    /// The operation that the call was part of.
    pub operation: Operation,
    /// The reason that the outcome is unknown.
    pub reason: String,
    /// True if another run is performing the call right now.
    pub running: bool,
}

impl Plan {
    /// Returns the change of an address, but not those of its deposed objects.
    pub fn change(&self, address: &Address) -> Option<&Change> {
        let key = (address, false);
        let index = self.changes.binary_search_by(|c| (&c.address, c.deposed).cmp(&key)).ok()?;
        self.changes.get(index)
    }

    /// Returns true if the plan computes nothing during apply: it has no step and no change of an output.
    pub fn computes_nothing(&self) -> bool {
        self.steps.is_empty() && self.outputs.values().all(|output| output.action == Action::NoOp)
    }

    /// Returns true if a run of the plan would change nothing but the state's knowledge: the plan has no
    /// step, and no change of a resource or an output. The records in [`Plan::seen`] do not count.
    pub fn is_empty(&self) -> bool {
        self.computes_nothing() && self.changes.iter().all(|change| change.action == Action::NoOp)
    }
}
