//! The settings of the one account.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// The settings of the account.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    id: String,
    /// The public keys for SSH, each one line of an `authorized_keys` file.
    pub(crate) ssh_keys: Vec<String>,
}

const ID: &str = "account";

impl Record for Settings {
    const KIND: &'static str = "settings";
    const NOUN: &'static str = "account";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &'static str {
        ""
    }
}

/// Returns the SSH keys of the account.
pub(crate) fn ssh_keys(conn: &Connection) -> Result<Vec<String>, Problem> {
    let settings = objects::find::<Settings>(conn, ID)?;
    Ok(settings.map(|settings| settings.ssh_keys).unwrap_or_default())
}

/// Replaces the SSH keys of the account.
pub(crate) fn set_ssh_keys(tx: &Tx<'_>, ssh_keys: Vec<String>) -> Result<(), Problem> {
    let settings = Settings { id: ID.to_owned(), ssh_keys };
    match objects::find::<Settings>(tx.conn, ID)? {
        Some(_) => objects::update(tx, &settings),
        None => objects::insert(tx, &settings),
    }
}
