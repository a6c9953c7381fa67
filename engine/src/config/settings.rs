//! Settings that must be known before anything can be looked up: the place of the state, and the
//! configuration of providers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use super::backends::state_settings;
use super::for_each::keys;
use super::given::{Files, Given, GivenPlaces};
use super::modules::source::DescriptorInRepository;
use super::resolve::check_files;
use super::scope::{Locals, PlainScope};
pub use super::state_settings::StateSettings;
use super::{
    Document, Item, LocalConfig, RawBlock, Variable, diagnostics as say, provider_choice, variables,
};
use crate::address::{Block, Name};
use crate::diagnostics::{Diagnostics, Span};
use crate::expression::evaluate::{Scope, evaluate};
use crate::expression::visit::roots;
use crate::expression::{Expr, Root};
use crate::value::{Datum, Value};

/// The key of a provider block that gives it instances.
pub const FOR_EACH: &str = "for_each";

/// An instance of a `[provider.NAME]` block with its values.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The place of its header.
    pub header: Span,
    /// The source of the descriptor if it is in a repository; else none. The keys of the source are no
    /// settings.
    pub repository: Option<DescriptorInRepository>,
    /// Its settings by key.
    pub values: BTreeMap<Name, Setting>,
    /// The keys of the settings without a value, because of a mistake in them or in values that they need.
    pub open: BTreeSet<Name>,
}

/// One setting of a provider.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its value.
    pub value: Datum,
    /// The place of its key.
    pub key: Span,
    /// The place of its value.
    pub span: Span,
}

/// Evaluates the `[provider.NAME]` blocks, which see only variables, locals, files and `each`. A block with
/// `for_each` has an instance for each key, called `NAME["KEY"]`.
///
/// Errors of variables are among the diagnostics, as they are among those of `resolve`; sorting drops the
/// repetition. A mistake affects only the settings that need it: such a setting has no value, and is
/// [open](ProviderSettings::open).
pub fn provider_settings(
    document: &Document,
    given: (&BTreeMap<Name, Given>, &GivenPlaces),
    files: &Files,
) -> (BTreeMap<Name, ProviderSettings>, Diagnostics) {
    let (variables, wrong, mut diagnostics) = variables::read(document, given);
    if document.providers.is_empty() {
        return (BTreeMap::new(), diagnostics);
    }
    check_files(document, files, &mut diagnostics);
    let is_whole = |item: &&Item| !document.broken.contains(&item.value.span);
    let locals: BTreeMap<Name, LocalConfig> = document
        .locals
        .iter()
        .filter(|(_, item)| is_whole(item))
        .map(|(name, item)| (name.clone(), LocalConfig { value: item.value.clone(), ty: None }))
        .collect();
    let texts = files
        .iter()
        .filter_map(|(path, text)| Some((path.clone(), Arc::clone(text.as_ref().ok()?))));
    let texts = texts.collect();
    let scope = scope(&variables, &locals, &texts);
    let mut settings = BTreeMap::new();
    for (name, block) in &document.providers {
        let reader = Reader { document, scope: &scope, wrong: &wrong };
        settings.extend(reader.instances(name, block, &mut diagnostics));
    }
    diagnostics.sort();
    (settings, diagnostics)
}

/// Returns the variables that provider blocks refer to, directly or through locals.
pub fn provider_variables(document: &Document) -> BTreeSet<Name> {
    let blocks = document.providers.values();
    let items = blocks.flat_map(|block| block.items.iter().map(|(_, item)| item));
    items.flat_map(|item| reached(document, &item.value.expr).variables).collect()
}

/// The references of an expression, directly or through locals.
#[derive(Default)]
struct Reached {
    variables: BTreeSet<Name>,
    locals: BTreeSet<Name>,
}

fn reached(document: &Document, expr: &Expr) -> Reached {
    let (mut reached, mut open) = (Reached::default(), vec![expr]);
    while let Some(expr) = open.pop() {
        roots(expr, &mut |root, _| match root {
            Root::Var(name) => drop(reached.variables.insert(name.clone())),
            Root::Local(name) if reached.locals.insert(name.clone()) => {
                open.extend(document.locals.get(name).map(|item| &item.value.expr));
            }
            _ => {}
        });
    }
    reached
}

fn scope<'a>(
    variables: &'a BTreeMap<Name, Variable>,
    locals: &'a BTreeMap<Name, LocalConfig>,
    files: &'a BTreeMap<String, Arc<str>>,
) -> PlainScope<'a> {
    PlainScope { variables, locals: Locals::new(locals), files }
}

/// Reads provider blocks.
struct Reader<'a> {
    document: &'a Document,
    scope: &'a PlainScope<'a>,
    /// The variables without a value.
    wrong: &'a BTreeSet<Name>,
}

