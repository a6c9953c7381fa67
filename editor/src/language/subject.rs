//! The thing that the cursor is on.

use std::ops::Range;

use engine::address::{Block, Name};
use engine::config::keys::{self, Form, Key, TableForm};
use engine::config::provider_choice;
use engine::config::symbols::Symbol;
use engine::expression::{Expr, Kind, Root};
use engine::types::Type;

use super::Query;
use super::expressions::{reference, view};
use crate::text::cursor::Place;
use crate::text::reference::Reference;

/// Something to explain, or to go to.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// A declaration, or a reference to one.
    Symbol(Symbol),
    /// An attribute of a resource block or a data block.
    Attribute { block: Block, name: Name },
    /// A resource type.
    ResourceType(Name),
    /// A table at the top of a spec.
    Table(&'static TableForm),
    /// A key that means the same in all tables of its kind.
    Key(&'static Key),
    /// An input of a module.
    Input { module: Name, name: Name },
    /// An output of a module.
    Output { module: Name, name: Name },
    /// A function.
    Function(Name),
    /// Another part of an expression.
    Value { text: String, ty: Type },
}

/// The thing at the cursor, and its place.
pub(crate) fn subject(query: &Query<'_>) -> Option<(Subject, Range<usize>)> {
    let content = query.text.content();
    match &query.cursor.place {
        Place::Header(path) => {
            let names: Vec<&str> = path.iter().map(|segment| &*segment.name).collect();
            Some((in_header(query, &names)?, path.last()?.range.clone()))
        }
        Place::Key(word) => {
            let name = content[word.clone()].trim_matches(['"', '\'']);
            Some((of_key(query, name)?, word.clone()))
        }
        Place::Text { key, content: inside, .. } => {
            let text = &content[inside.clone()];
            let form = keys::key_at(&query.table(), key).map(|key| key.form);
            let named = match form {
                Some(Form::Address | Form::Addresses) => Subject::Symbol(Symbol::of_address(text)?),
                Some(Form::Provider) => {
                    Subject::Symbol(Symbol::Provider(provider_choice::base(text).into()))
                }
                Some(Form::Attributes) => attribute_of_own(query, text)?,
                _ => {
                    let reference = reference(query)?;
                    return Some((of_reference(query, &reference)?, reference.range));
                }
            };
            Some((named, inside.clone()))
        }
        Place::Value { .. } | Place::Nothing => None,
    }
}

fn in_header(query: &Query<'_>, path: &[&str]) -> Option<Subject> {
    if let Some(symbol) = Symbol::of_path(path) {
        return Some(Subject::Symbol(symbol));
    }
    match path {
        [table] => keys::table(table).map(Subject::Table),
        ["resource" | "data", ty] => Some(Subject::ResourceType((*ty).into())),
        [table @ .., name] => of_name(query, table, name),
        [] => None,
    }
}

fn of_key(query: &Query<'_>, name: &str) -> Option<Subject> {
    let table = query.table();
    let path: Vec<&str> = table.iter().copied().chain([name]).collect();
    if table.is_empty() || Symbol::of_path(&path).is_some() {
        return in_header(query, &path);
    }
    of_name(query, &table, name)
}

/// A name in the table at a path.
fn of_name(query: &Query<'_>, table: &[&str], name: &str) -> Option<Subject> {
    if let Some(key) = keys::key_at(table, name) {
        return Some(Subject::Key(key));
    }
    match table {
        ["resource", ty, block] => attribute(query, Block::new(*ty, *block), name),
        ["data", ty, block] => attribute(query, Block::data(*ty, *block), name),
        ["module", module] => Some(Subject::Input { module: (*module).into(), name: name.into() }),
        _ => None,
    }
}

fn attribute(query: &Query<'_>, block: Block, name: &str) -> Option<Subject> {
    let schema = query.known.schema_of(&block)?;
    let (name, _) = schema.attributes.get_key_value(name)?;
    Some(Subject::Attribute { block, name: name.clone() })
}

/// An attribute of the resource whose block the cursor is in.
fn attribute_of_own(query: &Query<'_>, name: &str) -> Option<Subject> {
    attribute(query, query.block()?, name)
}

fn of_reference(query: &Query<'_>, reference: &Reference) -> Option<Subject> {
    if reference.base.is_empty() && reference.is_call {
        return Some(Subject::Function(reference.name.as_str().into()));
    }
    // The first words of a reference stand for what it begins with.
    let words = if reference.text().split('.').next() == Some("data") { 3 } else { 2 };
    let missing = words - reference.text().split('.').count().min(words);
    let text = reference.text() + &reference.behind(missing);
    let (expr, ty) = view(query).parsed(&text)?;
    Some(match &expr.kind {
        Kind::Root(root) => match Symbol::of_root(root) {
            Some(symbol) => Subject::Symbol(symbol),
            None => Subject::Value { text, ty },
        },
        Kind::Attribute(base, name) => match origin(base) {
            Some(Root::Resource(block)) if is_object(base) => {
                return attribute(query, block.clone(), name);
            }
            Some(Root::Module(module)) if is_object(base) => {
                Subject::Output { module: module.clone(), name: name.clone() }
            }
            _ => Subject::Value { text, ty },
        },
        Kind::Splat(base, _) => match origin(base) {
            Some(Root::Resource(block)) => {
                return attribute(query, block.clone(), &reference.name)
                    .or(Some(Subject::Value { text, ty }));
            }
            _ => Subject::Value { text, ty },
        },
        _ => Subject::Value { text, ty },
    })
}

/// The beginning of a reference.
fn origin(expr: &Expr) -> Option<&Root> {
    match &expr.kind {
        Kind::Root(root) => Some(root),
        Kind::Attribute(base, _) | Kind::Index(base, _) => origin(base),
        // `values(value.team)[*]`: the instances of a block.
        Kind::Call(call) if &*call.name == "values" => origin(call.arguments.first()?),
        _ => None,
    }
}

/// Returns true if an expression is all of a resource or a module, or an instance of one.
pub(super) fn is_object(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Root(_) => true,
        Kind::Index(base, _) => matches!(base.kind, Kind::Root(_)),
        _ => false,
    }
}
