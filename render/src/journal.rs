//! The records of the journal as lines of text. The JSON output prints the records themselves.

use engine::journal::{Outcome, Record, Resolution};

use crate::moment::utc;
use crate::safe;

/// Returns one record of the journal as a line of text.
pub fn text(record: &Record) -> String {
    let text = match record {
        Record::RunOpened { run, serial, at_ms, .. } => {
            format!("run {run} began at {} from serial {serial}", utc(*at_ms))
        }
        Record::Started(started) => {
            let (call, operation) = (started.call, started.operation.word());
            format!("{call} {} began: {operation} {}", started.step, started.address)
        }
        Record::Finished { call, outcome } => match outcome {
            Outcome::Done { object: Some(seen) } => {
                format!("{call} done, object {}", seen.id)
            }
            Outcome::Done { object: None } => format!("{call} done"),
            Outcome::Called { object } => {
                format!("{call} called, object {}, and what it waits for is to come", object.id)
            }
            Outcome::NoEffect { reason } => {
                format!("{call} had no effect: {reason}")
            }
        },
        Record::Doubted { call, reason, .. } => format!("{call} in doubt: {reason}"),
        Record::Resolved { call, resolution } => match resolution {
            Resolution::Found { object } => {
                format!("{call} looked up: object {} exists", object.id)
            }
            Resolution::Absent { .. } => {
                format!("{call} looked up: nothing there")
            }
            Resolution::Gone => format!("{call} looked up: the object is gone"),
        },
        Record::RunClosed { outcome } => format!("the run ended: {outcome}"),
        other => other_record(other),
    };
    safe::text(&text) + "\n"
}

/// Returns the line of a record that names no call.
fn other_record(record: &Record) -> String {
    match record {
        Record::Seen { address, object, .. } => {
            format!("{address} seen as it is now, object {object}")
        }
        Record::Triggered { address, object, .. } => {
            format!("{address} will be replaced, object {object}: one of its triggers changed")
        }
        Record::Vanished { address, object } => format!("{address} is gone, object {object}"),
        Record::Adopted { address, object, .. } => {
            format!("{address} taken over, object {}", object.id)
        }
        Record::Forgot { address, object } => format!("{address} forgotten, object {object}"),
        Record::Unwatched { nonce } => format!("{nonce} is watched no more"),
        Record::Moved { from, to } => format!("{from} moved to {to}"),
        Record::Located { provider, location: Some(location) } => {
            format!("provider {provider} acts on {}", location.service)
        }
        Record::Located { provider, location: None } => {
            format!("provider {provider} may act on another service from now on")
        }
        Record::Outputs { outputs } => format!("{} outputs evaluated", outputs.len()),
        // A record of a kind that this code does not know still has a name.
        other => serde_json::to_value(other)
            .ok()
            .and_then(|json| Some(json.get("record")?.as_str()?.to_owned()))
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use engine::digest::Digest;

    use super::*;

    #[test]
    fn a_run_begins_at_a_time_that_people_can_read() {
        let opened = Record::RunOpened {
            run: "r1".to_owned(),
            serial: 3,
            plan: Digest::of(b""),
            at_ms: 1_795_215_792_000,
        };
        assert_eq!(text(&opened), "run r1 began at 2026-11-20 23:03:12 UTC from serial 3\n");
        let closed = Record::RunClosed { outcome: "\u{1b}[31mdone".to_owned() };
        assert!(!text(&closed).contains('\u{1b}'));
    }
}
