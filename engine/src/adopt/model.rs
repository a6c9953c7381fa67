//! The objects to adopt, their surroundings, and the content of their blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::address::{Address, Block, Name};
use crate::config::{Config, written};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::schema::{ProviderSchema, TypeSchema};
use crate::state::{ObjectId, Snapshot};
use crate::value::{Attributes, Value};

/// An object that exists and that the state does not know.
pub struct Found {
    /// The provider instance that shows it.
    pub provider: Name,
    /// Its type.
    pub ty: Name,
    /// Its id.
    pub id: ObjectId,
    /// Its attributes, secrets in clear.
    pub attributes: Attributes,
}

/// The surroundings of the objects.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The spec as it is.
    pub config: &'a Config,
    /// The state.
    pub snapshot: &'a Snapshot,
    /// The schema of each provider instance.
    pub providers: &'a BTreeMap<Name, Arc<ProviderSchema>>,
}

impl Surroundings<'_> {
    /// The schema of an object's type.
    pub(super) fn schema(&self, found: &Found) -> Option<&TypeSchema> {
        Some(self.providers.get(&found.provider)?.types.get(&found.ty)?)
    }

    /// Returns true if several provider instances manage a type, so that each block names its own.
    pub(super) fn is_shared(&self, ty: &Name) -> bool {
        self.providers.values().filter(|provider| provider.types.contains_key(ty)).count() > 1
    }
}

/// The spec of adopted objects.
#[derive(Default)]
pub struct Draft {
    /// The text: variables, then resources.
    pub text: String,
    /// The object for each address.
    pub imports: BTreeMap<Address, ObjectId>,
    /// The variables that the text declares.
    pub variables: Vec<AdoptedVariable>,
    /// Notes about parts of objects that the spec cannot express.
    pub notes: Diagnostics,
}

/// A variable for a value that the spec must not hold, or that no answer shows.
pub struct AdoptedVariable {
    /// Its name.
    pub name: Name,
    /// The live value; none if no answer shows it.
    pub value: Option<Value>,
    /// True if it is a secret.
    pub sensitive: bool,
    /// Its type, as the spec writes it.
    pub ty: String,
    /// The object that it belongs to.
    pub address: Address,
    /// The attribute, or the entry of one, that it gives.
    pub attribute: String,
}

/// Returns the name that people know an object by, or its id if it has no name.
pub fn known_name(surroundings: &Surroundings<'_>, found: &Found) -> Name {
    let attribute = surroundings.schema(found).and_then(|schema| schema.name_attribute.as_ref());
    match attribute.and_then(|attribute| found.attributes.get(attribute)) {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => found.id.0.clone(),
    }
}

/// An object in the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The provider instance.
    pub(super) provider: Name,
    /// The type.
    pub(super) ty: Name,
    /// The id.
    pub(super) id: ObjectId,
}

impl Found {
    /// The object, as references name it.
    pub(super) fn place(&self) -> Place {
        Place { provider: self.provider.clone(), ty: self.ty.clone(), id: self.id.clone() }
    }
}

/// The content of a block that describes an object.
pub(super) struct Content {
    /// The object that the block describes.
    pub(super) place: Place,
    /// The name of the object's own block, if it does not share one.
    pub(super) block: Block,
    /// The provider instance, if the block must name it.
    pub(super) provider: Option<Name>,
    /// The name that people know the object by, and the attribute that holds it.
    pub(super) name: Option<(Name, Name)>,
    /// The attributes, as TOML.
    pub(super) attributes: BTreeMap<Name, Text>,
    /// The attributes that a block of the type must give.
    pub(super) required: Vec<Name>,
    /// The attributes whose live values no answer shows.
    pub(super) ignore_changes: Vec<Name>,
    /// The attributes with values outside their lists.
    pub(super) allow_unknown: Vec<Name>,
    /// The variables that the block needs.
    pub(super) variables: Vec<AdoptedVariable>,
    /// The notes for the user.
    pub(super) notes: Vec<Diagnostic>,
}

/// Objects that share a block.
pub(super) struct Many {
    /// The type of the objects.
    pub(super) ty: Name,
    /// A name for their block; not checked to be free.
    pub(super) name: Name,
    /// The provider instance, if the block must name it.
    pub(super) provider: Option<Name>,
    /// The attribute that holds the key.
    pub(super) name_attribute: Name,
    /// The attributes that have the same value for all objects.
    pub(super) common: BTreeMap<Name, Text>,
    /// The attributes that a block of the type must give.
    pub(super) required: Vec<Name>,
    /// The attributes in which the objects differ.
    pub(super) varying: Vec<Name>,
    /// The attributes with values outside their lists.
    pub(super) allow_unknown: Vec<Name>,
    /// The objects, by key.
    pub(super) members: Vec<Member>,
}

/// One object of a block.
pub(super) struct Member {
    /// The key of the object, which is its name.
    pub(super) key: Name,
    /// The object.
    pub(super) place: Place,
    /// The object's values of the attributes that differ, in the order of those.
    pub(super) values: Vec<Text>,
}

/// A value as TOML.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Text {
    /// A value on a line.
    Plain(String),
    /// The items of a list.
    Items(Vec<String>),
    /// The entries of a map.
    Entries(Vec<(Name, String)>),
}

impl Text {
    /// Returns the value on one line.
    pub(super) fn inline(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Items(items) => format!("[{}]", items.join(", ")),
            Self::Entries(entries) if entries.is_empty() => "{}".to_owned(),
            Self::Entries(entries) => {
                let entry =
                    |(key, text): &(Name, String)| format!("{} = {text}", written::key(key));
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// Returns the length of the value on one line.
    pub(super) fn len(&self) -> usize {
        self.inline().len()
    }
}
