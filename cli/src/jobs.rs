//! Jobs, for the commands about them: the endpoint, its job API, and the wait for a job's end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::address::Address;
use engine::config::settings::provider_settings;
use engine::diagnostics::nearest;
use engine::state::Snapshot;
use provider_port::{Error, Kind, Notice};
use provider_serverless::jobs::{self, Endpoint, Follow, Job, Jobs, Status};
use tokio_util::sync::CancellationToken;

use crate::args::SpecArgs;
use crate::args::job::Target;
use crate::environment;
use crate::error::{self, CommandError};
use crate::folder::Folder;
use crate::named_files;
use crate::output::Output;
use crate::providers::{Configured, Described};
use crate::signals::stop_or_end;
use crate::stored_state;
use crate::variables;

/// The time that a job may wait in the queue before its command looks up the reason.
const PATIENCE: Duration = Duration::from_secs(10);

/// The job API of one endpoint, with all that keeps it usable.
pub(crate) struct Connected {
    configured: Configured,
    /// The endpoint's id.
    pub(crate) id: String,
    /// The endpoint as the user named it.
    pub(crate) name: String,
}

/// Finds the endpoint that the user named, and its job API.
pub(crate) async fn connect(
    base: &Path,
    target: &Target,
    output: &Output,
) -> Result<Connected, CommandError> {
    let folder = Folder::new(base, None)?;
    let id = id(&folder, target).await?;
    let described = described(&folder, base, &target.spec)?.with_local(target.spec.local);
    let data = folder.service_data()?;
    if described.asks_for_local() && !data.is_dir() {
        return Err(CommandError::new(format!(
            "the service on this machine has no endpoints: there is no {}",
            data.display()
        ))
        .help("`plumb apply` makes them; `-C DIR` works in another folder"));
    }
    let configured = described.connect(&folder, &environment::variable, output).await?;
    described.refuse_without_jobs(&environment::variable)?;
    Ok(Connected { configured, id, name: target.endpoint.clone() })
}

/// Returns the id of the endpoint that the user named.
pub(crate) async fn id(folder: &Folder, target: &Target) -> Result<String, CommandError> {
    if !target.endpoint.contains('.') {
        // An id needs no state.
        return id_of(&target.endpoint, &stored_state::no_state());
    }
    id_of(&target.endpoint, &stored_state::load(folder).await?.snapshot)
}

impl Connected {
    /// Returns the job API of the endpoint.
    pub(crate) fn endpoint<'a>(
        &'a self,
        progress: jobs::Progress<'a>,
    ) -> Result<Endpoint<'a>, CommandError> {
        Ok(api(&self.configured)?.endpoint(&self.id, progress))
    }

    /// Returns a sentence about what happens to a job that its command no longer waits for.
    pub(crate) fn afterwards(&self, job: &str) -> String {
        let name = &self.name;
        if self.configured.is_on_demand() {
            return format!(
                "it is kept, and the service on this machine goes on with it when it runs again: \
                 `plumb job status {name} {job} --wait` waits for it, `plumb serve` keeps the \
                 service running"
            );
        }
        format!("it goes on: `plumb job status {name} {job} --wait` waits for it")
    }
}

/// Returns the client of the job API.
pub(crate) fn api(configured: &Configured) -> Result<&Jobs, CommandError> {
    configured.jobs.as_ref().ok_or_else(|| CommandError::new("nothing here takes jobs"))
}

/// Returns a function that tells the user when a call is repeated.
pub(crate) fn teller(output: &Output) -> impl Fn(Notice) + Send + Sync {
    move |notice| {
        if let Notice::Retrying { reason, after, attempt, attempts } = notice {
            let reason = render::safe::text(&reason);
            let bound = attempts.map_or_else(String::new, |most| format!(" of {most}"));
            let after = seconds(after);
            output.talk(&format!("{reason}; attempt {attempt}{bound} in {after}\n"));
        }
    }
}

