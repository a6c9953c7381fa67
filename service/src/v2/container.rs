//! The container of a worker or a pod, as templates, endpoints and pods show it.

use serde_json::{Value, json};

use super::BODY_MAX;
use crate::description::shape::{
    Field, NO_ZERO, NOT_BLANK, count, environment, integer, list as list_of, may, must, text, texts,
};
use crate::problem::{Kind, Problem};
use crate::resources::template::{PORT, Template, TemplateInput};
use crate::rest::fields::Fields;

/// Returns the settings that a request may have, except the image.
pub(super) fn settings() -> Vec<Field> {
    let command = || list_of(text().like(NO_ZERO));
    vec![
        may("args", text().like(NO_ZERO).note("Arguments of the container, as one text")),
        may("entrypoint", command().note("In the place of args")),
        may("cmd", command().note("In the place of args")),
        may("disk", integer().between(1, i64::from(i32::MAX)).note("GB")),
        may("env", environment()),
        may("ports", list_of(text().like(PORT))),
        may("registry", text().or_null().note("The id of a registry credential")),
    ]
}

/// Returns the shape of the image in a request.
pub(super) fn image() -> crate::description::shape::Shape {
    text().at_least(1).like(NOT_BLANK)
}

/// Returns the fields of an answer, for the description.
pub(super) fn shown_fields() -> Vec<Field> {
    vec![
        must("image", text()),
        must("args", text()),
        must("entrypoint", texts()),
        must("cmd", texts()),
        must("disk", count()),
        must("env", environment()),
        must("ports", texts()),
        must("registry", text().or_null()),
    ]
}

/// Reads the fields of a request.
pub(super) fn read(fields: &mut Fields) -> Result<TemplateInput, Problem> {
    let input = TemplateInput {
        image_name: fields.text("image")?,
        docker_args: fields.text("args")?,
        docker_entrypoint: fields.texts("entrypoint")?,
        docker_start_cmd: fields.texts("cmd")?,
        container_disk_in_gb: fields.integer("disk")?,
        env: fields.text_map("env")?,
        ports: fields.texts("ports")?,
        container_registry_auth_id: fields.nullable_text("registry")?,
        ..TemplateInput::default()
    };
    if !input.command_agrees() {
        return Err(Problem::invalid("args must say the same as entrypoint and cmd"));
    }
    Ok(input)
}

/// Returns the fields of an answer, with their values.
pub(super) fn shown(template: &Template) -> Value {
    json!({
        "image": template.image_name,
        "args": template.docker_args,
        "entrypoint": template.docker_entrypoint,
        "cmd": template.docker_start_cmd,
        "disk": template.container_disk_in_gb,
        "env": template.env,
        "ports": template.ports,
        "registry": template.container_registry_auth_id,
    })
}

/// Refuses settings that together with those of a template are larger than a body may be.
pub(super) fn check_size(settings: &TemplateInput) -> Result<(), Problem> {
    let TemplateInput { env, docker_args, docker_entrypoint, docker_start_cmd, ports, .. } =
        settings;
    let merged = json!({
        "image": settings.image_name,
        "args": docker_args,
        "entrypoint": docker_entrypoint,
        "cmd": docker_start_cmd,
        "env": env,
        "ports": ports,
    });
    if merged.to_string().len() <= BODY_MAX {
        return Ok(());
    }
    let message =
        format!("the request with the settings of its template is larger than {BODY_MAX} bytes");
    Err(Problem::new(Kind::TooLarge, message))
}

/// Returns the given settings, completed by those from before.
pub(super) fn over(given: TemplateInput, base: &Template) -> TemplateInput {
    let names_parts = given.docker_entrypoint.is_some() || given.docker_start_cmd.is_some();
    let part = |given: Option<Vec<String>>, base: &Vec<String>| {
        names_parts.then(|| given.unwrap_or_else(|| base.clone()))
    };
    let whole = || (!names_parts).then(|| base.docker_args.clone());
    let registry = || Some(base.container_registry_auth_id.clone().unwrap_or_default());
    TemplateInput {
        image_name: given.image_name.or_else(|| Some(base.image_name.clone())),
        docker_entrypoint: part(given.docker_entrypoint, &base.docker_entrypoint),
        docker_start_cmd: part(given.docker_start_cmd, &base.docker_start_cmd),
        docker_args: given.docker_args.or_else(whole),
        container_disk_in_gb: given.container_disk_in_gb.or(Some(base.container_disk_in_gb)),
        env: given.env.or_else(|| Some(base.env.clone())),
        ports: given.ports.or_else(|| Some(base.ports.clone())),
        container_registry_auth_id: given.container_registry_auth_id.or_else(registry),
        ..TemplateInput::default()
    }
}
