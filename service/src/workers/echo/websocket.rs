//! The part of the WebSocket protocol that an echo needs (RFC 6455).

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The most bytes of a frame.
const FRAME_MAX: u64 = 16 << 20;

/// The constant of the RFC that is hashed with the client's key for the answer to a handshake.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame without its mask.
struct Frame {
    /// True if this is the last frame of its message.
    is_final: bool,
    opcode: u8,
    payload: Vec<u8>,
}

/// Accepts the handshake, and sends every message back until the client closes.
pub(super) fn echo(stream: &mut BufReader<TcpStream>, key: &str) -> io::Result<()> {
    write!(
        stream.get_mut(),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accepted(key)
    )?;
    loop {
        let mut frame = read(stream)?;
        match frame.opcode {
            PONG => continue,
            PING => frame.opcode = PONG,
            _ => {}
        }
        write(stream.get_mut(), &frame)?;
        if frame.opcode == CLOSE {
            return Ok(());
        }
    }
}

fn accepted(key: &str) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MAGIC}").as_bytes());
    STANDARD.encode(digest)
}

fn read(from: &mut impl BufRead) -> io::Result<Frame> {
    let [first, second] = array(from)?;
    let length = match second & 0x7f {
        126 => u64::from(u16::from_be_bytes(array(from)?)),
        127 => u64::from_be_bytes(array(from)?),
        short => u64::from(short),
    };
    // Frames of clients have a mask.
    if length > FRAME_MAX || second & 0x80 == 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mask: [u8; 4] = array(from)?;
    let mut payload = Vec::new();
    from.take(length).read_to_end(&mut payload)?;
    if (payload.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(Frame { is_final: first & 0x80 != 0, opcode: first & 0x0f, payload })
}

fn write(to: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let first = frame.opcode | if frame.is_final { 0x80 } else { 0 };
    let length = frame.payload.len();
    let mut bytes = vec![first];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => bytes.push(short),
        (_, Ok(middle)) => {
            bytes.push(126);
            bytes.extend(middle.to_be_bytes());
        }
        _ => {
            bytes.push(127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&frame.payload);
    to.write_all(&bytes)
}

fn array<const N: usize>(from: &mut impl BufRead) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_answered_as_the_standard_shows_it() {
        assert_eq!(accepted("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn frames_of_all_lengths_come_back() {
        for length in [0usize, 125, 126, 65_535, 65_536] {
            let mut bytes = Vec::new();
            write(&mut bytes, &Frame { is_final: true, opcode: 2, payload: vec![7; length] })
                .unwrap();
            // The frame as a client sends it: with a mask, here of zeros.
            bytes[1] |= 0x80;
            let head = bytes.len() - length;
            bytes.splice(head..head, [0; 4]);
            let frame = read(&mut bytes.as_slice()).unwrap();
            assert_eq!((frame.is_final, frame.opcode), (true, 2));
            assert_eq!(frame.payload, vec![7; length]);
        }
    }
}
