//! Names for the types of a descriptor: each is its noun, with as many nouns before it as make it unique.

use std::collections::BTreeMap;

use crate::draft::TypeDraft;
use crate::names::{singular, type_name};

/// Returns a name for each type, in their order.
pub(crate) fn type_names(drafts: &[TypeDraft], provider: &str) -> Vec<String> {
    let mut words = vec![1; drafts.len()];
    let longest = drafts.iter().map(|draft| draft.nouns.len()).max().unwrap_or(1);
    for _ in 0..longest {
        let names: Vec<String> =
            drafts.iter().zip(&words).map(|(draft, count)| name(draft, *count, provider)).collect();
        let mut alike: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            alike.entry(name).or_default().push(index);
        }
        for same in alike.values().filter(|same| same.len() > 1) {
            let depth = |index: &usize| drafts[*index].depth;
            let least = same.iter().map(depth).min().unwrap_or_default();
            let is_alone = same.iter().filter(|index| depth(index) == least).count() == 1;
            for index in same.iter().filter(|index| !(is_alone && depth(index) == least)) {
                words[*index] += 1;
            }
        }
    }
    let names = drafts.iter().zip(&words).map(|(draft, count)| name(draft, *count, provider));
    numbered(names.collect())
}

/// Returns the name of a type with some of its nouns.
fn name(draft: &TypeDraft, count: usize, provider: &str) -> String {
    let mut nouns: Vec<String> =
        draft.nouns.iter().take(count).map(|noun| singular(noun)).collect();
    nouns.reverse();
    nouns.dedup();
    if nouns.is_empty() {
        return "object".to_owned();
    }
    type_name(&nouns.join("_"), provider)
}

/// Adds numbers to names that are still equal.
fn numbered(names: Vec<String>) -> Vec<String> {
    let mut taken: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut numbers = (2..).map(|number| format!("{name}_{number}"));
        let free =
            if taken.contains(&name) { numbers.find(|it| !taken.contains(it)) } else { None };
        taken.push(free.unwrap_or(name));
    }
    taken
}
