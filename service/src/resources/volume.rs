//! Network volumes: disks that can grow, but cannot shrink or move.

use serde::{Deserialize, Serialize};

use super::{check_name, check_one_of, check_range, required};
use crate::catalog::DATA_CENTERS;
use crate::clock::now_ms;
use crate::field_name::DATA_CENTER;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// The most gigabytes that a volume can have.
pub(crate) const SIZE_MAX: i64 = 4096;

/// The tiers of storage.
pub(crate) const TIERS: &[&str] = &["STANDARD", "HIGH_PERFORMANCE"];

fn standard() -> String {
    TIERS[0].to_owned()
}

/// A network volume.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) size: i64,
    pub(crate) data_center_id: String,
    /// The tier of the storage.
    #[serde(default = "standard")]
    pub(crate) tier: String,
    #[serde(default)]
    pub(crate) created_at: i64,
}

impl Record for Volume {
    const KIND: &'static str = "volume";
    const NOUN: &'static str = "network volume";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The settings of a volume that a client can give.
#[derive(Debug, Clone, Default)]
pub(crate) struct VolumeInput {
    pub(crate) name: Option<String>,
    pub(crate) size: Option<i64>,
    pub(crate) data_center_id: Option<String>,
    pub(crate) tier: Option<String>,
}

/// Makes a volume.
pub(crate) fn create(tx: &Tx<'_>, input: VolumeInput) -> Result<Volume, Problem> {
    let volume = Volume {
        id: ids::short(),
        name: input.name.ok_or_else(|| required("name"))?,
        size: input.size.ok_or_else(|| required("size"))?,
        data_center_id: input.data_center_id.ok_or_else(|| required(DATA_CENTER))?,
        tier: input.tier.unwrap_or_else(standard),
        created_at: now_ms(),
    };
    check_name(&volume.name)?;
    check_range("size", volume.size, 0, SIZE_MAX)?;
    check_one_of(DATA_CENTER, &volume.data_center_id, DATA_CENTERS)?;
    objects::insert(tx, &volume)?;
    Ok(volume)
}

/// Changes the name of a volume, or increases its size.
pub(crate) fn update(tx: &Tx<'_>, id: &str, input: VolumeInput) -> Result<Volume, Problem> {
    let mut volume: Volume = objects::get(tx.conn, id)?;
    if input.data_center_id.is_some_and(|wanted| wanted != volume.data_center_id) {
        return Err(Problem::invalid("dataCenterId cannot be changed"));
    }
    if let Some(name) = input.name {
        check_name(&name)?;
        volume.name = name;
    }
    if let Some(size) = input.size {
        check_range("size", size, 0, SIZE_MAX)?;
        if size <= volume.size {
            let current = volume.size;
            return Err(Problem::invalid(format!(
                "size must be greater than the current size: it is {current} GB, not {size} GB"
            )));
        }
        volume.size = size;
    }
    objects::update(tx, &volume)?;
    Ok(volume)
}

/// Removes a volume that nothing mounts.
pub(crate) fn delete(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
    if objects::find::<Volume>(tx.conn, id)?.is_some() && objects::in_use(tx.conn, id)? {
        return Err(Problem::invalid(
            "You must remove this network volume from all pods before deleting it.",
        ));
    }
    objects::delete::<Volume>(tx, id)
}
