//! The planted bugs: mistakes that people make, planted one at a time to see whether the simulation finds
//! them.
//!
//! Each bug is a layer around a port, or a change of what a run is given. Product code has no switch for
//! them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::address::Name;
use engine::journal::{Outcome, ProgramKind, Record, Resolution};
use engine::plan::{Plan, StepId};
use engine::schema::{Operation, ProviderSchema, Sends, TypeSchema};
use engine::state::{Nonce, ObjectId, Progress, Snapshot};
use engine::value::{Attributes, Value};
use provider_port::{Call, Error, Kind, Lookup, Object, Provider, Reply};
use state::mark::Purpose;
use state::{Holder, Loaded, LockedStore, Store, StoreError, Version};

use crate::api_variant::Harness;
use crate::schedule::{Schedule, StoreKind};

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    // The journal and the state.
    SkipStarted,
    SkipFinished,
    SkipResolved,
    SwapRecords,
    AcknowledgeBeforeDurable,
    BelieveFailedWrites,
    NoFence,
    LockKeepsNobodyOut,
    SnapshotLosesTheTail,
    ForgetPending,
    ForgetWatched,
    ForgetDeposed,
    ForgetWhatIsLeft,
    ResultBeforeIntent,
    SkipAdopted,
    AdoptAnother,
    AbsentAtZero,
    FailuresUnrecorded,
    ForgetPendingInBetween,
    LockWaitIgnored,
    // The calls.
    ResendAfterTimeout,
    BelieveUnavailable,
    NotSentIsDone,
    ThrottledIsDone,
    RefusedDeleteIsDone,
    MatchByName,
    DeleteByName,
    UpdateByName,
    UnreadableIsGone,
    UnlistedIsGone,
    OtherNonceOnTheWire,
    CallBeyondThePlan,
    DeltaInsteadOfValue,
    ManagedIsChanged,
    RepeatWhatThePlanSaw,
    // The inputs and the course of a run.
    SameNonce,
    NoRecovery,
    StalePlan,
    CreateActive,
    NoDrain,
    ForgetDependencies,
    ReverseOrder,
    SkipActivation,
    ForgetDeletes,
    WatchInSeconds,
    NobodyIsAsked,
    StopNotHeeded,
    NothingIsCompared,
    // The wire.
    ResendAfterLoss,
    LostIsNotSent,
    HtmlIsSuccess,
    InternalIsRefused,
    ErrorsAreRefusals,
    OnlyTheFirstPage,
    NoPermit,
    // The disk.
    NoSync,
    NoFolderSync,
    TornEndsStay,
    ShortWritesAreWrites,
}

impl Bug {
    /// Returns true if a schedule has the layer in which the bug is.
    pub(crate) fn is_in(self, schedule: &Schedule) -> bool {
        match self {
            Self::ResendAfterLoss
            | Self::LostIsNotSent
            | Self::HtmlIsSuccess
            | Self::InternalIsRefused
            | Self::ErrorsAreRefusals
            | Self::OnlyTheFirstPage
            | Self::NoPermit => schedule.harness == Harness::Http,
            Self::NoSync | Self::NoFolderSync | Self::TornEndsStay | Self::ShortWritesAreWrites => {
                schedule.store == StoreKind::File
            }
            Self::CreateActive | Self::NoDrain | Self::ForgetWhatIsLeft => {
                schedule.harness == Harness::Port
            }
            _ => true,
        }
    }
}

