//! The async shell around the engine: refresh, recover, execute.
//!
//! Everything that waits is here, and nothing that decides. The plan says in which order steps run, the
//! engine's journal says which record may follow which, and the provider says what a call looks like. A run
//! goes like this: [`session::Session::open`] takes the lock and folds the journal,
//! [`doubt::recover::recover`] looks up the calls that earlier runs left open, [`refresh::observe`] lists the
//! live objects, the engine plans, [`run::execute`] runs the steps and writes each record before the call
//! that it is about, and [`session::Session::close`] saves a snapshot.

pub mod adopt;
pub mod checks;
pub mod clock;
mod data_reader;
pub mod doubt;
mod error;
mod fill;
pub mod hand_over;
pub mod import;
pub mod migrate;
pub mod planning;
pub mod push;
mod read;
pub mod refresh;
pub mod run;
pub mod saved_plan;
mod secret_destinations;
pub mod session;
mod step_error;
mod timing;
mod unavailable_secrets;
mod unseal;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::Name;
use provider_port::Provider;

pub use clock::{Clock, Moment};
pub use data_reader::{DataReader, NoData};
pub use error::ApplyError;

/// The configured provider instances, by instance name.
pub type Providers = BTreeMap<Name, Arc<dyn Provider>>;

/// The clock and the randomness of a run. A test or a simulator brings its own.
pub trait Host: Send + Sync {
    /// The time, in milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// The same clock, for tasks that outlive the borrow of the host.
    fn clock(&self) -> Clock;

    /// Random bytes, from the operating system in real runs.
    fn random(&self) -> [u8; 32];
}

/// A random name for a run: 16 hexadecimal digits.
pub fn run_name(host: &dyn Host) -> String {
    host.random()[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
