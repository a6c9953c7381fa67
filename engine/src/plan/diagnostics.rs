//! The diagnostics of planning, one constructor each.

pub(super) mod moves;

use std::collections::BTreeSet;

pub(super) use self::moves::*;
use crate::address::{Address, Block, Name};
use crate::condition::Broken;
use crate::config::provider_choice::{base, key};
use crate::config::{ImportConfig, ImportedObject, ResourceConfig};
use crate::constraint::Violation;
use crate::diagnostics::{Diagnostic, Severity, Span};
use crate::expression::ExprError;
use crate::plan::draft::Draft;
use crate::plan::facts::names::Holder;
use crate::plan::{Action, Change, Doubt, Staying, Use};
use crate::schema::{Attribute, ReplaceOrder};
use crate::shell;
use crate::state::ObjectId;
use crate::types::Type;
use crate::value::{Misfit, Value};

/// The number of objects or calls that a note names.
const NAMED_MAX: usize = 5;

pub(super) fn bad_for_each(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("for_each cannot be used")
        .at(span)
        .label(why)
        .help("give a table or a list of distinct strings, computed from variables and locals")
}

pub(super) fn empty_key(span: Span) -> Diagnostic {
    Diagnostic::error("for_each cannot be used").at(span).label("one of its keys is empty").help(
        "`compact(list)` removes empty texts, such as the one that splitting an empty text gives",
    )
}

pub(super) fn too_many_instances(resource: &ResourceConfig) -> Diagnostic {
    let span = resource.for_each.as_ref().map_or(resource.header, |item| item.span);
    Diagnostic::error("this spec has too many instances")
        .at(span)
        .label(format!("from here on there are more than {}", super::limits::INSTANCES_MAX))
        .help("split the spec into several, each with a state of its own")
}

pub(super) fn too_many_values(span: Option<Span>, place: &str, millions: usize) -> Diagnostic {
    Diagnostic::error(format!("the plan would hold more than {millions} million values"))
        .at(span)
        .label(format!("most of them are in {place}"))
        .help(
            "give each resource only the part that it needs, or split the spec into several, each \
             with a state of its own",
        )
}

pub(super) fn evaluation(span: Span, error: &ExprError, address: &Address) -> Diagnostic {
    let diagnostic = Diagnostic::error("expression cannot be evaluated")
        .at(span)
        .label(error.message.clone())
        .about(address);
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

pub(super) fn flag_unknown(span: Span, word: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("lifecycle.{word} is not known before apply"))
        .at(span)
        .label("this must be known while planning")
        .about(address)
        .help("compute it from variables and locals only")
}

pub(super) fn flag_sensitive(span: Span, word: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("lifecycle.{word} must not be sensitive"))
        .at(span)
        .label("the plan shows the effect of this, which would reveal the secret")
        .about(address)
        .help("compute it from variables that are not sensitive")
}

pub(super) fn flag_of_gone_key(span: Span, word: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("whether {address} may be deleted is not known"))
        .at(span)
        .label(format!("lifecycle.{word} reads `each`, and its key is no longer in for_each"))
        .about(address)
        .help(format!(
            "let {word} say it without `each.value`, or keep the key until the object may be deleted; \
             `plumb state rm '{address}'` takes it out of the state and leaves the object alone"
        ))
}

pub(super) fn flag_not_bool(span: Span, word: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("lifecycle.{word} must be true or false")).at(span).about(address)
}

pub(super) fn required_is_null(
    resource: &ResourceConfig,
    name: &str,
    address: &Address,
) -> Diagnostic {
    let span = resource.attributes.get(name).map_or(resource.header, |item| item.value.span);
    Diagnostic::error(format!("required attribute `{name}` is missing"))
        .at(span)
        .label(format!("`{name}` has no value here"))
        .about(address)
        .help(format!("give `{name}` a value that is not null"))
}

pub(super) fn misfit(
    span: Span,
    (name, secret): (&str, bool),
    misfit: &Misfit,
    address: &Address,
) -> Diagnostic {
    Diagnostic::error(format!("`{name}` has the wrong type"))
        .at(span)
        .label(misfit.shown(secret))
        .about(address)
}

