//! `[plumb] required_version`: the versions of Plumb that a spec is written for.

use semver::{Version, VersionReq};

use super::constant::constant;
use super::{Document, diagnostics as say};
use crate::diagnostics::Diagnostic;
use crate::types::Type;
use crate::value::Value;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the error of a spec that is not for this version, or whose requirement is wrong. Other mistakes
/// are not reported then, because they may be correct in another version.
pub(super) fn check(document: &Document) -> Option<Diagnostic> {
    let item = document.plumb.as_ref()?.items.get("required_version")?;
    let at = item.value.span;
    if document.broken.contains(&at) {
        return None;
    }
    let Some(value) = constant(&item.value.expr) else {
        return Some(say::not_constant("`required_version`", at));
    };
    let Value::String(text) = &value else {
        return Some(say::wrong_type(&Type::String, Some(&value), at));
    };
    let Ok(requirement) = VersionReq::parse(text) else {
        return Some(say::no_version_requirement(text, at));
    };
    let version = Version::parse(VERSION).ok()?;
    if requirement.matches(&version) {
        return None;
    }
    Some(say::other_version_required(text, VERSION, at))
}
