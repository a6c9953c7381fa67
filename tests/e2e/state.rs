//! `plumb state`: replacing a state, and showing its history.

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Project, ran};

const SPEC: &str = "[resource.value.v]\ninput = 1\n";

/// Returns a folder in which `value.v` was applied with these inputs, one after the other.
fn applied(inputs: &[u32]) -> Project {
    let project = Project::new(SPEC);
    for input in inputs {
        project.write("plumb.toml", format!("[resource.value.v]\ninput = {input}\n"));
        project.run(&["apply", "--yes"]).expect(0);
    }
    project
}

#[test]
fn what_cannot_be_read_is_replaced_only_by_force() {
    let mut project = Project::new(SPEC);
    project.set("PLUMB_STATE_KEY", "canary passphrase of the state");
    project.run(&["apply", "--yes"]).expect(0);
    let pulled = project.run(&["state", "pull"]).expect(0).stdout;
    project.write("state.json", pulled);
    let before = project.written();
    for (key, words) in [
        (None, "is encrypted, but PLUMB_STATE_KEY is not set"),
        (Some("quite another passphrase"), "with another key than PLUMB_STATE_KEY"),
    ] {
        let push = |force: &[&str]| {
            let arguments = [&["state", "push", "state.json"], force].concat();
            let mut command = project.command(&arguments);
            match key {
                Some(key) => command.env("PLUMB_STATE_KEY", key),
                None => command.env_remove("PLUMB_STATE_KEY"),
            };
            ran(&command.output().expect("the binary runs"))
        };
        let said = push(&[]).expect(8).said();
        assert!(said.contains(words) && said.contains("--force"), "{said}");
    }
    assert!(project.written() == before, "something was written");
    project.write(".plumb/state.json", "garbage");
    let said = project.run(&["state", "push", "state.json"]).expect(8).said();
    assert!(said.contains("cannot be read"), "{said}");
    project.run(&["state", "push", "--force", "state.json"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_missing_state_is_put_in_place_without_force() {
    let project = applied(&[1, 2]);
    std::fs::remove_file(project.path(".plumb/state.json")).expect("it is there");
    let said = project.run(&["plan"]).expect(8).said();
    let help = "`plumb state push .plumb/backups/";
    assert!(said.contains(help), "{said}");
    project.run(&["state", "push", ".plumb/backups/0.json"]).expect(0);
    project.run(&["state", "list"]).expect(0);
}

#[test]
fn what_would_be_lost_by_a_push_takes_force_and_is_named() {
    let project = applied(&[1]);
    project.write("state.json", project.run(&["state", "pull"]).expect(0).stdout);
    project.write("plumb.toml", "[resource.value.v]\ninput = 1\n[resource.value.w]\ninput = 1\n");
    project.run(&["apply", "--yes"]).expect(0);
    // The lock has a note of its last holder; the state is unchanged.
    let state = || std::fs::read(project.path(".plumb/state.json")).expect("it is there");
    let before = state();
    let said = project.run(&["state", "push", "state.json"]).expect(8).said();
    assert!(said.contains("it is older") && said.contains("--force"), "{said}");
    assert!(state() == before, "the state was replaced");
    let said = project.run(&["state", "push", "--force", "state.json"]).expect(0).said();
    assert!(
        said.contains("these are no longer in the state, if they exist:\n  value.w ("),
        "{said}"
    );
    let said = project.run(&["state", "push", "/dev/zero"]).expect(1).said();
    assert!(said.contains("/dev/zero is a device"), "{said}");
}

#[test]
fn what_a_push_forgets_does_nothing_to_a_terminal() {
    let project = applied(&[1]);
    project.write("state.json", project.run(&["state", "pull"]).expect(0).stdout);
    project.write(
        "plumb.toml",
        "[resource.value.v]\ninput = 1\n[resource.value.w]\nfor_each = [\"\\u202e\\u009b2J\"]\ninput = 1\n",
    );
    project.run(&["apply", "--yes"]).expect(0);
    let said = project.run(&["state", "push", "--force", "state.json"]).expect(0).said();
    assert!(said.contains("\\u{202e}\\u{9b}2J"), "{said:?}");
    assert!(!said.contains(['\u{202e}', '\u{9b}']), "{said:?}");
}

#[test]
fn what_a_push_replaces_is_the_newest_backup() {
    let project = applied(&[1, 2]);
    let pulled = project.run(&["state", "pull"]).expect(0);
    let serial = pulled.json()["serial"].as_u64().expect("a number");
    project.write("state.json", &pulled.stdout);
    project.run(&["state", "push", "state.json"]).expect(0);
    let history = project.run(&["state", "history", "--json"]).expect(0).json();
    let serials = history["serials"].as_array().expect("a list");
    assert_eq!(serials.last(), Some(&serial.into()), "{history}");
    let again = project.run(&["state", "pull", "--serial", &serial.to_string()]).expect(0);
    assert_eq!(again.stdout, pulled.stdout);
    project.write(".plumb/state.json", "garbage");
    let said = project.run(&["plan"]).expect(8).said();
    let help = format!("`plumb state push --force .plumb/backups/{serial}.json`");
    assert!(said.contains(&help), "{said}");
}

/// If the journal is lost, the advice is to push the state file itself, because it is newer than all backups.
#[test]
fn a_state_goes_on_without_its_journal() {
    let project = applied(&[1, 2]);
    let whole = project.run(&["state", "list"]).expect(0).stdout;
    for damaged in [true, false] {
        if damaged {
            let text = "garbage, and longer than what a crash might have torn off it";
            project.write(".plumb/journal", text);
        } else {
            std::fs::remove_file(project.path(".plumb/journal")).unwrap();
        }
        let said = project.run(&["plan"]).expect(8).said();
        assert!(said.contains("`plumb state push --force .plumb/state.json`"), "{said}");
        project.run(&["state", "push", "--force", ".plumb/state.json"]).expect(0);
        assert_eq!(project.run(&["state", "list"]).expect(0).stdout, whole);
        assert!(project.run(&["plan"]).expect(0).stdout.starts_with("No changes."));
    }
}

#[test]
fn history_is_data() {
    let project = applied(&[1, 2]);
    let text = project.run(&["state", "history"]).expect(0);
    assert!(text.stdout.contains("older states are kept: serial 0"), "{}", text.said());
    let history = project.run(&["state", "history", "--json"]).expect(0).json();
    assert!(history["runs"].is_array(), "{history}");
    assert_eq!(history["serials"][0], 0, "{history}");
}

#[test]
fn a_state_whose_numbers_end_is_refused() {
    let project = applied(&[1]);
    let pulled = project.run(&["state", "pull"]).expect(0).json();
    let before = project.written();
    for name in ["serial", "next_call"] {
        for number in [u64::MAX, i64::MAX as u64] {
            let mut edited = pulled.clone();
            edited[name] = number.into();
            project.write("state.json", edited.to_string());
            let said = project.run(&["state", "push", "--force", "state.json"]).expect(1).said();
            assert!(said.contains("is no state") && said.contains("too high"), "{said}");
        }
    }
    assert!(project.written() == before, "something was written");
}

#[test]
fn a_plan_file_is_its_owners_only_whatever_was_left_there() {
    let project = Project::new(SPEC);
    let mode = || {
        let metadata = std::fs::symlink_metadata(project.path("plan.json")).expect("a plan file");
        assert!(metadata.is_file());
        metadata.permissions().mode() & 0o777
    };
    project.write(".plan.json.unfinished", "left over");
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(project.path(".plan.json.unfinished"), readable).expect("a mode");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    assert_eq!(mode(), 0o600);
    project.write("other.txt", "of somebody");
    std::os::unix::fs::symlink("other.txt", project.path(".plan.json.unfinished")).expect("a link");
    project.run(&["plan", "--out", "plan.json"]).expect(0);
    assert_eq!(mode(), 0o600);
    let other = std::fs::read_to_string(project.path("other.txt")).expect("it is there");
    assert_eq!(other, "of somebody");
}

#[test]
fn an_address_that_is_named_twice_is_forgotten_once() {
    let project = applied(&[1]);
    let said = project.run(&["state", "rm", "value.v", "value.v"]).expect(0).said();
    assert_eq!(said.matches("forgot value.v").count(), 1, "{said}");
}
