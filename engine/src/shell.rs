//! Commands that a user may paste into a shell: words that a shell would split or interpret are quoted.

/// Returns a word in the form that a POSIX shell reads back as one word.
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
