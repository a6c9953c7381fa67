//! The symbols of a spec, and every place that names one; editors use them to go to, list and rename symbols.

use std::fmt;

use super::keys::{self, Form, Key};
use super::{Document, Item, RawBlock, SpecExpr, provider_choice};
use crate::address::{Address, Block, ModulePath, Name};
use crate::diagnostics::Span;
use crate::expression::visit::{roots, walk};
use crate::expression::{Expr, Kind, Root};
use crate::value::Value;

/// Something that a spec declares and refers to by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symbol {
    /// `[variable.NAME]`.
    Variable(Name),
    /// A key of `[local]`.
    Local(Name),
    /// `[resource.TYPE.NAME]`.
    Resource(Block),
    /// `[module.NAME]`.
    Module(Name),
    /// `[provider.NAME]`.
    Provider(Name),
    /// `[output.NAME]`.
    Output(Name),
    /// `[check.NAME]`.
    Check(Name),
}

/// A place that names a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The symbol.
    pub symbol: Symbol,
    /// The place: a header, a key, a reference or a text, with the name in it.
    pub span: Span,
    /// True if the place declares the symbol.
    pub is_definition: bool,
}

impl Symbol {
    /// Returns the name of the symbol, without its kind.
    pub fn name(&self) -> &Name {
        match self {
            Self::Variable(name)
            | Self::Local(name)
            | Self::Module(name)
            | Self::Provider(name)
            | Self::Output(name)
            | Self::Check(name) => name,
            Self::Resource(block) => &block.name,
        }
    }

    /// Returns the path of the symbol's block in a file: `resource`, the type, the name.
    pub fn path(&self) -> Vec<&str> {
        let kind = match self {
            Self::Variable(_) => "variable",
            Self::Local(_) => "local",
            Self::Resource(block) => {
                let kind = if block.is_data { "data" } else { "resource" };
                return vec![kind, &block.ty, &block.name];
            }
            Self::Module(_) => "module",
            Self::Provider(_) => "provider",
            Self::Output(_) => "output",
            Self::Check(_) => "check",
        };
        vec![kind, self.name()]
    }

    /// Returns the symbol of a block by its path; none if the path is none, or a longer one.
    pub fn of_path(path: &[&str]) -> Option<Self> {
        Some(match path {
            ["resource", ty, name] => Self::Resource(Block::new(*ty, *name)),
            ["data", ty, name] => Self::Resource(Block::data(*ty, *name)),
            ["variable", name] => Self::Variable((*name).into()),
            ["local", name] => Self::Local((*name).into()),
            ["module", name] => Self::Module((*name).into()),
            ["provider", name] => Self::Provider((*name).into()),
            ["output", name] => Self::Output((*name).into()),
            ["check", name] => Self::Check((*name).into()),
            _ => return None,
        })
    }

    /// Returns the symbol that a reference begins with; none for a name that the block or the expression
    /// itself defines.
    pub fn of_root(root: &Root) -> Option<Self> {
        match root {
            Root::Var(name) => Some(Self::Variable(name.clone())),
            Root::Local(name) => Some(Self::Local(name.clone())),
            Root::Resource(block) => Some(Self::Resource(block.clone())),
            Root::Module(name) => Some(Self::Module(name.clone())),
            Root::EachKey | Root::EachValue | Root::Named(_) => None,
        }
    }

    /// Returns the symbol of this spec that an address begins with.
    pub fn of_address(text: &str) -> Option<Self> {
        let data = text.parse::<Block>().ok().filter(|block| block.is_data);
        let address: Address = match data.map_or_else(|| text.parse(), |it| Ok(it.instance(None))) {
            Ok(address) => address,
            Err(_) => return Some(Self::Module(first_module(&text.parse().ok()?)?)),
        };
        if address.block.module.is_root() {
            return Some(Self::Resource(address.block));
        }
        Some(Self::Module(first_module(&address.block.module)?))
    }

    /// Returns the place that declares the symbol; none if no place does.
    pub fn definition(&self, document: &Document) -> Option<Span> {
        let header = |block: Option<&RawBlock>| Some(block?.header);
        match self {
            Self::Variable(name) => header(document.variables.get(name)),
            Self::Local(name) => document.locals.get(name).map(|item| item.key),
            Self::Resource(block) if block.is_data => header(document.data.get(block)),
            Self::Resource(block) => header(document.resources.get(block)),
            Self::Module(name) => header(document.modules.get(name)),
            Self::Provider(name) => header(document.providers.get(name)),
            Self::Output(name) => header(document.outputs.get(name)),
            Self::Check(name) => header(document.checks.get(name)),
        }
    }
}

/// Prints the symbol as an expression refers to it, or as its block is called.
impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "var.{name}"),
            Self::Resource(block) => write!(f, "{block}"),
            other => f.write_str(&other.path().join(".")),
        }
    }
}

/// Returns the name of the outermost module of a path.
fn first_module(path: &ModulePath) -> Option<Name> {
    let rest = path.as_str().strip_prefix("module.")?;
    Some(rest.split(['.', '[']).next()?.into())
}

