//! Alike objects, which share one block with `for_each` where that is shorter.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Content, Many, Member, Text};
use super::text;
use crate::address::Name;

/// The least number of objects that share a block.
const MEMBERS_MIN: usize = 3;
/// The most attributes, beside the name, in which they differ.
const VARYING_MAX: usize = 3;
/// The most sets of attributes that are tried.
const TRIED_MAX: usize = 200;
/// The length of a block's header and of the line of its name, about.
const HEADER: usize = 60;

/// An object with a block of its own, or several that share one.
pub(super) enum Group {
    /// One.
    One(Box<Content>),
    /// Several.
    Many(Many),
}

/// Groups objects of one type, in their order.
pub(super) fn groups(contents: Vec<Content>) -> Vec<Group> {
    let mut left: Vec<Option<Content>> = contents.into_iter().map(Some).collect();
    let mut groups = Vec::new();
    for class in classes(&left) {
        let mut class = class;
        while let Some(Choice { members, varying, .. }) = best(&left, &class) {
            class.retain(|object| !members.contains(object));
            let taken: Vec<Content> = members.iter().filter_map(|at| left[*at].take()).collect();
            match shared(taken, varying) {
                Ok(many) => groups.push(Group::Many(many)),
                Err(ones) => groups.extend(ones.into_iter().map(|one| Group::One(Box::new(one)))),
            }
        }
    }
    groups.extend(left.into_iter().flatten().map(|content| Group::One(Box::new(content))));
    groups
}

/// The objects that may share a block, apart by what they have at all.
fn classes(contents: &[Option<Content>]) -> Vec<Vec<usize>> {
    let mut names: BTreeMap<&Name, usize> = BTreeMap::new();
    for (_, name) in contents.iter().flatten().filter_map(|content| content.name.as_ref()) {
        *names.entry(name).or_default() += 1;
    }
    let mut classes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, content) in contents.iter().enumerate() {
        let Some(content) = content else { continue };
        let is_alone = content.variables.is_empty() && content.ignore_changes.is_empty();
        let is_key = |(_, name): &(Name, Name)| !name.is_empty() && names.get(name) == Some(&1);
        let is_unique = content.name.as_ref().is_some_and(is_key);
        if is_alone && is_unique {
            let attributes: Vec<&Name> = content.attributes.keys().collect();
            let class = (&content.provider, &content.allow_unknown, attributes);
            classes.entry(class).or_default().push(at);
        }
    }
    classes.into_values().collect()
}

/// Objects that would share a block.
struct Choice {
    saving: usize,
    members: Vec<usize>,
    varying: Vec<Name>,
}

/// The objects of a class whose common block saves most.
fn best(contents: &[Option<Content>], class: &[usize]) -> Option<Choice> {
    let of_class: Vec<(usize, &Content)> =
        class.iter().filter_map(|at| Some((*at, contents[*at].as_ref()?))).collect();
    let (_, first) = of_class.first()?;
    let own_name = first.name.as_ref().map(|(attribute, _)| attribute);
    let attributes: Vec<&Name> =
        first.attributes.keys().filter(|name| Some(*name) != own_name).collect();
    let columns: Vec<Vec<u32>> = attributes.iter().map(|name| numbers(&of_class, name)).collect();
    let differing: Vec<usize> = (0..attributes.len())
        .filter(|column| columns[*column].iter().any(|number| *number > 0))
        .collect();
    let mut best: Option<Choice> = None;
    for varying in subsets(&differing) {
        let mut alike: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
        let fixed = differing.iter().filter(|column| !varying.contains(column));
        let fixed: Vec<&Vec<u32>> = fixed.map(|column| &columns[*column]).collect();
        for row in 0..of_class.len() {
            let key = fixed.iter().map(|column| column[row]).collect();
            alike.entry(key).or_default().push(row);
        }
        for rows in alike.into_values().filter(|rows| rows.len() >= MEMBERS_MIN) {
            let (_, one) = of_class[rows[0]];
            let common = (0..attributes.len()).filter(|column| !varying.contains(column));
            let lines =
                common.map(|at| attributes[at].len() + one.attributes[attributes[at]].len() + 4);
            let saving = (rows.len() - 1) * (HEADER + lines.sum::<usize>());
            if best.as_ref().is_none_or(|best| saving > best.saving) {
                let members = rows.iter().map(|row| of_class[*row].0).collect();
                let varying = varying.iter().map(|at| attributes[*at].clone()).collect();
                best = Some(Choice { saving, members, varying });
            }
        }
    }
    best
}

