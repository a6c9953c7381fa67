//! Keys with fewer rights than the key of the account.
//!
//! A key is a file, `keys/NAME.json` in the data folder, with its rights and a digest of the key.
//! The file does not contain the key itself. There is no other state: the service looks at the file
//! for each request, so a new or revoked key counts at once, and two commands that run at the same
//! time cannot undo each other.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::ids;
use crate::own_files::{
    Strange, hide, itself, make_folder, refuse_strange, refuse_strange_file, sync_folder,
};

/// The folder of the keys in the data folder.
const FOLDER: &str = "keys";
/// The start of a key: `plumb_NAME_SECRET`.
const PREFIX: &str = "plumb_";
/// The most characters of the name of a key.
const NAME_MAX: usize = 63;

/// An interface of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// The REST management API, both versions.
    Rest,
    /// GraphQL.
    Graphql,
    /// The job API.
    Jobs,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interface::Rest => "REST",
            Interface::Graphql => "GraphQL",
            Interface::Jobs => "the job API",
        })
    }
}

/// The rights of a key. The default is every right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rights {
    /// True if the key reads only.
    #[serde(default)]
    pub read_only: bool,
    /// The only interface that takes the key; `None` means all.
    #[serde(default)]
    pub interface: Option<Interface>,
    /// The only endpoint whose job API takes the key; `None` means no such limit.
    #[serde(default)]
    pub endpoint: Option<String>,
}

/// The properties of a request that rights depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    /// The interface that takes the request.
    pub(crate) interface: Interface,
    /// True if the request changes or takes something.
    pub(crate) changes: bool,
    /// The id of the endpoint in the path of the job API.
    pub(crate) endpoint: Option<&'a str>,
}

impl Rights {
    /// Returns the right that a request needs and a key with these rights lacks, as the end of a sentence.
    pub(crate) fn missing(&self, access: Access<'_>) -> Option<String> {
        let is_of =
            |endpoint| access.interface == Interface::Jobs && access.endpoint == Some(endpoint);
        if let Some(endpoint) = self.endpoint.as_deref().filter(|endpoint| !is_of(endpoint)) {
            return Some(format!("it is for the jobs of endpoint {endpoint} only"));
        }
        if let Some(interface) = self.interface.filter(|own| *own != access.interface) {
            return Some(format!("it is for {interface} only"));
        }
        let missing = "it is read-only, and the request changes or takes something";
        (self.read_only && access.changes).then(|| missing.to_owned())
    }
}

impl fmt::Display for Rights {
    /// Writes the rights in words, for people: `read-only, the job API`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.read_only.then(|| "read-only".to_owned()));
        parts.extend(self.interface.map(|interface| format!("{interface} only")));
        parts.extend(self.endpoint.as_ref().map(|id| format!("jobs of endpoint {id} only")));
        f.write_str(if parts.is_empty() { "every right" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// A key of the data folder, without its secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The name by which the key is revoked.
    pub name: String,
    /// The rights of the key.
    pub rights: Rights,
    /// The time when the key was created, in milliseconds since 1970.
    pub created_at: i64,
    digest: blake3_hex::Digest,
}

/// A digest in hexadecimal digits.
mod blake3_hex {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    /// The digest of a key. Two digests are compared in constant time.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct Digest(blake3::Hash);

    impl Digest {
        pub(super) fn of(key: &str) -> Digest {
            Digest(blake3::hash(key.as_bytes()))
        }
    }

    impl Serialize for Digest {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&self.0.to_hex())
        }
    }

    impl<'de> Deserialize<'de> for Digest {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
            let hex = String::deserialize(deserializer)?;
            blake3::Hash::from_hex(hex).map(Digest).map_err(D::Error::custom)
        }
    }
}

/// The reason for which the keys of a data folder cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The data folder contains something under a name of the service that the service did not
    /// make.
    #[error(transparent)]
    Strange(#[from] Strange),
    /// A file or folder cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The name cannot be that of a key.
    #[error("`{0}` is no name of a key: use 1 to {NAME_MAX} lowercase letters, digits and hyphens")]
    Name(String),
    /// The id cannot be that of an endpoint.
    #[error("`{0}` is no id of an endpoint")]
    Endpoint(String),
    /// The rights contradict each other: no request would be allowed.
    #[error("a key for the jobs of one endpoint cannot be for {0} only")]
    Contradiction(Interface),
    /// There is a key of this name.
    #[error("there is already a key `{0}`")]
    Taken(String),
    /// There is no key of this name.
    #[error("there is no key `{0}`")]
    Unknown(String),
}

