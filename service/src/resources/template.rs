//! Templates: the image, the command and the environment of workers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::registry::RegistryAuth;
use super::{check_env, check_name, check_no_zero, check_one_of, check_range, non_empty, required};
use crate::catalog::CATEGORIES;
use crate::clock::now_ms;
use crate::description::shape::Pattern;
use crate::field_name::{CONTAINER_DISK, DOCKER_ARGS, IMAGE, REGISTRY, VOLUME_SIZE};
use crate::ids;
use crate::problem::Problem;
use crate::store::Tx;
use crate::store::objects::{self, Record};

/// A template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the switches of the API")]
pub(crate) struct Template {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) image_name: String,
    pub(crate) category: String,
    pub(crate) container_disk_in_gb: i64,
    pub(crate) container_registry_auth_id: Option<String>,
    pub(crate) docker_entrypoint: Vec<String>,
    pub(crate) docker_start_cmd: Vec<String>,
    /// The text that GraphQL was given for entrypoint and command. GraphQL returns it unchanged.
    pub(crate) docker_args: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) is_public: bool,
    pub(crate) is_serverless: bool,
    pub(crate) ports: Vec<String>,
    pub(crate) readme: String,
    pub(crate) volume_in_gb: i64,
    pub(crate) volume_mount_path: String,
    pub(crate) start_ssh: bool,
    pub(crate) start_jupyter: bool,
    pub(crate) start_script: String,
    /// The CUDA versions for endpoints made from this template; empty for any.
    #[serde(default)]
    pub(crate) allowed_cuda_versions: Vec<String>,
    /// The endpoint inside of which this template was made. The template is deleted with it.
    pub(crate) bound_endpoint_id: Option<String>,
}

impl Template {
    /// Returns a template in which nothing is set.
    pub(crate) fn unset() -> Template {
        Template {
            id: ids::short(),
            name: String::new(),
            image_name: String::new(),
            category: "NVIDIA".to_owned(),
            container_disk_in_gb: 50,
            container_registry_auth_id: None,
            docker_entrypoint: Vec::new(),
            docker_start_cmd: Vec::new(),
            docker_args: String::new(),
            env: BTreeMap::new(),
            is_public: false,
            is_serverless: false,
            ports: vec!["8888/http".to_owned(), "22/tcp".to_owned()],
            readme: String::new(),
            volume_in_gb: 20,
            volume_mount_path: "/workspace".to_owned(),
            start_ssh: false,
            start_jupyter: false,
            start_script: String::new(),
            allowed_cuda_versions: Vec::new(),
            bound_endpoint_id: None,
        }
    }

    /// Returns true if workers run the same with both templates, so that they need not be replaced.
    pub(crate) fn runs_like(&self, other: &Template) -> bool {
        self.image_name == other.image_name
            && self.docker_entrypoint == other.docker_entrypoint
            && self.docker_start_cmd == other.docker_start_cmd
            && self.env == other.env
            && self.container_disk_in_gb == other.container_disk_in_gb
            && self.ports == other.ports
            && self.container_registry_auth_id == other.container_registry_auth_id
    }

    /// Returns the template as REST shows it.
    pub(crate) fn to_rest(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "imageName": self.image_name,
            "category": self.category,
            "containerDiskInGb": self.container_disk_in_gb,
            "containerRegistryAuthId": self.container_registry_auth_id,
            "dockerEntrypoint": self.docker_entrypoint,
            "dockerStartCmd": self.docker_start_cmd,
            "env": self.env,
            "isPublic": self.is_public,
            "isRunpod": false,
            "isServerless": self.is_serverless,
            "ports": self.ports,
            "readme": self.readme,
            "volumeInGb": self.volume_in_gb,
            "volumeMountPath": self.volume_mount_path,
            "earned": 0,
            "runtimeInMin": 0,
        })
    }
}

impl Record for Template {
    const KIND: &'static str = "template";
    const NOUN: &'static str = "template";

    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uses(&self) -> Vec<&str> {
        self.container_registry_auth_id.as_deref().into_iter().collect()
    }
}

/// The settings of a template that a client can give. `""` for an id means none.
#[derive(Debug, Clone, Default)]
pub(crate) struct TemplateInput {
    pub(crate) name: Option<String>,
    pub(crate) image_name: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) container_disk_in_gb: Option<i64>,
    pub(crate) container_registry_auth_id: Option<String>,
    pub(crate) docker_entrypoint: Option<Vec<String>>,
    pub(crate) docker_start_cmd: Option<Vec<String>>,
    pub(crate) docker_args: Option<String>,
    pub(crate) env: Option<BTreeMap<String, String>>,
    pub(crate) is_public: Option<bool>,
    pub(crate) is_serverless: Option<bool>,
    pub(crate) ports: Option<Vec<String>>,
    pub(crate) readme: Option<String>,
    pub(crate) volume_in_gb: Option<i64>,
    pub(crate) volume_mount_path: Option<String>,
    pub(crate) start_ssh: Option<bool>,
    pub(crate) start_jupyter: Option<bool>,
    pub(crate) start_script: Option<String>,
    pub(crate) allowed_cuda_versions: Option<Vec<String>>,
}

