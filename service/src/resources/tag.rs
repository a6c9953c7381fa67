//! Tags: a key with a value, and the objects that have the tag.

use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use super::volume::Volume;
use crate::ids;
use crate::pods::model::Pod;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// The kinds of objects that can have a tag. This service has no clusters.
pub(crate) const KINDS: &[&str] = &["POD", "CLUSTER", "SERVERLESS_ENDPOINT", "NETWORK_VOLUME"];

/// A tag.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Tag {
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) resources: Vec<Tagged>,
}

/// An object that has a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tagged {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: String,
}

impl Record for Tag {
    const KIND: &'static str = "tag";
    const NOUN: &'static str = "tag";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.key
    }
}

/// Makes a tag on existing objects.
pub(crate) fn create(
    tx: &Tx<'_>,
    key: String,
    value: String,
    resources: Vec<Tagged>,
) -> Result<Tag, Problem> {
    if key.starts_with("runpod:") {
        return Err(Problem::invalid("keys that begin with runpod: are reserved"));
    }
    resources.iter().try_for_each(|tagged| check(tx, tagged))?;
    let tag = Tag { id: ids::registry_auth(), key, value, resources };
    objects::insert(tx, &tag)?;
    Ok(tag)
}

/// Adds an object to a tag.
pub(crate) fn attach(tx: &Tx<'_>, id: &str, tagged: Tagged) -> Result<Tag, Problem> {
    let mut tag: Tag = objects::get(tx.conn, id)?;
    check(tx, &tagged)?;
    if !tag.resources.contains(&tagged) {
        tag.resources.push(tagged);
        objects::update(tx, &tag)?;
    }
    Ok(tag)
}

/// Removes an object from a tag.
pub(crate) fn detach(tx: &Tx<'_>, id: &str, tagged: &Tagged) -> Result<(), Problem> {
    let mut tag: Tag = objects::get(tx.conn, id)?;
    let before = tag.resources.len();
    tag.resources.retain(|other| other != tagged);
    if tag.resources.len() == before {
        return Err(Problem::not_found("tagged resource"));
    }
    objects::update(tx, &tag)
}

fn check(tx: &Tx<'_>, tagged: &Tagged) -> Result<(), Problem> {
    let exists = match tagged.kind.as_str() {
        "SERVERLESS_ENDPOINT" => objects::find::<Endpoint>(tx.conn, &tagged.id)?.is_some(),
        "NETWORK_VOLUME" => objects::find::<Volume>(tx.conn, &tagged.id)?.is_some(),
        "POD" => objects::find::<Pod>(tx.conn, &tagged.id)?.is_some(),
        _ => false,
    };
    if exists { Ok(()) } else { Err(Problem::not_found("resource")) }
}
