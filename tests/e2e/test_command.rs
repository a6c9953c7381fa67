//! `plumb test`: runs steps against a throw-away service.

use crate::harness::{Project, wait_for};

const SPEC: &str = r#"
[provider.serverless]
local = true
[state]
backend = "s3"
bucket = "not-reached-by-a-test"
prefix = "x"
[variable.size]
default = 10
[resource.network_volume.a]
name = "a"
size = "${var.size}"
data_center_id = "EU-RO-1"
[output.size]
value = "${network_volume.a.size}"
"#;

const TEST: &str = r#"
[[step]]
name = "made"
[step.check.size]
assert = "network_volume.a.size == 10 && outputs.size == 10"
[[step]]
name = "a volume does not shrink"
run = "plan"
variables = { size = 5 }
fails = "volume size must increase"
[[step]]
name = "grown"
variables = { size = 20 }
[step.check.update]
assert = 'plan.summary.update == 1 && objects["network_volume.a"].size == 20'
"#;

#[test]
fn steps_pass_and_leave_nothing_behind() {
    let mut project = Project::new(SPEC);
    project.write("tests/sizes.test.toml", TEST);
    // A test does not see the user's key and addresses.
    project.set("PLUMB_SERVERLESS_API_KEY", "canary-key");
    project.set("PLUMB_SERVERLESS_REST_URL", "http://127.0.0.1:9/v1");
    let temporary = tempfile::tempdir().expect("a folder for the test");
    project.set("TMPDIR", temporary.path().to_str().expect("a path in UTF-8"));
    let ran = project.run(&["test"]).expect(0);
    assert!(ran.stdout.contains("3 passed, 0 failed."), "{}", ran.said());
    assert!(!project.path(".plumb").exists());
    let left = || std::fs::read_dir(temporary.path()).expect("the folder").count();
    assert_eq!(left(), 0);
    let report = project.run(&["test", "--json", "tests/sizes.test.toml"]).expect(0).json();
    assert_eq!(report["passed"], 3, "{report}");
    wait_for("the services to end", || left() == 0);
}

#[test]
fn failures_are_shown_with_their_values() {
    let project = Project::new(SPEC);
    project.write("a.test.toml", TEST.replace("size == 20", "size == 21"));
    let ran = project.run(&["test"]).expect(1);
    for words in ["FAILED  grown", "--> a.test.toml:", "`plan.summary.update` is 1", "is 20"] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.said());
    }
    assert!(ran.stdout.contains("2 passed, 1 failed."), "{}", ran.said());
    project.write("a.test.toml", TEST.replace("fails = \"volume size must increase\"", ""));
    let ran = project.run(&["test"]).expect(1);
    assert!(ran.stdout.contains("plumb plan failed"), "{}", ran.said());
    assert!(ran.stdout.contains("skipped 1 more of this file"), "{}", ran.said());
}

/// The command recovers from a fault of the service. The API of a custom provider is called only if the test
/// file names it.
#[test]
fn faults_are_made_and_real_providers_are_refused() {
    let project = Project::new(SPEC);
    let lost = "[service]\nfaults = [\"op=POST /networkvolumes,nth=1,kind=lost\"]\n";
    project.write("a.test.toml", format!("{lost}{TEST}"));
    project.run(&["test"]).expect(0);
    project.write("a.test.toml", "[service]\nfaults = [\"nonsense\"]\n[[step]]\nname = \"x\"\n");
    let ran = project.run(&["test"]).expect(1);
    assert!(ran.stderr.contains("the throw-away service did not start"), "{}", ran.said());
    project.write("plumb.toml", format!("{SPEC}[provider.dns]\ndescriptor = \"dns.toml\"\n"));
    let ran = project.run(&["test"]).expect(1);
    assert!(ran.stderr.contains("whose API is no throw-away"), "{}", ran.said());
    let nothing = Project::new(SPEC).run(&["test"]).expect(1);
    assert!(nothing.stderr.contains("there are no tests"), "{}", nothing.said());
}
