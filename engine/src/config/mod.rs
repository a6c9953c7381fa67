//! The spec: TOML text with spans, read in two stages.
//!
//! [`parse`] turns files into a [`Document`]: every block, key and expression with its place, and
//! nothing looked up. The shell then configures the providers that the document names, and
//! [`resolve`] turns document, variables and schemas into a [`Config`]: every reference resolved,
//! every expression typed. Both return what they could make together with diagnostics, all of
//! them in one go; neither reads a file (the shell answers [`Document::files`]).

pub mod backends;
mod checker;
mod conditions;
pub mod constant;
mod convert;
pub(crate) mod data;
pub mod diagnostics;
pub mod for_each;
mod found;
mod given;
mod imports;
pub mod keys;
mod lifecycle;
mod locals;
pub mod modules;
mod moves;
mod names;
mod offsets;
mod outputs;
pub mod parse;
pub mod policies;
pub mod provider_choice;
mod removals;
mod required_version;
pub mod resolve;
mod resource;
pub mod scope;
pub mod settings;
mod singletons;
mod state_settings;
pub mod symbols;
mod syntax;
mod table;
#[cfg(test)]
pub(crate) mod testing;
mod validations;
pub mod variables;
pub(crate) mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::address::{Address, AddressPattern, Block, MoveRule, Name};
use crate::diagnostics::{FileId, Span};
use crate::expression::{Expr, Range};
use crate::schema::TypeSchema;
use crate::state::ObjectId;
use crate::types::Type;
use crate::value::Datum;
pub use conditions::Condition;
pub use data::{DataConfig, Fetched};
pub use modules::source::ModuleSource;
pub use moves::moved_block;
pub use outputs::fetched;
pub use policies::PolicyConfig;
pub use provider_choice::ProviderChoice;
pub use table::Table;

/// The largest spec, in bytes, all files together.
pub const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most values of a spec, all files together.
pub const VALUES_MAX: usize = 5_000_000;
/// The deepest nesting of TOML arrays and inline tables: what an expression may be nested, too.
pub const NESTING_MAX: usize = 64;

/// An expression of a spec. The ranges in it count bytes of its file, not of its own text.
#[derive(Clone, Debug)]
pub struct SpecExpr {
    /// The expression; a TOML array or table is a list or map expression of its parts.
    pub expr: Expr,
    /// The TOML value that it stands in, quotes and all.
    pub span: Span,
}

impl SpecExpr {
    /// The place of a part of the expression.
    pub fn span_of(&self, range: Range) -> Span {
        if range == Range::default() {
            return self.span;
        }
        Span { file: self.span.file, start: range.start, end: range.end }
    }
}

/// One `key = value` of a spec.
#[derive(Clone, Debug)]
pub struct Item {
    /// The key's place.
    pub key: Span,
    /// The value.
    pub value: SpecExpr,
}

/// A `[kind.name]` block before anything is looked up.
#[derive(Clone, Debug)]
pub struct RawBlock {
    /// The place of its header, to show for things that are missing in it.
    pub header: Span,
    /// Its keys.
    pub items: Table,
}

/// The syntax of the files of a spec.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// `[plumb]`.
    pub plumb: Option<RawBlock>,
    /// `[state]`.
    pub state: Option<RawBlock>,
    /// `[variable.<name>]`.
    pub variables: BTreeMap<Name, RawBlock>,
    /// `[local]`.
    pub locals: BTreeMap<Name, Item>,
    /// `[provider.<name>]`.
    pub providers: BTreeMap<Name, RawBlock>,
    /// `[resource.<type>.<name>]`; nested tables such as `lifecycle` are map expressions.
    pub resources: BTreeMap<Block, RawBlock>,
    /// `[data.<type>.<name>]`.
    pub data: BTreeMap<Block, RawBlock>,
    /// `[output.<name>]`.
    pub outputs: BTreeMap<Name, RawBlock>,
    /// `[check.<name>]`.
    pub checks: BTreeMap<Name, RawBlock>,
    /// `[policy.<name>]`.
    pub policies: BTreeMap<Name, RawBlock>,
    /// The files of policies that do not belong to the spec.
    pub policy_files: BTreeSet<FileId>,
    /// `[[import]]`, in the order of the text.
    pub imports: Vec<RawBlock>,
    /// `[[moved]]`, in the order of the text.
    pub moved: Vec<RawBlock>,
    /// `[[removed]]`, in the order of the text.
    pub removed: Vec<RawBlock>,
    /// `[module.<name>]`.
    pub modules: BTreeMap<Name, RawBlock>,
    /// The modules that the document and they themselves call, as far as they could be read.
    pub library: BTreeMap<ModuleSource, Arc<Document>>,
    /// The paths that `file("…")` names, relative to the spec's folder.
    pub files: BTreeSet<String>,
    /// The values of which a part could not be read: reported, and not checked any further.
    pub broken: BTreeSet<Span>,
    /// True if a file could not be read whole, so that what seems missing may stand in it.
    pub torn: bool,
}

/// A spec with references resolved and types proven.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `plumb.name`.
    pub name: Option<Name>,
    /// The variables with their values.
    pub variables: BTreeMap<Name, Variable>,
    /// The locals, and by their paths the inputs, locals and outputs of modules.
    pub locals: BTreeMap<Name, LocalConfig>,
    /// The contents of the files that `file("…")` names.
    pub files: BTreeMap<String, Arc<str>>,
    /// The resources.
    pub resources: BTreeMap<Block, ResourceConfig>,
    /// The data blocks.
    pub data: BTreeMap<Block, DataConfig>,
    /// The outputs.
    pub outputs: BTreeMap<Name, OutputConfig>,
    /// The checks.
    pub checks: BTreeMap<Name, CheckConfig>,
    /// The policies.
    pub policies: BTreeMap<Name, PolicyConfig>,
    /// The objects to take over, by the address that they get.
    pub imports: BTreeMap<Address, ImportConfig>,
    /// The moves of objects to other addresses.
    pub moves: Vec<MoveConfig>,
    /// The removals that say what becomes of the objects.
    pub removals: Vec<RemovalConfig>,
}

