//! The environment in which a store is opened, and the error if it cannot be opened.

use engine::hosts::AllowedHosts;

/// The environment variables that are text.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    look: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Environment<'a> {
    /// Returns the environment in which `look` looks up variables.
    pub fn new(look: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { look }
    }

    /// Returns the value of a variable; none if it is not set or empty.
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

/// The error of settings with which no store can be opened. It shows no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The error message.
    pub message: String,
    /// The advice; none if there is none.
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
