//! Tests of the real service's own clients and workers, unmodified, against this service. They are
//! installed from their registries, so these tests run only with `SERVICE_SDK_TESTS=1`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde_json::json;
use service::StreamFormat;
use tokio::process::Command;

use crate::harness::{Harness, KEY};

/// The folder of the programs that use these clients and workers.
const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk");

/// The path of the client of version 2 in the folder of installed packages.
const MCP: &str = "node_modules/@runpod/mcp-server/dist/stdio.mjs";

async fn run(command: &mut Command) -> Output {
    let output = tokio::time::timeout(Duration::from_mins(5), command.output());
    let output = output.await.expect("it ends").expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    eprintln!("{said}");
    output
}

/// Installs the packages into a folder that is kept between runs. Returns the folder.
async fn install() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sdk");
    std::fs::create_dir_all(&folder).unwrap();
    let python = ["runpod==1.12.*", "openai==3.*", "langchain-runpod==0.2.*", "runpod-flash==1.*"];
    install_python(&folder.join("venv"), "runpod_flash", &python).await;
    // This package has a command of the same name as the SDK's, so it gets an environment of its
    // own.
    install_python(&folder.join("venv-cli"), "runpod_cli", &["runpod-cli==0.1.*"]).await;
    if !folder.join("node_modules/ai").exists() {
        std::fs::write(folder.join("package.json"), "{}").unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "runpod-sdk@1", "@runpod/mcp-server@4"]);
        npm.args(["@runpod/ai-sdk-provider@1", "ai@6"]);
        run(npm.current_dir(&folder)).await;
    }
    folder
}

/// Makes a Python environment with these packages, unless the environment has this module already.
async fn install_python(environment: &Path, module: &str, packages: &[&str]) {
    let python = environment.join("bin/python");
    let mut look = Command::new(&python);
    // Some packages write a log into the current folder.
    look.current_dir(environment.parent().unwrap());
    look.args(["-W", "ignore", "-c", &format!("import {module}")]);
    if look.output().await.is_ok_and(|found| found.status.success()) {
        return;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(environment)).await;
    let mut pip = Command::new(&python);
    run(pip.args(["-m", "pip", "install", "-q"]).args(packages)).await;
}

async fn endpoint(service: &Harness, folder: &Path, handler: &str) -> String {
    let python = folder.join("venv/bin/python");
    let template = json!({ "name": handler, "imageName": "none", "isServerless": true,
        "dockerStartCmd": [python, "-u", format!("{SDK}/{handler}")] });
    let template = service.post("/templates", template).await["id"].take();
    service.endpoint(json!({ "templateId": template })).await
}

/// Returns true if these tests are skipped, and reports it.
fn is_skipped() -> bool {
    let is_skipped = std::env::var_os("SERVICE_SDK_TESTS").is_none();
    if is_skipped {
        // Written without a macro, because the test harness hides the macro output of a passed
        // test.
        let said = b"skipped: the real clients and workers, as SERVICE_SDK_TESTS is not set\n";
        std::io::stderr().write_all(said).unwrap();
    }
    is_skipped
}

#[tokio::test]
async fn the_real_clients_and_workers_run_unmodified() {
    if is_skipped() {
        return;
    }
    let folder = install().await;
    let service = Harness::with(|options| {
        options.stream_format = StreamFormat::Object;
        options.timing.ping_interval = Duration::from_secs(4);
    })
    .await;
    let plain = endpoint(&service, &folder, "handler.py").await;
    let generator = endpoint(&service, &folder, "generator.py").await;
    for name in ["client.py", "async_client.py"] {
        let mut python = Command::new(folder.join("venv/bin/python"));
        python.arg(format!("{SDK}/{name}")).args([&plain, &generator, KEY]);
        run(python.env("RUNPOD_ENDPOINT_BASE_URL", &service.addresses.queue)).await;
    }
    // The management calls need an account without any objects.
    let empty = Harness::start().await;
    let base = empty.addresses.rest.strip_suffix("/v1").unwrap();
    let mut python = Command::new(folder.join("venv/bin/python"));
    python.arg(format!("{SDK}/management.py")).arg(KEY);
    run(python.env("RUNPOD_API_BASE_URL", base)).await;
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["config", KEY][..], &["pod", "list"], &["ssh", "list-keys"]] {
        let mut command = Command::new(folder.join("venv/bin/runpod"));
        command.args(arguments).env("HOME", home.path());
        run(command.env("RUNPOD_API_BASE_URL", base)).await;
    }
    let v2 = Harness::start().await;
    let base = v2.addresses.rest.strip_suffix("/v1").unwrap();
    let mut python = Command::new("python3");
    python.arg(format!("{SDK}/mcp.py")).arg(folder.join(MCP)).args([base, KEY]);
    run(&mut python).await;
    let mut node = Command::new("node");
    node.arg(format!("{SDK}/client.cjs")).args([&plain, &generator, KEY, &service.addresses.queue]);
    run(node.env("NODE_PATH", folder.join("node_modules"))).await;
}

/// Clients of language models, and the SDK that makes endpoints from code, run unmodified.
#[tokio::test]
async fn clients_of_models_run_unmodified() {
    if is_skipped() {
        return;
    }
    let folder = install().await;
    let service = Harness::with(|options| {
        options.timing.ping_interval = Duration::from_secs(4);
    })
    .await;
    let (queue, rest) = (&service.addresses.queue, &service.addresses.rest);
    let model = endpoint(&service, &folder, "model.py").await;
    let script = |environment: &str, name: &str| {
        let mut python = Command::new(folder.join(environment).join("bin/python"));
        python.args(["-W", "ignore"]).arg(format!("{SDK}/{name}"));
        python
    };
    for (environment, name) in [
        ("venv", "openai_client.py"),
        ("venv", "langchain_client.py"),
        ("venv-cli", "cli_client.py"),
    ] {
        run(script(environment, name).args([queue, &model, KEY])).await;
    }
    let mut flash = script("venv", "flash_client.py");
    // The client writes a log into the current folder.
    flash
        .current_dir(&folder)
        .arg(&model)
        .env("RUNPOD_API_KEY", KEY)
        .env("RUNPOD_URL_MIXED_OK", "1");
    flash.env("RUNPOD_API_BASE_URL", rest.strip_suffix("/v1").unwrap());
    run(flash.env("RUNPOD_REST_API_URL", rest).env("RUNPOD_ENDPOINT_BASE_URL", queue)).await;
    let mut node = Command::new("node");
    node.arg(format!("{SDK}/ai_sdk.mjs")).arg(&folder).args([queue, &model, KEY]);
    run(&mut node).await;
}
