//! The keys of a provider, from the environment and the spec: as a text, in a file, or by a command.

use std::collections::BTreeMap;
use std::io::Read as _;

use engine::address::Name;
use engine::diagnostics::{Diagnostic, Diagnostics};

use crate::asked_keys::Asked;
use crate::descriptor::model::{Descriptor, Source};
use crate::key::Key;
use crate::settings::{Origin, Settings};
use crate::trust;

/// The largest key file, in bytes.
const FILE_MAX: u64 = 64 * 1024;
/// The endings of variables that may also be given as a file or a command.
const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];

/// The ending of a variable that names a file.
const FILE: &str = "_FILE";
/// The ending of a variable that holds a command.
const COMMAND: &str = "_COMMAND";

/// The keys that were found, and the ways to ask for others.
#[derive(Default)]
pub(crate) struct FoundKeys {
    pub(crate) keys: BTreeMap<Name, Key>,
    pub(crate) asked: BTreeMap<Name, Asked>,
}

/// Looks up the keys, and reports those that cannot be sent or are not read.
pub(crate) fn keys(
    descriptor: &Descriptor,
    settings: &Settings<'_>,
    diagnostics: &mut Diagnostics,
) -> FoundKeys {
    let mut found = FoundKeys::default();
    for (name, key) in &descriptor.keys {
        let source = &key.source;
        let own = source.env.as_deref().and_then(|variable| settings.own_variable(variable));
        let own_text = || own.as_deref().and_then(|own| given(own, settings));
        let is_given_elsewhere = |own: &str| {
            [FILE, COMMAND].iter().any(|end| given(&format!("{own}{end}"), settings).is_some())
        };
        let is_elsewhere = own_text().is_none()
            && is_secret_name(source)
            && own.as_deref().is_some_and(is_given_elsewhere);
        if let Some((text, origin)) = look_up(source, settings).filter(|_| !is_elsewhere) {
            let text = text.trim();
            if !is_sendable(text) {
                diagnostics.push(bad_key(&descriptor.name, &source.given(origin)));
            }
            if let (Some(variable), Origin::Environment) = (&source.env, origin) {
                refuse_foreign(descriptor, variable, settings, diagnostics);
            }
            found.keys.insert(name.clone(), Key::new(text));
            continue;
        }
        let Some(variable) = source.env.as_deref().filter(|_| is_secret_name(source)) else {
            continue;
        };
        let base = own.as_deref().filter(|_| is_elsewhere).unwrap_or(variable);
        let elsewhere = |end: &str| {
            let name = format!("{base}{end}");
            let text = given(&name, settings)?;
            Some((name, text))
        };
        if let Some((name_of_file, path)) = elsewhere(FILE) {
            refuse_foreign(descriptor, variable, settings, diagnostics);
            match in_file(path.trim()) {
                Ok(text) if is_sendable(&text) => {
                    found.keys.insert(name.clone(), Key::new(text));
                }
                Ok(_) => diagnostics.push(bad_key(&descriptor.name, &name_of_file)),
                Err(reason) => diagnostics.push(bad_file(&descriptor.name, &name_of_file, &reason)),
            }
        } else if let Some((variable_of_command, text)) = elsewhere(COMMAND) {
            refuse_foreign(descriptor, variable, settings, diagnostics);
            let variable = variable_of_command;
            found.asked.insert(name.clone(), Asked::Command { variable, text });
        }
    }
    found
}

fn refuse_foreign(
    descriptor: &Descriptor,
    variable: &str,
    settings: &Settings<'_>,
    diagnostics: &mut Diagnostics,
) {
    if !trust::may_read_key(&descriptor.name, variable, settings) {
        diagnostics.push(trust::foreign_key(&descriptor.name, variable));
    }
}

/// Returns the text in a file, such as a key. The error contains none of its content.
pub(crate) fn in_file(path: &str) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(error.to_string()),
        Ok(_) if text.len() as u64 > FILE_MAX => Err(format!("it is longer than {FILE_MAX} bytes")),
        Ok(_) if text.trim().is_empty() => Err("it is empty".to_owned()),
        Ok(_) => Ok(text.trim().to_owned()),
    }
}

fn bad_file(provider: &str, variable: &str, reason: &str) -> Diagnostic {
    Diagnostic::error(format!("the key for the provider {provider} cannot be read"))
        .detail(format!("The file in {variable} cannot be used: {reason}."))
        .help("give the path of a file that holds the key and nothing else")
}

/// Returns true if a text can stand in a header. Any other text would fail at the first call, with a message
/// that looks as if the address were wrong.
fn is_sendable(key: &str) -> bool {
    key.chars().all(|letter| !letter.is_control())
}

fn bad_key(provider: &str, given: &str) -> Diagnostic {
    Diagnostic::error(format!("the key for the provider {provider} cannot be sent"))
        .detail(format!("{given} holds a line break or another control character."))
        .help("copy the key once more, as one line")
}

/// Returns the value of a variable; none if it is not set.
fn given(variable: &str, settings: &Settings<'_>) -> Option<String> {
    (settings.environment)(variable).filter(|text| !text.trim().is_empty())
}

fn is_secret_name(source: &Source) -> bool {
    let variable = source.env.as_deref().unwrap_or_default();
    SECRET_NAMES.iter().any(|end| variable.ends_with(end))
}

/// Returns a text and its origin. For an alias, its own variable takes precedence over the common one.
pub(crate) fn look_up(source: &Source, settings: &Settings<'_>) -> Option<(String, Origin)> {
    let variable = source.env.as_deref();
    let own = variable.and_then(|variable| settings.own_variable(variable));
    let own = own.and_then(|own| given(&own, settings)).map(|text| (text, Origin::Environment));
    let of_all = || {
        let text = variable.and_then(|variable| given(variable, settings));
        text.map(|text| (text, Origin::Environment))
    };
    let setting = || {
        let setting = source.setting.as_ref().and_then(|name| settings.values.get(name).cloned());
        let text = setting.filter(|text| !text.trim().is_empty());
        text.map(|text| (text, Origin::Setting))
    };
    let given = match (own, &settings.alias) {
        (Some(own), _) => Some(own),
        (None, Some(_)) => setting().or_else(of_all),
        (None, None) => of_all().or_else(setting),
    };
    let default = || source.default.clone().filter(|text| !text.trim().is_empty());
    given.or_else(|| default().map(|text| (text, Origin::Default)))
}

impl Source {
    /// Returns a description of the origin of a text.
    pub(crate) fn given(&self, origin: Origin) -> String {
        match origin {
            Origin::Environment => self.env.clone().unwrap_or_default(),
            Origin::Setting => format!("`{}`", self.setting.clone().unwrap_or_default()),
            Origin::Default => "the descriptor".to_owned(),
        }
    }
}
