//! The simulated cloud: its objects, the requests that are under way, the durable records, and all
//! violations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{Display, Write as _};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use engine::address::Name;
use engine::journal::{CallId, Outcome, ProgramKind, Record, Started};
use engine::schema::{ProviderSchema, Unset};
use engine::state::{Nonce, ObjectId, Watched};
use engine::value::{Attributes, Value};
use provider_port::{Error, Kind};

use crate::api_variant::{Harness, PUBLIC};
use crate::keys;
use crate::rng::Rng;
use crate::shapes;
use crate::tickets;

/// The longest time by which a list or a read lags, in milliseconds.
pub(crate) const STALE_MS: u64 = 5_000;

/// The settle time in milliseconds: an absence must last that long to be believed. It is longer than the lag
/// of lists.
pub(crate) const SETTLE_MS: u64 = 10_000;

/// The time in milliseconds for which a call that sends a whole object may repeat what a look showed.
pub(crate) const FRESH_MS: u64 = 30_000;

/// The time in milliseconds within which a request takes effect, if it takes effect at all. Some creates take
/// longer: see `VERY_LATE_MS` and `ACCEPTED_MS`.
pub(crate) const LATE_MS: u64 = 90_000;

/// The longest time after which a create takes effect, in milliseconds: 20 days. Plumb looks for its one-time
/// name for longer.
pub(crate) const VERY_LATE_MS: u64 = 20 * 24 * 60 * 60 * 1_000;

/// The longest extra delay of a create that is recorded as accepted, in milliseconds.
const ACCEPTED_MS: u64 = 5 * 60 * 1_000;

/// A live object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    pub(crate) ty: Name,
    pub(crate) attributes: Attributes,
    /// The address and the nonce that the object was made for; None for an object of a stranger.
    pub(crate) owner: Option<(String, Nonce)>,
    /// True if the object was mounted after it was made or changed. It matters only for types that have to be
    /// mounted.
    pub(crate) mounted: bool,
}

impl Live {
    pub(crate) fn name(&self) -> &str {
        self.attributes["name"].as_str().unwrap()
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        match self.attributes.get(name) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    /// Returns true if an attribute has this value. Null, an empty text and `PUBLIC` all mean that there is
    /// no value.
    pub(crate) fn has(&self, name: &str, value: &Value) -> bool {
        let is_none = |value: &Value| match value {
            Value::Null => true,
            value => value.as_str().is_some_and(|text| text.is_empty() || text == PUBLIC),
        };
        let own = self.attributes.get(name).unwrap_or(&Value::Null);
        own.same(value) || is_none(own) && is_none(value)
    }

    /// Returns true if the object has its own name, and not the one-time name that it was made under.
    pub(crate) fn is_named(&self) -> bool {
        self.owner.as_ref().is_none_or(|(_, nonce)| !nonce.is_in(self.name()))
    }
}

/// A request as a server sees it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) ty: Name,
    pub(crate) kind: ProgramKind,
    pub(crate) creates: bool,
    pub(crate) ends: bool,
    pub(crate) id: Option<ObjectId>,
    pub(crate) nonce: Option<Nonce>,
    pub(crate) sent: Attributes,
    /// The address in the durable record of the call.
    pub(crate) address: String,
    /// The run and the id of the call; None if no durable record names it.
    pub(crate) call: Option<(usize, CallId)>,
    /// The word for the request in the trace, such as `create` or `change`.
    pub(crate) words: &'static str,
}

/// All objects by their ids. An object is shared, because earlier versions of this map are kept for lists
/// that lag.
pub(crate) type Objects = BTreeMap<ObjectId, Arc<Live>>;

/// A durable `Started` record, and what is known of the end of its call.
#[derive(Clone)]
pub(crate) struct Intent {
    pub(crate) run: usize,
    pub(crate) started: Arc<Started>,
    pub(crate) at_ms: u64,
    /// True if another run recorded the end of the call.
    pub(crate) ended: bool,
    /// True if the call was sent.
    pub(crate) was_sent: bool,
    /// The doubt that is recorded about the call.
    pub(crate) doubt: Doubt,
}

/// The doubt that is recorded about a call without a recorded end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    None,
    /// The outcome of the call is unknown.
    Lost,
    /// The API accepted the call, and its object does not show yet.
    Accepted,
}

