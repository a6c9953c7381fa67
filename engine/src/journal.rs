//! The journal as a pure fold: which records there are, and what each does to a snapshot.
//!
//! No mutating call begins before a [`Record::Started`] that names it is durable, so at every
//! instant every object that may exist because of us is named, by id or by nonce. The table of
//! legal records is closed: [`Snapshot::fold`] refuses what cannot have happened, when writing and
//! when reading back. Frames, checksums and files are the `state` crate's.

mod calls;

use std::collections::BTreeMap;
use std::fmt;

pub use calls::Calls;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Name};
use crate::digest::{Digest, Fingerprint};
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::{Entry, Nonce, Object, ObjectId, OutputValue, Progress, Snapshot, Watched};
use crate::stored::Stored;
use crate::value::Paths;

/// For how long the nonce of a create that made its object is watched, in milliseconds: an hour. A
/// server that executes a request twice has done so long before.
const TWIN_MS: u64 = 60 * 60 * 1000;

/// The number of a call, counted over the life of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// Which list of programs a phase belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// The programs that create.
    Create,
    /// The programs that update.
    Update,
    /// The programs that delete.
    Delete,
}

/// One phase of one program of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PhaseRef {
    /// Which list.
    pub kind: ProgramKind,
    /// Which program of the list.
    pub program: usize,
    /// Which phase of the program.
    pub phase: usize,
    /// How many phases the program has.
    pub phases: usize,
}

