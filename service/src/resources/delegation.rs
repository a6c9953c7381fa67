//! Delegations: repositories of another registry from which images may be pulled. This service
//! pulls no images; it only stores the delegations.

use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// A delegation of a repository in the Elastic Container Registry of Amazon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delegation {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) aws_user: String,
    pub(crate) repository: String,
    pub(crate) tag: String,
    pub(crate) aws_region: String,
    pub(crate) created_at: i64,
}

impl Record for Delegation {
    const KIND: &'static str = "delegation";
    const NOUN: &'static str = "delegation";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("")
    }
}

/// Makes a delegation of `arn:aws:ecr:REGION:ACCOUNT:repository/NAME[:TAG]`.
pub(crate) fn create(
    tx: &Tx<'_>,
    resource: &str,
    name: Option<String>,
) -> Result<Delegation, Problem> {
    let parts: Vec<&str> = resource.splitn(6, ':').collect();
    let ["arn", "aws", "ecr", region, account, path] = parts[..] else { return Err(malformed()) };
    let repository = path.strip_prefix("repository/").ok_or_else(malformed)?;
    let (repository, tag) = repository.split_once(':').unwrap_or((repository, "latest"));
    if [region, account, repository, tag].contains(&"") {
        return Err(malformed());
    }
    let delegation = Delegation {
        id: format!("deleg_{}", ids::short()),
        name,
        aws_user: account.to_owned(),
        repository: repository.to_owned(),
        tag: tag.to_owned(),
        aws_region: region.to_owned(),
        created_at: now_ms(),
    };
    objects::insert(tx, &delegation)?;
    Ok(delegation)
}

fn malformed() -> Problem {
    Problem::invalid("resource must be arn:aws:ecr:REGION:ACCOUNT:repository/NAME")
}
