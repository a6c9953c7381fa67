//! The names that expressions of a spec may refer to, with their types, and the advice about a name that does
//! not exist.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::diagnostics as say;
use super::{Document, ProviderChoice, RawBlock};
use crate::address::{Block, ModulePath, Name};
use crate::diagnostics::{Advice, nearest};
use crate::expression::check::{Types, Unresolved};
use crate::expression::{Expr, Kind, Root};
use crate::schema::TypeSchema;
use crate::types::Type;
use crate::value::Value;

/// The most names that are compared in the search for similar ones. With very many mistakes in a large spec,
/// suggestions for all of them would take too long.
const COMPARISONS_MAX: usize = 500_000;
/// The lowest cost of a search, for the names that it skips.
const COMPARISONS_MIN: usize = 1000;

/// The instance that manages a resource, and its schema.
pub(super) type Managed = (ProviderChoice, Arc<TypeSchema>);

/// A resource as other blocks see it.
pub(super) struct Known {
    /// The provider instance and the schema; none if they are wrong, which a diagnostic has reported.
    pub(super) managed: Option<Managed>,
    /// True if it has instances by key.
    pub(super) keyed: bool,
}

/// The types, providers and mistakes of the modules of a spec.
pub(super) struct Modules<'a> {
    /// The declared types of inputs.
    pub(super) input_types: &'a BTreeMap<Name, Type>,
    /// The provider instances that names in a module stand for.
    pub(super) providers: &'a BTreeMap<ModulePath, BTreeMap<Name, Name>>,
    /// The modules with something wrong in them.
    pub(super) unknown: Vec<ModulePath>,
}

impl Default for Modules<'_> {
    fn default() -> Self {
        static NO_TYPES: BTreeMap<Name, Type> = BTreeMap::new();
        static NO_PROVIDERS: BTreeMap<ModulePath, BTreeMap<Name, Name>> = BTreeMap::new();
        Self { input_types: &NO_TYPES, providers: &NO_PROVIDERS, unknown: Vec::new() }
    }
}

/// All names of a spec.
pub(super) struct Names<'a> {
    document: &'a Document,
    /// Its modules.
    pub(super) modules: Modules<'a>,
    /// The types of the variables.
    pub(super) variables: BTreeMap<Name, Type>,
    /// The types of the locals, as far as they have been inferred.
    pub(super) locals: BTreeMap<Name, Type>,
    /// The resources. Only looked up, never walked.
    pub(super) resources: FxHashMap<&'a Block, Known>,
    comparisons_left: AtomicUsize,
    /// The types of the resources' objects, each once; made when they are first asked for.
    object_types: OnceLock<Vec<Type>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(document: &'a Document) -> Self {
        Self {
            document,
            modules: Modules::default(),
            variables: BTreeMap::new(),
            locals: BTreeMap::new(),
            resources: FxHashMap::default(),
            comparisons_left: AtomicUsize::new(COMPARISONS_MAX),
            object_types: OnceLock::new(),
        }
    }

    /// The types of the objects of all resources, once these are known.
    fn object_types(&self) -> &[Type] {
        self.object_types.get_or_init(|| {
            let managed = self.resources.values().filter_map(|known| known.managed.as_ref());
            let schemas: BTreeMap<_, _> =
                managed.map(|(_, schema)| (Arc::as_ptr(schema), schema)).collect();
            schemas.values().map(|schema| schema.object_type()).collect()
        })
    }

    /// Returns the blocks of a document by address, with their contents.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (&'a Block, &'a RawBlock)> + use<'a> {
        self.document.resources.iter().chain(&self.document.data)
    }

    /// Returns the most similar of some names; none if the comparisons are used up.
    pub(super) fn nearest<'w>(
        &self,
        word: &str,
        names: impl Iterator<Item = &'w str>,
    ) -> Option<&'w str> {
        let left = self.comparisons_left();
        if left == 0 {
            return None;
        }
        let mut compared = 0;
        let near = names.filter(|name| name.len().abs_diff(word.len()) <= 4);
        let found = nearest(word, near.take(left).inspect(|_| compared += 1));
        self.limit_comparisons(left.saturating_sub(compared.max(COMPARISONS_MIN)));
        found
    }

    /// Returns the number of names that may still be compared.
    pub(super) fn comparisons_left(&self) -> usize {
        self.comparisons_left.load(Ordering::Relaxed)
    }

    /// Sets the number of names that may still be compared.
    pub(super) fn limit_comparisons(&self, left: usize) {
        self.comparisons_left.store(left, Ordering::Relaxed);
    }

    /// Returns the advice about a reference to a resource that does not exist. `own` is the block with the
    /// reference; it is never suggested.
    pub(super) fn resource_help(&self, block: &Block, own: Option<&Block>) -> Advice {
        let meant = |address: String| Advice::meant(block.to_string(), address);
        for (word, prefix) in [("var", "variable"), ("local", "local"), ("each", "each")] {
            if nearest(&block.ty, [word, prefix]).is_some() {
                return meant(format!("{word}.{}", block.name));
            }
        }
        if let Some(help) = say::meant_elsewhere(&block.ty, &block.name) {
            return help.into();
        }
        let others = || {
            let others = self.blocks().filter(|(other, _)| Some(*other) != own);
            others.filter(|(it, _)| (it.is_data, &it.module) == (block.is_data, &block.module))
        };
        let word = if block.is_data { "data." } else { "" };
        let of_type = others().filter(|(other, _)| other.ty == block.ty);
        if let Some(name) = self.nearest(&block.name, of_type.map(|(other, _)| &*other.name)) {
            return meant(format!("{word}{}.{name}", block.ty));
        }
        let of_name = others().filter(|(other, _)| other.name == block.name);
        match self.nearest(&block.ty, of_name.map(|(other, _)| &*other.ty)) {
            Some(ty) => meant(format!("{word}{ty}.{}", block.name)),
            None if block.is_data => {
                format!("declare it: `[data.{}.{}]`", block.ty, block.name).into()
            }
            None => format!("declare it: `[resource.{}.{}]`", block.ty, block.name).into(),
        }
    }

    /// Returns the error about a reference to a block that does not exist.
    pub(super) fn nothing_there(&self, block: &Block, own: Option<&Block>) -> Unresolved {
        let what = if block.is_data { "data block" } else { "resource" };
        let message = format!("there is no {what} `{}`", say::shown(&block.to_string()));
        Unresolved::advised(message, self.resource_help(block, own))
    }
}

