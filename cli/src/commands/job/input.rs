//! The input of a job: from an argument, a file or stdin, checked before any call.

use std::io::Read;
use std::path::Path;

use provider_serverless::jobs::limits::{RUN_BYTES_MAX, RUNSYNC_BYTES_MAX};
use provider_serverless::jobs::{Refused, Submission};

use crate::args::job::Input;
use crate::error::CommandError;

/// The words for an input that is too large for the service.
const INPUT: TooLarge = TooLarge {
    what: "the input",
    max: RUN_BYTES_MAX,
    help: "nothing was sent; larger inputs go by way of a network volume",
};

/// The words for a description of an object storage that is too large.
const STORAGE: TooLarge = TooLarge {
    what: "the object storage",
    max: 1 << 20,
    help: "nothing was sent; --s3-config names a file with accessId, accessSecret, bucketName and \
           endpointUrl",
};

/// A limit on the bytes of a text, with the words for a text above it.
struct TooLarge {
    what: &'static str,
    max: usize,
    help: &'static str,
}

/// Reads and checks the job to submit.
pub(super) fn submission(
    base: &Path,
    input: &Input,
    sync: bool,
) -> Result<Submission, CommandError> {
    let max = if sync { RUNSYNC_BYTES_MAX } else { RUN_BYTES_MAX };
    let text = text(base, input, &TooLarge { max, ..INPUT })?;
    let storage = input.s3_config.as_deref().map(|file| read(base, file, &STORAGE));
    let storage = storage.transpose()?;
    let made = Submission::new(&text).and_then(|made| with_options(made, input));
    let made = match storage {
        Some(storage) => made.and_then(|made| made.s3_config(&storage)),
        None => made,
    };
    let made = made.map_err(|reason| refused(&reason, sync))?;
    made.body(max).map_err(|reason| refused(&reason, sync))?;
    Ok(made)
}

fn with_options(made: Submission, input: &Input) -> Result<Submission, Refused> {
    let mut made = made.low_priority(input.low_priority);
    if let Some(url) = &input.webhook {
        made = made.webhook(url)?;
    }
    if let Some(time) = input.execution_timeout {
        made = made.execution_timeout(time)?;
    }
    if let Some(time) = input.ttl {
        made = made.ttl(time)?;
    }
    Ok(made)
}

fn refused(reason: &Refused, sync: bool) -> CommandError {
    let error = CommandError::new(reason.to_string());
    match reason {
        Refused::TooLarge { .. } if !sync => error.help(
            "nothing was sent; `plumb job run --sync` takes up to 20 MB, larger inputs go by way \
             of a network volume or an object store",
        ),
        Refused::TooLarge { .. } => error.help(
            "nothing was sent; larger inputs go by way of a network volume or an object store",
        ),
        Refused::NotJson(_) => {
            error.help("nothing was sent; an input is an object, such as {\"prompt\": \"hello\"}")
        }
        _ => error.help("nothing was sent"),
    }
}

fn text(base: &Path, input: &Input, max: &TooLarge) -> Result<String, CommandError> {
    if let Some(file) = &input.file {
        return read(base, file, max);
    }
    match input.text.as_deref() {
        Some("-") => bounded(std::io::stdin().lock(), max, "stdin"),
        Some(text) => Ok(text.to_owned()),
        None => Err(CommandError::new("the job has no input").help(
            "give it as JSON after the endpoint, with --input-file FILE, or as - from stdin",
        )),
    }
}

fn read(base: &Path, file: &Path, max: &TooLarge) -> Result<String, CommandError> {
    let path = base.join(file);
    let cannot = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read {}", path.display()), &error)
    };
    let open = std::fs::File::open(&path).map_err(cannot)?;
    bounded(open, max, &path.display().to_string())
}

/// Reads a text, and holds no more of it in memory than can be sent.
fn bounded(from: impl Read, most: &TooLarge, name: &str) -> Result<String, CommandError> {
    let TooLarge { what, max, help } = *most;
    let mut bytes = Vec::new();
    from.take(u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::caused(format_args!("cannot read {name}"), &error))?;
    if bytes.len() > max {
        return Err(CommandError::new(format!(
            "{what} of {name} is larger than {} MB, which is the most that is taken",
            max >> 20
        ))
        .help(help));
    }
    String::from_utf8(bytes)
        .map_err(|_| CommandError::new(format!("{what} of {name} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_not_even_read() {
        let endless = std::io::repeat(b' ');
        let error = bounded(endless, &TooLarge { max: 2 << 20, ..INPUT }, "stdin").unwrap_err();
        assert!(error.message.contains("larger than 2 MB"), "{}", error.message);
        let error = bounded(std::io::repeat(b' '), &STORAGE, "s3.json").unwrap_err();
        assert!(error.message.starts_with("the object storage of s3.json is larger than 1 MB"));
        assert!(!error.help.unwrap().contains("network volume"));
        let two = TooLarge { max: 2, ..INPUT };
        assert_eq!(bounded(&b"{}"[..], &two, "stdin").unwrap(), "{}");
        assert!(bounded(&b"\xff"[..], &two, "x").unwrap_err().message.contains("UTF-8"));
    }
}
