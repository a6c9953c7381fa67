//! The conversion of a document to a descriptor that loads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value as Json;

use crate::auth;
use crate::candidate::{Candidate, Paths, braced};
use crate::document::Document;
use crate::draft::{TypeDraft, draft};
use crate::errors::message_places;
use crate::names::{one_line, provider_name, snake};
use crate::refusal::{self, Refusal};
use crate::report::{Converted, LeftOut, TypeFound};
use crate::shape::Shapes;
use crate::text::{self, Head, NamedType};
use crate::type_names::type_names;
use crate::types::{Naming, is_typed};

/// The most names that are examined for the rule of names.
const NAMES_MAX: usize = 5000;

/// The options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The types to write; their parents are written, too. Empty for all types.
    pub types: Vec<String>,
    /// The name of the provider; none if it is made from the title.
    pub provider: Option<String>,
}

/// A mistake that the loader of descriptors finds in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its place in the text, in bytes.
    pub place: Range<usize>,
    /// A description of the mistake.
    pub message: String,
}

/// Writes a descriptor from the text of a document. `load` returns the mistakes in the text of a descriptor;
/// a type with a mistake is left out.
pub fn convert(
    document: &str,
    options: &Options,
    load: &dyn Fn(&str) -> Vec<Fault>,
) -> Result<Converted, Refusal> {
    let document = Document::read(document)?;
    let shapes = Shapes::new(&document);
    let paths = Paths::of(&document);
    let naming = naming(&document);
    let (candidates, mut left_out) = paths.candidates();
    let drafts = drafts(&shapes, naming, candidates, &mut left_out);
    let title = document.at(&["info", "title"]).as_str().unwrap_or_default();
    let provider = match &options.provider {
        Some(name) => name.clone(),
        None => provider_name(title),
    };
    let names = type_names(&drafts, &provider);
    if shapes.are_exhausted() {
        return Err(refusal::too_involved());
    }
    let mut kept = wanted(&drafts, &names, &options.types)?;
    let auth = auth::auth(&document, &provider);
    let messages = message_places(&shapes, paths.operations());
    let head = Head {
        title: if title.is_empty() { provider.clone() } else { one_line(title) },
        provider: &provider,
        address: address(&document),
        auth: &auth,
        naming,
        messages: &messages,
    };
    let text = loop {
        if kept.is_empty() {
            return Err(refusal::no_types());
        }
        let types = named(&drafts, &names, &kept);
        let text = text::descriptor(&head, &types);
        let Some((index, message)) = first_fault(&text, &names, &kept, load) else { break text };
        for index in with_children(&drafts, &kept, index) {
            kept.remove(&index);
            left_out.push(LeftOut::new(drafts[index].path.clone(), message.clone()));
        }
    };
    let types = named(&drafts, &names, &kept);
    for ty in &types {
        let parts = ty.draft.left_out.iter();
        left_out.extend(parts.map(|(wire, why)| LeftOut::new(format!("{}.{wire}", ty.name), *why)));
    }
    if !options.types.is_empty() {
        let is_wanted = |left: &LeftOut| !left.part.starts_with('/');
        left_out.retain(is_wanted);
    }
    let types = types.iter().map(found).collect();
    Ok(Converted { text, provider, types, left_out })
}

fn found(ty: &NamedType<'_>) -> TypeFound {
    let attributes = &ty.draft.attributes;
    TypeFound {
        name: ty.name.to_owned(),
        path: ty.draft.path.clone(),
        attributes: attributes.len(),
        typed: attributes.iter().filter(|it| is_typed(&it.ty)).count(),
        to_prove: text::marks(ty),
    }
}

/// Returns the types of candidates, parents first. A type that is only looked up is kept for the types below
/// it.
fn drafts<'a>(
    shapes: &Shapes<'a>,
    naming: Naming,
    candidates: Vec<Candidate<'a>>,
    left_out: &mut Vec<LeftOut>,
) -> Vec<TypeDraft> {
    let mut drafts: Vec<TypeDraft> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for mut candidate in candidates {
        let above = candidate.parent.as_ref();
        let parent = above.and_then(|key| places.get(key)).map(|index| (*index, &drafts[*index]));
        if let (Some(above), None) = (above, parent) {
            if candidate.management.is_some() {
                let reason = format!("no type has the objects above it, `{above}`");
                left_out.push(LeftOut::new(braced(&candidate.item), reason));
            }
            continue;
        }
        let mut found = draft(shapes, naming, &candidate, parent);
        if let (Err(reason), Some(_)) = (&found, candidate.management.take()) {
            left_out.push(LeftOut::new(braced(&candidate.item), reason.clone()));
            found = draft(shapes, naming, &candidate, parent);
        }
        if let Ok(draft) = found {
            places.insert(candidate.item.key(), drafts.len());
            drafts.push(draft);
        }
    }
    without_unneeded(drafts)
}

