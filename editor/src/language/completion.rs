//! Completion: what may stand at the cursor.

use std::ops::Range;

use engine::address::{Block, Name};
use engine::config::keys::{self, Form};
use engine::config::symbols::Symbol;
use engine::config::{Fetched, backends, provider_choice};
use engine::expression::visit::roots;
use engine::schema::{Attribute, Presence};
use engine::types::Type;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Documentation,
    MarkupContent, MarkupKind, TextEdit,
};

use super::expressions::{reference, view};
use super::names::{self, Candidate, Kind};
use super::subject::is_object;
use super::{Query, raw_block};
use crate::text::cursor::Place;
use crate::text::outline::Segment;
use crate::text::reference::Reference;
use crate::words;

/// The most candidates of an answer; the editor asks again when more is typed.
const MAX: usize = 200;

/// The candidates at the cursor, and the place of the word that one of them replaces.
struct Offer {
    word: Range<usize>,
    candidates: Vec<Candidate>,
}

/// The words that may stand at the cursor.
pub(crate) fn completion(query: &Query<'_>) -> CompletionList {
    let Some(Offer { word, candidates }) = offer(query) else { return CompletionList::default() };
    let typed = query.text.content().get(word.start..query.offset).unwrap_or_default();
    let typed = typed.trim_start_matches(['"', '\'']).to_lowercase();
    let mut fitting: Vec<(u8, Candidate)> =
        candidates.into_iter().filter_map(|it| Some((rank(&it.label, &typed)?, it))).collect();
    fitting.sort_by(|(a, one), (b, other)| {
        (a, !one.is_first, &one.label).cmp(&(b, !other.is_first, &other.label))
    });
    let is_incomplete = fitting.len() > MAX;
    let range = query.text.range(word);
    let items = fitting.into_iter().take(MAX).enumerate();
    let items = items.map(|(order, (_, candidate))| item(candidate, order, range)).collect();
    CompletionList { is_incomplete, items }
}

/// The closeness of a label to what was typed, the closest first; none where it does not fit.
fn rank(label: &str, typed: &str) -> Option<u8> {
    if label.starts_with(typed) {
        return Some(0);
    }
    if label.split(['.', '_', '-']).any(|part| part.starts_with(typed)) {
        return Some(1);
    }
    // Letters in their order: an editor that filters by itself finds no less.
    let mut letters = label.chars();
    typed.chars().all(|c| letters.any(|letter| letter.to_ascii_lowercase() == c)).then_some(2)
}

fn item(candidate: Candidate, order: usize, range: lsp_types::Range) -> CompletionItem {
    let kind = match candidate.kind {
        Kind::Table => CompletionItemKind::CLASS,
        Kind::Key | Kind::Keyword => CompletionItemKind::KEYWORD,
        Kind::Attribute => CompletionItemKind::FIELD,
        Kind::Variable | Kind::Local => CompletionItemKind::VARIABLE,
        Kind::Resource => CompletionItemKind::REFERENCE,
        Kind::Module => CompletionItemKind::MODULE,
        Kind::Type => CompletionItemKind::STRUCT,
        Kind::Function => CompletionItemKind::FUNCTION,
        Kind::Value => CompletionItemKind::ENUM_MEMBER,
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    let markdown = |value| MarkupContent { kind: MarkupKind::Markdown, value };
    let new_text = candidate.insert.unwrap_or_else(|| candidate.label.clone());
    CompletionItem {
        kind: Some(kind),
        detail: some(candidate.detail),
        documentation: some(candidate.documentation)
            .map(|text| Documentation::MarkupContent(markdown(text))),
        sort_text: Some(format!("{order:04}")),
        filter_text: Some(candidate.label.clone()),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text })),
        label: candidate.label,
        ..CompletionItem::default()
    }
}

fn offer(query: &Query<'_>) -> Option<Offer> {
    match &query.cursor.place {
        Place::Nothing => None,
        Place::Header(path) => header(query, path),
        Place::Key(word) => Some(Offer { word: word.clone(), candidates: keys_of(query) }),
        Place::Value { key, word } => {
            let quoted = |it: Candidate| {
                if it.kind == Kind::Keyword {
                    return it;
                }
                let text = format!("\"{}\"", it.insert.as_ref().unwrap_or(&it.label));
                it.inserting(text)
            };
            let flags = flags(query, key);
            let candidates = values(query, key).into_iter().chain(flags).map(quoted).collect();
            Some(Offer { word: word.clone(), candidates })
        }
        Place::Text { key, content, .. } => {
            if let Some(reference) = reference(query) {
                return expression(query, &reference);
            }
            let is_plain = !query.text.content()[content.clone()].contains("${");
            let word = content.clone();
            is_plain.then(|| Offer { word, candidates: values(query, key) })
        }
    }
}

