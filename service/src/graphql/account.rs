//! The account: the object from which a client lists all others.

use juniper::{FieldResult, GraphQLObject, graphql_object};

use super::endpoints::EndpointView;
use super::flash::FlashApp;
use super::pods::PodView;
use super::templates::TemplateView;
use super::{Ctx, int};
use crate::clock::iso;
use crate::pods::model::Pod;
use crate::problem::Problem;
use crate::resources::account;
use crate::resources::endpoint::Endpoint;
use crate::resources::registry::RegistryAuth;
use crate::resources::secret::Secret;
use crate::resources::template::Template;
use crate::resources::volume::Volume;
use crate::rest::answer;
use crate::store::objects::{self, Record};

/// The quota that is shown for an account without a quota.
const NO_QUOTA: i64 = 1_000_000;

/// The account.
pub(super) struct Account;

/// A discount on serverless prices. This machine gives none.
#[derive(GraphQLObject)]
pub(super) struct ServerlessDiscount {
    discount_factor: f64,
    #[graphql(name = "type")]
    kind: String,
    expiration_date: Option<String>,
}

/// A network volume.
pub(super) struct VolumeView(pub(super) Volume);

#[graphql_object(context = Ctx, name = "NetworkVolume")]
impl VolumeView {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn size(&self) -> i32 {
        int(self.0.size)
    }

    fn data_center_id(&self) -> &str {
        &self.0.data_center_id
    }
}

/// A registry credential. Its username and password can be written, but not read.
pub(super) struct RegistryView(pub(super) RegistryAuth);

#[graphql_object(context = Ctx, name = "ContainerRegistryAuth")]
impl RegistryView {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    /// The value is never shown.
    fn registry_auth() -> Option<String> {
        None
    }
}

/// A secret, without its value.
pub(super) struct SecretView(pub(super) Secret);

#[graphql_object(context = Ctx, name = "Secret")]
impl SecretView {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn description(&self) -> &str {
        &self.0.description
    }

    fn created_at(&self) -> String {
        iso(self.0.created_at)
    }
}

#[graphql_object(context = Ctx, name = "User")]
impl Account {
    fn id(context: &Ctx) -> &str {
        context.app.user_id()
    }

    fn email() -> &'static str {
        "plumb@localhost"
    }

    /// The public keys for SSH, one on each line.
    async fn pub_key(context: &Ctx) -> FieldResult<String> {
        Ok(context.app.store.read(account::ssh_keys).await?.join("\n"))
    }

    async fn secrets(context: &Ctx) -> FieldResult<Vec<SecretView>> {
        Ok(list::<Secret>(context).await?.into_iter().map(SecretView).collect())
    }

    /// Always null: this service bills no account.
    fn client_balance() -> Option<f64> {
        None
    }

    fn current_spend_per_hr() -> Option<f64> {
        None
    }

    fn spend_limit() -> Option<f64> {
        None
    }

    fn min_balance() -> Option<f64> {
        None
    }

    fn under_balance() -> Option<bool> {
        None
    }

    async fn endpoints(context: &Ctx) -> FieldResult<Vec<EndpointView>> {
        let endpoints = list::<Endpoint>(context).await?;
        Ok(endpoints.into_iter().map(EndpointView).collect())
    }

    async fn endpoint(context: &Ctx, id: String) -> FieldResult<Option<EndpointView>> {
        let read = move |conn: &rusqlite::Connection| objects::find::<Endpoint>(conn, &id);
        Ok(context.app.store.read(read).await?.map(EndpointView))
    }

    async fn network_volumes(context: &Ctx) -> FieldResult<Vec<VolumeView>> {
        Ok(list::<Volume>(context).await?.into_iter().map(VolumeView).collect())
    }

    async fn pod_templates(context: &Ctx) -> FieldResult<Vec<TemplateView>> {
        Ok(list::<Template>(context).await?.into_iter().map(TemplateView).collect())
    }

    async fn container_registry_creds(context: &Ctx) -> FieldResult<Vec<RegistryView>> {
        Ok(list::<RegistryAuth>(context).await?.into_iter().map(RegistryView).collect())
    }

    /// The pods of the account. Workers are not among them.
    async fn pods(context: &Ctx) -> FieldResult<Vec<PodView>> {
        Ok(list::<Pod>(context).await?.into_iter().map(PodView::of).collect())
    }

    /// Apps that are built from code. There are none, because this service builds nothing.
    fn flash_apps() -> Vec<FlashApp> {
        Vec::new()
    }

    fn serverless_discount() -> Option<ServerlessDiscount> {
        None
    }

    /// The most that `workersMax` of all endpoints may add up to.
    fn max_serverless_concurrency(context: &Ctx) -> i32 {
        int(context.app.options.worker_quota.map_or(NO_QUOTA, i64::from))
    }
}

async fn list<R: Record + Clone>(context: &Ctx) -> Result<Vec<R>, Problem> {
    let stale_ms = context.stale_ms;
    let read = move |conn: &rusqlite::Connection| objects::list::<R>(conn, stale_ms);
    let mut records = context.app.store.read(read).await?;
    answer::present(&context.app, &mut records);
    Ok(records)
}
