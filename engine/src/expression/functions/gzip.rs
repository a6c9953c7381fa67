//! Texts compressed with gzip (RFC 1952), in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_with_limit};

use super::Fault;
use super::texts::text;
use crate::expression::evaluate::BYTES_MAX;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// The header: gzip, deflate, no flags, no time, no hint, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The checksum and the length, at the end.
const TRAILER_LENGTH: usize = 8;
/// The level of compression that most programs use.
const LEVEL: u8 = 6;

// The flags of a header, which announce fields between it and the data.
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const HEADER_CHECKSUM: u8 = 2;

pub(super) fn pack(a: &[Value]) -> Out {
    let bytes = text(a, 0).as_bytes();
    let mut packed = HEADER.to_vec();
    packed.extend(compress_to_vec(bytes, LEVEL));
    packed.extend(crc32fast::hash(bytes).to_le_bytes());
    packed.extend(length_of(bytes).to_le_bytes());
    Ok(Value::string(STANDARD.encode(packed)))
}

pub(super) fn unpack(a: &[Value]) -> Out {
    unpacked(text(a, 0)).map_err(|fault| fault.of_secret("this is no compressed text in base64"))
}

fn unpacked(text: &str) -> Out {
    let packed = STANDARD.decode(text).map_err(|_| Fault::new(0, "this is no base64 text"))?;
    let no_gzip = || Fault::new(0, "what is encoded here was not compressed with gzip");
    let (data, trailer) = parts(&packed).ok_or_else(no_gzip)?;
    let bytes = decompress_to_vec_with_limit(data, BYTES_MAX).map_err(|error| {
        if error.status == TINFLStatus::HasMoreOutput {
            Fault::new(0, format!("this unpacks to more than {} MiB", BYTES_MAX >> 20))
        } else {
            no_gzip()
        }
    })?;
    let mut wanted = crc32fast::hash(&bytes).to_le_bytes().to_vec();
    wanted.extend(length_of(&bytes).to_le_bytes());
    if trailer != wanted {
        return Err(Fault::new(0, "the compressed text is damaged: its checksum does not fit"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Fault::new(0, "what is compressed here is no text in UTF-8"))?;
    Ok(Value::string(text))
}

/// Returns the compressed data and the trailer of a gzip file.
fn parts(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = packed else { return None };
    let mut rest = rest;
    if flags & EXTRA != 0 {
        let [low, high, behind @ ..] = rest else { return None };
        rest = behind.get(usize::from(u16::from_le_bytes([*low, *high]))..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    rest.split_at_checked(rest.len().checked_sub(TRAILER_LENGTH)?)
}

/// Returns the length in the form of the trailer: its lowest 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the format keeps 32 bits of it")]
fn length_of(bytes: &[u8]) -> u32 {
    bytes.len() as u32
}
