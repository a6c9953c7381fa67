//! The serverless compute service: its descriptor, and the client of its job API.
//!
//! All knowledge about the service's management interfaces is in `serverless.provider.toml`, and for version
//! 2 in `serverless-v2.provider.toml`; this crate only contains these files. The knowledge about jobs is in
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

    /// Returns the word for the version in specs.
    pub fn word(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    /// Returns the text of the version's descriptor.
    pub fn text(self) -> &'static str {
        match self {
            Self::V1 => include_str!("../serverless.provider.toml"),
            Self::V2 => include_str!("../serverless-v2.provider.toml"),
        }
    }

    /// Returns the version's descriptor. The spans of diagnostics point into [`Version::text`] and name no
    /// file. There are diagnostics only if the descriptor itself is broken, which the tests exclude.
    pub fn read(self) -> Result<Descriptor, Diagnostics> {
        let (descriptor, diagnostics) = load(self.text(), FileId(0));
        descriptor.ok_or(diagnostics)
    }
}

/// Returns the text of the descriptor of the first version.
pub fn descriptor() -> &'static str {
    Version::V1.text()
}

/// Returns the descriptor of the first version.
pub fn read() -> Result<Descriptor, Diagnostics> {
    Version::V1.read()
}

/// Returns the provider of the first version, configured.
pub fn provider(settings: &Settings<'_>) -> Result<HttpProvider, Diagnostics> {
    HttpProvider::configure(read()?, settings)
}

/// Returns the provider of a version, configured.
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