pub(super) fn id_sensitive(span: Span, name: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is the id of {address}, and it is sensitive"))
        .at(span)
        .label("ids are shown and stored in clear")
        .about(address)
        .help("give it a value that is not sensitive")
}

pub(super) fn violation(
    span: Span,
    (name, secret): (&str, bool),
    violation: Violation,
    warning: bool,
    address: &Address,
) -> Diagnostic {
    // The message of a violation shows the value, and its help shows a similar text, which also reveals a
    // secret.
    let message = if secret { violation.without_value("the value") } else { violation.message };
    let summary = format!("`{name}` has a value that is not allowed");
    let diagnostic =
        if warning { Diagnostic::warning(summary) } else { Diagnostic::error(summary) };
    let diagnostic = diagnostic.at(span).label(message).about(address);
    match violation.help.filter(|_| !secret) {
        Some(help) => diagnostic.help(help),
        None if violation.outside_list && !warning => diagnostic.help(format!(
            "if the service is newer than this list, allow it: lifecycle = {{ allow_unknown = [\"{name}\"] }}"
        )),
        None => diagnostic,
    }
}

pub(super) fn rule_broken(
    span: Option<Span>,
    message: String,
    help: Option<String>,
    detail: Option<String>,
    address: &Address,
) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(message).at(span).about(address);
    diagnostic.help = help;
    diagnostic.detail = detail;
    diagnostic
}

/// Returns the warning of a rule. The warning is reported once for all instances of a block, so it names no
/// instance.
pub(super) fn rule_warns(
    span: impl Into<Option<Span>>,
    message: String,
    help: Option<String>,
) -> Diagnostic {
    let mut diagnostic = Diagnostic::warning(message).at(span);
    diagnostic.help = help;
    diagnostic
}

/// Returns the error of a condition of the spec that does not hold; `label` describes the condition.
pub(super) fn condition_broken(span: Span, label: &str, broken: &Broken) -> Diagnostic {
    let (message, values) = (broken.message.as_deref(), &broken.values);
    let label = if values.is_empty() { label.to_owned() } else { format!("{label}: {values}") };
    Diagnostic::error(message.unwrap_or("a condition does not hold")).at(span).label(label)
}

/// Returns the warning of a condition that stays unknown, because the plan changes nothing that it refers to.
pub(super) fn condition_unknown(span: Span, kind: &str, address: &Address) -> Diagnostic {
    Diagnostic::warning(format!("a {kind} of {address} is not judged"))
        .at(span)
        .label("something in it is not known, and this plan changes nothing that it refers to")
        .about(address)
}

/// The change that a policy is about: an address and its action; none for the whole plan.
type PolicySubject<'a> = Option<(&'a Address, Action)>;

/// Returns the diagnostic of a policy that does not hold.
pub(super) fn policy_broken(
    name: &Name,
    (span, severity): (Span, Severity),
    about: PolicySubject<'_>,
    broken: &Broken,
) -> Diagnostic {
    let message = broken.message.clone();
    let message = message.unwrap_or_else(|| format!("the policy `{name}` does not hold"));
    let subject = policy_subject(name, about);
    let values = &broken.values;
    let label = if values.is_empty() { subject } else { format!("{subject}: {values}") };
    policy(message, severity, about).at(span).label(label)
}

/// Returns the diagnostic of a policy that cannot be judged before the plan runs.
pub(super) fn policy_unknown(
    name: &Name,
    (span, severity): (Span, Severity),
    about: PolicySubject<'_>,
) -> Diagnostic {
    let message = format!("whether the policy `{name}` holds is not known before apply");
    policy(message, severity, about)
        .at(span)
        .label(policy_subject(name, about))
        .help("let it ask for what is known while planning, or give it `severity = \"warn\"`")
}

