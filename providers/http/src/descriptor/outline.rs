//! A description of the calls of a type, for people.

use std::collections::BTreeMap;

use engine::address::Name;
use engine::expression::Kind;

use super::model::{CallModel, Descriptor, Method, ProgramModel, Request, SendsModel, TypeModel};
use crate::template::{PARENT, ValueTemplate};

/// The calls of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The parent type, below whose objects the type's objects are; none if there is none.
    pub parent: Option<Name>,
    /// The attributes that repeat those of the parent.
    pub repeated: BTreeMap<Name, Name>,
    /// The attribute with the id.
    pub key: Name,
    /// The calls, such as `GET /zones/${id}`, each with its purpose.
    pub calls: Vec<(&'static str, String)>,
}

impl Descriptor {
    /// Returns the settings that give addresses of APIs.
    pub fn address_settings(&self) -> Vec<&str> {
        self.apis.values().filter_map(|api| api.address.setting.as_deref()).collect()
    }

    /// Returns true if the updates of a type send all changed attributes, and not a list of attributes.
    pub fn sends_changes(&self, ty: &str) -> bool {
        let updates = self.types.get(ty).into_iter().flat_map(|model| &model.update);
        let mut phases = updates.flat_map(|program| &program.phases);
        phases.all(|phase| !matches!(phase.sends, SendsModel::These(_)))
    }

    /// Returns the calls of a type; none if there is no such type.
    pub fn outline(&self, ty: &str) -> Option<Outline> {
        let model = self.types.get(ty)?;
        Some(Outline {
            parent: model.parent.as_ref().map(|parent| parent.ty.clone()),
            repeated: model.parent.iter().flat_map(|parent| parent.attributes.clone()).collect(),
            key: model.key.clone(),
            calls: calls(model),
        })
    }
}

fn calls(model: &TypeModel) -> Vec<(&'static str, String)> {
    let lists = model.list.iter().map(|list| ("list", &list.call));
    let reads = model.read.iter().map(|read| ("read", &read.call));
    let finds = model.find.iter().map(|find| ("find", &find.call));
    let create = of_programs(&model.create);
    let update = of_programs(&model.update);
    let delete = of_programs(&model.delete);
    let all = lists.chain(reads).chain(finds).chain(create).chain(update).chain(delete);
    all.map(|(name, call)| (name, words(call))).collect()
}

/// Returns the calls of all phases, each with the name of its phase, such as `activate`.
fn of_programs(programs: &[ProgramModel]) -> impl Iterator<Item = (&'static str, &CallModel)> {
    let phases = programs.iter().flat_map(|program| &program.phases);
    phases.filter_map(|phase| Some((phase.operation.word(), phase.call.as_ref()?)))
}

fn words(call: &CallModel) -> String {
    match &call.request {
        Request::Graphql { mutation, fields, .. } => {
            let word = if *mutation { "mutation" } else { "query" };
            format!("{word} {}", fields.join("."))
        }
        Request::Rest { method, path } => {
            let segments = path.segments.iter().map(|segment| format!("/{}", template(segment)));
            let pairs =
                path.query.iter().map(|(name, value)| format!("{name}={}", template(value)));
            let query = pairs.collect::<Vec<_>>().join("&");
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{} {}{mark}{query}", method_word(*method), segments.collect::<String>())
        }
    }
}

fn method_word(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// Returns a part of a path as a descriptor writes it.
fn template(part: &ValueTemplate) -> String {
    if let Kind::Literal(value) = &part.0.kind
        && let Some(text) = value.as_str()
    {
        return text.to_owned();
    }
    // The printer puts brackets around every word that is no attribute of a resource.
    let text = part.0.to_string().replace(&format!("({PARENT})"), PARENT);
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(template) => template.to_owned(),
        None => format!("${{{text}}}"),
    }
}

#[cfg(test)]
mod tests {
    use engine::diagnostics::FileId;

    #[test]
    fn calls_are_shown_as_the_descriptor_has_them() {
        let text = crate::catalog("powerdns").unwrap();
        let descriptor = crate::load(text, FileId(0)).0.unwrap();
        let outline = descriptor.outline("record_set").unwrap();
        assert_eq!(outline.parent.as_deref(), Some("zone"));
        let calls: Vec<String> =
            outline.calls.iter().map(|(name, call)| format!("{name}: {call}")).collect();
        assert_eq!(
            calls,
            [
                "list: GET /zones/${parent.name}",
                "create: PATCH /zones/${zone}",
                "update: PATCH /zones/${zone}",
                "delete: PATCH /zones/${zone}",
            ]
        );
        assert_eq!(descriptor.outline("none"), None);
        let github = crate::load(crate::catalog("github").unwrap(), FileId(0)).0.unwrap();
        let team = github.outline("team").unwrap();
        assert!(team.calls.iter().any(|(name, _)| *name == "activate"), "{:?}", team.calls);
    }
}
