//! The locations of the provider instances: the services and accounts that a command acts on, compared with
//! those in the state.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::{Address, Name};
use engine::diagnostics::{Diagnostic, Diagnostics};
use engine::digest::{Digest, Fingerprint, SealKey};
use engine::journal::Record;
use engine::plan::Plan;
use engine::state::{LOCAL_SERVICE, Location, Snapshot};
use render::view::LocationView;

use crate::error::CommandError;

/// The locations of the configured provider instances. Some instances have none.
#[derive(Default)]
pub(crate) struct Locations(BTreeMap<Name, Configured>);

/// The configured location of one provider instance.
struct Configured {
    service: String,
    account: Option<Digest>,
}

impl Configured {
    fn at_rest(&self, key: &SealKey) -> Location {
        let account = self.account.as_ref().map(|it| Fingerprint::of_digest(it, key));
        Location { service: self.service.clone(), account }
    }
}

impl Locations {
    /// Adds the location of a provider instance.
    pub(crate) fn insert(&mut self, provider: Name, service: &str, account: Option<Digest>) {
        self.0.insert(provider, Configured { service: service.to_owned(), account });
    }

    /// Refuses to act on another service than the one that has the objects of the state.
    pub(crate) fn refuse_elsewhere(&self, snapshot: &Snapshot) -> Result<(), CommandError> {
        let entries = snapshot.entries.values().map(|entry| &entry.provider);
        let pending = snapshot.pending.values().map(|pending| &pending.started.provider);
        let used: BTreeSet<_> = entries.chain(pending).collect();
        for (provider, configured) in &self.0 {
            let Some(known) = snapshot.locations.get(provider) else { continue };
            if used.contains(provider) && known.service != configured.service {
                return Err(elsewhere(provider, &known.service, &configured.service));
            }
        }
        Ok(())
    }

    /// Returns the records that store these locations in the state.
    pub(crate) fn records(&self, snapshot: &Snapshot) -> Vec<Record> {
        let new = self.0.iter().filter_map(|(provider, configured)| {
            let location = configured.at_rest(&snapshot.seal_key);
            let is_known = snapshot.locations.get(provider) == Some(&location);
            (!is_known)
                .then(|| Record::Located { provider: provider.clone(), location: Some(location) })
        });
        new.collect()
    }

    /// Returns the addresses of the state whose provider has another key than the state has on record, each
    /// with the name of that provider.
    pub(crate) fn with_another_key(&self, snapshot: &Snapshot) -> BTreeMap<Address, Name> {
        let differs = |(provider, configured): &(&Name, &Configured)| {
            let known = snapshot.locations.get(*provider);
            known.is_some_and(|known| *known != configured.at_rest(&snapshot.seal_key))
        };
        let providers: BTreeSet<_> = self.0.iter().filter(differs).map(|(name, _)| name).collect();
        let entries = snapshot.entries.iter().filter(|_| !providers.is_empty());
        entries
            .filter(|(_, entry)| providers.contains(&entry.provider))
            .map(|(address, entry)| (address.clone(), entry.provider.clone()))
            .collect()
    }

    /// Returns the locations that a plan shows. The fingerprint of an account is shown only once the state
    /// has a key for fingerprints: before that, it would differ each time.
    pub(crate) fn views(&self, plan: &Plan) -> Vec<LocationView> {
        let accounts = plan.base.first_key.is_none().then_some(&plan.base.accounts);
        let view = |(provider, configured): (&Name, &Configured)| {
            let is_local = configured.service == LOCAL_SERVICE;
            let account = accounts.filter(|_| !is_local).and_then(|all| all.get(provider));
            LocationView::new(provider, &configured.service, account)
        };
        self.0.iter().map(view).collect()
    }

    /// Refuses to apply a saved plan on another service than the one that it was made for.
    pub(crate) fn refuse_plan_of(&self, planned: &[LocationView]) -> Result<(), CommandError> {
        for it in planned {
            let configured = self.0.get(&it.provider);
            if let Some(configured) = configured.filter(|here| here.service != it.service) {
                return Err(another_plan(it, &configured.service));
            }
        }
        Ok(())
    }
}

/// Returns the error about objects that are not found with a new key: they may belong to another account, and
/// a plan would make them again.
pub(crate) fn another_account(
    plan: &Plan,
    with_another_key: &BTreeMap<Address, Name>,
) -> Diagnostics {
    let gone = plan.drift.iter().filter(|drift| drift.after.is_none());
    let missing: Vec<_> = gone.filter_map(|drift| with_another_key.get(&drift.address)).collect();
    let Some(provider) = missing.first() else { return Diagnostics::new() };
    let objects =
        if missing.len() == 1 { "1 object" } else { &format!("{} objects", missing.len()) };
    let summary = format!(
        "the key of the provider `{provider}` is another one than in the last run, and {objects} of the state cannot be \
         found with it"
    );
    let error = Diagnostic::error(summary).help(format!(
        "use the key of the last run; if this key opens the same account and the objects are gone, \
         `plumb state relocate {provider}` accepts it"
    ));
    Diagnostics::from_iter([error])
}

fn elsewhere(provider: &Name, known: &str, configured: &str) -> CommandError {
    let (known, configured) = (in_words(known), in_words(configured));
    let message = format!(
        "the provider `{provider}` acted on {known} in the last run, and would act on {configured} now"
    );
    CommandError::new(message).help(format!(
        "to act on {known}, configure the provider as before; to begin anew on {configured}, use \
         another folder or another `[state]`; if the objects of the state are on {configured} now, \
         `plumb state relocate {provider}` accepts it"
    ))
}

fn another_plan(planned: &LocationView, configured: &str) -> CommandError {
    let (provider, planned) = (&planned.provider, in_words(&planned.service));
    let configured = in_words(configured);
    let message = format!(
        "stale plan: it was made for {planned} (provider `{provider}`), and would act on {configured} now"
    );
    CommandError::new(message)
        .status(crate::error::Status::Stale)
        .help(format!("configure the provider for {planned}, or make a new plan"))
}

fn in_words(service: &str) -> String {
    if service == LOCAL_SERVICE {
        format!("the {LOCAL_SERVICE}")
    } else {
        render::safe::text(service)
    }
}