fn header(query: &Query<'_>, path: &[Segment]) -> Option<Offer> {
    let names: Vec<&str> = path.iter().map(|segment| &*segment.name).collect();
    let candidates = match names.as_slice() {
        [_] => names::tables().collect(),
        ["resource", _] => names::resource_types(query.known).collect(),
        ["data", _] => names::data_types(query.known).collect(),
        ["resource", _, _, _] => {
            let tables = |key: &&keys::Key| matches!(key.form, Form::Table(_) | Form::Tables(_));
            keys::RESOURCE.iter().filter(tables).map(of_key).collect()
        }
        _ => return None,
    };
    Some(Offer { word: path.last()?.range.clone(), candidates })
}

fn of_key(key: &keys::Key) -> Candidate {
    let detail = if key.is_required { "required" } else { "" };
    Candidate::new(Kind::Key, key.name)
        .detail(detail)
        .documentation(key.description)
        .first(key.is_required)
}

/// The keys that the table at the cursor does not have yet.
fn keys_of(query: &Query<'_>) -> Vec<Candidate> {
    let table = query.table();
    let mut candidates = Vec::new();
    match table.as_slice() {
        [] => return names::tables().collect(),
        ["resource", _, _] => {
            candidates.extend(own_given(query));
        }
        // Any attribute may be what an object is looked up by, and none must.
        ["data", ty, name] if Fetched::of(&Block::data(*ty, *name)).is_none() => candidates
            .extend(own_attributes(query).map(|(name, it)| of_attribute(name, it).first(false))),
        ["data", ..] if table.len() == 3 => {
            candidates.extend(own_given(query));
            let keys = keys::DATA.iter().filter(|key| key.name != "provider");
            candidates.extend(keys.map(of_key));
            candidates.retain(|it| !query.cursor.given.contains(&it.label));
            return candidates;
        }
        ["state"] => {
            let mut names: Vec<&str> = backends::names()
                .flat_map(backends::settings)
                .map(|setting| setting.name)
                .chain(["backend"])
                .collect();
            names.sort_unstable();
            names.dedup();
            candidates.extend(names.into_iter().map(|name| Candidate::new(Kind::Key, name)));
        }
        ["module", name] => candidates.extend(inputs(query, name)),
        _ => {}
    }
    candidates.extend(keys::keys_at(&table).into_iter().flatten().map(of_key));
    candidates.retain(|it| !query.cursor.given.contains(&it.label));
    candidates
}

/// The attributes that a spec gives in the block at the cursor.
fn own_given(query: &Query<'_>) -> impl Iterator<Item = Candidate> {
    let given = own_attributes(query).filter(|(_, it)| it.presence != Presence::Computed);
    given.map(|(name, it)| of_attribute(name, it))
}

fn of_attribute(name: &str, attribute: &Attribute) -> Candidate {
    Candidate::new(Kind::Attribute, name)
        .detail(words::facts(attribute).join(", "))
        .documentation(attribute.description.as_str())
        .first(attribute.presence == Presence::Required)
}

/// The inputs of a module that the spec calls.
fn inputs(query: &Query<'_>, name: &str) -> Vec<Candidate> {
    let Some(module) = super::places::module(query.known, name) else { return Vec::new() };
    let inputs = module.variables.iter().map(|(name, raw)| {
        let is_required = !raw.items.contains_key("default");
        let detail = if is_required { "required input" } else { "input" };
        Candidate::new(Kind::Attribute, &**name)
            .detail(detail)
            .documentation(words::text_of(raw, "description"))
            .first(is_required)
    });
    inputs.collect()
}

