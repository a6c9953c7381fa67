//! Reads `[type.<name>]`.

use std::collections::BTreeMap;

use engine::address::{Name, RESERVED_TYPES, is_name};
use engine::diagnostics::Span;
use engine::expression::Expr;
use engine::journal::ProgramKind;
use engine::schema::{Attribute, Identity, Presence, ReplaceOrder, Rule};
use engine::state::ObjectId;
use engine::types::Type;
use engine::value::Value;

use super::model::{AttributeModel, Header, ProgramModel, TypeModel};
use super::reader::{Keys, Node, Reader, named};
use super::{
    Context, attribute, call, check, diagnostics, headers, image, keys_in_paths, parent, price,
    program,
};
use crate::template::names;

pub(super) fn read(
    reader: &mut Reader,
    context: &Context,
    (name, span): (&str, Span),
    node: Node<'_>,
) -> Option<TypeModel> {
    check_name(reader, name, span);
    let mut keys = Keys::of(reader, node, &format!("type `{name}`"))?;
    keys.header = span.start as usize..span.end as usize;
    let mut attributes = attributes(reader, context, &mut keys);
    let data_only = keys.flag(reader, "data_only");
    let parent = keys.node("parent").and_then(|node| parent::read(reader, node));
    if let Some(parent) = &parent {
        parent::show(parent, &mut attributes);
    }
    let singleton = keys.text(reader, "singleton");
    let key: Name = keys.text(reader, "key").unwrap_or_else(|| "id".to_owned()).into();
    if let Some(id) = &singleton {
        attributes.insert(key.clone(), constant(id));
    }
    // The only object of a type is read by its id, so no list is needed.
    let list = if singleton.is_some() { keys.node("list") } else { keys.must(reader, "list") };
    let list = list.map(|node| call::lists(reader, context, node));
    let read = keys.node("read").map(|node| call::reads(reader, context, node));
    let find = keys.node("find").and_then(|node| call::search(reader, context, node));
    let mut programs = programs(reader, context, &mut keys);
    let (identity, header) = if data_only || singleton.is_some() {
        (Identity::Ask, None)
    } else {
        identity(reader, &mut keys)
    };
    if let Identity::ClientId { attribute } = &identity {
        draw_where_silent(&mut attributes, attribute);
    }
    if matches!(identity, Identity::Ask | Identity::IdempotencyKey) {
        let creates = programs.iter_mut().filter(|(kind, _)| *kind == ProgramKind::Create);
        creates.for_each(|(_, program)| program::wait_apart(program));
    }
    let headers = headers::filled(reader, &mut keys);
    mark_conditions(&mut attributes, &headers, &programs);
    let replace = replace(reader, &mut keys);
    let (rule_spans, rules) = rules(reader, &mut keys, &attributes);
    let name_attribute = keys.text(reader, "name_attribute");
    let name_attribute = name_attribute.unwrap_or_else(|| known_by(&attributes, &identity));
    let of = |kind| {
        let own = programs.iter().filter(|(own, _)| *own == kind);
        own.map(|(_, program)| program.clone()).collect()
    };
    let mut model = TypeModel {
        description: keys.text(reader, "description").unwrap_or_default(),
        data_only,
        singleton: singleton.map(|id| ObjectId(id.into())),
        headers,
        parent,
        list: list.unwrap_or_default(),
        read: read.unwrap_or_default(),
        find,
        key,
        create: of(ProgramKind::Create),
        update: of(ProgramKind::Update),
        delete: of(ProgramKind::Delete),
        identity,
        idempotency_header: header,
        replace,
        unique_name: keys.flag(reader, "unique_name"),
        name_attribute: attributes.get_key_value(name_attribute.as_str()).map(|(n, _)| n.clone()),
        delete_effect: keys.text(reader, "delete_effect"),
        price: keys.node("price").and_then(|node| price::read(reader, node)),
        rules,
        rule_spans,
        attributes,
    };
    keys.finish(reader);
    keys_in_paths::mark(&mut model, &context.keys);
    check::type_model(reader, (name, span), &model);
    Some(model)
}

/// Reads `variant`, `create`, `update` and `delete`.
fn programs(
    reader: &mut Reader,
    context: &Context,
    keys: &mut Keys<'_>,
) -> Vec<(ProgramKind, ProgramModel)> {
    let mut programs = program::variants(reader, context, keys.node("variant"));
    for (key, kind) in [
        ("create", ProgramKind::Create),
        ("update", ProgramKind::Update),
        ("delete", ProgramKind::Delete),
    ] {
        if let Some(node) = keys.node(key) {
            let phases = program::phases(reader, context, kind, node);
            programs.push((kind, ProgramModel { when: None, phases }));
        }
    }
    programs
}

fn replace(reader: &mut Reader, keys: &mut Keys<'_>) -> ReplaceOrder {
    let words =
        [("delete_first", ReplaceOrder::DeleteFirst), ("create_first", ReplaceOrder::CreateFirst)];
    let replace = keys.node("replace").and_then(|node| reader.word(node, "replace", &words));
    replace.unwrap_or(ReplaceOrder::DeleteFirst)
}

