//! Values for sample objects, from a file: a table for each type, with the subtable `change` for the update.

use std::collections::BTreeMap;
use std::path::Path;

use engine::address::Name;
use engine::stored::from_json;
use engine::value::Attributes;

use super::descriptor_file;
use crate::error::CommandError;

/// The largest file of values, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;
/// The key of the subtable with the values of an update.
const CHANGE: &str = "change";

/// The values of one type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SampleValues {
    /// The attributes that objects are made with.
    pub(super) create: Attributes,
    /// The attributes that an update changes.
    pub(super) change: Attributes,
}

/// Reads a file of values, by type.
pub(super) fn read(base: &Path, path: &Path) -> Result<BTreeMap<Name, SampleValues>, CommandError> {
    let text = descriptor_file::text(base, path, BYTES_MAX)?;
    values(&text).map_err(|why| CommandError::new(format!("{}: {why}", path.display())))
}

fn values(text: &str) -> Result<BTreeMap<Name, SampleValues>, String> {
    let json: serde_json::Value =
        toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let tables = json.as_object().into_iter().flatten();
    tables
        .map(|(ty, table)| {
            let table = table.as_object().ok_or_else(|| format!("`{ty}` is no table of a type"))?;
            let attributes = |table: &serde_json::Map<String, serde_json::Value>| {
                let given = table.iter().filter(|(name, _)| *name != CHANGE);
                given.map(|(name, value)| (Name::from(name.as_str()), from_json(value))).collect()
            };
            let change = table.get(CHANGE).and_then(|change| change.as_object());
            let create: Attributes = attributes(table);
            let change = change.map(attributes).unwrap_or_default();
            Ok((Name::from(ty.as_str()), SampleValues { create, change }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_type() {
        let found = values("[zone]\nname = \"a.\"\n[record.change]\nttl = 5\n").unwrap();
        assert_eq!(format!("{:?}", found["zone"].create), "{\"name\": \"a.\"}");
        assert_eq!(format!("{:?}", found["record"].change), "{\"ttl\": 5}");
        assert!(found["record"].create.is_empty());
        assert!(values("zone = 1").unwrap_err().contains("`zone` is no table"));
        assert!(values("zone =").is_err());
    }
}
