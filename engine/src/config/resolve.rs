//! The resolution: [`Document`] to [`Config`].
//!
//! Only variables are computed here: every reference is looked up, every expression typed, every plain value
//! checked against its range or list. All mistakes are found at once. A value that a mistake makes unknown
//! counts as `any`, so that it does not cause further mistakes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checker::{Checker, place};
use super::convert::file_request;
use super::data::{CheckedData, DataConfig, Fetched, data};
pub use super::given::{Files, Given, GivenPlaces};
use super::modules::expand::{Expanded, Refactorings, expand};
use super::names::{Known, Managed, Modules, Names};
use super::resource::{Checked, resource};
use super::settings::state_settings;
use super::{
    Config, Document, Item, LocalConfig, PolicyConfig, ProviderChoice, RawBlock, Variable,
    diagnostics as say, imports, locals, moves, outputs, policies, removals, singletons, variables,
};
use crate::address::{Block, Name, is_name};
use crate::diagnostics::Diagnostics;
use crate::expression::visit::walk;
use crate::expression::{FileRequest, Kind};
use crate::schema::{ProviderSchema, TypeSchema};
use crate::work::{self, InTurn, Workers};

/// The inputs of `resolve` beside the document.
#[derive(Clone, Debug, Default)]
pub struct ResolveInput {
    /// The values given for variables.
    pub variables: BTreeMap<Name, Given>,
    /// The places that give the values, for messages.
    pub places: GivenPlaces,
    /// The schemas of the configured provider instances, by instance name.
    pub providers: BTreeMap<Name, Arc<ProviderSchema>>,
    /// The contents of the files that the document asks for, or an error text if one cannot be read.
    pub files: Files,
}

/// Resolves a document.
///
/// If a file of the document could not be read completely, the result is an empty config and an error.
pub fn resolve(document: &Document, input: &ResolveInput) -> (Config, Diagnostics) {
    resolve_owned(document.clone(), input)
}

/// Resolves a document that is not needed any more, which saves a copy of it.
pub fn resolve_owned(document: Document, input: &ResolveInput) -> (Config, Diagnostics) {
    resolve_with(document, input, &InTurn)
}

/// Resolves a document; the workers check the blocks.
pub fn resolve_with(
    document: Document,
    input: &ResolveInput,
    workers: &dyn Workers,
) -> (Config, Diagnostics) {
    if document.torn {
        return (Config::default(), Diagnostics::from_iter([say::not_checked()]));
    }
    let (variables, mut diagnostics) =
        variables::variables(&document, (&input.variables, &input.places));
    let Expanded { document, mut input_types, providers, unknown, refactorings } =
        expand(document, &variables, &files(&input.files), &mut diagnostics);
    let modules = Modules { input_types: &input_types, providers: &providers, unknown };
    let (mut config, (resources, look_ups), found) =
        check(&document, input, (variables, modules, &refactorings), workers);
    diagnostics.extend(found);
    diagnostics.sort();
    let local = |(name, item): (Name, Item)| {
        let ty = input_types.remove(&name);
        (name, LocalConfig { value: item.value, ty })
    };
    config.locals = document.locals.into_iter().map(local).collect();
    let plain = Arc::default();
    // A list that grows step by step would be copied often.
    let mut configs = Vec::with_capacity(resources.len());
    let resources = document.resources.into_iter().zip(resources);
    configs.extend(resources.filter_map(|((block, raw), (managed, checked))| {
        Some((block.clone(), checked.into_config(block, raw, managed?, &plain)))
    }));
    config.resources = configs.into_iter().collect();
    singletons::take_over(&config.resources, &mut config.imports, &mut diagnostics);
    config.data = document
        .data
        .into_iter()
        .zip(look_ups)
        .filter_map(|((block, raw), (managed, checked))| {
            Some((block.clone(), DataConfig::new(block, raw, managed?, checked)))
        })
        .collect();
    (config, diagnostics)
}