/// Returns a time in seconds, for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Returns the serverless provider as the folder's spec configures it, if there is a spec.
fn described(folder: &Folder, base: &Path, given: &SpecArgs) -> Result<Described, CommandError> {
    let Some(text) = folder.spec_if_any()? else {
        return Described::serverless(None);
    };
    let (name, document) = (provider_serverless::NAME, &text.document);
    if document.torn {
        let message = "the spec cannot be read, so where the job API is is not known";
        return Err(CommandError::new(message).help("`plumb validate` shows what is wrong"));
    }
    if !document.providers.contains_key(name) {
        return Described::serverless(None);
    }
    let given = variables::given(
        document.variables.keys(),
        given,
        (folder.path(), base),
        &environment::variable,
    )?;
    let files = named_files::read_all(folder, document);
    let (settings, found) = provider_settings(document, (&given.values, &given.places), &files);
    let wrong = found.iter().find(|found| found.severity == engine::diagnostics::Severity::Error);
    if let Some(wrong) = wrong {
        let error = CommandError::new(format!(
            "the spec does not say where the job API is: {}",
            wrong.summary
        ));
        return Err(match &wrong.help {
            Some(help) => error.help(help.clone()),
            None => error.help("`plumb validate` shows where"),
        });
    }
    Described::serverless(settings.get(name))
}

/// Returns the id of the endpoint that a text names: by an address of the state, or by an id.
fn id_of(text: &str, snapshot: &Snapshot) -> Result<String, CommandError> {
    if !text.contains('.') {
        if jobs::is_id(text) {
            return Ok(text.to_owned());
        }
        return Err(CommandError::new(format!("`{text}` is neither an address nor an id"))
            .help("write an address such as endpoint.chat, or the id that the service gave it"));
    }
    let address: Address = text
        .parse()
        .map_err(|error: engine::address::AddressError| CommandError::new(error.to_string()))?;
    if !jobs::takes_jobs(&address.block.ty) {
        return Err(CommandError::new(format!("{address} takes no jobs: only endpoints do")));
    }
    let Some(entry) = snapshot.entries.get(&address) else {
        return Err(not_there(&address, snapshot));
    };
    if &*entry.provider != provider_serverless::NAME {
        return Err(CommandError::new(format!(
            "{address} is managed by the provider `{}`, which takes no jobs",
            entry.provider
        )));
    }
    match &entry.current {
        Some(object) => Ok(object.id.to_string()),
        None => Err(not_there(&address, snapshot)),
    }
}

fn not_there(address: &Address, snapshot: &Snapshot) -> CommandError {
    let error = CommandError::new(format!("there is no {address} in the state"));
    let known: Vec<String> = snapshot
        .entries
        .iter()
        .filter(|(known, entry)| jobs::takes_jobs(&known.block.ty) && entry.current.is_some())
        .map(|(known, _)| known.to_string())
        .collect();
    let same_block = known.iter().find(|known| known.starts_with(&format!("{}[", address.block)));
    let near = nearest(&address.to_string(), known.iter().map(String::as_str));
    match same_block.map(String::as_str).or(near) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error.help("`plumb apply` makes it"),
        None => error.help(format!("known are {}", known.join(", "))),
    }
}

/// The bounds of a command.
pub(crate) struct Bounds {
    /// The time limit, if there is one.
    pub(crate) until: Option<Instant>,
    /// Fires when the command is asked to stop.
    pub(crate) stop: CancellationToken,
}

/// The reason why a command ended early.
#[derive(Clone, Copy)]
pub(crate) enum Early {
    /// The time limit was reached.
    TimeUp,
    /// The command was asked to stop.
    Stopped,
}

impl Bounds {
    /// Returns the bounds of a command that begins now.
    pub(crate) fn new(timeout: Option<Duration>) -> Result<Self, CommandError> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        Ok(Self { until, stop: stop_or_end()? })
    }

    /// Waits until one of the bounds is reached.
    pub(crate) async fn reached(&self) -> Early {
        let time_up = async {
            match self.until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time_up => Early::TimeUp,
            () = self.stop.cancelled() => Early::Stopped,
        }
    }

    /// Returns the result of `work`, or an error if a bound is reached first.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
        early: impl FnOnce(Early) -> CommandError,
    ) -> Result<T, CommandError> {
        tokio::select! {
            done = work => done,
            reached = self.reached() => Err(early(reached)),
        }
    }
}

/// The end of the wait for a job.
pub(crate) enum Ended {
    /// The job has ended.
    Job(Job),
    /// The time limit was reached.
    TimedOut(Job),
    /// The command was asked to stop.
    Stopped(Job),
}

