//! What is live, as the state and a refresh know it together.

use super::scope::AttributeScope;
use crate::expression::evaluate;
use crate::schema::TypeSchema;
use crate::stored::Stored;
use crate::value::{Attributes, Path, Paths, Value};

/// Reads attributes back from the state, in the schema's types. What the schema no longer has is
/// left out; what it has with another type is left as it is.
pub fn stored_attributes(stored: &Stored, schema: &TypeSchema) -> Result<Attributes, String> {
    let value = stored.value().map_err(|error| error.to_string())?;
    let Value::Map(entries) = value else { return Ok(Attributes::new()) };
    Ok(entries
        .iter()
        .filter_map(|(name, value)| {
            let attribute = schema.attributes.get(name)?;
            let value = value.convert(&attribute.ty).unwrap_or_else(|_| value.clone());
            Some((name.clone(), value))
        })
        .collect())
}

/// What the state knows, overlaid with what was seen: a key that is missing in an answer is not
/// null, so what the state knows of it stands.
pub fn overlay(known: &Attributes, seen: &Attributes) -> Attributes {
    let mut attributes = known.clone();
    attributes.extend(seen.iter().map(|(name, value)| (name.clone(), value.clone())));
    attributes
}

/// Computes the derived attributes of an object from its others. One that follows from something
/// unknown is unknown, and one that follows from something sensitive is added to the sensitive
/// places.
pub fn derive(schema: &TypeSchema, attributes: &mut Attributes, sensitive: &mut Paths) {
    for (name, attribute) in &schema.attributes {
        let Some(expr) = &attribute.derived else { continue };
        let scope = AttributeScope { attributes, sensitive };
        // A derivation that fails shows with the live object; there is nothing to add to it here.
        if let Ok(datum) = evaluate::evaluate(expr, &scope) {
            sensitive.extend_below(&Path::attribute(name.clone()), &datum.sensitive);
            let value = datum.value.convert(&attribute.ty).unwrap_or(datum.value);
            attributes.insert(name.clone(), value);
        }
    }
}
