//! Secrets: values that environments refer to by name, and that no answer shows.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::description::shape::Pattern;
use crate::ids;
use crate::problem::{Kind, Problem};
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// The form of the name of a secret.
pub(crate) const NAME: &Pattern = &Pattern {
    expression: r"^(?!RUNPOD)[a-zA-Z_][a-zA-Z0-9_.\-/]*$",
    holds: is_name,
    rule: "begin with a letter or _, go on with letters, digits and _ . - /, and not begin with RUNPOD",
};

/// The most characters of the name of a secret.
pub(crate) const NAME_MAX: usize = 191;

/// The prefix of a reference to a secret in an environment, between `{{` and `}}`.
const PREFIX: &str = "RUNPOD_SECRET_";

/// A secret. There is no `Debug`, because it holds the value.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Secret {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) created_at: i64,
    pub(crate) value_set_at: i64,
    value: String,
}

impl Record for Secret {
    const KIND: &'static str = "secret";
    const NOUN: &'static str = "secret";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte));
    first && rest && !name.starts_with("RUNPOD")
}

/// Makes a secret; its name must be free.
pub(crate) fn create(
    tx: &Tx<'_>,
    name: String,
    value: String,
    description: Option<String>,
) -> Result<Secret, Problem> {
    if !is_name(&name) || name.len() > NAME_MAX {
        return Err(Problem::invalid(format!("name must {}", NAME.rule)));
    }
    if objects::named::<Secret>(tx.conn, &name)?.is_some() {
        return Err(Problem::new(Kind::Conflict, format!("a secret \"{name}\" exists already")));
    }
    let (now, description) = (now_ms(), description.unwrap_or_default());
    let (created_at, value_set_at) = (now, now);
    let secret =
        Secret { id: ids::registry_auth(), name, description, created_at, value_set_at, value };
    objects::insert(tx, &secret)?;
    Ok(secret)
}

/// Changes the value or the description of a secret. Workers that start afterwards get the new value.
pub(crate) fn update(
    tx: &Tx<'_>,
    id: &str,
    value: Option<String>,
    description: Option<String>,
) -> Result<Secret, Problem> {
    let mut secret: Secret = objects::get(tx.conn, id)?;
    if let Some(value) = value {
        secret.value = value;
        secret.value_set_at = now_ms();
    }
    secret.description = description.unwrap_or(secret.description);
    objects::update(tx, &secret)?;
    // The store keeps an object's state before its last change, for lists that lag behind. The old
    // value of a secret must not be kept.
    objects::forget_previous(tx, id)?;
    Ok(secret)
}

/// Returns the values of all secrets, by their names.
pub(crate) fn values(conn: &Connection) -> Result<BTreeMap<String, String>, Problem> {
    let secrets = objects::list::<Secret>(conn, 0)?;
    Ok(secrets.into_iter().map(|secret| (secret.name, secret.value)).collect())
}

/// Replaces the references to secrets in an environment by the values. A reference to an unknown
/// secret stays as it is.
pub(crate) fn fill(env: &mut BTreeMap<String, String>, values: &BTreeMap<String, String>) {
    for text in env.values_mut().filter(|text| text.contains(PREFIX)) {
        *text = filled(text, values);
    }
}

fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inside, tail)) = after.split_once("}}") else { break };
        let value = inside.trim().strip_prefix(PREFIX).and_then(|name| values.get(name));
        filled.push_str(before);
        match value {
            Some(value) => filled.push_str(value),
            None => filled.extend(["{{", inside, "}}"]),
        }
        rest = tail;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_get_the_values_of_secrets() {
        let values = BTreeMap::from([("token".to_owned(), "s3cr3t".to_owned())]);
        let check = |text: &str, expected: &str| assert_eq!(filled(text, &values), expected);
        check("{{ RUNPOD_SECRET_token }}", "s3cr3t");
        check("a {{RUNPOD_SECRET_token}} b {{ RUNPOD_SECRET_token }}", "a s3cr3t b s3cr3t");
        check("{{ RUNPOD_SECRET_other }} {{ x", "{{ RUNPOD_SECRET_other }} {{ x");
        check("RUNPOD_SECRET_token", "RUNPOD_SECRET_token");
    }

    #[test]
    fn names_have_a_form() {
        assert!(is_name("hf_token") && is_name("_a/b.c-d"));
        assert!(!is_name("") && !is_name("1a") && !is_name("a b") && !is_name("RUNPOD_x"));
    }
}
