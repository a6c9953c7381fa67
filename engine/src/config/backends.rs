//! The backends of the state and their settings, as data. This module does not know what a backend does, so a
//! build without backends can still check a spec in full.

use std::collections::{BTreeMap, BTreeSet};

use super::constant::constant;
use super::state_settings::StateSettings;
use super::{Document, Item, diagnostics as say};
use crate::address::Name;
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::types::Type;
use crate::value::Value;

/// A backend.
struct Backend {
    name: &'static str,
    attributes: &'static [Attribute],
}

/// A setting of a backend.
struct Attribute {
    name: &'static str,
    ty: Type,
    required: bool,
}

const fn required(name: &'static str) -> Attribute {
    Attribute { name, ty: Type::String, required: true }
}

const fn text(name: &'static str) -> Attribute {
    Attribute { name, ty: Type::String, required: false }
}

const fn of(name: &'static str, ty: Type) -> Attribute {
    Attribute { name, ty, required: false }
}

const BACKENDS: &[Backend] = &[
    Backend { name: "file", attributes: &[] },
    Backend {
        name: "postgres",
        attributes: &[
            required("name"),
            text("schema"),
            text("host"),
            of("port", Type::Integer),
            text("database"),
            text("user"),
            text("sslmode"),
        ],
    },
    Backend {
        name: "s3",
        attributes: &[
            required("bucket"),
            required("prefix"),
            text("region"),
            text("url"),
            of("path_style", Type::Boolean),
            of("lock_ttl", Type::Integer),
        ],
    },
    Backend {
        name: "gcs",
        attributes: &[
            required("bucket"),
            required("prefix"),
            text("url"),
            of("lock_ttl", Type::Integer),
        ],
    },
    Backend {
        name: "azure",
        attributes: &[
            required("container"),
            required("prefix"),
            text("account"),
            text("url"),
            of("lock_ttl", Type::Integer),
        ],
    },
];

/// The bounds of `lock_ttl`, in seconds.
const LOCK_TTL: std::ops::RangeInclusive<i64> = 1..=3_600;

/// Words that mark a key as holding a secret.
const SECRETS: &[&str] = &["password", "secret", "token", "credential", "access_key", "sas", "key"];

/// The names of the backends.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    BACKENDS.iter().map(|backend| backend.name)
}

/// A setting of a backend, for the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its key.
    pub name: &'static str,
    /// The type of its value.
    pub ty: &'static Type,
    /// True if the backend needs it.
    pub is_required: bool,
}

/// Returns the settings of a backend; none if there is no such backend.
pub fn settings(backend: &str) -> impl Iterator<Item = Setting> {
    let found = BACKENDS.iter().find(|known| known.name == backend);
    let attributes = found.into_iter().flat_map(|backend| backend.attributes);
    attributes.map(|it| Setting { name: it.name, ty: &it.ty, is_required: it.required })
}

/// Reads `[state]`. Its values are plain, because a state must be found before anything is computed.
pub fn state_settings(document: &Document) -> (StateSettings, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let (mut settings, at) = values(document, &mut diagnostics);
    let Some(header) = settings.header else { return (settings, diagnostics) };
    let items = document.state.iter().flat_map(|block| block.items.keys());
    let given: BTreeSet<Name> = items.cloned().collect();
    check_given(&mut settings, &given, (header, at.unwrap_or(header)), &mut diagnostics);
    diagnostics.sort();
    (settings, diagnostics)
}

/// Checks settings that were computed. `header` is the place of their block, and `at` the place of the
/// backend's name.
pub(crate) fn check(settings: &mut StateSettings, (header, at): (Span, Span)) -> Diagnostics {
    let given: BTreeSet<Name> = settings.values.keys().cloned().collect();
    let with_password = settings.values.iter().filter(|(_, (value, _))| is_with_password(value));
    let mut diagnostics: Diagnostics =
        with_password.map(|(key, (_, at))| say::secret_in_state(key, *at)).collect();
    check_given(settings, &given, (header, at), &mut diagnostics);
    diagnostics
}