/// All bugs, each with a seed that shows it.
pub(crate) const ALL: &[(Bug, u64)] = &[
    (Bug::SkipStarted, 0),
    (Bug::SkipFinished, 0),
    (Bug::SkipResolved, 2),
    (Bug::SwapRecords, 1),
    (Bug::AcknowledgeBeforeDurable, 0),
    (Bug::BelieveFailedWrites, 2),
    (Bug::NoFence, 1),
    (Bug::LockKeepsNobodyOut, 10),
    (Bug::SnapshotLosesTheTail, 0),
    (Bug::ForgetPending, 3),
    (Bug::ForgetWatched, 4),
    (Bug::ForgetDeposed, 26),
    (Bug::ForgetWhatIsLeft, 25),
    (Bug::ResultBeforeIntent, 0),
    (Bug::SkipAdopted, 9),
    (Bug::AdoptAnother, 9),
    (Bug::ResendAfterTimeout, 66),
    (Bug::BelieveUnavailable, 2),
    (Bug::NotSentIsDone, 62),
    (Bug::ThrottledIsDone, 21),
    (Bug::RefusedDeleteIsDone, 186),
    (Bug::MatchByName, 130),
    (Bug::DeleteByName, 0),
    (Bug::UpdateByName, 17),
    (Bug::UnreadableIsGone, 82),
    (Bug::UnlistedIsGone, 22),
    (Bug::OtherNonceOnTheWire, 0),
    (Bug::CallBeyondThePlan, 0),
    (Bug::DeltaInsteadOfValue, 3),
    (Bug::SameNonce, 1),
    (Bug::NoRecovery, 1),
    (Bug::StalePlan, 302),
    (Bug::CreateActive, 4),
    (Bug::NoDrain, 0),
    (Bug::ForgetDependencies, 0),
    (Bug::ReverseOrder, 0),
    (Bug::SkipActivation, 0),
    (Bug::ForgetDeletes, 0),
    (Bug::ResendAfterLoss, 107),
    (Bug::LostIsNotSent, 107),
    (Bug::HtmlIsSuccess, 587),
    (Bug::InternalIsRefused, 245),
    (Bug::ErrorsAreRefusals, 665),
    (Bug::OnlyTheFirstPage, 11),
    (Bug::NoPermit, 53),
    (Bug::NoSync, 79),
    (Bug::NoFolderSync, 317),
    (Bug::TornEndsStay, 303),
    (Bug::ShortWritesAreWrites, 177),
    (Bug::AbsentAtZero, 20),
    (Bug::FailuresUnrecorded, 1),
    (Bug::ForgetPendingInBetween, 3),
    (Bug::LockWaitIgnored, 10),
    (Bug::ManagedIsChanged, 0),
    (Bug::WatchInSeconds, 46),
    (Bug::NobodyIsAsked, 889),
    (Bug::StopNotHeeded, 60),
    (Bug::NothingIsCompared, 302),
    (Bug::RepeatWhatThePlanSaw, 503),
];

/// Returns the schema that runs see, changed if the bug is in the schema.
pub(crate) fn schema(bug: Option<Bug>, harness: Harness) -> Arc<ProviderSchema> {
    let plain = harness.schema();
    if harness == Harness::Http || !matches!(bug, Some(Bug::CreateActive | Bug::NoDrain)) {
        return plain;
    }
    let mut schema = (*plain).clone();
    let mut edit = |name: &str, edit: &dyn Fn(&mut TypeSchema)| {
        let ty = schema.types.get_mut(name).unwrap();
        edit(Arc::make_mut(ty));
    };
    match bug {
        Some(Bug::CreateActive) => edit("unit", &|unit| {
            let sends = ["disk_id", "image_id", "workers"].map(Name::from);
            unit.create[0].phases[0].sends = Sends::These(BTreeSet::from(sends));
        }),
        Some(Bug::NoDrain) => edit("unit", &|unit| {
            unit.delete[0].phases.remove(0);
        }),
        _ => {}
    }
    Arc::new(schema)
}

