//! Digests of texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::Fault;
use super::texts::text;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// Returns bytes in base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the digest of bytes in hexadecimal.
pub(super) fn hexadecimal<D: Digest>(bytes: &[u8]) -> String {
    let digest = D::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0')).collect()
}

/// Returns the digest of bytes in base64.
pub(super) fn in_base64<D: Digest>(bytes: &[u8]) -> String {
    base64(&D::digest(bytes))
}

/// Returns what a function of bytes gives for a text.
fn of_text(a: &[Value], digest: fn(&[u8]) -> String) -> Out {
    Ok(Value::string(digest(text(a, 0).as_bytes())))
}

pub(super) fn md5(a: &[Value]) -> Out {
    of_text(a, hexadecimal::<Md5>)
}

pub(super) fn sha1(a: &[Value]) -> Out {
    of_text(a, hexadecimal::<Sha1>)
}

pub(super) fn sha256(a: &[Value]) -> Out {
    of_text(a, hexadecimal::<Sha256>)
}

pub(super) fn sha512(a: &[Value]) -> Out {
    of_text(a, hexadecimal::<Sha512>)
}

pub(super) fn base64_sha256(a: &[Value]) -> Out {
    of_text(a, in_base64::<Sha256>)
}

pub(super) fn base64_sha512(a: &[Value]) -> Out {
    of_text(a, in_base64::<Sha512>)
}
