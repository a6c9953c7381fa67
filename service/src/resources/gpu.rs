//! The choice of GPUs: GraphQL writes it as pools, REST as types. Each form can be converted into
//! the other.

use crate::catalog;
use crate::field_name::{GPU_POOLS, GPU_TYPES};
use crate::problem::Problem;

use super::comma_list;

/// Checks GraphQL's form: a comma-separated list of pools, in which `-TYPE` excludes a type.
pub(crate) fn check_pools(gpu_ids: &str) -> Result<(), Problem> {
    for part in comma_list(gpu_ids) {
        let known = match part.strip_prefix('-') {
            Some(excluded) => catalog::is_gpu_type(excluded),
            None => catalog::is_pool(&part),
        };
        if !known {
            let pools: Vec<_> = catalog::POOLS.iter().map(|(pool, _)| *pool).collect();
            let (field, pools) = (GPU_POOLS, pools.join(", "));
            return Err(Problem::broken_rule(|version| {
                let field = field.of(version);
                format!("{field} must be a comma-separated list of {pools}, not \"{part}\"")
            }));
        }
    }
    Ok(())
}

/// Checks REST's form: a list of ids of GPU types.
pub(crate) fn check_types(gpu_type_ids: &[String]) -> Result<(), Problem> {
    match gpu_type_ids.iter().find(|id| !catalog::is_gpu_type(id)) {
        Some(unknown) => Err(Problem::broken_rule(|version| {
            format!("{} has an unknown GPU type: \"{unknown}\"", GPU_TYPES.of(version))
        })),
        None => Ok(()),
    }
}

/// Returns the types that a list of pools contains.
pub(crate) fn types_of(gpu_ids: &str) -> Vec<String> {
    let parts = comma_list(gpu_ids);
    let excluded: Vec<_> = parts.iter().filter_map(|part| part.strip_prefix('-')).collect();
    let mut types = Vec::new();
    for part in &parts {
        let members = catalog::POOLS.iter().find(|(pool, _)| pool == part);
        let members = members.map_or(&[][..], |(_, members)| members);
        let chosen = members.iter().filter(|member| !excluded.contains(member));
        types.extend(chosen.map(|member| (*member).to_owned()));
    }
    types
}

/// Returns the pools of the types, as a comma-separated list in the order of the types. Types
/// without a pool are left out.
pub(crate) fn pools_of(gpu_type_ids: &[String]) -> String {
    let mut pools: Vec<&str> = Vec::new();
    for pool in gpu_type_ids.iter().filter_map(|id| catalog::pool_of(id)) {
        if !pools.contains(&pool) {
            pools.push(pool);
        }
    }
    pools.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_types_map_to_each_other() {
        assert_eq!(
            types_of("ADA_24,AMPERE_48"),
            ["NVIDIA GeForce RTX 4090", "NVIDIA RTX A6000", "NVIDIA A40"]
        );
        assert_eq!(types_of("AMPERE_48,-NVIDIA A40"), ["NVIDIA RTX A6000"]);
        assert_eq!(pools_of(&types_of("ADA_24,AMPERE_48")), "ADA_24,AMPERE_48");
        assert!(check_pools("ADA_24, AMPERE_48").is_ok() && check_pools("").is_ok());
        assert!(check_pools("ADA_25").unwrap_err().message.contains("ADA_24"));
        assert!(check_pools("ADA_24,-nothing").is_err());
        assert!(check_types(&["NVIDIA L4".into(), "L4".into()]).is_err());
    }
}
