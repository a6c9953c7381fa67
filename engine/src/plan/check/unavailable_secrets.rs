//! Reports attributes that the calls of a plan would send and that no run has in clear, before anything is called: a
//! replace would delete the old object and then could not make the new one.
//!
//! A list need not show all that a read shows, so apply reads the objects in question before this becomes an
//! error.

use crate::address::Name;
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostic;
use crate::journal::ProgramKind;
use crate::plan::decide::programs::{Judged, choose};
use crate::plan::draft::Draft;
use crate::plan::{Action, Lack, Missing, Why};
use crate::schema::{Phase, Sends};

/// Returns the attributes of a draft that a call would send without having them, in order.
pub(in crate::plan) fn check(draft: &Draft, resource: &ResourceConfig) -> Vec<Lack> {
    let sent = draft.missing.iter().filter(|(name, missing)| {
        let is_kept = missing.iter().any(|one| one.why == Why::Kept);
        is_sent(draft, name, is_kept)
    });
    let lack = |(name, missing): (&Name, &Vec<Missing>)| Lack {
        address: draft.change.address.clone(),
        attribute: name.clone(),
        span: Some(resource.attributes.get(name).map_or(resource.header, |item| item.value.span)),
        exists: draft.change.action == Action::Update
            || missing.iter().any(|it| it.why == Why::Kept),
        missing: missing.clone(),
    };
    sent.map(lack).collect()
}

/// Returns true if a call of a draft carries an attribute. A create sends all attributes that the spec gives,
/// in one of its phases. An update sends the attributes that change, and some APIs want others at the same
/// time, even if they stay as they are.
fn is_sent(draft: &Draft, name: &Name, is_kept: bool) -> bool {
    match draft.change.action {
        Action::Create | Action::Replace => !is_kept,
        Action::Update | Action::Import => {
            (!is_kept && draft.changed.contains(name))
                || phases(draft).iter().any(|phase| always_sends(phase, name))
        }
        _ => false,
    }
}

/// Returns the phases that an update goes through.
fn phases(draft: &Draft) -> Vec<&Phase> {
    let mut phases = Vec::new();
    let mut changed = draft.changed.clone();
    let rest = draft.rest();
    if let Some((rest, all)) = rest {
        changed.retain(|name| rest.kind == ProgramKind::Update || !rest.carries(all, name));
    }
    if let Some((rest, all)) = rest {
        let left = rest.left(all, !changed.is_empty());
        let calls = left.filter(|index| !rest.called || *index > rest.from);
        phases.extend(calls.map(|index| &all[index]));
    }
    let change = &draft.change;
    let judged = Judged::changed(change.before.as_deref(), change.after.as_deref());
    let program = choose(&draft.schema.update, judged);
    if let Some(program) = program.filter(|_| !changed.is_empty()) {
        phases.extend(&draft.schema.update[program].phases);
    }
    phases
}

/// Returns true if a phase sends an attribute although it does not change.
fn always_sends(phase: &Phase, name: &Name) -> bool {
    match &phase.sends {
        Sends::All => phase.carries(name),
        Sends::These(names) => names.contains(name),
        Sends::Changed | Sends::Nothing => false,
    }
}

impl Lack {
    /// Returns the error about a value that is missing even after the objects were read.
    pub fn diagnostic(&self) -> Diagnostic {
        let Some(missing) = self.missing.first() else {
            return Diagnostic::error(format!("`{}` has no value", self.attribute)).at(self.span);
        };
        let Missing { address, attribute, why, .. } = missing;
        let (source, own) = (format!("`{address}.{attribute}`"), &self.attribute);
        let known = match why {
            Why::Kept => return self.is_kept(),
            Why::Unshown => "no answer has shown it",
            Why::Never => "the API never shows it",
            Why::LookedUp => "a look-up keeps only the fingerprint of a secret",
            Why::Fingerprint => "only its fingerprint is known, and the API does not show it again",
        };
        Diagnostic::error(format!(
            "the value of {source} is not available, and `{own}` cannot be sent without it"
        ))
        .at(self.span)
        .label(known)
        .about(&self.address)
        .help(self.way_out(missing))
    }

    fn is_kept(&self) -> Diagnostic {
        let Self { address, attribute, .. } = self;
        Diagnostic::error(format!("the update of {address} sends its `{attribute}` along"))
            .at(self.span)
            .label("it stays as it is, and its value is not available")
            .about(address)
            .help(format!(
                "give `{attribute}` in the spec, the one that it has or another one, and take it out of \
                 `ignore_changes` where it stands there"
            ))
    }

    fn way_out(&self, missing: &Missing) -> String {
        let Missing { address, attribute, why, .. } = missing;
        let other = "or give the secret as a variable, where you have it";
        let is_kept = self.exists && *why == Why::Fingerprint;
        let keep = if is_kept {
            format!(
                "; `ignore_changes = [\"{}\"]` keeps what the object has, where a call sends only \
                 what changes",
                self.attribute
            )
        } else {
            String::new()
        };
        match why {
            Why::Never => format!(
                "`seen_in = \"never\"` says so: leave it out where the answer to the create shows \
                 `{attribute}`, {other}"
            ),
            Why::LookedUp => "give the secret as a variable, where you have it".to_owned(),
            _ => format!(
                "`--replace '{address}'` makes another one, whose `{attribute}` goes to all that \
                 use it, {other}{keep}"
            ),
        }
    }
}
