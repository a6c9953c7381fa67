//! `plumb provider test`: runs the conformance suite of providers on any descriptor and address.

use std::fmt::Write as _;
use std::path::Path;

use engine::address::Name;
use engine::diagnostics::FileId;
use provider_http::Descriptor;
use provider_port::conformance::{Outcome, Suite, check};
use render::safe;
use serde_json::json;

use super::ledger::Ledger;
use super::trial::{clean, configured, reach, samples, seed};
use super::{descriptor_file, sample_values};
use crate::args::{ProviderTest, Trial};
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::runtime;

/// The checks, in the order of the table.
const CHECKS: [&str; 5] = ["create", "show", "update", "delete", "refuse"];

pub(super) fn run(
    base: &Path,
    typed: &ProviderTest,
    output: &Output,
) -> Result<Status, CommandError> {
    let args: &Trial = &typed.trial;
    let Some(descriptor) = descriptor(base, &args.descriptor, output)? else {
        return Ok(Status::Failed);
    };
    let values = args.values.as_ref().map(|path| sample_values::read(base, path)).transpose()?;
    let samples = samples(&descriptor, &values.unwrap_or_default(), &args.types)?;
    let names = samples.iter().filter_map(|sample| {
        Some((sample.schema.name.clone(), sample.schema.name_attribute.clone()?))
    });
    let names = names.collect();
    let name = descriptor.name().clone();
    let provider = configured(descriptor, &args.against, None)?;
    let (ledger, outcomes, cleaned) = runtime::wait_for(async {
        reach(&provider, &samples).await?;
        let (ledger, left) = Ledger::open(base, &name, &args.against, names)?;
        clean(&provider, &ledger, left, Some(output)).await?;
        if args.clean {
            return Ok((ledger, Vec::new(), Ok(())));
        }
        let mut suite = Suite::new(&provider).witness(&ledger, seed());
        for sample in samples {
            suite = suite.with(sample.fixture());
        }
        let outcomes = check(&suite).await;
        let cleaned = clean(&provider, &ledger, ledger.left()?, Some(output)).await;
        Ok((ledger, outcomes, cleaned))
    })?;
    if args.clean {
        ledger.finish()?;
        return Ok(Status::Done);
    }
    output.data(&if typed.form.is_json() { as_json(&outcomes) } else { table(&outcomes) });
    cleaned.map_err(|error| error.help(format!("{} has what is left", ledger.path().display())))?;
    ledger.finish()?;
    let is_fine = outcomes.iter().all(|outcome| outcome.result.is_ok());
    Ok(if is_fine { Status::Done } else { Status::Failed })
}

/// Reads the descriptor. Returns `None` if it has mistakes, which are shown.
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

/// Returns a table of the checks of each type, followed by the failures.
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
