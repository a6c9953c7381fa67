//! The diagnostics about adopted objects, one constructor each.

use crate::address::Address;
use crate::diagnostics::Diagnostic;

/// Returns the warning about a required attribute that no answer shows.
pub(super) fn unreadable(address: &Address, attribute: &str, variable: &str) -> Diagnostic {
    Diagnostic::warning(format!("the API never shows `{attribute}` of {address}"))
        .about(address)
        .detail(format!(
            "The spec takes it from the variable `{variable}`, and `ignore_changes` leaves the object's own value alone."
        ))
        .help("give the variable its value; to set that value, take the attribute out of `ignore_changes`")
}

/// Returns the warning about a value that no literal of a spec can express.
pub(super) fn unwritable(address: &Address, attribute: &str) -> Diagnostic {
    Diagnostic::warning(format!("`{attribute}` of {address} cannot be written, and is not managed"))
        .about(address)
}
