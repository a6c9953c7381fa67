//! Names that mark a value as a secret if no schema does, mostly names of environment variables.

/// Words at the end of a name of something secret.
const ENDS: [&str; 8] =
    ["apikey", "credential", "credentials", "passphrase", "passwd", "password", "secret", "token"];
/// Words before `key` in the name of a secret key.
const KEYS: [&str; 7] = ["access", "api", "auth", "encryption", "private", "secret", "signing"];

/// Returns true if an entry of this name counts as a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    match words.as_slice() {
        [.., before, "key"] => KEYS.contains(before),
        [.., last] => ENDS.contains(last),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for secret in ["HF_TOKEN", "password", "DB_PASSWORD", "OPENAI_API_KEY", "client-secret"] {
            assert!(is_secret_name(secret), "{secret}");
        }
        for plain in ["MAX_TOKENS", "TOKENIZER", "PUBLIC_KEY", "KEY", "SORT_KEY", "MODEL", ""] {
            assert!(!is_secret_name(plain), "{plain}");
        }
    }
}