/// Returns the error of a policy whose evaluation fails.
pub(super) fn policy_unclear(
    name: &Name,
    span: Span,
    error: &ExprError,
    address: Option<&Address>,
) -> Diagnostic {
    let mut diagnostic = Diagnostic::error(format!("the policy `{name}` cannot be judged"))
        .at(span)
        .label(error.message.clone());
    diagnostic.help.clone_from(&error.help);
    match address {
        Some(address) => diagnostic.about(address),
        None => diagnostic,
    }
}

fn policy(message: String, severity: Severity, about: PolicySubject<'_>) -> Diagnostic {
    let diagnostic = match severity {
        Severity::Error => Diagnostic::error(message),
        _ => Diagnostic::warning(message),
    };
    match about {
        Some((address, _)) => diagnostic.about(address),
        None => diagnostic,
    }
}

fn policy_subject(name: &Name, about: PolicySubject<'_>) -> String {
    match about {
        Some((address, action)) => {
            format!("policy `{name}`, for the {} of {address}", action.word())
        }
        None => format!("policy `{name}`, for the whole plan"),
    }
}

pub(super) fn rule_unclear(error: &ExprError, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("a rule of {} cannot be evaluated", address.block.ty))
        .detail(format!("{error}. This is a mistake in the provider's descriptor."))
        .about(address)
}

pub(super) fn destroy_prevented(span: Option<Span>, address: &Address, action: &str) -> Diagnostic {
    Diagnostic::error(format!("{address} is protected, and this plan would {action} it"))
        .at(span)
        .label("lifecycle.prevent_destroy is true here")
        .about(address)
        .help("keep it in the spec as it is, or set prevent_destroy to false and apply that first")
}

pub(super) fn data_would_be_lost(
    span: Option<Span>,
    address: &Address,
    attributes: &[Name],
) -> Diagnostic {
    let names = attributes.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (label, why, keep) = if attributes.is_empty() {
        let why =
            "Its attributes did not change; something else asks for the replace, which".to_owned();
        ("this plan replaces it", why, "remove what asks for the replace")
    } else {
        ("this cannot be changed in place", format!("A change of {names}"), "keep the old value")
    };
    Diagnostic::error(format!("replacing {address} would lose its data"))
        .at(span)
        .label(label)
        .detail(format!("{why} creates a new object and deletes the old one with all its data."))
        .about(address)
        .help(format!(
            "{keep}; or copy the data first and write lifecycle = {{ allow_data_loss = true }} into {address}"
        ))
}

pub(super) fn no_longer_managed(
    span: Span,
    address: &Address,
    name: &str,
    stays: &str,
) -> Diagnostic {
    Diagnostic::warning(format!("`{name}` is no longer managed, {stays}"))
        .at(span)
        .label("the last applied spec set it here, and this one does not")
        .about(address)
        .help(format!("write `{name}` into the spec to manage it again"))
}

pub(super) fn secret_changed(span: Option<Span>, address: &Address, name: &str) -> Diagnostic {
    let said = format!("`{name}` became sensitive and changes at the same time");
    Diagnostic::warning(said)
        .at(span)
        .about(address)
        .detail(
            "The old value is not known as a secret. Where it stands elsewhere, in an object that is \
             deleted or in another block, the plan shows it.",
        )
        .help("apply the change to sensitive first, then change the value")
}

pub(super) fn name_is_taken(
    span: Option<Span>,
    address: &Address,
    name: &str,
    unique: bool,
    bearers: &BTreeSet<ObjectId>,
) -> Diagnostic {
    let (ty, ids) = (&address.block.ty, listed(bearers));
    if unique {
        return Diagnostic::error(format!("another {ty} named \"{name}\" exists already"))
            .at(span)
            .label("two objects of this type cannot have the same name")
            .detail(format!("Its id is {ids}, and it is not in the state."))
            .about(address)
            .help(format!(
                "choose another name, or take it over: {}",
                import_of(address, bearers)
            ));
    }
    Diagnostic::warning(format!("another {ty} named \"{name}\" exists already"))
        .at(span)
        .label("a second one with this name will be created")
        .detail(format!("Its id is {ids}, and it is not in the state: Plumb will not touch it."))
        .about(address)
        .help(format!("if it is this one, take it over: {}", import_of(address, bearers)))
}

