//! The calls of a type, as lines of a descriptor.

use std::collections::BTreeMap;

use crate::attribute::{AttributeDraft, Parameter, Presence, quoted};
use crate::candidate::{CallDraft, Candidate, Management};
use crate::marks::{KEPT, NAMES};
use crate::object::{Found, Objects};
use crate::operation::{Body, Method, Operation, parameter_schema};
use crate::paging::{Paging, paging};
use crate::shape::Shapes;

/// The content type of a patch that is merged.
const MERGE_PATCH: &str = "application/merge-patch+json";
/// The name of the API in a descriptor.
const API: &str = "rest";

/// The values of the keys of a type, as TOML.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    /// The call of `list`, with `{}` for the parameters of the parent.
    pub(crate) list: Line,
    pub(crate) read: Option<Line>,
    /// The calls that make, change and delete objects; none if objects are only looked up.
    pub(crate) management: Option<ManagementTexts>,
}

/// The values of the keys that make, change and delete objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManagementTexts {
    pub(crate) identity: Line,
    pub(crate) create: Line,
    pub(crate) update: Option<Line>,
    pub(crate) delete: Line,
}

/// A value, with the fact that is still to be proved about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) value: String,
    pub(crate) proof: Option<String>,
}

impl Line {
    fn sure(value: String) -> Self {
        Self { value, proof: None }
    }
}

/// Returns the way to find the object of a create whose answer was lost.
fn identity(create: Operation<'_>, is_client: bool) -> Line {
    let headers = create.parameters_in("header");
    let header = headers.iter().find(|(name, _)| {
        matches!(name.to_ascii_lowercase().as_str(), "idempotency-key" | "x-idempotency-key")
    });
    let id = "\"client_id\"".to_owned();
    match header {
        _ if is_client && create.method == Method::Put => Line::sure(id),
        Some((name, _)) => Line::sure(format!("{{ idempotency_key = {} }}", quoted(name))),
        None if is_client => Line { value: id, proof: Some(KEPT.to_owned()) },
        None => Line { value: "\"ask\"".to_owned(), proof: Some(NAMES.to_owned()) },
    }
}

/// Returns the calls, or the reason that one cannot be made.
pub(crate) fn texts<'a>(
    shapes: &Shapes<'a>,
    candidate: &Candidate<'a>,
    objects: &Objects<'a>,
    naming: &Named<'_>,
) -> Result<Texts, String> {
    let read = candidate.read.as_ref().map(|read| {
        let text = call_text(shapes, read, &naming.parameters())?;
        let at = objects.read.as_ref().and_then(|found| found.at);
        Ok::<_, String>(Line::sure(match at {
            Some(at) => format!("{{ call = \"{text}\", item = {} }}", quoted(at)),
            None => format!("\"{text}\""),
        }))
    });
    let management = candidate.management.as_ref();
    let management = management.map(|calls| management_texts(shapes, calls, objects, naming));
    Ok(Texts {
        list: list(shapes, candidate, objects)?,
        read: read.transpose()?,
        management: management.transpose()?,
    })
}

/// The attributes of a type, and the ones among them that name an object.
pub(crate) struct Named<'s> {
    pub(crate) attributes: &'s BTreeMap<String, AttributeDraft>,
    pub(crate) parameters: &'s [Parameter],
    /// True if a client chooses the id.
    pub(crate) is_client: bool,
}

impl Named<'_> {
    /// Returns the texts for the parameters of an item path.
    fn parameters(&self) -> Vec<String> {
        let names = self.parameters.iter().map(|parameter| &parameter.name);
        names.map(|name| format!("${{{name}}}")).collect()
    }
}

fn management_texts<'a>(
    shapes: &Shapes<'a>,
    calls: &Management<'a>,
    objects: &Objects<'a>,
    naming: &Named<'_>,
) -> Result<ManagementTexts, String> {
    let (names, attributes) = (naming.parameters(), naming.attributes);
    let call = |call: &CallDraft<'a>| call_text(shapes, call, &names);
    let item = |shown: Option<&Found<'a>>| match shown {
        None => ", item = false".to_owned(),
        Some(found) => found.at.map_or(String::new(), |at| format!(", item = {}", quoted(at))),
    };
    let inside =
        |at: Option<&str>| at.map_or(String::new(), |at| format!(", inside = {}", quoted(at)));
    let create = format!(
        "[ {{ call = \"{}\", sends = \"all\"{}{}{} }} ]",
        call(&calls.create)?,
        inside(objects.create.at),
        item(objects.created.as_ref()),
        body_form(calls.create.operation),
    );
    let changes = attributes
        .values()
        .any(|attribute| !attribute.replaces && attribute.presence != Presence::Computed);
    let update = calls.update.as_ref().zip(objects.update.as_ref()).filter(|_| changes);
    let update = update.map(|(update, taken)| {
        let text = format!(
            "[ {{ call = \"{}\", sends = {}{}{}{} }} ]",
            call(update)?,
            sent(update.operation, attributes),
            inside(taken.at),
            item(objects.updated.as_ref()),
            body_form(update.operation),
        );
        Ok::<_, String>(Line::sure(text))
    });
    let delete = format!("[ {{ call = \"{}\" }} ]", call(&calls.delete)?);
    Ok(ManagementTexts {
        identity: identity(calls.create.operation, naming.is_client),
        create: Line::sure(create),
        update: update.transpose()?,
        delete: Line::sure(delete),
    })
}

