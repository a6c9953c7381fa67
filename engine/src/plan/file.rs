//! A plan at rest: the file that `plan --out` writes, `apply FILE` reads and `show FILE` prints.
//!
//! The file holds the plan, and the inputs that the plan was made of, so that `apply` can make it again
//! without a spec beside it. It holds no secret: sensitive values in the plan are fingerprints, and the user
//! gives the values of sensitive variables again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::address::Name;
use crate::config::resolve::Files;
use crate::digest::{Digest, Fingerprint};
use crate::plan::input::Options;
use crate::plan::{Action, Base, Change, OutputChange, Plan, Step};
use crate::stored::Stored;

/// The name of the format, with its version.
pub const FORMAT: &str = "plumb-plan-file/2";

/// The inputs that a plan was made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The folder of the spec, as `plan` was called with it from another folder; none if `plan` ran in the
    /// folder of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The digest of the path of the folder, for the plan of a first run: no state says yet which folder the
    /// plan is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Digest>,
    /// The files of the spec, in the order in which they are read.
    pub spec: Vec<SpecFile>,
    /// The policy files beside the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<SpecFile>,
    /// The contents of the files that the spec names, by path, or the reason that a file could not be read.
    pub files: Files,
    /// The values that the user gave for variables that are not sensitive.
    pub variables: BTreeMap<Name, Stored>,
    /// The fingerprints of the values that the user gave for sensitive variables.
    pub secrets: BTreeMap<Name, Fingerprint>,
    /// The options of the plan.
    pub options: Options,
}

/// A file of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecFile {
    /// The name of the file in the folder of the spec.
    pub name: String,
    /// The contents of the file.
    pub text: String,
}

/// The contents of a plan file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedPlan {
    /// The inputs that the plan was made of.
    pub inputs: Inputs,
    /// The plan, without spans and without the expressions that compute secrets.
    pub plan: Plan,
    /// The view that `show` takes spans and units from.
    pub view: serde_json::Value,
}

/// The reason that a file is not a plan that can be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePlan {
    /// The file is not a plan file.
    #[error("this is not a plan file: {0}")]
    NotAPlan(String),
    /// Another version of Plumb wrote the file.
    #[error(
        "this plan file was made by another version of Plumb: its format is `{0}`, and this version reads `{FORMAT}`; \
         plan again"
    )]
    OtherFormat(String),
    /// The file was changed after it was written.
    #[error("this plan file was changed after it was written: its digest does not fit")]
    Changed,
}

/// The part of a plan file that all versions of the format have in common.
#[derive(Deserialize)]
struct Head {
    format: String,
}

#[derive(Serialize, Deserialize)]
struct File<T> {
    format: String,
    /// The digest of all fields that follow.
    digest: Digest,
    #[serde(flatten)]
    saved: T,
}

/// Returns true if a text that begins with `head` is a plan file, of any version and however damaged.
pub fn is_plan<'a>(head: &'a [u8]) -> bool {
    let name = FORMAT.split('/').next().unwrap_or_default();
    let tokens = [b"{".as_slice(), b"\"format\"", b":", b"\"", name.as_bytes(), b"/"];
    let after = |left: &'a [u8], token: &&[u8]| left.trim_ascii_start().strip_prefix(*token);
    tokens.iter().try_fold(head, after).is_some()
}

/// Writes a plan file.
pub fn write(saved: &SavedPlan) -> String {
    let file = File { format: FORMAT.to_owned(), digest: Digest::of_json(saved), saved };
    // Maps have text keys and numbers are finite, so nothing in it can fail to serialise.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads a plan file.
pub fn read(text: &str) -> Result<SavedPlan, UnreadablePlan> {
    let not_a_plan = |error: serde_json::Error| UnreadablePlan::NotAPlan(error.to_string());
    let head: Head = serde_json::from_str(text).map_err(not_a_plan)?;
    if head.format != FORMAT {
        return Err(UnreadablePlan::OtherFormat(head.format));
    }
    let file: File<SavedPlan> = serde_json::from_str(text).map_err(not_a_plan)?;
    if Digest::of_json(&file.saved) != file.digest {
        return Err(UnreadablePlan::Changed);
    }
    Ok(file.saved)
}

/// Returns a plan file with the digest that fits its contents; none if the text is no plan file. For tests,
/// which change plans on purpose.
pub fn with_its_digest(text: &str) -> Option<String> {
    let file: File<SavedPlan> = serde_json::from_str(text).ok()?;
    Some(write(&file.saved))
}

/// The part of a plan that runs.
#[derive(Serialize)]
struct Executable<'p> {
    complete: bool,
    base: &'p Base,
    changes: Vec<&'p Change>,
    outputs: BTreeMap<&'p Name, &'p OutputChange>,
    steps: &'p [Step],
}

/// Returns the digest of the part of a plan that runs, which is what a reviewer approves.
pub fn digest(plan: &Plan) -> Digest {
    let changes = plan.changes.iter().filter(|change| change.action != Action::NoOp);
    let outputs = plan.outputs.iter().filter(|(_, output)| output.action != Action::NoOp);
    Digest::of_json(&Executable {
        complete: plan.complete,
        base: &plan.base,
        changes: changes.collect(),
        outputs: outputs.collect(),
        steps: &plan.steps,
    })
}
