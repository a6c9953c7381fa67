//! `/templates`

use std::collections::HashSet;

use axum::response::Response;
use rusqlite::Connection;

use super::answer;
use super::fields::Fields;
use super::request::RestRequest;
use crate::app::App;
use crate::catalog::CATEGORIES;
use crate::description::operation::{self as op, Operation};
use crate::description::shape::{
    Field, NO_ZERO, NOT_BLANK, Shape, count, environment, flag, list as list_of, may, must, named,
    number, object, one_of, text, texts,
};
use crate::problem::Problem;
use crate::quirks::Quirk;
use crate::resources::endpoint::{self, Endpoint};
use crate::resources::name;
use crate::resources::template::{self, PORT, Template, TemplateInput, Update};
use crate::store::objects;

/// The parameter that shows the templates that belong to endpoints; without it they are hidden.
const SHOW_BOUND: &str = "includeEndpointBoundTemplates";

pub(super) fn operations() -> Vec<Operation> {
    const ONE: &str = "/templates/{id}";
    let note = "Include templates that belong to endpoints";
    let shown = |operation: Operation| operation.query(SHOW_BOUND, flag().note(note));
    vec![
        shown(op::get("/templates", "ListTemplates", "List templates", list))
            .gives(200, list_of(template_shape())),
        op::post("/templates", "CreateTemplate", "Create a template", create)
            .takes(body())
            .gives(200, template_shape()),
        shown(op::get(ONE, "GetTemplate", "Find a template", read)).gives(200, template_shape()),
        op::patch(ONE, "UpdateTemplate", "Change a template", update)
            .takes(change())
            .gives(200, template_shape()),
        op::post(
            "/templates/{id}/update",
            "UpdateTemplateByPost",
            "Change a template, without PATCH",
            update,
        )
        .takes(change())
        .gives(200, template_shape()),
        op::delete(ONE, "DeleteTemplate", "Delete a template that no endpoint uses", delete)
            .gives_nothing(204),
    ]
}

fn body() -> Shape {
    let body = object([must("name", name()), must("imageName", text().like(NOT_BLANK))]);
    named("TemplateCreateInput", body.and(settings()).null_is_absent())
}

fn change() -> Shape {
    let change = object([may("name", name()), may("imageName", text().like(NOT_BLANK))]);
    named("TemplateUpdateInput", change.and(settings()).null_is_absent())
}

fn settings() -> Vec<Field> {
    let command = || list_of(text().like(NO_ZERO));
    vec![
        may("category", one_of(CATEGORIES).note("Cannot be changed")),
        may("containerDiskInGb", count()),
        may("containerRegistryAuthId", text().or_null()),
        may("dockerEntrypoint", command()),
        may("dockerStartCmd", command()),
        may("env", environment()),
        may("isPublic", flag()),
        may("isServerless", flag().note("Cannot be changed")),
        may("ports", list_of(text().like(PORT))),
        may("readme", text()),
        may("volumeInGb", count()),
        may("volumeMountPath", text()),
    ]
}

pub(super) fn template_shape() -> Shape {
    let template = object([
        must("id", text()),
        must("name", text()),
        must("imageName", text()),
        must("category", one_of(CATEGORIES)),
        must("containerDiskInGb", count()),
        must("containerRegistryAuthId", text().or_null()),
        must("dockerEntrypoint", texts()),
        must("dockerStartCmd", texts()),
        must("env", environment()),
        must("isPublic", flag()),
        must("isRunpod", flag()),
        must("isServerless", flag()),
        must("ports", texts()),
        must("readme", text()),
        must("volumeInGb", count()),
        must("volumeMountPath", text()),
        must("earned", number()),
        must("runtimeInMin", count()),
    ]);
    named("Template", template)
}

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
        let (old, new) = template::update(tx, &id, input, Update::Sparse)?;
        endpoint::roll_out(tx, &old, &new)?;
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

/// Removes the templates that belong to endpoints: those made inside of an endpoint, and with the
/// quirk all that an endpoint uses.
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
        allowed_cuda_versions: None,
    })
}
