//! The ports of a pod, each mapped to a free port of this machine.

use std::io;

use crate::workers::ports::Port;

/// A port that a pod opens, and the port of this machine at which its program listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortMapping {
    pub(crate) private: u16,
    pub(crate) public: u16,
    /// `http`, `tcp` or `udp`.
    pub(crate) protocol: String,
}

/// The ports that a pod holds while it runs.
#[derive(Debug, Default)]
pub(super) struct PodPorts {
    mappings: Vec<PortMapping>,
    /// The ports of this machine. They become free when this is dropped.
    _held: Vec<Port>,
}

impl PodPorts {
    /// Takes a port of this machine for each port of a container, such as `8888/http`: the same
    /// number if that port is free, else another one.
    pub(super) fn take(ports: &[String]) -> io::Result<PodPorts> {
        let (mut mappings, mut held) = (Vec::new(), Vec::new());
        for text in ports {
            let Some((number, protocol)) = text.split_once('/') else { continue };
            let private = number.parse().map_err(io::Error::other)?;
            let port = Port::take_near(private)?;
            let (public, protocol) = (port.number(), protocol.to_owned());
            mappings.push(PortMapping { private, public, protocol });
            held.push(port);
        }
        Ok(PodPorts { mappings, _held: held })
    }

    pub(super) fn mappings(&self) -> &[PortMapping] {
        &self.mappings
    }

    /// Returns the variables that name the ports to listen at: one for each port, and `PORT` for
    /// the first HTTP port, or for the first port if none is HTTP.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let of_http = self.mappings.iter().find(|port| port.protocol == "http");
        let first = of_http.or(self.mappings.first());
        let first = first.map(|port| ("PORT".to_owned(), port.public.to_string()));
        let each = self.mappings.iter().map(|port| {
            let kind = if port.protocol == "udp" { "UDP" } else { "TCP" };
            (format!("RUNPOD_{kind}_PORT_{}", port.private), port.public.to_string())
        });
        first.into_iter().chain(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_of_a_pod_has_one_of_this_machine() {
        let wanted = ["22/tcp".to_owned(), "8888/http".to_owned(), "8888/tcp".to_owned()];
        let ports = PodPorts::take(&wanted).unwrap();
        let private: Vec<u16> = ports.mappings().iter().map(|port| port.private).collect();
        assert_eq!(private, [22, 8888, 8888]);
        let mut public: Vec<u16> = ports.mappings().iter().map(|port| port.public).collect();
        assert!(public.iter().all(|port| *port >= 1024), "{public:?}");
        public.sort_unstable();
        public.dedup();
        assert_eq!(public.len(), 3);
        let variables = ports.variables();
        let http = ports.mappings()[1].public.to_string();
        assert_eq!(variables[0], ("PORT".to_owned(), http));
        assert_eq!((variables.len(), variables[1].0.as_str()), (4, "RUNPOD_TCP_PORT_22"));
        assert!(PodPorts::take(&[]).unwrap().variables().is_empty());
    }
}