/// A variable and the value it has in this run.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub ty: Type,
    /// Its value: given, else the default. Sensitive as a whole when declared so.
    pub value: Datum,
    /// True if it is declared sensitive.
    pub sensitive: bool,
    /// The place of the default of a sensitive one; none where there is none, or nothing in it.
    pub secret_default: Option<Span>,
    /// The place of its declaration.
    pub span: Span,
}

/// A value that others refer to by its name: a local, or an input or an output of a module.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// Its expression.
    pub value: SpecExpr,
    /// The type that a module declares for its input: the value is converted to it.
    pub ty: Option<Type>,
}

impl LocalConfig {
    /// Returns its value as one of its type.
    pub fn typed(&self, value: Datum) -> Result<Datum, String> {
        match &self.ty {
            None => Ok(value),
            Some(ty) => {
                value.convert(ty).map_err(|misfit| misfit.shown(!value.sensitive.is_empty()))
            }
        }
    }
}

/// A resource block.
#[derive(Clone, Debug)]
pub struct ResourceConfig {
    /// Its address.
    pub block: Block,
    /// Its header's place.
    pub header: Span,
    /// The provider instance that manages it, or each of its instances.
    pub provider: ProviderChoice,
    /// The schema of its type.
    pub schema: Arc<TypeSchema>,
    /// The attributes that the spec gives; each fits its schema's type as far as types can tell.
    pub attributes: Table,
    /// One instance for each entry.
    pub for_each: Option<SpecExpr>,
    /// The addresses that it comes after without referring to them; a key of none means all instances.
    pub depends_on: Vec<(Address, Span)>,
    /// Its lifecycle.
    pub lifecycle: Arc<Lifecycle>,
}

/// `lifecycle` of a resource.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// True if it exists at all.
    pub enabled: Option<SpecExpr>,
    /// True if a plan that deletes it is refused.
    pub prevent_destroy: Option<SpecExpr>,
    /// True if a plan that loses its data is allowed.
    pub allow_data_loss: Option<SpecExpr>,
    /// True if it is left alone when it leaves the spec.
    pub retain: Option<SpecExpr>,
    /// Overrides the type's order of a replace.
    pub create_before_destroy: Option<SpecExpr>,
    /// Attributes whose differences are left alone.
    pub ignore_changes: BTreeSet<Name>,
    /// Attributes that may hold values outside their list.
    pub allow_unknown: BTreeSet<Name>,
    /// Replaced when one of these changes.
    pub replace_triggered_by: Vec<SpecExpr>,
    /// Conditions that must hold before its object is made or changed.
    pub preconditions: Vec<Condition>,
    /// Conditions that its object must meet, as `self`.
    pub postconditions: Vec<Condition>,
}

impl Lifecycle {
    /// The preconditions and the postconditions.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.preconditions.iter().chain(&self.postconditions)
    }
}

/// An output.
#[derive(Clone, Debug)]
pub struct OutputConfig {
    /// Its value.
    pub value: SpecExpr,
    /// True if it is declared sensitive.
    pub sensitive: bool,
    /// Conditions that must hold where it is shown.
    pub preconditions: Vec<Condition>,
    /// Its header's place.
    pub header: Span,
}

/// An object that exists and is to be taken over into the state.
#[derive(Clone, Debug)]
pub struct ImportConfig {
    /// Its name.
    pub object: ImportedObject,
    /// The place where the spec says so; none for the command.
    pub span: Option<Span>,
    /// True if the type of the resource says so, and not the spec: each time that no state has the object.
    pub of_type: bool,
}

/// The object that an import means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportedObject {
    /// The one with this id.
    Id(ObjectId),
    /// The only one with this name that no state has.
    Named(Name),
}

/// A `[[moved]]` block: objects that get other addresses.
#[derive(Clone, Debug)]
pub struct MoveConfig {
    /// The addresses before and after.
    pub rule: MoveRule,
    /// The place of `from`.
    pub from: Span,
    /// The place of `to`.
    pub to: Span,
}

/// A `[[removed]]` block: what becomes of objects whose resource the spec has no more.
#[derive(Clone, Debug)]
pub struct RemovalConfig {
    /// The addresses that it is about.
    pub from: AddressPattern,
    /// True if the objects are deleted; else they leave the state and stay where they are.
    pub destroys: bool,
    /// The place of `from`.
    pub span: Span,
}

/// A check: an assertion over what is live.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// Its header's place.
    pub header: Span,
    /// The sources that are fetched for it (`job`, `http`), by word.
    pub sources: Table,
    /// The condition that must hold.
    pub assert: SpecExpr,
    /// The message when it does not hold.
    pub message: Option<SpecExpr>,
}

/// Returns true if a file of this name is part of the spec of its folder.
pub fn is_spec_file(name: &str) -> bool {
    name == "plumb.toml" || name.ends_with(".plumb.toml")
}

/// The file of a span, for callers that build spans of their own.
pub fn span(file: FileId, range: std::ops::Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span { file, start: offset(range.start), end: offset(range.end) }
}
