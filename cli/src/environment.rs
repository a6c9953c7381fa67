//! The environment of the process: its variables, and which parts of the program may read them.

use std::collections::BTreeSet;
use std::env::VarError;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use engine::address::Name;
use engine::config::variables::environment_name;
use engine::diagnostics::{Diagnostic, Diagnostics, nearest};

use state::cipher::{Cipher, VARIABLE};

use crate::error::CommandError;

/// The address of the serverless provider's REST API.
pub(crate) const REST_URL: &str = "PLUMB_SERVERLESS_REST_URL";
/// The address of version 2 of the serverless provider's REST API.
pub(crate) const V2_URL: &str = "PLUMB_SERVERLESS_V2_URL";
/// The address of the serverless provider's GraphQL API.
pub(crate) const GRAPHQL_URL: &str = "PLUMB_SERVERLESS_GRAPHQL_URL";
/// The address of the serverless provider's job API.
pub(crate) const QUEUE_URL: &str = "PLUMB_SERVERLESS_QUEUE_URL";
/// The key of the serverless provider.
pub(crate) const API_KEY: &str = "PLUMB_SERVERLESS_API_KEY";
/// The file that holds the key of the serverless provider.
const API_KEY_FILE: &str = "PLUMB_SERVERLESS_API_KEY_FILE";
/// The command that prints the key of the serverless provider.
const API_KEY_COMMAND: &str = "PLUMB_SERVERLESS_API_KEY_COMMAND";
/// The certificate authorities that are trusted for the serverless provider.
const CA: &str = "PLUMB_SERVERLESS_CA";
/// The hosts that secrets may be sent to.
pub(crate) const ALLOWED_HOSTS: &str = "PLUMB_ALLOWED_HOSTS";
/// The variables that any descriptor may read its key from.
pub(crate) const ALLOWED_KEYS: &str = "PLUMB_ALLOWED_KEYS";
/// The key of `plumb serve`.
pub(crate) const SERVICE_KEY: &str = "PLUMB_SERVICE_KEY";
/// The address of a state in a database.
const STATE_URL: &str = "PLUMB_STATE_URL";
/// The filter of the log.
pub(crate) const LOG: &str = "PLUMB_LOG";
/// The format of the log.
pub(crate) const LOG_FORMAT: &str = "PLUMB_LOG_FORMAT";

/// The folder that replaces `.plumb` in the commands of `plumb test`. With it, the state is in files,
/// whatever the spec says.
pub(crate) const TEST_FOLDER: &str = "PLUMB_TEST_FOLDER";

/// The variables that Plumb reads and whose names begin with `PLUMB_`, without those that a spec declares.
const KNOWN: [&str; 15] = [
    REST_URL,
    V2_URL,
    GRAPHQL_URL,
    QUEUE_URL,
    API_KEY,
    API_KEY_FILE,
    API_KEY_COMMAND,
    CA,
    ALLOWED_HOSTS,
    ALLOWED_KEYS,
    SERVICE_KEY,
    VARIABLE,
    STATE_URL,
    LOG,
    LOG_FORMAT,
];

/// Returns true if the environment gives the key of the serverless provider in any of the possible ways.
pub(crate) fn gives_key(environment: &dyn Fn(&str) -> Option<String>) -> bool {
    let is_given = |name| environment(name).is_some_and(|text| !text.trim().is_empty());
    [API_KEY, API_KEY_FILE, API_KEY_COMMAND].into_iter().any(is_given)
}

/// The beginnings of the names of variables that are no variables of specs: those of Plumb's own tests, and
/// the one that the service gives to its workers.
const NOT_OF_SPECS: [&str; 3] = ["PLUMB_TEST_", "PLUMB_SIM_", "PLUMB_VOLUME"];

/// The beginning of the names of Plumb's variables.
const PREFIX: &str = "PLUMB_";

/// The beginning of the names of variables that give values to the variables of a spec.
const OF_SPEC: &str = "PLUMB_VAR_";

/// The variables that open the state. No other part of the program reads them.
pub(crate) const OPENS_STATE: [&str; 3] = [VARIABLE, STATE_URL, "PGPASSWORD"];

/// Returns a warning for each variable of the environment whose name begins with `PLUMB_` and that neither
/// Plumb, nor a spec with these variables, nor a provider that reads `of_providers` uses.
pub(crate) fn unknown<'a>(
    declared: impl Iterator<Item = &'a Name>,
    of_providers: &BTreeSet<String>,
) -> Diagnostics {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown_among(names, declared, of_providers)
}

