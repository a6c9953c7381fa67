//! The root of queries.

use juniper::{FieldResult, graphql_object};

use super::Ctx;
use super::account::Account;
use super::catalog::{GpuTypeFilter, GpuView};
use super::cpus::{CpuFlavor, CpuFlavorInput};
use super::pods::{self, PodFilter, PodView};
use super::templates::TemplateView;
use crate::catalog::gpus::{self, Gpu};
use crate::resources::template::Template;
use crate::store::objects;

/// The root of queries.
pub(super) struct Query;

#[graphql_object(context = Ctx)]
impl Query {
    /// The account that the key belongs to.
    fn myself() -> Account {
        Account
    }

    /// A pod by its id.
    async fn pod(context: &Ctx, input: Option<PodFilter>) -> FieldResult<Option<PodView>> {
        match input {
            Some(input) => pods::find(context, input.pod_id).await,
            None => Ok(None),
        }
    }

    /// The GPU types, or the one with this id.
    fn gpu_types(input: Option<GpuTypeFilter>) -> Vec<GpuView> {
        let (id, ids) = input.map_or((None, None), |input| (input.id, input.ids));
        let wanted = |gpu: &&Gpu| {
            id.as_ref().is_none_or(|id| id == gpu.id)
                && ids.as_ref().is_none_or(|ids| ids.iter().any(|id| id == gpu.id))
        };
        gpus::all().iter().filter(wanted).map(GpuView).collect()
    }

    /// The CPU flavours, or the one with this id.
    fn cpu_flavors(input: Option<CpuFlavorInput>) -> Vec<CpuFlavor> {
        CpuFlavorInput::wanted(input)
    }

    /// A template by its id.
    async fn pod_template(context: &Ctx, id: String) -> FieldResult<Option<TemplateView>> {
        let read = move |conn: &rusqlite::Connection| objects::find::<Template>(conn, &id);
        Ok(context.app.store.read(read).await?.map(TemplateView))
    }
}
