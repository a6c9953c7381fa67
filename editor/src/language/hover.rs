//! Hover: what the thing at the cursor is, and what its value is.

use engine::address::Block;
use engine::config::constant::constant;
use engine::config::symbols::Symbol;
use engine::config::{RawBlock, provider_choice};
use engine::expression::functions;
use engine::stored::to_json;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use super::expressions::view;
use super::subject::{Subject, subject};
use super::{Query, live, places, raw_block};
use crate::words;

/// The explanation of the thing at the cursor.
pub(crate) fn hover(query: &Query<'_>) -> Option<Hover> {
    let (subject, range) = subject(query)?;
    let value = explained(query, &subject)?;
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(query.text.range(range)) })
}

/// Paragraphs of Markdown, without those that are empty.
fn paragraphs(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

fn explained(query: &Query<'_>, subject: &Subject) -> Option<String> {
    Some(match subject {
        Subject::Symbol(symbol) => of_symbol(query, symbol)?,
        Subject::Attribute { block, name } => {
            let attribute = query.known.schema_of(block)?.attributes.get(name)?;
            let title = format!("**{name}**: {}", words::facts(attribute).join(", "));
            let values = live::values(query.known, block, name);
            paragraphs([title, attribute.description.clone(), in_state(&values)])
        }
        Subject::ResourceType(ty) => {
            let schema = query.known.type_schema(ty)?;
            paragraphs([format!("**{ty}**: type"), schema.description.clone()])
        }
        Subject::Table(table) => {
            paragraphs([format!("**{}**", table.name), table.description.to_owned()])
        }
        Subject::Key(key) => {
            let duty = if key.is_required { ": required" } else { "" };
            paragraphs([format!("**{}**{duty}", key.name), key.description.to_owned()])
        }
        Subject::Input { module, name } => {
            let document = places::module(query.known, module)?;
            let raw = document.variables.get(name)?;
            paragraphs([format!("**{name}**: input of `module.{module}`"), declared(raw)])
        }
        Subject::Output { module, name } => {
            let document = places::module(query.known, module)?;
            let text = words::text_of(document.outputs.get(name)?, "description");
            paragraphs([format!("**{name}**: output of `module.{module}`"), text])
        }
        Subject::Function(name) => {
            let function = functions::references().find(|it| it.name == &**name)?;
            let example = function.example;
            let example = format!("```\n{}\n= {}\n```", example.call, example.result);
            let gives = function.gives.to_owned();
            paragraphs([format!("```\n{}\n```", function.usage), gives, example])
        }
        Subject::Value { text, ty } => format!("`{text}`: {ty}"),
    })
}

fn of_symbol(query: &Query<'_>, symbol: &Symbol) -> Option<String> {
    let known = query.known;
    let document = known.document();
    Some(match symbol {
        Symbol::Variable(name) => {
            let variable = known.whole.config().variables.get(name)?;
            let raw = document.variables.get(name)?;
            paragraphs([format!("**var.{name}**: {}", variable.ty), declared(raw)])
        }
        Symbol::Local(name) => {
            let local = known.whole.config().locals.get(name)?;
            let ty = view(query).type_of(&local.value.expr);
            format!("**local.{name}**: {ty}")
        }
        Symbol::Resource(block) => of_resource(query, block)?,
        Symbol::Module(name) => {
            let raw = document.modules.get(name)?;
            let outputs = places::module(known, name).map(|module| {
                let names: Vec<String> =
                    module.outputs.keys().map(|it| format!("`{it}`")).collect();
                names.join(", ")
            });
            let outputs = outputs.filter(|it| !it.is_empty()).map(|it| format!("Outputs: {it}"));
            let source = format!("**module.{name}**: {}", words::text_of(raw, "source"));
            paragraphs([source, outputs.unwrap_or_default()])
        }
        Symbol::Provider(name) => {
            let mut instances = known.whole.providers().iter();
            let (_, provider) = instances.find(|(it, _)| provider_choice::base(it) == &**name)?;
            let types: Vec<String> = provider.types.keys().map(|ty| format!("`{ty}`")).collect();
            paragraphs([format!("**{name}**: provider"), format!("Types: {}", types.join(", "))])
        }
        Symbol::Output(name) => {
            let text = words::text_of(document.outputs.get(name)?, "description");
            paragraphs([format!("**{name}**: output"), text])
        }
        Symbol::Check(name) => {
            let text = words::text_of(document.checks.get(name)?, "description");
            paragraphs([format!("**{name}**: check"), text])
        }
    })
}

fn of_resource(query: &Query<'_>, block: &Block) -> Option<String> {
    let schema = query.known.schema_of(block)?;
    let raw = raw_block(query.known.document(), block);
    let many = raw.is_some_and(|raw| raw.items.contains_key("for_each"));
    let instances = if many { "Instances by key, from `for_each`." } else { "" };
    let objects = live::objects(query.known, block);
    Some(paragraphs([
        format!("**{block}**: {}", schema.name),
        schema.description.clone(),
        instances.to_owned(),
        in_state(&objects),
        planned(query, block),
    ]))
}

/// The changes that a plan would make to a block, as far as the state tells.
fn planned(query: &Query<'_>, block: &Block) -> String {
    let Some(changes) = &query.known.changes else { return String::new() };
    let (shown, all) = changes.of_block(block, live::INSTANCES_MAX);
    let title = match all {
        0 => return "By the state alone, a plan changes nothing.".to_owned(),
        _ => "By the state alone, a plan changes:".to_owned(),
    };
    let more = all - shown.len();
    let more = if more > 0 { format!("and {more} more") } else { String::new() };
    paragraphs([title, paragraphs(shown), more])
}

fn in_state(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [one] => format!("In the state: {one}"),
        many => format!("In the state:\n\n- {}", many.join("\n- ")),
    }
}

/// A variable as its block declares it.
fn declared(raw: &RawBlock) -> String {
    let is_secret = raw.items.contains_key("sensitive");
    let default = raw.items.get("default").filter(|_| !is_secret);
    let default = default.and_then(|item| constant(&item.value.expr));
    let default = default.map(|value| format!("Default: `{}`", to_json(&value)));
    let secret = if is_secret { "Sensitive." } else { "" };
    let text = words::text_of(raw, "description");
    paragraphs([text, default.unwrap_or_default(), secret.to_owned()])
}
