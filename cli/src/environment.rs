//! The environment that the process was started with: what each part of it may see.

use std::collections::BTreeSet;
use std::env::VarError;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use state::cipher::{Cipher, VARIABLE};

use crate::error::CommandError;

/// What opens the state: nobody else's business.
pub(crate) const OPENS_STATE: [&str; 3] = [VARIABLE, "PLUMB_STATE_URL", "PGPASSWORD"];

/// The variables that somebody asked for and that are set to what is no text. Those who ask can only
/// take them as unset, so whoever goes on with what they made of it looks here first.
static UNREADABLE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A variable of the environment. What opens the state is nobody else's: no descriptor can ask for
/// it.
pub(crate) fn variable(name: &str) -> Option<String> {
    if OPENS_STATE.contains(&name) { None } else { any(name) }
}

/// The same, for what opens the state.
pub(crate) fn any(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => {
            unreadable().insert(name.to_owned());
            None
        }
    }
}

/// Refuses to go on where a variable that was asked for is set and cannot be read: it would count as
/// unset, and something else be planned or called than was meant.
pub(crate) fn all_readable() -> Result<(), CommandError> {
    match unreadable().first() {
        None => Ok(()),
        Some(name) => Err(CommandError::new(format!("the variable {name} is not UTF-8 text"))
            .help("set it to text, or unset it")),
    }
}

fn unreadable() -> MutexGuard<'static, BTreeSet<String>> {
    UNREADABLE.lock().unwrap_or_else(PoisonError::into_inner)
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
