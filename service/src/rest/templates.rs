//! `/templates`

use std::collections::HashSet;

use axum::response::Response;
use rusqlite::Connection;

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::app::App;
use crate::problem::Problem;
use crate::quirks::Quirk;
use crate::resources::endpoint::{self, Endpoint};
use crate::resources::template::{self, Template, TemplateInput};
use crate::store::objects;

/// The parameter without which templates that belong to endpoints are hidden.
const SHOW_BOUND: &str = "includeEndpointBoundTemplates";

pub(super) async fn create(request: RestRequest) -> Result<Response, Problem> {
    let input = input(request.fields()?)?;
    let template = request.app.store.write(move |tx| template::create(tx, input, None)).await?;
    request.entry.object(&template.id);
    request.app.say(&format!("template {} made", template.id));
    Ok(answer::created(&request.app, template.to_rest()))
}

pub(super) async fn list(request: RestRequest) -> Result<Response, Problem> {
    let (stale_ms, app, all) = (request.stale_ms, request.app.clone(), request.wants(SHOW_BOUND));
    let read = move |conn: &Connection| {
        let templates = objects::list::<Template>(conn, stale_ms)?;
        if all { Ok(templates) } else { without_bound(&app, conn, templates) }
    };
    let templates = request.app.store.read(read).await?;
    Ok(answer::listed(&request.app, templates.iter().map(Template::to_rest).collect()))
}

pub(super) async fn read(request: RestRequest) -> Result<Response, Problem> {
    let (id, app, all) = (request.id.clone(), request.app.clone(), request.wants(SHOW_BOUND));
    let read = move |conn: &Connection| {
        let template = vec![objects::get::<Template>(conn, &id)?];
        let shown = if all { template } else { without_bound(&app, conn, template)? };
        shown.into_iter().next().ok_or_else(|| Problem::not_found("template"))
    };
    let template = request.app.store.read(read).await?;
    Ok(answer::shown(&request.app, template.to_rest()))
}

pub(super) async fn update(request: RestRequest) -> Result<Response, Problem> {
    let (id, input) = (request.id.clone(), input(request.fields()?)?);
    let write = move |tx: &crate::store::Tx<'_>| {
        let (old, new) = template::update(tx, &id, input, true)?;
        if !new.runs_like(&old) {
            endpoint::roll_out(tx, &id)?;
        }
        Ok(new)
    };
    let template = request.app.change(write).await?;
    request.app.say(&format!("template {} changed", template.id));
    Ok(answer::updated(&request.app, template.to_rest()))
}

pub(super) async fn delete(request: RestRequest) -> Result<Response, Problem> {
    let (id, delay_ms) = (request.id.clone(), request.app.quirks.template_delay_ms());
    request.app.store.write(move |tx| template::delete(tx, &id, delay_ms)).await?;
    request.app.say(&format!("template {} removed", request.id));
    Ok(answer::deleted())
}

/// Leaves out the templates that belong to endpoints: those made inside one, and under the quirk
/// all that one uses.
fn without_bound(
    app: &App,
    conn: &Connection,
    mut templates: Vec<Template>,
) -> Result<Vec<Template>, Problem> {
    let mut used = HashSet::new();
    if app.quirks.has(Quirk::BoundTemplatesHidden) {
        let endpoints = objects::list::<Endpoint>(conn, 0)?;
        used.extend(endpoints.into_iter().map(|endpoint| endpoint.template_id));
    }
    templates
        .retain(|template| template.bound_endpoint_id.is_none() && !used.contains(&template.id));
    Ok(templates)
}

fn input(mut fields: Fields) -> Result<TemplateInput, Problem> {
    Ok(TemplateInput {
        name: fields.text("name")?,
        image_name: fields.text("imageName")?,
        category: fields.text("category")?,
        container_disk_in_gb: fields.integer("containerDiskInGb")?,
        container_registry_auth_id: fields.nullable_text("containerRegistryAuthId")?,
        docker_entrypoint: fields.texts("dockerEntrypoint")?,
        docker_start_cmd: fields.texts("dockerStartCmd")?,
        docker_args: None,
        env: fields.text_map("env")?,
        is_public: fields.flag("isPublic")?,
        is_serverless: fields.flag("isServerless")?,
        ports: fields.texts("ports")?,
        readme: fields.text("readme")?,
        volume_in_gb: fields.integer("volumeInGb")?,
        volume_mount_path: fields.text("volumeMountPath")?,
        start_ssh: None,
        start_jupyter: None,
        start_script: None,
    })
}
