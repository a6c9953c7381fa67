//! A configured descriptor: the provider for the rest of Plumb.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::address::Name;
use engine::diagnostics::Diagnostics;
use engine::digest::Digest;
use engine::journal::PhaseRef;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use provider_port::{Call, Error, Lookup, Object, Provider, Reply};

use crate::access::{Access, missing};
use crate::asked_keys::Asked;
use crate::calls::Caller;
use crate::descriptor::Descriptor;
use crate::settings::Settings;
use crate::subject::{Subject, Types};

/// A provider that a descriptor describes.
pub struct HttpProvider {
    types: Types,
    caller: Caller,
    account: Option<Digest>,
    service: Option<String>,
    missing: Diagnostics,
}

impl HttpProvider {
    /// Looks up addresses and keys, and refuses those that are wrong. Missing ones are no error yet, because
    /// validating a spec needs none: see [`HttpProvider::missing`].
    pub fn configure(
        descriptor: impl Into<Arc<Descriptor>>,
        settings: &Settings<'_>,
    ) -> Result<Self, Diagnostics> {
        let descriptor = descriptor.into();
        let (access, diagnostics) = Access::of(&descriptor, settings);
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        let in_paths: BTreeMap<Name, String> = descriptor
            .keys_in_paths()
            .into_iter()
            .filter_map(|name| Some((name.clone(), access.keys.get(name)?.reveal().to_owned())))
            .collect();
        let has_keys = !descriptor.keys_in_paths().is_empty();
        let descriptor =
            if has_keys { Arc::new(descriptor.with_keys(&access.keys)) } else { descriptor };
        let account = account(&descriptor, &access, settings.at_home);
        let service = service(&access, settings.at_home, &in_paths);
        Ok(Self {
            types: Types::new(descriptor.clone(), descriptor.schema_at(&access.addresses)),
            missing: missing(&descriptor, &access, settings),
            caller: Caller::new(&descriptor, access, settings),
            account,
            service,
        })
    }

    /// Returns an error for each address and key that is not set. Callers check this before the first call; a
    /// call without them fails with the same message.
    pub fn missing(&self) -> &Diagnostics {
        &self.missing
    }

    /// Returns the name of the service that calls go to: `local service`, or the hosts of the APIs.
    pub fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }

    /// Returns the descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.types.descriptor
    }

    fn subject(&self, ty: &str) -> Result<Subject<'_>, Error> {
        Ok(Subject::of(&self.types, &self.caller, ty)?)
    }
}

/// Returns the digest of the account that calls act on: this key at these addresses, because one key may be
/// valid at several services. The address of the local service differs from run to run, so it does not count.
fn account(descriptor: &Descriptor, access: &Access, at_home: bool) -> Option<Digest> {
    if access.keys.is_empty() && access.asked.is_empty() && access.addresses.is_empty() {
        return None;
    }
    let mut keys = access.keys.clone();
    let key = keys.remove("key").map_or_else(String::new, |key| key.reveal().to_owned());
    let mut text = format!("plumb account 2\n{}\n{key}\n", descriptor.name);
    for (name, asked) in &access.asked {
        // A key that a command prints may change without a change of the account, so the command counts.
        if let Asked::Command { text: command, .. } = asked {
            text.extend([name, " of ", command, "\n"]);
        }
    }
    for (name, key) in &keys {
        text.extend([name, "=", key.reveal(), "\n"]);
    }
    let addresses = access.addresses.iter().filter(|_| !at_home);
    addresses.for_each(|(api, url)| text.extend([api, " ", url.as_str(), "\n"]));
    for (api, socket) in &access.sockets {
        text.extend([api, " ", &socket.display().to_string(), "\n"]);
    }
    if let Some(identity) = &access.tls.identity {
        text.extend(["certificate ", identity, "\n"]);
    }
    Some(Digest::of(text.as_bytes()))
}

/// Returns the hosts of the APIs, each once, with ports that are not the usual ones; and the keys in paths, such as an
/// organisation, because the same path below another one is another object.
fn service(access: &Access, at_home: bool, in_paths: &BTreeMap<Name, String>) -> Option<String> {
    if at_home {
        return Some(engine::state::LOCAL_SERVICE.to_owned());
    }
    let host = |url: &url::Url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    };
    let server = |(name, url): (&Name, &url::Url)| match access.sockets.get(name) {
        Some(socket) => Some(format!("unix:{}", socket.display())),
        None => host(url),
    };
    let hosts: BTreeSet<String> = access.addresses.iter().filter_map(server).collect();
    let keys = in_paths.iter().map(|(name, value)| format!("{name} {value}"));
    let parts: Vec<String> = hosts.into_iter().chain(keys).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[async_trait]
impl Provider for HttpProvider {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.types.schema.clone()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        Ok(self.subject(ty)?.list().await?.objects)
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        Ok(self.subject(ty)?.read(id).await?)
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        Ok(self.subject(ty)?.find(create).await?)
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        self.subject(call.ty)?.perform(call).await
    }

    fn may_carry(&self, ty: &str, phase: PhaseRef, secret: &Name) -> Result<(), Error> {
        self.subject(ty)?.may_carry(phase, secret)
    }

    fn account(&self) -> Option<Digest> {
        self.account.clone()
    }

    fn settle(&self) -> Duration {
        self.caller.settle
    }

    fn concurrency(&self) -> usize {
        self.types.descriptor.concurrency()
    }
}
