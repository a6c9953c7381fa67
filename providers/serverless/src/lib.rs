//! The serverless compute service: its descriptor, and the client of its job API.
//!
//! The knowledge about the service's management interfaces stands in `serverless.provider.toml`, and for
//! version 2 in `serverless-v2.provider.toml`; this crate only carries them. What is known about jobs stands in
//! [`jobs`].

pub mod jobs;

use engine::diagnostics::{Diagnostics, FileId};
use provider_http::{Descriptor, HttpProvider, Settings, load};

/// The name of the provider in specs and state.
pub const NAME: &str = "serverless";

/// A version of the management interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// REST in version 1, and GraphQL.
    #[default]
    V1,
    /// REST in version 2.
    V2,
}

impl Version {
    /// All versions.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The word for it in specs.
    pub fn word(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    /// The text of its descriptor.
    pub fn text(self) -> &'static str {
        match self {
            Self::V1 => include_str!("../serverless.provider.toml"),
            Self::V2 => include_str!("../serverless-v2.provider.toml"),
        }
    }

    /// Its descriptor, read. The spans of diagnostics point into [`Version::text`] and name no file; there are none
    /// unless the descriptor itself is broken, which the tests rule out.
    pub fn read(self) -> Result<Descriptor, Diagnostics> {
        let (descriptor, diagnostics) = load(self.text(), FileId(0));
        descriptor.ok_or(diagnostics)
    }
}

/// The text of the descriptor of the first version.
pub fn descriptor() -> &'static str {
    Version::V1.text()
}

/// The descriptor of the first version, read.
pub fn read() -> Result<Descriptor, Diagnostics> {
    Version::V1.read()
}

/// The provider of the first version, configured.
pub fn provider(settings: &Settings<'_>) -> Result<HttpProvider, Diagnostics> {
    HttpProvider::configure(read()?, settings)
}

/// The provider of a version, configured.
pub fn provider_of(version: Version, settings: &Settings<'_>) -> Result<HttpProvider, Diagnostics> {
    HttpProvider::configure(version.read()?, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_are_sound() {
        for version in Version::ALL {
            let (descriptor, diagnostics) = load(version.text(), FileId(0));
            let said: Vec<String> = diagnostics
                .iter()
                .map(|d| format!("{version:?}: {} {:?} {:?}", d.summary, d.label, d.help))
                .collect();
            assert!(said.is_empty(), "{}", said.join("\n"));
            assert_eq!(&**descriptor.unwrap().name(), NAME);
        }
    }
}
