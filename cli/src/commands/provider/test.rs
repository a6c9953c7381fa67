//! `plumb provider test`: the conformance suite of providers, on any descriptor and address.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use engine::address::Name;
use engine::diagnostics::{FileId, nearest};
use engine::schema::TypeSchema;
use provider_http::{Descriptor, HttpProvider, Settings};
use provider_port::Provider as _;
use provider_port::conformance::{Outcome, Suite, check, clean_up};
use provider_port::sample::Sample;
use render::safe;
use serde_json::json;

use super::descriptor_file;
use super::ledger::{Ledger, Leftover};
use super::sample_values::{self, SampleValues};
use crate::args::ProviderTest;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::system::System;
use crate::{environment, runtime};

/// The checks, in the order of the table.
const CHECKS: [&str; 5] = ["create", "show", "update", "delete", "refuse"];

pub(super) fn run(
    base: &Path,
    args: &ProviderTest,
    output: &Output,
) -> Result<Status, CommandError> {
    let Some(descriptor) = descriptor(base, &args.descriptor, output)? else {
        return Ok(Status::Failed);
    };
    let values = args.values.as_ref().map(|path| sample_values::read(base, path)).transpose()?;
    let samples = samples(&descriptor, &values.unwrap_or_default(), &args.types)?;
    let names = samples.iter().filter_map(|sample| {
        Some((sample.schema.name.clone(), sample.schema.name_attribute.clone()?))
    });
    let names = names.collect();
    let (ledger, left) = Ledger::open(base, descriptor.name(), &args.against, names)?;
    let provider = configured(descriptor, &args.against)?;
    let (outcomes, cleaned) = runtime::wait_for(async {
        clean(&provider, &ledger, left, output).await?;
        if args.clean {
            return Ok((Vec::new(), Ok(())));
        }
        let mut suite = Suite::new(&provider).witness(&ledger, seed());
        for sample in samples {
            suite = suite.with(sample.fixture());
        }
        let outcomes = check(&suite).await;
        Ok((outcomes, clean(&provider, &ledger, ledger.left()?, output).await))
    })?;
    if args.clean {
        ledger.finish()?;
        return Ok(Status::Done);
    }
    output.data(&if args.form.is_json() { as_json(&outcomes) } else { table(&outcomes) });
    cleaned.map_err(|error| error.help(format!("{} has what is left", ledger.path().display())))?;
    ledger.finish()?;
    let is_fine = outcomes.iter().all(|outcome| outcome.result.is_ok());
    Ok(if is_fine { Status::Done } else { Status::Failed })
}

/// Reads the descriptor; none where it has mistakes, which are shown.
fn descriptor(
    base: &Path,
    name: &str,
    output: &Output,
) -> Result<Option<Descriptor>, CommandError> {
    if let Some(text) = name.strip_prefix("catalog:").and_then(provider_http::catalog) {
        return Ok(provider_http::load(text, FileId(0)).0);
    }
    let file = descriptor_file::read(base, Path::new(name))?;
    output.diagnostics(&file.diagnostics, &file.sources);
    Ok(file.descriptor)
}

/// The provider at an address that was typed. A key goes there as it goes to an address of a spec.
fn configured(descriptor: Descriptor, url: &str) -> Result<HttpProvider, CommandError> {
    let settings: Vec<String> =
        descriptor.address_settings().into_iter().map(str::to_owned).collect();
    if settings.is_empty() {
        let error = CommandError::new("the descriptor has no setting for an address");
        return Err(error.help("add `setting = \"url\"` to the `address` of its API"));
    }
    let of_process = Settings::new(&environment::variable).beside_spec(true);
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

/// The samples of all types that can be managed, or of the wanted ones, those above others first.
fn samples(
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

/// Adds a type behind those above it and those that it refers to.
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

/// Deletes what an earlier run left.
async fn clean(
    provider: &HttpProvider,
    ledger: &Ledger,
    left: Vec<Leftover>,
    output: &Output,
) -> Result<(), CommandError> {
    for leftover in left {
        for (ty, id) in found(provider, &leftover).await? {
            clean_up(provider, &ty, &id).await.map_err(|why| {
                let message = format!("the {ty} {} is left: {why}", id.0);
                CommandError::new(safe::capped(&message, 400))
            })?;
            ledger.settle(&ty, &id)?;
            let line = format!("deleted the {ty} {} that was left", id.0);
            output.talk(&(safe::text(&line) + "\n"));
        }
    }
    Ok(())
}

/// Returns the objects that a leftover may be.
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

/// The part of one-time names that tells this run from others.
fn seed() -> [u8; 4] {
    let [one, two, three, four, ..] = System::random();
    [one, two, three, four]
}

fn hex(bytes: [u8; 4]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The checks of each type, and then what is wrong.
fn table(outcomes: &[Outcome]) -> String {
    let mut types: Vec<&Name> = Vec::new();
    for outcome in outcomes {
        if !types.contains(&&outcome.ty) {
            types.push(&outcome.ty);
        }
    }
    let width = types.iter().map(|ty| ty.len()).max().unwrap_or_default().max(4);
    let mut text = format!("{:width$}", "type");
    for check in CHECKS {
        let _ = write!(text, "  {check:6}");
    }
    text.push('\n');
    for ty in types {
        let _ = write!(text, "{ty:width$}");
        for check in CHECKS {
            let found = outcomes.iter().find(|it| it.ty == *ty && it.check == check);
            let word = match found.map(|outcome| &outcome.result) {
                None => "-",
                Some(Ok(())) => "ok",
                Some(Err(_)) => "failed",
            };
            let _ = write!(text, "  {word:6}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for outcome in outcomes {
        if let Err(why) = &outcome.result {
            let line = format!("{}: {}: {why}", outcome.ty, outcome.check);
            let _ = writeln!(text, "{}", safe::capped(&line, 600));
        }
    }
    text
}

fn as_json(outcomes: &[Outcome]) -> String {
    let outcomes = outcomes.iter().map(|outcome| {
        json!({
            "type": *outcome.ty,
            "check": outcome.check,
            "passed": outcome.result.is_ok(),
            "reason": outcome.result.as_ref().err(),
        })
    });
    render::json::pretty(&outcomes.collect::<serde_json::Value>())
}
