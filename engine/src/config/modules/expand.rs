//! The expansion of a document and the modules that it calls into one flat document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::{self, Call, Module};
use super::diagnostics as say;
use super::instances::{self, Instance, KnownValues};
use super::references::{self, Entry, References};
use crate::address::{Address, Block, ModulePath, Name};
use crate::config::diagnostics::{not_allowed, null_not_allowed};
use crate::config::validations;
use crate::config::{
    Document, Item, LocalConfig, ModuleSource, ProviderChoice, RawBlock, SpecExpr, Variable,
};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::{BinaryOp, Call as FunctionCall, Conditional, Expr, Kind, Root};
use crate::types::Type;
use crate::value::Value;

/// The most instances of modules, all levels together.
const INSTANCES_MAX: usize = 10_000;

/// A flat document, with facts about its modules.
pub(in crate::config) struct Expanded {
    /// The document, without calls.
    pub(in crate::config) document: Document,
    /// The declared types of inputs, by their names in the whole spec.
    pub(in crate::config) input_types: BTreeMap<Name, Type>,
    /// The provider instances that names in a module stand for.
    pub(in crate::config) providers: BTreeMap<ModulePath, BTreeMap<Name, Name>>,
    /// The modules with mistakes in them, whose content is therefore not known.
    pub(in crate::config) unknown: Vec<ModulePath>,
    /// The moves and removals of the spec and of its modules, each with the module instance that contains it.
    pub(in crate::config) refactorings: Refactorings,
}

/// The blocks about objects that changed their address or left the spec.
#[derive(Default)]
pub(in crate::config) struct Refactorings {
    /// `[[moved]]`.
    pub(in crate::config) moved: Vec<(ModulePath, RawBlock)>,
    /// `[[removed]]`.
    pub(in crate::config) removed: Vec<(ModulePath, RawBlock)>,
}

impl Refactorings {
    /// Adds the blocks of a document, under the path of an instance of it.
    fn add(&mut self, document: &Document, path: &ModulePath) {
        let placed = |raw: &RawBlock| (path.clone(), raw.clone());
        self.moved.extend(document.moved.iter().map(placed));
        self.removed.extend(document.removed.iter().map(placed));
    }
}

/// Puts the instances of all modules into a document.
pub(in crate::config) fn expand(
    document: Document,
    variables: &BTreeMap<Name, Variable>,
    files: &BTreeMap<String, Arc<str>>,
    diagnostics: &mut Diagnostics,
) -> Expanded {
    let mut expanded = Expanded {
        document,
        input_types: BTreeMap::new(),
        providers: BTreeMap::new(),
        unknown: Vec::new(),
        refactorings: Refactorings::default(),
    };
    expanded.refactorings.add(&expanded.document, &ModulePath::root());
    if expanded.document.modules.is_empty() {
        return expanded;
    }
    let calls = Arc::new(std::mem::take(&mut expanded.document.modules));
    let library = std::mem::take(&mut expanded.document.library);
    for module in library.values() {
        expanded.document.files.extend(module.files.iter().cloned());
        expanded.document.broken.extend(module.broken.iter().copied());
    }
    let mut expansion = Expansion {
        expanded,
        library,
        modules: BTreeMap::new(),
        locals: BTreeMap::new(),
        variables,
        files,
        diagnostics,
        instances: 0,
    };
    expansion.add_root(&calls);
    expansion.add_calls(&Caller {
        path: ModulePath::root(),
        sources: vec![ModuleSource::default()],
        calls,
    });
    expansion.finish()
}

/// A document whose calls are being carried out.
struct Caller {
    path: ModulePath,
    /// The sources of this module and the modules around it, from the outside in.
    sources: Vec<ModuleSource>,
    calls: Arc<BTreeMap<Name, RawBlock>>,
}

struct Expansion<'a> {
    expanded: Expanded,
    library: BTreeMap<ModuleSource, Arc<Document>>,
    /// The modules that were read, by source.
    modules: BTreeMap<ModuleSource, Arc<Module>>,
    /// The locals of the whole spec so far, for values that the expansion computes.
    locals: BTreeMap<Name, LocalConfig>,
    variables: &'a BTreeMap<Name, Variable>,
    files: &'a BTreeMap<String, Arc<str>>,
    diagnostics: &'a mut Diagnostics,
    instances: usize,
}

