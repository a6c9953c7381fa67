//! Views of the state, which `state list`, `state show`, `show` and `output` print.
//!
//! A state contains no secret in clear, and its views contain none at all.

use std::collections::BTreeMap;

use engine::state::{Entry, Object as StateObject, Progress, Snapshot};
use engine::stored::{DamagedValue, Stored};
use engine::value::{Path, Paths};
use serde::Serialize;

use crate::paint::{Colour, Label, Line, Page};
use crate::safe;
use crate::shown::{self, Object, Shown};
use crate::values::{self, Row};

/// The name of the format of [`StateView`].
pub const STATE_FORMAT: &str = "plumb-show/1";

/// A state in a form that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateView {
    /// [`STATE_FORMAT`].
    pub format: &'static str,
    /// The lineage of the state.
    pub lineage: String,
    /// The serial of this version.
    pub serial: u64,
    /// The object of each address, in order.
    pub resources: Vec<ResourceView>,
    /// The outputs of the last finished run.
    pub outputs: BTreeMap<String, Shown>,
    /// The calls that began and whose outcome is not recorded.
    pub pending: Vec<PendingView>,
}

/// The object of an address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceView {
    /// The address.
    pub address: String,
    /// The resource type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The provider instance that manages it.
    pub provider: String,
    /// The object; none if only deposed ones are left.
    #[serde(flatten)]
    pub current: Option<ObjectView>,
    /// Objects that a replace put aside.
    pub deposed: Vec<ObjectView>,
    /// The resources that it depends on.
    pub dependencies: Vec<String>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectView {
    /// The id of the object.
    pub id: String,
    /// `ready`, `unfinished` or `deleting`.
    pub progress: &'static str,
    /// The attributes of the object.
    pub attributes: Object,
    /// The places of the attributes that hold secrets.
    pub sensitive: Vec<String>,
    /// The attributes that the spec manages.
    pub managed: Vec<String>,
}

/// A call that began and whose outcome is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PendingView {
    /// The call.
    pub call: String,
    /// The address of the object.
    pub address: String,
    /// The operation of the call.
    pub operation: &'static str,
    /// The reason that its outcome is unknown; none if none was recorded.
    pub doubt: Option<String>,
}

