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

fn digest<D: Digest>(a: &[Value]) -> Vec<u8> {
    D::digest(text(a, 0).as_bytes()).to_vec()
}

fn hexadecimal(digest: &[u8]) -> Out {
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    Ok(Value::string(digits.collect::<String>()))
}

pub(super) fn md5(a: &[Value]) -> Out {
    hexadecimal(&digest::<Md5>(a))
}

pub(super) fn sha1(a: &[Value]) -> Out {
    hexadecimal(&digest::<Sha1>(a))
}

pub(super) fn sha256(a: &[Value]) -> Out {
    hexadecimal(&digest::<Sha256>(a))
}

pub(super) fn sha512(a: &[Value]) -> Out {
    hexadecimal(&digest::<Sha512>(a))
}

pub(super) fn base64_sha256(a: &[Value]) -> Out {
    Ok(Value::string(STANDARD.encode(digest::<Sha256>(a))))
}

pub(super) fn base64_sha512(a: &[Value]) -> Out {
    Ok(Value::string(STANDARD.encode(digest::<Sha512>(a))))
}
