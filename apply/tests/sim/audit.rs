//! The checks of every mutating call at the moment at which it is sent.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use engine::address::{Address, Name};
use engine::journal::{CallId, PhaseRef, ProgramKind};
use engine::plan::{Action, Change, Plan, Reason, Step};
use engine::schema::ReplaceOrder;
use engine::sorted::Set;
use engine::state::{Nonce, ObjectId};
use engine::value::{Attributes, Value};
use provider_port::Call;

use crate::api_variant::PUBLIC;
use crate::cloud::{Cloud, Intent, Live, lock};
use crate::runner::Runner;
use crate::schedule::First;
use crate::tickets;

/// The time in milliseconds after a run's last write in which it may still send a call whose end another run
/// recorded.
const SEND_WITHIN_MS: u64 = 5_000;

/// A call as the executor asks for it at the provider port.
#[derive(Clone)]
pub(crate) struct Asking {
    pub(crate) ty: Name,
    pub(crate) phase: PhaseRef,
    pub(crate) id: Option<ObjectId>,
    pub(crate) nonce: Option<Nonce>,
    pub(crate) desired: Attributes,
}

impl From<&Call<'_>> for Asking {
    fn from(call: &Call<'_>) -> Self {
        Self {
            ty: call.ty.into(),
            phase: call.phase,
            id: call.id.cloned(),
            nonce: call.nonce.cloned(),
            desired: call.desired.clone(),
        }
    }
}

/// The address and the number of a call, as the journal has them. The number is None if no durable record
/// names the call.
pub(crate) struct Meant {
    pub(crate) address: String,
    pub(crate) call: Option<(usize, CallId)>,
}

/// The run and the call, as a violation names them.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    run: usize,
    call: &'a Asking,
}

impl Display for Who<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Asking { phase, ty, id, .. } = self.call;
        let id = id.as_ref().map_or("anew", |id| &id.0);
        write!(f, "r{}: {:?} phase {} of {ty} {id}", self.run, phase.kind, phase.phase)
    }
}

impl Runner {
    /// Checks a mutating call, as it is sent, against what is durable, what the plan shows and what is
    /// wanted. Returns the address and the number that the journal has for the call.
    pub(crate) fn audit(&self, call: &Asking, sent: &Attributes) -> Meant {
        let plan = self.plan.lock().unwrap().clone();
        let mut cloud = lock(&self.cloud);
        cloud.mutations += 1;
        cloud.count("calls");
        let who = Who { run: self.number, call };
        let now = cloud.now_ms();
        let record = cloud.open.iter_mut().find(|Intent { run, started, at_ms, ended, .. }| {
            *run == self.number
                && (!ended || now <= at_ms + SEND_WITHIN_MS)
                && started.phase == call.phase
                && started.address.block.ty == call.ty
                && started.object == call.id
                && started.nonce == call.nonce
        });
        let started = record.map(|intent| {
            intent.was_sent = true;
            intent.started.clone()
        });
        let Some(started) = started else {
            cloud.violation(format!("{who}: no durable record names this call"));
            return Meant { address: "nobody".to_owned(), call: None };
        };
        let address = started.address.to_string();
        let step = plan.as_ref().and_then(|plan| step_of(plan, &started.step));
        let shown = step.is_some_and(|step| {
            step.address == started.address
                && step.phase == Some(call.phase)
                && (step.object.is_none() || step.object == call.id)
        });
        if !shown {
            cloud.violation(format!("{who}: the plan does not show this call"));
        }
        let change = step.zip(plan.as_ref()).map(|(step, plan)| &plan.changes[step.change]);
        if let Some(change) = change {
            self.audit_body(&mut cloud, who, call, sent, change);
        }
        if let Some(id) = &call.id
            && let Some(live) = cloud.objects.get(id).cloned()
        {
            if live.owner.is_none() {
                cloud.violation(format!("{who}: it is a stranger's"));
            }
            if let Some(Value::Integer(size)) = sent.get("size")
                && live.number("size").is_some_and(|own| own > *size)
                && call.phase.kind == ProgramKind::Update
                && !cloud.is_disordered(id)
                && !self.fenced.load(Ordering::Relaxed)
            {
                cloud.violation(format!("{who}: it would shrink"));
            }
            if call.phase.kind == ProgramKind::Delete {
                self.audit_delete(&mut cloud, who, &address, &live, change);
            }
        }
        self.audit_order(&mut cloud, who, call, &started.managed);
        Meant { address, call: Some((self.number, started.call)) }
    }

    /// Checks that a delete does not hit an object that is already as the spec wants it.
    fn audit_delete(
        &self,
        cloud: &mut Cloud,
        who: Who<'_>,
        address: &str,
        live: &Live,
        change: Option<&Change>,
    ) {
        let wanted = self.spec.wanted(self.harness);
        let Some(wanted) = wanted.get(address).filter(|_| !self.destroy) else { return };
        let same = wanted.texts.iter().all(|(name, text)| live.text(name) == Some(text));
        let asked = self.asked.as_deref() == Some(address);
        // If the new object is made first, the deposed object may be as the spec wants it by now.
        let order = self.schema.types[self.harness.say(&live.ty)].replace;
        let was_first = self.spec.disks_first != First::Never && &*live.ty == "disk";
        let first = order == ReplaceOrder::CreateFirst || was_first;
        let aside = change.is_some_and(|change| change.deposed);
        let twin = first && aside;
        // A ticket with another id is another ticket.
        let other = &*live.ty == tickets::TYPE && live.name() != wanted.name;
        let action = change.map(|change| change.action);
        if live.is_named() && same && !twin && !asked && !other {
            cloud.violation(format!("{who}: {address} is wanted as it is ({action:?})"));
        }
    }

