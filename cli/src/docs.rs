//! The generator of the reference pages, and the test that compares them.
//!
//! `docs/commands.md` has, below its mark, every command and option from clap; `docs/types.md` every resource
//! type from the schemas; `docs/functions.md` every function of expressions. `UPDATE_DOCS=1 cargo test -p
//! cli` rewrites those parts. The text above the mark is written by hand and never changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use engine::diagnostics::Severity;
use engine::schema::{
    Attribute, Identity, OnChange, Presence, Program, ReplaceOrder, RuleOn, SeenIn, TypeSchema,
};
use engine::stored::to_json;

use crate::args::Cli;
use crate::providers;

/// The line that separates the hand-written part of a page from the generated part.
const MARK: &str = "<!-- generated below: UPDATE_DOCS=1 cargo test -p cli -->\n";

/// The longest list of values that fits into the table of attributes. Longer lists follow below the table.
const VALUES_MAX: usize = 6;

#[test]
fn the_page_of_commands_is_up_to_date() {
    compare("commands.md", &commands());
}

#[test]
fn the_page_of_types_is_up_to_date() {
    compare("types.md", &types());
}

#[test]
fn the_page_of_functions_is_up_to_date() {
    compare("functions.md", &functions());
}

#[track_caller]
fn compare(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let kept = std::fs::read_to_string(&path).expect("the page can be read");
    let (written, old) = kept.split_once(MARK).expect("the page has the mark");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let text = format!("{written}{MARK}\n{}\n", generated.trim());
        std::fs::write(&path, text).expect("the page can be written");
        return;
    }
    assert_eq!(
        old.trim(),
        generated.trim(),
        "docs/{name} is out of date: UPDATE_DOCS=1 cargo test -p cli writes it anew"
    );
}

fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = Page::default();
    page.collect(&root);
    page.sections(&root, "plumb");
    let mut text = String::from("## Options of every command\n\n");
    table(&mut text, root.get_arguments().filter(|arg| arg.is_global_set()));
    for (heading, rows) in &page.shared {
        let _ = write!(text, "\n## {heading} options\n\n| option | meaning |\n|---|---|\n{rows}");
    }
    text + &page.text
}

/// The page of commands while it is generated.
#[derive(Default)]
struct Page {
    text: String,
    /// Options that several commands take, by heading.
    shared: BTreeMap<String, String>,
}

impl Page {
    /// Collects the options that several commands take.
    fn collect(&mut self, command: &Command) {
        for (heading, arg) in headed(command) {
            let rows = self.shared.entry(heading.to_owned()).or_default();
            let row = row(arg);
            if !rows.contains(&row) {
                rows.push_str(&row);
            }
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            self.collect(sub);
        }
    }

    /// Writes which of the shared options a command takes: all under a heading, or the listed ones.
    fn takes(&mut self, command: &Command) {
        let mut takes: Vec<(&str, Vec<&Arg>)> = Vec::new();
        for (heading, arg) in headed(command) {
            match takes.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, args)) => args.push(arg),
                None => takes.push((heading, vec![arg])),
            }
        }
        for (heading, args) in takes {
            let anchor = heading.to_lowercase();
            let link = format!("[{anchor} options](#{anchor}-options)");
            if self.shared[heading].lines().count() == args.len() {
                let _ = write!(self.text, "\nTakes the {link}.\n");
                continue;
            }
            let names = args.iter().filter_map(|arg| arg.get_long());
            let names: Vec<_> = names.map(|name| format!("`--{name}`")).collect();
            let _ = write!(self.text, "\nTakes these {link}: {}.\n", names.join(", "));
        }
    }

    fn sections(&mut self, command: &Command, name: &str) {
        for sub in command.get_subcommands() {
            if sub.is_hide_set() || sub.get_name() == "help" {
                continue;
            }
            let name = format!("{name} {}", sub.get_name());
            if !sub.is_subcommand_required_set() {
                self.section(sub, &name);
            }
            self.sections(sub, &name);
        }
    }

    fn section(&mut self, command: &Command, name: &str) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let positional: String = command
            .get_positionals()
            .map(|arg| {
                if arg.is_required_set() {
                    format!(" {}", value(arg))
                } else {
                    format!(" [{}]", value(arg))
                }
            })
            .collect();
        let _ = write!(self.text, "\n## `{name}{positional}`\n\n{about}.\n");
        let own: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && arg.get_help_heading().is_none() && shown(arg))
            .collect();
        if !own.is_empty() {
            self.text.push('\n');
            table(&mut self.text, own.into_iter());
        }
        self.takes(command);
        if let Some(help) = command.get_after_help() {
            let help = help.to_string();
            let (examples, rest) = help.split_once("\n\n").unwrap_or((&help, ""));
            let lines = examples.lines().skip(1).map(str::trim_start);
            let examples = lines.collect::<Vec<_>>().join("\n");
            let _ = write!(self.text, "\n```sh\n{examples}\n```\n");
            if !rest.is_empty() {
                let _ = write!(self.text, "\n{rest}\n");
            }
        }
    }
}

