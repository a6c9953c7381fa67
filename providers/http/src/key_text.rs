//! Texts with keys in them, such as `Bearer ${key}`, for headers and queries.

use std::collections::BTreeSet;

use engine::address::{Name, is_name};

/// A text with places for keys.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyText(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Key(Name),
}

impl KeyText {
    /// Reads a text. The error describes the mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("it holds a control character".to_owned());
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or("a `${` is not closed")?;
            if !is_name(name) {
                return Err(format!("`{name}` is no name of a key"));
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Key(name.into()));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Returns the names of the keys in the text.
    pub(crate) fn names(&self) -> BTreeSet<&Name> {
        let keys = self.0.iter().filter_map(|piece| match piece {
            Piece::Key(name) => Some(name),
            Piece::Text(_) => None,
        });
        keys.collect()
    }

    /// Returns the text with its keys filled in. The error is the name of a key that is not set.
    pub(crate) fn fill<'k>(&self, key: &dyn Fn(&Name) -> Option<&'k str>) -> Result<String, Name> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Key(name) => filled.push_str(key(name).ok_or_else(|| name.clone())?),
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_filled_in() {
        let key = |name: &Name| match &**name {
            "user" => Some("jo"),
            "key" => Some("s3cret"),
            _ => None,
        };
        for (text, filled) in [
            ("Bearer ${key}", Ok("Bearer s3cret")),
            ("${user}:${key}", Ok("jo:s3cret")),
            ("2022-11-28", Ok("2022-11-28")),
            ("", Ok("")),
            ("x ${other}", Err("other")),
        ] {
            let found = KeyText::parse(text).unwrap().fill(&key);
            assert_eq!(found, filled.map(str::to_owned).map_err(Name::from), "{text}");
        }
        for text in ["${key", "${a b}", "${}", "a\r\nb"] {
            assert!(KeyText::parse(text).is_err(), "{text}");
        }
    }
}
