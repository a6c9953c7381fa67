//! The ledger of sample objects: a file that lists the objects of a run which are not deleted yet.
//!
//! Each line is on disk before the next call, so a killed run leaves the names of all objects that it may
//! have made. The lines have types, ids and names, and no other attributes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use engine::address::Name;
use engine::state::{Nonce, ObjectId};
use engine::value::Attributes;
use provider_port::Object;
use provider_port::conformance::Witness;
use serde::{Deserialize, Serialize};

use crate::error::CommandError;

/// The largest ledger that is read, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum Line {
    /// The address that all later lines are about.
    Against { url: String },
    /// A create is about to be sent.
    Intends { ty: String, names: Vec<String> },
    /// The create made nothing.
    Refused { ty: String },
    /// An object exists.
    Made { ty: String, id: String },
    /// An object is gone.
    Gone { ty: String, id: String },
}

/// An object that an earlier run may have left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    /// An object with a known id.
    Known { ty: Name, id: ObjectId },
    /// The object of a create whose outcome is unknown, with the names that it may have.
    Possible { ty: Name, names: Vec<String> },
}

/// The ledger of one provider. While it is open, no other process can open it.
pub(super) struct Ledger {
    path: PathBuf,
    file: Mutex<File>,
    /// The name attribute of each type.
    names: Vec<(Name, Name)>,
}

impl Ledger {
    /// Opens the ledger of a provider at an address, with the objects that an earlier run left there.
    pub(super) fn open(
        base: &Path,
        provider: &str,
        url: &str,
        names: Vec<(Name, Name)>,
    ) -> Result<(Self, Vec<Leftover>), CommandError> {
        let path = base.join(format!("{provider}.objects.jsonl"));
        let shown = path.display().to_string();
        let fail = |error: std::io::Error| {
            CommandError::new(format!("cannot use the ledger {shown}: {error}"))
        };
        let mut options = File::options();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
            |_| CommandError::new(format!("another run uses {shown}")).help("wait until it ends"),
        )?;
        let mut text = String::new();
        (&mut file).take(BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
        let lines = read(&text);
        let left = leftovers(&lines);
        if left.is_empty() {
            // An earlier run at another address, which may not even be one, left nothing there.
            file.set_len(0).map_err(fail)?;
            text.clear();
        } else if let Some(other) = lines.iter().find_map(|line| match line {
            Line::Against { url: other } if other != url => Some(other),
            _ => None,
        }) {
            let message =
                format!("objects of an earlier run are left at {}", render::safe::text(other));
            return Err(CommandError::new(message).help(format!(
                "run with that address and --clean first; or, if they are gone, remove {shown}"
            )));
        }
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(fail)?;
        }
        let ledger = Self { path, file: Mutex::new(file), names };
        ledger.write(&Line::Against { url: url.to_owned() }).map_err(CommandError::new)?;
        Ok((ledger, left))
    }

    /// Records that a leftover is gone.
    pub(super) fn settle(&self, ty: &Name, id: &ObjectId) -> Result<(), CommandError> {
        self.gone(ty, id).map_err(CommandError::new)
    }

    /// Returns the objects that are left so far.
    pub(super) fn left(&self) -> Result<Vec<Leftover>, CommandError> {
        let shown = self.path.display();
        let text = std::fs::read_to_string(&self.path);
        let text = text.map_err(|error| {
            CommandError::new(format!("cannot read the ledger {shown}: {error}"))
        })?;
        Ok(leftovers(&read(&text)))
    }

    /// Removes the file, as no object is left.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        std::fs::remove_file(&self.path).map_err(|error| {
            CommandError::new(format!("cannot remove the ledger {}: {error}", self.path.display()))
        })
    }

    /// Returns the path of the ledger.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, line: &Line) -> Result<(), String> {
        let text = serde_json::to_string(line).map_err(|error| error.to_string())?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all((text + "\n").as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|error| format!("cannot write the ledger {}: {error}", self.path.display()))
    }
}

impl Witness for Ledger {
    fn refused(&self, ty: &Name) -> Result<(), String> {
        self.write(&Line::Refused { ty: ty.to_string() })
    }

