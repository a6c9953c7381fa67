//! Reads `[type.<name>.attribute]`: the values of an attribute, and their form on each wire.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::constraint::violations;
use engine::diagnostics::Span;
use engine::form::Form;
use engine::schema::{Attribute, Constraint, OnChange, OneOf, Presence, SeenIn};
use engine::stored::from_json;
use engine::types::Type;
use engine::value::Value;

use super::api::path;
use super::model::{AttributeModel, Naming, WireShape};
use super::reader::{Keys, Node, Reader};
use super::texts::{filled, value_template};
use super::{Context, diagnostics, image, unset};
use crate::codec::{self, Codec};

pub(super) fn read(
    reader: &mut Reader,
    context: &Context,
    (name, span): (&str, Span),
    node: Node<'_>,
) -> Option<AttributeModel> {
    let mut keys = Keys::of(reader, node, &format!("attribute `{name}`"))?;
    let ty = keys.must(reader, "type").and_then(|node| type_of(reader, node));
    let ty = ty.unwrap_or(Type::Any);
    let mut schema = Attribute::new(ty.clone());
    schema.description = keys.text(reader, "description").unwrap_or_default();
    schema.presence = presence(reader, &mut keys, span);
    schema.sensitive = keys.flag(reader, "sensitive");
    let default_node = keys.node("default");
    schema.default = default_node.and_then(|node| default(reader, node, &ty));
    schema.server_value = keys.node("server_value").and_then(|node| default(reader, node, &ty));
    schema.server_default = keys.flag(reader, "server_default") || schema.server_value.is_some();
    schema.on_change = keys
        .node("on_change")
        .and_then(|node| {
            let words = [("update", OnChange::Update), ("replace", OnChange::Replace)];
            reader.word(node, "on_change", &words)
        })
        .unwrap_or(OnChange::Update);
    schema.data_loss = keys.flag(reader, "data_loss");
    schema.seen_in = keys
        .node("seen_in")
        .and_then(|node| {
            let words = [("list", SeenIn::List), ("read", SeenIn::Read), ("never", SeenIn::Never)];
            reader.word(node, "seen_in", &words)
        })
        .unwrap_or(SeenIn::List);
    schema.volatile = keys.flag(reader, "volatile");
    schema.derived = keys.node("derived").and_then(|node| filled(reader, node, "derived"));
    schema.follows = keys.text(reader, "follows").map(Name::from);
    schema.holds = keys.text(reader, "holds").map(Name::from);
    schema.form = form(reader, &mut keys, &ty);
    schema.constraint = constraint(reader, context, &mut keys);
    schema.effect = keys.text(reader, "effect");
    schema.unit = keys.text(reader, "unit");
    if let Some(node) = default_node {
        default_is_allowed(reader, node, name, &schema);
    }
    let header = header(reader, &mut keys, &mut schema);
    let mut wires = wires(reader, context, name, &schema, &mut keys);
    if header.is_some() {
        wires.clear();
    }
    schema.nulls = nulls(&wires, &ty);
    let is_null = |default: &Value| schema.nulls.iter().any(|null| null.same(default));
    if schema.default.as_ref().is_some_and(is_null) {
        let help = "remove the default: an attribute without a value is null";
        let label = format!("the codec of `{name}` reads this value as null");
        reader.push(diagnostics::misfit(span, "the default stands for no value", &label, help));
    }
    schema.local = wires.is_empty() && schema.presence != Presence::Computed;
    if schema.local {
        schema.seen_in = SeenIn::Never;
    }
    schema.unset = match keys.node("unset") {
        Some(node) => unset::read(reader, node, &schema),
        None => unset::to_server_value(&schema),
    };
    let merges = merges(reader, &mut keys, &schema, &wires);
    let image = image::read(reader, &mut keys, &ty);
    keys.finish(reader);
    Some(AttributeModel { schema, header, wires, merges, image })
}

/// Reads `header`: the header of an answer that shows the attribute. An answer to a list has one header for
/// all its objects, so only reads show the attribute.
fn header(reader: &mut Reader, keys: &mut Keys<'_>, schema: &mut Attribute) -> Option<String> {
    let node = keys.node("header")?;
    let name = reader.text(node, "header")?.to_lowercase();
    if schema.presence != Presence::Computed {
        let span = reader.span(node.span());
        let label = "an answer tells it";
        let help = "add `computed = true`; what a call sends stands in the `headers` of its phase";
        reader.push(diagnostics::misfit(span, "a header of an answer is not given", label, help));
    }
    schema.seen_in = SeenIn::Read;
    Some(name)
}

