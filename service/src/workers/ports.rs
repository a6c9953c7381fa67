//! The free ports of this machine. All workers share the machine, so each one that serves HTTP gets
//! ports of its own.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::ids;

/// The ports to choose from. The system uses higher ones for outgoing connections.
const RANGE: Range<u16> = 10_000..32_768;

/// The first port that is not reserved for the system's own services.
const ORDINARY: u16 = 1024;

/// The held ports. They are ports of this machine, so all services in this process share one set.
static HELD: LazyLock<Mutex<BTreeSet<u16>>> = LazyLock::new(Mutex::default);

/// A port that no other part of this process gets until this is dropped.
#[derive(Debug)]
pub(crate) struct Port(u16);

impl Port {
    /// Takes a port at which no program on this machine listens.
    pub(crate) fn take() -> io::Result<Port> {
        let count = u64::try_from(RANGE.len()).unwrap_or(u64::MAX);
        let first = ids::seed() % count;
        let numbers = (0..count).map(|step| (first + step) % count);
        let ports = numbers.filter_map(|at| u16::try_from(at).ok()).map(|at| RANGE.start + at);
        for number in ports {
            if held().insert(number) {
                let port = Port(number);
                if TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok() {
                    return Ok(port);
                }
            }
        }
        let message = format!("no port between {} and {} is free", RANGE.start, RANGE.end - 1);
        Err(io::Error::new(io::ErrorKind::AddrInUse, message))
    }

    /// Takes the port with this number, if it is not reserved and no program listens at it; else
    /// takes another one.
    pub(crate) fn take_near(number: u16) -> io::Result<Port> {
        if number >= ORDINARY && held().insert(number) {
            let port = Port(number);
            if TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok() {
                return Ok(port);
            }
        }
        Port::take()
    }

    /// Returns the number of the port.
    pub(crate) fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        held().remove(&self.0);
    }
}

fn held() -> MutexGuard<'static, BTreeSet<u16>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_held_by_one() {
        let ports: Vec<Port> = (0..50).map(|_| Port::take().unwrap()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), 50);
        assert!(numbers.iter().all(|number| RANGE.contains(number)));
        let number = ports[0].number();
        drop(ports);
        assert!(!held().contains(&number));
    }
}
