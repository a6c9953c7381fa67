//! The command and the environment of a worker, as the service's worker SDK expects them.

use std::ffi::OsString;

use super::fleet::Wanted;
use super::limits::LIMITS;
use super::mounts::MOUNTS;
use super::volumes::Places;
use super::worker::Worker;
use crate::app::App;
use crate::options::Options;
use crate::resources::endpoint::Endpoint;
use crate::resources::template::Template;

/// The variables that a worker inherits from the service, and that a service inherits from the
/// command that starts it. No other variable is passed on, because it could be a secret.
pub const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "VIRTUAL_ENV",
];

/// Returns the command of a worker or a pod: the template's entrypoint and command, else the echo
/// worker.
pub(crate) fn command(template: Option<&Template>, options: &Options) -> Vec<OsString> {
    let parts = template.map(|template| {
        template.docker_entrypoint.iter().chain(&template.docker_start_cmd).map(OsString::from)
    });
    let command: Vec<OsString> = parts.into_iter().flatten().collect();
    if command.is_empty() { options.echo_worker.clone() } else { command }
}

/// The variables of a process. A later one replaces an earlier one of the same name.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// Returns the environment of a worker.
pub(super) fn environment(
    wanted: &Wanted,
    worker: &Worker,
    app: &App,
    places: &Places,
    are_mounted: bool,
) -> std::io::Result<Environment> {
    let own = wanted.template.iter().flat_map(|template| &template.env);
    let own = own.chain(&wanted.endpoint.env);
    let protocol = match worker.server.get() {
        Some(server) => server.variables(),
        None => channel(wanted, worker, &app.options, &app.worker_url),
    };
    let fixed = protocol.into_iter().chain(identity(wanted, worker));
    let mut all = assemble(own, fixed, places, are_mounted)?;
    if app.engine.is_none() && !app.options.worker_limits.is_empty() {
        all.push((LIMITS.into(), serde_json::to_string(&app.options.worker_limits)?.into()));
    }
    Ok(all)
}

/// Returns an environment: the inherited variables, then the user's, then the service's, then those
/// of the folders.
pub(crate) fn assemble<'a, N: Into<OsString>>(
    own: impl Iterator<Item = (&'a String, &'a String)>,
    fixed: impl IntoIterator<Item = (N, String)>,
    places: &Places,
    are_mounted: bool,
) -> std::io::Result<Environment> {
    let mut all = Environment::new();
    let inherited =
        INHERITED.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    all.extend(inherited);
    all.extend(places.defaults(are_mounted).into_iter().map(|(name, value)| (name.into(), value)));
    all.extend(own.map(|(name, value)| (name.into(), value.into())));
    all.extend(fixed.into_iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(places.variables().into_iter().map(|(name, value)| (name.into(), value)));
    if are_mounted {
        all.push((MOUNTS.into(), serde_json::to_string(&places.mounts)?.into()));
    }
    Ok(all)
}

/// Returns the variables of the worker protocol. The token is in the addresses too, because the SDK
/// prefers a key from its own configuration file to the key that it gets here.
fn channel(
    wanted: &Wanted,
    worker: &Worker,
    options: &Options,
    base: &str,
) -> Vec<(&'static str, String)> {
    let endpoint = &wanted.endpoint;
    let query = format!("gpu={}&token={}", gpu(endpoint).replace(' ', "+"), worker.token);
    let channel = format!("{base}/{}", endpoint.id);
    // The SDK divides this by 1000 as an integer, and a quotient of 0 would make it ping without a
    // pause.
    let interval = options.timing.ping_interval.as_millis().max(1000);
    vec![
        ("RUNPOD_WEBHOOK_GET_JOB", format!("{channel}/job-take/$ID?{query}")),
        ("RUNPOD_WEBHOOK_POST_OUTPUT", format!("{channel}/job-done/$RUNPOD_POD_ID/$ID?{query}")),
        ("RUNPOD_WEBHOOK_POST_STREAM", format!("{channel}/job-stream/$RUNPOD_POD_ID/$ID?{query}")),
        // The SDK writes its own query string for pings, so the token is sent in the header.
        ("RUNPOD_WEBHOOK_PING", format!("{channel}/ping/$RUNPOD_POD_ID")),
        ("RUNPOD_PING_INTERVAL", interval.to_string()),
        ("RUNPOD_AI_API_KEY", worker.token.clone()),
        ("RUNPOD_ENDPOINT_SECRET", worker.token.clone()),
    ]
}

/// Returns the variables that tell a worker its own id, its endpoint, and its equipment.
fn identity(wanted: &Wanted, worker: &Worker) -> Vec<(&'static str, String)> {
    let endpoint = &wanted.endpoint;
    vec![
        ("RUNPOD_AI_API_ID", endpoint.id.clone()),
        ("RUNPOD_ENDPOINT_ID", endpoint.id.clone()),
        ("RUNPOD_POD_ID", worker.id.clone()),
        ("RUNPOD_POD_HOSTNAME", format!("{}-plumb", worker.id)),
        ("RUNPOD_GPU_TYPE_ID", gpu(endpoint).to_owned()),
        ("RUNPOD_GPU_COUNT", endpoint.gpu_count.to_string()),
        ("RUNPOD_SKIP_AUTO_SYSTEM_CHECKS", "true".to_owned()),
        ("RUNPOD_SKIP_GPU_CHECK", "true".to_owned()),
        ("RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS", "true".to_owned()),
    ]
}

fn gpu(endpoint: &Endpoint) -> &str {
    endpoint.gpu_type_ids.first().map_or("none", String::as_str)
}
