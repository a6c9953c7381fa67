//! The TLS of the service: the certificate and the key that it shows to clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files of a certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by the intermediate certificates up to one that clients trust.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// The reason for which TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or contains no certificate or no key.
    #[error("cannot read {what} from {}", path.display())]
    File {
        /// The required content of the file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the parser or of the system.
        source: pem::Error,
    },
    /// Certificate and key do not fit each other, or cannot be used.
    #[error("cannot use the certificate in {} with the key", path.display())]
    Unusable {
        /// The file of the certificate.
        path: PathBuf,
        /// The error of the TLS library.
        source: rustls::Error,
    },
}

/// Reads certificate and key, and returns the acceptor of TLS handshakes.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(failed("a certificate", &files.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(failed("a key", &files.key))?;
    let unusable = |source| TlsError::Unusable { path: files.certificate.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
