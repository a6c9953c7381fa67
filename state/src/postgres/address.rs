//! The address of the database and the connection to it, from the environment first, then the spec.
//!
//! The password comes only from the environment. A host from the spec is used only if a password may be sent
//! there: to this machine, or to a host in `PLUMB_ALLOWED_HOSTS`. A spec cannot turn TLS off for a connection
//! that leaves this machine, whatever the source of the host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::config::settings::StateSettings;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::environment::{Environment, Refusal};

/// The variable with the whole address.
pub(crate) const URL: &str = "PLUMB_STATE_URL";
/// The folder of the server's socket, for settings without a host, if it exists; else `localhost` is used.
const SOCKETS: &str = "/var/run/postgresql";

/// The longest silence of a server.
const ANSWER: Duration = Duration::from_secs(15);

/// The parameters of a connection.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    /// The TLS settings; none if the connection stays on this machine, or the user turned TLS off.
    pub(super) tls: Option<MakeRustlsConnect>,
    /// The longest wait for an answer, or for the next part of one.
    pub(super) answer: Duration,
}

/// The trust in a connection, by the words of PostgreSQL's clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Disable,
    /// TLS if the connection leaves this machine.
    Default,
    Require,
}

impl Address {
    pub(super) fn of(settings: &StateSettings, env: &Environment<'_>) -> Result<Self, Refusal> {
        let (url, in_url) = url(env)?;
        let mut config = url.unwrap_or_default();
        fill(&mut config, settings, env)?;
        refuse_at(&config)?;
        let is_local = stays_here(&config);
        let mode = match in_url.mode.or_else(|| env.get("PGSSLMODE")) {
            Some(word) => mode(&word)?,
            None => mode_of_spec(settings, is_local)?,
        };
        let is_plain = mode == Mode::Disable || (mode == Mode::Default && is_local);
        config.ssl_mode(if is_plain { SslMode::Disable } else { SslMode::Require });
        config.connect_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(10));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(25));
        let roots = in_url.roots.or_else(|| env.get("PGSSLROOTCERT"));
        let tls = if is_plain { None } else { Some(tls(roots.as_deref())?) };
        Ok(Self { config, tls, answer: ANSWER })
    }

    /// Returns host and database, for people.
    pub(super) fn shown(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => "localhost".to_owned(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let port = if port == 5432 { String::new() } else { format!(":{port}") };
        format!("{host}{port}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// The parameters of a URL that the driver does not read.
#[derive(Default)]
struct InUrl {
    mode: Option<String>,
    roots: Option<String>,
}

fn url(env: &Environment<'_>) -> Result<(Option<Config>, InUrl), Refusal> {
    let Some(text) = env.get(URL) else { return Ok((None, InUrl::default())) };
    // The driver reads the text up to the first @ as the password, and the rest as a host.
    if text.contains("://") && text.matches('@').count() > 1 {
        return Err(Refusal::new(format!("{URL} has more than one `@`")).help(AT));
    }
    let (text, in_url) = take_out(&text);
    // The driver's message about an unreadable text may show a part of it.
    let config = text.parse().map_err(|_| {
        Refusal::new(format!("{URL} is not the address of a PostgreSQL database"))
            .help("use an address such as postgres://user:password@host/database")
    })?;
    Ok((Some(config), in_url))
}

/// Removes the parameters about TLS from a URL; returns them separately.
fn take_out(text: &str) -> (String, InUrl) {
    let mut in_url = InUrl::default();
    let mut keep = |part: &&str| match part.split_once('=') {
        Some(("sslmode", value)) => {
            in_url.mode = Some(value.to_owned());
            false
        }
        Some(("sslrootcert", value)) => {
            in_url.roots = Some(value.to_owned());
            false
        }
        _ => true,
    };
    let text = if let Some((front, query)) = text.split_once('?') {
        let query: Vec<&str> = query.split('&').filter(&mut keep).collect();
        if query.is_empty() { front.to_owned() } else { format!("{front}?{}", query.join("&")) }
    } else if text.contains("://") {
        text.to_owned()
    } else {
        text.split_whitespace().filter(&mut keep).collect::<Vec<_>>().join(" ")
    };
    (text, in_url)
}

/// Fills in the parts that the URL does not have.
fn fill(
    config: &mut Config,
    settings: &StateSettings,
    env: &Environment<'_>,
) -> Result<(), Refusal> {
    if config.get_hosts().is_empty() {
        config.host(host(settings, env)?);
    }
    if config.get_ports().is_empty() {
        let given = match env.get("PGPORT") {
            Some(text) => Some(text.parse().map_err(|_| Refusal::new("PGPORT is not a port"))?),
            None => settings.integer("port").and_then(|port| u16::try_from(port).ok()),
        };
        config.port(given.unwrap_or(5432));
    }
    if config.get_user().is_none() {
        let given = env.get("PGUSER").or_else(|| settings.text("user").map(str::to_owned));
        let user = given.or_else(|| env.get("USER")).unwrap_or_else(|| "postgres".to_owned());
        config.user(user);
    }
    if config.get_password().is_none()
        && let Some(password) = env.get("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_dbname().is_none() {
        let given = env.get("PGDATABASE").or_else(|| settings.text("database").map(str::to_owned));
        let user = config.get_user().unwrap_or_default().to_owned();
        config.dbname(given.unwrap_or(user));
    }
    config.application_name("plumb");
    Ok(())
}

fn host(settings: &StateSettings, env: &Environment<'_>) -> Result<String, Refusal> {
    if let Some(host) = env.get("PGHOST") {
        return Ok(host);
    }
    let Some(host) = settings.text("host") else {
        let sockets = Path::new(SOCKETS).is_dir();
        return Ok(if sockets { SOCKETS } else { "localhost" }.to_owned());
    };
    let named =
        if host.starts_with('/') { Host::Unix(host.into()) } else { Host::Tcp(host.into()) };
    if is_local(&named) || env.allows(host) {
        return Ok(host.to_owned());
    }
    Err(untrusted("the password of the database", host, "PGHOST or PLUMB_STATE_URL"))
}

/// Refuses a URL with two `@`: the text after the first one would be used as a host, looked up and shown.
fn refuse_at(config: &Config) -> Result<(), Refusal> {
    let has_at = |host: &Host| matches!(host, Host::Tcp(host) if host.contains('@'));
    if config.get_hosts().iter().any(has_at) {
        return Err(Refusal::new("the host of the database has an `@` in it").help(AT));
    }
    Ok(())
}

const AT: &str = "write %40 for an `@` in a user's name, a password or a database's name";

/// Returns the error about a host of the spec that the user has not allowed.
fn untrusted(what: &str, host: &str, variables: &str) -> Refusal {
    Refusal::new(format!("{what} is not sent to {host}")).help(format!(
        "the spec names that host, and a spec may come from someone else: if you trust it, set \
         PLUMB_ALLOWED_HOSTS={host}, or give the address in {variables}"
    ))
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(host) => engine::hosts::is_loopback(host),
    }
}

/// Returns true if the connection stays on this machine.
fn stays_here(config: &Config) -> bool {
    config.get_hosts().iter().all(is_local)
        && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

/// Reads the TLS setting of the spec: it can turn TLS on, and off only for this machine.
fn mode_of_spec(settings: &StateSettings, is_local: bool) -> Result<Mode, Refusal> {
    let mode = settings.text("sslmode").map_or(Ok(Mode::Default), mode)?;
    if mode != Mode::Disable || is_local {
        return Ok(mode);
    }
    Err(Refusal::new("`sslmode` of `[state]` would send the password and the state in clear").help(
        "a spec may come from someone else: leave `sslmode` out, or set PGSSLMODE=disable if you \
         mean it",
    ))
}

fn mode(word: &str) -> Result<Mode, Refusal> {
    match word {
        "disable" => Ok(Mode::Disable),
        "allow" | "prefer" => Ok(Mode::Default),
        "require" | "verify-ca" | "verify-full" => Ok(Mode::Require),
        _ => Err(Refusal::new("the `sslmode` of the database is unknown")
            .help("use disable, prefer, require or verify-full")),
    }
}

/// Returns TLS settings that always check the server's certificate, even if PostgreSQL's own clients would
/// not.
fn tls(roots: Option<&str>) -> Result<MakeRustlsConnect, Refusal> {
    let mut store = RootCertStore::empty();
    if let Some(path) = roots {
        let failed = || Refusal::new(format!("no certificates can be read from {path}"));
        let found = CertificateDer::pem_file_iter(path).map_err(|_| failed())?;
        for certificate in found {
            store.add(certificate.map_err(|_| failed())?).map_err(|_| failed())?;
        }
    } else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if store.is_empty() {
        return Err(Refusal::new("there are no certificates to verify that of the database").help(
            "install those of the system (ca-certificates), or name a file in PGSSLROOTCERT",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| Refusal::new("TLS cannot be set up"))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use engine::value::Value;

    use super::*;

    fn settings(values: &[(&str, &str)]) -> StateSettings {
        let mut settings = StateSettings::file();
        settings.backend = "postgres".into();
        for (key, value) in values {
            let value = Value::String((*value).into());
            settings.values.insert(
                (*key).into(),
                (value, engine::config::span(engine::diagnostics::FileId(0), 0..0)),
            );
        }
        settings
    }

    fn of(spec: &[(&str, &str)], env: &[(&str, &str)]) -> Result<Address, Refusal> {
        let look = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Address::of(&settings(spec), &Environment::new(&look))
    }

    #[test]
    fn the_environment_goes_before_the_spec() {
        let address = of(&[("host", "localhost"), ("database", "a")], &[("PGUSER", "u")]).unwrap();
        assert_eq!(address.shown(), "localhost/a");
        assert!(address.tls.is_none());
        let url = [("PLUMB_STATE_URL", "postgres://u:hunter2@127.0.0.1:6000/b?sslmode=disable")];
        let address = of(&[("host", "localhost"), ("database", "a")], &url).unwrap();
        assert_eq!(address.shown(), "127.0.0.1:6000/b");
        let words = [("PLUMB_STATE_URL", "host=127.0.0.1 user=u sslmode=verify-full dbname=c")];
        let address = of(&[], &words).unwrap();
        assert_eq!(address.shown(), "127.0.0.1/c");
        assert!(address.tls.is_some(), "asked for, so also on this machine");
    }

    #[test]
    fn what_leaves_this_machine_is_encrypted() {
        let address = of(&[], &[("PGHOST", "db.example"), ("PGUSER", "u")]).unwrap();
        assert!(address.tls.is_some());
        let plain = [("PGHOST", "db.example"), ("PGUSER", "u"), ("PGSSLMODE", "disable")];
        assert!(of(&[], &plain).unwrap().tls.is_none(), "the user said so");
        let error = of(&[], &[("PGSSLMODE", "hunter2")]).err().unwrap();
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn a_spec_takes_tls_from_no_host_elsewhere() {
        let plain = [("sslmode", "disable")];
        for env in [
            [("PGHOST", "db.example"), ("PGPASSWORD", "hunter2")],
            [("PLUMB_STATE_URL", "postgres://u:hunter2@db.example/x"), ("PGUSER", "u")],
            [("PLUMB_STATE_URL", "host=localhost hostaddr=10.0.0.1"), ("PGUSER", "u")],
            [("PLUMB_STATE_URL", "postgres://localhost,db.example/x"), ("PGUSER", "u")],
        ] {
            let error = of(&plain, &env).err().unwrap();
            assert!(error.message.contains("in clear"), "{error:?}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert!(of(&[("sslmode", "prefer")], &env).unwrap().tls.is_some());
            assert!(of(&[("sslmode", "verify-full")], &env).unwrap().tls.is_some());
        }
        assert!(of(&plain, &[("PGHOST", "127.0.0.1")]).unwrap().tls.is_none());
        let said = [("PGHOST", "db.example"), ("PGSSLMODE", "require")];
        assert!(of(&plain, &said).unwrap().tls.is_some(), "the environment goes first");
    }

    #[test]
    fn a_password_with_an_at_is_not_taken_for_a_host() {
        for url in [
            "postgres://u:pass@hunter2@127.0.0.1:1/db",
            "postgres://u:p@ss/hunter2@h/db",
            "postgres://u:p@s?hunter2@h/db",
            "host=u:hunter2@h",
        ] {
            let error = of(&[], &[("PLUMB_STATE_URL", url)]).err().unwrap();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert!(error.help.unwrap().contains("%40"), "{url}");
        }
        let right = [("PLUMB_STATE_URL", "postgres://u:p%40ss@127.0.0.1:1/d%40b")];
        assert_eq!(of(&[], &right).unwrap().shown(), "127.0.0.1:1/d@b");
    }

    #[test]
    fn a_password_goes_to_no_host_of_the_spec() {
        let error = of(&[("host", "evil.example")], &[("PGPASSWORD", "hunter2")]).err().unwrap();
        assert_eq!(error.message, "the password of the database is not sent to evil.example");
        let allowed = [("PLUMB_ALLOWED_HOSTS", "a.example, Evil.example")];
        of(&[("host", "evil.example")], &allowed).unwrap();
    }

    #[test]
    fn a_wrong_address_is_not_shown() {
        for url in ["postgres://u:hunter2@h:port/x", "hunter2", "http://hunter2@x"] {
            let error = of(&[], &[("PLUMB_STATE_URL", url)]).err().unwrap();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
