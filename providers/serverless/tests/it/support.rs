//! A service with its own data folder, and short ways to call it.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::address::Name;
use engine::journal::{PhaseRef, ProgramKind};
use engine::state::{Nonce, ObjectId};
use engine::stored::from_json;
use engine::value::Attributes;
use provider_http::{HttpProvider, Settings, Timing};
use provider_port::{Call, Error, Object, Provider as _};
use provider_serverless::Version;
use serde_json::Value as Json;
use service::{Addresses, Options, Quirk};
use tokio_util::sync::CancellationToken;

/// A running service; ends with the test.
pub(crate) struct Service {
    pub(crate) addresses: Addresses,
    stop: CancellationToken,
    _data: tempfile::TempDir,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with_quirks(quirks: &str) -> Self {
        let quirks = Quirk::parse_list(quirks).unwrap();
        Self::with(|options| options.quirks = quirks).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = Options::new(data.path().join("service"));
        change(&mut options);
        let server = service::start(options).await.unwrap();
        let addresses = server.addresses().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { server.run(stopped).await });
        Self { addresses, stop, _data: data }
    }

    /// Returns the provider for this service.
    pub(crate) fn provider(&self) -> HttpProvider {
        self.provider_with_key(&self.addresses.key)
    }

    pub(crate) fn provider_with_key(&self, key: &str) -> HttpProvider {
        self.provider_of(Version::V1, key)
    }

    pub(crate) fn provider_of(&self, version: Version, key: &str) -> HttpProvider {
        let environment = |name: &str| {
            Some(match name {
                "PLUMB_SERVERLESS_REST_URL" => self.addresses.rest.clone(),
                // The management paths of version 2 and the job API have the same prefix.
                "PLUMB_SERVERLESS_V2_URL" => self.addresses.queue.clone(),
                "PLUMB_SERVERLESS_GRAPHQL_URL" => self.addresses.graphql.clone(),
                "PLUMB_SERVERLESS_QUEUE_URL" => self.addresses.queue.clone(),
                "PLUMB_SERVERLESS_API_KEY" => key.to_owned(),
                _ => return None,
            })
        };
        let timing = Timing {
            pause_first: Duration::from_millis(5),
            pause_max: Duration::from_millis(200),
            poll_first: Duration::from_millis(20),
            poll_max: Duration::from_millis(100),
            ..Timing::default()
        };
        let settings = Settings::new(&environment).timing(timing);
        let provider = provider_serverless::provider_of(version, &settings);
        let provider = provider.unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}"));
        assert!(provider.missing().is_empty());
        provider
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn attributes(json: &Json) -> Attributes {
    from_json(json).as_map().cloned().unwrap_or_default()
}

/// Creates an object by the program with the index `program`, in all its phases.
pub(crate) async fn create(
    provider: &HttpProvider,
    (ty, program): (&str, usize),
    desired: &Json,
) -> Result<Object, Error> {
    let desired = attributes(desired);
    let phases = provider.schema().types[ty].create[program].phases.len();
    let nonce = nonce_of(ty, &desired);
    let mut object: Option<Object> = None;
    for phase in 0..phases {
        let live = object.as_ref().map(|object| object.attributes.clone());
        let call = Call {
            ty,
            phase: PhaseRef::new(ProgramKind::Create, program, phase, phases),
            id: object.as_ref().map(|object| &object.id),
            nonce: Some(&nonce),
            desired: &desired,
            live: live.as_ref(),
            changed: &desired.keys().cloned().collect(),
            secrets: &provider_port::Secrets::default(),
            permit: &provider_port::Always,
            progress: &|_| {},
        };
        object = provider.perform(&call).await?.object;
    }
    Ok(object.unwrap())
}

