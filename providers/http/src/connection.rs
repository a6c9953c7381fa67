//! Connections: the way to a server, and the certificates that TLS trusts and shows.

use std::path::PathBuf;
use std::sync::Arc;

/// The way to a server. Has no `Debug`, because it contains a private key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// The socket to the server; none for TCP.
    pub socket: Option<PathBuf>,
    /// The TLS settings.
    pub tls: Tls,
}

/// The parts of TLS that a provider sets. Has no `Debug`, because it contains a private key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tls {
    /// The trusted certificate authorities, as PEM; none for those of the system.
    pub authorities: Option<Arc<str>>,
    /// The client certificate and its key, as PEM; none if there is none.
    pub identity: Option<Arc<str>>,
}