/// Changes the plan that a run executes, if the bug is in the plan. The run begins at `now_ms` from `state`.
pub(crate) fn plan(bug: Option<Bug>, plan: &mut Plan, state: &Snapshot, now_ms: u64) {
    match bug {
        Some(Bug::WatchInSeconds) => {
            let seconds = 30 * 24 * 60 * 60;
            let old = state.watched.iter().filter(|own| now_ms - own.since_ms > seconds);
            for own in old {
                plan.seen.push(Record::Unwatched { nonce: own.nonce.clone() });
            }
        }
        Some(Bug::ForgetDependencies) => {
            let owners: Vec<usize> = plan.steps.iter().map(|step| step.change).collect();
            for step in &mut plan.steps {
                let own = step.change;
                // Only deletes forget the steps of other changes that they wait for. A create needs such
                // steps to fill its references in.
                if step.phase.is_some_and(|phase| phase.kind == ProgramKind::Delete) {
                    step.needs.retain(|need| owners[need.0 as usize] == own);
                }
            }
        }
        Some(Bug::ReverseOrder) => {
            // A delete that waits for no step may come before the steps that it should follow.
            for step in &mut plan.steps {
                if step.phase.is_some_and(|phase| phase.kind == ProgramKind::Delete) {
                    step.needs.clear();
                }
            }
        }
        Some(Bug::SkipActivation) => {
            let skipped: BTreeSet<StepId> = plan
                .steps
                .iter()
                .filter(|step| step.operation == Operation::Activate)
                .map(|step| step.id)
                .collect();
            drop_steps(plan, &skipped);
        }
        Some(Bug::ForgetDeletes) => {
            let skipped: BTreeSet<StepId> = plan
                .steps
                .iter()
                .filter(|step| step.operation == Operation::Delete)
                .map(|step| step.id)
                .collect();
            drop_steps(plan, &skipped);
        }
        _ => {}
    }
}

/// Removes steps from a plan. A step is found by its place, so the remaining steps get new ids.
fn drop_steps(plan: &mut Plan, skipped: &BTreeSet<StepId>) {
    let kept: Vec<StepId> =
        plan.steps.iter().map(|step| step.id).filter(|id| !skipped.contains(id)).collect();
    let place = |id: &StepId| {
        let place = kept.iter().position(|own| own == id)?;
        Some(StepId(u32::try_from(place).unwrap()))
    };
    plan.steps.retain(|step| !skipped.contains(&step.id));
    for step in &mut plan.steps {
        step.id = place(&step.id).unwrap();
        step.needs = step.needs.iter().filter_map(place).collect();
    }
}

/// Returns the provider that a run calls, with a layer for the bug.
pub(crate) fn provider(bug: Option<Bug>, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
    match bug {
        Some(bug) => Arc::new(BadProvider { bug, inner }),
        None => inner,
    }
}

struct BadProvider {
    bug: Bug,
    inner: Arc<dyn Provider>,
}

impl BadProvider {
    /// Returns the object whose name is the one that a call is about; None if there is none.
    async fn by_name(&self, call: &Call<'_>) -> Option<ObjectId> {
        let live = call.live.or(Some(call.desired))?;
        let name = live.get("name")?.as_str()?.to_owned();
        let all = self.inner.list(call.ty).await.ok()?;
        let named = all
            .into_iter()
            .find(|object| object.attributes.get("name").and_then(Value::as_str) == Some(&name))?;
        Some(named.id)
    }

    async fn redirected(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let id = self.by_name(call).await;
        let id = id.as_ref().or(call.id);
        self.inner.perform(&Call { id, ..copy(call) }).await
    }

    /// Returns an answer as the bug misjudges it.
    fn believed(&self, call: &Call<'_>, answer: Result<Reply, Error>) -> Result<Reply, Error> {
        let Err(error) = answer else { return answer };
        let deletes = call.phase.kind == ProgramKind::Delete;
        let done = match (self.bug, &error.kind) {
            (Bug::BelieveUnavailable, Kind::InDoubt) => {
                return Err(Error::new(Kind::Rejected, "unavailable"));
            }
            (Bug::NotSentIsDone, Kind::NotSent) => call.id.is_some(),
            (Bug::ThrottledIsDone, Kind::Throttled) => call.id.is_some(),
            (Bug::RefusedDeleteIsDone, Kind::Rejected) => deletes,
            _ => false,
        };
        let last = deletes && call.phase.is_last();
        let object = call
            .id
            .filter(|_| !last)
            .map(|id| Object { id: id.clone(), attributes: call.desired.clone() });
        if done { Ok(Reply { object }) } else { Err(error) }
    }
}

