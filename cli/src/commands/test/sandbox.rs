//! The throw-away folder and service of a test file, and the commands that run in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::file::{Run, TestFile};
use crate::child_service::{self, ChildService};
use crate::environment;
use crate::error::CommandError;

/// The variables of the environment that commands of a test get, beside those in the file.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "TMPDIR", "NO_COLOR"];

/// The keys of JSON answers whose values are sentences about mistakes.
const SENTENCES: [&str; 6] = ["summary", "label", "detail", "help", "error", "message"];

/// The state and the service of one test file. Both are removed when this value is dropped.
pub(super) struct Sandbox<'a> {
    spec: &'a Path,
    file: &'a TestFile,
    // Fields are dropped in this order: the lease, the service, its folder.
    _lease: ChildService,
    _service: Child,
    folder: tempfile::TempDir,
}

/// The result of a command.
pub(super) struct Ran {
    /// True if the exit status was 0.
    pub(super) succeeded: bool,
    /// The plan; null if there is none.
    pub(super) plan: Json,
    /// All messages of the command.
    pub(super) said: String,
}

impl<'a> Sandbox<'a> {
    /// Starts a service over an empty folder. Fails if none can be started. The service ends with its lease,
    /// also if this process is killed.
    pub(super) async fn start(spec: &'a Path, file: &'a TestFile) -> Result<Self, CommandError> {
        let cannot = |error: &std::io::Error| {
            CommandError::caused("cannot set up the throw-away service", error)
        };
        let folder = tempfile::Builder::new().prefix("plumb-test-").tempdir();
        let folder = folder.map_err(|error| cannot(&error))?;
        let data = folder.path().join("service");
        let mut service = serve(spec, file, &data)?.spawn().map_err(|error| cannot(&error))?;
        // The service prints its addresses once it listens.
        let mut line = String::new();
        if let Some(out) = service.stdout.take() {
            let read = BufReader::new(out).read_line(&mut line).await;
            read.map_err(|error| cannot(&error))?;
        }
        if line.is_empty() {
            let ended = service.wait_with_output().await.map_err(|error| cannot(&error))?;
            let said = text(&ended.stderr).trim().to_owned();
            return Err(CommandError::new("the throw-away service did not start").help(said));
        }
        let lease = child_service::connect(&data).await?;
        Ok(Self { spec, file, _lease: lease, _service: service, folder })
    }

    /// Runs the command of a step, with these values for variables.
    pub(super) async fn run(
        &self,
        run: Run,
        variables: &BTreeMap<String, toml::Value>,
    ) -> Result<Ran, CommandError> {
        let values = self.values(variables)?;
        let mut command = self.command()?;
        command.args([run.word(), "--json", "--local", "--var-file"]).arg(values);
        if run != Run::Plan {
            command.arg("--yes");
        }
        let output = command.output().await.map_err(|error| cannot_run(&error))?;
        let out = text(&output.stdout);
        let answers: Vec<Json> = match run {
            Run::Plan => serde_json::from_str(&out).into_iter().collect(),
            Run::Apply | Run::Destroy => {
                out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
            }
        };
        let mut said = text(&output.stderr);
        for answer in &answers {
            sentences(answer, &mut said);
        }
        let first = answers.into_iter().next().unwrap_or_default();
        let plan = match run {
            Run::Plan => first,
            Run::Apply | Run::Destroy => first.get("plan").cloned().unwrap_or_default(),
        };
        Ok(Ran { succeeded: output.status.success(), plan, said })
    }

    /// Returns the JSON output of a command that only reads the state.
    pub(super) async fn read(&self, arguments: &[&str]) -> Result<Json, CommandError> {
        let output = self.command()?.args(arguments).output().await;
        let output = output.map_err(|error| cannot_run(&error))?;
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    /// Writes the values of a step to a variables file.
    fn values(&self, variables: &BTreeMap<String, toml::Value>) -> Result<PathBuf, CommandError> {
        let mut all = self.file.variables.clone();
        all.extend(variables.iter().map(|(name, value)| (name.clone(), value.clone())));
        let text = toml::to_string(&all).map_err(|error| {
            CommandError::caused("cannot write the variables of a step", &error)
        })?;
        let path = self.folder.path().join("step.vars.toml");
        std::fs::write(&path, text).map_err(|error| cannot_run(&error))?;
        Ok(path)
    }

    fn command(&self) -> Result<Command, CommandError> {
        let mut command = program(self.spec, &self.file.env)?;
        command.env(environment::TEST_FOLDER, self.folder.path());
        Ok(command)
    }
}

/// Returns the command that starts the service.
fn serve(spec: &Path, file: &TestFile, data: &Path) -> Result<Command, CommandError> {
    let mut serve = program(spec, &file.env)?;
    serve.args(["--quiet", "serve", "--until-idle", "--print-env", "--rates", "off"]);
    serve.arg("--no-access-log").arg("--data").arg(data);
    serve.stdout(Stdio::piped()).stderr(Stdio::piped());
    for fault in &file.service.faults {
        serve.args(["--fault", fault]);
    }
    if !file.service.quirks.is_empty() {
        serve.args(["--quirks", &file.service.quirks.join(",")]);
    }
    Ok(serve)
}

/// Returns a command that runs this program in the folder of the spec, with an environment that holds no
/// keys.
fn program(spec: &Path, env: &BTreeMap<String, String>) -> Result<Command, CommandError> {
    let program = std::env::current_exe()
        .map_err(|error| CommandError::caused("cannot find this program to start it", &error))?;
    let mut command = Command::new(program);
    command.arg("-C").arg(spec).args(["--color", "never"]).env_clear().stdin(Stdio::null());
    command.kill_on_drop(true);
    for name in PASSED_ON {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(env);
    Ok(command)
}

/// Adds the sentences of diagnostics and errors in an answer, one per line.
fn sentences(answer: &Json, said: &mut String) {
    match answer {
        Json::Array(items) => items.iter().for_each(|item| sentences(item, said)),
        Json::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Json::String(text) if SENTENCES.contains(&key.as_str()) => {
                        said.push_str(text);
                        said.push('\n');
                    }
                    value => sentences(value, said),
                }
            }
        }
        _ => {}
    }
}

fn cannot_run(error: &std::io::Error) -> CommandError {
    CommandError::caused("cannot run a step", error)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