/// Makes a key in a data folder, which is created if it does not exist. Returns the key; it is
/// stored nowhere.
pub fn create_key(data: &Path, name: &str, rights: Rights) -> Result<String, KeyError> {
    check(name, &rights)?;
    let key = format!("{PREFIX}{name}_{}", ids::secret());
    let digest = blake3_hex::Digest::of(&key);
    let record = KeyRecord { name: name.to_owned(), rights, created_at: now_ms(), digest };
    std::fs::create_dir_all(data).map_err(file_error(data))?;
    refuse_strange(data)?;
    hide(data).map_err(file_error(data))?;
    let folder = data.join(FOLDER);
    make_folder(&folder).map_err(file_error(&folder))?;
    let path = path(data, name);
    let mut file = match itself().create_new(true).write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(KeyError::Taken(name.to_owned()));
        }
        opened => opened.map_err(file_error(&path))?,
    };
    let text = serde_json::to_vec_pretty(&record).map_err(io::Error::from);
    let written = text.and_then(|text| file.write_all(&text)).and_then(|()| file.sync_all());
    if written.is_err() {
        // A record that is only half written is not a key, but its name would be taken.
        drop(std::fs::remove_file(&path));
    }
    written.and_then(|()| sync_folder(&folder)).map_err(file_error(&path))?;
    Ok(key)
}

/// Returns the keys of a data folder, sorted by name.
pub fn list_keys(data: &Path) -> Result<Vec<KeyRecord>, KeyError> {
    refuse_strange(data)?;
    let folder = data.join(FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(file_error(&folder))?,
    };
    let mut keys = Vec::new();
    for entry in entries {
        let path = entry.map_err(file_error(&folder))?.path();
        match read(&path) {
            Ok(key) => keys.push(key),
            // The key was revoked meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(file_error(&path)(error)),
        }
    }
    keys.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(keys)
}

/// Revokes a key of a data folder.
pub fn revoke_key(data: &Path, name: &str) -> Result<(), KeyError> {
    check(name, &Rights::default())?;
    refuse_strange(data)?;
    let path = path(data, name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(KeyError::Unknown(name.to_owned()));
        }
        removed => removed.map_err(file_error(&path))?,
    }
    sync_folder(&data.join(FOLDER)).map_err(file_error(&path))
}

/// Returns the record of a key that a request shows; `None` if there is no such key.
pub(crate) fn find(data: &Path, key: &str) -> Option<KeyRecord> {
    let (name, _) = key.strip_prefix(PREFIX)?.rsplit_once('_')?;
    if !is_name(name) {
        return None;
    }
    let record = read(&path(data, name)).ok()?;
    (record.name == name && record.digest == blake3_hex::Digest::of(key)).then_some(record)
}

fn check(name: &str, rights: &Rights) -> Result<(), KeyError> {
    if !is_name(name) {
        return Err(KeyError::Name(name.to_owned()));
    }
    match (&rights.endpoint, rights.interface) {
        (Some(id), _) if !ids::is_plain(id) => Err(KeyError::Endpoint(id.clone())),
        (Some(_), Some(other)) if other != Interface::Jobs => Err(KeyError::Contradiction(other)),
        _ => Ok(()),
    }
}

/// Returns true if a text can be the name of a key. Such a text is also a safe file name: it cannot
/// lead to another folder.
fn is_name(text: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_usual) && !text.starts_with('-')
}

fn path(data: &Path, name: &str) -> PathBuf {
    data.join(FOLDER).join(format!("{name}.json"))
}

