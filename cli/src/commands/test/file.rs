//! A test file: steps that run commands, and the assertions of each step.

use std::collections::BTreeMap;
use std::path::Path;

use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Sources, Span};
use engine::expression::Expr;
use engine::expression::parse::{Dialect, expression};
use serde::Deserialize;
use toml::Spanned;

/// The content of a `*.test.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFile {
    /// The options of the throw-away service.
    #[serde(default)]
    pub(super) service: ServiceTable,
    /// The values for the variables of the spec, in every step.
    #[serde(default)]
    pub(super) variables: BTreeMap<String, toml::Value>,
    /// The environment variables of every step. Others are not passed on.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// The providers that the spec may use beside the serverless one. Their real APIs are called.
    #[serde(default)]
    pub(super) real_providers: Vec<String>,
    /// The steps, in their order.
    #[serde(default)]
    pub(super) step: Vec<Step>,
}

/// Options of the throw-away service.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceTable {
    /// The faults to make, as `plumb serve --fault` takes them.
    #[serde(default)]
    pub(super) faults: Vec<String>,
    /// The departures from the documents, as `plumb serve --quirks` takes them.
    #[serde(default)]
    pub(super) quirks: Vec<String>,
}

/// A step: a command, and the assertions after it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// The sentence that names the step.
    pub(super) name: Spanned<String>,
    /// The command.
    #[serde(default)]
    pub(super) run: Run,
    /// The values for variables. They override those of the file.
    #[serde(default)]
    pub(super) variables: BTreeMap<String, toml::Value>,
    /// A part of the error with which the command must fail; without it, the command must succeed.
    pub(super) fails: Option<Spanned<String>>,
    /// The assertions, by name.
    #[serde(default)]
    pub(super) check: BTreeMap<String, Assertion>,
}

/// A command of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Run {
    /// Plans, and changes nothing.
    Plan,
    /// Plans and applies.
    #[default]
    Apply,
    /// Deletes everything.
    Destroy,
}

impl Run {
    /// Returns the word for the command in test files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Destroy => "destroy",
        }
    }
}

/// A condition, as `[check.*]` in a spec has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Assertion {
    /// The expression that must be true.
    pub(super) assert: Spanned<String>,
    /// The message for a failure.
    pub(super) message: Option<String>,
}

impl Assertion {
    /// Returns the expression. The text may have `${…}` around it or not.
    pub(super) fn expression(&self, file: FileId) -> Result<Expr, Box<Diagnostic>> {
        let text = self.assert.get_ref().trim();
        let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        expression(inner.unwrap_or(text), Dialect::Spec).map_err(|error| {
            let found = Diagnostic::error("an assertion that is no expression")
                .at(span(file, &self.assert))
                .label(error.message);
            Box::new(match error.help {
                Some(help) => found.help(help),
                None => found,
            })
        })
    }
}

/// Returns the place of a text in a test file.
pub(super) fn span<T>(file: FileId, text: &Spanned<T>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let range = text.span();
    Span { file, start: offset(range.start), end: offset(range.end) }
}

/// Reads the text of a test file. Returns it with its id among the sources.
pub(super) fn read(
    path: &Path,
    text: &str,
    sources: &mut Sources,
) -> Result<(TestFile, FileId), Diagnostics> {
    let id = sources.add(path.display().to_string(), text);
    let file: TestFile = toml::from_str(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        let at = Span {
            file: id,
            start: u32::try_from(at.start).unwrap_or(u32::MAX),
            end: u32::try_from(at.end).unwrap_or(u32::MAX),
        };
        let found = Diagnostic::error("a test file that cannot be read");
        Diagnostics::from_iter([found.at(at).label(error.message().to_owned())])
    })?;
    let mut found = Diagnostics::new();
    if file.step.is_empty() {
        let nothing = Diagnostic::error(format!("{} has no steps", path.display()));
        found.push(nothing.help("add one: `[[step]]` with a `name` and a `run`"));
    }
    for step in &file.step {
        let errors = step.check.values().filter_map(|check| check.expression(id).err());
        errors.for_each(|error| found.push(*error));
    }
    if found.is_empty() { Ok((file, id)) } else { Err(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> String {
        let mut sources = Sources::default();
        let Err(found) = read(Path::new("a.test.toml"), text, &mut sources) else {
            return "none".to_owned();
        };
        render::diagnostics::text(&found, &sources, render::Colour::Off)
    }

    #[test]
    fn a_whole_file() {
        let text = "[service]\nfaults = [\"op=saveEndpoint,nth=1,kind=lost\"]\n[variables]\nenv = \"dev\"\n\
                    [[step]]\nname = \"one\"\nrun = \"plan\"\n[step.check.three]\nassert = \"plan.summary.create == 3\"\n";
        assert_eq!(mistakes(text), "none");
    }

    #[test]
    fn mistakes_are_shown_at_their_words() {
        for (text, word) in [
            ("", "a.test.toml has no steps"),
            ("[[step]]\nrun = \"plan\"\n", "missing field `name`"),
            ("[[step]]\nname = \"a\"\nrun = \"pln\"\n", "unknown variant `pln`"),
            ("[[step]]\nname = \"a\"\nasert = 1\n", "unknown field `asert`"),
            ("[[step]]\nname = \"a\"\ncheck.x = { assert = \"1 ==\" }\n", "no expression"),
        ] {
            let said = mistakes(text);
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}
