//! Encryption at rest: AES-256-GCM-SIV under a key that the user gives, over whole pieces.
//!
//! A piece is a snapshot, the payload of one journal frame, or a plan file. The bytes of a sealed piece are:
//!
//! ```text
//!  0   4  magic "PLX1"
//!  4  16  salt of the key; zeros where the key was given itself
//! 20   8  check: tells another key from damage
//! 28  12  nonce, random
//! 40   n  ciphertext, with a tag of 16 bytes
//! ```
//!
//! The kind of a piece, and its place in the journal, are authenticated with it, so no piece can replace
//! another one. A passphrase becomes a key by argon2id, once for each salt and process; a state keeps the
//! salt that it began with. A piece that is not sealed is read as it is. So a state from before there was a
//! key can be read, and the next write seals it.
//!
//! This module does not detect that an older piece was put back. The note in the lock file does, in clear: it
//! contains only numbers, random names and digests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aes_gcm_siv::aead::{Aead, Payload};
use aes_gcm_siv::{Aes256GcmSiv, KeyInit, Nonce};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::error::StoreError;

/// The variable that gives the key.
pub const VARIABLE: &str = "PLUMB_STATE_KEY";

/// The context that a sealed snapshot is bound to.
pub const STATE: &[u8] = b"state";

/// The first bytes of a sealed piece.
pub(crate) const MAGIC: [u8; 4] = *b"PLX1";
const SALT: usize = 16;
const CHECK: usize = 8;
const NONCE: usize = 12;
const HEAD: usize = MAGIC.len() + SALT + CHECK + NONCE;
/// The length of a key that is given in hexadecimal digits.
const KEY_DIGITS: usize = 64;
/// The shortest passphrase, in characters.
const PASSPHRASE_MIN: usize = 12;
/// The cost of argon2id: 64 MiB, three passes, one lane.
const COST: (u32, u32, u32) = (64 * 1024, 3, 1);

type Salt = [u8; SALT];
type Key = [u8; 32];

/// Seals and opens pieces; without a key it leaves them unchanged. Clones share the derived keys.
#[derive(Clone, Default)]
pub struct Cipher(Option<Arc<Keyed>>);

struct Keyed {
    secret: Secret,
    derived: Mutex<Derived>,
}

enum Secret {
    Key(Key),
    Passphrase(String),
}

#[derive(Default)]
struct Derived {
    keys: BTreeMap<Salt, Key>,
    /// The salt that was seen last, which the next written piece gets, too.
    salt: Option<Salt>,
}

/// The error of a text that is no valid key. It does not show the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is empty.
    #[error("it is empty")]
    Empty,
    /// The text is too short.
    #[error("it is shorter than {PASSPHRASE_MIN} characters")]
    Short,
}

/// The error of a piece that cannot be opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// The piece is sealed, and no key was given.
    #[error("it is encrypted, but {VARIABLE} is not set")]
    NoKey,
    /// The piece was sealed with another key.
    #[error("it is encrypted with another key than {VARIABLE}")]
    OtherKey,
    /// The piece was changed, truncated, or moved to another place.
    #[error("it is encrypted, and was damaged or moved from its place")]
    Damaged,
    /// The key could not be derived, or there were no random bytes.
    #[error("it cannot be encrypted or decrypted here: there is too little memory or randomness")]
    Impossible,
}

impl CipherError {
    /// Returns the error for a file with this name.
    pub(crate) fn of(self, path: &str) -> StoreError {
        let help = match self {
            Self::NoKey => "nothing was changed; set it to the key that the state was written with",
            Self::OtherKey => "nothing was changed; without the right key nothing can be read",
            Self::Damaged => "nothing was changed; restore the file from a copy or a backup",
            Self::Impossible => "nothing was changed; try again",
        };
        StoreError::suspicious(format!("{path} cannot be read: {self}"), help)
    }
}

impl fmt::Debug for Cipher {
    /// Shows if there is a key, and no part of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Cipher(on)" } else { "Cipher(off)" })
    }
}

