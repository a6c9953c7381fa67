//! The environment that the process was started with: what each part of it may see.

use std::env::VarError;
use std::sync::OnceLock;

use state::cipher::{Cipher, VARIABLE};

use crate::error::CommandError;

/// What opens the state: nobody else's business.
pub(crate) const OPENS_STATE: [&str; 3] = [VARIABLE, "PLUMB_STATE_URL", "PGPASSWORD"];

/// A variable of the environment, as far as it is text. What opens the state is nobody else's: no
/// descriptor can ask for it.
pub(crate) fn variable(name: &str) -> Option<String> {
    if OPENS_STATE.contains(&name) { None } else { std::env::var(name).ok() }
}

/// What seals state and plan files: derived once in the life of the process.
pub(crate) fn cipher() -> Result<Cipher, CommandError> {
    static CIPHER: OnceLock<Cipher> = OnceLock::new();
    if let Some(cipher) = CIPHER.get() {
        return Ok(cipher.clone());
    }
    let refused = |why: &dyn std::fmt::Display| {
        CommandError::new(format!("{VARIABLE} cannot be used: {why}")).help(
            "give a passphrase of 12 characters or more, or a key of 64 hexadecimal digits; \
             unset it to write without encryption",
        )
    };
    let cipher = match std::env::var(VARIABLE) {
        Ok(text) => Cipher::new(&text).map_err(|why| refused(&why))?,
        Err(VarError::NotPresent) => Cipher::off(),
        // What is set and cannot be read must not mean that nothing is encrypted.
        Err(VarError::NotUnicode(_)) => return Err(refused(&"it is not text")),
    };
    Ok(CIPHER.get_or_init(|| cipher).clone())
}
