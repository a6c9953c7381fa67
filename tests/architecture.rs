//! Tests of the architecture: which crate may use which others, and which words may stand in which crates.

#[path = "architecture/circles.rs"]
mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The allowed dependencies: each crate with the crates that it may use, as in ARCHITECTURE.md. The root
/// package is the binary.
const ARROWS: &[(&str, &[&str])] = &[
    ("plumb", &["cli"]),
    (
        "cli",
        &[
            "engine",
            "render",
            "apply",
            "state",
            "provider-port",
            "provider-http",
            "provider-openapi",
            "provider-serverless",
            "provider-builtin",
            "service",
            "editor",
        ],
    ),
    ("editor", &["engine"]),
    ("apply", &["engine", "provider-port", "state"]),
    ("render", &["engine"]),
    ("state", &["engine"]),
    ("provider-port", &["engine"]),
    ("provider-http", &["provider-port", "engine"]),
    ("provider-openapi", &["engine"]),
    ("provider-builtin", &["provider-port", "engine"]),
    ("provider-serverless", &["provider-http", "provider-port", "engine"]),
    ("engine", &[]),
    ("service", &[]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs, since it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// Returns the dependencies of each workspace member on other members, without those for tests.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |package: &serde_json::Value| package["name"].as_str().unwrap_or("").to_owned();
    let members: BTreeSet<String> = packages.iter().map(name).collect();
    let uses = |package: &serde_json::Value| {
        package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .map(name)
            .filter(|used| members.contains(used))
            .collect()
    };
    packages.iter().map(|package| (name(package), uses(package))).collect()
}

#[test]
fn crates_use_only_what_the_arrows_allow() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    for (name, uses) in arrows() {
        let allowed = allowed.get(name.as_str()).unwrap_or_else(|| panic!("no arrows for {name}"));
        for used in uses {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

/// Returns the Rust files below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the house") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if path.is_dir() {
                if name != "tests" && name != "target" {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs")
                && name != "tests.rs"
                && name != "testing.rs"
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the text of a file up to its test module. Code for tests is not checked.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].to_owned()
}

#[test]
fn only_the_serverless_crates_know_its_types_by_name() {
    for folder in ["engine", "apply", "state", "render", "providers/http", "providers/port"] {
        for path in sources(&root().join(folder)) {
            let code = code(&path);
            for word in ["network_volume", "endpoint"] {
                // The job of a check is a key of the spec language, with the name of the endpoint that runs
                // it.
                if word == "endpoint" && path.ends_with("engine/src/config/keys.rs") {
                    continue;
                }
                assert!(!code.contains(word), "{} says `{word}`", path.display());
            }
        }
    }
}

/// Only `render` branches on a reason, because a reason is meant for people.
#[test]
fn nothing_branches_on_a_reason() {
    let asks = |line: &str| {
        let pattern =
            line.split_once("=>").is_some_and(|(pattern, _)| pattern.contains("Reason::"));
        let compared = line.contains("== Reason::") || line.contains("!= Reason::");
        let taken_apart = line.contains("let Reason::");
        pattern
            || taken_apart
            || compared
            || (line.contains("matches!(") && line.contains("Reason::"))
    };
    for folder in ["engine/src", "apply/src", "cli/src"] {
        for path in sources(&root().join(folder)) {
            let code = code(&path);
            let found = code.lines().find(|line| asks(line));
            assert_eq!(found, None, "{} branches on a reason", path.display());
        }
    }
}

#[test]
fn every_module_says_what_it_is() {
    for folder in FOLDERS {
        for path in sources(&root().join(folder)) {
            let text = std::fs::read_to_string(&path).expect("a source file");
            assert!(text.starts_with("//!"), "{} does not open with `//!`", path.display());
        }
    }
}

/// The folders of the workspace members.
const FOLDERS: &[&str] = &[
    "src",
    "engine/src",
    "apply/src",
    "state/src",
    "render/src",
    "providers",
    "service/src",
    "cli/src",
];