/// The checked resources, in their order; a resource without a provider is left out of the config.
type Resources = Vec<(Option<Managed>, Checked)>;

/// The checked data blocks, in their order; a data block without a provider is left out of the config.
type LookUps = Vec<(Option<Managed>, CheckedData)>;

/// Checks everything; the config lacks the parts that move into it from the document.
fn check(
    document: &Document,
    input: &ResolveInput,
    (variables, modules, refactorings): (BTreeMap<Name, Variable>, Modules<'_>, &Refactorings),
    workers: &dyn Workers,
) -> (Config, (Resources, LookUps), Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut names = Names::new(document);
    names.modules = modules;
    names.variables = variables.iter().map(|(name, v)| (name.clone(), v.ty.clone())).collect();
    let managed = manage(document, input, &mut names, &mut diagnostics);
    let (managed, looked_up) = managed;
    locals::infer(document, &mut names, &mut diagnostics);
    check_files(document, &input.files, &mut diagnostics);
    diagnostics.extend(state_settings(document).1);
    let files = files(&input.files);
    let known = imports::KnownValues { variables: &variables, files: &files };
    let imports = imports::imports(document, &names, &known, &mut diagnostics);
    let removals = removals::removals(document, &names, refactorings, &mut diagnostics);
    let config = Config {
        name: name(document, &names, &mut diagnostics),
        variables,
        files,
        outputs: outputs::outputs(document, &names, &mut diagnostics),
        checks: outputs::checks(document, &names, &mut diagnostics),
        policies: policies(document, &names, &input.providers, &mut diagnostics),
        imports,
        moves: moves::moves(document, &names, (refactorings, &removals), &mut diagnostics),
        removals,
        ..Config::default()
    };
    let checked = resources(document, &names, workers, &mut diagnostics);
    let look_ups = document.data.iter().map(|(block, raw)| {
        data(&mut Checker::new(document, &names, &mut diagnostics), block, raw)
    });
    let look_ups = looked_up.into_iter().zip(look_ups).collect();
    diagnostics.sort();
    (config, (managed.into_iter().zip(checked).collect(), look_ups), diagnostics)
}

/// Checks the policies against the types of all providers.
fn policies(
    document: &Document,
    names: &Names<'_>,
    providers: &BTreeMap<Name, Arc<ProviderSchema>>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Name, PolicyConfig> {
    let types = providers.values().flat_map(|provider| &provider.types);
    let types = types.map(|(name, schema)| (name, &**schema)).collect();
    policies::policies(document, names, &types, diagnostics)
}

/// The number of blocks that one worker checks before it asks for more.
const PART: usize = 512;

/// Checks the resources.
fn resources(
    document: &Document,
    names: &Names<'_>,
    workers: &dyn Workers,
    diagnostics: &mut Diagnostics,
) -> Vec<Checked> {
    let blocks: Vec<(&Block, &RawBlock)> = document.resources.iter().collect();
    let check = |blocks: &[(&Block, &RawBlock)]| {
        let mut found = Diagnostics::new();
        let checked = blocks.iter().map(|(block, raw)| {
            resource(&mut Checker::new(document, names, &mut found), block, raw)
        });
        let checked: Vec<Checked> = checked.collect();
        (checked, found)
    };
    let parts: Vec<_> = blocks.chunks(PART).collect();
    let comparisons = names.comparisons_left();
    let checked = work::map(workers, parts.len(), |part| check(parts[part]));
    if checked.iter().all(|(_, found)| found.is_empty()) {
        let mut all = Vec::with_capacity(blocks.len());
        for (checked, _) in checked {
            all.extend(checked);
        }
        return all;
    }
    // Suggestions end when the comparisons are used up, so in this case one block is checked after the other.
    names.limit_comparisons(comparisons);
    let (checked, found) = check(&blocks);
    diagnostics.extend(found);
    checked
}

/// Finds the provider instance and the schema of every resource, and of every data block.
fn manage<'a>(
    document: &'a Document,
    input: &ResolveInput,
    names: &mut Names<'a>,
    diagnostics: &mut Diagnostics,
) -> (Vec<Option<Managed>>, Vec<Option<Managed>>) {
    let types = types(&input.providers);
    let mut all = Vec::with_capacity(document.resources.len());
    names.resources.reserve(document.resources.len() + document.data.len());
    for (block, raw) in document.resources.iter().chain(&document.data) {
        let fetched = Fetched::of(block)
            .map(|kind| (ProviderChoice::Instance(block.ty.clone()), Arc::clone(kind.schema())));
        let chosen = match &fetched {
            Some(_) => Chosen::No,
            None => chosen(document, names, raw, diagnostics),
        };
        let passed = names.modules.providers.get(&block.module);
        let managed = match chosen {
            _ if fetched.is_some() => fetched,
            Chosen::Broken => None,
            Chosen::No => managed(block, raw, &types, passed, diagnostics),
            Chosen::Choice(choice, item) => {
                managed_by(block, raw, &choice.renamed(passed), item, input, diagnostics)
            }
        };
        let keyed = raw.items.contains_key("for_each");
        all.push(managed.clone());
        names.resources.insert(block, Known { managed, keyed });
    }
    let data = all.split_off(document.resources.len());
    (all, data)
}

/// The provider that a resource names.
enum Chosen<'a> {
    No,
    Choice(ProviderChoice, &'a Item),
    Broken,
}

fn chosen<'a>(
    document: &Document,
    names: &Names<'_>,
    raw: &'a RawBlock,
    diagnostics: &mut Diagnostics,
) -> Chosen<'a> {
    let Some(item) = raw.items.get("provider") else { return Chosen::No };
    let choice = ProviderChoice::read(&item.value.expr);
    match choice {
        Some(ProviderChoice::ByKey(_)) if !raw.items.contains_key("for_each") => {
            diagnostics.push(say::provider_without_key(item.value.span));
            Chosen::Broken
        }
        Some(choice) => Chosen::Choice(choice, item),
        None if matches!(item.value.expr.kind, Kind::Literal(_)) => {
            let mut checker = Checker::new(document, names, diagnostics);
            checker.constant_text("`provider`", &item.value);
            Chosen::Broken
        }
        None => {
            if !document.broken.contains(&item.value.span) {
                diagnostics.push(say::computed_provider(item.value.span));
            }
            Chosen::Broken
        }
    }
}

