//! The run that holds a lock.

/// The longest name that is stored or shown, in characters. Anybody who can write the store can write a lock.
const NAME_CHARS: usize = 200;

/// A run that holds a lock, or asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Holder {
    /// The run's random name.
    pub run: String,
    /// The command, such as `apply`.
    pub command: String,
    /// The user's name, or empty.
    pub user: String,
    /// The machine's name, or empty.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// The time at which the run began, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Holder {
    /// Returns the holder with truncated names and without control characters, safe to store and to show.
    pub(crate) fn sanitised(&self) -> Self {
        let mut holder = self.clone();
        for name in [&mut holder.run, &mut holder.command, &mut holder.user, &mut holder.host] {
            *name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
        }
        holder
    }
}