pub(crate) fn copy<'a>(call: &Call<'a>) -> Call<'a> {
    Call {
        ty: call.ty,
        phase: call.phase,
        id: call.id,
        nonce: call.nonce,
        desired: call.desired,
        live: call.live,
        changed: call.changed,
        secrets: call.secrets,
        permit: call.permit,
        progress: call.progress,
    }
}

#[async_trait]
impl Provider for BadProvider {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.inner.schema()
    }

    fn settle(&self) -> Duration {
        self.inner.settle()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        self.inner.list(ty).await
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        match self.bug {
            Bug::UnreadableIsGone => {
                self.inner.read(ty, id).await.map_err(|error| match error.kind {
                    Kind::InDoubt => Error::new(Kind::NotFound, "no answer"),
                    _ => error,
                })
            }
            Bug::UnlistedIsGone => {
                let listed = self.inner.list(ty).await?;
                let own = listed.into_iter().find(|object| object.id == *id);
                own.ok_or_else(|| Error::new(Kind::NotFound, "not listed"))
            }
            _ => self.inner.read(ty, id).await,
        }
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        if self.bug != Bug::MatchByName {
            return self.inner.find(ty, create).await;
        }
        let name = create.desired.and_then(|desired| desired.get("name")).cloned();
        let mut all = self.inner.list(ty).await?;
        all.retain(|object| {
            let own = object.attributes.get("name");
            own == name.as_ref()
                || own.and_then(Value::as_str).is_some_and(|own| create.nonce.is(own))
        });
        Ok(all)
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let creates = call.phase.kind == ProgramKind::Create && call.phase.phase == 0;
        match self.bug {
            Bug::ResendAfterTimeout if creates => match self.inner.perform(call).await {
                Err(error) if error.kind == Kind::InDoubt => self.inner.perform(call).await,
                answer => answer,
            },
            Bug::DeleteByName if call.phase.kind == ProgramKind::Delete => {
                self.redirected(call).await
            }
            Bug::UpdateByName if call.phase.kind == ProgramKind::Update => {
                self.redirected(call).await
            }
            Bug::OtherNonceOnTheWire if creates => {
                let other = Nonce::from_random([9; 16]);
                self.inner.perform(&Call { nonce: Some(&other), ..copy(call) }).await
            }
            Bug::CallBeyondThePlan if creates => {
                let made = self.inner.perform(call).await?;
                let Some(object) = &made.object else { return Ok(made) };
                let mut call = Call { id: Some(&object.id), nonce: None, ..copy(call) };
                call.phase.phase = 1;
                self.inner.perform(&call).await
            }
            Bug::DeltaInsteadOfValue if call.phase.kind == ProgramKind::Update => {
                let mut desired: Attributes = call.desired.clone();
                let size = |attributes: &Attributes| match attributes.get("size") {
                    Some(Value::Integer(size)) => Some(*size),
                    _ => None,
                };
                if let (Some(new), Some(old)) = (size(&desired), call.live.and_then(size)) {
                    desired.insert("size".into(), Value::Integer(new + (new - old)));
                }
                self.inner.perform(&Call { desired: &desired, ..copy(call) }).await
            }
            Bug::ManagedIsChanged if call.phase.kind == ProgramKind::Update => {
                let changed: BTreeSet<Name> = call.desired.keys().cloned().collect();
                self.inner.perform(&Call { changed: &changed, ..copy(call) }).await
            }
            Bug::RepeatWhatThePlanSaw if call.phase.kind == ProgramKind::Update => {
                let mut desired: Attributes = call.desired.clone();
                let live = call.live.into_iter().flatten();
                let is_old = |name: &Name, value: &Value| {
                    !call.changed.contains(name) && !matches!(value, Value::Sealed(_))
                };
                let old = live.filter(|(name, value)| is_old(name, value));
                desired.extend(old.map(|(name, value)| (name.clone(), value.clone())));
                self.inner.perform(&Call { desired: &desired, ..copy(call) }).await
            }
            Bug::NoPermit => {
                let call = Call { permit: &provider_port::Always, ..copy(call) };
                self.inner.perform(&call).await
            }
            _ => {
                let answer = self.inner.perform(call).await;
                self.believed(call, answer)
            }
        }
    }
}

