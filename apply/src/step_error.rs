//! The failure of a step.

use engine::address::Name;

/// The reason why a step failed, and what to do. The step could not begin, the API refused its call, or the
/// state that it waited for did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepError {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl StepError {
    pub(crate) fn new(message: String) -> Self {
        Self { message, help: None }
    }

    /// Returns the error of a create whose object is there and differs from what was sent.
    pub(crate) fn not_as_sent(unlike: &[Name], answer: &str) -> Self {
        let names: Vec<String> = unlike.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(" and another ");
        Self {
            message: format!("{answer}, and what is there has another {names} than was sent"),
            help: Some("apply again: the plan shows what differs, and changes it".to_owned()),
        }
    }

    pub(crate) fn missing_provider(provider: &Name) -> Self {
        Self {
            message: format!("the provider `{provider}` is not configured"),
            help: Some(format!("declare [provider.{provider}]")),
        }
    }
}

impl From<&provider_port::Error> for StepError {
    fn from(error: &provider_port::Error) -> Self {
        Self { message: error.to_string(), help: error.help.clone() }
    }
}
