//! The root of mutations. Each mutation is one write of the store. A failed one is null, so that
//! the results of the other mutations in the request are shown beside the error.

use juniper::{FieldResult, graphql_object};

use super::Ctx;
use super::account::{Account, RegistryView, SecretView, VolumeView};
use super::endpoints::EndpointView;
use super::inputs::{
    CreateNetworkVolumeInput, DeleteNetworkVolumeInput, EndpointInput, SaveRegistryAuthInput,
    SaveTemplateInput, SecretCreateInput, UpdateEndpointTemplateInput,
    UpdateEndpointWorkersMaxInput, UpdateEndpointWorkersMinInput, UpdateNetworkVolumeInput,
    UpdateRegistryAuthInput, UserSettingsInput,
};
use super::pod_inputs::{
    DeployCpuPodInput, PodBidResumeInput, PodEditJobInput, PodFindAndDeployOnDemandInput,
    PodRentInterruptableInput, PodResetInput, PodResumeInput, PodStopInput, PodTerminateInput,
};
use super::pods::PodView;
use super::templates::TemplateView;
use crate::pods::change::{self, Action, Terms};
use crate::pods::model::PodInput;
use crate::problem::Problem;
use crate::resources::endpoint::{self, Api, EndpointInput as Endpoints};
use crate::resources::secret::{self, Secret};
use crate::resources::template::{self, Template, Update};
use crate::resources::volume::VolumeInput;
use crate::resources::{account, registry, volume};
use crate::store::{Tx, objects};

/// The root of mutations.
pub(super) struct Mutation;

/// Adds the object of a mutation to the access log, and logs the mutation as an event.
fn noted(context: &Ctx, noun: &str, id: &str, what: &str) {
    context.entry.object(id);
    context.app.say(&format!("{noun} {id} {what}"));
}

/// Changes the given settings of an endpoint and keeps all others.
async fn sparse(context: &Ctx, id: String, input: Endpoints) -> FieldResult<Option<EndpointView>> {
    let quota = context.app.options.worker_quota;
    let write = move |tx: &Tx<'_>| endpoint::update(tx, &id, input, Api::Rest, quota);
    let (_, endpoint) = context.app.change(write).await?;
    noted(context, "endpoint", &endpoint.id, "changed");
    Ok(Some(EndpointView(endpoint)))
}

async fn deploy(context: &Ctx, input: PodInput) -> FieldResult<Option<PodView>> {
    let pod = context.app.change_pods(move |tx| change::create(tx, input)).await?;
    noted(context, "pod", &pod.id, "made");
    Ok(Some(PodView::of(pod)))
}

async fn resume(context: &Ctx, id: &str, terms: Terms) -> FieldResult<Option<PodView>> {
    let id_of_pod = id.to_owned();
    context.app.change_pods(move |tx| change::set_terms(tx, &id_of_pod, terms)).await?;
    let pod = context.app.act_on_pod(id, Action::Start).await?;
    context.entry.object(&pod.id);
    Ok(Some(PodView::of(pod)))
}

async fn save_template(context: &Ctx, input: SaveTemplateInput) -> FieldResult<Template> {
    if input.docker_args.is_none() || input.env.is_none() {
        let missing = if input.env.is_none() { "env" } else { "dockerArgs" };
        return Err(Problem::invalid(format!("{missing} is required, it may be empty")).into());
    }
    let id = input.id.clone().filter(|id| !id.is_empty());
    let input = input.into_resource();
    let write = move |tx: &Tx<'_>| {
        let Some(id) = id else { return template::create(tx, input, None) };
        let (old, new) = template::update(tx, &id, input, Update::Whole)?;
        endpoint::roll_out(tx, &old, &new)?;
        Ok(new)
    };
    Ok(context.app.change(write).await?)
}

