//! The two harnesses. At the provider port the types are those of `shapes`; at the wire they are those of the
//! descriptor of the serverless service.
//!
//! The simulated cloud uses the names of the port (disks, images, units). They are translated where a spec, a
//! state or a request shows them.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use engine::schema::{Operation, Phase, PhaseWords, ProviderSchema, Sends};
use provider_http::{Descriptor, Settings};

use crate::cloud;

/// The harness that plays a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harness {
    /// At the provider port.
    Port,
    /// At the wire.
    Http,
}

/// The names of the simulated cloud, each with the name that the serverless service has for it.
const WORDS: &[(&str, &str)] = &[
    ("disk", "network_volume"),
    ("image", "template"),
    ("unit", "endpoint"),
    ("zone", "data_center_id"),
    ("kind", "category"),
    ("workers", "workers_max"),
    ("disk_id", "network_volume_id"),
    ("image_id", "template_id"),
    ("eu", "EU-RO-1"),
    ("us", "US-KS-2"),
    ("thin", "NVIDIA"),
    ("full", "AMD"),
    ("odd", "CPU"),
];

/// The id of the template and of the volume that an endpoint has if it uses none of ours. Both belong to
/// everybody.
pub(crate) const PUBLIC: &str = "public";

impl Harness {
    /// Returns the name that this harness has for a name of the simulated cloud.
    pub(crate) fn say(self, word: &str) -> &str {
        let found = WORDS.iter().find(|(own, _)| self == Self::Http && *own == word);
        found.map_or(word, |(_, said)| said)
    }

    pub(crate) fn schema(self) -> Arc<ProviderSchema> {
        static PORT: LazyLock<Arc<ProviderSchema>> = LazyLock::new(|| mounted(&cloud::schema()));
        static HTTP: LazyLock<Arc<ProviderSchema>> = LazyLock::new(|| {
            let none = |_: &str| None;
            let provider = provider_serverless::provider(&Settings::new(&none)).ok().unwrap();
            provider_port::Provider::schema(&provider)
        });
        match self {
            Self::Port => PORT.clone(),
            Self::Http => HTTP.clone(),
        }
    }
}

/// Returns the descriptor of the serverless service, which is read once.
pub(crate) fn descriptor() -> Arc<Descriptor> {
    static READ: LazyLock<Arc<Descriptor>> =
        LazyLock::new(|| Arc::new(provider_serverless::read().ok().unwrap()));
    READ.clone()
}

/// Returns the types at the port with disks that have to be mounted after they are made, and again after they
/// are changed. The call that mounts a disk sends nothing and changes no attribute; then the phase waits.
fn mounted(plain: &ProviderSchema) -> Arc<ProviderSchema> {
    let mut schema = plain.clone();
    let disk = Arc::make_mut(schema.types.get_mut("disk").unwrap());
    let mount = |operation| Phase {
        operation,
        sends: Sends::Nothing,
        without: BTreeSet::new(),
        waits_for: Some("it is mounted".to_owned()),
        words: PhaseWords::default(),
    };
    disk.create[0].phases.push(mount(Operation::Activate));
    disk.update[0].phases.push(mount(Operation::Update));
    Arc::new(schema)
}
