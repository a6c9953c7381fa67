//! Two runs at once: while one works, the other names it or waits for it. A lock ends with its holder.

use std::fmt::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Project, Service, data, wait_for};

/// Returns a spec of volumes that depend on one another, so that an apply makes one call at a time.
fn spec() -> String {
    let mut spec = String::new();
    for n in 0..8 {
        let after = match n {
            0 => String::new(),
            n => format!("depends_on = [\"network_volume.v{}\"]\n", n - 1),
        };
        write!(
            spec,
            "[resource.network_volume.v{n}]\nname = \"v{n}\"\nsize = 10\n\
             data_center_id = \"EU-RO-1\"\n{after}\n"
        )
        .unwrap();
    }
    spec
}

fn slow(data: &std::path::Path) -> Service {
    Service::start(data, &["--fault", "op=mutating,kind=latency:200"])
}

/// Starts an apply and waits until it makes calls.
fn begin(project: &Project, service: &Service) -> Child {
    let child = project.spawn(&["apply", "--yes"]);
    wait_for("the first call", || !service.mutations().is_empty());
    child
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .stderr(Stdio::null())
        .status()
        .expect("kill runs");
    assert!(status.success());
}

fn nothing_is_left_to_do(project: &Project, service: &Service) {
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
    let expected: Vec<String> = (0..8).map(|n| format!("v{n}")).collect();
    assert_eq!(service.names("/networkvolumes"), expected);
}

#[test]
fn the_second_says_who_is_at_it_and_a_plan_shows_what_runs() {
    let folder = data();
    let service = slow(folder.path());
    let project = Project::with(&spec(), &service);
    let mut first = begin(&project, &service);
    let second = project.run(&["apply", "--yes"]).expect(5).said();
    assert!(second.contains("`plumb apply` of "), "{second}");
    assert!(second.contains(&format!("process {}", first.id())), "{second}");
    assert!(second.contains(", since ") && second.contains(" on "), "{second}");
    let plan = project.run(&["plan", "--out", "plan.json"]).expect(0).said();
    assert!(plan.contains("is running now"), "{plan}");
    assert!(!plan.contains("the run ended"), "it has not:\n{plan}");
    assert!(!plan.contains("plumb resolve"), "what runs is not in doubt:\n{plan}");
    assert!(first.try_wait().expect("it is ours").is_none(), "the first run ended too soon");
    assert!(first.wait().expect("it ends").success());
    // The plan has nothing to do, or only what the other run has done. The apply makes no calls.
    let applied = project.run(&["apply", "plan.json", "--yes"]);
    assert!(matches!(applied.code, Some(0 | 3)), "{}", applied.said());
    nothing_is_left_to_do(&project, &service);
    assert_eq!(service.mutations().len(), 16, "each was made once, and named once");
}

#[test]
fn the_second_waits_as_long_as_it_is_told_and_has_nothing_to_do() {
    let folder = data();
    let service = slow(folder.path());
    let project = Project::with(&spec(), &service);
    let mut first = begin(&project, &service);
    let begun = Instant::now();
    let short = project.run(&["apply", "--yes", "--lock-timeout", "300ms"]);
    short.expect(5);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let second = project.run(&["apply", "--yes", "--lock-timeout", "30s"]).expect(0).said();
    assert!(second.contains("No changes"), "{second}");
    assert!(first.wait().expect("it ends").success());
    nothing_is_left_to_do(&project, &service);
    assert_eq!(service.mutations().len(), 16);
}

#[test]
fn a_killed_holders_lock_is_free_at_once() {
    let folder = data();
    let service = slow(folder.path());
    let project = Project::with(&spec(), &service);
    let mut first = begin(&project, &service);
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    project.run(&["apply", "--yes"]).expect(0);
    nothing_is_left_to_do(&project, &service);
}

#[test]
fn a_stopped_holder_keeps_the_lock_and_loses_nothing() {
    let folder = data();
    let service = slow(folder.path());
    let project = Project::with(&spec(), &service);
    let mut first = begin(&project, &service);
    signal(&first, "-STOP");
    let before = service.mutations().len();
    let second = project.run(&["apply", "--yes", "--lock-timeout", "1s"]).expect(5).said();
    assert!(second.contains(&format!("process {}", first.id())), "{second}");
    assert!(service.mutations().len() <= before + 1, "the second run called something");
    signal(&first, "-CONT");
    assert!(first.wait().expect("it ends").success());
    nothing_is_left_to_do(&project, &service);
    assert_eq!(service.mutations().len(), 16);
}

