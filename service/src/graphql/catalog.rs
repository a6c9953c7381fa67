//! The catalog as GraphQL shows it.

use juniper::{GraphQLInputObject, GraphQLObject, graphql_object};

use super::{Ctx, int};
use crate::catalog::{self, gpus::Gpu};

/// The most GPUs that one machine has.
#[expect(clippy::cast_possible_truncation, reason = "it is small")]
const GPUS_MAX: i32 = catalog::GPUS_MAX as i32;

/// The GPU types to list.
#[derive(GraphQLInputObject)]
pub(super) struct GpuTypeFilter {
    pub(super) id: Option<String>,
    pub(super) ids: Option<Vec<String>>,
}

/// The GPUs whose price is asked for. This machine always has room, at one price.
#[derive(GraphQLInputObject)]
pub(super) struct GpuLowestPriceInput {
    gpu_count: Option<i32>,
    min_memory_in_gb: Option<i32>,
    min_vcpu_count: Option<i32>,
    secure_cloud: Option<bool>,
    data_center_id: Option<String>,
    country_code: Option<String>,
    include_ai_api: Option<bool>,
    allowed_cuda_versions: Option<Vec<String>>,
    compliance: Option<Vec<String>>,
}

/// The lowest price of a number of GPUs.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct LowestPrice {
    minimum_bid_price: Option<f64>,
    uninterruptable_price: Option<f64>,
    stock_status: Option<String>,
    count_available: Option<i32>,
}

/// A GPU type.
pub(super) struct GpuView(pub(super) &'static Gpu);

#[graphql_object(context = Ctx, name = "GpuType")]
impl GpuView {
    fn id(&self) -> &str {
        self.0.id
    }

    fn display_name(&self) -> String {
        self.0.name()
    }

    fn manufacturer(&self) -> &str {
        self.0.manufacturer()
    }

    fn memory_in_gb(&self) -> i32 {
        int(self.0.memory)
    }

    fn secure_cloud() -> bool {
        true
    }

    fn community_cloud() -> bool {
        true
    }

    fn secure_price(&self) -> f64 {
        self.0.secure_price()
    }

    fn community_price(&self) -> f64 {
        self.0.community_price()
    }

    fn max_gpu_count() -> i32 {
        GPUS_MAX
    }

    fn max_gpu_count_secure_cloud() -> i32 {
        GPUS_MAX
    }

    fn max_gpu_count_community_cloud() -> i32 {
        GPUS_MAX
    }

    fn lowest_price(&self, input: Option<GpuLowestPriceInput>) -> LowestPrice {
        let count = input.and_then(|input| input.gpu_count).unwrap_or(1).clamp(1, GPUS_MAX);
        let price = self.0.community_price() * f64::from(count);
        LowestPrice {
            minimum_bid_price: None,
            uninterruptable_price: Some(price),
            stock_status: Some("High".to_owned()),
            count_available: None,
        }
    }

    fn cuda_cores() -> Option<i32> {
        None
    }

    fn one_week_price() -> Option<f64> {
        None
    }

    fn one_month_price() -> Option<f64> {
        None
    }

    fn three_month_price() -> Option<f64> {
        None
    }

    fn six_month_price() -> Option<f64> {
        None
    }

    fn secure_spot_price() -> Option<f64> {
        None
    }

    fn community_spot_price() -> Option<f64> {
        None
    }
}