/// The values of an attribute as numbers: equal where the values are, 0 for that of the first object.
fn numbers(contents: &[(usize, &Content)], name: &Name) -> Vec<u32> {
    let mut known: BTreeMap<&Text, u32> = BTreeMap::new();
    let number = |(_, content): &(usize, &_)| {
        let content: &Content = content;
        content.attributes[name].clone()
    };
    let texts: Vec<Text> = contents.iter().map(number).collect();
    let mut numbers = Vec::with_capacity(texts.len());
    for text in &texts {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        numbers.push(*known.entry(text).or_insert(next));
    }
    numbers
}

/// The small sets of some columns, the smallest first, as many as are tried.
fn subsets(columns: &[usize]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let mut last = 0..1;
    for _ in 0..VARYING_MAX {
        let begin = all.len();
        for at in last {
            let from = all[at].last().map_or(0, |column| column + 1);
            for column in columns.iter().filter(|column| **column >= from) {
                if all.len() < TRIED_MAX {
                    let mut set = all[at].clone();
                    set.push(*column);
                    all.push(set);
                }
            }
        }
        last = begin..all.len();
    }
    all
}

/// The common block of objects, if it is shorter than their own ones.
fn shared(contents: Vec<Content>, varying: Vec<Name>) -> Result<Many, Vec<Content>> {
    let Some(many) = contents.first().and_then(|first| block_of(first, &contents, varying)) else {
        return Err(contents);
    };
    let own: usize = contents.iter().map(|content| text::one(content).text().len()).sum();
    if text::many(&many).text().len() < own { Ok(many) } else { Err(contents) }
}

fn block_of(first: &Content, contents: &[Content], varying: Vec<Name>) -> Option<Many> {
    let (name_attribute, _) = first.name.clone()?;
    let member = |content: &Content| {
        let (_, key) = content.name.clone()?;
        let values = varying.iter().map(|name| content.attributes.get(name).cloned());
        let values = values.collect::<Option<Vec<Text>>>()?;
        Some(Member { key, place: content.place.clone(), values })
    };
    let members = contents.iter().map(member).collect::<Option<Vec<_>>>()?;
    let is_common = |name: &Name| *name != name_attribute && !varying.contains(name);
    let common = first.attributes.iter().filter(|(name, _)| is_common(name));
    Some(Many {
        ty: first.place.ty.clone(),
        name: common_name(&first.place.ty, &members),
        provider: first.provider.clone(),
        common: common.map(|(name, text)| (name.clone(), text.clone())).collect(),
        required: first.required.clone(),
        allow_unknown: first.allow_unknown.clone(),
        name_attribute,
        varying,
        members,
    })
}

/// The beginning that the names of all members share; the type where that is too short to be a name.
fn common_name(ty: &Name, members: &[Member]) -> Name {
    let keys: BTreeSet<&str> = members.iter().map(|member| &*member.key).collect();
    // In a sorted set, what the first and the last begin with alike, all do.
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return ty.clone() };
    let alike = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
    let beginning: String = alike.map(|(a, _)| a).collect();
    let end = |c: char| !c.is_alphabetic();
    match beginning.trim_end_matches(end) {
        name if name.len() > 1 => name.into(),
        _ => ty.clone(),
    }
}
