//! The text of adopted blocks, in the form of the examples.

use super::model::{AdoptedVariable, Content, Many, Member, Text};
use crate::address::{Address, Name};
use crate::config::provider_choice::quoted;
use crate::config::variables::environment_name;
use crate::config::written;
use crate::state::ObjectId;
use crate::value::Value;

/// The longest line that holds a collection.
const LINE_MAX: usize = 100;

/// A block, in the order of its lines.
pub(super) struct ResourceText {
    header: String,
    lines: Vec<(String, Text)>,
}

impl ResourceText {
    fn new(ty: &str, name: &str) -> Self {
        Self { header: format!("resource.{ty}.{name}"), lines: Vec::new() }
    }

    fn push(&mut self, key: &str, text: Text) {
        self.lines.push((key.to_owned(), text));
    }

    /// Returns the block as text. A value that is too long for a line has a line for each item; a map is then
    /// a table of its own, at the end.
    pub(super) fn text(&self) -> String {
        let mut text = format!("[{}]\n", self.header);
        let mut tables = String::new();
        for (key, value) in &self.lines {
            let line = format!("{key} = {}\n", value.inline());
            match value {
                _ if line.len() <= LINE_MAX + 1 => text.push_str(&line),
                Text::Plain(_) => text.push_str(&line),
                Text::Items(items) => {
                    text.extend([key, " = [\n"]);
                    for item in items {
                        text.extend(["  ", item, ",\n"]);
                    }
                    text.push_str("]\n");
                }
                Text::Entries(entries) => {
                    tables.extend(["\n[", &self.header, ".", key, "]\n"]);
                    for (name, value) in entries {
                        tables.extend([&written::key(name), " = ", value, "\n"]);
                    }
                }
            }
        }
        text + &tables
    }
}

/// Returns the block of one object.
pub(super) fn one(content: &Content) -> ResourceText {
    let mut block = ResourceText::new(&content.block.ty, &content.block.name);
    push_provider(&mut block, content.provider.as_ref());
    let name = content.name.as_ref().map(|(attribute, _)| attribute);
    let mut names: Vec<&Name> = content.attributes.keys().collect();
    names.sort_by_key(|it| (Some(*it) != name, !content.required.contains(it), (*it).clone()));
    for name in names {
        block.push(name, content.attributes[name].clone());
    }
    push_lifecycle(&mut block, &content.ignore_changes, &content.allow_unknown);
    block
}

/// Returns the block of several objects.
pub(super) fn many(many: &Many) -> ResourceText {
    let mut block = ResourceText::new(&many.ty, &many.name);
    block.push("for_each", for_each(many));
    push_provider(&mut block, many.provider.as_ref());
    block.push(&many.name_attribute, Text::Plain("\"${each.key}\"".to_owned()));
    let mut names: Vec<&Name> = many.common.keys().chain(&many.varying).collect();
    names.sort_by_key(|it| (!many.required.contains(it), (*it).clone()));
    for name in names {
        let text = match many.common.get(name) {
            Some(text) => text.clone(),
            None if many.varying.len() == 1 => Text::Plain("\"${each.value}\"".to_owned()),
            None => Text::Plain(written::expression(&format!("each.value.{name}"))),
        };
        block.push(name, text);
    }
    push_lifecycle(&mut block, &[], &many.allow_unknown);
    block
}

/// Returns the `for_each`: the keys, with the values in which the objects differ.
fn for_each(many: &Many) -> Text {
    let quoted = |key: &Name| written::value(&Value::String(key.clone()));
    if many.varying.is_empty() {
        return Text::Items(many.members.iter().filter_map(|member| quoted(&member.key)).collect());
    }
    let entry = |member: &Member| {
        let value = match member.values.as_slice() {
            [value] => value.inline(),
            values => {
                let values = many.varying.iter().zip(values);
                let values = values.map(|(name, value)| (name.clone(), value.inline()));
                Text::Entries(values.collect()).inline()
            }
        };
        (member.key.clone(), value)
    };
    Text::Entries(many.members.iter().map(entry).collect())
}

fn push_provider(block: &mut ResourceText, provider: Option<&Name>) {
    if let Some(provider) = provider {
        block.push("provider", Text::Plain(quoted(provider)));
    }
}

fn push_lifecycle(block: &mut ResourceText, ignore_changes: &[Name], allow_unknown: &[Name]) {
    let list = |key: &str, names: &[Name]| {
        let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        (!names.is_empty()).then(|| (Name::from(key), format!("[{}]", names.join(", "))))
    };
    let lists = [list("ignore_changes", ignore_changes), list("allow_unknown", allow_unknown)];
    let lists: Vec<(Name, String)> = lists.into_iter().flatten().collect();
    if !lists.is_empty() {
        block.push("lifecycle", Text::Entries(lists));
    }
}

/// Returns the text of variables and blocks.
pub(super) fn spec(variables: &[AdoptedVariable], blocks: &[ResourceText]) -> String {
    let texts: Vec<String> =
        variables.iter().map(variable).chain(blocks.iter().map(ResourceText::text)).collect();
    texts.join("\n")
}

fn variable(variable: &AdoptedVariable) -> String {
    let AdoptedVariable { name, value, sensitive, ty, address, attribute } = variable;
    let why = match (value, sensitive) {
        (Some(_), _) => "A secret, so it does not stand here.",
        (None, _) => "No answer of the API shows it.",
    };
    let given = environment_name(name);
    let sensitive = if *sensitive { "sensitive = true\n" } else { "" };
    format!(
        "# {attribute} of {address}. {why}\n# Give its value by {given}, or in a file of variables.\n[variable.{name}]\ntype = \"{ty}\"\n{sensitive}"
    )
}

/// Returns the import block that takes over an object.
pub fn import_block(address: &Address, id: &ObjectId) -> String {
    let text = |text: String| written::value(&Value::string(text)).unwrap_or_default();
    format!("[[import]]\nto = {}\nid = {}\n", text(address.to_string()), text(id.to_string()))
}
