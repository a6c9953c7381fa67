//! Schemas: what a provider tells the engine about its resource types.
//!
//! Data only. Everything the planner must know about an API stands here (what an attribute may
//! hold, which change forces a replace, which calls an operation is made of), so planning makes no
//! provider call. How a call looks on the wire is the provider's own business.

mod phase;
mod price;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::Name;
use crate::diagnostics::Severity;
use crate::digest::Digest;
use crate::expression::visit::roots;
use crate::expression::{Expr, Root};
use crate::form::Form;
use crate::state::ObjectId;
use crate::types::{Field, Type};
use crate::value::{Path, Paths, Value};

pub use self::phase::{PhaseRef, ProgramKind, Wait};
pub use self::price::{MONTH_HOURS, Price, RATES};

/// The types that one configured provider manages.
#[derive(Clone, Debug)]
pub struct ProviderSchema {
    /// The provider's name.
    pub name: Name,
    /// The digest of the descriptor, or of the built-in schema's version: a saved plan fits only
    /// the schema that it was made with.
    pub digest: Digest,
    /// Its resource types.
    pub types: BTreeMap<Name, Arc<TypeSchema>>,
}

/// A resource type.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    /// Its name, such as `value`.
    pub name: Name,
    /// Its description in a sentence or two, for `plumb schema` and the reference.
    pub description: String,
    /// Its attributes.
    pub attributes: BTreeMap<Name, Attribute>,
    /// The programs that create objects: the first whose `when` holds for the planned object.
    pub create: Vec<Program>,
    /// The programs that update objects.
    pub update: Vec<Program>,
    /// The programs that delete objects; `when` sees the live object.
    pub delete: Vec<Program>,
    /// The way to find the object of a create whose answer was lost.
    pub identity: Identity,
    /// The half of a replace that comes first unless the spec says otherwise.
    pub replace: ReplaceOrder,
    /// True if two objects may not bear one name ([`TypeSchema::name_attribute`]).
    pub unique_name: bool,
    /// The attribute that people know an object by, if there is one.
    pub name_attribute: Option<Name>,
    /// The loss that a delete brings, such as "its data is lost"; shown in the plan.
    pub delete_effect: Option<String>,
    /// The price of an object, where the provider knows it.
    pub price: Option<Price>,
    /// The condition that must hold.
    pub rules: Vec<Rule>,
    /// True if objects live in an API. Without one the state is all there is to know.
    pub remote: bool,
    /// True if objects can be looked up only: no spec makes, changes or deletes one.
    pub data_only: bool,
    /// The id of the only object of the type, where each account has one from the start: it is taken over and never
    /// made. Without a program for deletes it is left alone in the end.
    pub singleton: Option<ObjectId>,
}

impl TypeSchema {
    /// The type of the resource's object, for the type checker. Every attribute may be absent
    /// from a value of it, because answers may leave attributes out.
    pub fn object_type(&self) -> Type {
        Type::Object(
            self.attributes
                .iter()
                .map(|(name, attribute)| {
                    (name.clone(), Field { ty: attribute.ty.clone(), optional: true })
                })
                .collect(),
        )
    }

    /// The programs of one kind; of each operation the first that applies is run.
    pub fn programs(&self, kind: ProgramKind) -> &[Program] {
        match kind {
            ProgramKind::Create => &self.create,
            ProgramKind::Update => &self.update,
            ProgramKind::Delete => &self.delete,
        }
    }

    /// One phase; none where this version of the type has no such phase.
    pub fn phase(&self, phase: PhaseRef) -> Option<&Phase> {
        self.programs(phase.kind).get(phase.program)?.phases.get(phase.phase)
    }

    /// Returns true if no answer shows an attribute.
    pub fn is_hidden(&self, name: &Name) -> bool {
        self.attributes.get(name).is_none_or(|attribute| attribute.seen_in == SeenIn::Never)
    }

    /// Returns true if a phase does something without sending attributes.
    pub fn acts_only(&self, phase: PhaseRef) -> bool {
        self.phase(phase).is_some_and(|phase| !phase.sends.is_anything())
    }

