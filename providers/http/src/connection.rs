//! Connections: the way to a server beside its address, and whom TLS trusts.

use std::path::PathBuf;
use std::sync::Arc;

/// The way to a server. Has no `Debug`: it holds a private key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// The socket that it leads through; none for TCP.
    pub socket: Option<PathBuf>,
    /// The TLS settings.
    pub tls: Tls,
}

/// The parts of TLS that a provider sets. Has no `Debug`: it holds a private key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tls {
    /// The authorities whose certificates are trusted, as PEM; none for those of the system.
    pub authorities: Option<Arc<str>>,
    /// The certificate that is shown to servers, and its key, as PEM.
    pub identity: Option<Arc<str>>,
}