/// Waits for a job's end. Tells the user when its status changes.
pub(crate) async fn wait(
    endpoint: &Endpoint<'_>,
    job: Job,
    bounds: &Bounds,
    tell: &mut Telling<'_>,
) -> Result<Ended, Error> {
    let mut follow = Follow::new(endpoint, job);
    tell.job(follow.job());
    while !follow.job().status.is_final() {
        let known = follow.job().clone();
        tokio::select! {
            seen = look(endpoint, &mut follow, tell) => seen?,
            early = bounds.reached() => return Ok(match early {
                Early::TimeUp => Ended::TimedOut(known),
                Early::Stopped => Ended::Stopped(known),
            }),
        }
    }
    Ok(Ended::Job(follow.job().clone()))
}

/// Reads the status of a job once, and tells the user what changed.
async fn look(
    endpoint: &Endpoint<'_>,
    follow: &mut Follow<'_>,
    tell: &mut Telling<'_>,
) -> Result<(), Error> {
    tell.job(follow.look().await?);
    if tell.is_reason_due()
        && let Ok(health) = endpoint.health().await
    {
        tell.queue(&health);
    }
    Ok(())
}

/// Prints the status of a job while it runs, once for each change.
pub(crate) struct Telling<'a> {
    output: &'a Output,
    /// The beginning of each line, such as the name of the check that the job belongs to.
    label: String,
    status: Option<Status>,
    progress: Option<String>,
    began: Instant,
    asked: bool,
    /// True if the output of workers may be shown.
    shows_output: bool,
    /// Masks the secrets in the output of workers.
    hide: &'a (dyn Fn(&str) -> String + Sync),
}

impl<'a> Telling<'a> {
    pub(crate) fn new(output: &'a Output, label: String, shows_output: bool) -> Self {
        Self {
            output,
            label,
            status: None,
            progress: None,
            began: Instant::now(),
            asked: false,
            shows_output,
            hide: &str::to_owned,
        }
    }

    /// Sets a function that masks the secrets in the output of workers.
    #[must_use]
    pub(crate) fn hiding(self, hide: &'a (dyn Fn(&str) -> String + Sync)) -> Self {
        Self { hide, ..self }
    }

    fn job(&mut self, job: &Job) {
        if self.status.as_ref() != Some(&job.status) {
            let words = match &job.status {
                Status::InQueue => "waits in the queue".to_owned(),
                Status::InProgress => "is in progress".to_owned(),
                Status::Completed => format!("completed{}", times(job)),
                Status::Failed => format!("failed{}", times(job)),
                Status::TimedOut => format!("ran out of time{}", times(job)),
                Status::Cancelled => "was cancelled".to_owned(),
                Status::Other(name) => format!("is {}", render::safe::text(name)),
            };
            let id = render::safe::text(&job.id);
            self.output.talk(&format!("{}job {id} {words}\n", self.label));
            self.status = Some(job.status.clone());
        }
        let progress = job.output.as_ref().map(|output| output.get().to_owned());
        if self.shows_output && !job.status.is_final() && progress != self.progress {
            if let Some(text) = &progress {
                let shown = (self.hide)(text);
                let text = render::safe::text(&shown);
                self.output.talk(&format!("{}progress: {text}\n", self.label));
            }
            self.progress = progress;
        }
    }

    /// Returns true, once, if the job has waited so long that its command looks up the reason.
    fn is_reason_due(&mut self) -> bool {
        let is_due =
            !self.asked && self.status == Some(Status::InQueue) && self.began.elapsed() > PATIENCE;
        self.asked |= is_due;
        is_due
    }

    fn queue(&self, health: &jobs::Health) {
        let workers = counts(&health.workers);
        let unhealthy = health.workers.get("unhealthy").is_some_and(|count| *count > 0);
        let hint = if unhealthy { "; `plumb job logs` shows what they said" } else { "" };
        self.output.talk(&format!("{}it still waits; workers: {workers}{hint}\n", self.label));
    }
}

/// Returns the times for which a job waited and ran, if they are known.
fn times(job: &Job) -> String {
    let time = |ms: Option<i64>| {
        ms.and_then(|ms| u64::try_from(ms).ok()).map(|ms| seconds(Duration::from_millis(ms)))
    };
    match (time(job.execution_time), time(job.delay_time)) {
        (Some(ran), Some(waited)) => format!(" in {ran}, after it waited {waited}"),
        (Some(ran), None) => format!(" in {ran}"),
        _ => String::new(),
    }
}

