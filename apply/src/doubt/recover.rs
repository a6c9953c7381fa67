//! Recovery: looks up the calls that earlier runs left open, and records what was found.
//!
//! Recovery only looks and records. What is left to do afterwards (an unfinished create, a leftover) appears
//! in the plan as an ordinary change. A call that cannot be decided stays pending and blocks only its own
//! address. The absence of an object decides nothing if another account shows it, or if so many objects are
//! gone that a person must be asked first.

use std::sync::Arc;
use std::time::Duration;

use engine::address::Address;
use engine::doubt::{CallInDoubt, Resolution as Meaning, resolve, supersedes_own};
use engine::event::Event;
use engine::journal::{CallId, Outcome, Pending, Record, Resolution, Started};
use engine::schema::{Identity, TypeSchema};
use engine::state::Snapshot;
use engine::stored::{KnownSecrets, SecretScanner};
use futures_util::{StreamExt, stream};
use provider_port::{Error, Kind, Object, Provider};

use crate::doubt::claims::{later_claims, leave_out_claimed};
use crate::doubt::lookup::{
    Found, Wanted, account_of, look_up, promised, seen, settles_in, shown, taken,
};
use crate::refresh::{TypesToList, observe};
use crate::{Host, Providers};

/// The time after which a call of a killed run can have no more effect: longer than any call is repeated.
const CALL_LASTS_MAX: Duration = Duration::from_hours(1);

/// The number of calls that are looked up at once.
const AT_ONCE: usize = 64;

/// Looks up every pending call of a snapshot. Returns the records that say what was found, in the order of
/// the calls, except that records of objects that are gone come first. The caller folds the records, and
/// appends them if it holds the lock.
pub async fn recover(
    snapshot: &Snapshot,
    providers: &Providers,
    secrets: &KnownSecrets,
    host: &dyn Host,
    emit: &(dyn Fn(Event) + Send + Sync),
) -> Vec<Record> {
    let recovery = Recovery { snapshot, providers, secrets, host, emit };
    let mut records = recovery.look_up_all().await;
    recovery.settle_claims(&mut records);
    if recovery.is_questionable(&records).await {
        records.retain(|record| !takes_away(record));
    }
    leave_out_claimed(snapshot, &mut records);
    records
}

/// The surroundings in which calls are looked up.
struct Recovery<'a> {
    snapshot: &'a Snapshot,
    providers: &'a Providers,
    secrets: &'a KnownSecrets,
    host: &'a dyn Host,
    emit: &'a (dyn Fn(Event) + Send + Sync),
}

/// The decision about a call.
struct Decided {
    /// The call's object; `None` if there is none.
    object: Option<Object>,
    /// The other address that stands for the object, if there is one.
    claimant: Option<Address>,
}

impl<'a> Recovery<'a> {
    async fn look_up_all(&self) -> Vec<Record> {
        let mut records: Vec<(CallId, Vec<Record>)> = stream::iter(&self.snapshot.pending)
            .map(|(call, pending)| async move { (*call, self.look_up(*call, pending).await) })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        records.sort_by_key(|(call, _)| *call);
        records.into_iter().flat_map(|(_, records)| records).collect()
    }

    fn of(&self, started: &Started) -> Option<(&'a Arc<dyn Provider>, Arc<TypeSchema>)> {
        let provider = self.providers.get(&started.provider)?;
        Some((provider, provider.schema().types.get(&started.address.block.ty)?.clone()))
    }

    async fn look_up(&self, call: CallId, pending: &Pending) -> Vec<Record> {
        let started = &pending.started;
        let Some((provider, schema)) = self.of(started) else { return Vec::new() };
        if !schema.remote {
            // Such a call reaches no API. It did nothing if its end is not in the state.
            let reason = "the run ended before its record".to_owned();
            let outcome = Outcome::NoEffect { reason };
            return vec![Record::Finished { call, outcome }];
        }
        let in_doubt = CallInDoubt {
            started,
            schema: &schema,
            sent: None,
            accepted: self.may_still_show(pending, &schema),
            elsewhere: is_elsewhere(started, &**provider, self.snapshot),
            key: &self.snapshot.seal_key,
        };
        let taken = taken(self.snapshot, &schema, started);
        let unsettled = self.may_still_land(started);
        let wanted = Wanted { call: in_doubt, taken: &taken, unsettled };
        let (address, operation) = (started.address.clone(), started.operation);
        let wait_ms = u64::try_from(settles_in(provider, wanted).as_millis()).unwrap_or(u64::MAX);
        (self.emit)(Event::RecoveryStarted { address: address.clone(), operation, wait_ms });
        // An object that the API accepted and does not show yet is not waited for: the next plan looks again.
        let decided = self.decide(in_doubt, look_up(provider, wanted).await);
        let found = words(&decided, started.makes_its_object());
        (self.emit)(Event::RecoveryFinished { address, found });
        decided.map_or_else(|_| Vec::new(), |it| self.records(call, in_doubt, it.object.as_ref()))
    }

