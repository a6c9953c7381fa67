//! Facts about an API in the text of a descriptor: the marks of open facts, and the changes that an answer
//! makes. Comments and order stay.

use toml_edit::{Decor, DocumentMut, InlineTable, Item, TableLike, Value};

use crate::marks::{FILLED, NAMES, NO_UPDATE, ORDER};
use crate::text::TO_PROVE;

/// A question that a descriptor asks with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// An optional attribute: the API may fill in a value if none is sent.
    IsFilled,
    /// An attribute that replaces the object, because no update in the document has it.
    IsFixed,
    /// A list: the API may sort it, or remove duplicates.
    IsOrdered,
    /// The name of an object: two objects may not have the same one, or it can change.
    IsUnique,
}

/// A mark in a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The resource type.
    pub ty: String,
    /// The attribute; none for a key of the type.
    pub attribute: Option<String>,
    /// The question; none if no command answers it.
    pub question: Option<Question>,
    /// The words of the mark.
    pub words: String,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The fact is as the descriptor has it.
    AsWritten,
    /// The API fills in nothing; an update takes the attribute; a list has no order; names are unique.
    Otherwise,
    /// Names are not unique, and can change.
    NamesChange,
}

/// Returns the marks of a descriptor. The text is one that loads.
pub fn marks(text: &str) -> Vec<Mark> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let mut marks = Vec::new();
    let types = document.get("type").and_then(Item::as_table_like);
    for (ty, table) in types.into_iter().flat_map(TableLike::iter) {
        let Some(table) = table.as_table_like() else { continue };
        let mut add = |attribute: Option<&str>, item: &Item| {
            for words in words_of(item) {
                let attribute = attribute.map(str::to_owned);
                let question = question(&words);
                marks.push(Mark { ty: ty.to_owned(), attribute, question, words });
            }
        };
        table.iter().for_each(|(_, item)| add(None, item));
        let attributes = table.get("attribute").and_then(Item::as_table_like);
        attributes
            .into_iter()
            .flat_map(TableLike::iter)
            .for_each(|(name, item)| add(Some(name), item));
    }
    marks
}

fn question(words: &str) -> Option<Question> {
    match words {
        FILLED => Some(Question::IsFilled),
        NO_UPDATE => Some(Question::IsFixed),
        ORDER => Some(Question::IsOrdered),
        NAMES => Some(Question::IsUnique),
        _ => None,
    }
}

/// Returns the words of the marks after a value.
fn words_of(item: &Item) -> Vec<String> {
    let suffix = item.as_value().and_then(|value| value.decor().suffix()?.as_str());
    let marked = suffix.and_then(|suffix| suffix.trim().strip_prefix(TO_PROVE));
    let words = marked.map(|words| words.trim_start_matches(':').trim());
    let words = words.into_iter().flat_map(|words| words.split("; "));
    words.filter(|words| !words.is_empty()).map(str::to_owned).collect()
}

/// Returns the text of a descriptor with the answer to the question of a mark; none if the text does not have
/// the form that `from-openapi` writes.
pub fn settled(text: &str, mark: &Mark, answer: Answer) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let table = document.get_mut("type")?.as_table_like_mut()?;
    let table = table.get_mut(&mark.ty)?.as_table_like_mut()?;
    let item = match &mark.attribute {
        Some(name) => {
            let attributes = table.get_mut("attribute")?.as_table_like_mut()?;
            attributes.get_mut(name)?
        }
        None => table.get_mut("identity")?,
    };
    unmark(item.as_value_mut()?.decor_mut(), &mark.words);
    match (mark.question?, answer) {
        (_, Answer::AsWritten) => {}
        (Question::IsFilled, _) => drop(without(item, "server_default")?),
        (Question::IsFixed, _) => drop(without(item, "on_change")?),
        (Question::IsOrdered, _) => as_set(item)?,
        (Question::IsUnique, answer) => identity(table, answer)?,
    }
    Some(document.to_string())
}

/// Returns the text of a descriptor in which a change of an attribute replaces the object; none if the text has
/// another form, or says already what a change does.
pub fn with_replace(text: &str, ty: &str, attribute: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let table = document.get_mut("type")?.get_mut(ty)?.get_mut("attribute")?;
    let table = table.get_mut(attribute)?.as_inline_table_mut()?;
    if table.contains_key("on_change") {
        return None;
    }
    table.insert("on_change", "replace".into());
    table.fmt();
    Some(document.to_string())
}

/// Removes the words of one mark, and the mark itself if no words are left.
pub(crate) fn unmark(decor: &mut Decor, words: &str) {
    let suffix = decor.suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default();
    let marked = suffix.trim().strip_prefix(TO_PROVE).unwrap_or_default();
    let others = marked.trim_start_matches(':').trim().split("; ").filter(|own| *own != words);
    let others: Vec<&str> = others.filter(|own| !own.is_empty()).collect();
    let left = if others.is_empty() {
        String::new()
    } else {
        format!(" {TO_PROVE}: {}", others.join("; "))
    };
    decor.set_suffix(left);
}

fn without(item: &mut Item, key: &str) -> Option<Value> {
    let table = item.as_inline_table_mut()?;
    let removed = table.remove(key);
    if let Some((_, last)) = table.iter_mut().last() {
        last.decor_mut().set_suffix(" ");
    }
    removed
}

