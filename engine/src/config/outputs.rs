//! Outputs and checks.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::conditions::{self, Wording};
use super::names::{Names, Word};
use super::{CheckConfig, Document, OutputConfig, RawBlock, SpecExpr, Table, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::expression::Root;
use crate::expression::visit::roots;
use crate::types::{Field, Type};

/// The sources that a check may fetch, in the order in which they are fetched.
const SOURCES: [&str; 2] = ["http", "job"];

/// Returns the type of the data that a check fetches, by its word: `job` or `http`. The names in a job are
/// those of the job API.
pub fn fetched(word: &str) -> Type {
    match word {
        "job" => object([
            ("id", needed(Type::String)),
            ("status", needed(Type::String)),
            ("output", needed(Type::Any)),
            ("error", needed(Type::Any)),
            ("delayTime", needed(Type::Integer)),
            ("executionTime", needed(Type::Integer)),
        ]),
        _ => object([
            ("status", needed(Type::Integer)),
            ("body", needed(Type::String)),
            ("json", needed(Type::Any)),
        ]),
    }
}

fn needed(ty: Type) -> Field {
    Field { ty, optional: false }
}

fn object<const N: usize>(fields: [(&str, Field); N]) -> Type {
    Type::Object(fields.into_iter().map(|(name, field)| (name.into(), field)).collect())
}

/// Reads and checks the outputs.
pub(super) fn outputs(
    document: &Document,
    names: &Names<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, OutputConfig> {
    let mut outputs = BTreeMap::new();
    for (name, raw) in &document.outputs {
        let mut checker = Checker::new(document, names, diagnostics);
        if let Some(output) = output(&mut checker, name, raw) {
            outputs.insert(name.clone(), output);
        }
    }
    outputs
}

fn output(checker: &mut Checker<'_>, name: &Name, raw: &RawBlock) -> Option<OutputConfig> {
    let sensitive = raw.items.get("sensitive").map(|item| {
        // If the flag cannot be read, the output counts as sensitive, so that nothing is shown by mistake.
        checker.constant_flag("`sensitive` of an output", &item.value).unwrap_or(true)
    });
    if let Some(item) = raw.items.get("description") {
        checker.constant_text("`description` of an output", &item.value);
    }
    let Some(item) = raw.items.get("value") else {
        checker.push(say::missing_key(&format!("output `{name}`"), "value", raw.header));
        return None;
    };
    checker.expect(&item.value, &Type::Any);
    let sensitive = sensitive.unwrap_or(false);
    let wording = Wording {
        key: "precondition",
        one: "a precondition",
        whose: format!("a precondition of output `{name}`"),
        form: format!("[[output.{name}.precondition]]"),
    };
    let preconditions = raw.items.get("precondition");
    let preconditions = preconditions.map(|item| conditions::of_item(checker, item, &wording));
    Some(OutputConfig {
        value: item.value.clone(),
        sensitive,
        preconditions: preconditions.unwrap_or_default(),
        header: raw.header,
    })
}

/// Reads and checks the checks.
pub(super) fn checks(
    document: &Document,
    names: &Names<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, CheckConfig> {
    let mut checks = BTreeMap::new();
    for (name, raw) in &document.checks {
        let mut checker = Checker::new(document, names, diagnostics);
        if let Some(check) = check(&mut checker, name, raw) {
            checks.insert(name.clone(), check);
        }
    }
    checks
}

fn check(checker: &mut Checker<'_>, name: &Name, raw: &RawBlock) -> Option<CheckConfig> {
    let mut sources = Table::new();
    let mut words = Vec::new();
    for name in SOURCES {
        let item = raw.items.get(name);
        if let Some(item) = item {
            // The code that fetches the source checks its values.
            checker.expect(&item.value, &Type::Any);
            refuse_data(checker.diagnostics, &item.value);
            sources.insert(name.into(), item.clone());
        }
        words.push(Word { name, ty: item.map(|_| fetched(name)) });
    }
    // The words of a source do not exist yet in the sources before it.
    checker.view.words = words;
    if let Some(item) = raw.items.get("description") {
        checker.constant_text("`description` of a check", &item.value);
    }
    let message = raw.items.get("message").map(|item| {
        checker.expect(&item.value, &Type::String);
        refuse_data(checker.diagnostics, &item.value);
        item.value.clone()
    });
    let Some(item) = raw.items.get("assert") else {
        checker.push(say::missing_key(&format!("check `{name}`"), "assert", raw.header));
        return None;
    };
    checker.expect(&item.value, &Type::Boolean);
    refuse_data(checker.diagnostics, &item.value);
    Some(CheckConfig { header: raw.header, sources, assert: item.value.clone(), message })
}

/// Refuses data blocks in a check: it sees objects of the state, and no state has looked-up objects.
fn refuse_data(diagnostics: &mut Diagnostics, value: &SpecExpr) {
    roots(&value.expr, &mut |root, range| {
        if matches!(root, Root::Resource(block) if block.is_data) {
            diagnostics.push(say::data_in_check(value.span_of(range)));
        }
    });
}
