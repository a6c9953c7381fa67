//! The diagnostics of reading a spec, one constructor each.
//!
//! A summary is short and always the same for one kind of mistake; the label describes the mistake at the
//! underlined words; the help says what to write instead. None of them shows a value.

mod blocks;
mod refactorings;
mod text;
mod values;

pub use blocks::*;
pub use refactorings::*;
pub use text::*;
pub use values::*;

use crate::diagnostics::{Advice, Diagnostic, nearest};
use crate::types::Type;

/// Returns a type in plain words: an object has too many attributes to list.
fn plainly(ty: &Type) -> String {
    match ty {
        Type::Object(_) => "object".to_owned(),
        Type::List(item) => format!("list({})", plainly(item)),
        Type::Set(item) => format!("set({})", plainly(item)),
        Type::Map(item) => format!("map({})", plainly(item)),
        ty => ty.to_string(),
    }
}

impl Diagnostic {
    /// Adds "did you mean …" as advice on a word, or lists all words that are possible.
    #[must_use]
    pub(super) fn choices<'a>(
        self,
        word: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        match nearest(word, known.clone()) {
            Some(near) => self.help(Advice::meant(word, near)),
            None => self.help(format!("known are {}", listed(known))),
        }
    }
}

/// Returns words in backticks with commas; of many, only the first dozen.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let words: Vec<&str> = words.into_iter().collect();
    let mut text: Vec<String> =
        words.iter().take(SHOWN).map(|word| format!("`{}`", shown(word))).collect();
    if words.len() > SHOWN {
        text.push(format!("{} more", words.len() - SHOWN));
    }
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

/// Returns a word that the user wrote in one line of bounded length, without control characters.
pub(super) fn shown(word: &str) -> String {
    const LENGTH_MAX: usize = 60;
    let clean = |text: &str| text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    match word.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", clean(&word[..end])),
        None => clean(word),
    }
}