    /// Returns true if a phase is about an attribute, by the attributes that its change is about. A phase that
    /// sends nothing is all that is done about what changes.
    pub fn sends(&self, phase: PhaseRef, name: &Name, changed: &BTreeSet<Name>) -> bool {
        match self.phase(phase) {
            Some(model) if model.sends == Sends::Changed => {
                changed.contains(name) && model.carries(name)
            }
            Some(_) if self.acts_only(phase) => changed.contains(name),
            Some(_) => self.sets(phase, name),
            None => false,
        }
    }

    /// Returns true if an object has its value of an attribute once a phase is done: the phase carries it, or
    /// no API knows it.
    pub fn sets(&self, phase: PhaseRef, name: &Name) -> bool {
        let is_local = || self.attributes.get(name).is_some_and(|attribute| attribute.local);
        self.phase(phase).is_some_and(|phase| phase.carries(name) || is_local())
    }

    /// The attributes whose value no two objects share: a name that is unique, and what the spec
    /// chooses for a lost create to be found by, such as an id.
    pub fn own_names(&self) -> impl Iterator<Item = &Name> {
        let name = self.name_attribute.as_ref().filter(|_| self.unique_name);
        let chosen = self.identity.chosen_attribute().filter(|chosen| Some(*chosen) != name);
        name.into_iter().chain(chosen)
    }

    /// Returns the phase of a create that gives the object its value of an attribute which names it. What is
    /// made under a one-time name gets its own one later.
    pub fn naming_phase(&self, program: &Program, attribute: &Name) -> usize {
        let earliest = match &self.identity {
            Identity::ClientId { attribute: id } if id == attribute => return 0,
            Identity::OneTimeName { attribute: name } => usize::from(name == attribute),
            _ => 0,
        };
        let later = program.phases.iter().enumerate().skip(earliest);
        let mut naming = later.filter(|(_, phase)| phase.carries(attribute));
        naming.next().map_or(earliest, |(phase, _)| phase)
    }

    /// The declared sensitive places of an object.
    pub fn sensitive(&self) -> Paths {
        self.attributes
            .iter()
            .filter(|(_, attribute)| attribute.sensitive)
            .map(|(name, _)| Path::attribute(name.clone()))
            .collect()
    }
}

/// One attribute of a resource type.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own in descriptors")]
pub struct Attribute {
    /// The type of its value.
    pub ty: Type,
    /// Its description in a sentence.
    pub description: String,
    /// The duty of the spec to give it: it must, may or cannot.
    pub presence: Presence,
    /// True if its value is a secret.
    pub sensitive: bool,
    /// The wanted value when the spec is silent.
    pub default: Option<Value>,
    /// True if the API fills it when nothing is sent: then it is unknown until after the create.
    pub server_default: bool,
    /// The value that the API fills it with, where that is always the same.
    pub server_value: Option<Value>,
    /// The way to clear it at an object once the spec no longer gives it; none where it stays as it is.
    pub unset: Option<Unset>,
    /// The meaning of a change of it.
    pub on_change: OnChange,
    /// True if replacing the object for its sake loses data.
    pub data_loss: bool,
    /// The answers that show its live value.
    pub seen_in: SeenIn,
    /// True if no API knows it: it lives in the spec and the state, for calls to be made with, and has
    /// its value once a call was made, whatever that sends.
    pub local: bool,
    /// True if calls are made on condition that it has not changed, such as a version: each refresh reads it.
    pub conditional: bool,
    /// True if it changes by itself: never drift, and unknown after any change of the object.
    pub volatile: bool,
    /// The expression by which it follows from the object's other attributes, by name; computed without the API.
    pub derived: Option<Expr>,
    /// The attribute that the API derives this one from when it is left out: where nobody manages
    /// this one, a change of that one leaves it unknown.
    pub follows: Option<Name>,
    /// The type whose objects the API does not delete while one bears their id here.
    pub holds: Option<Name>,
    /// Other words for null: what an API that is given one of them shows as null, as it does with ""
    /// for an id.
    pub nulls: Vec<Value>,
    /// The form in which its texts are compared; none where they are compared as they are.
    pub form: Option<Form>,
    /// The constraint on its known values.
    pub constraint: Constraint,
    /// The effect of changing it beside the change, such as "replaces workers"; shown in the plan.
    pub effect: Option<String>,
    /// The unit of its number, such as "GB".
    pub unit: Option<String>,
}