pub(super) fn other_bears_name(
    span: Option<Span>,
    address: &Address,
    name: &str,
    bearers: &BTreeSet<ObjectId>,
) -> Diagnostic {
    let (ty, ids) = (&address.block.ty, listed(bearers));
    Diagnostic::error(format!("another {ty} named \"{name}\" exists already"))
        .at(span)
        .label("two objects of this type cannot have the same name")
        .detail(format!("Its id is {ids}, and it is not in the state."))
        .about(address)
        .help("choose another name; or rename or remove the other object first")
}

fn listed(ids: &BTreeSet<ObjectId>) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the command that takes over an object, quoted for a shell: the API chooses the id, so it may
/// contain anything.
fn import_of(address: &Address, ids: &BTreeSet<ObjectId>) -> String {
    let id = match ids.first() {
        Some(id) if ids.len() == 1 => shell::quoted(&id.0),
        _ => "ID".to_owned(),
    };
    format!("plumb import {} {id}", shell::quoted(&address.to_string()))
}

pub(super) fn one_name_twice(
    span: Option<Span>,
    address: &Address,
    name: &dyn std::fmt::Display,
    others: &[&Address],
) -> Diagnostic {
    let ty = &address.block.ty;
    let others = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Diagnostic::error(format!("two objects would be named {name}"))
        .at(span)
        .label(format!("a name of the type {ty} is unique, and {others} has this one"))
        .about(address)
        .help("give each of them a name of its own")
}

pub(super) fn cannot_be_made_first(
    resource: &ResourceConfig,
    address: &Address,
    name: &Name,
) -> Diagnostic {
    let flag = resource.lifecycle.create_before_destroy.as_ref();
    Diagnostic::error(format!("the new {address} cannot be created while the old one exists"))
        .at(flag.map_or(resource.header, |item| item.span))
        .label(format!("both would have the same `{name}`, which only one object can have"))
        .about(address)
        .help(format!(
            "remove create_before_destroy, so that the old object is deleted first; or give the \
             new one another `{name}`"
        ))
}

pub(super) fn name_stays_taken(
    span: Option<Span>,
    address: &Address,
    name: &dyn std::fmt::Display,
) -> Diagnostic {
    Diagnostic::error(format!("the old {address} keeps the name {name}"))
        .at(span)
        .label("two objects of this type cannot have the same name")
        .detail("lifecycle.retain keeps the object that would be replaced.")
        .about(address)
        .help("give the new object another name, or set retain to false")
}

pub(super) fn may_be_stopped(resource: &ResourceConfig, address: &Address) -> Diagnostic {
    Diagnostic::warning(format!("{address} may be stopped, and nothing starts it again"))
        .at(resource.header)
        .label("an earlier run began to delete it, and its type has no call to undo that")
        .about(address)
        .help(format!(
            "look at it, and start it by hand; `--replace '{address}'` makes another one"
        ))
}

pub(super) fn drained_is_retained(
    resource: &ResourceConfig,
    change: &Change,
    drained: &BTreeSet<Name>,
) -> Diagnostic {
    let address = &change.address;
    let names = drained.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let retain = resource.lifecycle.retain.as_ref();
    let diagnostic = Diagnostic::error(format!("{address} would stay half deleted"))
        .at(retain.map_or(resource.header, |item| item.span))
        .label("this keeps the object as it is")
        .detail(format!("An earlier run began to delete it, and changed {names}."))
        .about(address);
    diagnostic.help(if change.deposed {
        "set retain to false, and the delete goes on".to_owned()
    } else {
        format!(
            "`plumb apply` with {address} as it was in the spec gives back what it had, and it can be \
             retained after that; or set retain to false, and the delete goes on"
        )
    })
}

pub(super) fn names_in_a_circle(addresses: &[String]) -> Diagnostic {
    Diagnostic::error("unique names would be exchanged in a circle")
        .detail(format!(
            "Each of these waits for another to give up its name: {}.",
            addresses.join(", ")
        ))
        .help("apply in two steps: first give one of them an unused name, then its final name")
}

