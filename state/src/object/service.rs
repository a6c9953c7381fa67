//! The opening of an object store: it converts `[state]` and the environment to settings of the client.
//!
//! Credentials come from the environment only, under the names that the services' own tools use. An address
//! from the spec is used only if credentials may be sent there: to this machine, or to a host in
//! `PLUMB_ALLOWED_HOSTS`. Other parts of a spec that become part of an address (`parts`) have no character
//! that could lead to another host.

use std::sync::Arc;
use std::time::Duration;

use engine::config::settings::StateSettings;
use engine::hosts::is_loopback;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::http::Connector;
use super::parts;
use crate::environment::{Environment, Refusal};

/// The client of a service, and a description of its place.
pub(super) struct Service {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The bucket or container.
    bucket: String,
    /// The address or account, if the name of the bucket alone does not identify the service.
    at: Vec<String>,
}

impl Service {
    /// Returns the name of a location in it. Two locations with the same name are the same location. So a
    /// bucket of one service has another name than a bucket of another service, or of another account.
    pub(super) fn place(&self, prefix: &Path) -> String {
        let place = format!("{}/{prefix}", self.bucket);
        if self.at.is_empty() { place } else { format!("{place} at {}", self.at.join(", ")) }
    }
}

/// Opens the service that the backend names; returns none if this build does not have it.
pub(super) fn open(
    settings: &StateSettings,
    env: &Environment<'_>,
) -> Result<Option<Service>, Refusal> {
    // This installs the TLS implementation of the whole process. If another part has installed it already,
    // that is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    match &*settings.backend {
        #[cfg(feature = "s3")]
        "s3" => s3(settings, env).map(Some),
        #[cfg(feature = "gcs")]
        "gcs" => gcs(settings, env).map(Some),
        #[cfg(feature = "azure")]
        "azure" => azure(settings, env).map(Some),
        _ => Ok(None),
    }
}

#[cfg(feature = "s3")]
fn s3(settings: &StateSettings, env: &Environment<'_>) -> Result<Service, Refusal> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
    const NAMES: &[&str] = &[
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_DEFAULT_REGION",
        "AWS_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL_STS",
        "AWS_ALLOW_HTTP",
        "AWS_METADATA_ENDPOINT",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_SERVER_SIDE_ENCRYPTION",
        "AWS_SSE_KMS_KEY_ID",
    ];
    let bucket = parts::bucket(settings)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_http_connector(Connector)
        .with_retry(retries());
    if let Some(region) = parts::region(settings)? {
        builder = builder.with_region(region);
    }
    let url = url(settings, env)?;
    if let Some(url) = &url {
        builder = builder.with_config(key::<AmazonS3ConfigKey>("AWS_ENDPOINT_URL")?, &url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<AmazonS3ConfigKey>(name)?, value);
    }
    if let Some(is_set) = settings.is_set("path_style") {
        builder = builder.with_virtual_hosted_style_request(!is_set);
    }
    let at = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];
    let is_plain = env.get("AWS_ALLOW_HTTP").is_some() || stays_here(env, &at, url.as_ref());
    let store = builder.with_allow_http(is_plain).build().map_err(|_| unusable("AWS_*"))?;
    let at = address(env, &at, url.as_ref()).into_iter().collect();
    Ok(Service { store: Arc::new(store), bucket: format!("s3://{bucket}"), at })
}

#[cfg(feature = "gcs")]
fn gcs(settings: &StateSettings, env: &Environment<'_>) -> Result<Service, Refusal> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
    const NAMES: &[&str] = &[
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_BASE_URL",
        "GOOGLE_SKIP_SIGNATURE",
    ];
    let bucket = parts::bucket(settings)?;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_http_connector(Connector)
        .with_retry(retries());
    let url = url(settings, env)?;
    if let Some(url) = &url {
        builder = builder.with_config(key::<GoogleConfigKey>("GOOGLE_BASE_URL")?, &url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<GoogleConfigKey>(name)?, value);
    }
    let at = ["GOOGLE_BASE_URL"];
    let is_plain = stays_here(env, &at, url.as_ref());
    let builder =
        builder.with_client_options(object_store::ClientOptions::new().with_allow_http(is_plain));
    let store = builder.build().map_err(|_| unusable("GOOGLE_*"))?;
    let at = address(env, &at, url.as_ref()).into_iter().collect();
    Ok(Service { store: Arc::new(store), bucket: format!("gs://{bucket}"), at })
}

