//! Data that is no object of an API: the outputs of another state, and the answer of a URL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::diagnostics as say;
use crate::address::{Block, Name};
use crate::config::checker::Checker;
use crate::config::{RawBlock, backends};
use crate::schema::{Attribute, Identity, Presence, ReplaceOrder, TypeSchema};
use crate::types::Type;

/// The kind of data that a data block reads and that is no object of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// `data.state`: the outputs of another state.
    State,
    /// `data.http`: the answer to a GET.
    Http,
}

impl Fetched {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::State, Self::Http];

    /// Returns the kind of a block; none for a look-up of an object.
    pub fn of(block: &Block) -> Option<Self> {
        match &*block.ty {
            "state" if block.is_data => Some(Self::State),
            "http" if block.is_data => Some(Self::Http),
            _ => None,
        }
    }

    /// Returns the attributes of a block of this kind: those that it gives and those that it reads.
    pub fn schema(self) -> &'static Arc<TypeSchema> {
        static STATE: LazyLock<Arc<TypeSchema>> = LazyLock::new(|| Arc::new(state()));
        static HTTP: LazyLock<Arc<TypeSchema>> = LazyLock::new(|| Arc::new(http()));
        match self {
            Self::State => &STATE,
            Self::Http => &HTTP,
        }
    }
}

/// Checks the attributes that a block of this kind gives.
pub(super) fn check(checker: &mut Checker<'_>, raw: &RawBlock, kind: Fetched) {
    let schema = kind.schema();
    let given = raw.items.iter().filter(|(name, _)| !RESERVED.contains(&&***name));
    let given: Vec<_> = given.collect();
    for (name, item) in &given {
        match schema.attributes.get(*name) {
            Some(attribute) if attribute.presence == Presence::Computed => {
                checker.push(say::read_attribute(&schema.name, name, item.key));
            }
            Some(attribute) => checker.expect(&item.value, &attribute.ty),
            None => {
                let known = schema.attributes.iter();
                let known = known.filter(|(_, it)| it.presence != Presence::Computed);
                let known: BTreeSet<&str> =
                    known.map(|(name, _)| &**name).chain(RESERVED).collect();
                checker.push(say::unknown_attribute(&schema.name, name, item.key, known));
                checker.expect(&item.value, &Type::Any);
            }
        }
    }
    let has = |name: &str| raw.items.contains_key(name);
    match kind {
        Fetched::Http if !has("url") => {
            checker.push(say::missing_attributes("http", &["url"], raw.header));
        }
        Fetched::State if !has("path") && !has("backend") => {
            checker.push(say::no_place(raw.header));
        }
        Fetched::State if has("path") => {
            let beside = given.iter().find(|(name, _)| &***name != "path");
            if let Some((_, item)) = beside {
                checker.push(say::two_places(item.key));
            }
        }
        _ => {}
    }
}

/// The keys of a block that are not attributes.
const RESERVED: [&str; 3] = ["depends_on", "for_each", "lifecycle"];

fn state() -> TypeSchema {
    let text = |description| given(Type::String, description);
    let own = [
        ("path", text("The folder of the other spec, as seen from the folder of this one.")),
        ("backend", text("The backend of the state, in place of a folder.")),
        ("outputs", read(Type::Any, "The outputs, by name.")),
    ];
    let setting = "A setting of the backend, as in `[state]`.";
    let backends = backends::attributes().map(|(name, ty)| (name, given(ty, setting)));
    schema("state", "The outputs of another state.", own.into_iter().chain(backends))
}

fn http() -> TypeSchema {
    let url = given(Type::String, "The http or https address.");
    let statuses = Type::List(Box::new(Type::Integer));
    let attributes = [
        ("url", Attribute { presence: Presence::Required, ..url }),
        ("headers", given(Type::map(Type::String), "The headers to send.")),
        ("expected_status", given(statuses, "The statuses to take; default: 200 to 299.")),
        ("timeout", given(Type::String, "The longest wait, such as `10s`; default: `30s`.")),
        ("sensitive", given(Type::Boolean, "False: the answer to a secret is no secret.")),
        ("status", read(Type::Integer, "The status of the answer.")),
        ("body", read(Type::String, "The body of the answer.")),
        ("json", read(Type::Any, "The value of the body; null where it is no JSON.")),
    ];
    schema("http", "The answer to a GET.", attributes)
}

/// An attribute that a block may give.
fn given(ty: Type, description: &str) -> Attribute {
    let presence = Presence::Optional;
    Attribute { presence, description: description.to_owned(), ..Attribute::new(ty) }
}

/// Returns an attribute that the block reads.
fn read(ty: Type, description: &str) -> Attribute {
    Attribute { presence: Presence::Computed, ..given(ty, description) }
}

fn schema(
    name: &str,
    description: &str,
    attributes: impl IntoIterator<Item = (&'static str, Attribute)>,
) -> TypeSchema {
    let attributes = attributes.into_iter().map(|(name, attribute)| (Name::from(name), attribute));
    TypeSchema {
        name: name.into(),
        description: description.to_owned(),
        attributes: attributes.collect::<BTreeMap<_, _>>(),
        create: Vec::new(),
        update: Vec::new(),
        delete: Vec::new(),
        identity: Identity::Local,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        price: None,
        rules: Vec::new(),
        remote: false,
        data_only: true,
        singleton: None,
    }
}