/// The plain texts that may be the value of a key.
fn values(query: &Query<'_>, key: &str) -> Vec<Candidate> {
    let table = query.table();
    let value = |text: &str| Candidate::new(Kind::Value, text);
    if let (["state"], "backend") = (table.as_slice(), key) {
        return backends::names().map(value).collect();
    }
    match keys::key_at(&table, key).map(|key| key.form) {
        Some(Form::Address | Form::Addresses) => names::addresses(query.known).collect(),
        Some(Form::Provider) => {
            let instances = query.known.whole.providers().keys();
            // Without the quotes around a key, for it stands in quotes itself.
            let plain = |name: &Name| match provider_choice::key(name) {
                Some(key) => value(&format!("{}[{key}]", provider_choice::base(name))),
                None => value(name),
            };
            instances.map(plain).collect()
        }
        Some(Form::TypeName) => {
            let types = ["string", "integer", "number", "boolean", "any"];
            let types = types.into_iter().chain(["list(string)", "set(string)", "map(string)"]);
            types.map(|ty| Candidate::new(Kind::Type, ty)).collect()
        }
        Some(Form::Attributes) => {
            own_attributes(query).map(|(name, it)| of_attribute(name, it)).collect()
        }
        Some(_) => Vec::new(),
        None => allowed(query, key),
    }
}

/// The attributes of the type of the block at the cursor.
fn own_attributes<'a>(query: &Query<'a>) -> impl Iterator<Item = (&'a Name, &'a Attribute)> {
    let schema = query.block().and_then(|block| query.known.schema_of(&block));
    schema.into_iter().flat_map(|schema| &schema.attributes)
}

/// The attribute of that name, where the cursor is in no table inside the block.
fn own_attribute<'a>(query: &Query<'a>, name: &str) -> Option<&'a Attribute> {
    let mut attributes = own_attributes(query).filter(|_| query.cursor.table.len() == 3);
    attributes.find(|(known, _)| &***known == name).map(|(_, attribute)| attribute)
}

/// The values that an attribute allows.
fn allowed(query: &Query<'_>, key: &str) -> Vec<Candidate> {
    let attribute = own_attribute(query, key);
    let one_of = attribute.and_then(|attribute| attribute.constraint.one_of.as_ref());
    let values = one_of.into_iter().flat_map(|one_of| &one_of.values);
    values.map(|value| Candidate::new(Kind::Value, &**value)).collect()
}

/// `true` and `false`, where a key takes them.
fn flags(query: &Query<'_>, key: &str) -> Vec<Candidate> {
    let table = query.table();
    let is_flag = match keys::key_at(&table, key) {
        Some(key) => matches!(key.form, Form::Flag | Form::Boolean),
        None => own_attribute(query, key).is_some_and(|it| it.ty == Type::Boolean),
    };
    let words: &[&str] = if is_flag { &["true", "false"] } else { &[] };
    words.iter().map(|word| Candidate::new(Kind::Keyword, *word)).collect()
}

/// The words that may stand in an expression.
fn expression(query: &Query<'_>, reference: &Reference) -> Option<Offer> {
    let word = reference.range.clone();
    if reference.base.is_empty() {
        let block = query.block();
        let raw = block.and_then(|block| raw_block(query.known.document(), &block));
        let has_entries = raw.is_some_and(|raw| raw.items.contains_key("for_each"))
            || query.cursor.header_keys.iter().any(|key| key == "for_each");
        let each = ["each.key", "each.value"].into_iter().filter(|_| has_entries);
        let each = each.map(|word| Candidate::new(Kind::Keyword, word));
        let fetched = match query.table().first() {
            Some(&"check") => &["job", "http"][..],
            _ => &[],
        };
        let fetched = fetched.iter().map(|word| Candidate::new(Kind::Keyword, *word));
        let all = names::references(query.known).chain(each).chain(fetched);
        let candidates = all.chain(names::functions()).collect();
        return Some(Offer { word, candidates });
    }
    if let Some(candidates) = names::behind(query.known, &reference.base) {
        return Some(Offer { word, candidates });
    }
    let (expr, ty) = view(query).parsed(&reference.base)?;
    let mut origin = None;
    roots(&expr, &mut |root, _| origin = origin.take().or(Symbol::of_root(root)));
    // Behind a splat stand the attributes of each item.
    let is_splat = reference.base.ends_with("[*]") || reference.base.ends_with(".*");
    let ty = match ty {
        Type::List(item) if is_splat => *item,
        // Of a spec that was never whole yet, the attributes of a resource are known by its type.
        Type::Any if is_object(&expr) => match &origin {
            Some(Symbol::Resource(block)) => query.known.schema_of(block)?.object_type(),
            _ => Type::Any,
        },
        ty => ty,
    };
    Some(Offer { word, candidates: names::attributes(query.known, origin.as_ref(), &ty) })
}
