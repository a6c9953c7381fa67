//! Commands that a user may paste: what a shell would take apart is quoted.

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted("environments/dev-1"), "environments/dev-1");
        assert_eq!(quoted("with space/x"), "'with space/x'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted("a;b"), "'a;b'");
        assert_eq!(quoted(""), "''");
    }
}
