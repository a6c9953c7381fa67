//! Trials of a descriptor on a server: the provider, the sample objects, and the objects that are left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use engine::address::Name;
use engine::diagnostics::nearest;
use engine::schema::TypeSchema;
use provider_http::{Descriptor, HttpProvider, Network, Settings};
use provider_port::conformance::clean_up;
use provider_port::sample::Sample;
use provider_port::{Kind, Provider as _};
use render::safe;

use super::ledger::{Ledger, Leftover};
use super::sample_values::SampleValues;
use crate::environment;
use crate::error::CommandError;
use crate::output::Output;
use crate::system::System;

/// Returns the provider at the address that the user typed. The rules for sending keys to an address in a
/// spec apply.
pub(super) fn configured(
    descriptor: Descriptor,
    url: &str,
    network: Option<Arc<Network>>,
) -> Result<HttpProvider, CommandError> {
    let settings: Vec<String> =
        descriptor.address_settings().into_iter().map(str::to_owned).collect();
    if settings.is_empty() {
        let error = CommandError::new("the descriptor has no setting for an address");
        return Err(error.help("add `setting = \"url\"` to the `address` of its API"));
    }
    let mut of_process = Settings::new(&environment::variable).beside_spec(true);
    of_process.network = network;
    let settings = settings.iter().fold(of_process, |all, name| all.set(name.as_str(), url));
    let provider = HttpProvider::configure(descriptor, &settings);
    let first = |found: &engine::diagnostics::Diagnostics| match found.iter().next() {
        Some(first) => {
            let error = CommandError::new(first.summary.clone());
            first.help.clone().into_iter().fold(error, CommandError::help)
        }
        None => CommandError::new("the provider cannot be configured"),
    };
    let provider = provider.map_err(|found| first(&found))?;
    if provider.missing().has_errors() {
        return Err(first(provider.missing()));
    }
    Ok(provider)
}

/// Lists the first type, before anything is made: a server that is not there, or refuses the key, would let
/// each check fail for this reason.
pub(super) async fn reach(provider: &HttpProvider, samples: &[Sample]) -> Result<(), CommandError> {
    let first = samples.iter().find(|sample| sample.schema.remote);
    let Some(first) = first else { return Ok(()) };
    match provider.list(&first.schema.name).await {
        Err(error) if matches!(error.kind, Kind::NotSent | Kind::Unauthenticated) => {
            let words = CommandError::new(safe::capped(&error.to_string(), 600));
            Err(error.help.into_iter().fold(words, CommandError::help))
        }
        _ => Ok(()),
    }
}

/// Returns the samples of all manageable types, or of the wanted ones. Parents come before their children.
pub(super) fn samples(
    descriptor: &Descriptor,
    values: &BTreeMap<Name, SampleValues>,
    wanted: &[String],
) -> Result<Vec<Sample>, CommandError> {
    let schema = descriptor.schema();
    let known = || schema.types.keys().map(|name| &**name);
    let mut named = values.keys().map(|name| &**name).chain(wanted.iter().map(String::as_str));
    if let Some(name) = named.find(|name| !schema.types.contains_key(*name)) {
        let error = CommandError::new(format!("the descriptor has no type `{name}`"));
        return Err(match nearest(name, known()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        });
    }
    let mark = format!("plumb-{}", hex(seed()));
    let mut order = Vec::new();
    for name in schema.types.keys() {
        if wanted.is_empty() || wanted.iter().any(|wanted| **wanted == **name) {
            add_with_parents(descriptor, &schema.types, name, &mut order);
        }
    }
    let sample = |name: &Name| {
        let schema = schema.types.get(name)?.clone();
        let outline = descriptor.outline(name)?;
        let given = values.get(name).cloned().unwrap_or_default();
        let parent = outline.parent.unwrap_or_else(|| name.clone());
        let repeated = outline.repeated.into_iter();
        Some(Sample {
            schema,
            given: given.create,
            changed: given.change,
            repeated: repeated.map(|(own, theirs)| (own, (parent.clone(), theirs))).collect(),
            mark: mark.clone(),
        })
    };
    Ok(order.iter().filter_map(sample).filter(|sample| !sample.schema.data_only).collect())
}

/// Adds a type after its parents and the types that it refers to.
fn add_with_parents(
    descriptor: &Descriptor,
    types: &BTreeMap<Name, Arc<TypeSchema>>,
    name: &Name,
    order: &mut Vec<Name>,
) {
    let mut open = vec![name.clone()];
    let mut chain = BTreeSet::new();
    while let Some(at) = open.last().cloned() {
        let parent = descriptor.outline(&at).and_then(|outline| outline.parent);
        let needs: Vec<Name> = parent
            .into_iter()
            .chain(types[&at].attributes.keys().filter_map(|attribute| {
                let (ty, _) = types.get_key_value(attribute.strip_suffix("_id")?)?;
                Some(ty.clone())
            }))
            .filter(|need| !order.contains(need) && !chain.contains(need))
            .collect();
        chain.insert(at.clone());
        if needs.is_empty() {
            open.pop();
            if !order.contains(&at) {
                order.push(at);
            }
        } else {
            open.extend(needs);
        }
    }
}

/// Deletes the objects that a run left, and reports that.
pub(super) async fn clean(
    provider: &HttpProvider,
    ledger: &Ledger,
    left: Vec<Leftover>,
    output: Option<&Output>,
) -> Result<(), CommandError> {
    for leftover in left {
        for (ty, id) in found(provider, &leftover).await? {
            clean_up(provider, &ty, &id).await.map_err(|why| {
                let message = format!("the {ty} {} is left: {why}", id.0);
                CommandError::new(safe::capped(&message, 400))
            })?;
            ledger.settle(&ty, &id)?;
            let line = format!("deleted the {ty} {} that was left", id.0);
            output.inspect(|output| output.talk(&(safe::text(&line) + "\n")));
        }
    }
    Ok(())
}

/// Returns the objects that a leftover may be on the server.
async fn found(
    provider: &HttpProvider,
    leftover: &Leftover,
) -> Result<Vec<(Name, engine::state::ObjectId)>, CommandError> {
    let (ty, names) = match leftover {
        Leftover::Known { ty, id } => return Ok(vec![(ty.clone(), id.clone())]),
        Leftover::Possible { ty, names } => (ty, names),
    };
    let fail = |why: String| {
        let message = format!("a {ty} may be left: {why}");
        CommandError::new(safe::capped(&message, 400))
    };
    let schema = provider.schema();
    let schema =
        schema.types.get(ty).ok_or_else(|| fail("the descriptor has no such type".into()))?;
    let Some(attribute) = &schema.name_attribute else {
        let error = fail("it has no name to find it by".to_owned());
        return Err(error.help("look for it by hand, and remove the ledger"));
    };
    let listed = provider.list(ty).await.map_err(|error| fail(error.to_string()))?;
    let ours = listed.into_iter().filter(|object| {
        let shown = object.attributes.get(attribute).and_then(|shown| shown.as_str());
        shown.is_some_and(|shown| names.iter().any(|name| name == shown))
    });
    Ok(ours.map(|object| (ty.clone(), object.id)).collect())
}

/// Returns the part of one-time names that distinguishes this run from others.
pub(super) fn seed() -> [u8; 4] {
    let [one, two, three, four, ..] = System::random();
    [one, two, three, four]
}

fn hex(bytes: [u8; 4]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