/// The settings of all backends, each once.
pub(super) fn attributes() -> impl Iterator<Item = (&'static str, Type)> {
    let all = BACKENDS.iter().flat_map(|backend| backend.attributes);
    let all: BTreeMap<_, _> = all.map(|it| (it.name, it.ty.clone())).collect();
    all.into_iter()
}

fn check_given(
    settings: &mut StateSettings,
    given: &BTreeSet<Name>,
    (header, at): (Span, Span),
    diagnostics: &mut Diagnostics,
) {
    let Some(backend) = BACKENDS.iter().find(|backend| *settings.backend == *backend.name) else {
        return diagnostics.push(say::unknown_backend(&settings.backend, at, names()));
    };
    check_known(backend, &mut settings.values, diagnostics);
    let attributes = backend.attributes.iter();
    let missing = attributes.filter(|it| it.required && !given.contains(it.name));
    let missing: Vec<&str> = missing.map(|attribute| attribute.name).collect();
    if !missing.is_empty() {
        diagnostics.push(say::missing_attributes(backend.name, &missing, header));
    }
}

/// Returns the settings, and the place of the backend's name; none if the block does not name one.
fn values(document: &Document, diagnostics: &mut Diagnostics) -> (StateSettings, Option<Span>) {
    let block = document.state.as_ref();
    let header = block.map(|block| block.header);
    let mut settings = StateSettings::file();
    settings.header = header;
    let mut named = None;
    for (key, item) in block.into_iter().flat_map(|block| block.items.iter()) {
        if document.broken.contains(&item.value.span) {
            continue;
        }
        match value(key, item, diagnostics) {
            None => {}
            Some(Value::String(text)) if &**key == "backend" => {
                settings.backend = text;
                named = Some(item.value.span);
            }
            Some(value) if &**key == "backend" => {
                diagnostics.push(say::wrong_type(&Type::String, Some(&value), item.value.span));
            }
            Some(value) => {
                settings.values.insert(key.clone(), (value, item.key));
            }
        }
    }
    (settings, named)
}

fn value(key: &str, item: &Item, diagnostics: &mut Diagnostics) -> Option<Value> {
    let at = item.value.span;
    let value = constant(&item.value.expr);
    match &value {
        None => diagnostics.push(say::not_constant(&format!("`{key}` of `[state]`"), at)),
        Some(value) if is_with_password(value) => {
            diagnostics.push(say::secret_in_state(key, at));
            return None;
        }
        Some(_) => {}
    }
    value
}