/// Turns a list type into a set type.
fn as_set(item: &mut Item) -> Option<()> {
    let ty = item.as_inline_table_mut()?.get_mut("type")?;
    let set = format!("set({}", ty.as_str()?.strip_prefix("list(")?);
    let decor = ty.decor().clone();
    *ty = set.into();
    *ty.decor_mut() = decor;
    Some(())
}

/// Writes the identity of a type whose names are unique, or can change.
fn identity(table: &mut dyn TableLike, answer: Answer) -> Option<()> {
    if answer == Answer::Otherwise {
        replace(table, "identity", "unique_name");
        table.insert("unique_name", toml_edit::value(true));
        return Some(());
    }
    let update = table.get("update")?.as_array()?.get(0)?.as_inline_table()?;
    let mut activate = InlineTable::new();
    activate.insert("name", "activate".into());
    activate.insert("call", update.get("call")?.clone());
    activate.insert("sends", Value::InlineTable(one("name", "${name}")));
    for key in ["inside", "item", "headers"] {
        if let Some(value) = update.get(key) {
            activate.insert(key, value.clone());
        }
    }
    let create = table.get_mut("create")?.as_array_mut()?;
    let first = create.get_mut(0)?.as_inline_table_mut()?;
    first.insert("with", Value::InlineTable(one("name", "${one_time}")));
    first.fmt();
    activate.fmt();
    create.push(activate);
    let last = create.len().saturating_sub(1);
    for (index, phase) in create.iter_mut().enumerate() {
        phase.decor_mut().set_prefix(" ");
        phase.decor_mut().set_suffix(if index == last { " " } else { "" });
    }
    replace(table, "identity", "one_time_name");
    Some(())
}

fn one(key: &str, value: &str) -> InlineTable {
    let mut table = InlineTable::new();
    table.insert(key, value.into());
    table
}

/// Replaces a text; the comments around it stay.
fn replace(table: &mut dyn TableLike, key: &str, text: &str) {
    if let Some(value) = table.get_mut(key).and_then(Item::as_value_mut) {
        let decor = value.decor().clone();
        *value = text.into();
        *value.decor_mut() = decor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A comment.
[type.zone]
identity = "ask" # to prove: whether names are unique, or can change
create = [ { call = "rest: POST /zones", sends = "all" } ]
update = [ { call = "rest: PATCH /zones/${id}", sends = "changed" } ] # Another comment.

[type.zone.attribute]
name = { type = "string", required = true }
kind = { type = "string", server_default = true, on_change = "replace" } # to prove: whether a value is filled in; no update takes it
hosts = { type = "list(string)", required = true } # to prove: whether the order counts
"#;

    fn after(attribute: Option<&str>, question: Question, answer: Answer) -> String {
        let marks = marks(TEXT);
        let found = marks
            .iter()
            .find(|mark| mark.attribute.as_deref() == attribute && mark.question == Some(question));
        let text = settled(TEXT, found.unwrap(), answer).unwrap();
        let changed = text.lines().filter(|line| !TEXT.lines().any(|own| own == *line));
        changed.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn marks_are_found() {
        let words: Vec<String> = marks(TEXT)
            .iter()
            .map(|mark| format!("{:?} {:?}", mark.attribute, mark.question))
            .collect();
        assert_eq!(
            words,
            [
                "None Some(IsUnique)",
                "Some(\"kind\") Some(IsFilled)",
                "Some(\"kind\") Some(IsFixed)",
                "Some(\"hosts\") Some(IsOrdered)",
            ]
        );
    }

    #[test]
    fn an_attribute_that_no_update_changes_replaces() {
        let text = with_replace(TEXT, "zone", "hosts").unwrap();
        let line = "hosts = { type = \"list(string)\", required = true, on_change = \"replace\" } # to prove: whether the order counts";
        assert_eq!(text.lines().last(), Some(line));
        assert_eq!(with_replace(&text, "zone", "hosts"), None);
        assert_eq!(with_replace(TEXT, "zone", "hots"), None);
    }

    #[test]
    fn facts_are_written_and_comments_stay() {
        assert_eq!(
            after(Some("kind"), Question::IsFilled, Answer::Otherwise),
            "kind = { type = \"string\", on_change = \"replace\" } # to prove: no update takes it"
        );
        assert_eq!(
            after(Some("kind"), Question::IsFixed, Answer::Otherwise),
            "kind = { type = \"string\", server_default = true } # to prove: whether a value is filled in"
        );
        assert_eq!(
            after(Some("kind"), Question::IsFixed, Answer::AsWritten),
            "kind = { type = \"string\", server_default = true, on_change = \"replace\" } # to prove: whether a value is \
             filled in"
        );
        let hosts = |answer| after(Some("hosts"), Question::IsOrdered, answer);
        assert_eq!(
            hosts(Answer::AsWritten),
            "hosts = { type = \"list(string)\", required = true }"
        );
        assert_eq!(hosts(Answer::Otherwise), "hosts = { type = \"set(string)\", required = true }");
        assert_eq!(after(None, Question::IsUnique, Answer::AsWritten), "identity = \"ask\"");
        assert_eq!(
            after(None, Question::IsUnique, Answer::Otherwise),
            "identity = \"unique_name\"\nunique_name = true"
        );
        assert_eq!(
            after(None, Question::IsUnique, Answer::NamesChange),
            "identity = \"one_time_name\"\ncreate = [ { call = \"rest: POST /zones\", sends = \"all\", with = { name = \
             \"${one_time}\" } }, { name = \"activate\", call = \"rest: PATCH /zones/${id}\", sends = { name = \
             \"${name}\" } } ]"
        );
    }
}