/// Returns the options of a command that have a heading, each with its heading in the form that a sentence
/// needs.
fn headed(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let own = command.get_arguments().filter(|arg| !arg.is_global_set() && shown(arg));
    // The heading "Variables" becomes "variable options" in a sentence.
    own.filter_map(|arg| Some((arg.get_help_heading()?.trim_end_matches('s'), arg)))
}

fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn table<'a>(text: &mut String, args: impl Iterator<Item = &'a Arg>) {
    text.push_str("| option | meaning |\n|---|---|\n");
    for arg in args.filter(|arg| shown(arg)) {
        text.push_str(&row(arg));
    }
}

fn row(arg: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(arg.get_short().map(|short| format!("-{short}")));
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let mut option = names.join(", ");
    if arg.is_positional() {
        option = value(arg);
    } else if arg.get_action().takes_values() {
        let _ = write!(option, " {}", value(arg));
    }
    let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let spelled = value(arg).contains('|');
    let words: Vec<String> =
        arg.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
    if arg.get_action().takes_values() && !words.is_empty() && !spelled {
        let _ = write!(meaning, "; one of {}", words.join(", "));
    }
    let defaults = arg.get_default_values().iter().map(|text| text.to_string_lossy());
    let defaults: Vec<_> = defaults.filter(|text| !text.is_empty()).collect();
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        let _ = write!(meaning, "; default `{}`", defaults.join(" "));
    }
    if matches!(arg.get_action(), ArgAction::Append) {
        meaning.push_str("; may be given often");
    }
    format!("| `{}` | {} |\n", option.replace('|', "\\|"), meaning.replace('|', "\\|"))
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn functions() -> String {
    let mut text = String::new();
    let mut group = "";
    for function in engine::expression::functions::references() {
        if function.group != group {
            group = function.group;
            let _ = write!(text, "\n## {group}\n\n| function | gives | example |\n|---|---|---|\n");
        }
        let cell = |text: &str| text.replace('|', "\\|");
        let example = function.example;
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` is `{}` |",
            function.usage,
            cell(function.gives),
            cell(example.call),
            cell(example.result)
        );
    }
    text
}

fn types() -> String {
    let providers = providers::known_schemas().expect("the descriptors that come with Plumb");
    let mut text = String::new();
    for (instance, provider) in &providers {
        for schema in provider.types.values() {
            let _ = write!(text, "\n## {}\n\n{}", schema.name, schema.description);
            let _ = write!(text, " Provider: `{instance}`.\n\n");
            type_page(&mut text, schema);
        }
    }
    text
}

fn type_page(text: &mut String, schema: &TypeSchema) {
    for (title, presence) in [
        ("Required", Presence::Required),
        ("Optional", Presence::Optional),
        ("Computed", Presence::Computed),
    ] {
        let attributes: Vec<_> =
            schema.attributes.iter().filter(|(_, a)| a.presence == presence).collect();
        if attributes.is_empty() {
            continue;
        }
        let _ = write!(text, "| {title} | type | meaning |\n|---|---|---|\n");
        for (name, attribute) in attributes {
            let meaning = meaning(attribute).replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | {} | {meaning} |", attribute.ty);
        }
        text.push('\n');
    }
    for (name, attribute) in &schema.attributes {
        let values = allowed(attribute);
        if values.len() > VALUES_MAX {
            let _ = write!(text, "Values of `{name}`: {}.\n\n", values.join(", "));
        }
    }
    for line in conduct(schema) {
        let _ = writeln!(text, "- {line}");
    }
    if !schema.rules.is_empty() {
        text.push_str(
            "\nRules, checked by the plan, or before the call when a value is known only then:\n\n",
        );
    }
    for rule in &schema.rules {
        let on = match rule.on {
            RuleOn::Any => "Create or update",
            RuleOn::Create => "Create",
            RuleOn::Update => "Update",
            RuleOn::Delete => "Delete",
        };
        let warns = if rule.severity == Severity::Warning { ", a warning" } else { "" };
        let message = rule.message.to_string();
        let _ = writeln!(text, "- {on}{warns}: {}.", message.trim_matches('"'));
    }
}

/// Returns the description of an attribute, as sentences.
fn meaning(attribute: &Attribute) -> String {
    let constraint = &attribute.constraint;
    let unit = attribute.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
    let mut parts = vec![attribute.description.trim_end_matches('.').to_owned()];
    parts.retain(|part| !part.is_empty());
    match (constraint.min, constraint.max) {
        (Some(min), Some(max)) => parts.push(format!("{min} to {max}{unit}")),
        (Some(min), None) => parts.push(format!("At least {min}{unit}")),
        (None, Some(max)) => parts.push(format!("At most {max}{unit}")),
        (None, None) => parts.extend(attribute.unit.as_ref().map(|unit| format!("In {unit}"))),
    }
    let what = match attribute.ty {
        engine::types::Type::String => "characters",
        _ => "items",
    };
    match (constraint.length_min, constraint.length_max) {
        (Some(min), Some(max)) => parts.push(format!("{min} to {max} {what}")),
        (Some(1), None) => parts.push("Not empty".to_owned()),
        (Some(min), None) => parts.push(format!("At least {min} {what}")),
        (None, Some(max)) => parts.push(format!("At most {max} {what}")),
        (None, None) => {}
    }
    let values = allowed(attribute);
    if !values.is_empty() && values.len() <= VALUES_MAX {
        parts.push(format!("One of {}", values.join(", ")));
    } else if !values.is_empty() {
        parts.push("From the list below".to_owned());
    }
    parts.extend(attribute.default.as_ref().map(|value| format!("Default `{}`", to_json(value))));
    parts.extend(attribute.nulls.iter().map(|word| format!("`{}` for none", to_json(word))));
    match &attribute.server_value {
        Some(value) => parts.push(format!("Server default `{}`", to_json(value))),
        None if attribute.server_default => parts.push("Server default".to_owned()),
        None => {}
    }
    if attribute.unset.is_some() {
        parts.push("Cleared when removed".to_owned());
    }
    if attribute.on_change == OnChange::Replace && attribute.presence != Presence::Computed {
        let loss = if attribute.data_loss { ", which loses its data" } else { "" };
        parts.push(format!("A change replaces the object{loss}"));
    }
    parts.extend(attribute.effect.as_ref().map(|effect| format!("A change {effect}")));
    if attribute.sensitive {
        parts.push("Sensitive".to_owned());
    }
    if attribute.seen_in == SeenIn::Never && attribute.presence != Presence::Computed {
        parts.push("Never shown by the service, so changes outside stay unnoticed".to_owned());
    }
    if attribute.volatile {
        parts.push("Changes by itself; never drift".to_owned());
    }
    parts.join(". ") + "."
}

fn allowed(attribute: &Attribute) -> Vec<String> {
    let one_of = attribute.constraint.one_of.as_ref();
    one_of.into_iter().flat_map(|list| &list.values).map(|value| format!("`{value}`")).collect()
}

/// Returns sentences about the create and the delete of objects of a type.
fn conduct(schema: &TypeSchema) -> Vec<String> {
    if schema.data_only {
        return vec!["It is looked up in a data block only.".to_owned()];
    }
    let mut lines = vec![format!(
        "Steps: create is {}; delete is {}.",
        phases(&schema.create),
        phases(&schema.delete)
    )];
    if schema.unique_name {
        lines.push("Names are unique.".to_owned());
    }
    lines.push(match schema.replace {
        ReplaceOrder::CreateFirst => "A replace creates the new object first.".to_owned(),
        ReplaceOrder::DeleteFirst => "A replace deletes the old object first.".to_owned(),
    });
    lines.extend(schema.price.as_ref().map(|_| "Plans show its cost.".to_owned()));
    lines.extend(schema.delete_effect.as_ref().map(|effect| format!("On a delete, {effect}.")));
    lines.extend(
        match &schema.identity {
            Identity::OneTimeName { .. } => {
                Some("The object of a lost create is found by its one-time name.")
            }
            Identity::UniqueName { .. } => {
                Some("The object of a lost create is found by its unique name.")
            }
            Identity::IdempotencyKey => {
                Some("A lost create is sent again with its idempotency key.")
            }
            Identity::ClientId { .. } => Some("The object of a lost create is found by its id."),
            Identity::Ask => Some("A lost create needs a decision by a person."),
            Identity::Local => None,
        }
        .map(str::to_owned),
    );
    lines
}

fn phases(programs: &[Program]) -> String {
    let mut ways: Vec<String> = Vec::new();
    for program in programs {
        let words: Vec<String> = program
            .phases
            .iter()
            .map(|phase| match &phase.waits_for {
                Some(wait) => format!("{} (waits until {wait})", phase.operation.word()),
                None => phase.operation.word().to_owned(),
            })
            .collect();
        let way = words.join(", then ");
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways.join("; or ")
}
