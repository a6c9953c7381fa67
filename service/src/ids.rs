//! Identifiers in the shapes of the real service, from the operating system's randomness.

use crate::clock::now_ms;

const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The length of the ids of endpoints and workers.
const LONG: usize = 14;

/// Returns `length` lowercase letters and digits, each equally likely.
fn alphanumeric(length: usize) -> String {
    let mut text = String::with_capacity(length);
    let mut bytes = [0u8; 32];
    while text.len() < length {
        fill(&mut bytes);
        // 252 is the largest multiple of 36 in a byte: above it the first letters would be
        // favoured.
        let usable = bytes.iter().filter(|byte| **byte < 252);
        for byte in usable.take(length - text.len()) {
            text.push(char::from(ALPHABET[usize::from(byte % 36)]));
        }
    }
    text
}

fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

/// Returns true if a text consists only of the letters and digits of ids. As a file name, such a
/// text cannot lead to another folder.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// Returns true if a text could be the id of an endpoint or a worker.
pub(crate) fn is_long(text: &str) -> bool {
    is_plain(text) && text.len() == LONG
}

/// Returns a new id for an endpoint: 14 letters and digits.
pub(crate) fn endpoint() -> String {
    alphanumeric(LONG)
}

/// Returns a new id for a template or a network volume: 10 letters and digits.
pub(crate) fn short() -> String {
    alphanumeric(10)
}

/// Returns a new id for a registry credential: 25 letters and digits that begin with `cm`.
pub(crate) fn registry_auth() -> String {
    format!("cm{}", alphanumeric(23))
}

/// Returns a new id for a request: 20 letters and digits.
pub(crate) fn request() -> String {
    alphanumeric(20)
}

/// Returns a new id for a worker: 14 letters and digits.
pub(crate) fn worker() -> String {
    alphanumeric(LONG)
}

/// Returns a new id for a job: a UUID with the region suffix, and `sync-` in front if `/runsync`
/// made the job. The UUID is of version 7 and begins with the time, so jobs of one time are near
/// each other in the index of the store.
pub(crate) fn job(sync: bool) -> String {
    let uuid = uuid();
    if sync { format!("sync-{uuid}-u1") } else { format!("{uuid}-u1") }
}

fn uuid() -> String {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&(now_ms() << 16).to_be_bytes());
    fill(&mut bytes[6..]);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Returns a new secret token: 40 hexadecimal digits.
pub(crate) fn secret() -> String {
    let mut bytes = [0u8; 20];
    fill(&mut bytes);
    hex(&bytes)
}

/// Returns a seed for choices that need not be reproducible.
pub(crate) fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_shapes_of_the_real_service() {
        assert!(endpoint().len() == 14 && is_long(&endpoint()) && is_long(&worker()));
        assert!(short().len() == 10 && is_plain(&short()));
        assert!(![".", "..", "a/b", "", "A"].into_iter().any(is_plain));
        assert!(registry_auth().len() == 25 && registry_auth().starts_with("cm"));
        let job = job(true);
        assert!(
            job.starts_with("sync-") && job.ends_with("-u1") && job.len() == 5 + 36 + 3,
            "{job}"
        );
        assert_ne!(secret(), secret());
    }
}
