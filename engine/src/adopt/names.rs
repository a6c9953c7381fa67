//! Names of blocks and variables: valid, unique, and similar to the names of the objects.

use std::collections::BTreeSet;

use crate::address::Name;
use crate::config::Config;

/// The longest name that is made, in bytes.
const LENGTH_MAX: usize = 60;

/// The names that are taken already.
pub(super) struct Names {
    /// The names of resources, with their types.
    blocks: BTreeSet<(Name, Name)>,
    variables: BTreeSet<Name>,
}

impl Names {
    /// Returns the names that a spec uses.
    pub(super) fn of(config: &Config) -> Self {
        let own = config.resources.keys().filter(|block| block.module.is_root());
        Self {
            blocks: own.map(|block| (block.ty.clone(), block.name.clone())).collect(),
            variables: config.variables.keys().cloned().collect(),
        }
    }

    /// Returns a new name of a resource, made from the name of an object.
    pub(super) fn block(&mut self, ty: &Name, text: &str) -> Name {
        let wanted = slug(text, ty, '-');
        let name = unique(&wanted, '-', |name| self.blocks.contains(&(ty.clone(), name.into())));
        self.blocks.insert((ty.clone(), name.clone()));
        name
    }

    /// Returns a new name of a variable, made from its parts.
    pub(super) fn variable(&mut self, parts: &[&str]) -> Name {
        let wanted = slug(&parts.join("_").replace('-', "_"), "value", '_');
        let name = unique(&wanted, '_', |name| self.variables.contains(name));
        self.variables.insert(name.clone());
        name
    }
}

/// Returns a text with the characters replaced that a name cannot have. If nothing is left, it is
/// `otherwise`; if it does not begin with a letter, `otherwise` is put before it.
fn slug(text: &str, otherwise: &str, separator: char) -> String {
    let mut slug = String::new();
    for c in text.chars().take(LENGTH_MAX * 2) {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_' | '-') => slug.push(c),
            _ if slug.ends_with(separator) => {}
            _ => slug.push(separator),
        }
    }
    let slug = slug.trim_matches(['-', '_']);
    let slug = if slug.starts_with(|c: char| c.is_ascii_lowercase()) {
        slug.to_owned()
    } else if slug.is_empty() {
        otherwise.to_owned()
    } else {
        format!("{otherwise}{separator}{slug}")
    };
    // All of it is ASCII.
    slug[..slug.len().min(LENGTH_MAX)].trim_end_matches(['-', '_']).to_owned()
}

/// Returns the first of `x`, `x-2`, `x-3`, … that is free.
fn unique(wanted: &str, separator: char, is_taken: impl Fn(&str) -> bool) -> Name {
    if !is_taken(wanted) {
        return wanted.into();
    }
    let numbered = (2_u64..).map(|number| format!("{wanted}{separator}{number}"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::is_name;

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = Names::of(&Config::default());
        let ty = Name::from("box");
        let long = "x".repeat(500);
        for (text, name) in [
            ("chat", "chat"),
            ("chat", "chat-2"),
            ("Chat", "chat-3"),
            ("My chat (EU)", "my-chat-eu"),
            ("3d", "box-3d"),
            ("模型", "box"),
            ("", "box-2"),
            ("--", "box-3"),
            ("ünï", "n"),
            (&long, &long[..LENGTH_MAX]),
        ] {
            let made = names.block(&ty, text);
            assert_eq!(&*made, name, "{text}");
            assert!(is_name(&made));
        }
        assert_eq!(&*names.block(&"bag".into(), "chat"), "chat");
        assert_eq!(&*names.variable(&["box", "my-chat", "key"]), "box_my_chat_key");
        assert_eq!(&*names.variable(&["box", "my-chat", "key"]), "box_my_chat_key_2");
    }
}
