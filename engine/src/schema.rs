//! Schemas: a provider's description of its resource types for the engine.
//!
//! Data only. A schema holds everything that the planner must know about an API: the values that an attribute
//! may have, the changes that force a replace, the calls that an operation is made of. So planning makes no
//! provider call. The form of a call on the wire is the provider's own business.

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
    /// The digest of the descriptor, or of the built-in schema's version: a saved plan is valid only for the
    /// schema that it was made with.
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
    /// The programs that update objects: the first whose `when` holds for the object.
    pub update: Vec<Program>,
    /// The programs that delete objects; `when` sees the live object.
    pub delete: Vec<Program>,
    /// The way to find the object of a create whose answer was lost.
    pub identity: Identity,
    /// The half of a replace that comes first unless the spec says otherwise.
    pub replace: ReplaceOrder,
    /// True if two objects must not have the same name ([`TypeSchema::name_attribute`]).
    pub unique_name: bool,
    /// The attribute that holds the name by which people know an object; none if there is none.
    pub name_attribute: Option<Name>,
    /// The loss that a delete causes, such as "its data is lost"; shown in the plan.
    pub delete_effect: Option<String>,
    /// The price of an object; none if the provider does not know it.
    pub price: Option<Price>,
    /// The conditions on changes of objects.
    pub rules: Vec<Rule>,
    /// True if objects live in an API. If not, they live only in the state.
    pub remote: bool,
    /// True if objects can only be looked up: no spec makes, changes or deletes one.
    pub data_only: bool,
    /// The id of the only object of the type, if each account has one from the start; else none. The object
    /// is taken over and never made. If the type has no program for deletes, it is left alone in the end.
    pub singleton: Option<ObjectId>,
}

impl TypeSchema {
    /// Returns the type of the resource's object, for the type checker. Every attribute is optional in it,
    /// because answers may leave attributes out.
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

    /// Returns the programs of one kind. The first one that applies to an object runs.
    pub fn programs(&self, kind: ProgramKind) -> &[Program] {
        match kind {
            ProgramKind::Create => &self.create,
            ProgramKind::Update => &self.update,
            ProgramKind::Delete => &self.delete,
        }
    }

    /// Returns one phase; none if this version of the type has no such phase.
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

    /// Returns true if a phase is about an attribute; `changed` has the attributes that change. A phase that
    /// sends nothing is about all attributes that change.
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

    /// Returns true if an object has the wanted value of an attribute once a phase is done: the phase carries
    /// it, or the attribute is local.
    pub fn sets(&self, phase: PhaseRef, name: &Name) -> bool {
        let is_local = || self.attributes.get(name).is_some_and(|attribute| attribute.local);
        self.phase(phase).is_some_and(|phase| phase.carries(name) || is_local())
    }

    /// Returns the attributes whose value no two objects share: a unique name, and the value that the spec
    /// chooses and by which a lost create is found, such as an id.
    pub fn own_names(&self) -> impl Iterator<Item = &Name> {
        let name = self.name_attribute.as_ref().filter(|_| self.unique_name);
        let chosen = self.identity.chosen_attribute().filter(|chosen| Some(*chosen) != name);
        name.into_iter().chain(chosen)
    }

    /// Returns the index of the phase of a create that gives the object its value of a naming attribute. An
    /// object that is made under a one-time name gets its own name in a later phase.
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

    /// Returns the places of an object that the schema declares as sensitive.
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
    /// The type of the attribute's value.
    pub ty: Type,
    /// A description in one sentence.
    pub description: String,
    /// The duty of the spec to give the attribute: it must, may or cannot.
    pub presence: Presence,
    /// True if the value is a secret.
    pub sensitive: bool,
    /// The wanted value if the spec gives none.
    pub default: Option<Value>,
    /// True if the API fills the attribute when nothing is sent: then its value is unknown until after the
    /// create.
    pub server_default: bool,
    /// The value that the API fills in, if that is always the same; else none.
    pub server_value: Option<Value>,
    /// The way to clear the attribute once the spec no longer gives it; none if it stays as it is.
    pub unset: Option<Unset>,
    /// The effect of a change of the attribute on the object.
    pub on_change: OnChange,
    /// True if a replace because of the attribute loses data.
    pub data_loss: bool,
    /// The answers that show the attribute's live value.
    pub seen_in: SeenIn,
    /// True if no API knows the attribute: it lives in the spec and the state, and calls use it. It has its
    /// value once a call was made, whatever that sends.
    pub local: bool,
    /// True if calls send the attribute as a condition that the object has not changed, such as a version:
    /// each refresh reads it.
    pub conditional: bool,
    /// True if the value changes by itself: it is never drift, and unknown after any change of the object.
    pub volatile: bool,
    /// The expression that computes the attribute from the object's other attributes, by name, without the
    /// API; none for most attributes.
    pub derived: Option<Expr>,
    /// The attribute from which the API derives this one when it is left out. If this one is not managed, a
    /// change of the other one makes it unknown.
    pub follows: Option<Name>,
    /// The type whose objects the API does not delete while this attribute has their id.
    pub holds: Option<Name>,
    /// The type of the parent whose id the attribute has; none if it has no parent's id.
    pub parent: Option<Name>,
    /// Other words for null: if an API gets one of them, it shows null, as with "" for an id.
    pub nulls: Vec<Value>,
    /// The form in which texts of the attribute are compared; none if they are compared as they are.
    pub form: Option<Form>,
    /// The constraint on known values.
    pub constraint: Constraint,
    /// A side effect of a change, such as "replaces workers"; shown in the plan.
    pub effect: Option<String>,
    /// The unit of a number, such as "GB".
    pub unit: Option<String>,
}

