//! What reads text from outside, one function each: bytes in, no panic and no hang out.
//!
//! Fuzz targets call these, and so does `tests/corpora.rs` of the house with the corpora that are
//! kept here, so that what was once found is never lost. Each function asserts more than that
//! nothing panics: what was read is written and read again, and what is shown holds nothing that
//! acts on a terminal.

mod answers;
mod expressions;
mod plans;
mod service;
mod specs;
mod stored;
mod words;

/// What a target runs on its input.
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

/// What is shown to people: a character that acts, hides or turns text around, and the beginning of
/// a command to a CI system, would be a hole.
pub(crate) fn harmless(text: &str) {
    let acts = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    assert!(!text.chars().any(acts), "this acts or hides: {text:?}");
    let commands = ["##vso[", "##teamcity[", "##[group]"];
    assert!(!commands.iter().any(|command| text.contains(command)), "a command: {text:?}");
    // Three colons are the renderer's own, before a second place, and no command.
    let command = |line: &str| {
        let line = line.trim_start();
        line.starts_with("::") && !line.starts_with("::: ")
    };
    assert!(!text.lines().any(command), "a command: {text:?}");
}
