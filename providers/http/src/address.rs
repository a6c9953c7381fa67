//! Addresses of APIs: URLs, and sockets of this machine.

use std::path::PathBuf;

use url::Url;

/// The address of an API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    /// The address to which paths are appended. For a socket, the host is `localhost`.
    pub(crate) url: Url,
    /// The socket that leads to the API; none for TCP.
    pub(crate) socket: Option<PathBuf>,
}

impl Address {
    /// Reads `https://host/prefix` or `unix:/path/to/socket:/prefix`. The error describes the mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        match text.trim().strip_prefix("unix:") {
            Some(rest) => of_socket(rest),
            None => Ok(Self { url: url(text)?, socket: None }),
        }
    }
}

fn of_socket(text: &str) -> Result<Address, &'static str> {
    // `unix:///path` is as common as `unix:/path`.
    let text = text.strip_prefix("//").unwrap_or(text);
    let (path, prefix) = text.split_once(":/").unwrap_or((text, ""));
    if !path.starts_with('/') {
        return Err("names no socket by its whole path");
    }
    if path.contains('\0') {
        return Err("holds a zero byte");
    }
    let url = url(&format!("http://localhost/{prefix}"))?;
    Ok(Address { url, socket: Some(PathBuf::from(path)) })
}

/// Reads a URL and removes the slash at its end, so that paths can be appended.
fn url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim().trim_end_matches('/')).map_err(|_| "is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("begins with neither http:// nor https://, nor unix:/");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or a password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("holds a query or a fragment");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("names no host");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust;

    #[test]
    fn addresses() {
        let shown = |text: &str| {
            let Address { url, socket } = Address::parse(text)?;
            let socket = socket.map(|path| path.display().to_string()).unwrap_or_default();
            Ok::<_, &str>(format!("{url} {socket}"))
        };
        for (text, read) in [
            ("http://h:1/v1/", "http://h:1/v1 "),
            ("unix:/run/docker.sock", "http://localhost/ /run/docker.sock"),
            ("unix:///run/docker.sock", "http://localhost/ /run/docker.sock"),
            ("unix:/run/docker.sock:/v1.43/", "http://localhost/v1.43 /run/docker.sock"),
        ] {
            assert_eq!(shown(text), Ok(read.to_owned()), "{text}");
        }
        for text in [
            "h",
            "ftp://h",
            "http://u:p@h/",
            "http://h/?k=1",
            "http://h/#f",
            "http://",
            "unix:",
            "unix:docker.sock",
            "unix:/run/x:/a?b=c",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_is_this_machine_alone() {
        for (text, local) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("unix:/run/x", true),
            ("http://localhost.evil.example", false),
            ("http://127.0.0.1.evil.example", false),
            ("http://0.0.0.0", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(trust::is_loopback(&Address::parse(text).unwrap().url), local, "{text}");
        }
    }
}
