//! The environment that a store is opened in, and the error where it cannot be.

use engine::hosts::AllowedHosts;

/// The environment, as far as it is text.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    look: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Environment<'a> {
    /// The one that `look` looks into.
    pub fn new(look: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { look }
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.look)(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns true if credentials may go to a host that a spec names.
    #[cfg_attr(not(any(feature = "postgres", feature = "object-store")), allow(dead_code))]
    pub(crate) fn allows(&self, host: &str) -> bool {
        let hosts = self.get("PLUMB_ALLOWED_HOSTS").unwrap_or_default();
        AllowedHosts::parse(&hosts).allows(host)
    }
}

/// The error of settings that no store can be opened with. It shows no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The error message.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
