//! The entries of the fuzz targets: one function for each reader of foreign text. It takes bytes, and must
//! not panic or hang.
//!
//! The fuzz targets call these functions. `tests/corpora.rs` of the main workspace calls them with the
//! corpora that are kept here, so that faults that were found once stay fixed. Each function checks more than
//! the absence of a panic: what was read is written and read again, and what is shown has nothing that acts
//! on a terminal.

mod answers;
mod expressions;
mod plans;
mod service;
mod specs;
mod stored;
mod words;

/// The function that a target runs on its input.
pub type Entry = fn(&[u8]);

/// Every target, by name.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("answer", answers::answer),
    ("descriptor", specs::descriptor),
    ("envelope", stored::envelope),
    ("expression", expressions::expression),
    ("graphql", service::graphql),
    ("job", service::job),
    ("journal", stored::journal),
    ("name", service::name),
    ("openapi", specs::openapi),
    ("plan", plans::plan),
    ("rest", service::rest),
    ("spec", specs::spec),
    ("state", stored::state),
    ("variables", words::variables),
    ("words", words::words),
];

/// Runs a target.
pub fn run(name: &str, data: &[u8]) {
    let (_, entry) = ENTRIES.iter().find(|(known, _)| *known == name).expect("a target");
    entry(data);
}

/// Ends the services that targets started, and removes what they hold.
pub fn end() {
    service::end();
}

/// Checks a text that is shown to people: it must have no character that controls a terminal, hides text or
/// changes its direction, and no beginning of a command to a CI system.
pub(crate) fn harmless(text: &str) {
    let acts = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    assert!(!text.chars().any(acts), "this acts or hides: {text:?}");
    let commands = ["##vso[", "##teamcity[", "##[group]"];
    assert!(!commands.iter().any(|command| text.contains(command)), "a command: {text:?}");
    // The renderer itself writes three colons before a second place. They are no command.
    let command = |line: &str| {
        let line = line.trim_start();
        line.starts_with("::") && !line.starts_with("::: ")
    };
    assert!(!text.lines().any(command), "a command: {text:?}");
}