impl Attribute {
    /// Returns an optional, updatable attribute of `ty` without special properties.
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
            parent: None,
            nulls: Vec::new(),
            form: None,
            constraint: Constraint::default(),
            effect: None,
            unit: None,
        }
    }

    /// Returns a wanted value in the form in which answers show it, so that an applied value agrees with the
    /// live one.
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
    /// The attribute is left out of a call that sends all others and resets those that it does not get.
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
    /// The spec must give it.
    Required,
    /// The spec may give it.
    Optional,
    /// The spec cannot give it: the API sets it, or it is derived.
    Computed,
}

/// The effect of a changed attribute on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChange {
    /// The object is updated in place.
    Update,
    /// Another object replaces it.
    Replace,
}

/// The answers that show an attribute's live value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenIn {
    /// Lists, and reads of the object.
    List,
    /// Reads of the object only.
    Read,
    /// No answer: the wanted value is compared with the state, by fingerprint.
    Never,
}

/// The conditions on a known value, checked before any call.
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
    /// The allowed texts; in a collection, those of each item.
    pub one_of: Option<OneOf>,
}

/// A list of allowed texts.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOf {
    /// The allowed texts, in the order of the documentation.
    pub values: Vec<Name>,
    /// The separator if one text holds several items (a comma list); none if it holds one.
    pub separator: Option<String>,
    /// The beginning of a part that is not checked: an exclusion such as `-NVIDIA L4`.
    pub exclusion: Option<String>,
}

/// The calls that make up one operation; each phase is one step of a plan.
#[derive(Clone, Debug)]
pub struct Program {
    /// The condition on an object for which the program runs; it sees the object's attributes by name. None
    /// if it runs for all.
    pub when: Option<Expr>,
    /// The phases, in order; never empty.
    pub phases: Vec<Phase>,
}

/// One phase: at most one mutating call and at most one wait.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The operation of the step.
    pub operation: Operation,
    /// The attributes that the phase sends.
    pub sends: Sends,
    /// The attributes that the phase never sends, because its call has no place for them.
    pub without: BTreeSet<Name>,
    /// The condition that the phase waits for after its call, in words for people; none if it does not wait.
    pub waits_for: Option<String>,
    /// The words for the phase, if they differ from those of its operation.
    pub words: PhaseWords,
}

/// The words for a phase, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseWords {
    /// The words while the phase runs, such as "resizing".
    pub doing: Option<String>,
    /// The words afterwards, such as "resized".
    pub done: Option<String>,
}

impl Phase {
    /// Returns true if the phase carries a change of the attribute.
    pub fn carries(&self, name: &Name) -> bool {
        self.sends.carries(name) && !self.without.contains(name)
    }
}

/// The attributes that a phase sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// No attributes.
    Nothing,
    /// All known attributes, with the live values of the unmanaged ones: the API resets an attribute that is
    /// left out.
    All,
    /// The attributes that change.
    Changed,
    /// These attributes.
    These(BTreeSet<Name>),
}

impl Sends {
    /// Returns true if the phase sends any attributes.
    pub fn is_anything(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::All | Self::Changed => true,
            Self::These(names) => !names.is_empty(),
        }
    }

    /// Returns true if a change of the attribute is sent.
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
    /// Makes the object, inert and under a one-time name if the API allows that.
    Create,
    /// Gives the object its real name and its real settings.
    Activate,
    /// Changes the object.
    Update,
    /// Lets the object finish its work before it is deleted.
    Drain,
    /// Deletes the object.
    Delete,
    /// Reads the object.
    Read,
    /// Takes the object out of the state and leaves it alone.
    Forget,
    /// Judges the preconditions before the object is made or changed. Calls nothing.
    Require,
    /// Judges the postconditions afterwards. Calls nothing.
    Verify,
}

impl Operation {
    /// Returns the word for the operation, the same in every output format.
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

    /// Returns true if the operation judges conditions and touches no object.
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
    /// The API recognises a repeated create by a header.
    IdempotencyKey,
    /// The client chooses the id.
    ClientId {
        /// The attribute that holds the id. If the spec gives no id, it is the one-time name.
        attribute: Name,
    },
    /// No two objects have the same name, so the name finds the object.
    UniqueName {
        /// The attribute that holds the name.
        attribute: Name,
    },
    /// There is no way to find it: a person must decide.
    Ask,
    /// There is no API, so nothing can be lost.
    Local,
}

impl Identity {
    /// Returns the attribute by which a lost create is found, if the spec chooses its value; else none.
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
    /// The changes that the rule is checked on.
    pub on: RuleOn,
    /// Error: a plan that breaks the rule is refused. Warning: it is only reported.
    pub severity: Severity,
    /// The condition that must hold.
    pub assert: Expr,
    /// The message if the condition does not hold: a template over the same names.
    pub message: Expr,
    /// The advice if the condition does not hold.
    pub help: Option<Expr>,
    /// The attribute whose line is shown; none for the first attribute that `assert` names and the spec
    /// gives.
    pub attribute: Option<Name>,
}

impl Rule {
    /// Returns true if the rule looks at other objects of the plan.
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

/// The changes that a rule is checked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOn {
    /// Creates, updates and replaces, and `validate` if the rule needs no `old`.
    Any,
    /// Creates, and the create of a replace.
    Create,
    /// Updates in place.
    Update,
    /// Deletes, and the delete of a replace; `new` is null.
    Delete,
}
