//! Opening an object store: what `[state]` and the environment say, in the terms of the client.
//!
//! Credentials come from the environment only, under the names that the services' own tools use. An
//! address that the spec names is used only where credentials may go: this machine, or a host in
//! `PLUMB_ALLOWED_HOSTS`. What else of a spec becomes a part of an address (`parts`) has no sign in it
//! with which it could lead elsewhere.

use std::sync::Arc;
use std::time::Duration;

use engine::hosts::is_loopback;
use engine::spec::settings::StateSettings;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::http::Connector;
use super::parts;
use crate::open::{Environment, Refusal};

/// A service that can be asked, and its place in words.
pub(super) struct Service {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) place: String,
}

/// Opens the service that the backend names; none if this build does not have it.
pub(super) fn open(
    settings: &StateSettings,
    env: &Environment<'_>,
) -> Result<Option<Service>, Refusal> {
    // The one that speaks TLS for everything in this process. Whoever was first is as good.
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
    let mut is_local = false;
    if let Some(region) = parts::region(settings)? {
        builder = builder.with_region(region);
    }
    if let Some(url) = url(settings, env)? {
        is_local = url.is_local;
        builder = builder.with_config(key::<AmazonS3ConfigKey>("AWS_ENDPOINT_URL")?, url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<AmazonS3ConfigKey>(name)?, value);
    }
    if let Some(is_set) = settings.is_set("path_style") {
        builder = builder.with_virtual_hosted_style_request(!is_set);
    }
    let at = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];
    let is_plain = env.get("AWS_ALLOW_HTTP").is_some() || stays_here(env, &at, is_local);
    let store = builder.with_allow_http(is_plain).build().map_err(|_| unusable("AWS_*"))?;
    Ok(Service { store: Arc::new(store), place: format!("s3://{bucket}") })
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
    let mut is_local = false;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_http_connector(Connector)
        .with_retry(retries());
    if let Some(url) = url(settings, env)? {
        is_local = url.is_local;
        builder = builder.with_config(key::<GoogleConfigKey>("GOOGLE_BASE_URL")?, url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<GoogleConfigKey>(name)?, value);
    }
    let is_plain = stays_here(env, &["GOOGLE_BASE_URL"], is_local);
    let builder = builder.with_client_options(ClientOptions::new().with_allow_http(is_plain));
    let store = builder.build().map_err(|_| unusable("GOOGLE_*"))?;
    Ok(Service { store: Arc::new(store), place: format!("gs://{bucket}") })
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
    let mut is_local = false;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(container)
        .with_http_connector(Connector)
        .with_retry(retries());
    if let Some(account) = parts::account(settings)? {
        builder = builder.with_account(account);
    }
    if let Some(url) = url(settings, env)? {
        is_local = url.is_local;
        builder = builder.with_config(key::<AzureConfigKey>("AZURE_STORAGE_ENDPOINT")?, url.text);
    }
    for (name, value) in given(env, NAMES) {
        builder = builder.with_config(key::<AzureConfigKey>(name)?, value);
    }
    let is_plain = stays_here(env, &["AZURE_STORAGE_ENDPOINT"], is_local);
    let builder = builder.with_client_options(ClientOptions::new().with_allow_http(is_plain));
    let store = builder.build().map_err(|_| unusable("AZURE_*"))?;
    Ok(Service { store: Arc::new(store), place: format!("az://{container}") })
}

/// The variables that are set.
fn given<'a>(env: &Environment<'_>, names: &[&'a str]) -> Vec<(&'a str, String)> {
    names.iter().filter_map(|name| Some((*name, env.get(name)?))).collect()
}

fn key<K: std::str::FromStr>(name: &str) -> Result<K, Refusal> {
    let known = name.to_lowercase().parse();
    known.map_err(|_| Refusal::new(format!("{name} is not known to the store's client")))
}

/// What the client says of settings that it cannot use may show them.
fn unusable(variables: &str) -> Refusal {
    Refusal::new("the object store cannot be opened with these settings").help(format!(
        "look at `[state]` and at the variables {variables}: an address may be wrong, a credential \
         missing or not in the form that it should have"
    ))
}

/// An address that the spec gives.
struct Url {
    text: String,
    is_local: bool,
}

fn url(settings: &StateSettings, env: &Environment<'_>) -> Result<Option<Url>, Refusal> {
    let Some(text) = settings.text("url") else { return Ok(None) };
    let text = text.trim_end_matches('/').to_owned();
    let host = host(&text).ok_or_else(|| {
        Refusal::new("the `url` of `[state]` is not an address")
            .help("write it like https://host or http://127.0.0.1:9000")
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

/// Whether requests stay on this machine, so that they need no TLS: by the last of `names` that is
/// set, and by the spec only where none is. The spec takes TLS from no address but its own.
fn stays_here(env: &Environment<'_>, names: &[&str], in_spec: bool) -> bool {
    let given = names.iter().rev().find_map(|name| env.get(name));
    given.map_or(in_spec, |url| host(&url).is_some_and(is_loopback))
}

/// The host of an address, without its port, where the client sees the same one as a reader does.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let parsed = reqwest::Url::parse(url).ok()?;
    let asked = parsed.host_str()?.trim_matches(['[', ']']);
    // Whatever stands before an @ is no host, and a host behind one is not what a reader sees.
    let is_seen = host.eq_ignore_ascii_case(asked) && !authority.contains('@');
    (!host.is_empty() && is_seen).then_some(host)
}

/// Few and short: what is not known after that is looked up, and then tried again, by us.
fn retries() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
