//! Data that is no object of an API: the outputs of another state, and the answer of an address.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::diagnostics as say;
use crate::address::{Block, Name};
use crate::config::checker::Checker;
use crate::config::{RawBlock, backends};
use crate::schema::{Attribute, Identity, Presence, ReplaceOrder, TypeSchema};
use crate::types::Type;

/// The kind of what a data block reads that is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// `data.state`: the outputs of another state.
    State,
    /// `data.http`: the answer to a GET.
    Http,
}

impl Fetched {
    /// Returns the kind of a block; none for a look-up of an object.
    pub fn of(block: &Block) -> Option<Self> {
        match &*block.ty {
            "state" if block.is_data => Some(Self::State),
            "http" if block.is_data => Some(Self::Http),
            _ => None,
        }
    }

    /// The attributes of a block of this kind, and of what it reads.
    pub(in crate::config) fn schema(self) -> Arc<TypeSchema> {
        static STATE: LazyLock<Arc<TypeSchema>> = LazyLock::new(|| Arc::new(state()));
        static HTTP: LazyLock<Arc<TypeSchema>> = LazyLock::new(|| Arc::new(http()));
        Arc::clone(match self {
            Self::State => &STATE,
            Self::Http => &HTTP,
        })
    }
}

/// Checks what a block of this kind gives.
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
const RESERVED: [&str; 2] = ["depends_on", "for_each"];

fn state() -> TypeSchema {
    let text = || attribute(Type::String, Presence::Optional);
    let own = [
        ("path", text()),
        ("backend", text()),
        ("outputs", attribute(Type::Any, Presence::Computed)),
    ];
    let backends =
        backends::attributes().map(|(name, ty)| (name, attribute(ty, Presence::Optional)));
    schema("state", own.into_iter().chain(backends))
}

fn http() -> TypeSchema {
    let optional = |ty| attribute(ty, Presence::Optional);
    let attributes = [
        ("url", attribute(Type::String, Presence::Required)),
        ("headers", optional(Type::map(Type::String))),
        ("expected_status", optional(Type::List(Box::new(Type::Integer)))),
        ("timeout", optional(Type::String)),
        ("sensitive", optional(Type::Boolean)),
        ("status", attribute(Type::Integer, Presence::Computed)),
        ("body", attribute(Type::String, Presence::Computed)),
        ("json", attribute(Type::Any, Presence::Computed)),
    ];
    schema("http", attributes)
}

fn attribute(ty: Type, presence: Presence) -> Attribute {
    Attribute { presence, ..Attribute::new(ty) }
}

fn schema(
    name: &str,
    attributes: impl IntoIterator<Item = (&'static str, Attribute)>,
) -> TypeSchema {
    let attributes = attributes.into_iter().map(|(name, attribute)| (Name::from(name), attribute));
    TypeSchema {
        name: name.into(),
        description: String::new(),
        attributes: attributes.collect::<BTreeMap<_, _>>(),
        create: Vec::new(),
        update: Vec::new(),
        delete: Vec::new(),
        identity: Identity::Local,
        replace: ReplaceOrder::DeleteFirst,
        unique_name: false,
        name_attribute: None,
        delete_effect: None,
        rules: Vec::new(),
        remote: false,
        data_only: true,
    }
}
