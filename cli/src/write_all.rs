//! Writes a complete text to a stream that may be non-blocking.
//!
//! The program that starts this process may have set the pipe or terminal to non-blocking for itself, and
//! thereby for this process: node, ssh and expect do. A full stream then returns an error instead of waiting,
//! and the rest of the text would be lost.

use std::io::{ErrorKind, Result, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Writes all of a text. Waits for room in the stream as often as necessary.
pub(crate) fn write(stream: &mut (impl Write + AsFd), text: &str) -> Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) => wait_or_fail(stream, error)?,
        }
    }
    while let Err(error) = stream.flush() {
        wait_or_fail(stream, error)?;
    }
    Ok(())
}

/// Waits until a full stream has room. Returns any other error.
fn wait_or_fail(stream: &impl AsFd, error: std::io::Error) -> Result<()> {
    match error.kind() {
        ErrorKind::Interrupted => return Ok(()),
        ErrorKind::WouldBlock => {}
        _ => return Err(error),
    }
    match poll(&mut [PollFd::new(stream, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::time::Duration;

    #[test]
    fn a_stream_that_does_not_wait_gets_all_the_same() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let text = "0123456789".repeat(100_000);
        let reading = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let mut read = String::new();
            reader.read_to_string(&mut read).map(|_| read)
        });
        write(&mut writer, &text).unwrap();
        drop(writer);
        assert!(reading.join().unwrap().unwrap() == text);
    }

    #[test]
    fn a_reader_that_goes_ends_it() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let going = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(reader);
        });
        let error = write(&mut writer, &"x".repeat(1_000_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        going.join().unwrap();
    }
}