#[graphql_object(context = Ctx)]
impl Mutation {
    /// Makes an endpoint, or changes the one with the given id.
    async fn save_endpoint(
        context: &Ctx,
        input: EndpointInput,
    ) -> FieldResult<Option<EndpointView>> {
        let id = input.id.clone().filter(|id| !id.is_empty());
        let what = if id.is_some() { "changed" } else { "made" };
        let (quota, input) = (context.app.options.worker_quota, input.into_resource());
        let write = move |tx: &Tx<'_>| match id {
            Some(id) => endpoint::update(tx, &id, input, Api::GraphQl, quota).map(|(_, new)| new),
            None => endpoint::create(tx, input, Api::GraphQl, quota),
        };
        let endpoint = context.app.change(write).await?;
        noted(context, "endpoint", &endpoint.id, what);
        Ok(Some(EndpointView(endpoint)))
    }

    /// Deletes an endpoint that has been scaled to nothing.
    async fn delete_endpoint(context: &Ctx, id: String) -> FieldResult<Option<bool>> {
        context.entry.object(&id);
        let (app, removed) = (context.app.clone(), id.clone());
        let write = move |tx: &Tx<'_>| app.delete_endpoint(tx, &id, Api::GraphQl);
        context.app.change(write).await?;
        noted(context, "endpoint", &removed, "removed");
        Ok(None)
    }

    /// Gives an endpoint another template.
    async fn update_endpoint_template(
        context: &Ctx,
        input: UpdateEndpointTemplateInput,
    ) -> FieldResult<Option<EndpointView>> {
        let change = Endpoints { template_id: Some(input.template_id), ..Endpoints::default() };
        sparse(context, input.endpoint_id, change).await
    }

    /// Sets the least number of workers, and nothing else.
    async fn update_endpoint_workers_min(
        context: &Ctx,
        input: UpdateEndpointWorkersMinInput,
    ) -> FieldResult<Option<EndpointView>> {
        let workers_min = Some(i64::from(input.worker_count));
        sparse(context, input.endpoint_id, Endpoints { workers_min, ..Endpoints::default() }).await
    }

    /// Sets the greatest number of workers, and nothing else.
    async fn update_endpoint_workers_max(
        context: &Ctx,
        input: UpdateEndpointWorkersMaxInput,
    ) -> FieldResult<Option<EndpointView>> {
        let workers_max = Some(i64::from(input.worker_count));
        sparse(context, input.endpoint_id, Endpoints { workers_max, ..Endpoints::default() }).await
    }

    /// Makes a template, or replaces the one with the given id.
    async fn save_template(
        context: &Ctx,
        input: SaveTemplateInput,
    ) -> FieldResult<Option<TemplateView>> {
        let template = save_template(context, input).await?;
        noted(context, "template", &template.id, "saved");
        Ok(Some(TemplateView(template)))
    }

    /// Deletes a template that no endpoint uses, by its name.
    async fn delete_template(context: &Ctx, template_name: String) -> FieldResult<Option<bool>> {
        let delay_ms = context.app.quirks.template_delay_ms();
        let write = move |tx: &Tx<'_>| {
            let id = objects::named::<Template>(tx.conn, &template_name)?;
            let id = id.ok_or_else(|| Problem::not_found("template"))?;
            template::delete(tx, &id, delay_ms)?;
            Ok(id)
        };
        let id = context.app.store.write(write).await?;
        noted(context, "template", &id, "removed");
        Ok(None)
    }

    /// Makes a pod with GPUs and starts it.
    async fn pod_find_and_deploy_on_demand(
        context: &Ctx,
        input: PodFindAndDeployOnDemandInput,
    ) -> FieldResult<Option<PodView>> {
        deploy(context, input.into_resource()).await
    }

    /// Makes a pod with GPUs and a bid and starts it.
    async fn pod_rent_interruptable(
        context: &Ctx,
        input: PodRentInterruptableInput,
    ) -> FieldResult<Option<PodView>> {
        deploy(context, input.into_resource()?).await
    }

    /// Makes a pod without GPUs and starts it.
    async fn deploy_cpu_pod(
        context: &Ctx,
        input: DeployCpuPodInput,
    ) -> FieldResult<Option<PodView>> {
        deploy(context, input.into_resource()?).await
    }

    /// Stops a pod; its volume stays.
    async fn pod_stop(context: &Ctx, input: PodStopInput) -> FieldResult<Option<PodView>> {
        Ok(Some(PodView::of(context.app.act_on_pod(&input.pod_id, Action::Stop).await?)))
    }

    /// Starts a pod that is stopped.
    async fn pod_resume(context: &Ctx, input: PodResumeInput) -> FieldResult<Option<PodView>> {
        let terms = Terms { gpu_count: input.gpu_count.map(i64::from), bid_per_gpu: None };
        resume(context, &input.pod_id, terms).await
    }

    /// Starts a pod with a bid that is stopped.
    async fn pod_bid_resume(
        context: &Ctx,
        input: PodBidResumeInput,
    ) -> FieldResult<Option<PodView>> {
        let bid_per_gpu = Some(input.bid_per_gpu);
        let terms = Terms { gpu_count: input.gpu_count.map(i64::from), bid_per_gpu };
        resume(context, &input.pod_id, terms).await
    }

    /// Gives a running pod another process and an empty disk.
    async fn pod_reset(context: &Ctx, input: PodResetInput) -> FieldResult<Option<PodView>> {
        Ok(Some(PodView::of(context.app.act_on_pod(&input.pod_id, Action::Reset).await?)))
    }

    /// Changes the container of a pod.
    async fn pod_edit_job(context: &Ctx, input: PodEditJobInput) -> FieldResult<Option<PodView>> {
        let (id, input) = (input.pod_id.clone(), input.into_resource());
        let write = move |tx: &Tx<'_>| change::update(tx, &id, input);
        let pod = context.app.change_pods(write).await?;
        noted(context, "pod", &pod.id, "changed");
        Ok(Some(PodView::of(pod)))
    }

    /// Deletes a pod with its volume.
    async fn pod_terminate(context: &Ctx, input: PodTerminateInput) -> FieldResult<Option<bool>> {
        context.app.delete_pod(&input.pod_id).await?;
        context.entry.object(&input.pod_id);
        Ok(None)
    }

    /// Changes the settings of the account.
    async fn update_user_settings(
        context: &Ctx,
        input: UserSettingsInput,
    ) -> FieldResult<Option<Account>> {
        if let Some(text) = input.pub_key {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let keys = lines.map(str::to_owned).collect();
            context.app.store.write(move |tx| account::set_ssh_keys(tx, keys)).await?;
        }
        Ok(Some(Account))
    }

    /// Makes a secret.
    async fn secret_create(
        context: &Ctx,
        input: SecretCreateInput,
    ) -> FieldResult<Option<SecretView>> {
        let SecretCreateInput { name, value, description } = input;
        let write = move |tx: &Tx<'_>| secret::create(tx, name, value, description);
        let secret = context.app.change(write).await?;
        noted(context, "secret", &secret.id, "made");
        Ok(Some(SecretView(secret)))
    }

    /// Deletes a secret.
    async fn secret_delete(context: &Ctx, id: juniper::ID) -> FieldResult<Option<bool>> {
        let (id, removed) = (id.to_string(), id.to_string());
        context.app.change(move |tx| objects::delete::<Secret>(tx, &id)).await?;
        noted(context, "secret", &removed, "removed");
        Ok(None)
    }

    /// Makes a registry credential.
    async fn save_registry_auth(
        context: &Ctx,
        input: SaveRegistryAuthInput,
    ) -> FieldResult<Option<RegistryView>> {
        let input = input.into_resource();
        let auth = context.app.store.write(move |tx| registry::create(tx, input)).await?;
        noted(context, "container registry auth", &auth.id, "made");
        Ok(Some(RegistryView(auth)))
    }

    /// Replaces the username and password of a registry credential.
    async fn update_registry_auth(
        context: &Ctx,
        input: UpdateRegistryAuthInput,
    ) -> FieldResult<Option<RegistryView>> {
        let (id, input) = (input.id.clone(), input.into_resource());
        let auth = context.app.store.write(move |tx| registry::rotate(tx, &id, &input)).await?;
        noted(context, "container registry auth", &auth.id, "rotated");
        Ok(Some(RegistryView(auth)))
    }

    /// Deletes a registry credential.
    async fn delete_registry_auth(
        context: &Ctx,
        registry_auth_id: String,
    ) -> FieldResult<Option<bool>> {
        let id = registry_auth_id.clone();
        context.app.store.write(move |tx| registry::delete(tx, &id)).await?;
        noted(context, "container registry auth", &registry_auth_id, "removed");
        Ok(None)
    }

    /// Makes a network volume.
    async fn create_network_volume(
        context: &Ctx,
        input: CreateNetworkVolumeInput,
    ) -> FieldResult<Option<VolumeView>> {
        let input = VolumeInput {
            name: Some(input.name),
            size: Some(i64::from(input.size)),
            data_center_id: Some(input.data_center_id),
            tier: None,
        };
        let volume = context.app.store.write(move |tx| volume::create(tx, input)).await?;
        noted(context, "network volume", &volume.id, "made");
        Ok(Some(VolumeView(volume)))
    }

    /// Changes a network volume.
    async fn update_network_volume(
        context: &Ctx,
        input: UpdateNetworkVolumeInput,
    ) -> FieldResult<Option<VolumeView>> {
        let id = input.id;
        let size = input.size.map(i64::from);
        let input = VolumeInput { name: input.name, size, ..VolumeInput::default() };
        let volume = context.app.store.write(move |tx| volume::update(tx, &id, input)).await?;
        noted(context, "network volume", &volume.id, "changed");
        Ok(Some(VolumeView(volume)))
    }

    /// Deletes a network volume that nothing mounts.
    async fn delete_network_volume(
        context: &Ctx,
        input: DeleteNetworkVolumeInput,
    ) -> FieldResult<Option<bool>> {
        context.app.delete_volume(&input.id).await?;
        context.entry.object(&input.id);
        Ok(None)
    }
}