/// Returns the store that a run writes to, with a layer for the bug.
pub(crate) fn store(bug: Option<Bug>, inner: impl Store + 'static) -> Box<dyn Store> {
    match bug {
        Some(bug) => Box::new(BadStore { bug, inner: Box::new(inner) }),
        None => Box::new(inner),
    }
}

struct BadStore {
    bug: Bug,
    inner: Box<dyn Store>,
}

#[async_trait]
impl Store for BadStore {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.inner.load().await
    }

    async fn lock_for(
        &self,
        purpose: Purpose,
        holder: &Holder,
        wait: Duration,
    ) -> Result<Box<dyn LockedStore>, StoreError> {
        let goes_on = match self.bug {
            Bug::LockKeepsNobodyOut => true,
            Bug::LockWaitIgnored => !wait.is_zero(),
            _ => false,
        };
        let wait = if self.bug == Bug::LockWaitIgnored { Duration::ZERO } else { wait };
        let held = match self.inner.lock_for(purpose, holder, wait).await {
            Err(StoreError::Locked(_)) if goes_on => {
                let loaded = self.inner.load().await?;
                Box::new(NoLock { loaded })
            }
            held => held?,
        };
        Ok(Box::new(BadHeld { bug: self.bug, held, kept: Mutex::default(), is_running: false }))
    }

    async fn restore(&self, holder: &Holder, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.inner.restore(holder, snapshot).await
    }

    fn place(&self) -> String {
        self.inner.place()
    }
}

/// The lock of a run that should have been kept out. The writes of the run go nowhere.
struct NoLock {
    loaded: Loaded,
}

#[async_trait]
impl LockedStore for NoLock {
    fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    async fn initialise(&mut self, _: &Snapshot) -> Result<Version, StoreError> {
        Ok(Version("0".to_owned()))
    }