impl StateView {
    /// Returns the view of a state in which nothing was ever applied.
    pub fn empty() -> Self {
        Self {
            format: STATE_FORMAT,
            lineage: String::new(),
            serial: 0,
            resources: Vec::new(),
            outputs: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the view of a snapshot into which the journal has been folded.
    pub fn new(snapshot: &Snapshot) -> Result<Self, DamagedValue> {
        let entries = snapshot.entries.iter();
        Ok(Self {
            format: STATE_FORMAT,
            lineage: snapshot.lineage.clone(),
            serial: snapshot.serial,
            resources: entries
                .map(|(address, entry)| resource(&address.to_string(), &address.block.ty, entry))
                .collect::<Result<_, _>>()?,
            outputs: outputs(snapshot)?,
            pending: snapshot
                .pending
                .iter()
                .map(|(call, pending)| PendingView {
                    call: call.to_string(),
                    address: pending.started.address.to_string(),
                    operation: pending.started.operation.word(),
                    doubt: pending.doubt.clone(),
                })
                .collect(),
        })
    }
}

fn resource(address: &str, ty: &str, entry: &Entry) -> Result<ResourceView, DamagedValue> {
    Ok(ResourceView {
        address: address.to_owned(),
        ty: ty.to_owned(),
        provider: entry.provider.to_string(),
        current: entry.current.as_ref().map(object).transpose()?,
        deposed: entry.deposed.iter().map(object).collect::<Result<_, _>>()?,
        dependencies: entry.dependencies.iter().map(ToString::to_string).collect(),
    })
}

fn object(object: &StateObject) -> Result<ObjectView, DamagedValue> {
    let value = object.attributes.value()?;
    let attributes =
        value.as_map().map(|map| shown::object(map, &object.sensitive)).unwrap_or_default();
    let mut sensitive = Vec::new();
    for (name, value) in &attributes {
        value.sensitive(Path::attribute(name.clone()), &mut sensitive);
    }
    Ok(ObjectView {
        id: object.id.to_string(),
        progress: match object.progress {
            Progress::Ready => "ready",
            Progress::Created { .. } | Progress::Updating { .. } => "unfinished",
            Progress::Deleting { .. } => "deleting",
        },
        attributes,
        sensitive,
        managed: object.managed.iter().map(ToString::to_string).collect(),
    })
}

/// Returns the outputs of the last finished run.
pub fn outputs(snapshot: &Snapshot) -> Result<BTreeMap<String, Shown>, DamagedValue> {
    let show = |stored: &Stored, sensitive| -> Result<Shown, DamagedValue> {
        let places = if sensitive { Paths::whole() } else { Paths::none() };
        Ok(Shown::new(&stored.value()?, &places))
    };
    snapshot
        .outputs
        .iter()
        .map(|(name, output)| Ok((name.to_string(), show(&output.value, output.sensitive)?)))
        .collect()
}

/// Returns the addresses, one on each line.
pub fn list(snapshot: &Snapshot) -> String {
    snapshot.entries.keys().map(|address| safe::text(&address.to_string()) + "\n").collect()
}

/// Returns a whole state as text.
pub fn text(view: &StateView, colour: Colour) -> String {
    if view.resources.is_empty() && view.outputs.is_empty() && view.pending.is_empty() {
        return "The state is empty.\n".to_owned();
    }
    let mut page = Page::new();
    for resource in &view.resources {
        page.gap();
        add_resource(&mut page, resource);
    }
    for pending in &view.pending {
        page.gap();
        let line = Line::new(0).mark("?", Label::Danger);
        let line = line.then(safe::text(&pending.address), Label::Strong);
        let (operation, call) = (pending.operation, &pending.call);
        page.push(line.plain(format!(": {operation} ({call}) began, and its end is not recorded")));
    }
    if !view.outputs.is_empty() {
        page.gap();
        page.heading("Outputs:", Label::Strong);
        let rows: Vec<_> =
            view.outputs.iter().map(|(name, value)| Row::new(name, None, Some(value))).collect();
        values::table(&mut page, 0, &rows);
    }
    page.text(colour)
}

/// Returns one resource as text.
pub fn resource_text(resource: &ResourceView, colour: Colour) -> String {
    let mut page = Page::new();
    add_resource(&mut page, resource);
    page.text(colour)
}

fn add_resource(page: &mut Page, resource: &ResourceView) {
    let address = safe::text(&resource.address);
    if let Some(current) = &resource.current {
        add_object(page, &address, current, "");
    }
    for deposed in &resource.deposed {
        add_object(page, &address, deposed, ", put aside by a replace");
    }
}

fn add_object(page: &mut Page, address: &str, object: &ObjectView, remark: &str) {
    let progress = match object.progress {
        "ready" => String::new(),
        other => format!(", {other}"),
    };
    let id = safe::text(&object.id);
    let line = Line::new(0).then(address, Label::Strong);
    page.push(line.then(format!("  (id {id}{progress}{remark})"), Label::Faint));
    let shown = object.attributes.iter().filter(|(_, value)| **value != Shown::Null);
    let rows: Vec<_> = shown.map(|(name, value)| Row::new(name, None, Some(value))).collect();
    values::table(page, 1, &rows);
}

/// Returns all outputs as text, one `name = value` on each line.
pub fn outputs_text(outputs: &BTreeMap<String, Shown>) -> String {
    let mut text = String::new();
    for (name, value) in outputs {
        text.push_str(&values::key(name));
        text.push_str(" = ");
        text.push_str(&values::full(value));
        text.push('\n');
    }
    text
}

/// The reason that an output has no raw form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRaw {
    /// The output is sensitive, so the state does not contain it.
    Sensitive,
    /// The output is a list, a map or null.
    NotScalar,
}

/// Returns the raw form of a text, a number or a boolean, without any addition or escape.
pub fn raw(value: &Shown) -> Result<String, NotRaw> {
    match value {
        Shown::String(text) => Ok(text.to_string()),
        Shown::Integer(number) => Ok(number.to_string()),
        Shown::Float(number) => Ok(number.to_string()),
        Shown::Bool(value) => Ok(value.to_string()),
        Shown::Sensitive(_) => Err(NotRaw::Sensitive),
        _ => Err(NotRaw::NotScalar),
    }
}

/// Returns one output as text: the value without its name.
pub fn output_text(value: &Shown) -> String {
    values::full(value) + "\n"
}

#[cfg(test)]
mod tests {
    use engine::sorted::Set;

