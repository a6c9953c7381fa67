//! Releases: the versions of an endpoint, each with the fields that it changed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::now_ms;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// The most releases that are kept for an endpoint.
const KEPT: usize = 50;

/// The fields whose changes are not listed.
const QUIET: &[&str] = &["version", "id", "createdAt", "boundEndpointId"];

/// A release.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Release {
    pub(crate) id: String,
    pub(crate) endpoint_id: String,
    pub(crate) version: i64,
    pub(crate) created_at: i64,
    pub(crate) diff: Vec<Difference>,
}

/// A field that a release changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Difference {
    pub(crate) field: String,
    pub(crate) old: Value,
    pub(crate) new: Value,
}

impl Record for Release {
    const KIND: &'static str = "release";
    const NOUN: &'static str = "release";

    fn id(&self) -> &str {
        &self.id
    }

    /// Returns the id of the endpoint, by which its releases are found.
    fn name(&self) -> &str {
        &self.endpoint_id
    }
}

/// Stores the release of a new version of an endpoint.
pub(crate) fn note(
    tx: &Tx<'_>,
    endpoint_id: &str,
    version: i64,
    diff: Vec<Difference>,
) -> Result<(), Problem> {
    let (id, endpoint_id) = (format!("rel_{}", ids::short()), endpoint_id.to_owned());
    let release = Release { id, endpoint_id, version, created_at: now_ms(), diff };
    objects::insert(tx, &release)?;
    let all = objects::all_named::<Release>(tx.conn, &release.endpoint_id)?;
    let surplus = all.len().saturating_sub(KEPT);
    all[..surplus].iter().try_for_each(|old| objects::delete::<Release>(tx, &old.id))
}

/// Removes the releases of a deleted endpoint.
pub(crate) fn forget(tx: &Tx<'_>, endpoint_id: &str) -> Result<(), Problem> {
    let all = objects::all_named::<Release>(tx.conn, endpoint_id)?;
    all.iter().try_for_each(|release| objects::delete::<Release>(tx, &release.id))
}

/// Returns the fields in which two records differ, each with `prefix` before its name.
pub(crate) fn differences<R: Record>(old: &R, new: &R, prefix: &str) -> Vec<Difference> {
    let fields = |record: &R| serde_json::to_value(record).unwrap_or_default();
    let (old, new) = (fields(old), fields(new));
    let Some(fields) = new.as_object() else { return Vec::new() };
    let changed = fields.iter().filter(|(name, value)| {
        !QUIET.contains(&name.as_str()) && old.get(name.as_str()) != Some(value)
    });
    let difference = |(name, new): (&String, &Value)| Difference {
        field: format!("{prefix}{name}"),
        old: old.get(name).cloned().unwrap_or_default(),
        new: new.clone(),
    };
    changed.map(difference).collect()
}