#[cfg(feature = "azure")]
fn azure(settings: &StateSettings, env: &Environment<'_>) -> Result<Service, Refusal> {
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
    const NAMES: &[&str] = &[
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_ENDPOINT",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_TENANT_ID",
        "AZURE_AUTHORITY_HOST",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_MSI_ENDPOINT",
        "AZURE_OBJECT_ID",
        "AZURE_MSI_RESOURCE_ID",
        "AZURE_USE_AZURE_CLI",
    ];
    let container = parts::container(settings)?;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(container)
        .with_http_connector(Connector)
        .with_retry(retries());
    let account = parts::account(settings)?;
    if let Some(account) = account {
        builder = builder.with_account(account);
    }
    let url = url(settings, env)?;
    if let Some(url) = &url {
        builder = builder.with_config(key::<AzureConfigKey>("AZURE_STORAGE_ENDPOINT")?, &url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<AzureConfigKey>(name)?, value);
    }
    let at = ["AZURE_STORAGE_ENDPOINT"];
    let is_plain = stays_here(env, &at, url.as_ref());
    let builder =
        builder.with_client_options(object_store::ClientOptions::new().with_allow_http(is_plain));
    let store = builder.build().map_err(|_| unusable("AZURE_*"))?;
    let account = env.get("AZURE_STORAGE_ACCOUNT_NAME").or_else(|| account.map(ToOwned::to_owned));
    let at = account.into_iter().chain(address(env, &at, url.as_ref())).collect();
    Ok(Service { store: Arc::new(store), bucket: format!("az://{container}"), at })
}

/// Returns the variables that are set.
fn given<'a>(env: &Environment<'_>, names: &[&'a str]) -> Vec<(&'a str, String)> {
    names.iter().filter_map(|name| Some((*name, env.get(name)?))).collect()
}

fn key<K: std::str::FromStr>(name: &str) -> Result<K, Refusal> {
    let known = name.to_lowercase().parse();
    known.map_err(|_| Refusal::new(format!("the client of the object store does not know {name}")))
}

/// Returns the error about settings that the client cannot use. The client's own error may show their values.
fn unusable(variables: &str) -> Refusal {
    Refusal::new("the object store cannot be opened with these settings").help(format!(
        "check `[state]` and the variables {variables}: an address may be wrong, or a credential \
         missing or malformed"
    ))
}

/// An address from the spec.
struct Url {
    text: String,
    is_local: bool,
}

fn url(settings: &StateSettings, env: &Environment<'_>) -> Result<Option<Url>, Refusal> {
    let Some(text) = settings.text("url") else { return Ok(None) };
    let text = text.trim_end_matches('/').to_owned();
    let host = host(&text).ok_or_else(|| {
        Refusal::new("the `url` of `[state]` is not an address")
            .help("use an address such as https://host or http://127.0.0.1:9000")
    })?;
    let is_local = is_loopback(host);
    if !is_local && !env.allows(host) {
        return Err(Refusal::new(format!("credentials of the state are not sent to {host}")).help(
            format!(
                "the spec names that host, and a spec may come from someone else: if you trust it, \
                 set PLUMB_ALLOWED_HOSTS={host}"
            ),
        ));
    }
    Ok(Some(Url { text, is_local }))
}

/// Returns the address from the environment: that of the last of `names` that is set.
fn in_environment(env: &Environment<'_>, names: &[&str]) -> Option<String> {
    names.iter().rev().find_map(|name| env.get(name))
}