/// The simulated cloud, with what is known of the records of all runs.
pub(crate) struct Cloud {
    pub(crate) objects: Objects,
    /// The objects of strangers, as they were made.
    pub(crate) strangers: Objects,
    past: VecDeque<(u64, Objects)>,
    late: Vec<(u64, Request)>,
    next_id: u64,
    /// The time at which each object was made, in milliseconds since the start of the simulation. Offered
    /// objects have no such time.
    born: BTreeMap<ObjectId, u64>,
    /// The durable intents whose own run has recorded no end. An intent stays here if another run recorded
    /// its end.
    pub(crate) open: Vec<Intent>,
    /// The lineage, the serial and the next call number of the state after the last run; None if there was no
    /// state.
    pub(crate) last: Option<(String, u64, u64)>,
    /// The same three for the state that a store last confirmed as durable. A power cut takes nothing away
    /// that was confirmed.
    pub(crate) told: Option<(String, u64, u64)>,
    /// The one-time names of creates that the server executed twice.
    doubled: BTreeSet<Nonce>,
    /// The calls that took effect.
    happened: BTreeSet<(usize, CallId)>,
    /// The calls that were answered, and whose record says that they had no effect.
    denied: BTreeSet<(usize, CallId)>,
    /// The calls that the server executed twice.
    repeated: BTreeSet<(usize, CallId)>,
    /// All imports that any spec asked for: addresses and ids.
    pub(crate) asked_for: BTreeSet<(String, ObjectId)>,
    /// The objects that strangers deleted.
    pub(crate) taken_away: BTreeSet<ObjectId>,
    /// True if the power was cut and no check of the state has followed yet.
    pub(crate) was_cut: bool,
    pub(crate) violations: Vec<String>,
    pub(crate) mutations: u64,
    pub(crate) harness: Harness,
    /// The time until which an endpoint without workers still has pods, or an image still counts as used, in
    /// milliseconds.
    lingering: BTreeMap<ObjectId, u64>,
    /// The objects that a late request or a stranger touched, in no known order with the calls of runs.
    disordered: BTreeSet<ObjectId>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    hash: u64,
    pub(crate) lines: Option<Vec<String>>,
    pub(crate) start: tokio::time::Instant,
}

/// A shared handle to the simulated cloud.
pub(crate) type Shared = Arc<Mutex<Cloud>>;

pub(crate) fn lock(cloud: &Shared) -> MutexGuard<'_, Cloud> {
    cloud.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The FNV-1a hash of the text that is written to it.
struct Hash(u64);

