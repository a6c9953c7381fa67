//! The spec: TOML text with spans, read in two stages.
//!
//! [`parse`] turns files into a [`Document`]: every block, key and expression with its place, without any
//! look-up. The shell then configures the providers that the document names, and [`resolve`] turns document,
//! variables and schemas into a [`Config`]: every reference resolved, every expression typed. Both return
//! their result together with all diagnostics at once. Neither reads a file (the shell answers
//! [`Document::files`]).

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
/// The deepest nesting of TOML arrays and inline tables; expressions have the same bound.
pub const NESTING_MAX: usize = 64;

/// An expression of a spec. The ranges in it count bytes of its file, not of its own text.
#[derive(Clone, Debug)]
pub struct SpecExpr {
    /// The expression; a TOML array or table is a list or map expression of its parts.
    pub expr: Expr,
    /// The place of the TOML value that contains the expression, quotes included.
    pub span: Span,
}

impl SpecExpr {
    /// Returns the place of a part of the expression.
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

/// A `[kind.name]` block before its references are resolved.
#[derive(Clone, Debug)]
pub struct RawBlock {
    /// The place of the header, which is shown for missing keys.
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
    /// The values of which a part could not be read: reported already, and not checked any further.
    pub broken: BTreeSet<Span>,
    /// True if a file could not be read completely: something that seems to be missing may stand in it.
    pub torn: bool,
}

/// A spec with references resolved and types proven.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `plumb.name`.
    pub name: Option<Name>,
    /// The variables with their values.
    pub variables: BTreeMap<Name, Variable>,
    /// The locals, and the inputs, locals and outputs of modules by their paths.
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
    /// The removals, each with what happens to the objects.
    pub removals: Vec<RemovalConfig>,
}

/// A variable and its value in this run.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its type.
    pub ty: Type,
    /// The given value, else the default. Sensitive as a whole if the variable is declared so.
    pub value: Datum,
    /// True if it is declared sensitive.
    pub sensitive: bool,
    /// The place of the default of a sensitive variable; none if it has no default, or an empty one.
    pub secret_default: Option<Span>,
    /// The place of its declaration.
    pub span: Span,
}

/// A value that expressions refer to by its name: a local, or an input or an output of a module.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// Its expression.
    pub value: SpecExpr,
    /// The type that a module declares for its input, to which the value is converted; none for other values.
    pub ty: Option<Type>,
}

impl LocalConfig {
    /// Returns the value converted to its type.
    pub fn typed(&self, value: Datum) -> Result<Datum, String> {
        match &self.ty {
            None => Ok(value),
            Some(ty) => {
                let fitting = value.convert(ty);
                let fitting =
                    fitting.map_err(|misfit| misfit.shown(!value.sensitive.is_empty()))?;
                let value = fitting.value.with_optional_attributes(ty);
                Ok(Datum { value, ..fitting })
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
    /// The provider instance that manages the resource, or each of its instances.
    pub provider: ProviderChoice,
    /// The schema of its type.
    pub schema: Arc<TypeSchema>,
    /// The attributes that the spec gives; each fits its schema's type as far as types can tell.
    pub attributes: Table,
    /// The expression with one instance for each of its entries; none for a single instance.
    pub for_each: Option<SpecExpr>,
    /// The addresses that the resource waits for without referring to them; an address without a key means
    /// all instances.
    pub depends_on: Vec<(Address, Span)>,
    /// Its lifecycle.
    pub lifecycle: Arc<Lifecycle>,
}

/// `lifecycle` of a resource.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    /// True if the object exists at all; none counts as true.
    pub enabled: Option<SpecExpr>,
    /// True if a plan that deletes the object is refused.
    pub prevent_destroy: Option<SpecExpr>,
    /// True if a plan that loses the object's data is allowed.
    pub allow_data_loss: Option<SpecExpr>,
    /// True if the object is left alone when it leaves the spec.
    pub retain: Option<SpecExpr>,
    /// True if a replace creates first, false if it deletes first; none for the type's own order.
    pub create_before_destroy: Option<SpecExpr>,
    /// The attributes whose differences are left alone.
    pub ignore_changes: BTreeSet<Name>,
    /// The attributes that may have values outside their list.
    pub allow_unknown: BTreeSet<Name>,
    /// The references whose changes replace the object.
    pub replace_triggered_by: Vec<SpecExpr>,
    /// The conditions that are judged before the object is made or changed.
    pub preconditions: Vec<Condition>,
    /// The conditions that are judged on the finished object, which they see as `self`.
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
    /// The conditions that are judged before the output is shown.
    pub preconditions: Vec<Condition>,
    /// Its header's place.
    pub header: Span,
}

/// An object that exists and is to be taken over into the state.
#[derive(Clone, Debug)]
pub struct ImportConfig {
    /// The id or the name of the object.
    pub object: ImportedObject,
    /// The place of the import in the spec; none for the command `plumb import`.
    pub span: Option<Span>,
    /// True if the type of the resource causes the import, and not a block of the spec: the object is
    /// imported whenever no state has it.
    pub of_type: bool,
}

/// The object that an import means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportedObject {
    /// The object with this id.
    Id(ObjectId),
    /// The only object with this name that is in no state.
    Named(Name),
}

/// A `[[moved]]` block: a rule that gives objects other addresses.
#[derive(Clone, Debug)]
pub struct MoveConfig {
    /// The addresses before and after.
    pub rule: MoveRule,
    /// The place of `from`.
    pub from: Span,
    /// The place of `to`.
    pub to: Span,
}

/// A `[[removed]]` block: it says whether objects that the spec no longer has are let go or deleted.
#[derive(Clone, Debug)]
pub struct RemovalConfig {
    /// The addresses that the block names.
    pub from: AddressPattern,
    /// True if the objects are deleted; false if they only leave the state.
    pub destroys: bool,
    /// The place of `from`.
    pub span: Span,
}

/// A check: an assertion about live objects and fetched data.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// Its header's place.
    pub header: Span,
    /// The sources that the check fetches, by their words (`job`, `http`).
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

/// Returns the span of a range in a file, for callers that build their own spans.
pub fn span(file: FileId, range: std::ops::Range<usize>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span { file, start: offset(range.start), end: offset(range.end) }
}