impl PhaseRef {
    /// Says whether this is the program's last phase.
    pub fn is_last(self) -> bool {
        self.phase + 1 == self.phases
    }
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "record")]
pub enum Record {
    /// A run begins.
    RunOpened {
        /// The run's random name.
        run: String,
        /// The serial that it began from.
        serial: u64,
        /// The plan that it executes.
        plan: Digest,
        /// When, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A mutating call is about to begin. Durable before its first byte leaves.
    Started(Box<Started>),
    /// The call ended, and how is known.
    Finished {
        /// Which call.
        call: CallId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The call ended, and nobody knows how.
    Doubted {
        /// Which call.
        call: CallId,
        /// What was seen, without secrets.
        reason: String,
    },
    /// A call in doubt was looked up.
    Resolved {
        /// Which call.
        call: CallId,
        /// What was found.
        resolution: Resolution,
    },
    /// An object was seen to differ from the state, and the difference was accepted.
    Seen {
        /// Whose object.
        address: Address,
        /// Which object.
        object: ObjectId,
        /// How far its operation has come.
        progress: Progress,
        /// Its live attributes, sealed.
        attributes: Stored,
        /// The attributes that the spec manages from now on.
        managed: Set<Name>,
        /// The places that hold secrets.
        sensitive: Paths,
        /// What it depends on from now on.
        dependencies: Set<Address>,
    },
    /// Triggers of an object's replace fired. They go on firing until it is replaced.
    Triggered {
        /// Whose object.
        address: Address,
        /// Which object.
        object: ObjectId,
        /// What each of them stood for before it fired first.
        made_with: BTreeMap<Name, Fingerprint>,
    },
    /// An object was confirmed to be gone without our doing.
    Vanished {
        /// Whose object.
        address: Address,
        /// Which object.
        object: ObjectId,
    },
    /// An object was taken over.
    Adopted {
        /// Under which address.
        address: Address,
        /// By which provider.
        provider: Name,
        /// The object.
        object: Object,
        /// What it depends on.
        dependencies: Set<Address>,
        /// Whether it stands beside the address's object, to be deleted: a leftover of ours.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deposed: bool,
    },
    /// An object was let go: it stays in the API, and the state forgets it.
    Forgot {
        /// Whose object.
        address: Address,
        /// Which object.
        object: ObjectId,
    },
    /// A watched nonce needs no more watching: its leftover is gone, or its time is over.
    Unwatched {
        /// The nonce.
        nonce: Nonce,
    },
    /// An address changed.
    Moved {
        /// Before.
        from: Address,
        /// After.
        to: Address,
    },
    /// The outputs were evaluated.
    Outputs {
        /// All of them; those that failed to evaluate keep their last value.
        outputs: BTreeMap<Name, OutputValue>,
    },
    /// The run ended.
    RunClosed {
        /// How, in a word.
        outcome: String,
    },
}

/// A mutating call that is about to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// Its number: the snapshot's next.
    pub call: CallId,
    /// The step of the plan.
    pub step: String,
    /// Whose object.
    pub address: Address,
    /// The provider instance.
    pub provider: Name,
    /// What it does.
    pub operation: Operation,
    /// Which phase it is.
    pub phase: PhaseRef,
    /// The object; none for a create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectId>,
    /// The one-time name of a create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Nonce>,
    /// The name that a create gives, where the type's identity is a unique name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Whether the current object is put aside when this create succeeds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deposes: bool,
    /// The attributes that the spec manages.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub managed: Set<Name>,
    /// The places that hold secrets.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub sensitive: Paths,
    /// What the object depends on.
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    pub dependencies: Set<Address>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Started {
    /// Says whether the call is the last phase of a delete.
    pub fn ends_its_object(&self) -> bool {
        self.phase.kind == ProgramKind::Delete && self.phase.is_last()
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Outcome {
    /// It did what it was meant to.
    Done {
        /// The object; none after the last phase of a delete.
        object: Option<Seen>,
    },
    /// The answer, or its absence before the first byte, proves that nothing happened.
    NoEffect {
        /// Why, without secrets.
        reason: String,
    },
}

/// An object as a provider answered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its id.
    pub id: ObjectId,
    /// Its attributes, sealed.
    pub attributes: Stored,
}

/// What was found about a call in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Resolution {
    /// The call's object exists: as created, or as it now is.
    Found {
        /// The object.
        object: Seen,
    },
    /// A create left nothing. Its nonce is watched from now on.
    Absent {
        /// When this was believed, in milliseconds since 1970.
        at_ms: u64,
    },
    /// The object of an update or a delete does not exist any more.
    Gone,
}

/// A call that began and whose end is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// How it began.
    pub started: Started,
    /// Why its end is not known, if the run lived long enough to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A record that cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal says what cannot have happened: {0}")]
pub struct IllegalRecord(String);

fn illegal<T>(what: impl fmt::Display) -> Result<T, IllegalRecord> {
    Err(IllegalRecord(what.to_string()))
}

impl Snapshot {
    /// Applies one record.
    pub fn fold(&mut self, record: &Record) -> Result<(), IllegalRecord> {
        match record {
            Record::RunOpened { at_ms, .. } => {
                // The plan of this run has looked at the lists since.
                let old = |since_ms: u64| at_ms.saturating_sub(since_ms) > TWIN_MS;
                self.watched.retain(|watched| !(watched.made && old(watched.since_ms)));
                Ok(())
            }
            Record::RunClosed { .. } => Ok(()),
            Record::Started(started) => self.start(started),
            Record::Finished { call, outcome } => self.finish(*call, outcome),
            Record::Doubted { call, reason } if self.pending.doubt(*call, reason) => Ok(()),
            Record::Doubted { call, .. } => {
                illegal(format_args!("call {call} is in doubt and never began"))
            }
            Record::Resolved { call, resolution } => self.resolve(*call, resolution),
            Record::Seen { address, object, progress, attributes, managed, .. } => {
                let Some(entry) = self.entries.get_mut(address) else {
                    return illegal(format_args!("{address} was seen and is not in the state"));
                };
                let Some(known) = entry.object_mut(object) else {
                    return illegal(format_args!("{address} has no object {object}"));
                };
                known.progress = progress.clone();
                known.attributes = attributes.clone();
                known.managed.clone_from(managed);
                if let Record::Seen { sensitive, dependencies, .. } = record {
                    known.sensitive.clone_from(sensitive);
                    entry.dependencies.clone_from(dependencies);
                }
                Ok(())
            }
            Record::Triggered { address, object, made_with } => {
                let entry = self.entries.get_mut(address);
                let Some(known) = entry.and_then(|entry| entry.object_mut(object)) else {
                    return illegal(format_args!("{address} has no object {object}"));
                };
                for (trigger, before) in made_with {
                    known.made_with.entry(trigger.clone()).or_insert_with(|| before.clone());
                }
                Ok(())
            }
            Record::Vanished { address, object } => self.remove(address, object),
            Record::Forgot { address, object } => {
                let entry = self.entries.get(address);
                let known = entry.and_then(|entry| entry.object(object));
                if let Some(Progress::Created { nonce, .. }) = known.map(|own| own.progress.clone())
                {
                    // What is let go under its one-time name is no leftover.
                    self.watched.retain(|watched| watched.nonce != nonce);
                }
                self.remove(address, object)
            }
            Record::Adopted { address, provider, object, deposed: true, .. } => {
                self.depose(address, provider, object);
                Ok(())
            }
            Record::Adopted { address, provider, object, dependencies, .. } => {
                self.adopt(address, provider, object, dependencies)
            }
            Record::Unwatched { nonce } => {
                self.watched.retain(|watched| watched.nonce != *nonce);
                Ok(())
            }
            Record::Moved { from, to } => self.rename(from, to),
            Record::Outputs { outputs } => {
                self.outputs.clone_from(outputs);
                Ok(())
            }
        }
    }

    fn start(&mut self, started: &Started) -> Result<(), IllegalRecord> {
        let Started { call, address, phase, .. } = started;
        if call.0 != self.next_call {
            return illegal(format_args!("call {call} begins where c{} is due", self.next_call));
        }
        // What was put aside may go while the address's own object is worked on.
        if self.pending.is_busy(started) {
            return illegal(format_args!("{address} has two calls at once"));
        }
        let is_create = phase.kind == ProgramKind::Create && phase.phase == 0;
        if is_create {
            let occupied = self.entries.get(address).is_some_and(|e| e.current.is_some());
            if occupied && !started.deposes {
                return illegal(format_args!("{address} is created and exists"));
            }
        } else {
            let known = started.object.as_ref().is_some_and(|id| {
                self.entries.get(address).is_some_and(|entry| entry.object(id).is_some())
            });
            if !known {
                return illegal(format_args!("{call} changes an object that {address} is not"));
            }
        }
        self.next_call += 1;
        self.pending.insert(*call, Pending { started: started.clone(), doubt: None });
        Ok(())
    }

    fn take_pending(&mut self, call: CallId) -> Result<Pending, IllegalRecord> {
        match self.pending.remove(call) {
            Some(pending) => Ok(pending),
            None => illegal(format_args!("call {call} ends and is not under way")),
        }
    }

    fn finish(&mut self, call: CallId, outcome: &Outcome) -> Result<(), IllegalRecord> {
        let Pending { started, doubt } = self.take_pending(call)?;
        if let Outcome::Done { object: Some(seen) } = outcome
            && doubt.is_some()
        {
            self.belongs_to_nobody(&started, seen)?;
        }
        match outcome {
            Outcome::NoEffect { .. } => {
                // A refusal is an answer; a doubt that ended so is an object that is still there.
                if doubt.is_some() {
                    self.may_still_go(&started);
                }
                // A server that executes a create twice may refuse the second time, because of what
                // the first one made. Such a refusal is about the very object that we lost.
                if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
                    let since_ms = started.at_ms;
                    self.watch(&started, nonce, since_ms, true);
                }
                Ok(())
            }
            Outcome::Done { object } => self.advance(&started, object.as_ref()),
        }
    }

    fn resolve(&mut self, call: CallId, resolution: &Resolution) -> Result<(), IllegalRecord> {
        let started = self.take_pending(call)?.started;
        let is_create = started.object.is_none();
        match (resolution, started.nonce.clone()) {
            (Resolution::Found { object }, _) if is_create => {
                self.belongs_to_nobody(&started, object)?;
                self.advance(&started, Some(object))
            }
            (Resolution::Found { object }, _) => {
                let known = self.entries.get_mut(&started.address);
                match known.and_then(|entry| entry.object_mut(&object.id)) {
                    Some(known) => known.attributes = object.attributes.clone(),
                    None => return illegal(format_args!("{call} found a foreign object")),
                }
                self.may_still_go(&started);
                Ok(())
            }
            (Resolution::Absent { at_ms }, Some(nonce)) if is_create => {
                self.watch(&started, nonce, *at_ms, false);
                Ok(())
            }
            (Resolution::Absent { .. }, _) if is_create => Ok(()),
            (Resolution::Absent { .. } | Resolution::Gone, _) => match &started.object {
                Some(id) => self.remove(&started.address, id),
                None => illegal(format_args!("{call} created nothing that could be gone")),
            },
        }
    }

    /// What a lost create is said to have made may not be what an address stands for: removing one
    /// of the two would delete the object of the other. Only what was looked up is asked for,
    /// because the search is as long as the state.
    fn belongs_to_nobody(&self, started: &Started, seen: &Seen) -> Result<(), IllegalRecord> {
        if started.object.is_some() {
            return Ok(());
        }
        match self.owner(&started.provider, &started.address.block.ty, &seen.id) {
            Some(owner) => illegal(format_args!(
                "{} made {}, and {owner} stands for that object",
                started.address, seen.id
            )),
            None => Ok(()),
        }
    }

    /// The object of a delete was there when it was looked up; the delete may only be late.
    fn may_still_go(&mut self, started: &Started) {
        let object = started.object.as_ref().filter(|_| started.ends_its_object());
        let known = self.entries.get_mut(&started.address);
        if let Some(known) = known.zip(object).and_then(|(entry, id)| entry.object_mut(id)) {
            known.delete_sent_ms = Some(started.at_ms);
        }
    }

    /// The object reached the end of a phase.
    fn advance(&mut self, started: &Started, seen: Option<&Seen>) -> Result<(), IllegalRecord> {
        let PhaseRef { kind, program, phase, .. } = started.phase;
        let address = &started.address;
        if started.ends_its_object() {
            return match &started.object {
                Some(id) => self.remove(address, id),
                None => illegal(format_args!("{address} was deleted without an object")),
            };
        }
        let progress = match kind {
            ProgramKind::Create if !started.phase.is_last() => {
                let Some(nonce) = self.nonce_of(started) else {
                    return illegal(format_args!("{address} was created without a nonce"));
                };
                Progress::Created { program, done: phase + 1, nonce }
            }
            ProgramKind::Delete => Progress::Deleting { done: phase + 1 },
            ProgramKind::Create | ProgramKind::Update => Progress::Ready,
        };
        if kind == ProgramKind::Create && phase == 0 {
            let Some(seen) = seen else {
                return illegal(format_args!("{address} was created and has no object"));
            };
            return self.add(started, seen, progress);
        }
        let Some(object) = started
            .object
            .as_ref()
            .and_then(|id| self.entries.get_mut(address).and_then(|entry| entry.object_mut(id)))
        else {
            return illegal(format_args!("{address} was changed and has no such object"));
        };
        object.progress = progress;
        if let Some(seen) = seen {
            object.attributes = seen.attributes.clone();
        }
        if kind != ProgramKind::Delete {
            // What has outlived its delete by so much has outlived it for good.
            let late = |sent_ms: &u64| started.at_ms.saturating_sub(*sent_ms) <= TWIN_MS;
            object.delete_sent_ms = object.delete_sent_ms.filter(late);
            object.managed.clone_from(&started.managed);
            object.sensitive.clone_from(&started.sensitive);
            if let Some(entry) = self.entries.get_mut(address) {
                entry.dependencies.clone_from(&started.dependencies);
            }
        }
        Ok(())
    }

    fn watch(&mut self, started: &Started, nonce: Nonce, since_ms: u64, made: bool) {
        self.watched.push(Watched {
            nonce,
            provider: started.provider.clone(),
            ty: started.address.block.ty.clone(),
            address: started.address.clone(),
            since_ms,
            made,
        });
    }

    fn nonce_of(&self, started: &Started) -> Option<Nonce> {
        started.nonce.clone().or_else(|| {
            let entry = self.entries.get(&started.address)?;
            match &entry.object(started.object.as_ref()?)?.progress {
                Progress::Created { nonce, .. } => Some(nonce.clone()),
                _ => None,
            }
        })
    }

    fn add(
        &mut self,
        started: &Started,
        seen: &Seen,
        progress: Progress,
    ) -> Result<(), IllegalRecord> {
        let entry = self.entries.entry(started.address.clone()).or_insert_with(|| Entry {
            provider: started.provider.clone(),
            current: None,
            deposed: Vec::new(),
            dependencies: Set::new(),
        });
        if let Some(old) = entry.current.take() {
            if !started.deposes {
                return illegal(format_args!("{} was created twice", started.address));
            }
            entry.deposed.push(old);
        }
        entry.provider = started.provider.clone();
        entry.dependencies.clone_from(&started.dependencies);
        entry.current = Some(Object {
            id: seen.id.clone(),
            progress,
            attributes: seen.attributes.clone(),
            managed: started.managed.clone(),
            sensitive: started.sensitive.clone(),
            delete_sent_ms: None,
            made_with: BTreeMap::new(),
        });
        // Where a later phase gives the real name, a second execution is told by its nonce.
        if let Some(nonce) = started.nonce.clone().filter(|_| !started.phase.is_last()) {
            self.watch(started, nonce, started.at_ms, true);
        }
        Ok(())
    }

    fn adopt(
        &mut self,
        address: &Address,
        provider: &Name,
        object: &Object,
        dependencies: &Set<Address>,
    ) -> Result<(), IllegalRecord> {
        if self.entries.get(address).is_some_and(|entry| entry.current.is_some()) {
            return illegal(format_args!("{address} was taken over and exists"));
        }
        let deposed = self.entries.remove(address).map_or_else(Vec::new, |entry| entry.deposed);
        let entry = Entry {
            provider: provider.clone(),
            current: Some(object.clone()),
            deposed,
            dependencies: dependencies.clone(),
        };
        self.entries.insert(address.clone(), entry);
        Ok(())
    }

    fn depose(&mut self, address: &Address, provider: &Name, object: &Object) {
        let entry = self.entries.entry(address.clone()).or_insert_with(|| Entry {
            provider: provider.clone(),
            current: None,
            deposed: Vec::new(),
            dependencies: Set::new(),
        });
        if entry.object(&object.id).is_none() {
            entry.deposed.push(object.clone());
        }
    }

    fn remove(&mut self, address: &Address, id: &ObjectId) -> Result<(), IllegalRecord> {
        let Some(entry) = self.entries.get_mut(address) else {
            return illegal(format_args!("{address} went and was never there"));
        };
        if entry.object(id).is_none() {
            return illegal(format_args!("{address} lost an object {id} that it never had"));
        }
        entry.deposed.retain(|object| object.id != *id);
        if entry.current.as_ref().is_some_and(|object| object.id == *id) {
            entry.current = None;
        }
        if entry.current.is_none() && entry.deposed.is_empty() {
            self.entries.remove(address);
        }
        Ok(())
    }

    fn rename(&mut self, from: &Address, to: &Address) -> Result<(), IllegalRecord> {
        if self.entries.contains_key(to) {
            return illegal(format_args!("{from} moved to {to}, which exists"));
        }
        let Some(entry) = self.entries.remove(from) else {
            return illegal(format_args!("{from} moved and is not in the state"));
        };
        self.entries.insert(to.clone(), entry);
        for entry in self.entries.values_mut() {
            if entry.dependencies.remove(from) {
                entry.dependencies.insert(to.clone());
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The object with this id, current or deposed.
    pub fn object(&self, id: &ObjectId) -> Option<&Object> {
        self.current.iter().chain(&self.deposed).find(|object| object.id == *id)
    }

    fn object_mut(&mut self, id: &ObjectId) -> Option<&mut Object> {
        self.current.iter_mut().chain(&mut self.deposed).find(|object| object.id == *id)
    }
}

#[cfg(test)]
mod tests;