/// The names as seen from one place of the spec.
pub(super) struct View<'a> {
    /// All names.
    pub(super) names: &'a Names<'a>,
    /// The type of `each.value`; none if `each` has no meaning there.
    pub(super) each: Option<Type>,
    /// The resource block that contains the place; none if it is in another block.
    pub(super) own: Option<&'a Block>,
    /// Words whose values are known only later, such as `job` in a check.
    pub(super) words: Vec<Word>,
}

/// A word whose value is known only later.
pub(super) struct Word {
    /// The word.
    pub(super) name: &'static str,
    /// The type of the word's value; none if the block does not define the word.
    pub(super) ty: Option<Type>,
}

impl View<'_> {
    fn resource(&self, block: &Block) -> Result<Type, Unresolved> {
        match self.names.resources.get(block) {
            Some(Known { managed: None, .. }) => Ok(Type::Any),
            Some(Known { managed: Some((_, schema)), keyed: true }) => {
                Ok(Type::map(schema.object_type()))
            }
            Some(Known { managed: Some((_, schema)), keyed: false }) => Ok(schema.object_type()),
            None => Err(self.names.nothing_there(block, self.own)),
        }
    }

    /// Returns the type of a local; the name of a local of a module is its path.
    fn local(&self, name: &Name) -> Result<Type, Unresolved> {
        let Some(inside) = name.strip_prefix("module.") else {
            return self.value("local", &format!("[local] {name} = …"), name);
        };
        if let Some(ty) = self.names.locals.get(name) {
            return Ok(ty.clone());
        }
        let modules = &self.names.modules;
        if modules.unknown.iter().any(|path| is_part_of(name, path)) {
            return Ok(Type::Any);
        }
        let (path, word) = name.rsplit_once('.').unwrap_or(("module", inside));
        let siblings = || {
            let names = self.names.locals.keys().filter_map(|name| name.rsplit_once('.'));
            names.filter(move |(other, _)| *other == path).map(|(_, word)| word)
        };
        let near = self.names.nearest(word, siblings());
        let (what, help) = match path.rsplit_once('.') {
            Some((_, "var")) => ("variable", format!("declare it: `[variable.{word}]`")),
            Some((_, "local")) => ("local value", format!("declare it: `[local] {word} = …`")),
            _ => ("output", format!("declare it in the module: `[output.{word}]`")),
        };
        let message = if path == "module" || name.ends_with(']') {
            format!("there is no instance `{}`", say::shown(name))
        } else {
            format!("there is no {what} `{}` in the module", say::shown(word))
        };
        let advice = near.map_or(Advice::from(help), |near| Advice::meant(word, near));
        Err(Unresolved::advised(message, advice))
    }

    fn value(&self, kind: &str, table: &str, name: &Name) -> Result<Type, Unresolved> {
        let types = if kind == "var" { &self.names.variables } else { &self.names.locals };
        types.get(name).cloned().ok_or_else(|| {
            let what = if kind == "var" { "variable" } else { "local value" };
            let known = types.keys().map(|name| &**name);
            let advice = match self.names.nearest(name, known) {
                Some(near) => Advice::meant(format!("{kind}.{name}"), format!("{kind}.{near}")),
                None => format!("declare it: `{table}`").into(),
            };
            let message = format!("there is no {what} `{}`", say::shown(name));
            Unresolved::advised(message, advice)
        })
    }

    fn word(&self, name: &Name) -> Result<Type, Unresolved> {
        if let Some(word) = self.words.iter().find(|word| *word.name == **name) {
            return word.ty.clone().ok_or_else(|| {
                let message = format!("unknown name `{name}`: the check has no `{name}`");
                Unresolved::advised(message, format!("say what to fetch: `{name} = {{ … }}`"))
            });
        }
        let advice = if &**name == "self" {
            "`self` is the object in a postcondition; write the resource's address".into()
        } else if self.names.variables.contains_key(name) {
            Advice::meant(&**name, format!("var.{name}"))
        } else if self.names.locals.contains_key(name) {
            Advice::meant(&**name, format!("local.{name}"))
        } else {
            "write `var.NAME`, `local.NAME` or `TYPE.NAME`, or put text in quotes".into()
        };
        let message = format!("unknown name `{}`", say::shown(name));
        Err(Unresolved::advised(message, advice))
    }
}

