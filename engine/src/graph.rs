//! Which resource blocks depend on which.

pub(crate) mod links;
