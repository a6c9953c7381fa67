//! Outputs and checks.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::names::Names;
use super::{CheckConfig, Document, OutputConfig, RawBlock, Table, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::Diagnostics;
use crate::types::Type;

/// What a check sees beside the spec: values that only show when it runs.
const CHECK_WORDS: [&str; 3] = ["http", "job", "self"];

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
        // What cannot be read must not be shown by mistake.
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
    Some(OutputConfig { value: item.value.clone(), sensitive, header: raw.header })
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
        checker.view.loose = &CHECK_WORDS;
        if let Some(check) = check(&mut checker, name, raw) {
            checks.insert(name.clone(), check);
        }
    }
    checks
}

fn check(checker: &mut Checker<'_>, name: &Name, raw: &RawBlock) -> Option<CheckConfig> {
    let mut sources = Table::new();
    for key in ["http", "job"] {
        if let Some(item) = raw.items.get(key) {
            checker.expect(&item.value, &Type::Any);
            sources.insert(key.into(), item.clone());
        }
    }
    if let Some(item) = raw.items.get("description") {
        checker.constant_text("`description` of a check", &item.value);
    }
    let message = raw.items.get("message").map(|item| {
        checker.expect(&item.value, &Type::String);
        item.value.clone()
    });
    let Some(item) = raw.items.get("assert") else {
        checker.push(say::missing_key(&format!("check `{name}`"), "assert", raw.header));
        return None;
    };
    checker.expect(&item.value, &Type::Boolean);
    Some(CheckConfig { header: raw.header, sources, assert: item.value.clone(), message })
}
