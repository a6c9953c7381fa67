//! Requests to stop: a command that has begun nothing ends soon, whatever it does; calls that were begun are
//! finished.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::crashes::{expect_exactly, spec};
use crate::harness::{Project, Service, data, ran, wait_for};

/// Returns a spec whose plan is longer than a pipe can take.
fn long() -> String {
    let keys: Vec<String> = (0..3_000).map(|i| format!("\"k{i:05}\"")).collect();
    format!("[resource.value.v]\nfor_each = [{}]\ninput = \"${{each.key}}\"\n", keys.join(", "))
}

/// Returns a spec that takes a while to compute.
fn slow() -> String {
    let keys: Vec<String> = (0..30_000).map(|i| format!("\"k{i:05}\"")).collect();
    format!(
        "[resource.value.v]\nfor_each = [{}]\n\
         input = '${{length([for i in range(2000) : i * 2])}} ${{each.key}}'\n",
        keys.join(", ")
    )
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(sent.success());
}

/// Returns a command that gets SIGHUP, also if the tests themselves ignore that signal: a process inherits
/// ignored signals.
fn on_a_terminal(project: &Project, arguments: &[&str]) -> Command {
    let plain = project.command(arguments);
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP")
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(project.path(""))
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Returns the exit status of a process that must end soon.
fn ends(mut child: Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begin.elapsed() > Duration::from_secs(6) {
            child.kill().unwrap();
            panic!("it is still there");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_plan_that_is_being_computed_can_be_stopped() {
    let project = Project::new(&slow());
    for (command, name) in [("plan", "-INT"), ("apply", "-TERM"), ("drift", "-HUP")] {
        let arguments = if command == "apply" { vec![command, "--yes"] } else { vec![command] };
        let child = on_a_terminal(&project, &arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        signal(&child, name);
        assert_eq!(ends(child), Some(130), "{command}");
    }
    assert_eq!(project.run(&["state", "list"]).expect(0).stdout, "");
}

#[test]
fn a_plan_that_nobody_reads_can_be_stopped() {
    let project = Project::new(&long());
    for (arguments, name) in [(vec!["plan"], "-TERM"), (vec!["apply", "--yes"], "-INT")] {
        let child = project
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // By now the pipe is full, or the plan is still being made. The command must end in both cases.
        std::thread::sleep(Duration::from_millis(1_500));
        signal(&child, name);
        assert_eq!(ends(child), Some(130), "{arguments:?}");
    }
}

#[test]
fn a_lost_terminal_lets_what_runs_end() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:40"]);
    let project = Project::with(&spec(20), &service);
    let out = std::fs::File::create(project.path("stderr.txt")).unwrap();
    let child = on_a_terminal(&project, &["apply", "--yes"]).stderr(out).spawn().unwrap();
    wait_for("the first calls", || service.mutations().len() > 5);
    signal(&child, "-HUP");
    assert_eq!(ends(child), Some(130));
    let said = std::fs::read_to_string(project.path("stderr.txt")).unwrap();
    assert!(said.contains("remain"), "{said}");
    project.run(&["apply", "--yes"]).expect(0);
    expect_exactly(|it| service.names(it), 20, "after a hangup");
}

#[test]
fn who_is_to_outlive_the_terminal_does() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:40"]);
    let project = Project::with(&spec(10), &service);
    let plumb = env!("CARGO_BIN_EXE_plumb");
    let mut command = Command::new("nohup");
    command
        .args([plumb, "apply", "--yes"])
        .current_dir(project.path(""))
        .envs(&service.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    wait_for("the first calls", || service.mutations().len() > 5);
    signal(&child, "-HUP");
    assert_eq!(ends(child), Some(0));
    expect_exactly(|it| service.names(it), 10, "without a terminal");
}

#[test]
fn what_is_stopped_before_its_checks_was_applied() {
    let text = "x".repeat(300_000);
    let spec = format!(
        "[resource.value.v]\ninput = 1\n[output.long]\nvalue = \"{text}\"\n[check.c]\nassert = 'true'\n"
    );
    let project = Project::new(&spec);
    let mut child = project
        .command(&["apply", "--yes", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"run_finished\"") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended");
    }
    // Nobody reads the outputs: all objects are made, and the checks have not begun.
    signal(&child, "-INT");
    std::thread::sleep(Duration::from_millis(300));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"outputs\"") && !rest.contains("\"check\""));
    let ended = ran(&child.wait_with_output().unwrap()).expect(130);
    assert!(ended.stderr.contains("stopped before all checks were made"), "{}", ended.stderr);
    assert!(ended.stderr.contains("The apply itself is done"), "{}", ended.stderr);
}