pub(super) fn name_comes_too_late(taker: &Address, bearer: &Address) -> Diagnostic {
    Diagnostic::error(format!("{taker} cannot take its name from {bearer} in one plan"))
        .detail(format!(
            "{bearer} is deleted once nothing uses it; its users wait for {taker}, which waits \
             for the name."
        ))
        .about(taker)
        .help(format!(
            "if it is the same object under another address, keep it: plumb state mv '{bearer}' \
             '{taker}'; else give the new one a name of its own"
        ))
}

pub(super) fn cannot_import(
    span: Option<Span>,
    address: &Address,
    object: &ImportedObject,
    why: &str,
) -> Diagnostic {
    let object = imported(object);
    let diagnostic = Diagnostic::error(format!("{object} cannot be taken over as {address}"));
    // Without a line to show, a label has no place.
    let diagnostic = match span {
        Some(span) => diagnostic.at(span).label(why),
        None => diagnostic.detail(why),
    };
    diagnostic.about(address)
}

/// Returns the description of an import's object, for people.
fn imported(object: &ImportedObject) -> String {
    match object {
        ImportedObject::Id(id) => id.to_string(),
        ImportedObject::Named(name) => format!("the object named `{name}`"),
    }
}

pub(super) fn import_does_nothing(
    import: &ImportConfig,
    address: &Address,
    why: &str,
) -> Diagnostic {
    Diagnostic::warning(format!("the import of {} does nothing", imported(&import.object)))
        .at(import.span)
        .label(why)
        .help("remove this block from the spec")
        .about(address)
}

pub(super) fn import_would_replace(span: Option<Span>, change: &Change) -> Diagnostic {
    let names: Vec<String> = change
        .causes
        .iter()
        .filter(|cause| cause.replaces)
        .map(|cause| format!("`{}`", cause.attribute))
        .collect();
    let differ = match names.len() {
        0 => "it is asked for".to_owned(),
        1 => format!("{} differs and cannot be changed in place", names.join(", ")),
        _ => format!("{} differ and cannot be changed in place", names.join(", ")),
    };
    Diagnostic::error(format!("taking over {} would replace the object", change.address))
        .at(span)
        .label("another object would take the place of this one")
        .detail(format!("Why: {differ}."))
        .about(&change.address)
        .help("write the current values of the object into the spec; change them after the import")
}

pub(super) fn import_of_no_instance(span: Option<Span>, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("the spec has no {address} to import to"))
        .at(span)
        .label("the key is not in the block's for_each")
        .about(address)
        .help("add the key to for_each, or remove the import")
}

pub(super) fn provider_is_missing(provider: &str, address: &Address) -> Diagnostic {
    Diagnostic::error(format!("the state names a provider `{provider}` that is not configured"))
        .detail(format!("It manages {address}."))
        .about(address)
        .help(match (base(provider), key(provider)) {
            (name, Some(key)) => format!(
                "keep the key `{key}` in `for_each` of [provider.{name}] until its resources are gone: \
                 take these out of the spec first, apply, and then the key"
            ),
            _ => format!("keep a [provider.{provider}] block until its resources are gone"),
        })
}

/// Returns the error for a key for which the chosen provider has no instance.
pub(super) fn no_provider_instance<'a>(
    resource: &ResourceConfig,
    address: &Address,
    wanted: &str,
    known: impl Iterator<Item = &'a Name>,
) -> Diagnostic {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    Diagnostic::error(format!("{address} has no provider"))
        .at(resource.header)
        .label(format!("there is no `{wanted}`, only {}", known.join(", ")))
        .help(format!(
            "give `for_each` of [provider.{}] the key, or take it out of `for_each` here",
            base(wanted)
        ))
        .about(address)
}

