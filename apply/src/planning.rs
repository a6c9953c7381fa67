//! Planning: this module observes the live objects, then the engine makes the plan.
//!
//! Planning takes no lock and writes nothing. `plan` calls it on the stored state as it is right now, `apply`
//! calls it under the lock, after recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::address::{Address, Name};
use engine::config::{Config, ImportConfig};
use engine::diagnostics::Diagnostics;
use engine::digest::{Digest, Fingerprint};
use engine::event::Event;
use engine::graph::Graph;
use engine::plan::input::{Leftover, Mode, Observations, Options, PlanInput};
use engine::plan::{Moves, Plan, Selection, plan_with, renamed_options};
use engine::schema::ProviderSchema;
use engine::state::{Nonce, ObjectId, Snapshot, Watched};
use engine::stored::KnownSecrets;
use engine::work::Workers;

use crate::doubt::lookup::account_of;
use crate::doubt::recover::recover;
use crate::refresh::look_ups::{answer, list_for_look_ups, looked_up};
use crate::refresh::{TypesToList, observe_chosen, observe_imports};
use crate::secret_destinations::refused_destinations;
use crate::unavailable_secrets::unavailable_secrets;
use crate::{ApplyError, DataReader, Host, Providers};

/// The longest chain of look-ups that need one another and must be read one by one.
const ROUNDS_MAX: usize = 32;

/// The inputs of a plan, beside the state.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The resolved spec.
    pub config: &'a Config,
    /// The graph of the spec.
    pub graph: &'a Graph,
    /// The configured providers, among them those of the objects in the state.
    pub providers: &'a Providers,
    /// The options of the plan, such as targets and the mode.
    pub options: &'a Options,
    /// True if the live objects are read; if false, the state is taken for what is live.
    pub refresh: bool,
    /// True if another run holds the lock. Its open calls are then under way, not in doubt.
    pub running: bool,
    /// The current time, in milliseconds since 1970. A one-time name is no longer watched once its time is
    /// over and the lists show no object under it.
    pub now_ms: u64,
    /// The workers that share the instances of a large spec.
    pub workers: &'a dyn Workers,
    /// The reader of other states and of web addresses, for look-ups.
    pub reader: &'a dyn DataReader,
}

impl Request<'_> {
    /// The secrets that the variables give.
    pub fn secrets(&self) -> KnownSecrets {
        KnownSecrets::of(self.config.variables.values().map(|variable| &variable.value))
    }
}

/// Makes a plan. Fails if so many objects are gone at once that a person must decide first.
pub async fn make(
    snapshot: &Snapshot,
    request: &Request<'_>,
) -> Result<(Plan, Diagnostics), ApplyError> {
    match make_anyway(snapshot, request).await? {
        (plan, found, None) => Ok((plan, found)),
        (_, _, Some(question)) => Err(question),
    }
}

/// Makes a plan, also where so many objects are gone at once that a person must decide first. That error then
/// comes beside the plan, which may be shown and must not be run.
pub async fn make_anyway(
    snapshot: &Snapshot,
    request: &Request<'_>,
) -> Result<(Plan, Diagnostics, Option<ApplyError>), ApplyError> {
    let (mut observations, mut question) = (Observations::default(), None);
    let moves = Moves::new(request.config, snapshot);
    let snapshot = &*moves.renamed(snapshot);
    let options = &*renamed_options(request.options, &moves, request.config);
    let request = &Request { options, ..*request };
    let looked_up = looked_up(request.config, request.providers, request.options);
    if !request.refresh && !looked_up.is_empty() {
        let secrets = (&snapshot.seal_key, &request.secrets());
        observations.listed = list_for_look_ups(looked_up, request.providers, secrets).await?;
    } else if request.refresh {
        let selection = Selection::new(request.config, request.graph, snapshot, request.options);
        let is_chosen = |address: &Address| selection.includes(address);
        let wanted = TypesToList { types: wanted(request), looked_up };
        let secrets = request.secrets();
        (observations, question) =
            Box::pin(observe_chosen(snapshot, request.providers, &wanted, &secrets, &is_chosen))
                .await?;
        observations.over = over(snapshot, request, &observations.leftovers);
        let imports = imports(request, &observations);
        observe_imports(snapshot, request.providers, &imports, &secrets, &mut observations).await?;
    }
    if request.running {
        observations.running = snapshot.pending.keys().copied().collect();
    }
    let planned = Box::pin(plan_with_answers(snapshot, &moves, request, observations));
    let (plan, mut found) = planned.await?;
    found.extend(refused_destinations(&plan, request.providers));
    // Without a refresh, a secret that is missing now may still be read during the run.
    if request.refresh {
        found.extend(unavailable_secrets(&plan, request.providers).await);
    }
    Ok((plan, found, question))
}

