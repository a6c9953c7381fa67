//! Credentials for private container registries.
//!
//! Username and password can be written, but not read. This service pulls no images, so it checks
//! them and does not store them. Only the object with its name is stored.

use serde::{Deserialize, Serialize};

use super::{check_name, required, template::Template};
use crate::clock::now_ms;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// A registry credential.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryAuth {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The time when username and password were last given, in milliseconds since 1970.
    pub(crate) rotated_at: i64,
}

impl Record for RegistryAuth {
    const KIND: &'static str = "registry_auth";
    const NOUN: &'static str = "container registry auth";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// The settings of a credential that a client can give. There is no `Debug`, because it holds a
/// password.
#[derive(Default)]
pub(crate) struct RegistryInput {
    pub(crate) name: Option<String>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
}

impl RegistryInput {
    fn check_credentials(&self) -> Result<(), Problem> {
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if !given(&self.username) {
            return Err(required("username"));
        }
        if !given(&self.password) {
            return Err(required("password"));
        }
        Ok(())
    }
}

/// Makes a credential; its name must be free.
pub(crate) fn create(tx: &Tx<'_>, input: RegistryInput) -> Result<RegistryAuth, Problem> {
    input.check_credentials()?;
    let name = input.name.ok_or_else(|| required("name"))?;
    check_name(&name)?;
    if objects::named::<RegistryAuth>(tx.conn, &name)?.is_some() {
        return Err(Problem::invalid(format!(
            "container registry auth name must be unique: \"{name}\" already exists"
        )));
    }
    let auth = RegistryAuth { id: ids::registry_auth(), name, rotated_at: now_ms() };
    objects::insert(tx, &auth)?;
    Ok(auth)
}

/// Replaces username and password of a credential.
pub(crate) fn rotate(
    tx: &Tx<'_>,
    id: &str,
    input: &RegistryInput,
) -> Result<RegistryAuth, Problem> {
    let mut auth: RegistryAuth = objects::get(tx.conn, id)?;
    input.check_credentials()?;
    auth.rotated_at = now_ms();
    objects::update(tx, &auth)?;
    Ok(auth)
}

/// Removes a credential that no pod uses. Templates that used it have none afterwards.
pub(crate) fn delete(tx: &Tx<'_>, id: &str) -> Result<(), Problem> {
    objects::get::<RegistryAuth>(tx.conn, id)?;
    for holder in objects::users(tx.conn, id)? {
        if let Some(mut template) = objects::find::<Template>(tx.conn, &holder)? {
            template.container_registry_auth_id = None;
            objects::update(tx, &template)?;
        } else {
            return Err(Problem::invalid(format!(
                "container registry auth \"{id}\" is in use by pod {holder}"
            )));
        }
    }
    objects::delete::<RegistryAuth>(tx, id)
}