    /// Returns the object of a call, or no object if there is none. Returns an error if nobody can tell.
    fn decide(&self, call: CallInDoubt<'_>, found: Found) -> Result<Decided, Error> {
        let object = match found {
            Found::There(object) => Some(object),
            Found::Absent => None,
            Found::Unknown(why) => return Err(why),
        };
        match resolve(call, object.as_ref().map(shown), self.snapshot) {
            Meaning::Elsewhere => Err(elsewhere()),
            Meaning::Promised => Err(promised()),
            Meaning::NotMade | Meaning::Gone => Ok(Decided { object: None, claimant: None }),
            // The object may be free once all records are known.
            Meaning::Claimed(owner) => Ok(Decided { object, claimant: Some(owner) }),
            Meaning::Done | Meaning::Mismatch(_) | Meaning::NotDone | Meaning::Unproven => {
                Ok(Decided { object, claimant: None })
            }
        }
    }

    fn records(&self, id: CallId, call: CallInDoubt<'_>, object: Option<&Object>) -> Vec<Record> {
        let Some(object) = object else {
            let resolution = call.started.absence(self.host.now_ms());
            return vec![Record::Resolved { call: id, resolution }];
        };
        let sealer = SecretScanner::new(&self.snapshot.seal_key, self.secrets);
        let found = seen(object, &call.known(self.snapshot), call, sealer);
        let mut records =
            vec![Record::Resolved { call: id, resolution: Resolution::Found { object: found } }];
        if supersedes_own(call, shown(object), self.snapshot) {
            let (address, object) = (call.started.address.clone(), object.id.clone());
            records.push(Record::Vanished { address, object });
        }
        records
    }

    /// Leaves an object that several creates found to the first of them. An accepted create among the others
    /// stays in doubt, as its own object may still show.
    fn settle_claims(&self, records: &mut Vec<Record>) {
        let later = later_claims(self.snapshot, records);
        records.retain_mut(|record| {
            let Record::Resolved { call, resolution } = record else { return true };
            let Some(pending) = self.snapshot.pending.get(call).filter(|_| later.contains(call))
            else {
                return true;
            };
            *resolution = pending.started.absence(self.host.now_ms());
            let schema = self.of(&pending.started).map(|(_, schema)| schema);
            !schema.is_some_and(|schema| self.may_still_show(pending, &schema))
        });
    }

    /// Returns true if so many objects are gone that a person must be asked before they leave the state. The
    /// objects of deletes are meant to be gone, and raise no question by themselves.
    async fn is_questionable(&self, records: &[Record]) -> bool {
        let is_surprise = |record: &&Record| match record {
            Record::Resolved { call, .. } if takes_away(record) => {
                let pending = self.snapshot.pending.get(call);
                pending.is_none_or(|pending| !pending.started.ends_its_object())
            }
            _ => false,
        };
        if !records.iter().any(|record| is_surprise(&record)) {
            return false;
        }
        // The next look asks the same question in the same way. If the objects cannot be read now, their
        // absence is not proven either.
        let (nobody, nothing) = (TypesToList::default(), KnownSecrets::default());
        observe(self.snapshot, self.providers, &nobody, &nothing).await.is_err()
    }

    /// Returns true if the effect of a call may show later: the run that sent it died a moment ago, or lost
    /// its lock and is still alive. A decision by what shows now could then turn out wrong.
    fn may_still_land(&self, started: &Started) -> bool {
        let age = Duration::from_millis(self.host.now_ms().saturating_sub(started.at_ms));
        age < CALL_LASTS_MAX
    }

    /// Returns true if an accepted create may show its object later. A create with a one-time name does not
    /// count: if its object comes after another one was made, the leftover is found. Without such a name
    /// there would be two objects.
    fn may_still_show(&self, pending: &Pending, schema: &TypeSchema) -> bool {
        let heals = matches!(schema.identity, Identity::OneTimeName { .. });
        pending.accepted && !heals && self.may_still_land(&pending.started)
    }
}

/// Returns true if a record takes an object out of the state because a look-up did not find it.
fn takes_away(record: &Record) -> bool {
    matches!(record, Record::Resolved { resolution: Resolution::Gone, .. })
}

/// Returns true if a call went to another account than the one that the provider acts for now. Old journals
/// do not say to which account a call went; for those the result is false.
fn is_elsewhere(started: &Started, provider: &dyn Provider, snapshot: &Snapshot) -> bool {
    started.account.is_some() && started.account != account_of(provider, snapshot)
}

fn elsewhere() -> Error {
    let why = "it went to another account or address than the one that is looked at";
    Error::new(Kind::InDoubt, why)
}

fn words(decided: &Result<Decided, Error>, created: bool) -> String {
    match decided {
        Ok(Decided { object: Some(object), claimant: Some(owner) }) => {
            format!("it made {}, and {owner} stands for that object", object.id)
        }
        Ok(Decided { object: Some(object), .. }) if created => format!("it made {}", object.id),
        Ok(Decided { object: Some(object), .. }) => format!("{} is there", object.id),
        Ok(_) if created => "it made nothing".to_owned(),
        Ok(_) => "the object is gone".to_owned(),
        Err(why) => format!("it cannot be told: {why}"),
    }
}
