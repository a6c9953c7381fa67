//! The names that the Tab key completes: variables, locals, objects of the state, and functions.

use apply::checks::Live;
use engine::address::Name;
use engine::config::Config;
use engine::expression::functions::references;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper, Result};

/// All names that can be completed, sorted.
pub(super) struct Names(Vec<String>);

impl Names {
    /// Collects the names of a spec and its state.
    pub(super) fn new(config: &Config, live: &Live) -> Self {
        let variables = config.variables.keys().map(|name| format!("var.{name}"));
        let is_of_module = |name: &&Name| name.starts_with("module.");
        let own = config.locals.keys().filter(|name| !is_of_module(name));
        let locals = own.map(|name| format!("local.{name}"));
        // Beside its outputs, the config has the inputs and locals of a module as locals.
        let is_hidden = |name: &&Name| name.contains(".var.") || name.contains(".local.");
        let of_modules = config.locals.keys().filter(is_of_module);
        let outputs = of_modules.filter(|name| !is_hidden(name)).map(ToString::to_string);
        let objects = live.addresses().map(ToString::to_string);
        let functions = references().map(|function| format!("{}(", function.name));
        let mut names: Vec<String> =
            variables.chain(locals).chain(outputs).chain(objects).chain(functions).collect();
        names.sort();
        Self(names)
    }

    /// Returns the names that begin with the last word of a text, and the position of that word.
    fn matching(&self, text: &str) -> (usize, Vec<String>) {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let start = text
            .rfind(|c| !is_inside(c))
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let word = &text[start..];
        let names = self.0.iter().filter(|name| !word.is_empty() && name.starts_with(word));
        (start, names.cloned().collect())
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<String>)> {
        Ok(self.matching(&line[..position]))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Validator for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed() {
        let names = ["endpoint.chat", "local.a", "upper(", "var.env"];
        let names = Names(names.iter().map(|name| (*name).to_owned()).collect());
        let all = |text: &str| names.matching(text);
        assert_eq!(all("va"), (0, vec!["var.env".to_owned()]));
        assert_eq!(all("upper(var.e"), (6, vec!["var.env".to_owned()]));
        assert_eq!(all("1 + end"), (4, vec!["endpoint.chat".to_owned()]));
        assert_eq!(all("é lo"), (3, vec!["local.a".to_owned()]));
        assert_eq!(all("x "), (2, vec![]));
    }
}