impl Expansion<'_> {
    /// Changes the references of the spec itself to modules to the names of the whole spec.
    fn add_root(&mut self, calls: &BTreeMap<Name, RawBlock>) {
        let path = ModulePath::root();
        let mut references =
            References { path: &path, calls, each: None, diagnostics: self.diagnostics };
        let document = &mut self.expanded.document;
        for item in document.locals.values_mut() {
            references.item(item);
        }
        let blocks = document.resources.values_mut().chain(document.data.values_mut());
        let blocks = blocks.chain(document.outputs.values_mut());
        let blocks = blocks.chain(document.policies.values_mut());
        for block in blocks.chain(document.checks.values_mut()) {
            block.items.values_mut().for_each(|item| references.item(item));
        }
        for (name, item) in &document.locals {
            let local = LocalConfig { value: item.value.clone(), ty: None };
            self.locals.insert(name.clone(), local);
        }
    }

    /// Carries out the calls of a document. A call comes after those whose outputs decide about its
    /// instances.
    fn add_calls(&mut self, caller: &Caller) {
        let from = caller.sources.last().cloned().unwrap_or_default();
        let mut open: Vec<(&Name, Call<'_>)> = Vec::new();
        for (name, raw) in &*caller.calls {
            if let Some(call) = Call::new(raw, &from, self.diagnostics) {
                open.push((name, call));
            }
        }
        while !open.is_empty() {
            let paths: Vec<ModulePath> =
                open.iter().map(|(name, _)| caller.path.join(name, None)).collect();
            let ready = open.iter().position(|(_, call)| !self.waits(caller, call, &paths));
            // Calls that wait for one another are carried out all the same; diagnostics about their values
            // report what is missing.
            let (name, call) = open.remove(ready.unwrap_or_default());
            self.add_call(caller, name, &call);
        }
    }

    fn waits(&mut self, caller: &Caller, call: &Call<'_>, open: &[ModulePath]) -> bool {
        ["for_each", "enabled"].into_iter().filter_map(|key| call.own(key)).any(|item| {
            let value = self.in_whole(caller, None, &item.value);
            instances::waits_for(&value, &self.locals, open)
        })
    }

    /// Returns a value of a call with the names of the whole spec.
    fn in_whole(&mut self, caller: &Caller, each: Option<Entry>, value: &SpecExpr) -> SpecExpr {
        let mut value = value.clone();
        let (path, calls) = (&caller.path, &*caller.calls);
        References { path, calls, each, diagnostics: self.diagnostics }.value(&mut value);
        value
    }

    fn add_call(&mut self, caller: &Caller, name: &Name, call: &Call<'_>) {
        let path = caller.path.join(name, None);
        let Some(module) = self.module(&call.source) else {
            return self.expanded.unknown.push(path);
        };
        if caller.sources.contains(&call.source) {
            self.diagnostics.push(say::endless(&path, call.at()));
            return self.expanded.unknown.push(path);
        }
        call.check(&module, self.diagnostics);
        let Some(instances) = self.instances_of(caller, name, call) else {
            return self.expanded.unknown.push(path);
        };
        for instance in &instances {
            self.instances += 1;
            if self.instances > INSTANCES_MAX {
                if self.instances == INSTANCES_MAX + 1 {
                    self.diagnostics.push(say::too_many(INSTANCES_MAX, call.at()));
                }
                return self.expanded.unknown.push(path);
            }
            self.add_instance(caller, call, &module, instance);
        }
        if call.own("for_each").is_some() {
            let entry = |instance: &Instance| {
                let key = instance.entry.as_ref()?.key.clone();
                Some((key, references::whole(&instance.path)))
            };
            let all = instances.iter().filter_map(entry);
            self.add_table(references::whole(&path), all.collect(), call.at());
        }
    }

    /// Returns a called module, which is read once.
    fn module(&mut self, source: &ModuleSource) -> Option<Arc<Module>> {
        if let Some(module) = self.modules.get(source) {
            return Some(Arc::clone(module));
        }
        let module = Arc::new(call::module(self.library.get(source)?, self.diagnostics));
        self.modules.insert(source.clone(), Arc::clone(&module));
        Some(module)
    }

    /// Returns the instances of a call; none if they cannot be known, which a diagnostic then says.
    fn instances_of(
        &mut self,
        caller: &Caller,
        name: &Name,
        call: &Call<'_>,
    ) -> Option<Vec<Instance>> {
        let path = caller.path.join(name, None);
        let Some(item) = call.own("for_each") else {
            return Some(vec![Instance { path, entry: None }]);
        };
        let value = self.in_whole(caller, None, &item.value);
        let keys = match instances::keys(&value, &self.known()) {
            Ok(keys) => keys,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return None;
            }
        };
        let entries = (!keys.are_values).then(|| references::entries(&path));
        if let Some(name) = &entries {
            self.add_local(name.clone(), value, None);
        }
        let instance = |key: &Name| Instance {
            path: caller.path.join(name, Some(key)),
            entry: Some(Entry { key: key.clone(), entries: entries.clone() }),
        };
        Some(keys.keys.iter().map(instance).collect())
    }

    fn known(&self) -> KnownValues<'_> {
        KnownValues { variables: self.variables, files: self.files, locals: &self.locals }
    }

    fn add_instance(
        &mut self,
        caller: &Caller,
        call: &Call<'_>,
        module: &Module,
        instance: &Instance,
    ) {
        let enabled = call.own("enabled").map(|item| {
            let value = self.in_whole(caller, instance.entry.clone(), &item.value);
            instances::is_enabled(&value, &self.known())
        });
        match enabled {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return self.add_absent(module, instance, call.at()),
            Some(Err(diagnostic)) => {
                self.diagnostics.push(*diagnostic);
                return self.add_absent(module, instance, call.at());
            }
        }
        self.add_inputs(caller, call, module, instance);
        self.check_inputs(call, module, instance);
        self.add_providers(caller, call, instance);
        let calls = Arc::new(module.document.modules.clone());
        self.add_body(module, &instance.path, &calls, call.at());
        let sources = caller.sources.iter().chain([&call.source]).cloned().collect();
        self.add_calls(&Caller { path: instance.path.clone(), sources, calls });
        if let Some(item) = call.own("depends_on") {
            self.add_dependencies(&caller.path, &instance.path, item);
        }
    }

    /// Defines the outputs of an instance that does not exist, as null.
    fn add_absent(&mut self, module: &Module, instance: &Instance, at: Span) {
        let nothing = |at: Span| SpecExpr { expr: Expr::literal(Value::Null), span: at };
        for name in module.document.outputs.keys() {
            self.add_local(instance.path.name_of(name), nothing(at), None);
        }
        self.add_local(references::whole(&instance.path), nothing(at), None);
    }

    fn add_inputs(
        &mut self,
        caller: &Caller,
        call: &Call<'_>,
        module: &Module,
        instance: &Instance,
    ) {
        for (name, input) in &module.inputs {
            let given = call.raw.items.get(name);
            let mut value = match (given, &input.default) {
                (Some(item), default) => {
                    let value = self.in_whole(caller, instance.entry.clone(), &item.value);
                    match default {
                        Some(default) if !input.is_nullable => or_default(value, default),
                        _ => value,
                    }
                }
                (None, Some(default)) => default.clone(),
                (None, None) => SpecExpr { expr: Expr::literal(Value::Null), span: call.at() },
            };
            // A missing input was reported. Without a type it causes no further mistakes.
            let is_missing = given.is_none() && input.default.is_none();
            let ty = (!is_missing).then(|| input.ty.clone());
            if input.is_sensitive {
                value = sensitive(value);
            }
            self.add_local(references::input(&instance.path, name), value, ty);
        }
    }

    /// Checks the inputs that are known before planning against `nullable`, `allowed` and `validation` of
    /// their variables.
    fn check_inputs(&mut self, call: &Call<'_>, module: &Module, instance: &Instance) {
        let (mut known, mut unknown) = (BTreeMap::new(), BTreeSet::new());
        for (name, input) in &module.inputs {
            let given = call.raw.items.get(name);
            let local = references::input(&instance.path, name);
            let value = instances::known_local(&local, &self.known());
            let Some(value) = value.filter(|_| given.is_some() || input.default.is_some()) else {
                unknown.insert(name.clone());
                continue;
            };
            let at = given.map_or(call.at(), |item| item.value.span);
            if given.is_some() && !input.is_nullable && value.value.is_null() {
                self.diagnostics.push(null_not_allowed(name, at));
            }
            if let Some(allowed) = &input.allowed
                && !allowed.iter().any(|one| one.same(&value.value))
            {
                let texts: Option<Vec<&str>> = allowed.iter().map(Value::as_str).collect();
                let choices = texts.filter(|_| !input.is_sensitive);
                self.diagnostics.push(not_allowed(name, true, choices, at));
            }
            let (ty, sensitive) = (input.ty.clone(), input.is_sensitive);
            let variable = Variable { ty, value, sensitive, secret_default: None, span: at };
            known.insert(name.clone(), variable);
        }
        validations::check(&module.document, &known, &unknown, self.diagnostics);
    }

    fn add_providers(&mut self, caller: &Caller, call: &Call<'_>, instance: &Instance) {
        let key = instance.entry.as_ref().map(|entry| &entry.key);
        let outer = self.expanded.providers.get(&caller.path);
        let resolve = |choice: &ProviderChoice| choice.clone().renamed(outer).at_key(key);
        let mut names = outer.cloned().unwrap_or_default();
        names.extend(call.providers.iter().map(|(inner, name)| (inner.clone(), resolve(name))));
        if !names.is_empty() {
            self.expanded.providers.insert(instance.path.clone(), names);
        }
    }

    /// Adds the blocks of a module, under the path of one instance.
    fn add_body(
        &mut self,
        module: &Module,
        path: &ModulePath,
        calls: &BTreeMap<Name, RawBlock>,
        at: Span,
    ) {
        let document = &module.document;
        let mut references = References { path, calls, each: None, diagnostics: self.diagnostics };
        let mut changed = |raw: &RawBlock| {
            let mut raw = raw.clone();
            raw.items.values_mut().for_each(|item| references.item(item));
            raw
        };
        self.expanded.refactorings.add(document, path);
        let flat = &mut self.expanded.document;
        let blocks = document.resources.iter().chain(&document.data);
        for (block, raw) in blocks {
            let mut raw = changed(raw);
            place_dependencies(&mut raw, path);
            let blocks = if block.is_data { &mut flat.data } else { &mut flat.resources };
            blocks.insert(block.within(path), raw);
        }
        for (name, raw) in &document.checks {
            flat.checks.insert(path.name_of(name), changed(raw));
        }
        let mut locals: Vec<(Name, SpecExpr)> = Vec::new();
        for (name, item) in &document.locals {
            let mut value = item.value.clone();
            references.value(&mut value);
            locals.push((references::local(path, name), value));
        }
        let mut outputs = Vec::new();
        for (name, raw) in &document.outputs {
            outputs.push((name.clone(), path.name_of(name)));
            if let Some(item) = raw.items.get("value") {
                let mut value = item.value.clone();
                references.value(&mut value);
                let flag = raw.items.get("sensitive").map(|item| &item.value.expr.kind);
                let is_open = matches!(flag, None | Some(Kind::Literal(Value::Bool(false))));
                locals.push((path.name_of(name), if is_open { value } else { sensitive(value) }));
            }
        }
        for (name, value) in locals {
            self.add_local(name, value, None);
        }
        self.add_table(references::whole(path), outputs, at);
    }

    /// Adds the addresses that a call waits for to all blocks of the instance.
    fn add_dependencies(&mut self, caller: &ModulePath, path: &ModulePath, item: &Item) {
        let Kind::List(items) = &item.value.expr.kind else { return };
        let mut items = items.clone();
        for item in &mut items {
            place_address(item, caller);
        }
        let Document { resources, data, .. } = &mut self.expanded.document;
        for (block, raw) in resources.iter_mut().chain(data) {
            if !block.module.is_within(path) {
                continue;
            }
            let mut own = raw.items.get("depends_on").cloned().unwrap_or_else(|| item.clone());
            match &mut own.value.expr.kind {
                Kind::List(given) if raw.items.contains_key("depends_on") => {
                    given.extend(items.iter().cloned());
                }
                kind => *kind = Kind::List(items.clone()),
            }
            raw.items.insert("depends_on".into(), own);
        }
    }

    /// Replaces each module in `depends_on` by the blocks of the module.
    fn finish(mut self) -> Expanded {
        let Document { resources, data, .. } = &mut self.expanded.document;
        let blocks: Vec<Block> =
            resources.keys().filter(|block| !block.module.is_root()).cloned().collect();
        for raw in resources.values_mut().chain(data.values_mut()) {
            let Some(mut item) = raw.items.get("depends_on").cloned() else { continue };
            if let Kind::List(items) = &mut item.value.expr.kind {
                *items = items.iter().flat_map(|item| blocks_of(item, &blocks)).collect();
                raw.items.insert("depends_on".into(), item);
            }
        }
        self.expanded
    }

    /// Adds a local that is a table of others.
    fn add_table(&mut self, name: Name, entries: Vec<(Name, Name)>, at: Span) {
        let entry = |(key, local): (Name, Name)| {
            let reference = Expr::nowhere(Kind::Root(Root::Local(local)));
            (Expr::literal(Value::String(key)), reference)
        };
        let table = Kind::Map(entries.into_iter().map(entry).collect());
        self.add_local(name, SpecExpr { expr: Expr::nowhere(table), span: at }, None);
    }

    fn add_local(&mut self, name: Name, value: SpecExpr, ty: Option<Type>) {
        let item = Item { key: value.span, value: value.clone() };
        self.expanded.document.locals.insert(name.clone(), item);
        if let Some(ty) = &ty {
            self.expanded.input_types.insert(name.clone(), ty.clone());
        }
        self.locals.insert(name, LocalConfig { value, ty });
    }
}