/// Returns true if a value is an address such as `scheme://user:password@host`.
fn is_with_password(value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let rest = text.split_once("://").map_or(&**text, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn check_known(
    backend: &Backend,
    values: &mut BTreeMap<Name, (Value, Span)>,
    diagnostics: &mut Diagnostics,
) {
    values.retain(|key, (value, at)| {
        let attribute = backend.attributes.iter().find(|attribute| *attribute.name == **key);
        let wrong = match attribute {
            Some(attribute) => wrong_value(attribute, value, *at),
            None if is_secret(key) => Some(say::secret_in_state(key, *at)),
            None => {
                let known = backend.attributes.iter().map(|attribute| attribute.name);
                Some(say::unknown_state_key(backend.name, key, *at, known))
            }
        };
        let good = wrong.is_none();
        diagnostics.extend(wrong.into_iter().collect());
        good
    });
}

fn is_secret(key: &str) -> bool {
    SECRETS.iter().any(|word| key == *word || key.ends_with(&format!("_{word}")))
}

fn wrong_value(attribute: &Attribute, value: &Value, at: Span) -> Option<Diagnostic> {
    let fits = match (&attribute.ty, value) {
        (Type::Integer, Value::Integer(_)) => true,
        (Type::Boolean, Value::Bool(_)) => true,
        (Type::String, Value::String(text)) => {
            if text.trim().is_empty() {
                return Some(say::empty_state_value(attribute.name, at));
            }
            true
        }
        _ => false,
    };
    if !fits {
        return Some(say::wrong_type(&attribute.ty, Some(value), at));
    }
    match (attribute.name, value) {
        ("lock_ttl", Value::Integer(seconds)) if !LOCK_TTL.contains(seconds) => {
            Some(say::bad_lock_ttl(at))
        }
        ("port", Value::Integer(port)) if u16::try_from(*port).is_err() => Some(say::bad_port(at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::{assert_lines, lines, sources};

    fn state(text: &str) -> (String, String) {
        let (sources, files) = sources(text);
        let (document, diagnostics) = crate::config::parse::parse(&sources, &files);
        assert_lines(&lines(&sources, &diagnostics), "");
        let (state, diagnostics) = state_settings(&document);
        let values: Vec<String> =
            state.values.iter().map(|(key, (value, _))| format!("{key} = {value:?}")).collect();
        (format!("{}: {}", state.backend, values.join(", ")), lines(&sources, &diagnostics))
    }

    #[test]
    fn where_state_lives() {
        assert_eq!(state(""), ("file: ".to_owned(), String::new()));
        assert_eq!(state("[state]\n"), ("file: ".to_owned(), String::new()));
        let (text, diagnostics) = state(
            "[state]\nbackend = 's3'\nbucket = 'b'\nprefix = 'p'\npath_style = true\nlock_ttl = 15\n",
        );
        assert_eq!(
            (&*text, &*diagnostics),
            ("s3: bucket = \"b\", lock_ttl = 15, path_style = true, prefix = \"p\"", "")
        );
    }

    #[test]
    fn mistakes_have_a_place_and_the_nearest_name() {
        let (_, diagnostics) = state("[state]\nbackend = 3\nurl = '${var.x}'\n");
        assert_lines(
            &diagnostics,
            "plumb.toml:2:11 error: wrong type [3] expected string, found integer | put it in quotes
             plumb.toml:3:7 error: expected a plain value ['${var.x}'] `url` of `[state]` cannot be computed | write the value itself, without `${…}`",
        );
        let (_, diagnostics) = state("[state]\nbackend = 'postgress'\nname = 'x'\n");
        assert_lines(
            &diagnostics,
            "plumb.toml:2:11 error: unknown backend ['postgress'] there is no state backend `postgress` | did you mean `postgres`?",
        );
        let (_, diagnostics) = state("[state]\nbucket = 'x'\n");
        assert_lines(
            &diagnostics,
            "plumb.toml:2:1 error: unknown attribute [bucket] the backend `file` has no attribute `bucket` | it has none",
        );
        let (text, diagnostics) = state(
            "[state]\nbackend = 's3'\nbuckett = 'x'\nprefix = ''\nlock_ttl = 0\npath_style = 'yes'\n",
        );
        assert_eq!(text, "s3: ");
        assert_lines(
            &diagnostics,
            "plumb.toml:1:1 error: missing attribute [[state]] `s3` needs `bucket` | add the missing lines to this block
             plumb.toml:3:1 error: unknown attribute [buckett] the backend `s3` has no attribute `buckett` | did you mean `bucket`?
             plumb.toml:4:1 error: empty value [prefix] `prefix` is empty | give it a value
             plumb.toml:5:1 error: invalid lock lifetime [lock_ttl] write 1 to 3600 seconds | 15 is the default
             plumb.toml:6:1 error: wrong type [path_style] expected boolean, found string",
        );
    }

    #[test]
    fn credentials_are_refused_and_not_shown() {
        let (text, diagnostics) = state(
            "[state]\nbackend = 'postgres'\nname = 'x'\npassword = 'hunter2'\nhost = 'u:hunter2@h'\n",
        );
        assert!(!text.contains("hunter2"), "{text}");
        let help = "leave it out and set it in the environment: PLUMB_STATE_URL or PGPASSWORD, AWS_*, GOOGLE_*, AZURE_*";
        assert_lines(
            &diagnostics,
            &format!(
                "plumb.toml:4:1 error: a credential in the spec [password] `password` would be visible to everyone who can read the spec | {help}
                 plumb.toml:5:8 error: a credential in the spec ['u:hunter2@h'] `host` would be visible to everyone who can read the spec | {help}"
            ),
        );
        let (_, diagnostics) =
            state("[state]\nbackend = 's3'\nbucket = 'b'\nprefix = 'p'\nsecret_access_key = 'k'\n");
        assert!(diagnostics.contains("a credential in the spec"), "{diagnostics}");
    }
}