fn read(path: &Path) -> io::Result<KeyRecord> {
    refuse_strange_file(path).map_err(io::Error::other)?;
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::File { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_found_until_it_is_revoked_and_is_stored_nowhere() {
        let data = tempfile::tempdir().unwrap();
        let rights = Rights { read_only: true, ..Rights::default() };
        let key = create_key(data.path(), "ci-1", rights.clone()).unwrap();
        assert!(key.starts_with("plumb_ci-1_"), "{key}");
        let record = find(data.path(), &key).unwrap();
        assert_eq!((record.name.as_str(), record.rights), ("ci-1", rights));
        let file = data.path().join("keys/ci-1.json");
        assert!(!std::fs::read_to_string(&file).unwrap().contains(&key));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(data.path().join(".gitignore").exists());
        for wrong in ["plumb_ci-1_x", "plumb_ci-2_x", "plumb_../ci-1_x", "ci-1", "", &key[..40]] {
            assert!(find(data.path(), wrong).is_none(), "{wrong}");
        }
        let taken = create_key(data.path(), "ci-1", Rights::default());
        assert!(matches!(taken, Err(KeyError::Taken(_))));
        create_key(data.path(), "a", Rights::default()).unwrap();
        let names: Vec<_> =
            list_keys(data.path()).unwrap().into_iter().map(|key| key.name).collect();
        assert_eq!(names, ["a", "ci-1"]);
        revoke_key(data.path(), "ci-1").unwrap();
        assert!(find(data.path(), &key).is_none());
        assert!(matches!(revoke_key(data.path(), "ci-1"), Err(KeyError::Unknown(_))));
    }

    #[test]
    fn names_and_rights_that_cannot_be_are_refused() {
        let data = tempfile::tempdir().unwrap();
        for name in ["", "A", "a_b", "../x", "-a", "a.b", &"a".repeat(64)] {
            let made = create_key(data.path(), name, Rights::default());
            assert!(matches!(made, Err(KeyError::Name(_))), "{name}");
            assert!(matches!(revoke_key(data.path(), name), Err(KeyError::Name(_))), "{name}");
        }
        let endpoint = |id: &str, interface| Rights {
            endpoint: Some(id.to_owned()),
            interface,
            ..Rights::default()
        };
        let made = create_key(data.path(), "a", endpoint("a/b", None));
        assert!(matches!(made, Err(KeyError::Endpoint(_))));
        let made = create_key(data.path(), "a", endpoint("ab", Some(Interface::Rest)));
        assert!(matches!(made, Err(KeyError::Contradiction(Interface::Rest))));
        assert!(create_key(data.path(), "a", endpoint("ab", Some(Interface::Jobs))).is_ok());
    }

    #[test]
    fn commands_at_once_lose_nothing() {
        let data = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let data = data.path();
                scope.spawn(move || {
                    let (kept, gone) = (format!("kept-{number}"), format!("gone-{number}"));
                    create_key(data, &gone, Rights::default()).unwrap();
                    create_key(data, &kept, Rights::default()).unwrap();
                    revoke_key(data, &gone).unwrap();
                });
            }
        });
        let keys = list_keys(data.path()).unwrap();
        assert_eq!(keys.len(), 8);
        assert!(keys.iter().all(|key| key.name.starts_with("kept-")));
    }

    #[test]
    fn a_record_behind_a_link_is_no_key() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = create_key(other.path(), "a", Rights::default()).unwrap();
        create_key(data.path(), "b", Rights::default()).unwrap();
        let link = data.path().join("keys/a.json");
        std::os::unix::fs::symlink(other.path().join("keys/a.json"), &link).unwrap();
        assert!(find(data.path(), &key).is_none());
        let error = list_keys(data.path()).unwrap_err();
        assert!(error.to_string().ends_with("keys/a.json"), "{error}");
    }

    #[test]
    fn rights_say_what_is_missing() {
        let access = |interface, changes, endpoint| Access { interface, changes, endpoint };
        let missing = |rights: &Rights, access| rights.missing(access).unwrap_or_default();
        let reader = Rights { read_only: true, ..Rights::default() };
        assert_eq!(missing(&reader, access(Interface::Rest, false, None)), "");
        let text = missing(&reader, access(Interface::Graphql, true, None));
        assert!(text.starts_with("it is read-only"), "{text}");
        let jobs = Rights { interface: Some(Interface::Jobs), ..Rights::default() };
        assert_eq!(missing(&jobs, access(Interface::Jobs, true, Some("x"))), "");
        assert_eq!(
            missing(&jobs, access(Interface::Rest, false, None)),
            "it is for the job API only"
        );
        let one = Rights { endpoint: Some("e".to_owned()), ..Rights::default() };
        assert_eq!(missing(&one, access(Interface::Jobs, true, Some("e"))), "");
        let only = "it is for the jobs of endpoint e only";
        assert_eq!(missing(&one, access(Interface::Jobs, false, Some("x"))), only);
        assert_eq!(missing(&one, access(Interface::Jobs, false, None)), only);
        assert_eq!(missing(&one, access(Interface::Rest, false, Some("e"))), only);
        assert_eq!(Rights::default().to_string(), "every right");
        let all = Rights { read_only: true, interface: Some(Interface::Jobs), ..one };
        assert_eq!(all.to_string(), "read-only, the job API only, jobs of endpoint e only");
    }
}
