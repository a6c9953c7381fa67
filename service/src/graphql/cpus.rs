//! CPU flavours as GraphQL shows them. This machine always has room for one more worker.

use juniper::{GraphQLInputObject, GraphQLObject, graphql_object};

use super::Ctx;
use crate::catalog::CPU_FLAVORS;

/// The flavour to list.
#[derive(GraphQLInputObject)]
pub(super) struct CpuFlavorInput {
    id: Option<String>,
}

impl CpuFlavorInput {
    /// Returns the wanted flavours, in the order of the catalog.
    pub(super) fn wanted(input: Option<CpuFlavorInput>) -> Vec<CpuFlavor> {
        let id = input.and_then(|input| input.id);
        let is_wanted = |flavor: &&&str| id.as_ref().is_none_or(|id| id == **flavor);
        CPU_FLAVORS.iter().filter(is_wanted).map(|flavor| CpuFlavor(flavor)).collect()
    }
}

/// The size and the place of the flavour.
#[derive(GraphQLInputObject)]
pub(super) struct SpecificsInput {
    data_center_id: Option<String>,
    instance_id: Option<String>,
}

/// A flavour in one size.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct CpuSpecifics {
    stock_status: Option<String>,
}

/// A flavour.
pub(super) struct CpuFlavor(&'static str);

#[graphql_object(context = Ctx)]
impl CpuFlavor {
    fn id(&self) -> &str {
        self.0
    }

    fn display_name(&self) -> &str {
        self.0
    }

    fn specifics(&self, input: Option<SpecificsInput>) -> CpuSpecifics {
        let instance = input.and_then(|input| {
            drop(input.data_center_id);
            input.instance_id
        });
        let is_of_flavor =
            |instance: String| instance.split_once('-').is_some_and(|(flavor, _)| flavor == self.0);
        let is_there = instance.is_none_or(is_of_flavor);
        CpuSpecifics { stock_status: is_there.then(|| "High".to_owned()) }
    }
}