pub(super) fn other_provider(
    resource: &ResourceConfig,
    address: &Address,
    own: &str,
) -> Diagnostic {
    let (block, wanted) = (&resource.block, resource.provider.of(address));
    Diagnostic::error(format!("{address} cannot go to another provider"))
        .at(resource.header)
        .label(format!("its object is managed by `{own}`, and the spec says `{wanted}`"))
        .detail("At another provider, its id may belong to another object.")
        .help(format!(
            "to create it anew, give the block another name: the old object is deleted then; \
             if only the provider's name is another, `plumb state rm {block}` and \
             `plumb import {block} ID` keep the object"
        ))
        .about(address)
}

pub(super) fn state_is_damaged(address: &Address, error: &str) -> Diagnostic {
    Diagnostic::error(format!("the state of {address} cannot be read"))
        .detail(error.to_owned())
        .about(address)
}

pub(super) fn no_program(address: &Address, what: &str) -> Diagnostic {
    Diagnostic::error(format!("the provider does not say how to {what} {address}"))
        .about(address)
        .detail("None of its programs applies to the object as planned.")
}

pub(super) fn program_unknown(
    resource: &ResourceConfig,
    address: &Address,
    (asked, sources): (&BTreeSet<Name>, &BTreeSet<Block>),
) -> Diagnostic {
    let names = asked.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let given = asked.iter().find_map(|name| resource.attributes.get(name));
    let diagnostic = Diagnostic::error(format!("how to make or change {address} is not known"))
        .at(given.map_or(resource.header, |item| item.value.span))
        .label(format!("which calls it needs depends on {names}"))
        .about(address);
    if sources.is_empty() {
        return diagnostic.help("give a value that is known while planning and not sensitive");
    }
    let targets = sources.iter().map(|block| format!("--target {block}")).collect::<Vec<_>>();
    diagnostic.help(format!(
        "give a value that is known while planning, or apply first what it comes from: plumb apply {}",
        targets.join(" ")
    ))
}

pub(super) fn nothing_named(what: &str, option: &str, meant: Option<&str>) -> Diagnostic {
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            "`plumb state list` shows the addresses of the state; the spec's are TYPE.NAME".into()
        }
    };
    Diagnostic::error(format!("{option} names `{what}`, which does not exist")).help(help)
}

pub(super) fn no_instance(address: &Address, option: &str, keys: &[&Name]) -> Diagnostic {
    const NAMED_MAX: usize = 12;
    let block = &address.block;
    let detail = match address.key {
        Some(_) => format!("{block} has no instance of that key, in the spec or in the state."),
        None => format!("{block} has a for_each: name one of its instances."),
    };
    let named = keys.iter().take(NAMED_MAX).map(|key| format!("'{block}[{key}]'"));
    let more = if keys.len() > NAMED_MAX { ", …" } else { "" };
    let help = match named.collect::<Vec<_>>() {
        named if named.is_empty() => "it has no instance, in the spec or in the state".to_owned(),
        named => format!("name one of {}{more}", named.join(", ")),
    };
    Diagnostic::error(format!("{option} names `{address}`, which does not exist"))
        .detail(detail)
        .help(help)
}

/// Returns the note about the calls that another run is performing; none if there are none.
pub(super) fn running(calls: &[&Doubt]) -> Option<Diagnostic> {
    let first = calls.first()?;
    let operation = |doubt: &&Doubt| format!("{} of {}", doubt.operation.word(), doubt.address);
    let note = if calls.len() == 1 {
        let summary = format!("{}: {} is running now", first.address, first.operation.word());
        Diagnostic::note(summary).about(&first.address)
    } else {
        let mut named: Vec<_> = calls.iter().take(NAMED_MAX).map(operation).collect();
        if calls.len() > NAMED_MAX {
            named.push(format!("{} more", calls.len() - NAMED_MAX));
        }
        let count = calls.len();
        Diagnostic::note(format!(
            "{count} calls of another run are running now: {}",
            named.join(", ")
        ))
    };
    Some(
        note.detail(
            "Another run holds the lock; this plan leaves out what it is doing, and what depends on it.",
        )
        .help("plan again once it has ended; a plan saved now will be refused"),
    )
}

