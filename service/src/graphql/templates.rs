//! Templates as GraphQL shows them.

use std::collections::BTreeMap;

use juniper::{GraphQLObject, graphql_object};

use super::{Ctx, int};
use crate::quirks::Quirk;
use crate::resources::template::Template;

/// A name with its value.
#[derive(GraphQLObject)]
#[graphql(name = "EnvironmentVariable")]
pub(super) struct Pair {
    key: String,
    value: String,
}

/// A port with its name.
#[derive(GraphQLObject)]
pub(super) struct PortConfig {
    port: Option<String>,
    name: Option<String>,
}

/// Returns an environment as pairs.
pub(super) fn pairs(env: &BTreeMap<String, String>) -> Vec<Pair> {
    env.iter().map(|(key, value)| Pair { key: key.clone(), value: value.clone() }).collect()
}

/// Returns a text for an answer. A missing text is null, or `""` with the quirk
/// [`Quirk::NullAsEmpty`].
pub(super) fn text<'a>(context: &Ctx, value: Option<&'a str>) -> Option<&'a str> {
    value.or_else(|| context.app.quirks.has(Quirk::NullAsEmpty).then_some(""))
}

/// A template.
pub(super) struct TemplateView(pub(super) Template);

#[graphql_object(context = Ctx, name = "PodTemplate")]
impl TemplateView {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn image_name(&self) -> &str {
        &self.0.image_name
    }

    fn category(&self) -> &str {
        &self.0.category
    }

    fn container_disk_in_gb(&self) -> i32 {
        int(self.0.container_disk_in_gb)
    }

    fn container_registry_auth_id(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.container_registry_auth_id.as_deref())
    }

    fn docker_args(&self) -> &str {
        &self.0.docker_args
    }

    fn env(&self) -> Vec<Pair> {
        pairs(&self.0.env)
    }

    fn is_public(&self) -> bool {
        self.0.is_public
    }

    fn is_runpod() -> bool {
        false
    }

    fn is_serverless(&self) -> bool {
        self.0.is_serverless
    }

    fn ports(&self) -> String {
        self.0.ports.join(",")
    }

    fn readme(&self) -> &str {
        &self.0.readme
    }

    fn volume_in_gb(&self) -> i32 {
        int(self.0.volume_in_gb)
    }

    fn volume_mount_path(&self) -> &str {
        &self.0.volume_mount_path
    }

    fn start_ssh(&self) -> bool {
        self.0.start_ssh
    }

    fn start_jupyter(&self) -> bool {
        self.0.start_jupyter
    }

    fn ports_config() -> Option<Vec<PortConfig>> {
        None
    }

    fn advanced_start() -> Option<bool> {
        None
    }

    fn config() -> Option<String> {
        None
    }

    fn earned() -> Option<f64> {
        None
    }

    fn runtime_in_min() -> Option<i32> {
        None
    }

    fn start_script(&self) -> &str {
        &self.0.start_script
    }

    fn bound_endpoint_id(&self, context: &Ctx) -> Option<&str> {
        text(context, self.0.bound_endpoint_id.as_deref())
    }
}
