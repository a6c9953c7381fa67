//! The requests about pods in version 2.

use super::super::container;
use crate::catalog::{self, CUDA_VERSIONS, DATA_CENTERS, GPUS_MAX, POD_CPU_FLAVORS};
use crate::description::shape::{
    Field, Shape, flag, integer, list as list_of, may, must, named, object, one_of, text,
};
use crate::pods::model::{CLOUDS, Pod, PodInput, with_nothing_more};
use crate::problem::{Kind, Problem};
use crate::resources::name;
use crate::resources::template::{Template, TemplateInput};
use crate::rest::fields::Fields;
use crate::store::{Tx, objects};

pub(super) fn body() -> Shape {
    let gpu_types: Vec<&'static str> = catalog::known_gpu_types().collect();
    let gpu = object([
        must("id", one_of(&gpu_types)),
        may("count", integer().between(1, GPUS_MAX)),
        may("allowedCudaVersions", list_of(one_of(CUDA_VERSIONS))),
        may("minCudaVersion", one_of(CUDA_VERSIONS)),
    ]);
    let cpu =
        object([must("id", one_of(POD_CPU_FLAVORS)), must("vcpuCount", integer().between(2, 32))]);
    let body = object([
        must("name", name()),
        may("image", container::image().note("Required without templateId")),
        may("cloud", one_of(CLOUDS)),
        may("gpu", gpu.closed().note("Exactly one of gpu and cpu")),
        may("cpu", cpu.closed()),
        may("dataCenterIds", list_of(one_of(DATA_CENTERS))),
        may("startJupyter", flag()),
        may("startSsh", flag()),
    ]);
    named("CreatePodRequest", body.and(settings()).closed())
}

pub(super) fn change() -> Shape {
    let change = object([
        may("name", name()),
        may("image", container::image()),
        may("locked", flag().note("A locked pod cannot be stopped or reset")),
    ]);
    named("UpdatePodRequest", change.and(settings()).closed())
}

/// Returns the settings that can be given on create and on change.
fn settings() -> Vec<Field> {
    let persistent =
        object([must("size", integer().at_least(10).note("GB")), must("path", text())]);
    let network = object([must("volumeId", text()), must("path", text())]);
    let mounts = object([
        may("persistent", persistent.closed().note("A volume of its own")),
        may("network", list_of(network.closed()).at_most(1)),
    ]);
    let mut settings = vec![
        may("globalNetworking", flag()),
        may("mounts", mounts.closed()),
        may("templateId", text().at_least(1).note("Its settings are copied once")),
    ];
    settings.extend(container::settings());
    settings
}

/// A network volume and its mount path.
struct Network {
    volume: String,
    path: String,
}

/// The settings in a request.
pub(super) struct PodRequest {
    input: PodInput,
    template_id: Option<String>,
    network: Option<Vec<Network>>,
}

impl PodRequest {
    /// Reads the fields of a request to make a pod.
    pub(super) fn create(mut fields: Fields) -> Result<PodRequest, Problem> {
        let mut request = PodRequest::common(&mut fields)?;
        let input = &mut request.input;
        input.cloud = fields.text("cloud")?;
        input.data_center_ids = fields.texts("dataCenterIds")?;
        input.container.start_ssh = fields.flag("startSsh")?;
        input.container.start_jupyter = fields.flag("startJupyter")?;
        if let Some(gpu) = fields.object("gpu") {
            read_gpu(gpu, input)?;
        }
        if let Some(cpu) = fields.object("cpu") {
            read_cpu(cpu, input)?;
        }
        let (has_gpu, has_cpu) = (input.gpu_type_ids.is_some(), input.cpu_flavor_ids.is_some());
        if has_gpu == has_cpu {
            return Err(Problem::invalid("exactly one of gpu and cpu must be given"));
        }
        if has_cpu && request.has_persistent() {
            return Err(Problem::invalid("mounts.persistent needs a gpu; take mounts.network"));
        }
        if request.input.container.image_name.is_none() && request.template_id.is_none() {
            return Err(Problem::invalid("image is required without templateId"));
        }
        Ok(request)
    }

    /// Reads the fields of a request to change a pod.
    pub(super) fn change(mut fields: Fields) -> Result<PodRequest, Problem> {
        let mut request = PodRequest::common(&mut fields)?;
        request.input.locked = fields.flag("locked")?;
        Ok(request)
    }

    fn common(fields: &mut Fields) -> Result<PodRequest, Problem> {
        let mut input = PodInput {
            name: fields.text("name")?,
            global_networking: fields.flag("globalNetworking")?,
            container: container::read(fields)?,
            ..PodInput::default()
        };
        let template_id = fields.text("templateId")?;
        let network = read_mounts(fields, &mut input.container)?;
        Ok(PodRequest { input, template_id, network })
    }

    fn has_persistent(&self) -> bool {
        self.input.container.volume_in_gb.is_some()
    }

    /// Returns the pod that a request describes. Settings that are left out are copied from the
    /// template, once.
    pub(super) fn into_create(self, tx: &Tx<'_>) -> Result<PodInput, Problem> {
        let PodRequest { mut input, template_id, network } = self;
        let base = template_id.as_deref().map(|id| template(tx, id)).transpose()?;
        let network = network.into_iter().flatten().next();
        input.container = match &base {
            Some(base) => over_template(input.container, base, network.is_none()),
            None => with_nothing_more(input.container),
        };
        container::check_size(&input.container)?;
        if let Some(network) = network {
            input.network_volume_id = Some(network.volume);
            input.container.volume_mount_path = Some(network.path);
        }
        if input.cpu_flavor_ids.is_some() {
            input.compute_type = Some("CPU".to_owned());
        }
        Ok(input)
    }

