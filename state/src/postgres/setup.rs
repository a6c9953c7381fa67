//! The setup of a store in a database: its address, the names of its rows and its lock, its bounds.

use std::time::Duration;

use engine::config::settings::StateSettings;

use super::address::Address;
use super::sql::Sql;
use crate::cipher::Cipher;
use crate::environment::{Environment, Refusal};

/// The pause between two checks of a condition that is waited for.
pub(super) const POLL: Duration = Duration::from_millis(100);
/// The time during which a lost connection is made again.
const PATIENCE: Duration = Duration::from_mins(1);

/// The setup of a store in a database.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) address: Address,
    pub(super) names: Names,
    pub(super) cipher: Cipher,
    /// The location for people.
    pub(super) place: String,
    /// The time during which a lost connection is made again.
    pub(super) patience: Duration,
}

/// The names of a state in the database.
#[derive(Clone)]
pub(super) struct Names {
    pub(super) sql: Sql,
    pub(super) name: String,
    /// The number of the advisory lock.
    pub(super) key: i64,
}

impl Setup {
    /// Reads `[state]` and the environment.
    pub(super) fn new(
        settings: &StateSettings,
        environment: &Environment<'_>,
        cipher: Cipher,
    ) -> Result<Self, Refusal> {
        let name = settings.text("name").unwrap_or_default().to_owned();
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            return Err(Refusal::new(
                "the `name` of `[state]` is empty, too long or not plain text",
            ));
        }
        let schema = settings.text("schema").unwrap_or("plumb");
        let names = Names { sql: Sql::new(schema)?, key: lock_key(schema, &name), name };
        let address = Address::of(settings, environment)?;
        let place = format!("postgres://{}, {schema}, {}", address.shown(), names.name);
        Ok(Self { address, names, cipher, place, patience: PATIENCE })
    }
}

/// Returns the number of a state's lock. Two states with the same number would wait for each other.
fn lock_key(schema: &str, name: &str) -> i64 {
    let hash = blake3::hash(format!("plumb state\0{schema}\0{name}").as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}