impl Attribute {
    /// An optional, updatable attribute of `ty` with nothing special about it.
    pub fn new(ty: Type) -> Self {
        Self {
            ty,
            description: String::new(),
            presence: Presence::Optional,
            sensitive: false,
            default: None,
            server_default: false,
            server_value: None,
            unset: None,
            on_change: OnChange::Update,
            data_loss: false,
            seen_in: SeenIn::List,
            local: false,
            conditional: false,
            volatile: false,
            derived: None,
            follows: None,
            holds: None,
            nulls: Vec::new(),
            form: None,
            constraint: Constraint::default(),
            effect: None,
            unit: None,
        }
    }

    /// A wanted value as answers show it, so that what was applied agrees with what is live.
    #[must_use]
    pub fn as_shown(&self, wanted: Value) -> Value {
        if self.nulls.iter().any(|word| word.same(&wanted)) { Value::Null } else { wanted }
    }
}

/// The way to clear an attribute that the spec no longer gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Unset {
    /// This value is sent.
    Value(Value),
    /// Nothing is sent, in a call that sends everything else and resets what it does not get.
    Absent,
}

impl Unset {
    /// Returns true if a phase clears an attribute in this way.
    pub fn is_done_by(&self, phase: &Phase, name: &Name) -> bool {
        phase.carries(name) && (*self != Self::Absent || phase.sends == Sends::All)
    }
}

/// The duty of a spec to give an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It may.
    Optional,
    /// It cannot: the API or a derivation does.
    Computed,
}

/// The meaning of a changed attribute for its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChange {
    /// The object is updated in place.
    Update,
    /// Another object takes its place.
    Replace,
}

/// The answers that show an attribute's live value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenIn {
    /// In lists, and wherever an object is read.
    List,
    /// Only when the object is read by itself.
    Read,
    /// Never: it is compared with the state, by fingerprint.
    Never,
}

/// The conditions on a known value, checked before anything is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraint {
    /// The least number.
    pub min: Option<f64>,
    /// The greatest number.
    pub max: Option<f64>,
    /// The least length: characters of text, items of a collection.
    pub length_min: Option<usize>,
    /// The greatest length.
    pub length_max: Option<usize>,
    /// The allowed texts. In a collection, of each item.
    pub one_of: Option<OneOf>,
}

/// A list of allowed texts.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOf {
    /// The allowed texts, in the order of the documentation.
    pub values: Vec<Name>,
    /// The separator where one text holds several (a comma list).
    pub separator: Option<String>,
    /// The beginning of a part that is not checked: an exclusion such as `-NVIDIA L4`.
    pub exclusion: Option<String>,
}

/// The calls that one operation is made of; each phase is one step of a plan.
#[derive(Clone, Debug)]
pub struct Program {
    /// For which objects, over the object's attributes by name; none: for all.
    pub when: Option<Expr>,
    /// The phases, in order; never empty.
    pub phases: Vec<Phase>,
}

/// One phase: at most one mutating call and at most one wait.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The operation of the step.
    pub operation: Operation,
    /// The attributes that it sends.
    pub sends: Sends,
    /// The attributes that its call has no place for, whatever it sends otherwise.
    pub without: BTreeSet<Name>,
    /// The condition that it waits for after its call, in words for people.
    pub waits_for: Option<String>,
    /// The words for what it does, where they are not those of its operation.
    pub words: PhaseWords,
}

/// The words for a phase, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseWords {
    /// While it runs, such as "resizing".
    pub doing: Option<String>,
    /// Afterwards, such as "resized".
    pub done: Option<String>,
}

impl Phase {
    /// Returns true if a change of the attribute is carried by this phase.
    pub fn carries(&self, name: &Name) -> bool {
        self.sends.carries(name) && !self.without.contains(name)
    }
}

/// The attributes that a phase sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// None.
    Nothing,
    /// All that are known, the unmanaged ones with their live value: the API resets what is left out.
    All,
    /// Those that change.
    Changed,
    /// These.
    These(BTreeSet<Name>),
}

