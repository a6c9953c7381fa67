//! The live objects, as the state and a refresh know them together.

use std::sync::Arc;

use crate::expression::evaluate;
use crate::plan::evaluate::scope::AttributeScope;
use crate::schema::TypeSchema;
use crate::state::Object;
use crate::stored::Stored;
use crate::types::Type;
use crate::value::{Attributes, Path, Paths, Value};

/// A live object with what the state and refresh know of it.
pub(in crate::plan) struct Live<'a> {
    pub(in crate::plan) object: &'a Object,
    /// The state's attributes, overlaid with what refresh saw; secrets sealed.
    pub(in crate::plan) attributes: Arc<Attributes>,
    /// The state's attributes alone; the same as `attributes` if refresh did not look.
    pub(in crate::plan) stored: Arc<Attributes>,
}

/// Reads attributes back from the state, in the schema's types. Leaves out attributes that the schema no
/// longer has. A value that does not convert to the schema's type stays as it is.
pub fn stored_attributes(stored: &Stored, schema: &TypeSchema) -> Result<Attributes, String> {
    let mut attributes = Attributes::new();
    // Most objects hold nothing sealed: those are taken as they are, sharing the schema's names.
    if let (Value::Map(entries), true) =
        (&stored.json, stored.sealed.is_empty() && stored.unknown.is_empty())
    {
        for (name, value) in entries.iter() {
            let Some((name, attribute)) = schema.attributes.get_key_value(name) else { continue };
            attributes.insert(name.clone(), typed(value.clone(), &attribute.ty));
        }
        return Ok(attributes);
    }
    let value = stored.value().map_err(|error| error.to_string())?;
    for (name, value) in value.as_map().into_iter().flatten() {
        if let Some(attribute) = schema.attributes.get(name) {
            attributes.insert(name.clone(), typed(value.clone(), &attribute.ty));
        }
    }
    Ok(attributes)
}

fn typed(value: Value, ty: &Type) -> Value {
    match ty {
        Type::Any | Type::String | Type::Boolean => value,
        _ => value.convert(ty).unwrap_or(value),
    }
}

/// Returns the attributes that the state knows, overlaid with those that were seen. An attribute that is
/// missing in an answer is not null, so its value in the state remains.
pub fn overlay(known: &Attributes, seen: &Attributes) -> Attributes {
    let mut attributes = known.clone();
    attributes.extend(seen.iter().map(|(name, value)| (name.clone(), value.clone())));
    attributes
}

/// Computes the derived attributes of an object from its others. A derived attribute is unknown if its input
/// is unknown, and becomes a sensitive place if its input is sensitive.
pub fn derive(schema: &TypeSchema, attributes: &mut Attributes, sensitive: &mut Paths) {
    for (name, attribute) in &schema.attributes {
        let Some(expr) = &attribute.derived else { continue };
        let scope = AttributeScope { attributes, sensitive };
        // A derivation that fails shows with the live object; there is nothing to add to it here.
        if let Ok(datum) = evaluate::evaluate(expr, &scope) {
            let datum = datum.convert(&attribute.ty).unwrap_or(datum);
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
            attributes.insert(name.clone(), datum.value);
        }
    }
}
