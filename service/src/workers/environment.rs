//! The command and the environment of a worker: what the service's worker SDK expects to find.

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

/// What a worker inherits from the service, and a service that a command starts from the command;
/// everything else would be a leak.
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

/// The command of a worker or a pod: the template's entrypoint and command, else the echo worker.
pub(crate) fn command(template: Option<&Template>, options: &Options) -> Vec<OsString> {
    let parts = template.map(|template| {
        template.docker_entrypoint.iter().chain(&template.docker_start_cmd).map(OsString::from)
    });
    let command: Vec<OsString> = parts.into_iter().flatten().collect();
    if command.is_empty() { options.echo_worker.clone() } else { command }
}

/// The variables of a process, in the order in which the later replace the earlier.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// The environment of a worker.
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

/// Puts an environment together: what is inherited, what the user set, what the service sets, and
/// the folders.
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

/// The variables of the worker protocol. The token stands in the addresses too: the SDK prefers
/// a key from its own configuration file to the one that it is given here.
fn channel(
    wanted: &Wanted,
    worker: &Worker,
    options: &Options,
    base: &str,
) -> Vec<(&'static str, String)> {
    let endpoint = &wanted.endpoint;
    let query = format!("gpu={}&token={}", gpu(endpoint).replace(' ', "+"), worker.token);
    let channel = format!("{base}/{}", endpoint.id);
    // The SDK divides by 1000 as an integer, and 0 would be a busy loop.
    let interval = options.timing.ping_interval.as_millis().max(1000);
    vec![
        ("RUNPOD_WEBHOOK_GET_JOB", format!("{channel}/job-take/$ID?{query}")),
        ("RUNPOD_WEBHOOK_POST_OUTPUT", format!("{channel}/job-done/$RUNPOD_POD_ID/$ID?{query}")),
        ("RUNPOD_WEBHOOK_POST_STREAM", format!("{channel}/job-stream/$RUNPOD_POD_ID/$ID?{query}")),
        // The SDK makes its own query string for pings: the token stands in the header there.
        ("RUNPOD_WEBHOOK_PING", format!("{channel}/ping/$RUNPOD_POD_ID")),
        ("RUNPOD_PING_INTERVAL", interval.to_string()),
        ("RUNPOD_AI_API_KEY", worker.token.clone()),
        ("RUNPOD_ENDPOINT_SECRET", worker.token.clone()),
    ]
}

/// The variables that tell a worker who it is and what it has.
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
