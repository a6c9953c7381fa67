//! The entries for arguments of a command line, and for variables files.

use engine::address::{Address, Block};
use engine::config::constant::{from_toml, variables_file};
use engine::state::ObjectId;
use engine::types::Type;

/// Reads a variables file, or one value.
pub(crate) fn variables(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    drop(variables_file(text));
    drop(from_toml(text));
}

/// Reads addresses, types and ids.
pub(crate) fn words(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse::<Address>().as_ref(), Ok(&address));
    }
    if let Ok(block) = text.parse::<Block>() {
        assert_eq!(block.to_string().parse::<Block>().as_ref(), Ok(&block));
    }
    if let Ok(ty) = text.parse::<Type>() {
        assert_eq!(ty.to_string().parse::<Type>().ok(), Some(ty));
    }
    if let Ok(id) = ObjectId::typed(text) {
        let text: &str = &id.0;
        assert!(!text.contains(['%', '\\']) && !text.contains(".."), "{text}");
    }
}