impl Types for View<'_> {
    fn root(&self, root: &Root) -> Result<Type, Unresolved> {
        let outside = || {
            let message = "`each` is not available here: it needs a `for_each`".to_owned();
            let help = "it stands for one entry of `for_each`, inside that resource";
            Unresolved::advised(message, help)
        };
        match root {
            Root::Var(name) => self.value("var", &format!("[variable.{name}]"), name),
            Root::Local(name) => self.local(name),
            Root::Module(name) => Err(no_module(name)),
            Root::EachKey => self.each.as_ref().map(|_| Type::String).ok_or_else(outside),
            Root::EachValue => self.each.clone().ok_or_else(outside),
            Root::Resource(block) => self.resource(block),
            Root::Named(name) => self.word(name),
        }
    }

    fn is_resource(&self, ty: &Type) -> bool {
        self.names.object_types().contains(ty)
    }

    /// Returns the type of an attribute if base directly names one instance, as nearly all references do.
    fn attribute(&self, base: &Expr, name: &Name) -> Option<Type> {
        let (block, keyed) = match &base.kind {
            Kind::Root(Root::Resource(block)) => (block, false),
            Kind::Index(base, key) => match (&base.kind, &key.kind) {
                (Kind::Root(Root::Resource(block)), Kind::Literal(Value::String(_))) => {
                    (block, true)
                }
                (Kind::Root(Root::Resource(block)), Kind::Root(Root::EachKey))
                    if self.each.is_some() =>
                {
                    (block, true)
                }
                _ => return None,
            },
            _ => return None,
        };
        let known = self.names.resources.get(block)?;
        let (_, schema) = known.managed.as_ref().filter(|_| known.keyed == keyed)?;
        Some(schema.attributes.get(name)?.ty.clone())
    }
}

/// Returns true if a local belongs to a module, or is the whole value of it.
fn is_part_of(local: &str, path: &ModulePath) -> bool {
    let rest = local.strip_prefix(path.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A reference to a module that is not called.
fn no_module(name: &Name) -> Unresolved {
    let message = format!("there is no module `{}`", say::shown(name));
    let help = format!("call it: `[module.{name}]` with `source = \"./FOLDER\"`");
    Unresolved::advised(message, help)
}