impl Cipher {
    /// Returns a cipher without a key, which leaves everything unchanged.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Takes a passphrase, or a key of 64 hexadecimal digits.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let secret = match key_of_digits(text) {
            Some(key) => Secret::Key(key),
            None if text.is_empty() => return Err(BadKey::Empty),
            None if text.chars().count() < PASSPHRASE_MIN => return Err(BadKey::Short),
            None => Secret::Passphrase(text.to_owned()),
        };
        Ok(Self(Some(Arc::new(Keyed { secret, derived: Mutex::default() }))))
    }

    /// Returns true if there is a key.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Seals a piece; `context` identifies it.
    pub fn seal<'a>(&self, context: &[u8], plain: &'a [u8]) -> Result<Cow<'a, [u8]>, CipherError> {
        let Some(keyed) = &self.0 else { return Ok(Cow::Borrowed(plain)) };
        let (salt, key) = keyed.current()?;
        let nonce: [u8; NONCE] = random()?;
        let mut sealed = Vec::with_capacity(HEAD + plain.len() + 16);
        sealed.extend_from_slice(&MAGIC);
        sealed.extend_from_slice(&salt);
        sealed.extend_from_slice(&check_of(&key));
        sealed.extend_from_slice(&nonce);
        let payload = Payload { msg: plain, aad: &bound(context, &salt) };
        let encrypted = Aes256GcmSiv::new(&key.into())
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| CipherError::Impossible)?;
        sealed.extend_from_slice(&encrypted);
        Ok(Cow::Owned(sealed))
    }

    /// Opens a piece that was sealed with `context`; a piece that is not sealed is returned unchanged.
    pub fn open<'a>(&self, context: &[u8], bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, CipherError> {
        if !is_sealed(bytes) {
            return Ok(Cow::Borrowed(bytes));
        }
        let Some(keyed) = &self.0 else { return Err(CipherError::NoKey) };
        let (head, encrypted) = bytes.split_at_checked(HEAD).ok_or(CipherError::Damaged)?;
        let (mut salt, mut nonce): (Salt, [u8; NONCE]) = ([0; SALT], [0; NONCE]);
        salt.copy_from_slice(&head[4..4 + SALT]);
        nonce.copy_from_slice(&head[HEAD - NONCE..]);
        let key = keyed.key(salt)?;
        if head[4 + SALT..HEAD - NONCE] != check_of(&key) {
            return Err(CipherError::OtherKey);
        }
        let payload = Payload { msg: encrypted, aad: &bound(context, &salt) };
        let plain = Aes256GcmSiv::new(&key.into())
            .decrypt(&Nonce::from(nonce), payload)
            .map_err(|_| CipherError::Damaged)?;
        keyed.derived().salt = Some(salt);
        Ok(Cow::Owned(plain))
    }
}

/// Returns true if a piece is sealed.
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl Keyed {
    fn derived(&self) -> std::sync::MutexGuard<'_, Derived> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the salt and the key for the next piece.
    fn current(&self) -> Result<(Salt, Key), CipherError> {
        if let Secret::Key(key) = &self.secret {
            return Ok(([0; SALT], *key));
        }
        let known = self.derived().salt;
        let salt = if let Some(salt) = known { salt } else { random()? };
        let key = self.key(salt)?;
        self.derived().salt = Some(salt);
        Ok((salt, key))
    }

    fn key(&self, salt: Salt) -> Result<Key, CipherError> {
        let text = match &self.secret {
            Secret::Key(key) => return Ok(*key),
            Secret::Passphrase(text) => text,
        };
        let mut derived = self.derived();
        if let Some(key) = derived.keys.get(&salt) {
            return Ok(*key);
        }
        let (memory, passes, lanes) = COST;
        let cost = Params::new(memory, passes, lanes, Some(32));
        let mut key = [0; 32];
        Argon2::new(
            Algorithm::Argon2id,
            Version::V0x13,
            cost.map_err(|_| CipherError::Impossible)?,
        )
        .hash_password_into(text.as_bytes(), &salt, &mut key)
        .map_err(|_| CipherError::Impossible)?;
        derived.keys.insert(salt, key);
        Ok(key)
    }
}

