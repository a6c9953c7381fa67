//! Names and texts that mark a value as a secret if no schema does: names of environment variables, and
//! addresses with a password.

use crate::value::Value;

/// Words at the end of a name of something secret.
const ENDS: [&str; 8] =
    ["apikey", "credential", "credentials", "passphrase", "passwd", "password", "secret", "token"];
/// Words before `key` in the name of a secret key.
const KEYS: [&str; 7] = ["access", "api", "auth", "encryption", "private", "secret", "signing"];

/// Returns true if an entry of this name counts as a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    match words.as_slice() {
        [.., before, "key"] => KEYS.contains(before),
        [.., last] => ENDS.contains(last),
        [] => false,
    }
}

/// Returns true if a text has an address with a password in it, such as `redis://user:password@host`.
pub(crate) fn has_url_password(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | ',');
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(ends).next().unwrap_or_default();
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Returns true if a value counts as a secret: a text by itself, or an entry of a map by its name, at any
/// depth.
pub(crate) fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => has_url_password(text),
        Value::List(items) | Value::Set(items) => items.iter().any(holds_secret),
        Value::Map(entries) => entries.iter().any(|(name, value)| is_secret_entry(name, value)),
        _ => false,
    }
}

/// Returns true if an entry of a map counts as a secret. An empty text is none.
pub(crate) fn is_secret_entry(name: &str, value: &Value) -> bool {
    let is_text = value.as_str().is_some_and(|text| !text.is_empty());
    is_text && is_secret_name(name) || holds_secret(value)
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

    #[test]
    fn addresses_with_passwords() {
        for secret in [
            "postgres://app:hunter2@db.example/app",
            "amqp://:hunter2@mq",
            "url=redis://u:p@[::1]:6379, x",
            "https://h.example/x then https://u:p@h.example",
        ] {
            assert!(has_url_password(secret), "{secret}");
        }
        for plain in [
            "https://h.example:8080/a@b:c",
            "ssh://git@h.example/x",
            "https://user:@h.example",
            "mail a:b@c.example",
            "://",
            "",
        ] {
            assert!(!has_url_password(plain), "{plain}");
        }
    }
}
