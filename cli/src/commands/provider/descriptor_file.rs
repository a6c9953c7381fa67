//! The reading of descriptors and documents from files that the user named.

use std::io::Read as _;
use std::path::Path;

use engine::diagnostics::{Diagnostics, Sources};
use provider_http::Descriptor;

use crate::error::CommandError;

/// The largest descriptor that is read, in bytes. The loader refuses smaller ones already, with the place of
/// the excess.
const DESCRIPTOR_MAX: u64 = 8 * 1024 * 1024;

/// A descriptor from a file, with its mistakes.
pub(super) struct DescriptorFile {
    pub(super) descriptor: Option<Descriptor>,
    pub(super) diagnostics: Diagnostics,
    pub(super) sources: Sources,
}

/// Reads a descriptor.
pub(super) fn read(base: &Path, path: &Path) -> Result<DescriptorFile, CommandError> {
    let text = text(base, path, DESCRIPTOR_MAX)?;
    let mut sources = Sources::default();
    let file = sources.add(path.display().to_string(), text.clone());
    let (descriptor, diagnostics) = provider_http::load(&text, file);
    Ok(DescriptorFile { descriptor, diagnostics, sources })
}

/// Reads a text of at most `bytes_max` bytes.
pub(super) fn text(base: &Path, path: &Path, bytes_max: u64) -> Result<String, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::new(format!("cannot read {}: {error}", path.display()))
    };
    let file = std::fs::File::open(base.join(path)).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > bytes_max {
        let megabytes = bytes_max / 1024 / 1024;
        return Err(CommandError::new(format!("{} is larger than {megabytes} MB", path.display())));
    }
    String::from_utf8(bytes)
        .map_err(|_| CommandError::new(format!("{} is no text in UTF-8", path.display())))
}