    /// Returns the change that a request describes. The kind of a pod's mount cannot be changed.
    pub(super) fn into_change(self, tx: &Tx<'_>, old: &Pod) -> Result<PodInput, Problem> {
        if self.has_persistent() && !old.has_own_volume() {
            return Err(Problem::invalid("mounts.persistent cannot be added to a pod"));
        }
        let PodRequest { mut input, template_id, network } = self;
        if let Some(id) = template_id {
            let base = template(tx, &id)?;
            let given = with_environment_of(input.container, &base);
            let (size, path) = (given.volume_in_gb, given.volume_mount_path.clone());
            input.container = TemplateInput {
                volume_in_gb: size,
                volume_mount_path: path,
                ..container::over(given, &base)
            };
            container::check_size(&input.container)?;
        }
        if let Some(network) = network {
            let network = network.into_iter().next().ok_or_else(|| {
                Problem::invalid("mounts.network cannot be empty: a pod keeps its volume")
            })?;
            if old.network_volume_id.as_ref() != Some(&network.volume) {
                return Err(Problem::invalid("the network volume of a pod cannot be changed"));
            }
            input.container.volume_mount_path = Some(network.path);
        }
        Ok(input)
    }
}

fn read_gpu(mut gpu: Fields, input: &mut PodInput) -> Result<(), Problem> {
    input.gpu_type_ids = gpu.text("id")?.map(|id| vec![id]);
    input.gpu_count = gpu.integer("count")?;
    let (allowed, least) = (gpu.texts("allowedCudaVersions")?, gpu.text("minCudaVersion")?);
    let is_named = allowed.as_ref().is_some_and(|versions| !versions.is_empty());
    if is_named && least.is_some() {
        return Err(Problem::invalid(
            "gpu.allowedCudaVersions and gpu.minCudaVersion cannot both be given",
        ));
    }
    // A least version replaces the versions of the template too.
    input.container.allowed_cuda_versions = allowed.or_else(|| least.map(|_| Vec::new()));
    Ok(())
}

fn read_cpu(mut cpu: Fields, input: &mut PodInput) -> Result<(), Problem> {
    input.cpu_flavor_ids = cpu.text("id")?.map(|id| vec![id]);
    input.vcpu_count = cpu.integer("vcpuCount")?;
    let count = input.vcpu_count.unwrap_or_default();
    if count.count_ones() != 1 {
        return Err(Problem::invalid(format!("cpu.vcpuCount must be a power of two, not {count}")));
    }
    Ok(())
}

/// Reads the pod's own volume into its settings. Returns the network volumes; `None` if the request
/// names no mounts.
fn read_mounts(
    fields: &mut Fields,
    container: &mut TemplateInput,
) -> Result<Option<Vec<Network>>, Problem> {
    let Some(mut mounts) = fields.object("mounts") else { return Ok(None) };
    if let Some(mut persistent) = mounts.object("persistent") {
        container.volume_in_gb = persistent.integer("size")?;
        container.volume_mount_path = persistent.text("path")?;
    }
    let Some(network) = mounts.objects("network") else { return Ok(None) };
    if container.volume_in_gb.is_some() {
        return Err(Problem::invalid("mounts takes one of persistent and network, not both"));
    }
    let read = |mut one: Fields| {
        let volume = one.text("volumeId")?.unwrap_or_default();
        Ok(Network { volume, path: one.text("path")?.unwrap_or_default() })
    };
    network.into_iter().map(read).collect::<Result<_, Problem>>().map(Some)
}

/// Returns the template with this id, if a pod can be made from it.
fn template(tx: &Tx<'_>, id: &str) -> Result<Template, Problem> {
    let template: Template = objects::get(tx.conn, id)?;
    if template.is_serverless {
        let message = format!("template \"{}\" is for serverless workers", template.name);
        return Err(Problem::new(Kind::Unprocessable, message));
    }
    Ok(template)
}

/// Adds the variables of a template that the request does not set.
fn with_environment_of(mut given: TemplateInput, base: &Template) -> TemplateInput {
    let mut env = base.env.clone();
    env.extend(given.env.unwrap_or_default());
    given.env = Some(env);
    given
}

/// Returns the settings of a new pod: the given ones, over those of a template. The template's
/// volume is used only if the pod has no network volume.
fn over_template(given: TemplateInput, base: &Template, has_volume: bool) -> TemplateInput {
    let (size, path) = (given.volume_in_gb, given.volume_mount_path.clone());
    let (start_ssh, start_jupyter) = (given.start_ssh, given.start_jupyter);
    let versions = given.allowed_cuda_versions.clone();
    TemplateInput {
        volume_in_gb: size.or(Some(if has_volume { base.volume_in_gb } else { 0 })),
        volume_mount_path: path.or_else(|| Some(base.volume_mount_path.clone())),
        start_ssh: start_ssh.or(Some(base.start_ssh)),
        start_jupyter: start_jupyter.or(Some(base.start_jupyter)),
        allowed_cuda_versions: versions.or_else(|| Some(base.allowed_cuda_versions.clone())),
        ..container::over(with_environment_of(given, base), base)
    }
}
