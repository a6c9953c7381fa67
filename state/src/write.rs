//! What every backend does before it writes a snapshot.

use std::borrow::Cow;

use engine::state::Snapshot;

use crate::cipher::{Cipher, STATE};
use crate::format::{self, Header};
use crate::frame::End;
use crate::{Holder, StoreError, Version};

/// Longer names are cut: a lock may be written by anybody who can write the store.
const NAME_CHARS: usize = 200;

/// The bytes of a snapshot as they are stored.
pub(crate) fn encode(
    cipher: &Cipher,
    snapshot: &Snapshot,
    epoch: u64,
    checkpoint: End,
) -> Result<(Header, Vec<u8>), StoreError> {
    let failed = "cannot write the state";
    let (header, bytes) = format::encode(snapshot, epoch, checkpoint)
        .map_err(|error| StoreError::failed(failed, error))?;
    let sealed = cipher.seal(STATE, &bytes).map_err(|error| StoreError::failed(failed, error))?;
    let sealed = if let Cow::Owned(sealed) = sealed { sealed } else { bytes };
    Ok((header, sealed))
}

/// Refuses a snapshot that may not follow the one that is there.
pub(crate) fn check_successor(
    old: &Header,
    expected: &Version,
    snapshot: &Snapshot,
) -> Result<(), StoreError> {
    let serial = old.serial;
    if old.version() != *expected {
        let why = format!("the state has serial {serial}, and is not the version to be replaced");
        return Err(StoreError::Fenced(why));
    }
    if old.lineage != snapshot.lineage {
        return Err(StoreError::suspicious(
            format!("a state of lineage {} was to replace {}", snapshot.lineage, old.lineage),
            "nothing was changed; a state of another lineage can only be put in place by hand",
        ));
    }
    if snapshot.serial <= serial {
        let why = format!("serial {} was to replace serial {serial}", snapshot.serial);
        return Err(StoreError::Fenced(why));
    }
    Ok(())
}

/// A holder of which nothing can do harm where it is shown.
pub(crate) fn tamed(holder: &Holder) -> Holder {
    let mut holder = holder.clone();
    for name in [&mut holder.run, &mut holder.command, &mut holder.user, &mut holder.host] {
        *name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
    }
    holder
}
