//! Patterns of names.

/// Returns true if a name matches a pattern, in which `*` stands for any text and `?` for one character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut here) = (0, 0);
    // The last `*`, and the place that it reaches to so far.
    let mut star: Option<(usize, usize)> = None;
    while here < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, here));
                at += 1;
            }
            (Some(c), _) if *c == '?' || *c == name[here] => {
                at += 1;
                here += 1;
            }
            (_, Some((begin, reached))) => {
                star = Some((begin, reached + 1));
                at = begin + 1;
                here = reached + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
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
        // No pattern takes long.
        assert!(!matches(&"*b".repeat(200), &"a".repeat(1000)));
    }
}
