//! The certificates of a provider, from the environment and the spec: their contents, or the paths of files.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use engine::diagnostics::{Diagnostic, Diagnostics};

use crate::connection::Tls;
use crate::descriptor::model::{Descriptor, Source};
use crate::key_lookup::{in_file, look_up};
use crate::settings::{Origin, Settings};
use crate::trust;

/// The beginning of the content of a PEM file, as opposed to a path.
const PEM: &str = "-----BEGIN ";

/// Looks up certificates, and reports those that cannot be used. No message shows any of their content.
pub(crate) fn tls(
    descriptor: &Descriptor,
    settings: &Settings<'_>,
    diagnostics: &mut Diagnostics,
) -> Tls {
    let certificates = &descriptor.certificates;
    let mut read = |source: &Option<Source>, what: &'static str, fits: &dyn Fn(&str) -> bool| {
        let source = source.as_ref()?;
        let (text, origin) = look_up(source, settings)?;
        let given = source.given(origin);
        if let (Some(variable), Origin::Environment) = (&source.env, origin)
            && !trust::may_read_key(&descriptor.name, variable, settings)
        {
            diagnostics.push(trust::foreign_key(&descriptor.name, variable));
            return None;
        }
        let content = content(text, origin).and_then(|pem| {
            let reason = "it holds none in the form of PEM";
            if fits(&pem) { Ok(pem) } else { Err(reason.to_owned()) }
        });
        content.map_err(|why| diagnostics.push(bad((&descriptor.name, what), &given, &why))).ok()
    };
    let authorities = read(&certificates.ca, "certificate authority", &has_certificate);
    let certificate = read(&certificates.certificate, "certificate", &has_certificate);
    let key = read(&certificates.key, "key of the certificate", &has_key);
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(format!("{certificate}\n{key}").into()),
        // One file may contain both the certificate and its key.
        (Some(certificate), None) if has_key(&certificate) => Some(certificate.into()),
        (Some(_), None) if !diagnostics.has_errors() => {
            diagnostics.push(half(descriptor, "certificate", certificates.key.as_ref()));
            None
        }
        (None, Some(_)) if !diagnostics.has_errors() => {
            diagnostics.push(half(descriptor, "key", certificates.certificate.as_ref()));
            None
        }
        _ => None,
    };
    let identity = identity.filter(|pem: &Arc<str>| {
        let fits = belong_together(pem);
        if !fits {
            diagnostics.push(mismatch(&descriptor.name));
        }
        fits
    });
    Tls { authorities: authorities.map(Arc::from), identity }
}

fn has_certificate(pem: &str) -> bool {
    let mut roots = RootCertStore::empty();
    let all = certificates(pem).into_iter().flatten();
    let is_sound = all.into_iter().all(|certificate| roots.add(certificate).is_ok());
    is_sound && !roots.is_empty()
}

/// Returns the certificates in a text; none if one cannot be read.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().ok()
}

/// Returns true if a certificate and a key belong together.
fn belong_together(pem: &str) -> bool {
    let ring = rustls::crypto::ring::default_provider();
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok();
    let pair = certificates(pem).zip(key);
    pair.is_some_and(|(chain, key)| CertifiedKey::from_der(chain, key, &ring).is_ok())
}

fn has_key(pem: &str) -> bool {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_ok()
}

/// Returns the content of a PEM file. The text is the content or, from the environment, may be the path of
/// the file.
fn content(text: String, origin: Origin) -> Result<String, String> {
    if text.trim_start().starts_with(PEM) {
        Ok(text)
    } else if origin == Origin::Environment {
        in_file(text.trim())
    } else {
        Err("a spec gives the content of a PEM file, as with `file(\"ca.pem\")`".to_owned())
    }
}

fn bad((provider, what): (&str, &str), given: &str, reason: &str) -> Diagnostic {
    Diagnostic::error(format!("the {what} for the provider {provider} cannot be used"))
        .detail(format!("It comes from {given}: {reason}."))
        .help("give the path of a PEM file in the environment, or its content")
}

fn half(descriptor: &Descriptor, there: &str, other: Option<&Source>) -> Diagnostic {
    let name = &descriptor.name;
    let help = match other.and_then(|source| source.env.as_ref()) {
        Some(variable) => format!("set {variable}, or put both into one file"),
        None => "put both into one file".to_owned(),
    };
    Diagnostic::error(format!("the {there} for the provider {name} stands alone"))
        .detail("A certificate is shown to a server with proof of its key.")
        .help(help)
}

fn mismatch(provider: &str) -> Diagnostic {
    Diagnostic::error(format!("the certificate for the provider {provider} is not that of its key"))
        .help("give the key that the certificate was made with")
}