fn random<const N: usize>() -> Result<[u8; N], CipherError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| CipherError::Impossible)?;
    Ok(bytes)
}

/// Returns the data that is authenticated in addition to the content.
fn bound(context: &[u8], salt: &Salt) -> Vec<u8> {
    [&MAGIC[..], salt, context].concat()
}

/// Returns a check value that identifies a key without revealing it.
fn check_of(key: &Key) -> [u8; CHECK] {
    let mut check = [0; CHECK];
    check.copy_from_slice(
        &blake3::keyed_hash(key, b"plumb: the check of a key").as_bytes()[..CHECK],
    );
    check
}

fn key_of_digits(text: &str) -> Option<Key> {
    if text.len() != KEY_DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSPHRASE: &str = "correct horse battery";

    fn digits(digit: char) -> Cipher {
        Cipher::new(&digit.to_string().repeat(64)).unwrap()
    }

    #[test]
    fn what_was_sealed_is_opened_and_shows_nothing() {
        for cipher in [digits('a'), Cipher::new(PASSPHRASE).unwrap()] {
            let sealed = cipher.seal(b"state", b"canary").unwrap().into_owned();
            assert!(is_sealed(&sealed) && !sealed.windows(6).any(|part| part == b"canary"));
            assert_eq!(&*cipher.open(b"state", &sealed).unwrap(), b"canary");
            let again = cipher.seal(b"state", b"canary").unwrap().into_owned();
            assert_ne!(sealed[HEAD..], again[HEAD..], "two nonces");
            assert_eq!(sealed[..4 + SALT], again[..4 + SALT], "one salt");
        }
    }

    #[test]
    fn a_passphrase_works_in_another_process() {
        let sealed = Cipher::new(PASSPHRASE).unwrap().seal(b"x", b"text").unwrap().into_owned();
        let other = Cipher::new(PASSPHRASE).unwrap();
        assert_eq!(&*other.open(b"x", &sealed).unwrap(), b"text");
        let next = other.seal(b"x", b"more").unwrap().into_owned();
        assert_eq!(next[..4 + SALT], sealed[..4 + SALT], "the salt stays");
    }

    #[test]
    fn each_mistake_has_a_name() {
        let cipher = digits('a');
        let sealed = cipher.seal(b"state", b"text").unwrap().into_owned();
        let error = |cipher: &Cipher, bytes: &[u8]| cipher.open(b"state", bytes).unwrap_err();
        assert_eq!(error(&Cipher::off(), &sealed), CipherError::NoKey);
        assert_eq!(error(&digits('b'), &sealed), CipherError::OtherKey);
        assert_eq!(cipher.open(b"plan", &sealed).unwrap_err(), CipherError::Damaged);
        for cut in MAGIC.len()..sealed.len() {
            let error = error(&cipher, &sealed[..cut]);
            assert_eq!(error, CipherError::Damaged, "cut at {cut}");
        }
        for place in HEAD..sealed.len() {
            let mut rotten = sealed.clone();
            rotten[place] ^= 1;
            assert_eq!(error(&cipher, &rotten), CipherError::Damaged, "{place}");
        }
        assert_eq!(Cipher::new("").unwrap_err(), BadKey::Empty);
        assert_eq!(Cipher::new("short").unwrap_err(), BadKey::Short);
        assert_eq!(format!("{cipher:?}"), "Cipher(on)");
    }

    #[test]
    fn without_a_key_nothing_changes() {
        assert_eq!(&*Cipher::off().seal(b"x", b"text").unwrap(), b"text");
        assert_eq!(&*digits('a').open(b"x", b"text").unwrap(), b"text");
    }
}