/// Reads `merges`. For it, each key of an object must be known, and sent without a change.
fn merges(
    reader: &mut Reader,
    keys: &mut Keys<'_>,
    schema: &Attribute,
    wires: &BTreeMap<Name, WireShape>,
) -> bool {
    let Some(node) = keys.node("merges").filter(|_| keys.flag(reader, "merges")) else {
        return false;
    };
    let is_changed = |codec: &Codec| !matches!(codec, Codec::IgnoreKeys(_));
    let mut codecs = wires.values().flat_map(|shape| shape.write.iter().chain(&shape.read));
    let (label, help) = if !matches!(schema.ty, Type::Map(_) | Type::Any) {
        ("it has no keys of its own", "leave it out: it is for `map(…)` and `any`")
    } else if schema.sensitive {
        ("the keys of a secret are not known", "leave it out: a secret is sent as a whole")
    } else if codecs.any(is_changed) {
        ("a codec makes something else of its keys", "keep one of the two; `ignore_keys` may stay")
    } else {
        return true;
    };
    let span = reader.span(node.span());
    reader.push(diagnostics::misfit(span, "the attribute cannot be merged", label, help));
    false
}

fn type_of(reader: &mut Reader, node: Node<'_>) -> Option<Type> {
    let text = reader.text(node, "type")?;
    let ty = text.parse().ok();
    if ty.is_none() {
        let wants = "string, integer, number, boolean, any, list(…), set(…), map(…) or object{…}";
        reader.wrong(node, "type", wants);
    }
    ty
}

fn presence(reader: &mut Reader, keys: &mut Keys<'_>, span: Span) -> Presence {
    let (required, computed) = (keys.flag(reader, "required"), keys.flag(reader, "computed"));
    match (required, computed) {
        (true, true) => {
            reader.push(diagnostics::misfit(
                span,
                "an attribute cannot be required and computed",
                "a spec must give the one and cannot give the other",
                "keep one of the two",
            ));
            Presence::Required
        }
        (true, false) => Presence::Required,
        (false, true) => Presence::Computed,
        (false, false) => Presence::Optional,
    }
}

fn default(reader: &mut Reader, node: Node<'_>, ty: &Type) -> Option<Value> {
    let value = from_json(&reader.json(node, "default")?);
    match value.convert(ty) {
        Ok(value) => Some(value),
        Err(misfit) => {
            let span = reader.span(node.span());
            let label = misfit.to_string();
            let help = format!("the attribute is of type {ty}");
            reader.push(diagnostics::misfit(span, "the default does not fit", &label, &help));
            None
        }
    }
}

/// Checks that a spec could give the default itself: it keeps the bounds and the list of the attribute.
fn default_is_allowed(reader: &mut Reader, node: Node<'_>, name: &str, schema: &Attribute) {
    let Some(default) = &schema.default else { return };
    for found in violations(name, schema.unit.as_deref(), &schema.constraint, default) {
        let span = reader.span(node.span());
        let help = found.help.as_deref().unwrap_or("change the default, or the bound");
        reader.push(diagnostics::misfit(span, "the default is not allowed", &found.message, help));
    }
}

/// Reads `equal_as`, which is for texts, including those in collections.
fn form(reader: &mut Reader, keys: &mut Keys<'_>, ty: &Type) -> Option<Form> {
    let node = keys.node("equal_as")?;
    let form = reader.word(node, "equal_as", &Form::WORDS)?;
    if holds_text(ty) {
        return Some(form);
    }
    let (span, label) = (reader.span(node.span()), format!("a value of type {ty} has no text"));
    let help = "leave `equal_as` away: it is for texts, and for collections of texts";
    reader.push(diagnostics::misfit(span, "the attribute has one form", &label, help));
    None
}

fn holds_text(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Any => true,
        Type::List(item) | Type::Set(item) | Type::Map(item) => holds_text(item),
        Type::Object(fields) => fields.values().any(|field| holds_text(&field.ty)),
        _ => false,
    }
}

