//! Tests of workers and pods in containers. Some use a fake client, which records its arguments and
//! runs the command itself. One uses a real engine, if there is one.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use service::{Options, Runtime};
use tempfile::TempDir;

use crate::harness::Harness;
use crate::killed::Alone;
use crate::pods::{log, make};
use crate::scaling::kill_guard;

/// A fake client without an engine. It appends its arguments to `calls`, one on each line, and runs
/// the command.
const CLIENT: &str = r#"#!/bin/sh
printf '%s\n' "$@" -- >> "HERE/calls"
operation=$1
shift
case $operation in
info) [ ! -e "HERE/down" ] || { echo 'Cannot connect to the daemon.' >&2; exit 1; } ;;
ps) cat "HERE/left" 2>/dev/null ;;
run)
    while :; do
        case $1 in
        --rm|--init) shift ;;
        --entrypoint) entrypoint=$2; shift 2 ;;
        --env) case $2 in *=*) export "$2" ;; esac; shift 2 ;;
        --*) shift 2 ;;
        *) break ;;
        esac
    done
    shift
    exec "$entrypoint" "$@"
    ;;
esac
"#;

/// The folder of a fake client.
struct Client(TempDir);

impl Client {
    fn new() -> Client {
        let folder = TempDir::new().unwrap();
        let client = folder.path().join("docker");
        let script = CLIENT.replace("HERE", folder.path().to_str().unwrap());
        std::fs::write(&client, script).unwrap();
        std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
        Client(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("docker")
    }

    fn runtime(&self) -> Runtime {
        Runtime::Container(self.path().into())
    }

    /// Returns the calls of the client, each with its arguments.
    fn calls(&self) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(self.0.path().join("calls")).unwrap_or_default();
        let mut calls = vec![Vec::new()];
        for line in text.lines() {
            match line {
                "--" => calls.push(Vec::new()),
                line => calls.last_mut().unwrap().push(line.to_owned()),
            }
        }
        calls.retain(|call| !call.is_empty());
        calls
    }