/// Returns all places of a document that name a symbol. Of its modules, only the calls count.
pub fn occurrences(document: &Document) -> Vec<Occurrence> {
    let mut finder = Finder { found: Vec::with_capacity(3 * document.resources.len()) };
    let named = [
        ("variable", &document.variables),
        ("provider", &document.providers),
        ("output", &document.outputs),
        ("check", &document.checks),
        ("policy", &document.policies),
        ("module", &document.modules),
    ];
    for (kind, blocks) in named {
        for (name, block) in blocks {
            finder.block(kind, Symbol::of_path(&[kind, name]), block);
        }
    }
    for (block, raw) in &document.resources {
        finder.block("resource", Some(Symbol::Resource(block.clone())), raw);
    }
    for (block, raw) in &document.data {
        finder.block("data", Some(Symbol::Resource(block.clone())), raw);
    }
    for (name, item) in &document.locals {
        finder.add(Symbol::Local(name.clone()), item.key, true);
        finder.value(Form::Value, &item.value);
    }
    for raw in &document.imports {
        finder.block("import", None, raw);
    }
    for raw in &document.moved {
        finder.block("moved", None, raw);
    }
    for raw in &document.removed {
        finder.block("removed", None, raw);
    }
    finder.found
}

struct Finder {
    found: Vec<Occurrence>,
}

impl Finder {
    fn add(&mut self, symbol: Symbol, span: Span, is_definition: bool) {
        self.found.push(Occurrence { symbol, span, is_definition });
    }

    fn block(&mut self, kind: &str, symbol: Option<Symbol>, block: &RawBlock) {
        if let Some(symbol) = symbol {
            self.add(symbol, block.header, true);
        }
        let known = keys::table(kind).map_or(&[] as &[Key], |table| table.keys);
        for (name, item) in block.items.iter() {
            self.item(known.iter().find(|key| key.name == &**name), item);
        }
    }

    fn item(&mut self, key: Option<&Key>, item: &Item) {
        self.value(key.map_or(Form::Value, |key| key.form), &item.value);
    }

    fn value(&mut self, form: Form, value: &SpecExpr) {
        match form {
            Form::Address | Form::Addresses => self.texts(value, Symbol::of_address),
            Form::Provider | Form::TextMap => {
                self.texts(value, |text| {
                    Some(Symbol::Provider(provider_choice::base(text).into()))
                });
            }
            _ => roots(&value.expr, &mut |root, range| {
                if let Some(symbol) = Symbol::of_root(root) {
                    self.add(symbol, value.span_of(range), false);
                }
            }),
        }
    }

    /// Adds the texts of a value that name a symbol.
    fn texts(&mut self, value: &SpecExpr, symbol: impl Fn(&str) -> Option<Symbol>) {
        let mut text = |part: &Expr| {
            if let Kind::Literal(Value::String(text)) = &part.kind
                && let Some(symbol) = symbol(text)
            {
                self.add(symbol, value.span_of(part.range), false);
            }
        };
        match &value.expr.kind {
            // The keys of such a table are no names of this spec.
            Kind::Map(entries) => entries.iter().for_each(|(_, part)| text(part)),
            _ => walk(&value.expr, &mut |part| text(part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse::parse;
    use crate::diagnostics::Sources;

    #[test]
    fn every_place_that_names_a_symbol_is_found() {
        let mut sources = Sources::default();
        let file = sources.add(
            "plumb.toml",
            r#"[variable.env]
default = "dev"
[local]
label = "demo-${var.env}"
[provider.acme]
descriptor = "./a.toml"
[module.m]
source = "./m"
providers = { inner = "acme" }
[resource.value.a]
provider = "acme"
input = { x = "${local.label}", y = '${[for var in [1] : var]}' }
[resource.value.b]
for_each = "${module.m.list}"
depends_on = ["value.a", "module.m.value.x"]
input = '${value.a.output} \u0022'
[output.o]
value = "${value.b[each.key].input}"
[check.c]
assert = 'value.a.output == var.env'
[[import]]
to = "value.a"
id = "x"
"#,
        );
        let (document, _) = parse(&sources, &[file]);
        let mut found = occurrences(&document);
        found.sort_by_key(|it| it.span);
        let line = |it: &Occurrence| {
            let place = sources.position(it.span).map_or(0, |position| position.line);
            let mark = if it.is_definition { "=" } else { ":" };
            format!("{place}{mark} {} {}", it.symbol, sources.text(it.span).unwrap_or_default())
        };
        let found: Vec<String> = found.iter().map(line).collect();
        insta::assert_snapshot!(found.join("\n"), @r#"
        1= var.env [variable.env]
        4= local.label label
        4: var.env var.env
        5= provider.acme [provider.acme]
        7= module.m [module.m]
        9: provider.acme "acme"
        10= value.a [resource.value.a]
        11: provider.acme "acme"
        12: local.label local.label
        13= value.b [resource.value.b]
        14: module.m module.m
        15: value.a "value.a"
        15: module.m "module.m.value.x"
        16: value.a value.a
        17= output.o [output.o]
        18: value.b value.b
        19= check.c [check.c]
        20: value.a value.a
        20: var.env var.env
        22: value.a "value.a"
        "#);
    }

    #[test]
    fn addresses_name_what_the_spec_itself_declares() {
        let shown = |text: &str| Symbol::of_address(text).map(|symbol| symbol.to_string());
        assert_eq!(shown("value.a[\"x\"]").as_deref(), Some("value.a"));
        assert_eq!(shown("module.m[\"x\"].module.n.value.a").as_deref(), Some("module.m"));
        assert_eq!(shown("module.m").as_deref(), Some("module.m"));
        assert_eq!(shown("nothing"), None);
    }
}
