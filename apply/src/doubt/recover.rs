//! Recovery: looks up the calls that earlier runs left open, and records what was found.
//!
//! It only looks and records. What is left to do afterwards (an unfinished create, a leftover)
//! appears in the plan as an ordinary change. What cannot be decided stays pending and blocks only
//! its own address: also an absence that another account shows, or that is one of so many that
//! somebody has to be asked first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::event::Event;
use engine::journal::{CallId, Outcome, Pending, Record, Resolution, Started};
use engine::schema::{Identity, TypeSchema};
use engine::sorted::Set;
use engine::state::Snapshot;
use engine::stored::{KnownSecrets, SecretScanner};
use futures_util::{StreamExt, stream};
use provider_port::{Error, Kind, Provider};

use crate::doubt::lookup::{
    Found, Wanted, account_of, known_in_doubt, look_up, promised, seen, settles_in, taken,
};
use crate::doubt::ownership::{
    claimed, is_given_again, is_going, leave_out_claimed, other_owner, succeeded, succeeds_its_own,
};
use crate::refresh::observe;
use crate::{Host, Providers};

/// After so long nothing comes of a call of a killed run: longer than any call is tried again.
const CALL_LASTS_MAX: Duration = Duration::from_hours(1);

/// How many calls are looked up at once.
const AT_ONCE: usize = 64;

/// Looks up every pending call of a snapshot, and returns the records that say what was found, in
/// the order of the calls, but that what is gone comes first. The caller folds them, and appends
/// them if it holds the lock.
pub async fn recover(
    snapshot: &Snapshot,
    providers: &Providers,
    secrets: &KnownSecrets,
    host: &dyn Host,
    emit: &(dyn Fn(Event) + Send + Sync),
) -> Vec<Record> {
    let mut records = look_up_all(snapshot, providers, secrets, host, emit).await;
    settle_claims(snapshot, providers, &mut records, host);
    if is_questionable(snapshot, providers, &records).await {
        records.retain(|record| !takes_away(record));
    }
    records.extend(succeeded(snapshot, &records, &|started| schema_of(providers, started)));
    leave_out_claimed(snapshot, &mut records);
    records
}

/// What is known by a name that others may give, too, may be found by more than one call that was to
/// make it. Only one of them can have made it; it is the first one's, and the others made nothing.
/// An object that the spec wants elsewhere then goes like any other that it does not want there. What was
/// accepted may come once that one is gone.
fn settle_claims(
    snapshot: &Snapshot,
    providers: &Providers,
    records: &mut Vec<Record>,
    host: &dyn Host,
) {
    let mut claimed = BTreeSet::new();
    records.retain_mut(|record| {
        let Record::Resolved { call, resolution: Resolution::Found { object } } = record else {
            return true;
        };
        let Some(pending) = snapshot.pending.get(call) else { return true };
        let started = &pending.started;
        let own = (&started.provider, &started.address.block.ty, object.id.clone());
        if !started.makes_its_object() || claimed.insert(own) {
            return true;
        }
        let resolution = Resolution::Absent { at_ms: host.now_ms() };
        *record = Record::Resolved { call: *call, resolution };
        let schema = schema_of(providers, started);
        !schema.is_some_and(|schema| may_still_show(pending, &schema, host))
    });
}

fn schema_of(providers: &Providers, started: &Started) -> Option<Arc<TypeSchema>> {
    let provider = providers.get(&started.provider)?;
    provider.schema().types.get(&started.address.block.ty).cloned()
}

/// Returns true if so much is gone that somebody has to be asked before it leaves the state. The objects of
/// deletes are meant to be gone, and are no reason to ask; where there is one, they stay as well.
async fn is_questionable(snapshot: &Snapshot, providers: &Providers, records: &[Record]) -> bool {
    let is_surprise = |record: &&Record| match record {
        Record::Resolved { call, .. } if takes_away(record) => {
            let pending = snapshot.pending.get(call);
            pending.is_none_or(|pending| !pending.started.ends_its_object())
        }
        _ => false,
    };
    if !records.iter().any(|record| is_surprise(&record)) {
        return false;
    }
    // The question is asked, in the same way, of whoever looks next; what cannot be seen now is no
    // proof of anything either.
    observe(snapshot, providers, &BTreeSet::new(), &KnownSecrets::default()).await.is_err()
}

/// Returns true if a record takes an object out of the state.
fn takes_away(record: &Record) -> bool {
    matches!(record, Record::Resolved { resolution: Resolution::Gone, .. })
}