/// Returns the rules of the type, and those about its images, each with its place.
fn rules(
    reader: &mut Reader,
    keys: &mut Keys<'_>,
    attributes: &BTreeMap<Name, AttributeModel>,
) -> (Vec<Span>, Vec<Rule>) {
    let own = program::rules(reader, keys.node("rule")).into_iter();
    own.chain(image::rules(attributes)).unzip()
}

fn check_name(reader: &mut Reader, name: &str, span: Span) {
    if !is_name(name) {
        reader.push(diagnostics::bad_name(span, "a type", name));
    } else if RESERVED_TYPES.contains(&name) {
        reader.push(diagnostics::reserved_name(span, "a type", name));
    }
}

/// The keys of a resource in a spec that cannot be names of attributes.
const RESERVED_ATTRIBUTES: [&str; 6] =
    ["for_each", "depends_on", "provider", "lifecycle", "old", crate::template::ONE_TIME];

fn attributes(
    reader: &mut Reader,
    context: &Context,
    keys: &mut Keys<'_>,
) -> BTreeMap<Name, AttributeModel> {
    let mut attributes = BTreeMap::new();
    let node = keys.must(reader, "attribute");
    for (name, span, node) in named(reader, node, "attribute") {
        if !is_name(name) || name.contains('-') {
            reader.push(diagnostics::bad_name(span, "an attribute", name));
        } else if RESERVED_ATTRIBUTES.contains(&name) {
            reader.push(diagnostics::reserved_name(span, "an attribute", name));
        }
        if let Some(model) = attribute::read(reader, context, (name, span), node) {
            attributes.insert(name.into(), model);
        }
    }
    attributes
}

/// Makes an id unknown before the create if the spec may give it and does not: it is then drawn for the
/// create.
fn draw_where_silent(attributes: &mut BTreeMap<Name, AttributeModel>, id: &Name) {
    let Some(id) = attributes.get_mut(id) else { return };
    let may_be_given = id.schema.presence == Presence::Optional;
    id.schema.server_default |= may_be_given && id.schema.default.is_none();
}

/// Returns an attribute that has the same value for all objects.
fn constant(text: &str) -> AttributeModel {
    let schema = Attribute {
        description: "Its id.".to_owned(),
        presence: Presence::Computed,
        derived: Some(Expr::literal(Value::string(text))),
        ..Attribute::new(Type::String)
    };
    AttributeModel { schema, header: None, wires: BTreeMap::new(), merges: false, image: None }
}

/// Marks the attributes of headers that calls send back, such as a version: each call needs the newest one.
fn mark_conditions(
    attributes: &mut BTreeMap<Name, AttributeModel>,
    of_type: &[Header],
    programs: &[(ProgramKind, ProgramModel)],
) {
    let phases = programs.iter().flat_map(|(_, program)| &program.phases);
    let headers = of_type.iter().chain(phases.flat_map(|phase| &phase.headers));
    let sent: Vec<Name> = headers.flat_map(|header| names(&header.value.0)).collect();
    for (name, attribute) in attributes.iter_mut() {
        attribute.schema.conditional = attribute.header.is_some() && sent.contains(name);
    }
}

/// Returns the attribute that holds the name for people, if the descriptor does not give one. An attribute
/// that is a name only together with others does not count.
fn known_by(attributes: &BTreeMap<Name, AttributeModel>, identity: &Identity) -> String {
    let is_derived = |key: &Name| attributes.get(key).is_some_and(|it| it.schema.derived.is_some());
    match identity {
        Identity::ClientId { attribute } if is_derived(attribute) => attribute.to_string(),
        _ => "name".to_owned(),
    }
}

/// Reads `identity = "one_time_name"`, or `{ idempotency_key = "Idempotency-Key" }`; returns it with the
/// header.
fn identity(reader: &mut Reader, keys: &mut Keys<'_>) -> (Identity, Option<String>) {
    let name_attribute = keys.text(reader, "name_attribute").unwrap_or_else(|| "name".to_owned());
    let attribute: Name = name_attribute.into();
    let key = keys.text(reader, "key").unwrap_or_else(|| "id".to_owned());
    let Some(node) = keys.must(reader, "identity") else { return (Identity::Ask, None) };
    if node.get_ref().is_table() {
        let Some(mut keys) = Keys::of(reader, node, "identity") else {
            return (Identity::Ask, None);
        };
        let header = keys
            .must(reader, "idempotency_key")
            .and_then(|node| reader.text(node, "idempotency_key").map(str::to_owned));
        keys.finish(reader);
        if header.as_ref().is_some_and(|name| !crate::client::is_header_name(name)) {
            reader.wrong(node, "idempotency_key", "the name of a header");
        }
        return (Identity::IdempotencyKey, header);
    }
    let words = [
        ("one_time_name", Identity::OneTimeName { attribute: attribute.clone() }),
        ("unique_name", Identity::UniqueName { attribute }),
        ("client_id", Identity::ClientId { attribute: key.into() }),
        ("ask", Identity::Ask),
    ];
    let places: Vec<(&str, usize)> =
        words.iter().enumerate().map(|(index, (word, _))| (*word, index)).collect();
    let found = reader.word(node, "identity", &places);
    (found.map_or(Identity::Ask, |index| words[index].1.clone()), None)
}
