//! `[policy.<name>]`: conditions on a plan, in a spec or in their own files.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::names::{Names, Word};
use super::{Document, RawBlock, SpecExpr, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::{Diagnostics, FileId, Severity, Span};
use crate::schema::TypeSchema;
use crate::types::{Field, Type};

/// The word that stands for all types in `for`.
const ALL: &str = "all";
/// The words of `severity`.
const SEVERITIES: [&str; 2] = ["deny", "warn"];

/// A policy: a condition on a plan.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// Its header's place.
    pub header: Span,
    /// The part of the plan that it judges.
    pub subject: Subject,
    /// The condition.
    pub assert: SpecExpr,
    /// The message if the condition does not hold; none for a default text.
    pub message: Option<SpecExpr>,
    /// An error for a policy that denies, a warning for one that warns.
    pub severity: Severity,
}

/// The part of the plan that a policy judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The whole plan.
    Plan,
    /// Each change.
    EachChange,
    /// Each change of a type.
    ChangesOf(Name),
}

impl Subject {
    /// Returns true if the policy judges changes of a type one by one.
    pub fn covers(&self, ty: &Name) -> bool {
        match self {
            Self::Plan => false,
            Self::EachChange => true,
            Self::ChangesOf(own) => own == ty,
        }
    }
}

/// The type of the items of `plan.changes` and `plan.resources`.
fn item() -> Type {
    let text = || needed(Type::String);
    object([
        ("address", text()),
        ("type", text()),
        ("name", text()),
        ("module", text()),
        ("key", text()),
        ("action", text()),
        ("cost", needed(Type::Any)),
        ("old", needed(Type::Any)),
        ("new", needed(Type::Any)),
    ])
}

/// The type of `plan`: the changes, the resources afterwards, and the cost.
pub fn plan_type() -> Type {
    let items = || needed(Type::list(item()));
    object([("changes", items()), ("resources", items()), ("cost", needed(Type::Any))])
}

fn needed(ty: Type) -> Field {
    Field { ty, optional: false }
}

fn object<const N: usize>(fields: [(&str, Field); N]) -> Type {
    Type::Object(fields.into_iter().map(|(name, field)| (name.into(), field)).collect())
}

/// Adds the policies from their own files, which were parsed as a document, to the document of the spec.
pub fn add_policies(document: &mut Document, policies: Document, files: &[FileId]) -> Diagnostics {
    let mut found = Diagnostics::new();
    for header in headers_beside_policies(&policies) {
        found.push(say::not_a_policy(header));
    }
    for (name, raw) in policies.policies {
        match document.policies.get(&name) {
            Some(first) => {
                let what = format!("`policy.{name}`");
                found.push(say::declared_twice(&what, raw.header, Some(first.header)));
            }
            None => {
                document.policies.insert(name, raw);
            }
        }
    }
    document.files.extend(policies.files);
    document.broken.extend(policies.broken);
    document.torn |= policies.torn;
    document.policy_files.extend(files);
    found
}

/// Returns the places of all tables that are no policies.
fn headers_beside_policies(document: &Document) -> Vec<Span> {
    let named = [
        &document.variables,
        &document.providers,
        &document.outputs,
        &document.checks,
        &document.modules,
    ];
    let blocks = named.into_iter().flat_map(BTreeMap::values);
    let blocks = blocks.chain(document.resources.values()).chain(&document.plumb);
    let blocks = blocks.chain(&document.state).chain(&document.imports);
    let headers = blocks.map(|block| block.header);
    headers.chain(document.locals.values().map(|item| item.key)).collect()
}

/// Reads and checks the policies. `types` are the types of all providers.
pub(super) fn policies(
    document: &Document,
    names: &Names<'_>,
    types: &BTreeMap<&Name, &TypeSchema>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, PolicyConfig> {
    let mut policies = BTreeMap::new();
    for (name, raw) in &document.policies {
        let mut checker = Checker::new(document, names, diagnostics);
        if let Some(policy) = policy(&mut checker, name, raw, types) {
            policies.insert(name.clone(), policy);
        }
    }
    policies
}

fn policy(
    checker: &mut Checker<'_>,
    name: &Name,
    raw: &RawBlock,
    types: &BTreeMap<&Name, &TypeSchema>,
) -> Option<PolicyConfig> {
    if let Some(item) = raw.items.get("description") {
        checker.constant_text("`description` of a policy", &item.value);
    }
    let severity = severity(checker, raw);
    let subject = subject(checker, raw, types)?;
    checker.view.words = words(&subject, types);
    let message = raw.items.get("message").map(|item| {
        checker.expect(&item.value, &Type::String);
        item.value.clone()
    });
    let Some(item) = raw.items.get("assert") else {
        checker.push(say::missing_key(&format!("policy `{name}`"), "assert", raw.header));
        return None;
    };
    checker.expect(&item.value, &Type::Boolean);
    let assert = item.value.clone();
    Some(PolicyConfig { header: raw.header, subject, assert, message, severity })
}

/// Returns the part of the plan that a policy judges; none for an unknown type. A policy from its own file
/// may be for types that this spec does not know.
fn subject(
    checker: &mut Checker<'_>,
    raw: &RawBlock,
    types: &BTreeMap<&Name, &TypeSchema>,
) -> Option<Subject> {
    let Some(item) = raw.items.get("for") else { return Some(Subject::Plan) };
    let ty = checker.constant_text("`for` of a policy", &item.value)?;
    if &*ty == ALL {
        return Some(Subject::EachChange);
    }
    if !types.contains_key(&ty) {
        if !checker.document.policy_files.contains(&raw.header.file) {
            let known = types.keys().map(|name| &***name).chain([ALL]);
            checker.push(say::unknown_type(&ty, known, item.value.span));
        }
        return None;
    }
    Some(Subject::ChangesOf(ty))
}

/// Returns the words that a policy sees.
fn words(subject: &Subject, types: &BTreeMap<&Name, &TypeSchema>) -> Vec<Word> {
    let object = match subject {
        Subject::Plan => {
            return vec![Word { name: "plan", ty: Some(plan_type()) }];
        }
        Subject::EachChange => Type::Any,
        Subject::ChangesOf(ty) => types.get(ty).map_or(Type::Any, |schema| schema.object_type()),
    };
    let word = |name, ty: &Type| Word { name, ty: Some(ty.clone()) };
    let texts = ["address", "type", "name", "module", "key", "action"];
    let objects = ["old", "new"].map(|name| word(name, &object));
    texts.into_iter().map(|name| word(name, &Type::String)).chain(objects).collect()
}

fn severity(checker: &mut Checker<'_>, raw: &RawBlock) -> Severity {
    let Some(item) = raw.items.get("severity") else { return Severity::Error };
    match checker.constant_text("`severity` of a policy", &item.value).as_deref() {
        Some("warn") => Severity::Warning,
        Some("deny") | None => Severity::Error,
        Some(other) => {
            checker.push(say::unknown_severity(other, item.value.span, &SEVERITIES));
            Severity::Error
        }
    }
}
