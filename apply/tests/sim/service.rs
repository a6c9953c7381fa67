//! The model of the serverless service at the wire: it reads requests, and writes answers.
//!
//! The model has no objects of its own: it uses those of the simulated cloud. It is written from the
//! description of the interface, and shares no code with the service of this repository.

use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_http::{Method, Request, Response};
use serde_json::{Map, Value as Json, json};

use crate::api_variant::{Harness, PUBLIC};
use crate::cloud::{Cloud, Live};
use crate::graphql;

/// A request in the words of the simulated cloud.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    List(&'static str),
    Read(&'static str, ObjectId),
    Make(&'static str, Attributes),
    Change(&'static str, ObjectId, Attributes),
    End(&'static str, ObjectId),
}

/// A request that the model has read.
#[derive(Clone, Debug)]
pub(crate) struct Understood {
    pub(crate) asked: Asked,
    /// The alias of a GraphQL operation; None for a REST request.
    pub(crate) alias: Option<String>,
}

const PATHS: [(&str, &str); 3] =
    [("networkvolumes", "disk"), ("templates", "image"), ("endpoints", "unit")];

/// Reads a request. Returns an error in words if no client of this service sends such a request.
pub(crate) fn understand(request: &Request) -> Result<Understood, String> {
    let body: Json = match &request.body {
        Some(text) => serde_json::from_slice(text).map_err(|error| error.to_string())?,
        None => Json::Null,
    };
    if request.url.path() == "/graphql" {
        return understand_graphql(&body);
    }
    let path = request.url.path().strip_prefix("/v1/").ok_or("no such path")?;
    let mut parts = path.split('/');
    let folder = parts.next().unwrap_or_default();
    let (_, ty) = *PATHS.iter().find(|(own, _)| *own == folder).ok_or("no such resource")?;
    let id = parts.next().map(|id| ObjectId(id.into()));
    let asked = match (request.method, id) {
        (Method::Get, None) => Asked::List(ty),
        (Method::Get, Some(id)) => Asked::Read(ty, id),
        (Method::Post, None) => Asked::Make(ty, sent(ty, body.as_object().ok_or("no object")?)),
        (Method::Patch, Some(id)) => {
            Asked::Change(ty, id, sent(ty, body.as_object().ok_or("no object")?))
        }
        (Method::Delete, Some(id)) => Asked::End(ty, id),
        _ => return Err(format!("{:?} {path} does not exist", request.method)),
    };
    Ok(Understood { asked, alias: None })
}

fn understand_graphql(body: &Json) -> Result<Understood, String> {
    let document = graphql::read(body["query"].as_str().ok_or("no query")?);
    let id = |from: &Map<String, Json>| {
        from.get("id").and_then(Json::as_str).map(|id| ObjectId(id.into()))
    };
    let asked = match (&*document.field, document.mutation) {
        ("endpoints", false) => Asked::List("unit"),
        ("endpoint", false) => Asked::Read("unit", id(&document.arguments).ok_or("no id")?),
        ("saveEndpoint", true) => {
            let input = document.arguments["input"].as_object().ok_or("no input")?;
            let mut sent = sent("unit", input);
            // The service resets an attribute that the request leaves out.
            sent.insert_absent("disk_id".into(), Value::Null);
            sent.insert_absent("workers".into(), Value::Integer(3));
            match id(input) {
                Some(id) => Asked::Change("unit", id, sent),
                None => Asked::Make("unit", sent),
            }
        }
        ("deleteEndpoint", true) => Asked::End("unit", id(&document.arguments).ok_or("no id")?),
        (field, _) => return Err(format!("no field {field}")),
    };
    Ok(Understood { asked, alias: Some(document.alias) })
}

/// Returns the attributes of a request's body that the simulated cloud has, under the names of the cloud.
fn sent(ty: &str, body: &Map<String, Json>) -> Attributes {
    let names: &[(&str, &str)] = match ty {
        "disk" => &[("name", "name"), ("size", "size"), ("dataCenterId", "zone")],
        "image" => &[("name", "name"), ("category", "kind")],
        _ => &[
            ("name", "name"),
            ("templateId", "image_id"),
            ("networkVolumeId", "disk_id"),
            ("workersMax", "workers"),
        ],
    };
    let mut sent = Attributes::new();
    for (wire, name) in names {
        let Some(value) = body.get(*wire) else { continue };
        let value = match value {
            Json::String(text) if text.is_empty() => Value::Null,
            Json::String(text) => Value::string(text.as_str()),
            Json::Number(number) => Value::Integer(number.as_i64().unwrap()),
            _ => Value::Null,
        };
        sent.insert((*name).into(), value);
    }
    sent
}

impl Understood {
    pub(crate) fn is_look(&self) -> bool {
        matches!(self.asked, Asked::List(_) | Asked::Read(..))
    }

    pub(crate) fn ty(&self) -> &'static str {
        match &self.asked {
            Asked::List(ty)
            | Asked::Read(ty, _)
            | Asked::Make(ty, _)
            | Asked::Change(ty, ..)
            | Asked::End(ty, _) => ty,
        }
    }

    /// Returns the answer for a success that shows `json`.
    pub(crate) fn shows(&self, json: &Json) -> Response {
        let status = if let Asked::Make(..) = self.asked { 201 } else { 200 };
        match (&self.alias, &self.asked) {
            (Some(alias), Asked::List(_)) => data(alias, &json!({ "endpoints": json })),
            (Some(alias), Asked::Read(..)) => data(alias, &json!({ "endpoint": json })),
            (Some(alias), _) => data(alias, json),
            (None, Asked::End(..)) => empty(204),
            (None, _) => body(status, json),
        }
    }

    /// Returns the answer for a refusal.
    pub(crate) fn refuses(&self, status: u16, message: &str) -> Response {
        match self.alias {
            Some(_) => body(200, &json!({ "data": null, "errors": [{ "message": message }] })),
            None => body(status, &json!({ "error": message, "status": status })),
        }
    }

    /// Returns the answer for an object that does not exist.
    pub(crate) fn misses(&self) -> Response {
        match (&self.alias, &self.asked) {
            (Some(alias), Asked::Read(..)) => data(alias, &json!({ "endpoint": null })),
            (Some(_), _) => self.refuses(200, "endpoint not found"),
            (None, _) => self.refuses(404, "not found"),
        }
    }

    /// Returns an object as the API of the request shows it. REST and GraphQL show an endpoint differently.
    pub(crate) fn object(&self, cloud: &Cloud, id: &ObjectId, live: &Live) -> Json {
        let id = &*id.0;
        let name = live.name();
        match &*live.ty {
            "disk" => {
                json!({ "id": id, "name": name, "size": live.number("size"), "dataCenterId": live.text("zone") })
            }
            "image" => json!({
                "id": id, "name": name, "imageName": "registry.example/x:1",
                "category": live.text("kind").unwrap_or("NVIDIA"), "containerDiskInGb": 50,
                "containerRegistryAuthId": "", "dockerEntrypoint": [], "dockerStartCmd": [],
                "env": {}, "isPublic": false, "isServerless": true, "earned": 0,
                "ports": ["8888/http", "22/tcp"], "readme": "", "volumeInGb": 20,
                "volumeMountPath": "/workspace",
            }),
            _ => self.endpoint(cloud, id, live),
        }
    }

    fn endpoint(&self, cloud: &Cloud, id: &str, live: &Live) -> Json {
        let volume = live.text("disk_id").unwrap_or("");
        let volumes: Vec<&str> = live.text("disk_id").into_iter().collect();
        // The service appends this ending to a name by itself.
        let name = format!("{} -fb", live.name());
        let mut shown = json!({
            "id": id, "name": name, "templateId": live.text("image_id").unwrap_or(PUBLIC),
            "workersMin": 0, "workersMax": live.number("workers").unwrap_or(0), "idleTimeout": 5,
            "networkVolumeId": volume, "gpuCount": 1,
        });
        let more = if self.alias.is_some() {
            let volumes = volumes.iter().map(|id| json!({ "networkVolumeId": id }));
            let pods = cloud.pods(&ObjectId(id.into()));
            json!({
                "gpuIds": "ADA_24", "locations": "", "type": "QB", "flashBootType": "OFF",
                "networkVolumeIds": volumes.collect::<Vec<_>>(),
                "pods": vec![json!({ "desiredStatus": "RUNNING" }); pods],
            })
        } else {
            json!({
                "gpuTypeIds": ["NVIDIA GeForce RTX 4090"], "networkVolumeIds": volumes,
                "computeType": "GPU", "version": 3, "dataCenterIds": [],
            })
        };
        let Json::Object(more) = more else { unreachable!() };
        shown.as_object_mut().unwrap().extend(more);
        shown
    }
}

/// Returns the status and the message of a refusal that only the service gives, and not the simulated cloud;
/// None if the service accepts the request.
pub(crate) fn refusal(cloud: &Cloud, asked: &Asked) -> Option<(u16, &'static str)> {
    let used = |id: &ObjectId, name: &str| {
        cloud.objects.values().any(|live| live.text(name) == Some(&*id.0))
    };
    match asked {
        Asked::End("disk", id) if used(id, "disk_id") => {
            Some((500, "you must remove this network volume from all endpoints"))
        }
        Asked::End("image", id) if used(id, "image_id") || cloud.was_used(id) => {
            Some((400, "the template is in use"))
        }
        Asked::End("unit", id)
            if cloud.objects.get(id).is_some_and(|l| l.number("workers") > Some(0)) =>
        {
            Some((400, "workersMin and workersMax must both be 0"))
        }
        Asked::Make("image", sent) | Asked::Change("image", _, sent) => {
            let name = sent.get("name").and_then(Value::as_str)?;
            let own = if let Asked::Change(_, id, _) = asked { Some(id) } else { None };
            let taken = cloud
                .objects
                .iter()
                .any(|(id, live)| &*live.ty == "image" && live.name() == name && Some(id) != own);
            taken.then_some((400, "a template of this name exists already: it must be unique"))
        }
        _ => None,
    }
}

pub(crate) fn body(status: u16, json: &Json) -> Response {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Response { status, headers, body: json.to_string().into_bytes() }
}

pub(crate) fn empty(status: u16) -> Response {
    Response { status, headers: Vec::new(), body: Vec::new() }
}

pub(crate) fn page(status: u16, title: &str) -> Response {
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    let body = format!("<!doctype html><html><title>{title}</title></html>").into_bytes();
    Response { status, headers, body }
}

fn data(alias: &str, json: &Json) -> Response {
    body(200, &json!({ "data": { alias: json } }))
}

/// Returns the name that a spec at the wire has for a type of the simulated cloud.
pub(crate) fn name_of(ty: &str) -> &str {
    Harness::Http.say(ty)
}
