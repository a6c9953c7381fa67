//! The types of apps, environments and builds, which the real service builds from code. This
//! service builds nothing, so the lists of them are empty. They exist because clients read them
//! before they do anything else.

use juniper::GraphQLObject;

use super::Ctx;

/// An app.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct FlashApp {
    id: String,
    name: String,
    flash_environments: Vec<FlashEnvironment>,
    flash_builds: Vec<FlashBuild>,
}

/// An environment of an app.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct FlashEnvironment {
    id: String,
    name: String,
    state: Option<String>,
    created_at: Option<String>,
    active_build_id: Option<String>,
}

/// A build of an app.
#[derive(GraphQLObject)]
#[graphql(context = Ctx)]
pub(super) struct FlashBuild {
    id: String,
    created_at: Option<String>,
}