    fn action_of(&self, address: &str) -> Option<Action> {
        let plan = self.plan.lock().unwrap();
        let changes = plan.as_ref().map_or(&[][..], |plan| &plan.changes);
        let own = changes.iter().find(|change| !change.deposed && is(&change.address, address));
        own.map(|change| change.action)
    }

    /// Returns whether the plan shows that an object depends on the address `on`; `by` are the attributes of
    /// the object that name an object of that address. Returns None if it does not depend on it, true if it
    /// does and the plan leaves it as it is, otherwise false. A deposed object of the plan uses what it uses
    /// until it is gone; any other object uses what its address depends on.
    fn depends(&self, id: &ObjectId, live: &Live, on: &str, by: &[&str]) -> Option<bool> {
        let plan = self.plan.lock().unwrap();
        let changes = plan.as_ref().map_or(&[][..], |plan| &plan.changes);
        let (own, _) = live.owner.as_ref()?;
        changes.iter().find_map(|change| match &change.object {
            Some(object) if object == id && change.deposed => Some(false),
            Some(_) if change.deposed => None,
            _ if !live.is_named() || !is(&change.address, own) => None,
            // The spec may refer to another object by now, but the live object still uses the old one.
            _ if is_left(change) && by.iter().any(|name| change.managed.contains(*name)) => {
                Some(true)
            }
            _ => change.dependencies.iter().any(|address| is(address, on)).then_some(false),
        })
    }

    /// Checks that an object exists before other objects use it, and is deleted only after them.
    fn audit_order(&self, cloud: &mut Cloud, who: Who<'_>, call: &Asking, managed: &Set<Name>) {
        if self.fenced.load(Ordering::Relaxed) {
            return;
        }
        let names = |attributes: &Attributes, id: &ObjectId| -> Vec<&'static str> {
            let text = |name: &&str| attributes.get(*name).and_then(Value::as_str);
            let used = ["disk_id", "image_id"].into_iter().filter(|name| text(name) == Some(&id.0));
            used.map(|name| self.harness.say(name)).collect()
        };
        if call.phase.kind == ProgramKind::Delete {
            let id = call.id.as_ref().filter(|id| call.phase.is_last() && !cloud.is_disordered(id));
            let Some(id) = id else { return };
            let own = cloud.objects.get(id).and_then(|live| live.owner.clone());
            let Some((address, _)) = own else { return };
            // In a replace that deletes first, the old object is deleted while others still use it.
            let order = self.schema.types[&call.ty].replace;
            let under = order == ReplaceOrder::DeleteFirst
                && self.action_of(&address) == Some(Action::Replace);
            let mut users = cloud.objects.iter().filter(|(user, _)| !cloud.is_disordered(user));
            let user = users.find(|(user, live)| {
                let by = names(&live.attributes, id);
                let left =
                    if by.is_empty() { None } else { self.depends(user, live, &address, &by) };
                left.is_some_and(|left| left || !under)
            });
            if let Some((user, _)) = user {
                let user = user.clone();
                cloud.violation(format!("{who}: {user} still uses it"));
            }
            return;
        }
        // A disordered object may name an object that is gone, and the call repeats that name as it was read.
        if call.id.as_ref().is_some_and(|id| cloud.is_disordered(id)) {
            return;
        }
        for name in ["disk_id", "image_id"].map(|name| self.harness.say(name)) {
            let Some(Value::String(used)) = call.desired.get(name) else { continue };
            if !managed.contains(name) || &**used == PUBLIC {
                continue;
            }
            let id = ObjectId(used.clone());
            if !cloud.objects.contains_key(&id) && !cloud.is_disordered(&id) {
                cloud.violation(format!("{who}: {used} is not there"));
            }
        }
    }
}

/// Returns true if the plan leaves the address of a change as it is, whatever the spec says of it.
fn is_left(change: &Change) -> bool {
    matches!(change.reason, Reason::Untargeted | Reason::InDoubt | Reason::StillUsed(_))
}

/// Returns true if `text` is the written form of an address. Most addresses differ in their names, and then
/// the address need not be written.
fn is(address: &Address, text: &str) -> bool {
    text.contains(&*address.block.name) && address.to_string() == text
}

/// Returns the step with this id, which stands in the plan at the place of its number; None if there is none.
fn step_of<'a>(plan: &'a Plan, name: &str) -> Option<&'a Step> {
    let place: usize = name.strip_prefix('s')?.parse().ok()?;
    plan.steps.get(place).filter(|step| step.id.to_string() == name)
}
