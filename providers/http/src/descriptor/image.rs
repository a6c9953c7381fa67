//! `image = true`: an attribute that names a container image, and the warning about a name without a version.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::diagnostics::{Severity, Span};
use engine::expression::parse::{Dialect, expression, template};
use engine::schema::{Rule, RuleOn};
use engine::types::Type;

use super::diagnostics;
use super::model::AttributeModel;
use super::reader::{Keys, Reader};

/// Reads the key; returns its place if the attribute names an image.
pub(super) fn read(reader: &mut Reader, keys: &mut Keys<'_>, ty: &Type) -> Option<Span> {
    let node = keys.node("image").filter(|_| keys.flag(reader, "image"))?;
    let span = reader.span(node.span());
    if *ty == Type::String {
        return Some(span);
    }
    let label = format!("it is of type {ty}");
    reader.push(diagnostics::misfit(
        span,
        "the attribute names no image",
        &label,
        "leave it out: the name of an image is a string",
    ));
    None
}

/// Returns the rules that warn about images, each with its place.
pub(super) fn rules(
    attributes: &BTreeMap<Name, AttributeModel>,
) -> impl Iterator<Item = (Span, Rule)> {
    attributes.iter().filter_map(|(name, attribute)| Some((attribute.image?, rule(name)?)))
}

/// Returns the rule that the name has a tag other than `latest`, or a digest. A colon may also stand before
/// the port of a registry.
fn rule(name: &Name) -> Option<Rule> {
    let image = format!("new.{name}");
    let bare = format!("${{trimsuffix({image}, \":latest\")}}");
    let assert = format!(
        "{image} == null || can(regex(\":[^/]+$\", {image})) && !endswith({image}, \":latest\")"
    );
    let message = format!(
        "the image ${{{image}}} has no version, so the same spec may run another image tomorrow"
    );
    let help = format!("write its version, as in {bare}:1.2, or its digest, as in {bare}@sha256:…");
    Some(Rule {
        on: RuleOn::Any,
        severity: Severity::Warning,
        assert: expression(&assert, Dialect::Names).ok()?,
        message: template(&message, Dialect::Names).ok()?,
        help: Some(template(&help, Dialect::Names).ok()?),
        attribute: Some(name.clone()),
    })
}
