//! Patterns of names.

use crate::expression::functions::globs;

/// Returns true if a name matches a pattern, in which `*` stands for any text and `?` for one character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let characters = |text: &str| text.chars().collect::<Vec<char>>();
    let is_star = |piece: &char| *piece == '*';
    globs::matches(&characters(pattern), &characters(name), &is_star, &|piece, character| {
        *piece == '?' || piece == character
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_names() {
        for (pattern, name) in [
            ("*", ""),
            ("chat-*", "chat-eu"),
            ("*-eu", "chat-eu"),
            ("c*t-??", "chat-eu"),
            ("a**b", "ab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("?", ""), ("chat", "chat-eu"), ("*x", "chat"), ("a*b*c", "acb")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // Even a bad pattern takes little time.
        assert!(!matches(&"*b".repeat(200), &"a".repeat(1000)));
    }
}
