//! References between objects: an attribute that holds the id of another one.

use std::collections::BTreeMap;

use super::model::{Found, Place, Surroundings};
use crate::address::{Address, Name};
use crate::config::written;
use crate::expression::Expr;
use crate::schema::{Attribute, TypeSchema};
use crate::state::ObjectId;
use crate::value::Value;

/// The addresses of objects that others may refer to.
#[derive(Default)]
pub(super) struct Links {
    addresses: BTreeMap<Place, Address>,
}

impl Links {
    /// Returns the links to objects that the spec manages already, without those in modules, which references
    /// cannot reach.
    pub(super) fn of_state(surroundings: &Surroundings<'_>) -> Self {
        let Surroundings { config, snapshot, .. } = surroundings;
        let mut addresses = BTreeMap::new();
        for (address, entry) in &snapshot.entries {
            let block = config.resources.get(&address.block);
            let is_there = address.block.module.is_root()
                && block.is_some_and(|block| block.for_each.is_some() == address.key.is_some());
            let Some(object) = entry.current.as_ref().filter(|_| is_there) else { continue };
            let (provider, ty) = (entry.provider.clone(), address.block.ty.clone());
            addresses.insert(Place { provider, ty, id: object.id.clone() }, address.clone());
        }
        Self { addresses }
    }

    /// Adds an object.
    pub(super) fn add(&mut self, place: Place, address: Address) {
        self.addresses.insert(place, address);
    }

    /// Returns the reference to an object, as a TOML value; none if it has no address.
    pub(super) fn reference(&self, place: &Place) -> Option<String> {
        let address = self.addresses.get(place)?;
        Some(written::expression(&Expr::slot(address, &ID.into()).to_string()))
    }
}

/// The attribute that holds an object's own id.
const ID: &str = "id";

/// Returns the type whose ids an attribute holds: the one that the schema names, else the one that the
/// attribute's name ends with, such as `template` in `template_id`.
pub(super) fn target<'s>(
    surroundings: &'s Surroundings<'_>,
    provider: &Name,
    (name, attribute): (&Name, &'s Attribute),
) -> Option<&'s Name> {
    let types = &surroundings.providers.get(provider)?.types;
    let has_id = |schema: &TypeSchema| schema.attributes.contains_key(ID);
    let named = || {
        let stem = name.strip_suffix("_id").or_else(|| name.strip_suffix("_ids"))?;
        let ends = |ty: &&Name| {
            let rest = stem.strip_suffix(&***ty);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        };
        types.keys().filter(ends).max_by_key(|ty| ty.len())
    };
    let declared = attribute.holds.as_ref().or(attribute.parent.as_ref());
    let target = declared.or_else(named)?;
    types.get(target).filter(|schema| has_id(schema)).map(|_| target)
}

/// Returns the objects that an object may refer to, even if they do not exist.
pub(super) fn targets(surroundings: &Surroundings<'_>, found: &Found) -> Vec<Place> {
    let mut places = Vec::new();
    let Some(schema) = surroundings.schema(found) else { return places };
    for (name, value) in &found.attributes {
        let Some(attribute) = schema.attributes.get(name) else { continue };
        let Some(ty) = target(surroundings, &found.provider, (name, attribute)) else { continue };
        value.each_part(&mut |part| {
            if let Value::String(id) = part {
                let (provider, ty) = (found.provider.clone(), ty.clone());
                places.push(Place { provider, ty, id: ObjectId(id.clone()) });
            }
        });
    }
    places
}
