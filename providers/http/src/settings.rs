//! The settings of a provider, and the origin of each of their texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::hosts::AllowedHosts;

use crate::timing::Timing;
use crate::transport::Network;

/// The configuration of a provider.
pub struct Settings<'a> {
    /// The addresses of the spec's provider block, by key.
    pub values: BTreeMap<String, String>,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The hosts to which a key may be sent, whatever the origin of the address.
    pub allowed_hosts: AllowedHosts,
    /// The variables from which any descriptor may read its key.
    pub allowed_keys: Vec<String>,
    /// Times and bounds of calls.
    pub timing: Timing,
    /// True if the descriptor came with the spec, so that its own addresses are trusted no more than those of
    /// the spec.
    pub beside_spec: bool,
    /// The name of the provider if it differs from its descriptor's: the ending of the provider's own
    /// variables.
    pub alias: Option<String>,
    /// True if the addresses lead to the local service of the spec's folder, wherever it listens in this run.
    pub at_home: bool,
    /// The network that carries requests; none for that of this process.
    pub network: Option<Arc<Network>>,
}

impl<'a> Settings<'a> {
    /// Returns settings with an environment only. `PLUMB_ALLOWED_HOSTS` in it lists hosts, and
    /// `PLUMB_ALLOWED_KEYS` variables that hold keys, both separated by commas.
    pub fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let hosts = environment("PLUMB_ALLOWED_HOSTS").unwrap_or_default();
        let keys = environment("PLUMB_ALLOWED_KEYS").unwrap_or_default();
        Self {
            values: BTreeMap::new(),
            environment,
            allowed_hosts: AllowedHosts::parse(&hosts),
            allowed_keys: keys.split(',').map(|name| name.trim().to_owned()).collect(),
            timing: Timing::default(),
            beside_spec: false,
            alias: None,
            at_home: false,
            network: None,
        }
    }

    /// Marks the descriptor as one that came with the spec.
    #[must_use]
    pub fn beside_spec(mut self, beside_spec: bool) -> Self {
        self.beside_spec = beside_spec;
        self
    }

    /// Sets the name of a provider that differs from its descriptor's.
    #[must_use]
    pub fn alias(mut self, alias: Option<&str>) -> Self {
        self.alias = alias.map(str::to_owned);
        self
    }

    /// Returns the name of the variable that configures only this provider: `ACME_KEY_EU` for `ACME_KEY`.
    pub(crate) fn own_variable(&self, variable: &str) -> Option<String> {
        self.alias.as_ref().map(|alias| own_variable(variable, alias))
    }

    /// Marks the addresses as those of the local service of the spec's folder.
    #[must_use]
    pub fn at_home(mut self, at_home: bool) -> Self {
        self.at_home = at_home;
        self
    }

    /// Adds a setting of the spec's provider block.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// Sets another network.
    #[must_use]
    pub fn network(mut self, network: Arc<Network>) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets other times and bounds.
    #[must_use]
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }
}

/// Returns the name of the variable that configures only the provider with a certain name.
pub(crate) fn own_variable(variable: &str, alias: &str) -> String {
    let word = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' }
    };
    format!("{variable}_{}", alias.chars().map(word).collect::<String>())
}

/// The source of a configured text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A variable of the environment.
    Environment,
    /// The provider block of the spec.
    Setting,
    /// The descriptor.
    Default,
}