async fn look_up_all(
    snapshot: &Snapshot,
    providers: &Providers,
    secrets: &KnownSecrets,
    host: &dyn Host,
    emit: &(dyn Fn(Event) + Send + Sync),
) -> Vec<Record> {
    let mut records: Vec<(CallId, Record)> = stream::iter(&snapshot.pending)
        .map(|(call, pending)| async move {
            let sealer = SecretScanner::new(&snapshot.seal_key, secrets);
            let of_call = (*call, pending, sealer);
            let record = recover_one(snapshot, of_call, providers, host, emit).await;
            record.map(|record| (*call, record))
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|record| async move { record })
        .collect()
        .await;
    records.sort_by_key(|(call, _)| *call);
    records.into_iter().map(|(_, record)| record).collect()
}

async fn recover_one(
    snapshot: &Snapshot,
    (call, pending, sealer): (CallId, &Pending, SecretScanner<'_>),
    providers: &Providers,
    host: &dyn Host,
    emit: &(dyn Fn(Event) + Send + Sync),
) -> Option<Record> {
    let started = &pending.started;
    let provider = providers.get(&started.provider)?;
    let schema: Arc<TypeSchema> = provider.schema().types.get(&started.address.block.ty)?.clone();
    if !schema.remote {
        // There is no API in which it could have happened: the state is all there is.
        let outcome = Outcome::NoEffect { reason: "the run ended before its record".to_owned() };
        return Some(Record::Finished { call, outcome });
    }
    let taken = taken(snapshot, &schema, started);
    let unsettled = may_still_land(started, host);
    let (schema, taken, key) = (&schema, &taken, &snapshot.seal_key);
    // Nobody waits for it here: the next plan looks again.
    let accepted = false;
    let (desired, ignored) = (None, &Set::new());
    let wanted = Wanted { schema, started, desired, ignored, taken, unsettled, accepted, key };
    let (address, operation) = (started.address.clone(), started.operation);
    let wait_ms = u64::try_from(settles_in(provider, &wanted).as_millis()).unwrap_or(u64::MAX);
    emit(Event::RecoveryStarted { address: address.clone(), operation, wait_ms });
    let found = whose(snapshot, &wanted, look_up(provider, &wanted).await);
    let found = match found {
        Found::Absent | Found::There(_)
            if !is_proof_anywhere(&found, started, schema)
                && is_elsewhere(started, &**provider, snapshot) =>
        {
            Found::Unknown(elsewhere())
        }
        Found::Absent if may_still_show(pending, schema, host) => Found::Unknown(promised()),
        found => found,
    };
    emit(Event::RecoveryFinished { address, found: words(&found, started.makes_its_object()) });
    let resolution = match found {
        Found::Unknown(_) => return None,
        Found::Absent if started.makes_its_object() => Resolution::Absent { at_ms: host.now_ms() },
        Found::Absent => Resolution::Gone,
        Found::There(object) => {
            let known = known_in_doubt(snapshot, started, schema);
            Resolution::Found { object: seen(&object, &known, None, (schema, started), sealer) }
        }
    };
    Some(Record::Resolved { call, resolution })
}

/// What was found of a call, unless it is what another address stands for: an object that is to be
/// deleted and has another's name is gone, and what a create made is not taken from anybody.
fn whose(snapshot: &Snapshot, wanted: &Wanted<'_>, found: Found) -> Found {
    let Found::There(object) = &found else { return found };
    let Wanted { schema, started, .. } = wanted;
    if is_given_again(snapshot, started, schema, object) {
        return Found::Absent;
    }
    let owner = other_owner(snapshot, started, &object.id)
        .filter(|owner| started.makes_its_object() && !is_going(snapshot, owner, &object.id))
        .filter(|_| !succeeds_its_own(snapshot, (schema, started), &object.id, &object.attributes));
    match owner {
        Some(owner) => Found::Unknown(claimed(owner, &object.id)),
        None => found,
    }
}

/// Returns true if what a call does may show only later, because the run that sent it died a moment ago, or
/// lives on and lost its place: what is decided by what shows now would be undone by it.
fn may_still_land(started: &Started, host: &dyn Host) -> bool {
    let age = Duration::from_millis(host.now_ms().saturating_sub(started.at_ms));
    age < CALL_LASTS_MAX
}

/// Returns true if a create that was accepted may show only later. What bears a one-time name heals if it
/// comes after another was made; of anything else there would be two.
fn may_still_show(pending: &Pending, schema: &TypeSchema, host: &dyn Host) -> bool {
    let heals = matches!(schema.identity, Identity::OneTimeName { .. });
    pending.accepted && !heals && may_still_land(&pending.started, host)
}

/// Returns true if what was found says in any account what became of a call: what bears the name that was drawn for a
/// create does. A name of the spec's own, or an id, others may have elsewhere, and what is not there may be.
fn is_proof_anywhere(found: &Found, started: &Started, schema: &TypeSchema) -> bool {
    matches!(found, Found::There(_))
        && started.makes_its_object()
        && matches!(schema.identity, Identity::OneTimeName { .. })
}

/// Returns true if a call went to another account than the one that is looked at. An older journal does not
/// say where its calls went.
fn is_elsewhere(started: &Started, provider: &dyn Provider, snapshot: &Snapshot) -> bool {
    started.account.is_some() && started.account != account_of(provider, snapshot)
}

fn elsewhere() -> Error {
    let why = "it went to another account or address than the one that is looked at";
    Error::new(Kind::InDoubt, why)
}

fn words(found: &Found, created: bool) -> String {
    match found {
        Found::There(object) if created => format!("it made {}", object.id),
        Found::There(object) => format!("{} is there", object.id),
        Found::Absent if created => "it made nothing".to_owned(),
        Found::Absent => "the object is gone".to_owned(),
        Found::Unknown(why) => format!("it cannot be told: {why}"),
    }
}