/// Returns an expression with the value, or with the default if the value is null.
fn or_default(value: SpecExpr, default: &SpecExpr) -> SpecExpr {
    let is_known = matches!(&value.expr.kind, Kind::Literal(known) if !known.is_null());
    if is_known {
        return value;
    }
    let SpecExpr { expr, span } = value;
    let range = expr.range;
    let null = Expr { kind: Kind::Literal(Value::Null), range };
    let is_null = Kind::Binary(BinaryOp::Equal, Box::new(expr.clone()), Box::new(null));
    let choice = Conditional {
        condition: Expr { kind: is_null, range },
        yes: Expr { kind: default.expr.kind.clone(), range },
        no: expr,
    };
    SpecExpr { expr: Expr { kind: Kind::Conditional(Box::new(choice)), range }, span }
}

/// Returns an expression with the same value, marked as sensitive.
fn sensitive(value: SpecExpr) -> SpecExpr {
    let range = value.expr.range;
    let call =
        FunctionCall { name: "sensitive".into(), arguments: vec![value.expr], spread: false };
    SpecExpr { expr: Expr { kind: Kind::Call(Box::new(call)), range }, span: value.span }
}

/// Changes the addresses of `depends_on` to the names of the whole spec.
fn place_dependencies(raw: &mut RawBlock, path: &ModulePath) {
    let Some(mut item) = raw.items.get("depends_on").cloned() else { return };
    if let Kind::List(items) = &mut item.value.expr.kind {
        for item in items {
            place_address(item, path);
        }
    }
    raw.items.insert("depends_on".into(), item);
}

fn place_address(item: &mut Expr, path: &ModulePath) {
    let Kind::Literal(Value::String(text)) = &mut item.kind else { return };
    let is_block = text.parse::<Address>().is_ok() || text.parse::<Block>().is_ok();
    if is_block || text.parse::<ModulePath>().is_ok() {
        *text = path.name_of(text);
    }
}

/// Returns the blocks of the module that an item of `depends_on` names; else the item itself.
fn blocks_of(item: &Expr, blocks: &[Block]) -> Vec<Expr> {
    let Kind::Literal(Value::String(text)) = &item.kind else { return vec![item.clone()] };
    let Ok(module) = text.parse::<ModulePath>() else { return vec![item.clone()] };
    let inside = blocks.iter().filter(|block| block.module.is_within(&module));
    let reference = |block: &Block| Expr {
        kind: Kind::Literal(Value::string(block.to_string())),
        range: item.range,
    };
    inside.map(reference).collect()
}