fn constraint(reader: &mut Reader, context: &Context, keys: &mut Keys<'_>) -> Constraint {
    let separator = keys.text(reader, "separator");
    let exclusion = keys.text(reader, "exclusion");
    let values = keys.node("one_of").map(|node| one_of(reader, context, node));
    Constraint {
        min: keys.number(reader, "min"),
        max: keys.number(reader, "max"),
        length_min: keys.count(reader, "length_min"),
        length_max: keys.count(reader, "length_max"),
        one_of: values.map(|values| OneOf { values, separator, exclusion }),
    }
}

/// Reads allowed texts; `@name` means all texts of an enumeration.
fn one_of(reader: &mut Reader, context: &Context, node: Node<'_>) -> Vec<Name> {
    let mut values: Vec<Name> = Vec::new();
    for text in reader.texts(node, "one_of") {
        let Some(name) = text.strip_prefix('@') else {
            values.push(text.into());
            continue;
        };
        if let Some(list) = context.enumerations.get(name) {
            values.extend(list.iter().cloned());
        } else {
            let known: Vec<&str> = context.enumerations.keys().map(String::as_str).collect();
            let span = reader.span(node.span());
            reader.push(diagnostics::unknown_name(span, "enumeration", name, &known));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

/// Returns the forms of an attribute on the wires of all APIs.
fn wires(
    reader: &mut Reader,
    context: &Context,
    name: &str,
    schema: &Attribute,
    keys: &mut Keys<'_>,
) -> BTreeMap<Name, WireShape> {
    let codecs = keys.node("codec").map(|node| codecs(reader, node)).unwrap_or_default();
    let wire = keys.node("wire");
    let mut wires = BTreeMap::new();
    // A derived attribute is on no wire, unless the descriptor says where a phase writes it.
    let is_derived = schema.derived.is_some();
    let is_on_wires = wire.map_or(!is_derived, |it| it.get_ref().as_bool() != Some(false));
    if !is_on_wires {
        return wires;
    }
    let common = wire.and_then(|node| node.get_ref().as_str());
    for (api, model) in &context.apis {
        let wire_name = common.map_or_else(|| Naming::wire(model.naming, name), str::to_owned);
        wires.insert(api.clone(), shape(&wire_name, &codecs));
    }
    if let Some(node) = wire.filter(|_| common.is_none()) {
        for (api, span, node) in super::reader::named(reader, Some(node), "wire") {
            if context.apis.contains_key(api) {
                one_wire(reader, &mut wires, api, node);
            } else {
                reader.push(diagnostics::unknown_name(span, "API", api, &context.api_names()));
            }
        }
    }
    if schema.seen_in == SeenIn::Never || is_derived {
        for shape in wires.values_mut() {
            shape.read_at = None;
        }
    }
    wires
}

/// Returns the values that an API shows as null although they were set.
fn nulls(wires: &BTreeMap<Name, WireShape>, ty: &Type) -> Vec<Value> {
    let shown = wires.values().filter(|shape| shape.read_at.is_some());
    let words = shown.flat_map(|shape| codec::nulls(&shape.read));
    let mut nulls: Vec<Value> = Vec::new();
    for word in words.filter_map(|word| from_json(&word).convert(ty).ok()) {
        if !nulls.iter().any(|known| known.same(&word)) {
            nulls.push(word);
        }
    }
    nulls
}

fn shape(name: &str, codecs: &[Codec]) -> WireShape {
    WireShape {
        write_at: Some(path(name)),
        read_at: Some(path(name)),
        write: codecs.to_vec(),
        read: codecs.to_vec(),
        value: None,
        shown: None,
    }
}

/// Reads the form in one API: a name, `false`, or a table.
fn one_wire(reader: &mut Reader, wires: &mut BTreeMap<Name, WireShape>, api: &str, node: Node<'_>) {
    if node.get_ref().as_bool() == Some(false) {
        wires.remove(api);
        return;
    }
    let Some(shape) = wires.get_mut(api) else { return };
    if let Some(name) = node.get_ref().as_str() {
        (shape.write_at, shape.read_at) = (Some(path(name)), Some(path(name)));
        return;
    }
    let Some(mut keys) = Keys::of(reader, node, "wire") else { return };
    if let Some(name) = keys.text(reader, "name") {
        (shape.write_at, shape.read_at) = (Some(path(&name)), Some(path(&name)));
    }
    if let Some(node) = keys.node("codec") {
        let codecs = codecs(reader, node);
        (shape.write, shape.read) = (codecs.clone(), codecs);
    }
    for key in ["write", "read"] {
        let Some(node) = keys.node(key) else { continue };
        let place = if key == "write" { &mut shape.write_at } else { &mut shape.read_at };
        match node.get_ref().as_bool() {
            Some(false) => *place = None,
            _ => *place = reader.text(node, key).map(path),
        }
    }
    shape.value = keys.node("value").and_then(|node| value_template(reader, node, "value"));
    shape.shown = keys.node("shown").and_then(|node| filled(reader, node, "shown"));
    if shape.shown.is_some() {
        shape.read_at = Some(Vec::new());
    }
    keys.finish(reader);
}

/// Reads a codec or a list of them.
fn codecs(reader: &mut Reader, node: Node<'_>) -> Vec<Codec> {
    Reader::items(node).into_iter().filter_map(|item| codec(reader, item)).collect()
}

fn codec(reader: &mut Reader, node: Node<'_>) -> Option<Codec> {
    if node.get_ref().is_str() {
        let words = [
            ("comma", 0),
            ("pairs", 1),
            ("json", 2),
            ("enum", 3),
            ("empty_is_null", 4),
            ("number_text", 5),
        ];
        return Some(match reader.word(node, "codec", &words)? {
            0 => Codec::Join(",".to_owned()),
            1 => Codec::Pairs("key".to_owned(), "value".to_owned()),
            2 => Codec::JsonText,
            3 => Codec::Enum,
            4 => Codec::NullIs("".into()),
            _ => Codec::NumberText,
        });
    }
    let mut keys = Keys::of(reader, node, "codec")?;
    let found = codec_of(reader, &mut keys);
    keys.finish(reader);
    if found.is_none() {
        reader.wrong(node, "codec", "one codec in each table");
    }
    found
}

fn codec_of(reader: &mut Reader, keys: &mut Keys<'_>) -> Option<Codec> {
    let join = keys.text(reader, "join").map(Codec::Join);
    let unjoin = keys.text(reader, "unjoin").map(Codec::Unjoin);
    let wrap = keys.text(reader, "wrap").map(Codec::Wrap);
    let null_is = keys.node("null_is").and_then(|n| reader.json(n, "null_is"));
    let as_null = keys.node("reads_as_null").and_then(|n| reader.json(n, "reads_as_null"));
    let suffixes = keys.node("suffixes").map(|n| Codec::Suffixes(reader.texts(n, "suffixes")));
    let ignore = keys.node("ignore_keys").map(|n| reader.texts(n, "ignore_keys"));
    let pairs = keys.node("pairs").map(|n| reader.texts(n, "pairs"));
    let values = keys.node("values").and_then(|n| values(reader, n));
    let (write, read) = (keys.node("write"), keys.node("read"));
    let split = (write.is_some() || read.is_some()).then(|| Codec::Split {
        write: write.map(|node| codecs(reader, node)).unwrap_or_default(),
        read: read.map(|node| codecs(reader, node)).unwrap_or_default(),
    });
    let pairs = pairs.and_then(|names| match names.as_slice() {
        [key, value] => Some(Codec::Pairs(key.clone(), value.clone())),
        _ => None,
    });
    let all = [
        join,
        unjoin,
        wrap,
        null_is.map(Codec::NullIs),
        as_null.map(Codec::ReadsAsNull),
        suffixes,
        ignore.map(Codec::IgnoreKeys),
        pairs,
        values,
        split,
    ];
    let mut found = all.into_iter().flatten();
    found.next().filter(|_| found.next().is_none())
}

/// Reads `[["OFF", false], ["ON", true]]`: pairs of the wire's and the attribute's form.
fn values(reader: &mut Reader, node: Node<'_>) -> Option<Codec> {
    let json = reader.json(node, "values")?;
    let pairs: Option<Vec<_>> = json.as_array().and_then(|items| {
        items
            .iter()
            .map(|item| match item.as_array().map(Vec::as_slice) {
                Some([wire, attribute]) => Some((wire.clone(), attribute.clone())),
                _ => None,
            })
            .collect()
    });
    if pairs.is_none() {
        reader.wrong(node, "values", "pairs of a wire value and an attribute's value");
    }
    pairs.map(Codec::Values)
}
