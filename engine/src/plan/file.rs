//! A plan at rest: the file that `plan --out` writes and `apply FILE` reads.
//!
//! Self-contained: steps, values with residuals as expression texts, digests of what the plan was
//! made from. No secret: sensitive values are fingerprints, and the expressions that compute them
//! again name variables. Spans stay outside; a rendered view travels beside the plan for `show`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Name};
use crate::digest::{Digest, Fingerprint, SealKey};
use crate::expression::{Expr, parse};
use crate::journal::{CallId, PhaseRef, Record};
use crate::plan::{
    Action, Base, Cause, Change, Doubt, Drift, OutputChange, Plan, Reason, Step, StepId,
};
use crate::schema::Operation;
use crate::sorted::Set;
use crate::state::{Nonce, ObjectId, Progress};
use crate::stored::Stored;
use crate::types::{Type, TypeError};
use crate::value::{Attributes, Paths, Value};

/// The format's name and number.
pub const FORMAT: &str = "plumb-plan-file/1";

/// Writes a plan. `view` is what `show` prints of it later.
pub fn write(plan: &Plan, view: &serde_json::Value) -> String {
    write_of(plan, view, Origin::default())
}

/// The same with the folder that the plan is of.
pub fn write_of(plan: &Plan, view: &serde_json::Value, origin: Origin) -> String {
    let body = PlanFile::from(plan);
    let digest = digest_of(&body);
    let file = File { format: FORMAT.to_owned(), digest, origin, plan: body, view: view.clone() };
    // Maps have text keys and numbers are finite, so nothing in it can fail to serialise.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// The digest of a plan: what a reviewer approves.
pub fn digest(plan: &Plan) -> Digest {
    digest_of(&PlanFile::from(plan))
}

fn digest_of(body: &PlanFile) -> Digest {
    Digest::of_json(body)
}

/// Which folder a plan is of, so that it is not run in another one. What is run does not depend on
/// it, so it is no part of the digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What its maker called the folder, where that was another than the maker's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Of a first run's plan, whose lineage no state has yet: where the folder is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Digest>,
    /// Of such a plan: the text of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Digest>,
}

/// A plan that was read back.
#[derive(Clone, Debug)]
pub struct SavedPlan {
    /// The plan, without spans.
    pub plan: Plan,
    /// What `show` prints of it.
    pub view: serde_json::Value,
    /// Which folder it is of.
    pub origin: Origin,
}

/// Why a file is not a plan that can be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePlan {
    /// It is something else.
    #[error("this is not a plan file: {0}")]
    NotAPlan(String),
    /// Another version wrote it.
    #[error("this plan file has the format `{0}`, and this version of Plumb reads `{FORMAT}`")]
    OtherFormat(String),
    /// It was changed after it was written.
    #[error("this plan file was changed after it was written: its digest does not fit")]
    Changed,
}

/// Returns true if a text that begins so is a plan file, of whatever version and however damaged.
pub fn is_plan<'a>(head: &'a [u8]) -> bool {
    let name = FORMAT.split('/').next().unwrap_or_default();
    let tokens = [b"{".as_slice(), b"\"format\"", b":", b"\"", name.as_bytes(), b"/"];
    let after = |left: &'a [u8], token: &&[u8]| left.trim_ascii_start().strip_prefix(*token);
    tokens.iter().try_fold(head, after).is_some()
}

/// Reads a plan.
pub fn read(text: &str) -> Result<SavedPlan, UnreadablePlan> {
    let not_a_plan = |error: &dyn std::fmt::Display| UnreadablePlan::NotAPlan(error.to_string());
    let head: Head = serde_json::from_str(text).map_err(|error| not_a_plan(&error))?;
    if head.format != FORMAT {
        return Err(UnreadablePlan::OtherFormat(head.format));
    }
    let file: File = serde_json::from_str(text).map_err(|error| not_a_plan(&error))?;
    if digest_of(&file.plan) != file.digest {
        return Err(UnreadablePlan::Changed);
    }
    let plan = file.plan.plan().map_err(|error| not_a_plan(&error))?;
    // The digest proves that nobody changed it by accident; the linter that it can be run.
    if let Some(note) = super::lint::lint(&plan).into_iter().next() {
        return Err(UnreadablePlan::NotAPlan(note));
    }
    Ok(SavedPlan { plan, view: file.view, origin: file.origin })
}