    use engine::address::Name;
    use engine::digest::SealKey;
    use engine::state::{ObjectId, OutputValue};
    use engine::stored::from_json;
    use engine::value::Datum;
    use serde_json::json;

    use super::*;

    fn stored(json: &serde_json::Value, places: &Paths) -> Stored {
        let datum = Datum { value: from_json(json), sensitive: places.clone() };
        Stored::new(&datum, &SealKey::from_random([1; 32]))
    }

    fn object(id: &str, progress: Progress) -> StateObject {
        let places = Paths::from_iter([Path::attribute("token")]);
        StateObject {
            id: ObjectId(id.into()),
            progress,
            attributes: stored(
                &json!({"name": "n", "token": "hunter2", "tags": {"a": 1}, "x": null}),
                &places,
            ),
            managed: Set::from([Name::from("name")]),
            sensitive: places,
            delete_sent_ms: None,
            made_with: std::collections::BTreeMap::new(),
            input_fingerprints: std::collections::BTreeMap::new(),
        }
    }

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::new("line".to_owned(), SealKey::from_random([1; 32]));
        let entry = Entry {
            provider: "test".into(),
            current: Some(object("o1", Progress::Ready)),
            deposed: vec![object("o0", Progress::Deleting { done: 1, before: None })],
            dependencies: Set::from(["app.z".parse().unwrap()]),
        };
        snapshot.entries.insert(r#"app.a["k"]"#.parse().unwrap(), entry);
        for (name, value, sensitive, places) in
            [("secret", "hunter2", true, Paths::whole()), ("url", "http://x", false, Paths::none())]
        {
            let value = stored(&json!(value), &places);
            snapshot.outputs.insert(name.into(), OutputValue { value, sensitive });
        }
        snapshot
    }

    #[test]
    fn a_state_as_text_and_as_json() {
        let view = StateView::new(&snapshot()).unwrap();
        insta::assert_snapshot!(text(&view, Colour::Off), @r#"
            app.a["k"]  (id o1)
                name   "n"
                tags   { a = 1 }
                token  (sensitive)
            app.a["k"]  (id o0, deleting, put aside by a replace)
                name   "n"
                tags   { a = 1 }
                token  (sensitive)

        Outputs:
            secret  (sensitive)
            url     "http://x"
        "#);
        let json = crate::json::pretty(&view);
        assert!(!json.contains("hunter2"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["resources"][0]["id"], "o1");
        assert_eq!(json["resources"][0]["sensitive"], json!(["token"]));
        assert_eq!(json["outputs"], json!({"secret": null, "url": "http://x"}));
        assert_eq!(list(&snapshot()), "app.a[\"k\"]\n");
    }

    #[test]
    fn outputs_in_their_forms() {
        let outputs = outputs(&snapshot()).unwrap();
        assert_eq!(outputs_text(&outputs), "secret = (sensitive)\nurl = \"http://x\"\n");
        assert_eq!(raw(&outputs["url"]).unwrap(), "http://x");
        assert_eq!(raw(&outputs["secret"]), Err(NotRaw::Sensitive));
        assert_eq!(raw(&Shown::Null), Err(NotRaw::NotScalar));
    }
}