#[test]
fn what_another_run_takes_away_is_no_question_of_the_account() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:800"]);
    let keys: Vec<String> = (0..12).map(|i| format!("\"k{i:02}\"")).collect();
    let project = Project::with(
        &format!(
            "[resource.network_volume.v]\nfor_each = [{}]\nname = \"v-${{each.key}}\"\nsize = 10\n\
             data_center_id = \"EU-RO-1\"\n",
            keys.join(", ")
        ),
        &service,
    );
    project.run(&["apply", "--yes"]).expect(0);
    let mut child = project.spawn(&["destroy", "--yes"]);
    let mut looks = 0;
    while child.try_wait().unwrap().is_none() {
        for command in ["plan", "drift"] {
            let ran = project.run(&[command]);
            // If the service is as quick as the reads, the command gives up and names the run.
            assert!(matches!(ran.code, Some(0 | 2 | 5)), "{:?} {}", ran.code, ran.said());
            assert!(!ran.said().contains("right account"), "{}", ran.said());
            looks += 1;
        }
    }
    assert!(looks > 0, "the other run was over before anybody looked");
}

#[test]
fn what_another_run_is_at_is_a_change() {
    let folder = data();
    let service = slow(folder.path());
    let project = Project::with(&spec(), &service);
    let mut child = begin(&project, &service);
    project.run(&["plan", "--detailed-exitcode"]).expect(2);
    assert!(child.wait().unwrap().success());
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

#[test]
fn a_run_that_lost_its_state_says_how_far_it_came() {
    let folder = data();
    let service = Service::start(folder.path(), &["--fault", "op=mutating,kind=latency:300"]);
    let project = Project::with(&spec(), &service);
    let out = |name: &str| std::fs::File::create(project.path(name)).unwrap();
    let mut command = project.command(&["apply", "--yes", "--json"]);
    let mut child = command.stdout(out("stdout.txt")).stderr(out("stderr.txt")).spawn().unwrap();
    crate::harness::wait_for("a call", || !service.mutations().is_empty());
    std::fs::rename(project.path(".plumb"), project.path("away")).unwrap();
    let code = child.wait().unwrap().code();
    let read = |name: &str| std::fs::read_to_string(project.path(name)).unwrap();
    let (told, said) = (read("stdout.txt"), read("stderr.txt"));
    assert_eq!(code, Some(6), "{said}");
    assert!(!said.contains("another run took over"), "{said}");
    let last: Vec<&str> = told.lines().rev().take(2).collect();
    assert!(last[0].contains("\"outputs\"") && last[1].contains("\"run_finished\""), "{told}");
    assert!(!last[1].contains("\"in_doubt\":0"), "{told}");
    assert!(told.contains("\"step_doubted\""), "{told}");
    std::fs::rename(project.path("away"), project.path(".plumb")).unwrap();
    project.run(&["apply", "--yes"]).expect(0);
    nothing_is_left_to_do(&project, &service);
}

/// The plan reads the state before a run, and the live objects after it.
#[test]
fn what_a_run_does_while_a_plan_is_made_is_no_change_from_outside() {
    let folder = data();
    let slow_lists = ["--fault", "op=GET /networkvolumes,kind=latency:1500"];
    let service = Service::start(folder.path(), &slow_lists);
    let project = Project::with(
        "[variable.n]\ntype = \"integer\"\ndefault = 1\n\
         [resource.network_volume.v]\nname = \"v${var.n}\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n",
        &service,
    );
    project.run(&["apply", "--yes"]).expect(0);
    let out = std::fs::File::create(project.path("said")).unwrap();
    let mut plan = project.command(&["plan", "--out", "plan.json", "--var", "n=2"]);
    let mut plan = plan.stdout(out).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    project.run(&["apply", "--yes", "--no-refresh", "--var", "n=3"]).expect(0);
    assert!(plan.try_wait().unwrap().is_none(), "the plan was made before the other run ended");
    assert!(plan.wait().unwrap().success());
    let said = std::fs::read_to_string(project.path("said")).unwrap();
    assert!(said.contains("\"v3\" → \"v2\"") && !said.contains("outside"), "{said}");
    project.run(&["apply", "plan.json", "--yes"]).expect(0);
    assert_eq!(service.names("/networkvolumes"), ["v2"]);
}
