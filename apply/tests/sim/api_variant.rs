//! The two harnesses: at the provider port, where the types are those of `shapes`; and at the wire,
//! where they are what the descriptor of the serverless service says.
//!
//! The world speaks one language (disks, images, units), which is that of the port; names are
//! translated where a spec, a state or a request shows them.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use engine::schema::{Operation, Phase, PhaseWords, ProviderSchema, Sends};
use provider_http::{Descriptor, Settings};

use crate::cloud;

/// Where a schedule is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harness {
    /// At the provider port.
    Port,
    /// At the wire.
    Http,
}

/// What the world says, and what the serverless service says.
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

/// The template and the volume of those that use none of ours: they belong to everybody.
pub(crate) const PUBLIC: &str = "public";

impl Harness {
    /// A word of the world as this harness says it.
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

/// The descriptor, read once.
pub(crate) fn descriptor() -> Arc<Descriptor> {
    static READ: LazyLock<Arc<Descriptor>> =
        LazyLock::new(|| Arc::new(provider_serverless::read().ok().unwrap()));
    READ.clone()
}

/// The types at the port, of which disks have to be mounted once they are made, and again when they were
/// changed: by a call that sends nothing and shows nowhere, and then waits.
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
