//! The second look for objects that seem to be gone: an absence is believed only if it lasts.
//!
//! Lists, and the reads of some APIs, lag behind recent creates. A plan makes an object that is taken for
//! gone again, and then no address stands for the first one any more. So missing objects are looked for once
//! more after the settle time, in the lists: the number of calls does not depend on the number of missing
//! objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::plan::input::{Observations, Observed};
use provider_port::Provider;

use super::{Key, Known, Look, list_types, read_all, seal};
use crate::{ApplyError, Providers};

/// Looks again for the objects that were not found, and notes those that are there after all.
pub(super) async fn look_again(
    known: &[Known<'_>],
    look: &Look<'_>,
    observations: &mut Observations,
) -> Result<(), ApplyError> {
    let providers = look.providers;
    let gone = |known: &&Known<'_>| {
        let is_gone = observations.objects.get(&known.place()) == Some(&Observed::Gone);
        is_gone && !settle(&known.key, providers).is_zero()
    };
    let gone: Vec<&Known<'_>> = known.iter().filter(gone).collect();
    let keys: BTreeSet<Key> = gone.iter().map(|known| known.key.clone()).collect();
    let Some(settle) = keys.iter().map(|key| settle(key, providers)).max() else { return Ok(()) };
    tokio::time::sleep(settle).await;
    let lists = list_types(keys, providers).await?;
    let listed = |known: &&Known<'_>| lists.get(&known.key)?.get(&known.object.id).cloned();
    let mut there = BTreeMap::new();
    let mut to_read = Vec::new();
    for known in gone {
        if let Some(live) = listed(&known) {
            there.insert(known.place(), Observed::Live(seal(known, &live, look.sealer)));
            to_read.push(known);
        }
    }
    // A read may show more than a list. A read that does not find a listed object lags behind, and is
    // ignored.
    let read = read_all(&to_read, look).await?;
    let shown = read.into_iter().filter(|(_, seen)| *seen != Observed::Gone);
    there.extend(shown);
    observations.objects.extend(there);
    Ok(())
}

fn settle((instance, _): &Key, providers: &Providers) -> Duration {
    let provider: Option<&Arc<dyn Provider>> = providers.get(instance);
    provider.map_or(Duration::ZERO, |provider| provider.settle())
}