/// The same file with the digest that it should have; none if it is no plan file. For tests, which
/// change plans on purpose.
pub fn with_its_digest(text: &str) -> Option<String> {
    let mut file: File = serde_json::from_str(text).ok()?;
    file.digest = digest_of(&file.plan);
    serde_json::to_string(&file).ok()
}

/// What every version of the format has.
#[derive(Deserialize)]
struct Head {
    format: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    digest: Digest,
    #[serde(flatten)]
    origin: Origin,
    plan: PlanFile,
    view: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct PlanFile {
    complete: bool,
    base: BaseFile,
    drift: Vec<DriftFile>,
    changes: Vec<ChangeFile>,
    outputs: BTreeMap<Name, OutputFile>,
    steps: Vec<StepFile>,
    doubts: Vec<DoubtFile>,
    seen: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct BaseFile {
    lineage: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_key: Option<SealKey>,
    serial: u64,
    providers: BTreeMap<Name, Digest>,
    accounts: BTreeMap<Name, Fingerprint>,
    objects: BTreeMap<Address, Digest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    namesakes: BTreeMap<Address, BTreeSet<ObjectId>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<Address, BTreeSet<Address>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bearers: BTreeMap<Address, BTreeSet<Address>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    known: BTreeMap<Address, Digest>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    over: BTreeMap<Nonce, Digest>,
    secrets: BTreeMap<Name, Fingerprint>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    secret_types: BTreeMap<Name, String>,
}

#[derive(Serialize, Deserialize)]
struct DriftFile {
    address: Address,
    before: Stored,
    after: Option<Stored>,
    attributes: Vec<Name>,
    proposal: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ChangeFile {
    address: Address,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deposed: bool,
    provider: Name,
    action: Action,
    reason: Reason,
    before: Option<Stored>,
    after: Option<Stored>,
    causes: Vec<CauseFile>,
    object: Option<ObjectId>,
    progress: Progress,
    sensitive: Paths,
    secrets: BTreeMap<Name, String>,
    managed: Set<Name>,
    dependencies: Set<Address>,
    effects: Vec<String>,
    loss: Option<String>,
    deferred_rules: usize,
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    allow_unknown: Set<Name>,
    #[serde(default, skip_serializing_if = "Set::is_empty")]
    ignored: Set<Name>,
}

#[derive(Serialize, Deserialize)]
struct CauseFile {
    attribute: Name,
    replaces: bool,
    drifted: bool,
}

#[derive(Serialize, Deserialize)]
struct OutputFile {
    action: Action,
    before: Option<Stored>,
    after: Option<Stored>,
    sensitive: bool,
    secret: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StepFile {
    operation: Operation,
    address: Address,
    change: usize,
    phase: Option<PhaseRef>,
    object: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deposes: bool,
    needs: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct DoubtFile {
    call: CallId,
    address: Address,
    operation: Operation,
    reason: String,
    running: bool,
}

fn store(attributes: &Attributes) -> Stored {
    Stored::of_sealed(&Value::map(attributes.clone()))
}

impl From<&Plan> for PlanFile {
    fn from(plan: &Plan) -> Self {
        let base = &plan.base;
        Self {
            complete: plan.complete,
            base: BaseFile {
                lineage: base.lineage.clone(),
                first_key: base.first_key.clone(),
                serial: base.serial,
                providers: base.providers.clone(),
                accounts: base.accounts.clone(),
                objects: base.objects.clone(),
                namesakes: base.namesakes.clone(),
                users: base.users.clone(),
                bearers: base.bearers.clone(),
                known: base.known.clone(),
                over: base.over.clone(),
                secrets: base.secrets.clone(),
                secret_types: base
                    .secret_types
                    .iter()
                    .map(|(name, ty)| (name.clone(), ty.to_string()))
                    .collect(),
            },
            drift: plan.drift.iter().map(DriftFile::from).collect(),
            changes: plan.changes.iter().map(ChangeFile::from).collect(),
            outputs: plan
                .outputs
                .iter()
                .map(|(name, output)| (name.clone(), OutputFile::from(output)))
                .collect(),
            steps: plan.steps.iter().map(StepFile::from).collect(),
            doubts: plan.doubts.iter().map(DoubtFile::from).collect(),
            seen: plan.seen.clone(),
        }
    }
}

impl From<&Drift> for DriftFile {
    fn from(drift: &Drift) -> Self {
        Self {
            address: drift.address.clone(),
            before: store(&drift.before),
            after: drift.after.as_ref().map(store),
            attributes: drift.attributes.clone(),
            proposal: drift.proposal.clone(),
        }
    }
}

impl From<&Change> for ChangeFile {
    fn from(change: &Change) -> Self {
        let texts = |(name, expr): (&Name, &Expr)| (name.clone(), expr.to_string());
        Self {
            address: change.address.clone(),
            deposed: change.deposed,
            provider: change.provider.clone(),
            action: change.action,
            reason: change.reason.clone(),
            before: change.before.as_deref().map(store),
            after: change.after.as_deref().map(store),
            causes: change
                .causes
                .iter()
                .map(|cause| CauseFile {
                    attribute: cause.attribute.clone(),
                    replaces: cause.replaces,
                    drifted: cause.drifted,
                })
                .collect(),
            object: change.object.clone(),
            progress: change.progress.clone(),
            sensitive: change.sensitive.clone(),
            secrets: change.secrets.iter().map(texts).collect(),
            managed: change.managed.clone(),
            dependencies: change.dependencies.clone(),
            effects: change.effects.clone(),
            loss: change.loss.clone(),
            deferred_rules: change.deferred_rules,
            allow_unknown: change.allow_unknown.clone(),
            ignored: change.ignored.clone(),
        }
    }
}

impl From<&OutputChange> for OutputFile {
    fn from(output: &OutputChange) -> Self {
        Self {
            action: output.action,
            before: output.before.as_ref().map(Stored::of_sealed),
            after: output.after.as_ref().map(Stored::of_sealed),
            sensitive: output.sensitive,
            secret: output.secret.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Step> for StepFile {
    fn from(step: &Step) -> Self {
        Self {
            operation: step.operation,
            address: step.address.clone(),
            change: step.change,
            phase: step.phase,
            object: step.object.clone(),
            deposes: step.deposes,
            needs: step.needs.iter().map(|need| need.0).collect(),
        }
    }
}

impl From<&Doubt> for DoubtFile {
    fn from(doubt: &Doubt) -> Self {
        Self {
            call: doubt.call,
            address: doubt.address.clone(),
            operation: doubt.operation,
            reason: doubt.reason.clone(),
            running: doubt.running,
        }
    }
}

type Damage = String;

fn attributes(stored: &Stored) -> Result<Attributes, Damage> {
    match stored.value().map_err(|error| error.to_string())? {
        Value::Map(entries) => Ok((*entries).clone()),
        _ => Err("an object's attributes are no table".to_owned()),
    }
}

fn optional<T, U>(
    value: Option<&T>,
    read: impl Fn(&T) -> Result<U, Damage>,
) -> Result<Option<U>, Damage> {
    value.map(read).transpose()
}

fn value(stored: &Stored) -> Result<Value, Damage> {
    stored.value().map_err(|error| error.to_string())
}

fn ty((name, text): (Name, String)) -> Result<(Name, Type), Damage> {
    Ok((name, text.parse().map_err(|error: TypeError| error.to_string())?))
}

fn expression(text: &str) -> Result<Expr, Damage> {
    parse::residual(text).map_err(|error| error.to_string())
}

impl PlanFile {
    fn plan(self) -> Result<Plan, Damage> {
        let base = self.base;
        Ok(Plan {
            complete: self.complete,
            base: Base {
                lineage: base.lineage,
                first_key: base.first_key,
                serial: base.serial,
                providers: base.providers,
                accounts: base.accounts,
                objects: base.objects,
                namesakes: base.namesakes,
                users: base.users,
                bearers: base.bearers,
                known: base.known,
                over: base.over,
                secrets: base.secrets,
                secret_types: base.secret_types.into_iter().map(ty).collect::<Result<_, _>>()?,
            },
            lacks: Vec::new(),
            drift: self.drift.into_iter().map(DriftFile::drift).collect::<Result<_, _>>()?,
            changes: self.changes.into_iter().map(ChangeFile::change).collect::<Result<_, _>>()?,
            outputs: self
                .outputs
                .into_iter()
                .map(|(name, output)| Ok::<_, Damage>((name, output.output()?)))
                .collect::<Result<_, _>>()?,
            steps: self
                .steps
                .into_iter()
                .enumerate()
                .map(|(index, step)| step.step(index))
                .collect(),
            doubts: self.doubts.into_iter().map(DoubtFile::doubt).collect(),
            seen: self.seen,
        })
    }
}

impl DriftFile {
    fn drift(self) -> Result<Drift, Damage> {
        Ok(Drift {
            address: self.address,
            before: attributes(&self.before)?,
            after: optional(self.after.as_ref(), attributes)?,
            attributes: self.attributes,
            proposal: self.proposal,
        })
    }
}

impl ChangeFile {
    fn change(self) -> Result<Change, Damage> {
        let secrets = self
            .secrets
            .iter()
            .map(|(name, text)| Ok::<_, Damage>((name.clone(), expression(text)?)))
            .collect::<Result<_, _>>()?;
        let cause = |cause: CauseFile| Cause {
            attribute: cause.attribute,
            replaces: cause.replaces,
            span: None,
            drifted: cause.drifted,
        };
        Ok(Change {
            address: self.address,
            deposed: self.deposed,
            provider: self.provider,
            action: self.action,
            reason: self.reason,
            before: optional(self.before.as_ref(), attributes)?.map(Arc::new),
            after: optional(self.after.as_ref(), attributes)?.map(Arc::new),
            causes: self.causes.into_iter().map(cause).collect(),
            object: self.object,
            progress: self.progress,
            sensitive: self.sensitive,
            secrets,
            managed: self.managed,
            dependencies: self.dependencies,
            effects: self.effects,
            loss: self.loss,
            deferred_rules: self.deferred_rules,
            allow_unknown: self.allow_unknown,
            ignored: self.ignored,
            span: None,
        })
    }
}

impl OutputFile {
    fn output(self) -> Result<OutputChange, Damage> {
        Ok(OutputChange {
            action: self.action,
            before: optional(self.before.as_ref(), value)?,
            after: optional(self.after.as_ref(), value)?,
            sensitive: self.sensitive,
            secret: self.secret.as_deref().map(expression).transpose()?,
        })
    }
}

impl StepFile {
    fn step(self, index: usize) -> Step {
        Step {
            id: StepId(u32::try_from(index).unwrap_or(u32::MAX)),
            operation: self.operation,
            address: self.address,
            change: self.change,
            phase: self.phase,
            object: self.object,
            deposes: self.deposes,
            needs: self.needs.into_iter().map(StepId).collect(),
        }
    }
}

impl DoubtFile {
    fn doubt(self) -> Doubt {
        Doubt {
            call: self.call,
            address: self.address,
            operation: self.operation,
            reason: self.reason,
            running: self.running,
        }
    }
}
