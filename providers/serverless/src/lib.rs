//! The serverless compute service: its descriptor, and the client of its job API.
//!
//! What is known about the service's management interfaces stands in `serverless.provider.toml`;
//! this crate only carries it. What is known about jobs stands in [`jobs`].

pub mod jobs;

use engine::diagnostics::{Diagnostics, FileId};
use provider_http::{Descriptor, HttpProvider, Settings, load};

/// The name of the provider in specs and state.
pub const NAME: &str = "serverless";

/// The text of the descriptor.
pub fn descriptor() -> &'static str {
    include_str!("../serverless.provider.toml")
}

/// The descriptor, read. Its diagnostics' spans point into [`descriptor`] and name no file; there
/// are none unless the descriptor itself is broken, which the tests rule out.
pub fn read() -> Result<Descriptor, Diagnostics> {
    let (descriptor, diagnostics) = load(descriptor(), FileId(0));
    descriptor.ok_or(diagnostics)
}

/// The provider, configured.
pub fn provider(settings: &Settings<'_>) -> Result<HttpProvider, Diagnostics> {
    HttpProvider::configure(read()?, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_is_sound() {
        let (descriptor, diagnostics) = load(descriptor(), FileId(0));
        let said: Vec<String> = diagnostics
            .iter()
            .map(|d| format!("{} {:?} {:?}", d.summary, d.label, d.help))
            .collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
        assert_eq!(&**descriptor.unwrap().name(), NAME);
    }
}