/// Makes the plan, and makes it again with the answers as long as it has open questions.
async fn plan_with_answers(
    snapshot: &Snapshot,
    moves: &Moves,
    request: &Request<'_>,
    mut observations: Observations,
) -> Result<(Plan, Diagnostics), ApplyError> {
    let schemas = schemas(request.providers);
    let accounts = accounts(request.providers);
    for _ in 0..ROUNDS_MAX {
        let input = PlanInput {
            config: request.config,
            graph: request.graph,
            providers: &schemas,
            accounts: &accounts,
            snapshot,
            moves,
            observations: &observations,
            options: request.options,
        };
        let (plan, found) = plan_with(&input, request.workers);
        if plan.requests.is_empty() {
            return Ok((plan, found));
        }
        let secrets = (&snapshot.seal_key, &request.secrets());
        let from = (request.providers, request.reader);
        answer(&plan.requests, from, secrets, &mut observations).await?;
    }
    Err(ApplyError::EndlessLookUps(ROUNDS_MAX))
}

/// Looks up the calls that earlier runs left open, in memory only, so that a plan shows what an apply would
/// find. Leaves out the calls of a run that is under way.
pub async fn recover_in_memory(
    snapshot: &mut Snapshot,
    request: &Request<'_>,
    host: &dyn Host,
    emit: &(dyn Fn(Event) + Send + Sync),
) -> Result<(), ApplyError> {
    if request.running || !request.refresh {
        return Ok(());
    }
    for record in recover(snapshot, request.providers, &request.secrets(), host, emit).await {
        snapshot.fold(&record)?;
    }
    Ok(())
}

/// The schemas of provider instances.
pub fn schemas(providers: &Providers) -> BTreeMap<Name, Arc<ProviderSchema>> {
    providers.iter().map(|(name, provider)| (name.clone(), provider.schema())).collect()
}

/// The accounts of the provider instances that have one.
fn accounts(providers: &Providers) -> BTreeMap<Name, Digest> {
    providers
        .iter()
        .filter_map(|(name, provider)| Some((name.clone(), provider.account()?)))
        .collect()
}

/// Returns the watched nonces that need no more watching: their time is over, and the lists that were just
/// read show no object under them. A nonce stays watched if its provider is not configured, as the lists were
/// not read. A nonce of another account stays watched for longer.
fn over(snapshot: &Snapshot, request: &Request<'_>, leftovers: &[Leftover]) -> Vec<Nonce> {
    let accounts: BTreeMap<&Name, Option<Fingerprint>> = request
        .providers
        .iter()
        .map(|(name, provider)| (name, account_of(&**provider, snapshot)))
        .collect();
    let is_listed = |watched: &Watched| {
        let provider = request.providers.get(&watched.provider);
        provider.is_some_and(|provider| provider.schema().types.contains_key(&watched.ty))
    };
    let is_over = |watched: &Watched| {
        let account = accounts.get(&watched.provider).and_then(Option::as_ref);
        watched.is_over(account, request.now_ms)
    };
    let surfaced: BTreeSet<&Nonce> = leftovers.iter().map(|leftover| &leftover.nonce).collect();
    let over = snapshot.watched.iter().filter(|watched| {
        is_over(watched) && is_listed(watched) && !surfaced.contains(&watched.nonce)
    });
    over.map(|watched| watched.nonce.clone()).collect()
}

/// Returns the objects that `[[import]]` blocks ask for, as far as the objects are known.
fn imports<'a>(
    request: &Request<'a>,
    observations: &Observations,
) -> Vec<(&'a Address, Name, ObjectId)> {
    let config = request.config;
    if request.options.mode != Mode::Apply {
        return Vec::new();
    }
    let import = |(address, import): (&'a Address, &'a ImportConfig)| {
        let provider = config.resources.get(&address.block)?.provider.of(address);
        let id = observations.imported(&provider, &address.block.ty, &import.object)?;
        Some((address, provider, id.clone()))
    };
    config.imports.iter().filter_map(import).collect()
}

/// Returns the types to list beside those of the state, so that a plan can warn of names that are taken.
fn wanted(request: &Request<'_>) -> BTreeSet<(Name, Name)> {
    if request.options.mode == Mode::Destroy {
        return BTreeSet::new();
    }
    let resources = request.config.resources.values();
    let mut types: Vec<_> =
        resources.map(|resource| (&resource.provider, &resource.block.ty)).collect();
    // The resources are sorted, so blocks of one type are neighbours.
    types.dedup();
    let instances = types.into_iter().flat_map(|(choice, ty)| {
        let instances = request.providers.keys().filter(|name| choice.may_be(name));
        instances.map(|name| (name.clone(), ty.clone()))
    });
    instances.collect()
}
