//! A test of the console in a real browser. It runs only if Chromium is installed, and
//! `.ci/servers` has installed playwright-core and axe-core.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::process::Command;

use crate::harness::{Harness, KEY};

/// The path of the browser, and the folder of the modules that drive it.
struct Browser {
    program: PathBuf,
    modules: PathBuf,
}

/// Returns the browser. If it is missing, reports that the test is skipped, and returns `None`.
fn browser() -> Option<Browser> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("PLUMB_TEST_SERVERS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| root.join("../target/servers"));
    let programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let program = programs.iter().map(PathBuf::from).find(|program| program.exists());
    let modules = folder.join("node_modules/playwright-core").exists()
        && folder.join("node_modules/axe-core").exists();
    if let (Some(program), true) = (program, modules) {
        return Some(Browser { program, modules: folder });
    }
    let required = std::env::var("PLUMB_TEST_SERVERS_REQUIRED").unwrap_or_default();
    let is_required = required.split_whitespace().any(|word| word == "chromium" || word == "all");
    assert!(!is_required, "no Chromium here, and PLUMB_TEST_SERVERS_REQUIRED is `{required}`");
    // Written without a macro, because the test harness hides the macro output of a passed test.
    let said = b"skipped: the console in a browser, as Chromium, playwright-core or axe-core is not here\n";
    std::io::stderr().write_all(said).unwrap();
    None
}

#[tokio::test]
async fn a_job_is_followed_in_a_browser_by_keys_alone() {
    let Some(browser) = browser() else { return };
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&screenshots).unwrap();
    let service = Harness::start().await;
    let volume = service.volume("models", 10).await;
    let more = json!({ "name": "chat", "workersMax": 3, "networkVolumeId": volume });
    let endpoint = service.endpoint(more).await;
    let balanced = json!({ "name": "balanced", "type": "LOAD_BALANCER", "image": "echo:1",
        "scaling": { "type": "REQUEST_COUNT", "requestCount": 4 },
        "gpu": { "pools": ["AMPERE_24"] }, "workers": { "min": 1, "max": 2 } });
    let balanced = service.queue(Method::POST, "serverless", Some(balanced)).await.1;
    let balanced = balanced["id"].as_str().unwrap().to_owned();
    let address = service.addresses.rest.strip_suffix("/v1").unwrap();
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/console.mjs"));
    node.args([address, KEY, &endpoint, &balanced]).arg(&browser.program);
    node.arg(&browser.modules).arg(&screenshots).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_mins(3), node.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}