pub(super) fn in_doubt(doubt: &Doubt) -> Diagnostic {
    let (address, operation) = (&doubt.address, doubt.operation.word());
    Diagnostic::warning(format!("{address}: it is not known whether its {operation} happened"))
        .about(address)
        .detail(format!("{}. It is left out of this plan, with what depends on it.", doubt.reason))
        .help(format!(
            "`plumb apply` looks it up; or decide: plumb resolve '{address}' --adopt ID, or --absent"
        ))
}

/// Returns the warning about an instance that waits, because a call in doubt may leave its name to another
/// object.
pub(super) fn name_in_doubt(
    resource: &ResourceConfig,
    address: &Address,
    bearer: Holder<'_>,
) -> Diagnostic {
    let chosen = resource.schema.identity.chosen_attribute();
    let given = chosen.and_then(|name| resource.attributes.get(name));
    let (other, may, label) = match bearer {
        Holder::Created(other) => {
            (other, "get its name", "it is not known whether an object was made under this name")
        }
        Holder::Deleted(other) => (
            other,
            "have its name still",
            "it is not known whether the object with this name is gone",
        ),
    };
    Diagnostic::warning(format!("{address} waits for {other}, which may {may}"))
        .at(given.map(|item| item.value.span))
        .label(label)
        .about(address)
        .help(format!("decide what became of it: plumb resolve '{other}' --adopt ID, or --absent"))
}

/// Returns the user of an object and the reason for which it stays, as half a sentence.
fn user(user: &Use) -> String {
    let by = &user.by;
    match user.why {
        Staying::LeftOut => format!("{by}, which is left out, uses it"),
        Staying::InDoubt => format!("{by}, which waits for a call in doubt, uses it"),
        Staying::Ignores => format!("{by} ignores changes of its reference, and uses it"),
    }
}

/// Returns the note about objects that a destroy keeps because they were made from excluded ones.
pub(super) fn kept_along(kept: &[&Address]) -> Diagnostic {
    let mut names: Vec<String> = kept.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    if kept.len() > NAMED_MAX {
        names.push(format!("and {} more", kept.len() - NAMED_MAX));
    }
    Diagnostic::note("objects that depend on an excluded one stay, too")
        .detail(format!("{}.", names.join(", ")))
        .help("to delete some of them, name those with `--target` in place of `--exclude`")
}

pub(super) fn still_used(stays: &[(&Change, &Use)]) -> Diagnostic {
    let line = |(change, by): &(&Change, &Use)| {
        let old = if change.deposed { " (an object left behind)" } else { "" };
        format!("{}{old}: {}.", change.address, user(by))
    };
    let mut lines: Vec<String> = stays.iter().take(NAMED_MAX).map(line).collect();
    if stays.len() > NAMED_MAX {
        lines.push(format!("And {} more.", stays.len() - NAMED_MAX));
    }
    Diagnostic::note("objects that are still used stay as they are")
        .detail(lines.join(" "))
        .help("plan both together, or change the reference first")
}

pub(super) fn old_object_stays(change: &Change, by: &Use) -> Diagnostic {
    let address = &change.address;
    Diagnostic::warning(format!("the object that {address} has now stays beside the new one"))
        .at(change.span)
        .label("another object takes its place here")
        .about(address)
        .detail(format!("{}. A later plan deletes it, once nothing uses it.", user(by)))
}

pub(super) fn replace_takes_what_is_used(
    draft: &Draft,
    takes_its_name: bool,
    by: &Use,
) -> Diagnostic {
    let address = &draft.change.address;
    let help = match by.why {
        Staying::Ignores => {
            let reference = format!("remove the reference from the ignore_changes of {}", by.by);
            if draft.create_first || takes_its_name {
                format!("{reference}, or give this one another name: no two can have the same")
            } else {
                format!("{reference}, or set lifecycle = {{ create_before_destroy = true }} here")
            }
        }
        _ => format!("plan {} as well, or leave {address} out: --exclude '{address}'", by.by),
    };
    Diagnostic::error(format!("{address} cannot be replaced while it is used"))
        .at(draft.change.span)
        .label("the current object would have to be deleted first")
        .about(address)
        .detail(format!("{}.", user(by)))
        .help(help)
}