/// Returns the attributes that an update sends: the changed ones, or all of the object that a PUT replaces.
fn sent(update: Operation<'_>, attributes: &BTreeMap<String, AttributeDraft>) -> String {
    if update.method != Method::Put {
        return "\"changed\"".to_owned();
    }
    let is_given = |it: &&AttributeDraft| it.presence != Presence::Computed && !is_local(it);
    let given: Vec<&AttributeDraft> = attributes.values().filter(is_given).collect();
    if given.iter().all(|attribute| !attribute.replaces) {
        return "\"all\"".to_owned();
    }
    let taken = given.iter().filter(|attribute| !attribute.replaces);
    let pairs: Vec<String> =
        taken.map(|attribute| format!("{0} = \"${{{0}}}\"", attribute.name)).collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// Returns true if an attribute appears only in paths.
fn is_local(attribute: &AttributeDraft) -> bool {
    attribute.keys.iter().any(|(key, value)| *key == "wire" && value == "false")
}

/// Returns the form of the body of a call if it is not plain JSON.
fn body_form(operation: Operation<'_>) -> String {
    match operation.body() {
        Body::Form { .. } => ", body = \"form\"".to_owned(),
        Body::Json { content_type: Some(MERGE_PATCH), .. } => ", body = \"merge_patch\"".to_owned(),
        Body::Json { content_type: Some(content_type), .. } => {
            format!(", headers = {{ Content-Type = {} }}", quoted(content_type))
        }
        _ => String::new(),
    }
}

/// Returns a call, with its required parameters.
fn call_text<'a>(
    shapes: &Shapes<'a>,
    call: &CallDraft<'a>,
    names: &[String],
) -> Result<String, String> {
    let query = required_query(shapes, call.operation)?;
    let mark = if query.is_empty() { "" } else { "?" };
    Ok(format!("{}{mark}{query}", path_text(call, names)))
}

fn path_text(call: &CallDraft<'_>, names: &[String]) -> String {
    let method = call.operation.method.key().to_uppercase();
    let path = call.route.filled(names);
    let slash = if call.operation.path.ends_with('/') { "/" } else { "" };
    format!("{API}: {method} {path}{slash}")
}

/// Returns the required parameters of a query if the document gives their values.
fn required_query<'a>(shapes: &Shapes<'a>, operation: Operation<'a>) -> Result<String, String> {
    let mut pairs = Vec::new();
    for place in ["query", "header"] {
        for (name, parameter) in operation.parameters_in(place) {
            let is_required = parameter.get("required").and_then(serde_json::Value::as_bool);
            let is_known = place == "header"
                && matches!(
                    name.to_ascii_lowercase().as_str(),
                    "authorization" | "accept" | "content-type" | "idempotency-key" | "user-agent"
                );
            if is_required != Some(true) || is_known {
                continue;
            }
            let shape = shapes.of(parameter_schema(parameter));
            let one = shape.values.as_ref().filter(|values| values.len() == 1);
            let value = shape.default.or_else(|| one.and_then(|values| values.first().copied()));
            let text = value.and_then(|value| match value {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
                    Some(value.to_string())
                }
                _ => None,
            });
            let is_plain = |text: &str| {
                text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~,".contains(&it))
            };
            let fits = |text: &String| place == "query" && is_plain(text) && is_plain(name);
            let Some(text) = text.filter(fits) else {
                let method = operation.method.key().to_uppercase();
                return Err(format!("its {method} needs a value for the {place} `{name}`"));
            };
            pairs.push(format!("{name}={text}"));
        }
    }
    Ok(pairs.join("&"))
}

/// Returns the call that lists, with `{}` for the parameters of the parent.
fn list<'a>(
    shapes: &Shapes<'a>,
    candidate: &Candidate<'a>,
    objects: &Objects<'a>,
) -> Result<Line, String> {
    let holes = vec!["{}".to_owned(); candidate.list.route.parameters().len()];
    let mut text = call_text(shapes, &candidate.list, &holes)?;
    let answer = candidate.list.operation.answer().map(|schema| shapes.of(schema));
    let pages = paging(shapes, candidate.list.operation, &answer.unwrap_or_default());
    let mut keys = String::new();
    if let Some(at) = objects.listed.at {
        keys.extend([", items = ", &quoted(at)]);
    }
    let mut proof = None;
    match pages {
        Paging::None => {}
        Paging::Known { query, value } => {
            if let Some(query) = query {
                let mark = if text.contains('?') { '&' } else { '?' };
                text.push(mark);
                text.push_str(&query);
            }
            keys.extend([", paging = ", &value]);
        }
        Paging::Unknown(why) => proof = Some(why),
    }
    let value = if keys.is_empty() {
        format!("\"{text}\"")
    } else {
        format!("{{ call = \"{text}\"{keys} }}")
    };
    Ok(Line { value, proof })
}