/// The instances that manage each type.
type Types<'a> = BTreeMap<&'a Name, Vec<(&'a Name, &'a Arc<TypeSchema>)>>;

fn types(providers: &BTreeMap<Name, Arc<ProviderSchema>>) -> Types<'_> {
    let mut types = Types::new();
    for (instance, provider) in providers {
        for (name, schema) in &provider.types {
            types.entry(name).or_default().push((instance, schema));
        }
    }
    types
}

/// Returns the only instance that manages the type of a block; if there are several, the only one that is
/// passed to its module.
fn managed(
    block: &Block,
    raw: &RawBlock,
    types: &Types<'_>,
    passed: Option<&BTreeMap<Name, Name>>,
    diagnostics: &mut Diagnostics,
) -> Option<Managed> {
    match types.get(&block.ty).map(Vec::as_slice) {
        Some([(instance, schema)]) => Some(managed_alone(instance, schema)),
        Some(several) => {
            let is_passed =
                |name: &Name| passed.is_some_and(|them| them.values().any(|it| it == name));
            let mut candidates = several.iter().filter(|(name, _)| is_passed(name));
            if let (Some((instance, schema)), None) = (candidates.next(), candidates.next()) {
                return Some(managed_alone(instance, schema));
            }
            let instances: Vec<&str> = several.iter().map(|(name, _)| &***name).collect();
            diagnostics.push(
                say::several_providers(&block.ty, &instances, raw.header)
                    .about(&block.instance(None)),
            );
            None
        }
        None => {
            let known = types.keys().map(|name| &***name);
            diagnostics
                .push(say::unknown_type(&block.ty, known, raw.header).about(&block.instance(None)));
            None
        }
    }
}