impl Reader<'_> {
    /// Returns the instances of a block by name: one, or one for each key of its `for_each`.
    fn instances(
        &self,
        name: &Name,
        block: &RawBlock,
        diagnostics: &mut Diagnostics,
    ) -> Vec<(Name, ProviderSettings)> {
        let Some(item) = block.items.get(FOR_EACH) else {
            return vec![(name.clone(), self.block(block, None, diagnostics))];
        };
        let keys = self.value(item, None, diagnostics).and_then(|datum| match keys(&datum) {
            Ok(keys) if keys.is_empty() => {
                diagnostics.push(say::provider_without_instances(name, item.value.span));
                None
            }
            Ok(keys) if keys.iter().any(|(key, _)| key.is_empty()) => {
                diagnostics
                    .push(say::unusable_for_each("one of its keys is empty", item.value.span));
                None
            }
            Ok(keys) => Some(keys),
            Err(why) => {
                diagnostics.push(say::unusable_for_each(why, item.value.span));
                None
            }
        });
        let Some(keys) = keys else {
            let open = BTreeSet::from([FOR_EACH.into()]);
            let header = block.header;
            let settings =
                ProviderSettings { header, repository: None, values: BTreeMap::new(), open };
            return vec![(name.clone(), settings)];
        };
        let instance = |each: (Name, Datum)| {
            let instance = provider_choice::instance_name(name, &each.0);
            (instance, self.block(block, Some(&each), diagnostics))
        };
        keys.into_iter().map(instance).collect()
    }

    fn block(
        &self,
        block: &RawBlock,
        each: Option<&(Name, Datum)>,
        diagnostics: &mut Diagnostics,
    ) -> ProviderSettings {
        let (mut values, mut open) = (BTreeMap::new(), BTreeSet::new());
        let repository = DescriptorInRepository::of(block).unwrap_or_else(|wrong| {
            diagnostics.push(*wrong);
            open.insert("source".into());
            None
        });
        let is_taken = repository.is_some() || !open.is_empty();
        let is_setting = |key: &Name| {
            **key != *FOR_EACH && !(is_taken && DescriptorInRepository::KEYS.contains(&&**key))
        };
        for (key, item) in block.items.iter().filter(|(key, _)| is_setting(key)) {
            if let Some(value) = self.value(item, each, diagnostics) {
                let setting = Setting { value, key: item.key, span: item.value.span };
                values.insert(key.clone(), setting);
            } else {
                open.insert(key.clone());
            }
        }
        ProviderSettings { header: block.header, repository, values, open }
    }

    /// Returns the value of a setting; none if there is a mistake in it. The mistake is reported here, unless
    /// it was reported for a value that the setting needs.
    fn value(
        &self,
        item: &Item,
        each: Option<&(Name, Datum)>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Datum> {
        if self.document.broken.contains(&item.value.span) || self.needs_wrong(&item.value.expr) {
            return None;
        }
        match evaluate(&item.value.expr, &WithEach { plain: self.scope, each }) {
            Ok(value) => Some(value),
            Err(error) => {
                diagnostics.push(say::expression(&error, item.value.span_of(error.range)));
                None
            }
        }
    }

    fn needs_wrong(&self, expr: &Expr) -> bool {
        let Self { document, wrong, .. } = self;
        let reached = reached(document, expr);
        let is_broken = |name: &Name| {
            let item = document.locals.get(name);
            item.is_some_and(|item| document.broken.contains(&item.value.span))
        };
        !reached.variables.is_disjoint(wrong) || reached.locals.iter().any(is_broken)
    }
}

/// The scope of a provider block, in which `each` is the entry of its `for_each`.
struct WithEach<'a> {
    plain: &'a PlainScope<'a>,
    each: Option<&'a (Name, Datum)>,
}