impl TemplateInput {
    /// Returns false if the command is given in both of its forms, and they contradict each other.
    pub(crate) fn command_agrees(&self) -> bool {
        let Some(args) = &self.docker_args else { return true };
        let (entrypoint, cmd) = split_args(args);
        self.docker_entrypoint.as_ref().is_none_or(|given| *given == entrypoint)
            && self.docker_start_cmd.as_ref().is_none_or(|given| *given == cmd)
    }
}

/// The treatment of the fields that an update leaves out, and of fixed fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// Fields that are left out keep their value; category and kind cannot be changed.
    Sparse,
    /// Fields that are left out are reset; category and kind cannot be changed.
    Whole,
    /// Fields that are left out keep their value; everything can be changed.
    Free,
}

/// Makes a template; its name must be free.
pub(crate) fn create(
    tx: &Tx<'_>,
    input: TemplateInput,
    bound_to: Option<&str>,
) -> Result<Template, Problem> {
    let mut template =
        Template { bound_endpoint_id: bound_to.map(str::to_owned), ..Template::unset() };
    apply(&mut template, input);
    check(tx, &template)?;
    objects::insert(tx, &template)?;
    Ok(template)
}

/// Changes a template. Returns the template before and after the change.
pub(crate) fn update(
    tx: &Tx<'_>,
    id: &str,
    input: TemplateInput,
    update: Update,
) -> Result<(Template, Template), Problem> {
    let old: Template = objects::get(tx.conn, id)?;
    let different = |wanted: &Option<String>, is: &str| wanted.as_ref().is_some_and(|w| w != is);
    let is_free = update == Update::Free;
    if !is_free && different(&input.category, &old.category) {
        return Err(Problem::invalid("category cannot be changed"));
    }
    if !is_free && input.is_serverless.is_some_and(|wanted| wanted != old.is_serverless) {
        return Err(Problem::invalid("isServerless cannot be changed"));
    }
    let base = Template {
        id: old.id.clone(),
        category: old.category.clone(),
        is_serverless: old.is_serverless,
        bound_endpoint_id: old.bound_endpoint_id.clone(),
        ..Template::unset()
    };
    let mut new = if update == Update::Whole { base } else { old.clone() };
    apply(&mut new, input);
    check(tx, &new)?;
    objects::update(tx, &new)?;
    Ok((old, new))
}

/// Removes a template that no endpoint uses, and that no endpoint has used for `delay_ms`
/// milliseconds.
pub(crate) fn delete(tx: &Tx<'_>, id: &str, delay_ms: i64) -> Result<(), Problem> {
    let template: Template = objects::get(tx.conn, id)?;
    let name = &template.name;
    if objects::in_use(tx.conn, id)? {
        return Err(Problem::invalid(format!("template \"{name}\" is in use by an endpoint")));
    }
    let last_use = objects::last_use(tx.conn, id)?;
    if delay_ms > 0 && last_use.is_some_and(|at| now_ms() - at < delay_ms) {
        return Err(Problem::invalid(format!(
            "template \"{name}\" was in use a moment ago; it cannot be deleted yet"
        )));
    }
    objects::delete::<Template>(tx, id)
}

fn apply(template: &mut Template, input: TemplateInput) {
    fn set<T>(value: &mut T, wanted: Option<T>) {
        if let Some(wanted) = wanted {
            *value = wanted;
        }
    }
    set(&mut template.name, input.name);
    set(&mut template.image_name, input.image_name);
    set(&mut template.category, input.category);
    set(&mut template.container_disk_in_gb, input.container_disk_in_gb);
    set(&mut template.container_registry_auth_id, input.container_registry_auth_id.map(non_empty));
    set(&mut template.env, input.env);
    set(&mut template.is_public, input.is_public);
    set(&mut template.is_serverless, input.is_serverless);
    set(&mut template.ports, input.ports);
    set(&mut template.readme, input.readme);
    set(&mut template.volume_in_gb, input.volume_in_gb);
    set(&mut template.volume_mount_path, input.volume_mount_path);
    set(&mut template.start_ssh, input.start_ssh);
    set(&mut template.start_jupyter, input.start_jupyter);
    set(&mut template.start_script, input.start_script);
    set(&mut template.allowed_cuda_versions, input.allowed_cuda_versions);
    if let Some(args) = input.docker_args {
        (template.docker_entrypoint, template.docker_start_cmd) = split_args(&args);
        template.docker_args = args;
    }
    if input.docker_entrypoint.is_some() || input.docker_start_cmd.is_some() {
        set(&mut template.docker_entrypoint, input.docker_entrypoint);
        set(&mut template.docker_start_cmd, input.docker_start_cmd);
        template.docker_args = join_args(&template.docker_entrypoint, &template.docker_start_cmd);
    }
}

