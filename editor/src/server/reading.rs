//! The thread that reads specs, so that no answer waits for one that is large.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use engine::diagnostics::Diagnostics;
use engine::state::Snapshot;

use crate::workspace::{OpenTexts, PlannedChanges, Spec, Workspace};

/// The pause in typing after which a spec is read.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a pause.
const PAUSE_MAX: Duration = Duration::from_millis(800);

/// A folder to read.
pub(super) struct Job {
    pub(super) folder: PathBuf,
    /// The open texts; none where the last job of the folder has them.
    pub(super) open: Option<OpenTexts>,
    /// The number of changes of the folder that they show.
    pub(super) change: u64,
    /// True if somebody waits.
    pub(super) is_urgent: bool,
}

/// The result of a job.
pub(super) enum Report {
    /// The spec was read.
    Read { folder: PathBuf, change: u64, read: Read },
    /// Everything is known that is wrong with it; with what the rules found, where these were checked.
    Found { folder: PathBuf, change: u64, rules: Option<Diagnostics> },
    /// It is known what a plan would change.
    Planned { folder: PathBuf, change: u64, changes: Arc<dyn PlannedChanges> },
}

/// A folder that was read.
pub(super) struct Read {
    pub(super) spec: Result<Arc<dyn Spec>, String>,
    pub(super) state: Option<Arc<Snapshot>>,
}

impl Report {
    pub(super) fn folder(&self) -> &Path {
        match self {
            Self::Read { folder, .. }
            | Self::Found { folder, .. }
            | Self::Planned { folder, .. } => folder,
        }
    }
}

/// Starts the thread, which ends when no more jobs can come.
pub(super) fn start(workspace: Box<dyn Workspace>) -> (Sender<Job>, Receiver<Report>) {
    let ((jobs, incoming), (outgoing, reports)) = (unbounded(), unbounded());
    // Where the system gives no thread, the server ends with the reports.
    drop(thread::Builder::new().spawn(move || {
        let open = BTreeMap::new();
        let mut reader = Reader { workspace, incoming, outgoing, open, is_urgent: false };
        while reader.turn().is_some() {}
    }));
    (jobs, reports)
}

struct Reader {
    workspace: Box<dyn Workspace>,
    incoming: Receiver<Job>,
    outgoing: Sender<Report>,
    /// The folders to read, each with the texts and the number of their changes.
    open: BTreeMap<PathBuf, (OpenTexts, u64)>,
    /// True if somebody waits for one of them.
    is_urgent: bool,
}

impl Reader {
    /// Waits for a pause, and reads every folder that changed; none when it is over.
    fn turn(&mut self) -> Option<()> {
        if self.open.is_empty() {
            let job = self.incoming.recv().ok()?;
            self.note(job);
        }
        let end = Instant::now() + PAUSE_MAX;
        while !self.is_urgent && Instant::now() < end {
            let Ok(job) = self.incoming.recv_timeout(PAUSE) else { break };
            self.note(job);
        }
        self.note_all();
        self.is_urgent = false;
        for (folder, (open, change)) in std::mem::take(&mut self.open) {
            self.read(folder, &open, change)?;
        }
        Some(())
    }

    /// Takes a job into account.
    fn note(&mut self, job: Job) {
        if let Some(open) = job.open {
            self.open.insert(job.folder, (open, job.change));
        }
        self.is_urgent |= job.is_urgent;
    }

    fn note_all(&mut self) {
        while let Ok(job) = self.incoming.try_recv() {
            self.note(job);
        }
    }

    fn read(&mut self, folder: PathBuf, open: &OpenTexts, change: u64) -> Option<()> {
        let spec = self.workspace.read(&folder, open);
        let state = self.workspace.state(&folder);
        let right = spec.as_ref().ok().filter(|spec| !spec.diagnostics().has_errors()).cloned();
        let planned = right.clone().zip(state.clone());
        let read = Read { spec, state };
        self.outgoing.send(Report::Read { folder: folder.clone(), change, read }).ok()?;
        if self.has_changed(&folder) {
            return Some(());
        }
        let rules = right.map(|spec| spec.rules());
        self.outgoing.send(Report::Found { folder: folder.clone(), change, rules }).ok()?;
        if self.has_changed(&folder) {
            return Some(());
        }
        match planned.and_then(|(spec, state)| spec.changes(&state)) {
            Some(changes) => self.outgoing.send(Report::Planned { folder, change, changes }).ok(),
            None => Some(()),
        }
    }

    /// Returns true if the text of a folder has changed: nobody wants to know more about the one before.
    fn has_changed(&mut self, folder: &Path) -> bool {
        self.note_all();
        self.open.contains_key(folder)
    }
}