/// Returns numbers with their names, for people: `1 in queue`.
pub(crate) fn counts(numbers: &BTreeMap<String, i64>) -> String {
    let shown: Vec<String> = numbers
        .iter()
        .map(|(name, count)| {
            let mut words = String::new();
            for c in name.chars() {
                if c.is_ascii_uppercase() {
                    words.push(' ');
                }
                words.push(c.to_ascii_lowercase());
            }
            format!("{count} {}", render::safe::text(&words))
        })
        .collect();
    if shown.is_empty() { "unknown".to_owned() } else { shown.join(", ") }
}

/// Returns the error of a failed call about a job.
pub(crate) fn failed(error: Error) -> CommandError {
    or_not_found(
        error,
        "look whether it is a job of this endpoint; results are kept for 30 minutes, and a job is \
         deleted when its time to live is over",
    )
}

/// Returns the error of a failed call during the wait for a job. The job exists, as the service said before.
pub(crate) fn lost_sight(connected: &Connected, job: &str, error: Error) -> CommandError {
    if matches!(error.kind, Kind::NotFound) {
        return failed(error);
    }
    let failed = CommandError::new(error.to_string());
    let (name, job) = (&connected.name, render::safe::text(job));
    match error.help {
        // The next command starts the service again, at whatever address.
        _ if connected.configured.is_on_demand() => failed.help(connected.afterwards(&job)),
        Some(help) => failed.help(format!(
            "{help}; the job has an id, so do not submit it again: \
             `plumb job status {name} {job} --wait` waits for it"
        )),
        None => failed.help(connected.afterwards(&job)),
    }
}

/// Returns the error of a failed call about an endpoint as a whole.
pub(crate) fn endpoint_failed(error: Error) -> CommandError {
    or_not_found(
        error,
        "give the address of an endpoint of the spec, which `plumb state list` shows, or the id of \
         one that is there",
    )
}

fn or_not_found(error: Error, help: &str) -> CommandError {
    let failed = CommandError::new(error.to_string());
    match (error.help, error.kind) {
        (Some(help), _) => failed.help(help),
        (None, Kind::NotFound) => failed.help(help),
        (None, _) => failed,
    }
}

/// Returns the error of a command that ended before it read the status of a job.
pub(crate) fn not_looked_at(early: Early, job: &str) -> CommandError {
    let id = render::safe::text(job);
    match early {
        Early::Stopped => CommandError::new(format!("stopped before job {id} was looked at"))
            .status(error::Status::Cancelled),
        Early::TimeUp => {
            CommandError::new(format!("the time was up before the service said how job {id} is"))
                .help("the job itself goes on, if it is there")
        }
    }
}

/// Returns the error of a command that was stopped while a job runs.
pub(crate) fn stopped(connected: &Connected, job: &str) -> CommandError {
    let id = render::safe::text(job);
    CommandError::new(format!("stopped waiting for job {id}"))
        .status(error::Status::Cancelled)
        .help(connected.afterwards(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_addresses_are_told_apart() {
        let snapshot = stored_state::no_state();
        assert_eq!(id_of("jpnw0v75y3qoql", &snapshot).unwrap(), "jpnw0v75y3qoql");
        let message = |text: &str| id_of(text, &snapshot).unwrap_err().message;
        assert_eq!(message("a/b"), "`a/b` is neither an address nor an id");
        assert_eq!(message("endpoint.x"), "there is no endpoint.x in the state");
        assert_eq!(message("value.x"), "value.x takes no jobs: only endpoints do");
        assert!(message("endpoint.x[").contains("is not an address"));
    }

    #[test]
    fn what_is_not_found_is_helped_by_what_was_asked() {
        let gone = || Error::new(Kind::NotFound, "endpoint not found");
        assert!(endpoint_failed(gone()).help.unwrap().contains("`plumb state list`"));
        assert!(failed(gone()).help.unwrap().contains("30 minutes"));
    }

    #[test]
    fn counts_are_words() {
        let numbers = BTreeMap::from([("inQueue".to_owned(), 2), ("failed".to_owned(), 0)]);
        assert_eq!(counts(&numbers), "0 failed, 2 in queue");
        assert_eq!(counts(&BTreeMap::new()), "unknown");
    }
}