    /// Waits for the call that removes this container.
    async fn removed(&self, name: &str) {
        for _ in 0..400 {
            if self.calls().iter().any(|call| call == &["rm", "--force", name]) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{name} is not removed: {:?}", self.calls());
    }
}

/// Returns a template whose container runs the echo worker.
fn template() -> Value {
    json!({ "name": "boxed", "imageName": "registry.example/echo:3", "isServerless": true,
        "dockerEntrypoint": [env!("CARGO_BIN_EXE_service-alone")], "dockerStartCmd": ["echo"],
        "volumeMountPath": "/models", "env": { "TOKEN": "a secret\nof two lines" } })
}

fn has_pair(call: &[String], option: &str, value: &str) -> bool {
    call.windows(2).any(|pair| pair == [option, value])
}

#[tokio::test]
async fn a_worker_is_a_container_of_its_image() {
    let client = Client::new();
    let service = Harness::with(|options| options.runtime = client.runtime()).await;
    let volume = service.volume("models", 1).await;
    let template = service.post("/templates", template()).await["id"].take();
    let more = json!({ "templateId": template, "networkVolumeId": volume, "computeType": "CPU",
        "vcpuCount": 4 });
    let endpoint = service.endpoint(more).await;
    let job = service.run(&endpoint, json!({ "environment": "TOKEN" })).await;
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(done["output"], "a secret\nof two lines");
    let worker = service.pods(&endpoint).await.remove(0);
    let name = format!("plumb-{worker}");
    let calls = client.calls();
    let run = calls.iter().find(|call| call[0] == "run").unwrap();
    let data = std::path::absolute(&service.data).unwrap();
    let folder = data.join("volumes").join(&volume);
    let label = format!("plumb.data={}", data.display());
    for (option, value) in
        [("--network", "host"), ("--name", &name), ("--label", &label), ("--cpus", "4")]
    {
        assert!(has_pair(run, option, value), "{option} {value}: {run:?}");
    }
    for target in [Path::new("/runpod-volume"), Path::new("/models"), &folder] {
        let mount = format!("type=bind,source={},target={}", folder.display(), target.display());
        assert!(has_pair(run, "--mount", &mount), "{mount}: {run:?}");
    }
    for variable in ["TOKEN", "RUNPOD_POD_ID", "RUNPOD_WEBHOOK_GET_JOB", "RUNPOD_AI_API_KEY"] {
        assert!(has_pair(run, "--env", variable), "{variable}: {run:?}");
    }
    assert!(!has_pair(run, "--env", "PATH") && !has_pair(run, "--env", "HOME"), "{run:?}");
    assert!(!run.iter().any(|word| word.contains("secret")), "{run:?}");
    let image = run.iter().position(|word| word == "registry.example/echo:3").unwrap();
    assert_eq!(run[image + 1..], ["echo"]);
    assert!(has_pair(run, "--entrypoint", env!("CARGO_BIN_EXE_service-alone")));
    service.stop().await;
    client.removed(&name).await;
}

#[tokio::test]
async fn containers_go_when_the_service_is_killed() {
    let (client, folder) = (Client::new(), TempDir::new().unwrap());
    let variable = ("SERVICE_ENGINE", OsString::from(client.path()));
    let service = Alone::with_variable(&variable, folder.path()).await;
    let endpoint = service.endpoint_of(template(), 1).await;
    let url = format!("{}/{endpoint}/runsync", service.queue);
    let done = service.post(url, &json!({ "input": { "x": 1 } })).await.unwrap();
    let name = format!("plumb-{}", done["workerId"].as_str().unwrap());
    service.kill();
    client.removed(&name).await;
    // A container that is left because its guard was killed as well.
    std::fs::write(client.0.path().join("left"), "4c01db0b339c\n").unwrap();
    let service = Alone::with_variable(&variable, folder.path()).await;
    client.removed("4c01db0b339c").await;
    let filter = format!("label=plumb.data={}", folder.path().display());
    let asked = |call: &Vec<String>| call[0] == "ps" && has_pair(call, "--filter", &filter);
    assert!(client.calls().iter().any(asked), "{:?}", client.calls());
    service.kill();
}

#[tokio::test]
async fn a_container_goes_when_its_guard_is_killed() {
    let client = Client::new();
    let service = Harness::with(|options| options.runtime = client.runtime()).await;
    let template = service.post("/templates", template()).await["id"].take();
    let endpoint = service.endpoint(json!({ "templateId": template })).await;
    let job = service.run(&endpoint, json!({ "sleep_ms": 1500 })).await;
    service.until(&endpoint, &job, "IN_PROGRESS").await;
    let worker = service.pods(&endpoint).await.remove(0);
    kill_guard(&worker);
    client.removed(&format!("plumb-{worker}")).await;
    let done = service.until(&endpoint, &job, "COMPLETED").await;
    assert_eq!(done["retries"], 1);
}

#[tokio::test]
async fn without_an_engine_the_service_does_not_start() {
    let (client, folder) = (Client::new(), TempDir::new().unwrap());
    let start = async |runtime: Runtime| {
        let mut options = Options::new(folder.path().join("data"));
        options.runtime = runtime;
        service::start(options).await.err().unwrap().to_string()
    };
    std::fs::write(client.0.path().join("down"), "").unwrap();
    let path = client.path();
    assert_eq!(
        start(client.runtime()).await,
        format!(
            "{} is on PATH but its engine does not answer: Cannot connect to the daemon.",
            path.display()
        )
    );
    let missing = start(Runtime::Container("no-such-engine".into())).await;
    assert_eq!(missing, "no-such-engine is not on PATH: install it, or leave --runtime away");
}

#[tokio::test]
async fn a_pod_is_a_container_of_its_image() {
    let client = Client::new();
    let service = Harness::with(|options| options.runtime = client.runtime()).await;
    let line = "echo \"tmp is [$TMPDIR], token is $TOKEN\"; sleep 60";
    let pod = json!({ "name": "boxed", "imageName": "registry.example/shell:2", "volumeInGb": 1,
        "ports": ["8000/http"], "volumeMountPath": "/kept",
        "env": { "TOKEN": "hunter2", "TMPDIR": "/scratch" },
        "dockerEntrypoint": ["sh", "-c"], "dockerStartCmd": [line] });
    let pod = make(&service, pod).await;
    log(&service, &pod, "tmp is [/scratch], token is hunter2").await;
    let calls = client.calls();
    let run = calls.iter().find(|call| call[0] == "run").unwrap();
    let volume = std::path::absolute(&service.data).unwrap().join("pods").join(&pod).join("volume");
    let mount = format!("type=bind,source={},target=/kept", volume.display());
    let name = format!("plumb-{pod}");
    for (option, value) in [("--name", name.as_str()), ("--mount", &mount), ("--env", "PORT")] {
        assert!(has_pair(run, option, value), "{option} {value}: {run:?}");
    }
    assert!(!run.iter().any(|word| word.contains("hunter2")), "{run:?}");
    let image = run.iter().position(|word| word == "registry.example/shell:2").unwrap();
    assert_eq!(run[image + 1..], ["-c", line]);
    service.post(&format!("/pods/{pod}/stop"), json!({})).await;
    client.removed(&name).await;
    service.stop().await;
}

/// Returns a container engine that answers: the one in the folder of test servers, or one on
/// `PATH`; `None` if there is none.
fn real_engine() -> Option<OsString> {
    let servers = std::env::var_os("PLUMB_TEST_SERVERS");
    let servers = servers.map_or_else(|| "../target/servers".into(), PathBuf::from);
    let of_tests = std::path::absolute(servers.join("podman/podman")).unwrap();
    let answers = |name: &OsString| {
        let asked = std::process::Command::new(name).arg("info").output();
        asked.is_ok_and(|output| output.status.success())
    };
    let engine = [of_tests.into(), "docker".into(), "podman".into()].into_iter().find(answers);
    if engine.is_none() {
        let required = std::env::var("PLUMB_TEST_SERVERS_REQUIRED").unwrap_or_default();
        let is_required = required.split_whitespace().any(|it| it == "podman" || it == "all");
        assert!(
            !is_required,
            "no container engine, and PLUMB_TEST_SERVERS_REQUIRED is `{required}`"
        );
        eprintln!("skipped: neither docker nor podman has an engine that answers here");
    }
    engine
}

/// A real engine runs a worker and a pod: a shell with the tools of busybox.
#[tokio::test]
async fn a_real_engine_runs_a_worker_and_a_pod() {
    let Some(engine) = real_engine() else { return };
    let service = Harness::with(|options| {
        options.runtime = Runtime::Container(engine.clone());
        options.worker_limits.memory = Some(64 << 20);
    })
    .await;
    let script = r#"
        limits="/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max"
        take=$(echo "$RUNPOD_WEBHOOK_GET_JOB" | sed "s/\$ID/$RUNPOD_POD_ID/")
        while job=$(wget -qO- "$take&job_in_progress=0"); do
            id=$(echo "$job" | sed 's/.*"id":"\([^"]*\)".*/\1/')
            done=$(echo "$RUNPOD_WEBHOOK_POST_OUTPUT" | sed "s/\$RUNPOD_POD_ID/$RUNPOD_POD_ID/; s/\$ID/$id/")
            wget -qO- --post-data "{\"output\":\"$(cat $limits 2>/dev/null)\"}" "$done&isStream=false"
        done"#;
    let template = json!({ "name": "boxed", "imageName": "busybox:1", "isServerless": true,
        "dockerEntrypoint": ["sh", "-c"], "dockerStartCmd": [script] });
    let template = service.post("/templates", template).await["id"].take();
    let endpoint = service.endpoint(json!({ "templateId": template })).await;
    let job = service.run(&endpoint, json!({})).await;
    let path = format!("{endpoint}/status-sync/{job}?wait=120000");
    let (_, done) = service.queue(reqwest::Method::GET, &path, None).await;
    assert_eq!(done["status"], "COMPLETED", "{done}");
    assert_eq!(done["output"], "67108864");
    // The volume of the pod is kept from one start to the next, its disk is not.
    let line =
        "echo x >> /kept/lines; echo x >> /tmp/lost; wc -l /kept/lines /tmp/lost; exec sleep 60";
    let pod = json!({ "name": "boxed", "imageName": "busybox:1", "volumeInGb": 1, "ports": [],
        "volumeMountPath": "/kept", "dockerEntrypoint": ["sh", "-c"], "dockerStartCmd": [line] });
    let pod = make(&service, pod).await;
    log(&service, &pod, "1 /tmp/lost").await;
    service.post(&format!("/pods/{pod}/restart"), json!({})).await;
    let seen = log(&service, &pod, "2 /kept/lines").await;
    assert!(!seen.contains("2 /tmp/lost"), "{seen}");
    let label =
        format!("label=plumb.data={}", std::path::absolute(&service.data).unwrap().display());
    service.stop().await;
    let list = ["ps", "--all", "--quiet", "--filter", &label];
    let left = std::process::Command::new(&engine).args(list).output().unwrap();
    assert!(left.status.success() && left.stdout.is_empty(), "{left:?}");
}