/// Returns the error for a delete of an object that a retained object names. A retained object is not
/// updated, and the API refuses to delete an object that is used.
pub(super) fn named_by_what_is_let_go(
    change: &Change,
    (user, attribute): (&Change, &Name),
) -> Diagnostic {
    let (address, keeper) = (&change.address, &user.address);
    Diagnostic::error(format!("{address} cannot be deleted while a retained object refers to it"))
        .at(change.span)
        .label("the current object would be deleted")
        .about(address)
        .detail(format!(
            "That of {keeper} is left alone (lifecycle.retain) and names it in `{attribute}`, and the API \
             deletes nothing that is named there."
        ))
        .help(format!(
            "retain {address} as well: lifecycle = {{ retain = true }}; or leave both out: \
             --exclude '{address}'"
        ))
}

/// Returns the error for a delete of an object that an attribute still names after this plan. The API refuses
/// to delete an object that is named there.
pub(super) fn named_by_what_stays(used: &Change, user: &Draft, attribute: &Name) -> Diagnostic {
    let (address, keeper) = (&used.address, &user.change.address);
    let silence = if user.is_silent_about(attribute) {
        format!("The spec does not set `{attribute}`, so it stays as it is. ")
    } else {
        String::new()
    };
    let spared = format!("leave {address} as it is: --exclude '{address}'");
    let help = match user.change.span {
        Some(_) => format!("{}; or {spared}", release_help(user, attribute, address)),
        None => spared,
    };
    Diagnostic::error(format!("{address} cannot be deleted while {keeper} refers to it"))
        .at(user.change.span)
        .label(format!("`{attribute}` still refers to it after this plan"))
        .about(address)
        .detail(format!("{silence}The API refuses to delete an object that is referred to there."))
        .help(help)
}

/// Returns the advice that lets an attribute release an object that it names.
fn release_help(user: &Draft, attribute: &Name, used: &Address) -> String {
    let known = user.schema.attributes.get(attribute);
    let clears = |known: &Attribute| known.nulls.contains(&Value::string(""));
    let keeper = &user.change.address;
    match known.map(|known| (&known.ty, clears(known))) {
        Some((Type::List(_) | Type::Set(_), _)) => {
            format!("write `{attribute}` into {keeper} without the id of {used}, as [] for none")
        }
        Some((_, true)) => format!("write `{attribute} = \"\"` into {keeper}, which clears it"),
        _ => format!("give `{attribute}` of {keeper} another value"),
    }
}

/// Returns the error for a delete before the create in a replace of an object that is used. Its user follows
/// only a new object, and the API refuses to delete an object that is used.
pub(super) fn held_until_there_is_another(
    draft: &Draft,
    (user, attribute): (&Address, &Name),
    in_the_way: Option<&Name>,
) -> Diagnostic {
    let address = &draft.change.address;
    let help = match (in_the_way, draft.schema.replace) {
        (Some(name), _) => {
            format!("give it another `{name}`, so that the new one can be made first")
        }
        (None, ReplaceOrder::CreateFirst) => {
            format!(
                "remove create_before_destroy from {address}: the new object is then created first"
            )
        }
        (None, ReplaceOrder::DeleteFirst) => {
            format!("write lifecycle = {{ create_before_destroy = true }} into {address}")
        }
    };
    Diagnostic::error(format!("{address} cannot be deleted before its replacement exists"))
        .at(draft.change.span)
        .label("this replace deletes first")
        .about(address)
        .detail(format!(
            "{user} names it in `{attribute}` until then, and the API deletes nothing that is \
             named there."
        ))
        .help(help)
}

pub(super) fn internal(what: String) -> Diagnostic {
    Diagnostic::error("the plan contradicts itself")
        .detail(what)
        .help("this is a bug in Plumb; nothing was called; please report it with the spec")
}
