//! The log on stderr, controlled by `-v`, `-vv`, `PLUMB_LOG` and `PLUMB_LOG_FORMAT`.
//!
//! Commands log only on request. The service logs its events unless `PLUMB_LOG` or `-q` says otherwise.
//!
//! Only Plumb's own targets are logged, whatever the filter says: other crates do not know what is secret.

use std::io;
use std::time::Instant;

use service::{LogLevel, LogLine};
pub(crate) use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::environment;
use crate::error::CommandError;
use crate::output;

/// The target of all lines. A part of the program has a longer name, such as `plumb::http`.
const OURS: &str = "plumb";
/// The targets that a filter may name.
const TARGETS: [&str; 5] = [OURS, "plumb::http", "plumb::lock", "plumb::plan", SERVICE];
/// The target of the service.
const SERVICE: &str = "plumb::service";

/// The maximum number of characters in the text of a line.
const LINE_MAX: usize = 4_000;

/// The format of the lines.
#[derive(Clone, Copy)]
enum Format {
    Text,
    Json,
}

/// Starts the log if the command line or the environment asks for it. `PLUMB_LOG` overrides `-v`. `usual` is
/// the level at which the command logs in any case.
pub(crate) fn begin(verbose: u8, usual: Option<LevelFilter>) -> Result<(), CommandError> {
    let variable = |name| environment::variable(name).filter(|value| !value.is_empty());
    let targets = match (variable(environment::LOG), verbose) {
        (Some(filter), _) => parse_filter(&filter)?,
        (None, 0) => match usual {
            None => return Ok(()),
            Some(level) => Targets::new().with_target(SERVICE, level),
        },
        (None, 1) => Targets::new().with_target(OURS, LevelFilter::DEBUG),
        (None, _) => Targets::new().with_target(OURS, LevelFilter::TRACE),
    };
    let format = match variable(environment::LOG_FORMAT).as_deref() {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some(_) => {
            return Err(CommandError::new("PLUMB_LOG_FORMAT is neither `text` nor `json`"));
        }
    };
    install(targets, format);
    Ok(())
}

/// Parses the filter of `PLUMB_LOG`. Refuses a target that Plumb does not have: nothing would be logged for
/// it.
fn parse_filter(text: &str) -> Result<Targets, CommandError> {
    let refuse = |what: &str| {
        CommandError::new(format!("PLUMB_LOG {what}")).help(format!(
            "write a level (error, warn, info, debug, trace, off), or levels of the targets {}, such as \
             PLUMB_LOG=plumb::http=debug",
            TARGETS[1..].join(", ")
        ))
    };
    let targets: Targets = text.parse().map_err(|_| refuse("is not a filter"))?;
    match targets.iter().find(|(target, _)| !TARGETS.contains(target)) {
        None => Ok(targets),
        Some(_) => Err(refuse("names a target that Plumb does not have")),
    }
}

fn install(targets: Targets, format: Format) {
    let ours = filter_fn(|line| line.target().split("::").next() == Some(OURS));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| LogWriter);
    let layer = match format {
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Text => lines.boxed(),
    };
    let layer = layer.with_filter(targets.and(ours));
    // The first command of a process starts the log; a test process runs several commands.
    tracing_subscriber::registry().with(layer).try_init().ok();
}

/// Writes a line of the service. The id of its request becomes a field of the line.
pub(crate) fn service_line(line: &LogLine<'_>) {
    let (request, text) = (line.request, render::safe::capped(line.text, LINE_MAX));
    match line.level {
        LogLevel::Error => tracing::error!(target: SERVICE, request, "{text}"),
        LogLevel::Warn => tracing::warn!(target: SERVICE, request, "{text}"),
        LogLevel::Info => tracing::info!(target: SERVICE, request, "{text}"),
        LogLevel::Debug => tracing::debug!(target: SERVICE, request, "{text}"),
    }
}

/// Returns true if the requests to the service are logged.
pub(crate) fn has_requests() -> bool {
    tracing::enabled!(target: SERVICE, tracing::Level::DEBUG)
}

/// Writes lines to stderr. Each call of `write` gets a whole line.
struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        output::log_line(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Measures the time of a phase of a command, and logs it when dropped.
pub(crate) struct Phase {
    name: &'static str,
    began: Instant,
}

impl Phase {
    /// Starts the measurement.
    pub(crate) fn begin(name: &'static str) -> Self {
        Self { name, began: Instant::now() }
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(target: "plumb::plan", ms, "{}", self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_levels_and_targets_of_plumb() {
        for good in
            ["debug", "TRACE", "off", "plumb::http=trace", "info,plumb::lock=debug", "plumb"]
        {
            assert!(parse_filter(good).is_ok(), "{good}");
        }
        for (bad, message) in [
            ("verbose", "PLUMB_LOG names a target that Plumb does not have"),
            ("hyper=trace", "PLUMB_LOG names a target that Plumb does not have"),
            ("plumb::http=loud", "PLUMB_LOG is not a filter"),
        ] {
            assert_eq!(parse_filter(bad).unwrap_err().message, message, "{bad}");
        }
    }
}
