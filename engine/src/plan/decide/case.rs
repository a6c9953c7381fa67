//! A case: the inputs of one decision.

use crate::address::Address;
use crate::config::ResourceConfig;
use crate::digest::SealKey;
use crate::plan::draft::Flags;
use crate::plan::evaluate::desired::Wanted;
use crate::plan::facts::deferrals::Deferral;
use crate::plan::facts::prior::Live;

/// The inputs of one decision.
#[derive(Clone, Copy)]
pub(in crate::plan) struct Case<'a> {
    pub(in crate::plan) resource: &'a ResourceConfig,
    pub(in crate::plan) address: &'a Address,
    pub(in crate::plan) wanted: &'a Wanted,
    pub(in crate::plan) live: Option<&'a Live<'a>>,
    /// True if the state has an object that is gone.
    pub(in crate::plan) vanished: bool,
    pub(in crate::plan) flags: Flags,
    /// The reason to leave the instance alone; none if the plan may change it.
    pub(in crate::plan) deferral: Option<&'a Deferral>,
    /// True if `--replace` names the address.
    pub(in crate::plan) asked: bool,
    pub(in crate::plan) key: &'a SealKey,
}