fn unknown_among<'a>(
    names: impl Iterator<Item = String>,
    declared: impl Iterator<Item = &'a Name>,
    of_providers: &BTreeSet<String>,
) -> Diagnostics {
    let mut known: BTreeSet<String> = KNOWN.iter().map(|name| (*name).to_owned()).collect();
    known.extend(of_providers.iter().cloned());
    known.extend(declared.flat_map(|name| [environment_name(name), format!("{OF_SPEC}{name}")]));
    let is_unknown = |name: &String| {
        name.starts_with(PREFIX)
            && !known.contains(name)
            && !NOT_OF_SPECS.iter().any(|start| name.starts_with(start))
    };
    let unknown: BTreeSet<String> = names.filter(is_unknown).collect();
    unknown.iter().map(|name| unknown_variable(name, &known)).collect()
}

fn unknown_variable(name: &str, known: &BTreeSet<String>) -> Diagnostic {
    let shown = render::safe::text(name);
    let of_spec = name.starts_with(OF_SPEC);
    let what =
        if of_spec { "the spec has no such variable" } else { "Plumb reads no such variable" };
    let warning =
        Diagnostic::warning(format!("the environment variable {shown} has no effect: {what}"));
    let known = known.iter().filter(|known| known.starts_with(OF_SPEC) == of_spec);
    let candidates = known.filter_map(|known| known.strip_prefix(PREFIX));
    warning.help(match nearest(name.strip_prefix(PREFIX).unwrap_or(name), candidates) {
        Some(near) => format!("did you mean {PREFIX}{near}?"),
        None if of_spec => "declare the variable in the spec, or unset it".to_owned(),
        None => "unset it".to_owned(),
    })
}

/// The variables that were read and whose values are not text. The reads return `None`, as for unset
/// variables. So [`all_readable`] must be called before the program acts on what it read.
static UNREADABLE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Returns a variable of the environment; `None` if it is unset, or opens the state: no descriptor may read
/// such a variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    if OPENS_STATE.contains(&name) { None } else { any(name) }
}

/// Returns a variable of the environment, also one that opens the state.
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

/// Fails if a variable that was read is set to a value that is not text. It would count as unset, and the
/// program would plan or call something else than the user meant.
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

/// Returns the cipher of state and plan files. It is derived once per process.
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
        // A variable that is set and cannot be read must not turn encryption off.
        Err(VarError::NotUnicode(_)) => return Err(refused(&"it is not text")),
    };
    Ok(CIPHER.get_or_init(|| cipher).clone())
}

#[cfg(test)]
mod tests {
    use provider_serverless::Version;

    use super::*;

    #[test]
    fn a_variable_that_nothing_reads_is_named_with_the_nearest_one() {
        let names =
            ["PLUMB_SERVERLES_REST_URL", "PLUMB_VAR_ENVV", "PLUMB_VAR_ENV", "PLUMB_VAR_size"];
        let more = ["PLUMB_STATE_KEY", "PLUMB_ACME_URL", "PLUMB_TEST_DIE", "PLUMB_X", "PATH"];
        let names = names.into_iter().chain(more).map(str::to_owned);
        let declared = ["env", "size"].map(Name::from);
        let of_providers = BTreeSet::from(["PLUMB_ACME_URL".to_owned()]);
        let warnings = unknown_among(names, declared.iter(), &of_providers);
        let said: Vec<_> = warnings
            .iter()
            .map(|it| format!("{}; {}", it.summary, it.help.as_deref().unwrap_or_default()))
            .collect();
        let start = "the environment variable PLUMB_";
        assert_eq!(
            said,
            [
                format!(
                    "{start}SERVERLES_REST_URL has no effect: Plumb reads no such variable; did you mean {REST_URL}?"
                ),
                format!(
                    "{start}VAR_ENVV has no effect: the spec has no such variable; did you mean PLUMB_VAR_ENV?"
                ),
                format!("{start}X has no effect: Plumb reads no such variable; unset it"),
            ]
        );
    }

    #[test]
    fn the_serverless_provider_reads_known_variables() {
        for (version, addresses) in
            [(Version::V1, vec![REST_URL, GRAPHQL_URL]), (Version::V2, vec![V2_URL])]
        {
            let descriptor = version.read().unwrap();
            let known = addresses.into_iter().chain([QUEUE_URL, API_KEY, CA]).collect();
            assert_eq!(descriptor.variables(), known);
        }
    }
}