fn managed_alone(instance: &Name, schema: &Arc<TypeSchema>) -> Managed {
    (ProviderChoice::Instance(instance.clone()), Arc::clone(schema))
}

/// The instance that a block chooses.
fn managed_by(
    block: &Block,
    raw: &RawBlock,
    choice: &ProviderChoice,
    item: &Item,
    input: &ResolveInput,
    diagnostics: &mut Diagnostics,
) -> Option<Managed> {
    let may_be = |(name, _): &(&Name, &Arc<ProviderSchema>)| choice.may_be(name);
    let diagnostic = if let Some((instance, provider)) = input.providers.iter().find(may_be) {
        if let Some(schema) = provider.types.get(&block.ty) {
            return Some((choice.clone(), Arc::clone(schema)));
        }
        let known = provider.types.keys().map(|name| &**name);
        say::not_of_provider(&block.ty, instance, known, raw.header)
    } else {
        let known = input.providers.keys().map(|name| &**name);
        say::unknown_provider(&choice.at_key(None), item.value.span, known)
    };
    diagnostics.push(diagnostic.about(&block.instance(None)));
    None
}

fn name(document: &Document, names: &Names<'_>, diagnostics: &mut Diagnostics) -> Option<Name> {
    let plumb = document.plumb.as_ref()?;
    let mut checker = Checker::new(document, names, diagnostics);
    if let Some(item) = plumb.items.get("description") {
        checker.constant_text("`description`", &item.value);
    }
    let item = plumb.items.get("name")?;
    let name = checker.constant_text("`name`", &item.value)?;
    if !is_name(&name) {
        checker.push(say::bad_name("spec", &name, item.value.span));
        return None;
    }
    Some(name)
}

fn files(files: &Files) -> BTreeMap<String, Arc<str>> {
    let readable = files.iter().filter_map(|(path, file)| Some((path, file.as_ref().ok()?)));
    readable.map(|(path, text)| (path.clone(), Arc::clone(text))).collect()
}

/// Reports the places that name a file which cannot be read.
pub(super) fn check_files(document: &Document, files: &Files, diagnostics: &mut Diagnostics) {
    let reason = |path: &str| match files.get(path) {
        Some(Ok(_)) => None,
        Some(Err(reason)) => Some(reason.clone()),
        None => Some("it was not read".to_owned()),
    };
    if document.files.iter().all(|path| reason(path).is_none()) {
        return;
    }
    for item in items(document) {
        walk(&item.value.expr, &mut |part| {
            let Some((argument, Some(path))) = file_request(part) else { return };
            if let Some(reason) = reason(&path).filter(|_| document.files.contains(&path)) {
                let at = place(item.value.span.file, argument.range);
                let path = FileRequest::of_name(&path).path();
                diagnostics.push(say::unreadable_file(path, &reason, at));
            }
        });
    }
}

/// Every `key = value` of a document.
fn items(document: &Document) -> impl Iterator<Item = &Item> {
    let named = [
        &document.variables,
        &document.providers,
        &document.outputs,
        &document.checks,
        &document.policies,
    ];
    let blocks = named.into_iter().flat_map(BTreeMap::values);
    let blocks = blocks.chain(document.resources.values()).chain(document.data.values());
    let blocks = blocks.chain(&document.plumb).chain(&document.state).chain(&document.imports);
    let blocks = blocks.chain(&document.moved).chain(&document.removed);
    blocks.flat_map(|block| block.items.values()).chain(document.locals.values())
}

#[cfg(test)]
mod tests;
