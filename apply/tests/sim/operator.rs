//! The person who answers the questions of Plumb, and who reacts to its refusals.

use std::collections::BTreeSet;

use engine::journal::{Record, Resolution};
use engine::plan::Plan;
use engine::state::{ObjectId, Snapshot};
use state::Holder;
use std::sync::Arc;
use std::time::Duration;

use apply::ApplyError;
use apply::session::Session;
use engine::address::Address;

use crate::cloud::lock;
use crate::one_run::Machine;
use crate::runner::Runner;
use crate::schedule::Spec;
use crate::simulation::Simulation;
use crate::store_spy::StoreSpy;
use crate::{imports, invariants};

impl Simulation {
    /// Takes the imports out of a spec that a person would take out after reading why a plan was refused.
    /// Returns true if there were any.
    pub(crate) async fn give_up_imports(&self, spec: &mut Spec, why: &str) -> bool {
        let state = invariants::durable(self).await;
        let mut cloud = lock(&self.cloud);
        let hopeless = imports::hopeless(spec, cloud.harness, &cloud.objects, state.as_ref());
        cloud.note(format_args!("{why}: a person gives up {hopeless:?}"));
        cloud.count("imports given up");
        spec.imports.retain(|_, id| !hopeless.contains(id));
        !hopeless.is_empty()
    }

    /// Takes the objects that Plumb asked about out of the state, if they really are gone.
    pub(crate) async fn take_out(&self, asked: &[Address], spec: &Spec) -> Result<(), ApplyError> {
        let runner = Arc::new(Runner::new(903, &self.cloud, spec, 903));
        let host = Machine { runner: &runner, bug: None };
        let spy = StoreSpy { store: self.store.of(&runner, None), runner: runner.clone() };
        let mut session =
            Session::open(&spy, &Holder::default(), Duration::ZERO, &host, None).await?;
        for record in self.gone(session.snapshot(), asked) {
            session.record(record)?;
        }
        lock(&self.cloud).count("vanished objects given up");
        session.close().await
    }

    /// Returns the records that take gone objects out of the state: those of `plumb resolve --absent` for an
    /// object that a call in doubt is about, and those of `plumb state rm` for any other.
    fn gone(&self, state: &Snapshot, asked: &[Address]) -> Vec<Record> {
        let cloud = lock(&self.cloud);
        let in_doubt = state.pending.iter().filter_map(|(call, pending)| {
            let started = &pending.started;
            Some((*call, &started.address, started.object.as_ref()?))
        });
        let decided: Vec<_> = in_doubt
            .filter(|(_, address, id)| asked.contains(address) && !cloud.objects.contains_key(*id))
            .collect();
        let resolved = decided
            .iter()
            .map(|(call, ..)| Record::Resolved { call: *call, resolution: Resolution::Gone });
        // Plumb may ask about two objects of one address. The person looks at the address once.
        let asked: BTreeSet<&Address> = asked.iter().collect();
        let entries = asked.into_iter().filter_map(|address| state.entries.get_key_value(address));
        let objects = entries.flat_map(|(address, entry)| {
            entry.current.iter().chain(&entry.deposed).map(move |object| (address, &object.id))
        });
        let is_decided = |id: &ObjectId| decided.iter().any(|(.., own)| *own == id);
        let forgot = objects
            .filter(|(_, id)| !cloud.objects.contains_key(*id) && !is_decided(id))
            .map(|(address, id)| Record::Forgot { address: address.clone(), object: id.clone() });
        resolved.chain(forgot).collect()
    }

    /// Checks that there is a question, and no plan to run, if more than three objects and more than a fifth
    /// are gone at once. Objects that our own deletes may have ended do not count.
    pub(crate) fn was_asked(&self, state: &Snapshot, plan: &Plan) {
        let mut cloud = lock(&self.cloud);
        let objects = || {
            let entries = state.entries.values();
            entries.flat_map(|entry| entry.current.iter().chain(&entry.deposed))
        };
        let ended = |id| objects().any(|own| own.id == id && own.delete_sent_ms.is_some());
        let gone = plan.seen.iter().filter(|record| match record {
            Record::Vanished { object, .. } => {
                cloud.taken_away.contains(object) && !ended(object.clone())
            }
            _ => false,
        });
        let (gone, all) = (gone.count(), objects().count());
        if plan.complete && gone > 3 && gone * 5 > all {
            cloud.violation(format!("{gone} of {all} objects are gone, and nobody was asked"));
        }
    }
}