/// Splits GraphQL's text into entrypoint and command: JSON with `entrypoint` and `cmd`, else the
/// words of a command.
fn split_args(args: &str) -> (Vec<String>, Vec<String>) {
    #[derive(Deserialize)]
    struct Parts {
        #[serde(default)]
        entrypoint: Vec<String>,
        #[serde(default)]
        cmd: Vec<String>,
    }
    match serde_json::from_str::<Parts>(args) {
        Ok(parts) => (parts.entrypoint, parts.cmd),
        Err(_) => (Vec::new(), words(args)),
    }
}

/// Returns the words of a command line. Quotes and backslashes have the meaning of a shell.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut started, mut quote) = (String::new(), false, None);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            ('\\', None | Some('"')) => {
                word.extend(chars.next());
                started = true;
            }
            (char, Some(open)) if char == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(char);
                started = true;
            }
            (char, None) if char.is_whitespace() => {
                if std::mem::take(&mut started) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (char, _) => {
                word.push(char);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}

fn join_args(entrypoint: &[String], cmd: &[String]) -> String {
    if entrypoint.is_empty() && cmd.is_empty() {
        return String::new();
    }
    json!({ "cmd": cmd, "entrypoint": entrypoint }).to_string()
}

fn check(tx: &Tx<'_>, template: &Template) -> Result<(), Problem> {
    if template.name.is_empty() {
        return Err(required("name"));
    }
    check_name(&template.name)?;
    check_one_of("category", &template.category, CATEGORIES)?;
    check_settings(tx, template)?;
    let same_name = objects::named::<Template>(tx.conn, &template.name)?;
    if same_name.is_some_and(|id| id != template.id) {
        return Err(Problem::invalid(format!(
            "template name must be unique: \"{}\" already exists",
            template.name
        )));
    }
    Ok(())
}

/// Returns the settings of one pod: the given ones, over those of `base`, which is a template or
/// the pod before a change. Without a base, the defaults take its place.
pub(crate) fn settings(base: Option<Template>, given: TemplateInput) -> Template {
    let mut settings = base.unwrap_or_else(Template::unset);
    apply(&mut settings, given);
    settings
}

/// Checks the image, the command, the environment, the ports and the disks of a container.
pub(crate) fn check_settings(tx: &Tx<'_>, template: &Template) -> Result<(), Problem> {
    if template.image_name.trim().is_empty() {
        return Err(required(IMAGE));
    }
    check_range(CONTAINER_DISK, template.container_disk_in_gb, 0, i64::from(i32::MAX))?;
    check_range(VOLUME_SIZE, template.volume_in_gb, 0, i64::from(i32::MAX))?;
    template.ports.iter().try_for_each(|port| check_port(port))?;
    check_env(&template.env)?;
    let mut command = template.docker_entrypoint.iter().chain(&template.docker_start_cmd);
    command.try_for_each(|part| check_no_zero(DOCKER_ARGS, part))?;
    if let Some(id) = &template.container_registry_auth_id
        && objects::find::<RegistryAuth>(tx.conn, id)?.is_none()
    {
        return Err(Problem::broken_rule(|version| {
            format!("{} \"{id}\" not found", REGISTRY.of(version))
        }));
    }
    Ok(())
}

/// The form of a port of a container.
pub(crate) const PORT: &Pattern = &Pattern {
    expression: r"^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])/(http|tcp|udp)$",
    holds: is_port,
    rule: "look like \"8888/http\" or \"22/tcp\"",
};

fn is_port(port: &str) -> bool {
    port.split_once('/').is_some_and(|(number, protocol)| {
        let plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        plain && number.parse::<u16>().is_ok() && ["http", "tcp", "udp"].contains(&protocol)
    })
}

fn check_port(port: &str) -> Result<(), Problem> {
    if is_port(port) {
        return Ok(());
    }
    Err(Problem::invalid(format!(
        "ports must look like \"8888/http\" or \"22/tcp\", not \"{port}\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn args_split_as_json_or_words() {
        let check = |args: &str, entrypoint: &[&str], cmd: &[&str]| {
            let (found_entrypoint, found_cmd) = split_args(args);
            assert_eq!((found_entrypoint, found_cmd).0, entrypoint, "{args}");
            assert_eq!(split_args(args).1, cmd, "{args}");
        };
        check("", &[], &[]);
        check(" ", &[], &[]);
        check(r#"{"cmd":["-u","a b"],"entrypoint":["python"]}"#, &["python"], &["-u", "a b"]);
        check(r#"python -u "a b".py '' x\ y"#, &[], &["python", "-u", "a b.py", "", "x y"]);
        assert_eq!(split_args(&join_args(&["a".into()], &["b".into()])).0, ["a"]);
    }

    #[test]
    fn ports_have_a_form() {
        assert!(check_port("8888/http").is_ok() && check_port("22/tcp").is_ok());
        for wrong in ["8888", "0/tcp", "70000/tcp", "80/ftp", "/http", ""] {
            assert!(check_port(wrong).is_err(), "{wrong}");
        }
    }
}
