//! The settings of the serverless provider that its descriptors do not have: the version of its API, and the
//! service on this machine in place of an address.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use engine::config::settings::ProviderSettings;
use engine::diagnostics::{Diagnostic, Diagnostics, Span};
use engine::value::Value;
use provider_http::Descriptor;
use provider_serverless::Version;

use crate::environment::{self, all_readable};
use crate::error::CommandError;
use crate::variables::Environment;

/// The variables with the addresses of the serverless provider.
const ADDRESSES: [&str; 4] =
    [environment::REST_URL, environment::V2_URL, environment::GRAPHQL_URL, environment::QUEUE_URL];

/// The setting that asks for the service on this machine.
const LOCAL: &str = "local";

/// The setting that names the version of the serverless provider's API.
const VERSION: &str = "version";

/// The settings of the serverless provider that its descriptors do not have.
pub(crate) const OF_SERVERLESS: [&str; 2] = [LOCAL, VERSION];

/// Returns the addresses of the serverless provider that the environment gives, each with its variable.
pub(crate) fn given(
    environment: Environment<'_>,
) -> impl Iterator<Item = (&'static str, String)> + '_ {
    let value = move |name: &'static str| Some((name, environment(name)?));
    ADDRESSES.into_iter().filter_map(value).filter(|(_, value)| !value.trim().is_empty())
}

/// Refuses an address in the environment where the spec asks for the service on this machine.
pub(crate) fn refuse_address(environment: Environment<'_>) -> Result<(), CommandError> {
    let Some((variable, _)) = given(environment).next() else { return all_readable() };
    let message = format!(
        "the spec says `local = true` in [provider.serverless], and the environment variable {variable} gives the \
         address of another service"
    );
    Err(CommandError::new(message).help(format!(
        "unset {variable} or give `--local` to use the service on this machine; remove `local = true` to use \
         the other one"
    )))
}

/// Returns the error about missing addresses and a missing key of the serverless provider.
pub(crate) fn no_service(
    (descriptor, settings, header): (&Descriptor, &BTreeMap<String, String>, Option<Span>),
    environment: Environment<'_>,
) -> Diagnostic {
    let is_given = |variable: &str| {
        environment(variable).is_some_and(|it| !it.trim().is_empty())
            || variable == environment::API_KEY && environment::gives_key(environment)
    };
    let keys = [
        ("rest_url", environment::REST_URL),
        ("v2_url", environment::V2_URL),
        ("graphql_url", environment::GRAPHQL_URL),
        ("queue_url", environment::QUEUE_URL),
    ];
    let of_spec = |variable: &str| {
        let key = keys.iter().find(|(_, of)| *of == variable);
        key.is_some_and(|(key, _)| settings.contains_key(*key))
    };
    let read = descriptor.variables();
    let addresses = ADDRESSES.into_iter().filter(|variable| read.contains(variable));
    let all = addresses.chain([environment::API_KEY]);
    let (given, missing): (Vec<_>, Vec<_>) = all.partition(|it| is_given(it) || of_spec(it));
    let missing = missing.join(", ");
    let summary = if given.is_empty() {
        "the serverless provider needs the addresses and the key of a service".to_owned()
    } else {
        let given: Vec<_> = given.into_iter().filter(|variable| is_given(variable)).collect();
        let set =
            if given.is_empty() { String::new() } else { format!("{} is set; ", given.join(", ")) };
        format!(
            "the serverless provider needs all addresses and the key of a service: {set}not set: {missing}"
        )
    };
    Diagnostic::error(summary).at(header).help(format!(
        "set {missing}; or, for the service on this machine, write `local = true` under \
         [provider.serverless] in the spec, or give `--local`"
    ))
}

/// Returns true if a provider block asks for the service on this machine.
pub(crate) fn asks_for_local(settings: &ProviderSettings) -> bool {
    let local = settings.values.get(LOCAL);
    local.is_some_and(|setting| setting.value.value == Value::Bool(true))
}

/// Reports a `local` that is neither true nor false, and addresses beside one that is true.
pub(crate) fn report_local(settings: &ProviderSettings, diagnostics: &mut Diagnostics) {
    let Some(local) = settings.values.get(LOCAL) else { return };
    if !matches!(local.value.value, Value::Bool(_)) {
        let message = "`local` is true or false";
        diagnostics.push(Diagnostic::error(message).at(local.span));
    }
    let other = settings.values.iter().find(|(key, _)| !OF_SERVERLESS.contains(&&***key));
    if let (true, Some((key, setting))) = (asks_for_local(settings), other) {
        let message = format!("`local = true` and `{key}` ask for two services");
        let help = "remove one of them: `local = true` is the service on this machine";
        diagnostics.push(Diagnostic::error(message).at(setting.key).help(help));
    }
}

/// Returns the version of the API: the one that a provider block names, else the one that has more of the
/// block's settings, else the one for the given address.
pub(crate) fn version(settings: &ProviderSettings, diagnostics: &mut Diagnostics) -> Version {
    let Some(named) = settings.values.get(VERSION) else {
        let count = |version| settings.values.keys().filter(|key| is_setting(version, key)).count();
        return match count(Version::V1).cmp(&count(Version::V2)) {
            Ordering::Greater => Version::V1,
            Ordering::Less => Version::V2,
            Ordering::Equal => version_by_address(),
        };
    };
    let word = named.value.value.as_str();
    let known = Version::ALL.into_iter().find(|version| Some(version.word()) == word);
    known.unwrap_or_else(|| {
        let message = "there is no such version of the API";
        let help = "write `version = \"v1\"` or `version = \"v2\"`";
        diagnostics.push(Diagnostic::error(message).at(named.span).help(help));
        Version::default()
    })
}

/// Returns the version for the addresses in the environment: the second one if the address of the first one
/// is not given, or is that of the real service, which has retired the first version (15 November 2026).
pub(crate) fn version_by_address() -> Version {
    let given = |variable| environment::variable(variable).filter(|it| !it.trim().is_empty());
    let first = given(environment::REST_URL);
    let is_retired = first.as_ref().map_or(given(environment::V2_URL).is_some(), |address| {
        let url = address.parse::<reqwest::Url>().ok();
        url.is_some_and(|url| url.host_str().is_some_and(|host| host.ends_with(".runpod.io")))
    });
    if is_retired { Version::V2 } else { Version::V1 }
}

/// Returns true if a version of the serverless provider has a setting.
pub(crate) fn is_setting(version: Version, key: &str) -> bool {
    version.read().is_ok_and(|descriptor| descriptor.settings().contains(key))
}