/// Removes the types that are only looked up and have no managed type below them.
fn without_unneeded(drafts: Vec<TypeDraft>) -> Vec<TypeDraft> {
    let mut needed: Vec<bool> =
        drafts.iter().map(|draft| draft.texts.management.is_some()).collect();
    for (index, draft) in drafts.iter().enumerate().rev() {
        if let (true, Some(parent)) = (needed[index], &draft.parent) {
            needed[parent.index] = true;
        }
    }
    let place = |index: usize| needed[..index].iter().filter(|needed| **needed).count();
    let kept = drafts.into_iter().enumerate().filter(|(index, _)| needed[*index]);
    kept.map(|(_, mut draft)| {
        if let Some(parent) = &mut draft.parent {
            parent.index = place(parent.index);
        }
        draft
    })
    .collect()
}

/// Returns the types to write: the wanted ones and their parents.
fn wanted(
    drafts: &[TypeDraft],
    names: &[String],
    types: &[String],
) -> Result<BTreeSet<usize>, Refusal> {
    if types.is_empty() {
        return Ok((0..drafts.len()).collect());
    }
    let mut kept = BTreeSet::new();
    for wanted in types {
        let mut at = names.iter().position(|name| name == wanted);
        if at.is_none() {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(refusal::unknown_type(wanted, &known));
        }
        while let Some(index) = at {
            kept.insert(index);
            at = drafts[index].parent.as_ref().map(|parent| parent.index);
        }
    }
    Ok(kept)
}

fn named<'s>(
    drafts: &'s [TypeDraft],
    names: &'s [String],
    kept: &BTreeSet<usize>,
) -> Vec<NamedType<'s>> {
    let of = |index: &usize| NamedType {
        name: &names[*index],
        parent: drafts[*index].parent.as_ref().map(|parent| names[parent.index].as_str()),
        draft: &drafts[*index],
    };
    kept.iter().map(of).collect()
}

/// Returns the type with the first mistake, and the mistake. A mistake outside of all types counts as one of
/// the last type.
fn first_fault(
    text: &str,
    names: &[String],
    kept: &BTreeSet<usize>,
    load: &dyn Fn(&str) -> Vec<Fault>,
) -> Option<(usize, String)> {
    let fault = load(text).into_iter().next()?;
    let header = |index: &&usize| {
        let at = text.find(&format!("\n[type.{}]\n", names[**index]));
        at.is_some_and(|at| at < fault.place.end.max(1))
    };
    let index = kept.iter().rfind(header).or_else(|| kept.iter().next_back())?;
    Some((*index, format!("its descriptor would not load: {}", fault.message)))
}

/// Returns a type and those below it.
fn with_children(drafts: &[TypeDraft], kept: &BTreeSet<usize>, index: usize) -> Vec<usize> {
    let mut gone = BTreeSet::from([index]);
    // A type comes after its parents.
    for other in kept {
        let parent = drafts[*other].parent.as_ref();
        if parent.is_some_and(|parent| gone.contains(&parent.index)) {
            gone.insert(*other);
        }
    }
    gone.into_iter().collect()
}

/// Returns the rule that most names of the document follow.
fn naming(document: &Document) -> Naming {
    let schemas =
        if document.is_swagger { vec!["definitions"] } else { vec!["components", "schemas"] };
    let schemas = document.at(&schemas).as_object().into_iter().flatten();
    let properties = schemas.filter_map(|(_, schema)| schema.get("properties")?.as_object());
    let names = properties.flat_map(|properties| properties.keys()).take(NAMES_MAX);
    let (mut camel, mut same) = (0_usize, 0_usize);
    for name in names {
        let Some(snake) = snake(name) else { continue };
        same += usize::from(snake == *name && name.contains('_'));
        camel += usize::from(snake != *name && Naming::Camel.wire(&snake) == *name);
    }
    if camel > same { Naming::Camel } else { Naming::Same }
}

/// Returns the address of the API, with the defaults of its variables; none if it is relative.
fn address(document: &Document) -> Option<String> {
    let url = if document.is_swagger { swagger_address(document)? } else { server(document)? };
    let url = url.trim_end_matches('/').to_owned();
    let is_whole = url.starts_with("https://") || url.starts_with("http://");
    (is_whole && !url.contains(['{', '}', ' ', '?', '#']) && !url.contains(":///")).then_some(url)
}

fn swagger_address(document: &Document) -> Option<String> {
    let host = document.at(&["host"]).as_str()?;
    let base = document.at(&["basePath"]).as_str().unwrap_or_default();
    let schemes = document.at(&["schemes"]).as_array();
    let is_plain = schemes.is_some_and(|all| !all.is_empty() && all.iter().all(|it| it == "http"));
    let scheme = if is_plain { "http" } else { "https" };
    Some(format!("{scheme}://{host}/{}", base.trim_start_matches('/')))
}

fn server(document: &Document) -> Option<String> {
    let server = document.at(&["servers"]).get(0)?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    let variables = server.get("variables").and_then(Json::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let default = variable.get("default").and_then(Json::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    Some(url)
}
