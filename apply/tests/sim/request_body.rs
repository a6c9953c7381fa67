//! The check of a mutating call's body against the plan: the call sends what the plan showed, and nothing
//! else.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::journal::ProgramKind;
use engine::plan::Change;
use engine::schema::Sends;
use engine::state::ObjectId;
use engine::value::{Attributes, Value};

use crate::api_variant::Harness;
use crate::audit::{Asking, Who};
use crate::cloud::Cloud;
use crate::runner::Runner;

impl Runner {
    /// Checks that each attribute that a call sends has the value that the change shows for it.
    pub(crate) fn audit_body(
        &self,
        cloud: &mut Cloud,
        who: Who<'_>,
        call: &Asking,
        sent: &Attributes,
        change: &Change,
    ) {
        let shown = match call.phase.kind {
            ProgramKind::Delete => change.before.as_deref(),
            _ => change.after.as_deref(),
        };
        let may_change = self.may_change(call, change);
        for (name, value) in sent {
            if is_inert(call, name, value) || self.is_repeated(call, name) {
                continue;
            }
            let said: Name = self.harness.say(name).into();
            let planned = shown.and_then(|shown| shown.get(&said)).unwrap_or(&Value::Null);
            let is_left_alone = self.is_left_alone(call, &said, change);
            let fits = match &**name {
                "secret" => self.is_secret(value) || is_as_it_was(cloud, call, value),
                _ if is_left_alone => self.is_so(cloud, call, name, value),
                _ => fits(cloud, planned, value),
            };
            if !fits && is_left_alone {
                cloud.violation(format!("{who}: it repeats {said} = {value:?}, which is old"));
            } else if !fits {
                cloud.violation(format!("{who}: it sends {said} = {value:?}, not {planned:?}"));
            }
            if may_change.as_ref().is_some_and(|changed| !changed.contains(&said)) {
                cloud.violation(format!("{who}: the plan does not show that {said} changes"));
            }
        }
    }

    /// Returns true if a drain may repeat an attribute as the object is known to have it. The service resets
    /// what a drain leaves out, and the object is deleted anyway.
    fn is_repeated(&self, call: &Asking, name: &Name) -> bool {
        self.harness == Harness::Http
            && call.phase.kind == ProgramKind::Delete
            && &**name != "workers"
    }

    /// Returns true if an update sends the whole object, and so repeats an attribute that the change leaves
    /// alone.
    fn is_left_alone(&self, call: &Asking, said: &Name, change: &Change) -> bool {
        let is_whole = call.phase.kind == ProgramKind::Update && self.sends(call) == &Sends::All;
        is_whole && !change.causes.iter().any(|cause| cause.attribute == *said)
    }

    /// Returns true if the object of a call has this value, had it a moment ago, or was shown with it a
    /// moment ago. The value that the plan saw may be too old by then.
    fn is_so(&self, cloud: &Cloud, call: &Asking, name: &Name, value: &Value) -> bool {
        let shows = |id| cloud.may_show(id, name, value) || self.was_shown(cloud, id, name, value);
        call.id.as_ref().is_some_and(shows)
    }

    /// Returns the part of the attributes that the phase of a call sends.
    fn sends(&self, call: &Asking) -> &Sends {
        let (schema, phase) = (&self.schema.types[&call.ty], &call.phase);
        &schema.programs(phase.kind)[phase.program].phases[phase.phase].sends
    }

    /// Returns the attributes that an update may send if its phase sends only those that change; None for any
    /// other call.
    fn may_change<'a>(&self, call: &Asking, change: &'a Change) -> Option<BTreeSet<&'a Name>> {
        let sends_changed =
            call.phase.kind == ProgramKind::Update && self.sends(call) == &Sends::Changed;
        sends_changed.then(|| change.causes.iter().map(|cause| &cause.attribute).collect())
    }

    /// Returns true if a value is the secret of the spec. A plan does not show the secret.
    pub(crate) fn is_secret(&self, value: &Value) -> bool {
        let secret = self.spec.secret_in(self.harness);
        secret.is_some() && value.as_str() == secret.as_deref()
    }
}

/// Returns true if a value is the secret that the object of a call has. The spec may say nothing of this
/// secret any more.
fn is_as_it_was(cloud: &Cloud, call: &Asking, sent: &Value) -> bool {
    let live = call.id.as_ref().and_then(|id| cloud.objects.get(id));
    live.and_then(|live| live.text("secret")) == sent.as_str()
}

/// Returns true if a call may send this value where the plan shows `planned`. If `planned` is unknown and
/// stands for an id, the value must be the id of an object of that address.
pub(crate) fn fits(cloud: &Cloud, planned: &Value, sent: &Value) -> bool {
    match planned {
        Value::Unknown(unknown) => {
            let residual = unknown.residual.to_string();
            match (residual.strip_suffix(".id"), sent) {
                (Some(address), Value::String(id)) => is_of(cloud, id, address),
                _ => !matches!(sent, Value::Null),
            }
        }
        // At the wire an empty text means that there is no value.
        Value::String(text) if text.is_empty() => matches!(sent, Value::Null) || planned == sent,
        planned => planned.same(sent),
    }
}

/// Returns true if an attribute serves to keep an object inert: its one-time name, or no workers in the first
/// phase of a create or in a delete. The provider chooses these values, not the plan.
fn is_inert(call: &Asking, name: &Name, value: &Value) -> bool {
    let begins = call.phase.kind == ProgramKind::Create && call.phase.phase == 0;
    let by_name = value.as_str().zip(call.nonce.as_ref());
    let idle = &**name == "workers" && *value == Value::Integer(0);
    by_name.is_some_and(|(text, nonce)| nonce.is_in(text))
        || idle && (begins || call.phase.kind == ProgramKind::Delete)
}

/// Returns true if the object with this id belongs to the address, or is gone. `Runner::audit_order` reports
/// an object that is gone.
fn is_of(cloud: &Cloud, id: &Name, address: &str) -> bool {
    let live = cloud.objects.get(&ObjectId(id.clone()));
    let owner = live.and_then(|live| live.owner.as_ref());
    live.is_none() || owner.is_some_and(|(own, _)| own == address)
}