/// Returns true if requests stay on this machine, so that they need no TLS. The address in the environment
/// decides, or else that in the spec: the spec can turn TLS off only for its own address.
fn stays_here(env: &Environment<'_>, names: &[&str], in_spec: Option<&Url>) -> bool {
    match in_environment(env, names) {
        Some(url) => host(&url).is_some_and(is_loopback),
        None => in_spec.is_some_and(|url| url.is_local),
    }
}

/// Returns the address of requests if it is not the service's own, in a form that may be shown: without the
/// text before an @.
fn address(env: &Environment<'_>, names: &[&str], in_spec: Option<&Url>) -> Option<String> {
    let given = in_environment(env, names).or_else(|| in_spec.map(|url| url.text.clone()))?;
    let Ok(url) = reqwest::Url::parse(&given) else {
        return Some("an address that is none".to_owned());
    };
    let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    Some(format!("{origin}{path}"))
}

/// Returns the host of an address, without its port; none if the client and a reader would see different
/// hosts.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let parsed = reqwest::Url::parse(url).ok()?;
    let asked = parsed.host_str()?.trim_matches(['[', ']']);
    // The text before an @ is no host, and the host after it is not the one that a reader sees.
    let is_seen = host.eq_ignore_ascii_case(asked) && !authority.contains('@');
    (!host.is_empty() && is_seen).then_some(host)
}

/// Returns few and short repetitions: after them, our own code reads the outcome, and repeats.
fn retries() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

#[cfg(test)]
mod tests {
    #[cfg(all(feature = "s3", feature = "azure", feature = "gcs"))]
    use engine::value::Value;

    use super::*;

    #[cfg(all(feature = "s3", feature = "azure", feature = "gcs"))]
    #[test]
    fn a_place_names_its_service() {
        let place = |backend: &str, values: &[(&str, &str)], env: &[(&str, &str)]| {
            let nowhere = engine::config::span(engine::diagnostics::FileId(0), 0..0);
            let mut settings = StateSettings { backend: backend.into(), ..StateSettings::file() };
            for (key, value) in values {
                settings.values.insert((*key).into(), (Value::String((*value).into()), nowhere));
            }
            let look = |name: &str| {
                env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let service = open(&settings, &Environment::new(&look)).unwrap().unwrap();
            service.place(&Path::from("team/prod"))
        };
        let s3 = |url, env| place("s3", &[("bucket", "b-1"), ("region", "eu"), ("url", url)], env);
        let here = "http://127.0.0.1:9000/";
        assert_eq!(s3(here, &[]), "s3://b-1/team/prod at http://127.0.0.1:9000");
        let other = ("AWS_ENDPOINT_URL_S3", "https://me:pw@minio.example/x/");
        assert_eq!(s3(here, &[other]), "s3://b-1/team/prod at https://minio.example/x");
        let plain = place("s3", &[("bucket", "b-1"), ("region", "eu")], &[]);
        assert_eq!(plain, "s3://b-1/team/prod");
        let key = ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5");
        let az = |env: &[_]| place("azure", &[("container", "con"), ("account", "one")], env);
        assert_eq!(az(&[key]), "az://con/team/prod at one");
        assert_eq!(az(&[key, ("AZURE_STORAGE_ACCOUNT_NAME", "two")]), "az://con/team/prod at two");
        let gcs =
            place("gcs", &[("bucket", "b-1"), ("url", here)], &[("GOOGLE_SKIP_SIGNATURE", "true")]);
        assert_eq!(gcs, "gs://b-1/team/prod at http://127.0.0.1:9000");
    }

    #[test]
    fn a_host_is_what_a_reader_sees() {
        let cases = [
            ("https://a.example/x", Some("a.example")),
            ("http://127.0.0.1:9000", Some("127.0.0.1")),
            ("http://[::1]:9000/x", Some("::1")),
            ("https://localhost@evil.example", None),
            ("a.example", None),
            ("https:///x", None),
            ("https://127.0.0.1\\.evil.example", None),
            ("https://evil.example\\.127.0.0.1/", None),
            ("https://localhost\t.evil.example/", None),
            ("https://A.example/x", Some("A.example")),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