    async fn append(&mut self, _: &[Record]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn save(&mut self, _: &Snapshot, version: &Version) -> Result<Version, StoreError> {
        Ok(version.clone())
    }

    fn journal_bytes(&self) -> u64 {
        0
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Changes a record so that it takes over the other one of two offered objects.
fn adopt_another(record: &mut Record) {
    if let Record::Adopted { object, deposed: false, .. } = record {
        let (id, other) = (&*object.id.0, [("offer0", "offer1"), ("offer1", "offer0")]);
        if let Some((one, two)) = other.iter().find(|(one, _)| id.contains(one)) {
            object.id = ObjectId(id.replace(one, two).as_str().into());
        }
    }
}

/// Changes a record so that an absence counts as believed at time 0, in 1970.
fn forget_when(record: &mut Record) {
    if let Record::Resolved { resolution: Resolution::Absent { at_ms }, .. } = record {
        *at_ms = 0;
    }
}

struct BadHeld {
    bug: Bug,
    held: Box<dyn LockedStore>,
    /// The records that are acknowledged and not yet written.
    kept: Mutex<Vec<Record>>,
    /// True if a run began and did not end.
    is_running: bool,
}

impl BadHeld {
    fn spoil(&self, records: &[Record]) -> Vec<Record> {
        let mut records = records.to_vec();
        match self.bug {
            Bug::SkipStarted => records.retain(|r| !matches!(r, Record::Started(_))),
            Bug::SkipFinished => records
                .retain(|r| !matches!(r, Record::Finished { outcome: Outcome::Done { .. }, .. })),
            Bug::FailuresUnrecorded => records.retain(|r| {
                !matches!(r, Record::Finished { outcome: Outcome::NoEffect { .. }, .. })
            }),
            Bug::AbsentAtZero => records.iter_mut().for_each(forget_when),
            Bug::SkipResolved => records.retain(|r| !matches!(r, Record::Resolved { .. })),
            Bug::SwapRecords => records.reverse(),
            Bug::SkipAdopted => {
                records.retain(|r| !matches!(r, Record::Adopted { deposed: false, .. }));
            }
            Bug::AdoptAnother => records.iter_mut().for_each(adopt_another),
            Bug::ResultBeforeIntent => {
                records.sort_by_key(|r| matches!(r, Record::Started(_)));
                // `Started` records wait for the next write.
                let mut kept = self.kept.lock().unwrap();
                let first = records.iter().position(|r| matches!(r, Record::Started(_)));
                let late = records.split_off(first.unwrap_or(records.len()));
                records.splice(0..0, kept.drain(..));
                kept.extend(late);
            }
            Bug::AcknowledgeBeforeDurable => {
                let mut kept = self.kept.lock().unwrap();
                return std::mem::replace(&mut *kept, records);
            }
            _ => {}
        }
        records
    }
}

#[async_trait]
impl LockedStore for BadHeld {
    fn loaded(&self) -> &Loaded {
        self.held.loaded()
    }

    async fn initialise(&mut self, snapshot: &Snapshot) -> Result<Version, StoreError> {
        self.held.initialise(snapshot).await
    }

    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        for record in records {
            match record {
                Record::RunOpened { .. } => self.is_running = true,
                Record::RunClosed { .. } => self.is_running = false,
                _ => {}
            }
        }
        let records = self.spoil(records);
        match self.held.append(&records).await {
            Err(StoreError::Failed { .. }) if self.bug == Bug::BelieveFailedWrites => Ok(()),
            Err(StoreError::Fenced(_)) if self.bug == Bug::NoFence => Ok(()),
            result => result,
        }
    }

    async fn save(
        &mut self,
        snapshot: &Snapshot,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        let mut snapshot = snapshot.clone();
        match self.bug {
            Bug::SnapshotLosesTheTail => {
                let newest = snapshot.entries.keys().next_back().cloned();
                newest.map(|address| snapshot.entries.remove(&address));
            }
            Bug::ForgetPending => snapshot.pending.clear(),
            Bug::ForgetPendingInBetween if self.is_running => snapshot.pending.clear(),
            Bug::AbsentAtZero => {
                for watched in snapshot.watched.iter_mut().filter(|watched| !watched.answered) {
                    watched.since_ms = 0;
                }
            }
            Bug::ForgetWatched => snapshot.watched.clear(),
            Bug::ForgetWhatIsLeft => {
                let entries = snapshot.entries.values_mut();
                for object in entries.filter_map(|entry| entry.current.as_mut()) {
                    if matches!(
                        object.progress,
                        Progress::Updating { .. } | Progress::Created { done: 2.., .. }
                    ) {
                        object.progress = Progress::Ready;
                    }
                }
            }
            Bug::ForgetDeposed => {
                for entry in snapshot.entries.values_mut() {
                    entry.deposed.clear();
                }
            }
            _ => {}
        }
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        if !kept.is_empty() {
            self.held.append(&kept).await?;
        }
        self.held.save(&snapshot, expected).await
    }

    fn journal_bytes(&self) -> u64 {
        self.held.journal_bytes()
    }

    async fn release(self: Box<Self>) -> Result<(), StoreError> {
        self.held.release().await
    }
}