impl Sends {
    /// Returns true if this phase sends attributes at all.
    pub fn is_anything(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::All | Self::Changed => true,
            Self::These(names) => !names.is_empty(),
        }
    }

    /// Returns true if a change of the attribute is among them.
    pub fn carries(&self, name: &Name) -> bool {
        match self {
            Self::Nothing => false,
            Self::All | Self::Changed => true,
            Self::These(names) => names.contains(name),
        }
    }
}

/// The operation of a step on its object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Makes it, inert and under a one-time name where that can be done.
    Create,
    /// Gives it its real name and its real shape.
    Activate,
    /// Changes it.
    Update,
    /// Lets its work end.
    Drain,
    /// Removes it.
    Delete,
    /// Looks at it.
    Read,
    /// Takes it out of the state and leaves it alone.
    Forget,
    /// Judges what must hold before it is made or changed. Calls nothing.
    Require,
    /// Judges what must hold of it afterwards. Calls nothing.
    Verify,
}

impl Operation {
    /// The word for it in every format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Activate => "activate",
            Self::Update => "update",
            Self::Drain => "drain",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Forget => "forget",
            Self::Require => "require",
            Self::Verify => "verify",
        }
    }

    /// Returns true for what judges conditions and touches no object.
    pub fn only_judges(self) -> bool {
        matches!(self, Self::Require | Self::Verify)
    }
}

impl std::str::FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [
            Self::Create,
            Self::Activate,
            Self::Update,
            Self::Drain,
            Self::Delete,
            Self::Read,
            Self::Forget,
        ]
        .into_iter()
        .find(|operation| operation.word() == text)
        .ok_or_else(|| format!("`{text}` is no operation"))
    }
}

/// The way to find the object of a create whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The object is made under a one-time name and renamed by a later phase.
    OneTimeName {
        /// The attribute that holds the name.
        attribute: Name,
    },
    /// The API knows a repeated create by a header.
    IdempotencyKey,
    /// The client chooses the id.
    ClientId {
        /// The attribute that holds the id. Where the spec gives none, it is the one-time name.
        attribute: Name,
    },
    /// No two objects share the name, so the name finds it.
    UniqueName {
        /// The attribute that holds the name.
        attribute: Name,
    },
    /// Nothing tells: a person must say.
    Ask,
    /// There is no API, so nothing can be lost.
    Local,
}

impl Identity {
    /// The attribute by whose value a lost create is found, where the spec chooses that value.
    pub fn chosen_attribute(&self) -> Option<&Name> {
        match self {
            Self::UniqueName { attribute } | Self::ClientId { attribute } => Some(attribute),
            _ => None,
        }
    }
}

/// The half of a replace that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceOrder {
    /// Delete, then create.
    DeleteFirst,
    /// Create under a one-time name, update the dependants, delete the old, activate.
    CreateFirst,
}

/// A rule over a change; `assert` sees `old`, `new`, `action`, and the whole `plan` as policies do.
#[derive(Clone, Debug)]
pub struct Rule {
    /// On which changes.
    pub on: RuleOn,
    /// Error: a plan that breaks it is refused. Warning: it only says so.
    pub severity: Severity,
    /// The condition that must hold.
    pub assert: Expr,
    /// The message when it does not hold: a template over the same names.
    pub message: Expr,
    /// The advice then.
    pub help: Option<Expr>,
    /// The attribute whose line to show; else the first that `assert` names and the spec gives.
    pub attribute: Option<Name>,
}

impl Rule {
    /// Returns true if it looks at other objects of the plan.
    pub fn sees_plan(&self) -> bool {
        let mut found = false;
        for expr in [&self.assert, &self.message].into_iter().chain(&self.help) {
            roots(expr, &mut |root, _| {
                found |= matches!(root, Root::Named(name) if &**name == "plan");
            });
        }
        found
    }
}

/// On which changes a rule is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOn {
    /// Whatever makes or changes an object, and in `validate` where it needs no `old`.
    Any,
    /// Creates, and the create of a replace.
    Create,
    /// Updates in place.
    Update,
    /// Deletes, and the delete of a replace; `new` is null.
    Delete,
}
