//! Endpoints as GraphQL shows them.

use juniper::{FieldResult, GraphQLObject, graphql_object};

use super::account::VolumeView;
use super::pods::PodView;
use super::templates::{Pair, TemplateView, pairs, text};
use super::{Ctx, int};
use crate::clock::iso;
use crate::resources::endpoint::{Endpoint, FlashBoot, TIMEOUT_DEFAULT_MS};
use crate::resources::template::Template;
use crate::resources::volume::Volume;
use crate::store::objects;

/// A mounted volume.
#[derive(GraphQLObject)]
#[graphql(name = "MountedNetworkVolume", context = Ctx)]
pub(super) struct MountView {
    network_volume_id: String,
    data_center_id: Option<String>,
}

/// An endpoint.
pub(super) struct EndpointView(pub(super) Endpoint);

impl EndpointView {
    async fn volume(context: &Ctx, id: &str) -> FieldResult<Option<Volume>> {
        let id = id.to_owned();
        let read = move |conn: &rusqlite::Connection| objects::find::<Volume>(conn, &id);
        Ok(context.app.store.read(read).await?)
    }
}

#[graphql_object(context = Ctx, name = "Endpoint")]
impl EndpointView {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn name(&self, context: &Ctx) -> String {
        context.app.shown_name(&self.0)
    }

    fn user_id(context: &Ctx) -> &str {
        context.app.user_id()
    }

    /// Always null: the keys of workers are not shown.
    fn ai_key() -> Option<String> {
        None
    }

    fn ide_pod_id() -> Option<String> {
        None
    }

    #[graphql(name = "activeBuildid")]
    fn active_build_id() -> Option<String> {
        None
    }

    fn template_id(&self) -> &str {
        &self.0.template_id
    }

    async fn template(&self, context: &Ctx) -> FieldResult<Option<TemplateView>> {
        let id = self.0.template_id.clone();
        let read = move |conn: &rusqlite::Connection| objects::find::<Template>(conn, &id);
        Ok(context.app.store.read(read).await?.map(TemplateView))
    }

    #[graphql(name = "type")]
    fn kind(&self) -> &str {
        &self.0.kind
    }

    fn compute_type(&self) -> &str {
        &self.0.compute_type
    }

    fn gpu_ids(&self) -> &str {
        &self.0.gpu_ids
    }

    fn gpu_count(&self) -> i32 {
        int(self.0.gpu_count)
    }

    fn instance_ids(&self) -> &[String] {
        &self.0.instance_ids
    }

    fn workers_min(&self) -> i32 {
        int(self.0.workers_min)
    }

    fn workers_max(&self) -> i32 {
        int(self.0.workers_max)
    }

    fn workers_standby(&self) -> i32 {
        int(self.0.workers_standby)
    }

    #[graphql(name = "workersPFBTarget")]
    fn workers_pfb_target(&self) -> i32 {
        int(self.0.workers_pfb_target)
    }

    fn idle_timeout(&self) -> i32 {
        int(self.0.idle_timeout)
    }

    fn scaler_type(&self) -> &str {
        &self.0.scaler_type
    }

    fn scaler_value(&self) -> f64 {
        self.0.scaler_value
    }

    fn execution_timeout_ms(&self) -> i32 {
        int(self.0.execution_timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS))
    }

    fn flash_boot_type(&self) -> FlashBoot {
        self.0.flash_boot
    }

    fn locations(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.locations.as_deref())
    }

    fn network_volume_id(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.network_volume_id.as_deref())
    }

    async fn network_volume(&self, context: &Ctx) -> FieldResult<Option<VolumeView>> {
        match &self.0.network_volume_id {
            Some(id) => Ok(Self::volume(context, id).await?.map(VolumeView)),
            None => Ok(None),
        }
    }

    async fn network_volume_ids(&self, context: &Ctx) -> FieldResult<Vec<MountView>> {
        let mut mounts = Vec::new();
        for id in &self.0.network_volume_ids {
            let volume = Self::volume(context, id).await?;
            mounts.push(MountView {
                network_volume_id: id.clone(),
                data_center_id: volume.map(|volume| volume.data_center_id),
            });
        }
        Ok(mounts)
    }

    fn allowed_cuda_versions(&self) -> String {
        self.0.allowed_cuda_versions.join(",")
    }

    fn min_cuda_version(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.min_cuda_version.as_deref())
    }

    fn compliance(&self) -> &[String] {
        &self.0.compliance
    }

    fn model_references(&self) -> &[String] {
        &self.0.model_references
    }

    fn hub_release_id(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.hub_release_id.as_deref())
    }

    fn flash_environment_id(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.flash_environment_id.as_deref())
    }

    fn env(&self) -> Vec<Pair> {
        pairs(&self.0.env)
    }

    fn version(&self) -> i32 {
        int(self.0.version)
    }

    fn created_at(&self) -> String {
        iso(self.0.created_at)
    }

    /// The live workers.
    fn pods(&self, context: &Ctx) -> Vec<PodView> {
        let workers = context.app.pods(&self.0.id).into_iter();
        workers.map(|pod| PodView::of_worker(pod.id, pod.desired_status)).collect()
    }
}