/// Performs the first phase of a create, and leaves the rest to another run.
pub(crate) async fn begin(
    provider: &HttpProvider,
    (ty, program): (&str, usize),
    desired: &Json,
) -> Result<Object, Error> {
    let desired = attributes(desired);
    let phases = provider.schema().types[ty].create[program].phases.len();
    let call = Call {
        ty,
        phase: PhaseRef::new(ProgramKind::Create, program, 0, phases),
        id: None,
        nonce: Some(&nonce_of(ty, &desired)),
        desired: &desired,
        live: None,
        changed: &desired.keys().cloned().collect(),
        secrets: &provider_port::Secrets::default(),
        permit: &provider_port::Always,
        progress: &|_| {},
    };
    Ok(provider.perform(&call).await?.object.unwrap())
}

/// Performs the last phase of a create, as another run does, which knows the object from a read.
pub(crate) async fn finish(
    provider: &HttpProvider,
    (ty, program): (&str, usize),
    object: &Object,
    change: &Json,
) -> Result<Object, Error> {
    let phases = provider.schema().types[ty].create[program].phases.len();
    let phase = PhaseRef::new(ProgramKind::Create, program, phases - 1, phases);
    change_by(provider, (ty, phase), object, change).await
}

/// Changes some attributes of an object, by the program with the index `program`.
pub(crate) async fn update(
    provider: &HttpProvider,
    (ty, program): (&str, usize),
    object: &Object,
    change: &Json,
) -> Result<Object, Error> {
    let phase = PhaseRef::new(ProgramKind::Update, program, 0, 1);
    change_by(provider, (ty, phase), object, change).await
}

async fn change_by(
    provider: &HttpProvider,
    (ty, phase): (&str, PhaseRef),
    object: &Object,
    change: &Json,
) -> Result<Object, Error> {
    let change = attributes(change);
    let changed: BTreeSet<Name> = change.keys().cloned().collect();
    let mut desired = object.attributes.clone();
    desired.extend(change);
    let call = Call {
        ty,
        phase,
        id: Some(&object.id),
        nonce: None,
        desired: &desired,
        live: Some(&object.attributes),
        changed: &changed,
        secrets: &provider_port::Secrets::default(),
        permit: &provider_port::Always,
        progress: &|_| {},
    };
    Ok(provider.perform(&call).await?.object.unwrap())
}

/// Deletes an object, all phases.
pub(crate) async fn delete(
    provider: &HttpProvider,
    ty: &str,
    object: &Object,
) -> Result<(), Error> {
    let phases = provider.schema().types[ty].delete[0].phases.len();
    for phase in 0..phases {
        let call = Call {
            ty,
            phase: PhaseRef::new(ProgramKind::Delete, 0, phase, phases),
            id: Some(&object.id),
            nonce: None,
            desired: &Attributes::new(),
            live: Some(&object.attributes),
            changed: &BTreeSet::new(),
            secrets: &provider_port::Secrets::default(),
            permit: &provider_port::Always,
            progress: &|_| {},
        };
        provider.perform(&call).await?;
    }
    Ok(())
}

pub(crate) async fn read(provider: &HttpProvider, ty: &str, object: &Object) -> Object {
    provider.read(ty, &ObjectId(object.id.0.clone())).await.unwrap()
}

/// Returns a nonce that depends on the attributes, so that tests are repeatable.
fn nonce_of(ty: &str, desired: &Attributes) -> Nonce {
    let mut bytes = [0; 16];
    let text = format!("{ty}{:?}", desired.get("name"));
    for (index, byte) in text.bytes().enumerate() {
        bytes[index % 16] ^= byte.rotate_left(u32::try_from(index / 16).unwrap());
    }
    Nonce::from_random(bytes)
}

/// Returns the attributes as one line, without those that the service draws.
pub(crate) fn shown(object: &Object, without: &[&str]) -> String {
    let kept: Attributes = object
        .attributes
        .iter()
        .filter(|(name, _)| !without.contains(&&***name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let lines: Vec<String> =
        kept.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    lines.join("\n")
}