impl std::fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl Cloud {
    pub(crate) fn new(harness: Harness, verbose: bool) -> Self {
        Self {
            objects: Objects::new(),
            strangers: Objects::new(),
            past: VecDeque::new(),
            late: Vec::new(),
            next_id: 0,
            born: BTreeMap::new(),
            open: Vec::new(),
            last: None,
            told: None,
            doubled: BTreeSet::new(),
            happened: BTreeSet::new(),
            denied: BTreeSet::new(),
            repeated: BTreeSet::new(),
            asked_for: BTreeSet::new(),
            taken_away: BTreeSet::new(),
            was_cut: false,
            violations: Vec::new(),
            mutations: 0,
            harness,
            lingering: BTreeMap::new(),
            disordered: BTreeSet::new(),
            counts: BTreeMap::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            lines: verbose.then(Vec::new),
            start: tokio::time::Instant::now(),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap()
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&mut self, what: impl Display) {
        let now = self.now_ms();
        let mut hash = Hash(self.hash);
        write!(hash, "{now} {what}").unwrap();
        self.hash = hash.0;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>8} {what}"));
        }
    }

    pub(crate) fn violation(&mut self, what: String) {
        self.note(format_args!("VIOLATION {what}"));
        self.violations.push(what);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Executes the late requests whose time has come.
    pub(crate) fn catch_up(&mut self) {
        let now = self.now_ms();
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = later;
        due.sort_by_key(|(at, _)| *at);
        for (at, request) in due {
            self.count("late effects");
            let touched =
                |cloud: &Self| request.id.clone().filter(|id| cloud.objects.contains_key(id));
            let was_mounted = touched(self).is_some_and(|id| self.objects[&id].mounted);
            let done = self.effect_at(at, &request);
            // A late request leaves a disk mounted: a run that does not see the change cannot mount the disk
            // again.
            if let Some(id) = touched(self).filter(|_| was_mounted) {
                self.objects.get_mut(&id).map(Arc::make_mut).unwrap().mounted = true;
            }
            self.note(format_args!("late {} {:?}", request.words, done.is_ok()));
            let made = done.ok().flatten();
            self.disordered.extend(request.id.into_iter().chain(made));
        }
    }

    pub(crate) fn postpone(&mut self, at_ms: u64, request: Request) {
        self.late.push((at_ms, request));
    }

    /// Delays a create that is recorded as accepted: it may take longer than other late creates.
    fn take_time(&mut self, call: (usize, CallId)) {
        for (at, request) in &mut self.late {
            if request.creates && request.call == Some(call) {
                *at += Rng::new(*at).below(ACCEPTED_MS);
            }
        }
    }

    /// Returns true if an accepted create of a key or a ticket has no recorded end. Such an object has no
    /// one-time name, and Plumb gives up its create only after an hour.
    pub(crate) fn awaits_what_was_accepted(&self) -> bool {
        let is_chosen = |ty: &str| [keys::TYPE, tickets::TYPE].contains(&ty);
        self.open.iter().any(|intent| {
            intent.doubt == Doubt::Accepted
                && !intent.ended
                && is_chosen(&intent.started.address.block.ty)
        })
    }

    /// Returns the time until the last late request takes effect, in milliseconds; 0 if there is none.
    pub(crate) fn until_all_came(&self) -> u64 {
        let last = self.late.iter().map(|(at, _)| *at).max();
        last.unwrap_or_default().saturating_sub(self.now_ms())
    }

    /// Keeps the objects as they are since `since_ms`, for looks that lag. The time may be in the past, if no
    /// look came in between.
    fn remember(&mut self, since_ms: u64) {
        let now = self.now_ms();
        let last = self.past.back().map_or(0, |(at, _)| *at);
        self.past.push_back((since_ms.max(last), self.objects.clone()));
        while self.past.len() > 1 && self.past[1].0 + STALE_MS < now {
            self.past.pop_front();
        }
    }

    /// Returns the objects as they were `ms` milliseconds ago.
    pub(crate) fn ago(&self, ms: u64) -> Objects {
        let then = self.now_ms().saturating_sub(ms);
        let past = self.past.iter().rev().find(|(at, _)| *at <= then);
        past.map_or_else(Objects::new, |(_, objects)| objects.clone())
    }

    /// Returns true if an object has this value, or had it so recently that a look may still show it.
    pub(crate) fn may_show(&self, id: &ObjectId, name: &str, value: &Value) -> bool {
        let all = self.past.iter().map(|(_, objects)| objects).chain([&self.objects]);
        let mut own = all.filter_map(|objects| objects.get(id));
        own.any(|live| live.has(name, value))
    }

    /// Returns an object as a read shows it that lags by `ago_ms` milliseconds. A read never denies an object
    /// that exists.
    pub(crate) fn seen(&self, id: &ObjectId, ago_ms: u64) -> Option<Arc<Live>> {
        let old = if ago_ms == 0 { None } else { self.ago(ago_ms).remove(id) };
        old.or_else(|| self.objects.get(id).cloned())
    }

    fn new_id(&mut self, ty: &str) -> ObjectId {
        self.next_id += 1;
        let id = ObjectId(format!("{ty}-{:04}", self.next_id).into());
        self.born.insert(id.clone(), self.now_ms());
        id
    }

    /// Returns true if a list may still leave an object out: for an hour after it was made, and always if its
    /// time is unknown. Plumb watches one-time names for an hour at least.
    pub(crate) fn is_young(&self, id: &ObjectId) -> bool {
        let born = self.born.get(id).copied().unwrap_or(u64::MAX);
        self.now_ms() < born.saturating_add(Watched::ANSWERED_MS)
    }

    /// Makes an object of a stranger.
    pub(crate) fn put(&mut self, ty: &str, name: &str) {
        self.catch_up();
        let id = self.new_id(ty);
        let mut attributes = Attributes::new();
        attributes.insert("id".into(), Value::String(id.0.clone()));
        attributes.insert("name".into(), Value::string(name));
        if ty == "disk" {
            attributes.insert("size".into(), Value::Integer(3));
            attributes.insert("zone".into(), Value::string(self.harness.say("eu")));
        } else {
            attributes.insert("workers".into(), Value::Integer(1));
        }
        self.note(format_args!("stranger makes {id} {name}"));
        let live = Arc::new(Live { ty: ty.into(), attributes, owner: None, mounted: true });
        self.strangers.insert(id.clone(), live.clone());
        self.objects.insert(id, live);
        self.remember(self.now_ms());
    }

    /// Returns the number of pods of an endpoint: 1 while it may have workers and for a while after,
    /// otherwise 0.
    pub(crate) fn pods(&self, id: &ObjectId) -> usize {
        let works = self.objects.get(id).is_some_and(|live| live.number("workers") > Some(0));
        usize::from(works || self.was_used(id))
    }

    /// Returns true if a moment ago an image was used or an endpoint had workers.
    pub(crate) fn was_used(&self, id: &ObjectId) -> bool {
        self.lingering.get(id).is_some_and(|until| self.now_ms() < *until)
    }

    pub(crate) fn linger(&mut self, id: ObjectId, for_ms: u64) {
        let until = self.now_ms() + for_ms;
        self.lingering.insert(id, until);
    }

    /// Clears the after-effects of faults: no image or endpoint lingers, and no object is disordered.
    pub(crate) fn calm_down(&mut self) {
        self.disordered.clear();
        self.lingering.clear();
    }

    /// Notes that something touched an object in no known order with the calls of runs.
    pub(crate) fn disorder(&mut self, id: ObjectId) {
        self.disordered.insert(id);
    }

    pub(crate) fn is_disordered(&self, id: &ObjectId) -> bool {
        self.disordered.contains(id)
    }

    /// Returns true if nothing happened, and nothing will happen, that a run cannot know of when it reports
    /// success.
    pub(crate) fn is_orderly(&self) -> bool {
        self.disordered.is_empty() && self.late.is_empty() && self.doubled.is_empty()
    }

    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut Objects)) {
        // Requests that are due take effect first, so that looks that lag see everything in order.
        self.catch_up();
        edit(&mut self.objects);
        self.remember(self.now_ms());
    }

    /// Executes a request now. Returns the id of its object, or None if the request deleted it.
    pub(crate) fn effect(&mut self, request: &Request) -> Result<Option<ObjectId>, Error> {
        self.effect_at(self.now_ms(), request)
    }

    fn effect_at(&mut self, at_ms: u64, request: &Request) -> Result<Option<ObjectId>, Error> {
        let done = self.change(request);
        if let Some(call) = request.call.filter(|_| done.is_ok()) {
            self.happened.insert(call);
            if self.denied.contains(&call) {
                let (run, call) = call;
                let what = "happens, and is recorded not to have happened";
                self.violation(format!("r{run}: {call} {what}"));
            }
        }
        self.remember(at_ms);
        self.look_for_twins();
        done
    }

    fn change(&mut self, request: &Request) -> Result<Option<ObjectId>, Error> {
        if request.creates {
            if self.refuses_name(request) {
                return Err(Error::new(Kind::Rejected, "the name is taken"));
            }
            let id = if &*request.ty == tickets::TYPE {
                self.given_id(request)
            } else {
                self.new_id(&request.ty)
            };
            let mut attributes = request.sent.clone();
            attributes.insert("id".into(), Value::String(id.0.clone()));
            let nonce = request.nonce.clone().unwrap();
            if !attributes.contains_key("name") {
                attributes.insert("name".into(), Value::String(nonce.0.clone()));
            }
            let owner = Some((request.address.clone(), nonce));
            let live = Live { ty: request.ty.clone(), attributes, owner, mounted: false };
            self.objects.insert(id.clone(), Arc::new(live));
            return Ok(Some(id));
        }
        let id = request.id.clone().unwrap();
        if self.refuses_name(request) {
            return Err(Error::new(Kind::Rejected, "the name is taken"));
        }
        let Some(live) = self.objects.get_mut(&id).map(Arc::make_mut) else {
            return Err(Error::new(Kind::NotFound, "no such object"));
        };
        if request.ends {
            if live.number("workers").unwrap_or(0) > 0 {
                return Err(Error::new(Kind::Rejected, "it has workers"));
            }
            self.objects.remove(&id);
            return Ok(None);
        }
        if request.kind == ProgramKind::Delete {
            live.attributes.insert("workers".into(), Value::Integer(0));
            return Ok(Some(id));
        }
        if let Some(Value::Integer(size)) = request.sent.get("size")
            && live.number("size").is_some_and(|own| own >= *size)
        {
            return Err(Error::new(Kind::Rejected, "the size must be greater"));
        }
        let changes = request.sent.iter().any(|(name, new)| live.attributes.get(name) != Some(new));
        live.mounted = request.sent.is_empty() || live.mounted && !changes;
        live.attributes.extend(request.sent.clone());
        Ok(Some(id))
    }

    fn refuses_name(&self, request: &Request) -> bool {
        let Some(name) = request.sent.get("name").and_then(Value::as_str) else { return false };
        match &*request.ty {
            keys::TYPE => keys::is_taken(&self.objects, name, request.id.as_ref()),
            tickets::TYPE => request.creates && self.objects.contains_key(&ObjectId(name.into())),
            _ => false,
        }
    }

    /// Returns the id that the client chose, and notes when the object was made.
    fn given_id(&mut self, request: &Request) -> ObjectId {
        let id = ObjectId(request.sent["name"].as_str().unwrap().into());
        self.born.insert(id.clone(), self.now_ms());
        id
    }

    /// Checks that no address has two active objects.
    fn look_for_twins(&mut self) {
        let mut active: BTreeMap<&str, &ObjectId> = BTreeMap::new();
        let mut found = None;
        for (id, live) in &self.objects {
            let Some((address, _)) = &live.owner else { continue };
            if live.number("workers").unwrap_or(0) > 0
                && let Some(other) = active.insert(address, id)
            {
                found = Some(format!("{address} has two active objects, {other} and {id}"));
            }
        }
        if let Some(found) = found {
            self.violation(found);
        }
    }

    /// Notes that the server executes a request twice.
    pub(crate) fn note_second_execution(&mut self, request: &Request) {
        self.note("  doubled");
        self.doubled.extend(request.nonce.clone());
        self.repeated.extend(request.call);
    }

    /// Checks that a call which is recorded without effect had none. A server that executed a create twice
    /// may have refused it once; in any other case the run has read the answer wrongly.
    fn audit_no_effect(&mut self, run: usize, call: CallId) {
        let intent = self.open.iter().find(|own| own.run == run && own.started.call == call);
        let Some(Intent { started, doubt, .. }) = intent else { return };
        let (nonce, doubted, key) = (started.nonce.clone(), *doubt != Doubt::None, (run, call));
        // A look that lagged may have ended a doubt with this record. Without a doubt the record comes from
        // the answer to the call.
        if !doubted && !self.repeated.contains(&key) {
            self.denied.insert(key);
            if self.happened.contains(&key) {
                let what = "is recorded not to have happened, and did";
                self.violation(format!("r{run}: {call} {what}"));
                return;
            }
        }
        let Some(nonce) = nonce.filter(|nonce| !self.doubled.contains(nonce)) else { return };
        let made = self
            .objects
            .iter()
            .find(|(_, live)| live.owner.as_ref().is_some_and(|(_, own)| *own == nonce));
        if let Some((id, _)) = made {
            let what = format!("r{run}: {call} is recorded to have made nothing, and made {id}");
            self.violation(what);
        }
    }

    /// Takes note of records that became durable.
    pub(crate) fn written(&mut self, run: usize, records: &[Record]) {
        // A run that can write has not lost its lock, so its intents count as renewed.
        let now = self.now_ms();
        for intent in self.open.iter_mut().filter(|intent| intent.run == run) {
            intent.at_ms = now;
        }
        for record in records {
            if let Record::Finished { call, outcome: Outcome::NoEffect { .. } } = record {
                self.audit_no_effect(run, *call);
            }
            match record {
                Record::Started(started) => {
                    let (at_ms, started) = (self.now_ms(), Arc::new((**started).clone()));
                    self.open.push(Intent {
                        run,
                        started,
                        at_ms,
                        ended: false,
                        was_sent: false,
                        doubt: Doubt::None,
                    });
                }
                Record::Doubted { call, accepted, .. } => {
                    if *accepted {
                        self.take_time((run, *call));
                    }
                    for intent in self.open.iter_mut().filter(|own| own.started.call == *call) {
                        if intent.run == run {
                            let doubt = if *accepted { Doubt::Accepted } else { Doubt::Lost };
                            intent.doubt = intent.doubt.max(doubt);
                        }
                    }
                }
                Record::Finished { call, .. } | Record::Resolved { call, .. } => {
                    self.open.retain(|intent| intent.run != run || intent.started.call != *call);
                    for intent in self.open.iter_mut().filter(|own| own.started.call == *call) {
                        intent.ended = true;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns the schema of the types at the provider port.
pub(crate) fn schema() -> Arc<ProviderSchema> {
    static SCHEMA: LazyLock<Arc<ProviderSchema>> = LazyLock::new(|| {
        let mut schema = shapes::schema();
        if let Some(unit) = schema.types.get_mut("unit").map(Arc::make_mut)
            && let Some(disk) = unit.attributes.get_mut("disk_id")
        {
            disk.unset = Some(Unset::Value(Value::Null));
        }
        Arc::new(schema)
    });
    SCHEMA.clone()
}
