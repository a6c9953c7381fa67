//! What the calls of a plan would have to send and nobody has, so that it is said before anything is
//! called: a replace would delete the old object and then could not make the new one.
//!
//! A list need not show all that a read does, so whoever makes a plan reads the few objects in question
//! before this is an error.

use crate::address::Name;
use crate::config::ResourceConfig;
use crate::diagnostics::Diagnostic;
use crate::expression::Expr;
use crate::expression::evaluate::evaluate;
use crate::journal::ProgramKind;
use crate::plan::decide::programs::choose;
use crate::plan::draft::Draft;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::evaluate::scope::SpecScope;
use crate::plan::secrets::lost::{AllLost, LostScope, One, StandsFor};
use crate::plan::{Action, Lack, Missing, Why};
use crate::schema::{Attribute, Phase, Presence, SeenIn, Sends};
use crate::value::{Attributes, Value};

/// What a draft would send and nobody has, one for each attribute.
pub(in crate::plan) fn lacks(
    draft: &Draft,
    (resource, wanted): (&ResourceConfig, &Wanted),
    (scope, lost): (&SpecScope<'_>, &AllLost),
) -> Vec<Lack> {
    if lost.is_empty() {
        return Vec::new();
    }
    let sent = wanted.attributes.iter().filter(|(name, value)| {
        (value.holds_sealed() || !value.is_known()) && is_sent(draft, name)
    });
    let lack = |(name, value): (&Name, &Value)| {
        let missing = missing(wanted.secrets.get(name), value, (scope, lost));
        let item = resource.attributes.get(name);
        (!missing.is_empty()).then(|| Lack {
            address: draft.change.address.clone(),
            attribute: name.clone(),
            span: Some(item.map_or(resource.header, |item| item.value.span)),
            exists: draft.change.action == Action::Update,
            missing,
        })
    };
    sent.filter_map(lack).collect()
}

/// What an update sends along although it stays as it is, where the spec does not say it, or says something else and
/// ignores that, and no answer ever shows it.
pub(in crate::plan) fn kept(
    draft: &Draft,
    resource: &ResourceConfig,
    planned: &Attributes,
) -> Vec<Lack> {
    let change = &draft.change;
    if !matches!(change.action, Action::Update | Action::Import) {
        return Vec::new();
    }
    let phases = phases(draft);
    let is_kept = |(name, attribute): &(&Name, &Attribute)| {
        let value = planned.get(*name).unwrap_or(&Value::Null);
        let is_missing = value.is_null() && attribute.presence == Presence::Required;
        attribute.seen_in == SeenIn::Never
            && (value.holds_sealed() || is_missing)
            && !change.secrets.contains_key(*name)
            && phases.iter().any(|phase| always_sends(phase, name))
    };
    let lack = |(name, _): (&Name, &Attribute)| Lack {
        address: change.address.clone(),
        attribute: name.clone(),
        span: Some(resource.attributes.get(name).map_or(resource.header, |it| it.value.span)),
        exists: true,
        missing: vec![Missing {
            address: change.address.clone(),
            attribute: name.clone(),
            why: Why::Kept,
            may_show: false,
        }],
    };
    resource.schema.attributes.iter().filter(is_kept).map(lack).collect()
}

/// What nobody has of that from which a value is computed.
fn missing(
    secret: Option<&Expr>,
    value: &Value,
    (scope, lost): (&SpecScope<'_>, &AllLost),
) -> Vec<Missing> {
    let marked = LostScope { scope, lost, stands_for: StandsFor::ItsName };
    let datum = secret.and_then(|expr| evaluate(expr, &marked).ok());
    let value = datum.map_or_else(|| value.clone(), |datum| datum.value);
    let mut missing = Vec::new();
    each_residual(&value, &mut |expr| {
        let referred = lost.referred(expr).into_iter();
        missing.extend(referred.map(|((address, attribute), One { why, may_show })| Missing {
            address,
            attribute,
            why,
            may_show,
        }));
    });
    missing
}

fn each_residual(value: &Value, visit: &mut dyn FnMut(&Expr)) {
    match value {
        Value::Unknown(unknown) => visit(&unknown.residual),
        Value::List(items) | Value::Set(items) => {
            items.iter().for_each(|item| each_residual(item, visit));
        }
        Value::Map(entries) => entries.values().for_each(|item| each_residual(item, visit)),
        _ => {}
    }
}

/// Whether a call of a draft carries an attribute. A create sends all that the spec gives, sooner or
/// later; an update what changes, and more where the API takes more at once.
fn is_sent(draft: &Draft, name: &Name) -> bool {
    match draft.change.action {
        Action::Create | Action::Replace => true,
        Action::Update | Action::Import => {
            draft.changed.contains(name) || phases(draft).iter().any(|it| always_sends(it, name))
        }
        _ => false,
    }
}

/// The phases that an update goes through.
fn phases(draft: &Draft) -> Vec<&Phase> {
    let mut phases = Vec::new();
    let mut changed = draft.changed.clone();
    if let Some((rest, all)) = draft.rest() {
        phases.extend(all.iter().skip(rest.from + usize::from(rest.called)));
        changed.retain(|name| rest.kind == ProgramKind::Update || !rest.carries(all, name));
    }
    let program = choose(&draft.schema.update, draft.change.after.as_deref());
    if let Some(program) = program.filter(|_| !changed.is_empty()) {
        phases.extend(&draft.schema.update[program].phases);
    }
    phases
}

/// Whether a phase sends an attribute although it does not change.
fn always_sends(phase: &Phase, name: &Name) -> bool {
    match &phase.sends {
        Sends::All => phase.carries(name),
        Sends::These(names) => names.contains(name),
        Sends::Changed | Sends::Nothing => false,
    }
}

impl Lack {
    /// What people are told, where nothing shows it after all.
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
            Why::Fingerprint => "only its fingerprint is known, and the API does not show it again",
        };
        Diagnostic::error(format!("nobody has {source}, and `{own}` cannot be sent without it"))
            .at(self.span)
            .label(known)
            .about(&self.address)
            .help(self.way_out(missing))
    }

    fn is_kept(&self) -> Diagnostic {
        let Self { address, attribute, .. } = self;
        Diagnostic::error(format!("the update of {address} sends its `{attribute}` along"))
            .at(self.span)
            .label("it is to stay as it is, and nobody has it in clear")
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
            _ => format!(
                "`--replace '{address}'` makes another one, whose `{attribute}` goes to all that \
                 use it, {other}{keep}"
            ),
        }
    }
}