    fn intends(&self, ty: &Name, nonce: &Nonce, wanted: &Attributes) -> Result<(), String> {
        let own = self.names.iter().find(|(own, _)| own == ty).map(|(_, name)| name);
        let name = own.and_then(|name| wanted.get(name)).and_then(|name| name.as_str());
        let names = name.map(str::to_owned).into_iter().chain([nonce.to_string()]).collect();
        self.write(&Line::Intends { ty: ty.to_string(), names })
    }

    fn made(&self, ty: &Name, object: &Object) -> Result<(), String> {
        self.write(&Line::Made { ty: ty.to_string(), id: object.id.0.to_string() })
    }

    fn gone(&self, ty: &Name, id: &ObjectId) -> Result<(), String> {
        self.write(&Line::Gone { ty: ty.to_string(), id: id.0.to_string() })
    }
}

/// Reads the lines of a ledger. Ignores a line that a kill cut off: no call followed it.
fn read(text: &str) -> Vec<Line> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the objects that may be left, the newest first: a newer object may depend on an older one.
fn leftovers(lines: &[Line]) -> Vec<Leftover> {
    let mut left: Vec<Leftover> = Vec::new();
    for line in lines {
        match line {
            Line::Against { .. } => {}
            Line::Intends { ty, names } => {
                left.push(Leftover::Possible { ty: (&**ty).into(), names: names.clone() });
            }
            Line::Refused { ty } => left.retain(|it| !is_possible(it, ty)),
            Line::Made { ty, id } => {
                let known = Leftover::Known { ty: (&**ty).into(), id: ObjectId((&**id).into()) };
                left.retain(
                    |it| !matches!(it, Leftover::Possible { ty: own, .. } if **own == **ty),
                );
                if !left.contains(&known) {
                    left.push(known);
                }
            }
            Line::Gone { ty, id } => {
                let gone = Leftover::Known { ty: (&**ty).into(), id: ObjectId((&**id).into()) };
                left.retain(|it| *it != gone);
            }
        }
    }
    left.reverse();
    left
}

fn is_possible(leftover: &Leftover, ty: &str) -> bool {
    matches!(leftover, Leftover::Possible { ty: own, .. } if **own == *ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> Vec<String> {
        let words = |left: &Leftover| match left {
            Leftover::Known { ty, id } => format!("{ty} {}", id.0),
            Leftover::Possible { ty, names } => format!("{ty} named {names:?}"),
        };
        leftovers(&read(text)).iter().map(words).collect()
    }

    /// An address is kept for what is left there; a run that made nothing keeps none.
    #[test]
    fn only_what_is_left_holds_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let open = |url: &str| Ledger::open(folder.path(), "acme", url, Vec::new());
        drop(open("127.0.0.1:9").unwrap());
        let (ledger, left) = open("http://127.0.0.1:9").unwrap();
        assert!(left.is_empty());
        let nonce = Nonce::from_random([1; 16]);
        ledger.intends(&"zone".into(), &nonce, &Attributes::new()).unwrap();
        drop(ledger);
        let error = open("http://127.0.0.1:8").err().unwrap();
        assert!(error.message.contains("are left at http://127.0.0.1:9"), "{}", error.message);
        assert_eq!(open("http://127.0.0.1:9").unwrap().1.len(), 1);
    }

    #[test]
    fn what_is_not_gone_is_left() {
        let zone = r#"{"event":"intends","ty":"zone","names":["a"]}"#;
        let made = r#"{"event":"made","ty":"zone","id":"z1"}"#;
        let record = r#"{"event":"intends","ty":"record","names":[]}"#;
        let gone = r#"{"event":"gone","ty":"zone","id":"z1"}"#;
        assert_eq!(left(zone), ["zone named [\"a\"]"]);
        assert_eq!(left(&[zone, made, made].join("\n")), ["zone z1"]);
        let both = [zone, made, record, "{\"event\":\"ma"].join("\n");
        assert_eq!(left(&both), ["record named []", "zone z1"]);
        assert_eq!(left(&[zone, made, gone].join("\n")), [""; 0]);
        let refused = r#"{"event":"refused","ty":"zone"}"#;
        assert_eq!(left(&[zone, refused].join("\n")), [""; 0]);
    }
}
