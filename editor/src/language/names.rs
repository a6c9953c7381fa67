//! The names that a spec offers in a place, for completions.

use std::collections::BTreeSet;

use engine::address::Name;
use engine::config::Fetched;
use engine::config::keys::{self, Header};
use engine::config::symbols::Symbol;
use engine::expression::functions;
use engine::schema::TypeSchema;
use engine::types::Type;

use super::Known;
use crate::words;

/// Something to insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The text that is shown and inserted.
    pub(crate) label: String,
    /// The kind, for an icon.
    pub(crate) kind: Kind,
    /// A few words beside the label.
    pub(crate) detail: String,
    /// An explanation.
    pub(crate) documentation: String,
    /// The text to insert, if it is another one.
    pub(crate) insert: Option<String>,
    /// True if it comes before others.
    pub(crate) is_first: bool,
}

/// The kind of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Table,
    Key,
    Attribute,
    Variable,
    Local,
    Resource,
    Module,
    Type,
    Function,
    Value,
    Keyword,
}

impl Candidate {
    pub(crate) fn new(kind: Kind, label: impl Into<String>) -> Self {
        let (detail, documentation) = (String::new(), String::new());
        Self { label: label.into(), kind, detail, documentation, insert: None, is_first: false }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(crate) fn documentation(mut self, documentation: impl Into<String>) -> Self {
        self.documentation = documentation.into();
        self
    }

    pub(crate) fn inserting(mut self, text: impl Into<String>) -> Self {
        self.insert = Some(text.into());
        self
    }

    pub(crate) fn first(mut self, is_first: bool) -> Self {
        self.is_first = is_first;
        self
    }
}

/// The addresses of the resources, and of the modules where these are asked for.
pub(crate) fn addresses(known: &Known) -> impl Iterator<Item = Candidate> {
    let document = known.document();
    let blocks = document.resources.keys().chain(document.data.keys());
    let blocks = blocks.map(|block| {
        let kind = if block.is_data { "data" } else { "resource" };
        Candidate::new(Kind::Resource, block.to_string()).detail(kind)
    });
    let modules = document.modules.keys();
    let modules =
        modules.map(|name| Candidate::new(Kind::Module, format!("module.{name}")).detail("module"));
    blocks.chain(modules)
}

/// The names that may begin a reference: variables, locals, resources and modules.
pub(crate) fn references(known: &Known) -> impl Iterator<Item = Candidate> {
    let document = known.document();
    let config = known.whole.config();
    let variables = document.variables.keys().map(move |name| {
        let ty = config.variables.get(name).map(|it| it.ty.to_string()).unwrap_or_default();
        Candidate::new(Kind::Variable, format!("var.{name}")).detail(ty)
    });
    let locals = document.locals.keys();
    let locals = locals.map(|name| Candidate::new(Kind::Local, format!("local.{name}")));
    variables.chain(locals).chain(addresses(known))
}

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = Candidate> {
    functions::references().map(|function| {
        Candidate::new(Kind::Function, function.name)
            .detail(function.usage)
            .documentation(function.gives)
            .inserting(format!("{}(", function.name))
    })
}

/// The names behind the dot of `base`, where it is a word that names of one kind stand behind.
pub(crate) fn behind(known: &Known, base: &str) -> Option<Vec<Candidate>> {
    let document = known.document();
    let named = |kind, names: &mut dyn Iterator<Item = &Name>| {
        Some(names.map(|name| Candidate::new(kind, &**name)).collect())
    };
    match base {
        "var" => named(Kind::Variable, &mut document.variables.keys()),
        "local" => named(Kind::Local, &mut document.locals.keys()),
        "module" => named(Kind::Module, &mut document.modules.keys()),
        "data" => {
            let types: BTreeSet<&Name> = document.data.keys().map(|block| &block.ty).collect();
            named(Kind::Type, &mut types.into_iter())
        }
        "each" => Some(["key", "value"].map(|it| Candidate::new(Kind::Keyword, it)).into()),
        ty => {
            let (blocks, ty) = match ty.strip_prefix("data.") {
                Some(ty) => (document.data.keys(), ty),
                None => (document.resources.keys(), ty),
            };
            let blocks = blocks.filter(|block| *block.ty == *ty);
            let names: Vec<_> =
                blocks.map(|it| Candidate::new(Kind::Resource, &*it.name)).collect();
            (!names.is_empty()).then_some(names)
        }
    }
}

/// The attributes of a value: of the objects of a resource with what is known of them.
pub(crate) fn attributes(known: &Known, origin: Option<&Symbol>, ty: &Type) -> Vec<Candidate> {
    let Type::Object(fields) = ty else { return Vec::new() };
    let schema = match origin {
        Some(Symbol::Resource(block)) => known.schema_of(block),
        _ => None,
    };
    let one = |(name, field): (&Name, &engine::types::Field)| {
        let candidate = Candidate::new(Kind::Attribute, &**name);
        match schema.and_then(|schema| schema.attributes.get(name)) {
            Some(attribute) => candidate
                .detail(words::facts(attribute).join(", "))
                .documentation(&*attribute.description),
            None => candidate.detail(field.ty.to_string()),
        }
    };
    fields.iter().map(one).collect()
}

/// The tables that may stand at the top of a file.
pub(crate) fn tables() -> impl Iterator<Item = Candidate> {
    keys::TABLES.iter().map(|table| {
        let form = match table.header {
            Header::Single => format!("[{}]", table.name),
            Header::Named => format!("[{}.NAME]", table.name),
            Header::Typed => format!("[{}.TYPE.NAME]", table.name),
            Header::List => format!("[[{}]]", table.name),
        };
        Candidate::new(Kind::Table, table.name).detail(form).documentation(table.description)
    })
}

/// The types of resources.
pub(crate) fn resource_types(known: &Known) -> impl Iterator<Item = Candidate> {
    known.types().filter(|schema| !schema.data_only).map(|schema| of_type(schema))
}

/// The types of data blocks.
pub(crate) fn data_types(known: &Known) -> impl Iterator<Item = Candidate> {
    let fetched = Fetched::ALL.into_iter().map(|kind| of_type(kind.schema()));
    known.types().filter(|schema| schema.remote).map(|schema| of_type(schema)).chain(fetched)
}

fn of_type(schema: &TypeSchema) -> Candidate {
    Candidate::new(Kind::Type, &*schema.name).documentation(schema.description.as_str())
}