impl Scope for WithEach<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        match (root, self.each) {
            (Root::EachKey, Some((key, _))) => Ok(Datum::plain(Value::String(key.clone()))),
            (Root::EachValue, Some((_, value))) => Ok(value.clone()),
            _ => self.plain.root(root),
        }
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.plain.resource(block, key)
    }

    fn source(&self, root: &Root) -> Result<Option<Arc<Expr>>, String> {
        self.plain.source(root)
    }

    fn file(&self, path: &str) -> Result<Arc<str>, String> {
        self.plain.file(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::{assert_lines, lines, sources};

    fn document(text: &str) -> (crate::diagnostics::Sources, Document) {
        let (sources, files) = sources(text);
        let (document, diagnostics) = crate::config::parse::parse(&sources, &files);
        assert_lines(&lines(&sources, &diagnostics), "");
        (sources, document)
    }

    #[test]
    fn providers_see_variables_locals_and_files() {
        let (_, document) = document(
            "[variable.key]\ntype = 'string'\nsensitive = true\n[local]\nhost = '${local.name}.example'\nname = 'a'\n\
             [provider.acme]\nkey = '${var.key}'\naddress = 'https://${local.host}/'\ntext = '${file(\"x\")}'\ncount = 3\n\
             [provider.empty]\n",
        );
        let given = BTreeMap::from([("key".into(), Given::Text("secret".to_owned()))]);
        let files = BTreeMap::from([("x".to_owned(), Ok("content".into()))]);
        let (settings, diagnostics) =
            provider_settings(&document, (&given, &GivenPlaces::new()), &files);
        assert!(diagnostics.is_empty());
        let values = &settings["acme"].values;
        let value = |name: &str| format!("{:?}", values[name].value.value);
        assert_eq!(
            [value("address"), value("count"), value("text")],
            ["\"https://a.example/\"", "3", "\"content\""]
        );
        assert!(values["key"].value.sensitive.covers(&crate::value::Path::root()));
        assert!(settings["empty"].values.is_empty());
    }

    #[test]
    fn a_block_has_an_instance_for_each_key() {
        let (sources, document) = document(
            "[variable.hosts]\ntype = 'map(string)'\n[provider.acme]\nfor_each = '${var.hosts}'\nurl = 'https://${each.value}/'\n\
             region = '${each.key}'\n[provider.list]\nfor_each = ['a']\nurl = '${each.value}'\n\
             [provider.none]\nfor_each = {}\n[provider.wrong]\nfor_each = 3\n[provider.twice]\nfor_each = ['a', 'a']\n",
        );
        let given = |text: &str| BTreeMap::from([("hosts".into(), Given::Text(text.to_owned()))]);
        let given = given("{ eu = \"eu.example\", us = \"us.example\" }");
        let (settings, diagnostics) =
            provider_settings(&document, (&given, &GivenPlaces::new()), &BTreeMap::new());
        let names: Vec<&str> = settings.keys().map(|name| &**name).collect();
        assert_eq!(
            names,
            ["acme[\"eu\"]", "acme[\"us\"]", "list[\"a\"]", "none", "twice", "wrong"]
        );
        let values = &settings["acme[\"us\"]"].values;
        let value = |name: &str| values[name].value.value.as_str().unwrap().to_owned();
        assert_eq!([value("url"), value("region")], ["https://us.example/", "us"]);
        assert!(!values.contains_key("for_each") && settings["none"].open.contains("for_each"));
        assert_lines(
            &lines(&sources, &diagnostics),
            "plumb.toml:11:12 error: a provider without instances [{}] `none` could manage nothing | give `for_each` a key, or remove the block
             plumb.toml:13:12 error: for_each cannot be used [3] it must be a table, or a list of distinct strings | give a table or a list of distinct strings, computed from variables and locals
             plumb.toml:15:12 error: for_each cannot be used [['a', 'a']] the same key stands in it twice | give a table or a list of distinct strings, computed from variables and locals",
        );
    }

    #[test]
    fn mistakes_in_providers() {
        let (sources, document) = document(
            "[local]\nid = '${value.a.id}'\nown = '${local.own}'\n[resource.value.a]\n[provider.acme]\na = '${value.a.id}'\nb = '${local.id}'\n\
             c = '${var.nothing}'\nd = '${each.key}'\ne = 'ok'\nf = '${local.own}'\n",
        );
        let (settings, diagnostics) =
            provider_settings(&document, (&BTreeMap::new(), &GivenPlaces::new()), &BTreeMap::new());
        assert_eq!(settings["acme"].values.len(), 1);
        assert_lines(
            &lines(&sources, &diagnostics),
            "plumb.toml:6:8 error: only `var` and `local` are known here, not the resource `value.a` [value.a]
             plumb.toml:7:8 error: in `local.id`: only `var` and `local` are known here, not the resource `value.a` [local.id]
             plumb.toml:8:8 error: there is no variable `nothing` [var.nothing]
             plumb.toml:9:8 error: `each` is not available here: it needs a `for_each` [each.key]
             plumb.toml:11:8 error: in `local.own`: `local.own` refers to itself [local.own]",
        );
    }

    #[test]
    fn a_setting_has_no_value_only_where_it_needs_a_wrong_variable() {
        let (_, document) = document(
            "[variable.a]\ntype = 'string'\n[variable.b]\ndefault = 'x'\n[local]\nl = '${local.m}'\nm = '${var.a}'\n\
             [provider.acme]\none = 1\ntwo = '${var.b}'\nthree = '${local.l}'\nfour = '${var.a}'\n",
        );
        let (settings, diagnostics) =
            provider_settings(&document, (&BTreeMap::new(), &GivenPlaces::new()), &BTreeMap::new());
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        let keys = |names: Vec<&Name>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let acme = &settings["acme"];
        assert_eq!(keys(acme.values.keys().collect()), ["one", "two"]);
        assert_eq!(keys(acme.open.iter().collect()), ["four", "three"]);
        assert_eq!(keys(provider_variables(&document).iter().collect()), ["a", "b"]);
    }

    #[test]
    fn a_long_chain_of_locals_needs_no_deep_stack() {
        use std::fmt::Write;
        let mut text = "[provider.p]\nx = '${local.l0}'\n[local]\nl3000 = 1\n".to_owned();
        for index in 0..3000 {
            writeln!(text, "l{index} = '${{local.l{}}}'", index + 1).unwrap();
        }
        let (_, document) = document(&text);
        let (settings, diagnostics) =
            provider_settings(&document, (&BTreeMap::new(), &GivenPlaces::new()), &BTreeMap::new());
        assert!(diagnostics.is_empty());
        assert_eq!(format!("{:?}", settings["p"].values["x"].value.value), "1");
    }
}
