//! Secrets in a plan: those that stand where it would show them, those that have just become some, and those that
//! nobody has any more. How a secret is sealed is not here but in [`crate::stored`].

pub(super) mod parting;
pub(super) mod sources;
pub(super) mod turned;
