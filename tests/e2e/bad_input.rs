//! Bad input: each mistake gets a clear error; nothing is lost or called, and no command panics or hangs.

use std::time::{Duration, Instant};

use crate::harness::{Project, Ran, Service, data, ran};
use crate::lifecycle::SPEC;

fn refused(project: &Project, arguments: &[&str], code: i32, words: &[&str]) -> Ran {
    let begin = Instant::now();
    let ran = project.run(arguments).expect(code);
    assert!(begin.elapsed() < Duration::from_secs(20), "{arguments:?} took {:?}", begin.elapsed());
    let said = ran.said();
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in\n{said}");
    }
    ran
}

#[test]
fn arguments_that_act_on_a_terminal_are_shown_as_what_they_are() {
    let project = Project::new("");
    let evil = "d\u{1b}[31m\u{202e}\u{9b}m\n::set-output name=a::b\n##[error]x";
    for arguments in [&["plan", evil, evil][..], &["plan", "--color", evil], &["init", evil]] {
        let said = project.run(arguments).said();
        let acts = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!said.is_empty() && !said.contains(acts), "{said:?}");
        assert!(said.lines().all(|line| !line.trim_start().starts_with("::")), "{said}");
        assert!(!said.contains("##["), "{said}");
    }
}

#[test]
fn a_folder_with_nothing_in_it_is_told() {
    let project = Project::new("");
    std::fs::remove_file(project.path("plumb.toml")).unwrap();
    let commands: [&[&str]; 5] =
        [&["output"], &["state", "list"], &["show"], &["destroy"], &["destroy", "--yes"]];
    for arguments in commands {
        let words =
            ["error: there is neither a spec nor a state in ", "`plumb init` writes a small spec"];
        refused(&project, arguments, 1, &words);
    }
}

#[test]
fn the_first_mistakes_of_a_terraform_user() {
    let project = Project::new("");
    let said = |spec: &str, code| {
        project.write("plumb.toml", spec);
        project.run(&["validate"]).expect(code).said()
    };
    let reference = said("[resource.value.a]\ninput = template.worker.id\n", 1);
    assert!(reference.contains("error: a reference without quotes"), "{reference}");
    let help = "help: a reference stands in `${…}` and in quotes: \"${template.worker.id}\"";
    assert!(reference.contains(help), "{reference}");
    let hcl = said("resource \"value\" \"a\" {\n  input = 1\n}\n", 1);
    assert!(hcl.contains("error: this is HCL, and a spec is TOML"), "{hcl}");
    let attribute = said("[resource.endpoint.a]\nname = \"a\"\nimage = \"x\"\ngpus = []\n", 1);
    assert!(attribute.contains("did you mean `gpu_ids`?"), "{attribute}");
    let address =
        said("[resource.value.a]\ninput = \"value.b\"\n[resource.value.b]\ninput = 1\n", 0);
    assert!(
        address.contains("warning: value.a: a text that is the address of something in this spec"),
        "{address}"
    );
    assert!(
        address.contains("help: if it is meant as a reference, write \"${value.b}\""),
        "{address}"
    );
}

#[test]
fn variables_of_a_folder() {
    let project = Project::new(
        "[plumb]\nrequired_version = \">=0.1\"\n[variable.size]\ntype = \"integer\"\n\
         [[variable.size.validation]]\ncondition = \"var.size > 9\"\nmessage = \"At least ten.\"\n\
         [resource.value.a]\ninput = \"${var.size}\"\n",
    );
    // The same holds without a value.
    let ran = project.run(&["validate"]).expect(0);
    assert!(ran.said().contains("note: a variable has no value: `size`"), "{}", ran.said());
    refused(&project, &["plan"], 1, &["error: a variable has no value"]);
    project.write("a.auto.vars.toml", "size = 3\n");
    let words = ["error: a value that is not valid", "`size` is 3", "help: At least ten."];
    refused(&project, &["plan"], 1, &words);
    project.write("b.auto.vars.json", "{\"size\": 10}");
    project.run(&["plan"]).expect(0);
    refused(&project, &["plan", "--var", "size=4"], 1, &["`size` is 4"]);
    // A mistake in a file names the file, once.
    project.write("c.vars.toml", "size = true\nsiz = 1\nother = 1\n");
    let ran = project.run(&["plan", "--var-file", "c.vars.toml"]).expect(1);
    for words in [
        "The value is from c.vars.toml.",
        "The spec declares no variable `siz`, which c.vars.toml gives a value.",
        "The spec declares no variable `other`, which c.vars.toml gives a value.",
    ] {
        assert_eq!(ran.said().matches(words).count(), 1, "{words}: {}", ran.said());
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused_and_not_taken_as_unset() {
    use std::os::unix::ffi::OsStringExt as _;
    let spec = "[variable.v]\ntype = \"string\"\ndefault = \"dev\"\n\n\
                [resource.value.x]\ninput = \"${var.v}\"\n";
    let project = Project::new(spec);
    let garbled = || std::ffi::OsString::from_vec(b"canary-prod\xff".to_vec());
    let refused = |name: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        let output = command.env(name, garbled()).output().unwrap();
        let refused = ran(&output).expect(1);
        let said = refused.said();
        assert!(said.contains(&format!("the variable {name} is not UTF-8 text")), "{said}");
        assert!(!said.contains("canary"), "{said}");
    };
    refused("PLUMB_VAR_V", &["plan"]);
    refused("PLUMB_VAR_v", &["validate"]);
    refused("PLUMB_SERVERLESS_QUEUE_URL", &["job", "health", "jpnw0v75y3qoql"]);
    project.write(
        "plumb.toml",
        "[resource.network_volume.v]\nname = \"v\"\nsize = 1\ndata_center_id = \"EU-RO-1\"\n",
    );
    refused("PLUMB_SERVERLESS_REST_URL", &["plan"]);
    refused("PLUMB_SERVERLESS_API_KEY", &["plan"]);
    assert!(!project.path(".plumb/service").exists(), "no other service is asked instead");
}

#[test]
fn specs_that_are_none() {
    for (text, word) in [
        (b"not = = toml".to_vec(), "plumb.toml"),
        (b"\xff\xfe\x00".to_vec(), "UTF-8"),
        (vec![b'#'; 33 * 1024 * 1024], "32 MiB"),
        (format!("a = {}1{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(), "nest"),
        (
            format!("[resource.value.a]\ninput = \"${{{}}}\"\n", "1+".repeat(40_000) + "1")
                .into_bytes(),
            "long",
        ),
        (
            format!(
                "[resource.value.a]\ninput = \"${{{}1{}}}\"\n",
                "(".repeat(10_000),
                ")".repeat(10_000)
            )
            .into_bytes(),
            "deep",
        ),
    ] {
        let project = Project::new("");
        project.write("plumb.toml", &text);
        for command in [&["validate"][..], &["plan"], &["apply", "-y"]] {
            let ran = project.run(command).expect(1);
            assert!(!ran.said().contains("panicked"), "{}", ran.said());
            assert!(
                ran.said().to_lowercase().contains(&word.to_lowercase()),
                "`{word}` is not in\n{}",
                ran.said().chars().take(2000).collect::<String>()
            );
        }
        assert!(!project.path(".plumb/state.json").exists(), "nothing was written for {word}");
    }
}

#[test]
fn json_says_what_is_wrong_too() {
    let project = Project::new("[resource.value.a]\ninpt = 1\n");
    let report = project.run(&["validate", "--json"]).expect(1).json();
    let found = &report["diagnostics"][0];
    assert_eq!(found["summary"], "unknown attribute", "{report}");
    assert!(found["detail"].as_str().is_some_and(|text| text.contains("`inpt`")), "{report}");
    let plan = project.run(&["plan", "--json", "--nonsense"]).expect(1).json();
    assert_eq!(plan["diagnostics"][0]["summary"], "unexpected argument '--nonsense' found");
}

#[test]
fn json_is_printed_on_every_exit() {
    let commands: [(&[&str], &str); 6] = [
        (&["plan", "--json"], "/diagnostics"),
        (&["apply", "--yes", "--json"], "/plan/diagnostics"),
        (&["destroy", "--yes", "--json"], "/plan/diagnostics"),
        (&["drift", "--json"], "/diagnostics"),
        (&["check", "--json"], "/diagnostics"),
        (&["validate", "--json"], "/diagnostics"),
    ];
    let says = |project: &Project, extra: &[&str], code: i32, word: &str| {
        for (command, place) in commands {
            if code == 8 && command[0] == "validate" {
                continue;
            }
            let ran = project.run(&[command, extra].concat()).expect(code);
            let json = ran.json();
            let why = json.pointer(place).unwrap_or_else(|| panic!("{command:?}: {json}"));
            assert!(why[0].to_string().contains(word), "{command:?}: {json}");
        }
    };
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    project.run(&["apply", "-y"]).expect(0);
    says(&project, &["--nonsense"], 1, "--nonsense");
    says(&project, &["--var-file", "none.toml"], 1, "none.toml");
    says(&project, &["nowhere"], 1, "nowhere");
    let unasked = project.run(&["apply", "--json"]).expect(1).json();
    assert_eq!(
        (&unasked["event"], &unasked["plan"]["complete"]),
        (&"planned".into(), &false.into())
    );
    project.write(".plumb/state.json", "garbage");
    says(&project, &[], 8, "state.json");
    let project = Project::new("[resource.value.a]\ninpt = 1\n");
    says(&project, &[], 1, "unknown attribute");
}

#[test]
fn every_mistake_in_one_go() {
    let spec = r#"
[resource.network_volume.a]
name = "a"
sice = 100
data_center_id = "EU-RO-2"

[resource.endpoint.b]
name = "b"
template_id = "${template.nope.id}"
gpu_ids = "ADA_25"
workers_min = "many"
workers_max = 3
"#;
    let project = Project::new(spec);
    let ran = refused(
        &project,
        &["validate"],
        1,
        &["sice", "size", "EU-RO-2", "nope", "ADA_25", "ADA_24", "workers_min", "plumb.toml:4"],
    );
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
}

#[test]
fn a_cycle_names_all_its_members() {
    let project = Project::new(
        "[resource.value.a]\ninput = \"${value.b.id}\"\n[resource.value.b]\ninput = \"${value.c.id}\"\n\
         [resource.value.c]\ninput = \"${value.a.id}\"\n",
    );
    refused(&project, &["validate"], 1, &["value.a", "value.b", "value.c", "cycle"]);
}

#[test]
fn states_that_are_none() {
    let spec = "[resource.value.a]\ninput = 1\n";
    for (damage, word) in [
        (Damage::Empty, "state"),
        (Damage::Half, "state"),
        (Damage::Missing, "state"),
        (Damage::Newer, "version"),
        (Damage::Foreign, "state"),
    ] {
        let project = Project::new(spec);
        project.run(&["apply", "-y"]).expect(0);
        damage.inflict(&project);
        for command in [&["plan"][..], &["apply", "-y"], &["state", "list"]] {
            refused(&project, command, 8, &[word]);
        }
    }
}

#[derive(Clone, Copy)]
enum Damage {
    Empty,
    Half,
    Missing,
    Newer,
    Foreign,
}

impl Damage {
    fn inflict(self, project: &Project) {
        let path = project.path(".plumb/state.json");
        let text = std::fs::read_to_string(&path).unwrap();
        match self {
            Self::Empty => std::fs::write(path, "").unwrap(),
            Self::Half => std::fs::write(path, &text[..text.len() / 2]).unwrap(),
            Self::Missing => std::fs::remove_file(path).unwrap(),
            Self::Newer => {
                let newer = text.replacen("\"format\":1", "\"format\":99", 1);
                assert_ne!(newer, text, "the format stands in the state");
                std::fs::write(path, newer).unwrap();
            }
            Self::Foreign => {
                std::fs::write(path, "{\"version\": 4, \"terraform_version\": \"1.9\"}").unwrap();
            }
        }
    }
}

#[test]
fn keys_and_addresses_that_do_not_work() {
    let folder = data();
    let service = Service::start(folder.path(), &[]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_SERVERLESS_API_KEY", "wrong-key-9d2");
    let ran = refused(&project, &["plan"], 1, &["key"]);
    assert!(!ran.said().contains("wrong-key-9d2"), "{}", ran.said());
    project.set("PLUMB_SERVERLESS_API_KEY", "");
    refused(&project, &["plan"], 1, &["PLUMB_SERVERLESS_API_KEY"]);
    let mut project = Project::with(SPEC, &service);
    project.set("PLUMB_SERVERLESS_REST_URL", "http://127.0.0.1:1/v1");
    refused(&project, &["plan"], 1, &["127.0.0.1:1"]);
    for page in [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\nConnection: close\r\n\r\n<html>hi</html>",
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ] {
        let address = answering(page);
        let mut project = Project::with(SPEC, &service);
        project.set("PLUMB_SERVERLESS_REST_URL", &format!("http://{address}/v1"));
        refused(&project, &["plan"], 1, &[]);
    }
    assert!(service.mutations().is_empty());
}

/// Starts a server that gives the same answer to all requests.
fn answering(page: &'static str) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let mut socket = socket;
            let mut buffer = [0; 4096];
            let _read = socket.read(&mut buffer);
            let _written = socket.write_all(page.as_bytes());
        }
    });
    address
}

#[test]
fn a_bad_flag_is_exit_1_on_every_command() {
    let project = Project::new("");
    for command in [
        "init",
        "validate",
        "plan",
        "apply",
        "destroy",
        "drift",
        "show",
        "output",
        "resolve",
        "unlock",
        "serve",
        "schema",
        "completions",
        "version",
    ] {
        let ran = project.run(&[command, "--no-such-flag"]).expect(1);
        assert!(ran.stderr.contains("--no-such-flag"), "{command}: {}", ran.said());
        let help = project.run(&[command, "--help"]).expect(0);
        assert!(help.stdout.contains("Examples"), "{command} --help has no examples");
    }
    for command in ["list", "show", "mv", "rm", "pull", "push"] {
        project.run(&["state", command, "--no-such-flag"]).expect(1);
    }
    let ran = project.run(&["aply"]).expect(1);
    assert!(ran.stderr.contains("apply"), "{}", ran.said());
}

#[test]
fn options_that_name_no_instance_are_mistakes() {
    let project =
        Project::new("[resource.value.a]\nfor_each = [\"x\", \"y\"]\ninput = \"${each.key}\"\n");
    let missing = |option: &str, address: &str| {
        refused(&project, &["plan", option, address], 1, &[option, "which does not exist"])
    };
    missing("--target", "value.a[z]");
    missing("--exclude", "value.a[z]");
    missing("--replace", "value.a[z]");
    let typo = missing("--target", "valeu.a");
    assert!(typo.said().contains("did you mean `value.a`?"), "{}", typo.said());
    let block = missing("--replace", "value.a");
    assert!(block.said().contains("its instances"), "{}", block.said());
    project.run(&["plan", "--target", "value.a[x]", "--replace", "value.a[y]"]).expect(0);
    refused(&project, &["plan", "--destroy", "--replace", "value.a[x]"], 1, &["--replace"]);
    refused(&project, &["plan", "--refresh-only", "--replace", "value.a[x]"], 1, &["--replace"]);
}

/// A backup that could not be written completely must not look complete.
#[test]
fn data_that_cannot_be_written_is_a_failure() {
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    project.run(&["apply", "-y"]).expect(0);
    for arguments in [&["state", "pull"][..], &["plan", "--json"], &["show", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
        let ran = project.command(arguments).stdout(full).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to stdout"), "{said}");
    }
}

#[test]
fn a_plan_file_that_is_not_there_is_called_one() {
    let project = Project::new("[resource.value.a]\ninput = 1\n");
    refused(&project, &["apply", "plan.json"], 1, &["no folder or plan file", "--out FILE"]);
}

/// A value with the greatest depth that a plan allows can be written to a state and a plan file, and read
/// back.
#[test]
fn a_value_as_deep_as_may_be_is_kept() {
    let spec = |levels: usize| {
        let local = |n: usize| format!("l{n} = [\"${{local.l{}}}\"]\n", n - 1);
        let locals: String = (1..levels).map(local).collect();
        format!(
            "[local]\nl0 = [1]\n{locals}[resource.value.a]\ninput = \"${{local.l{}}}\"\n",
            levels - 1
        )
    };
    let project = Project::new(&spec(100));
    project.run(&["apply", "-y"]).expect(0);
    project.run(&["plan", "--detailed-exitcode", "--out", "p"]).expect(0);
    project.run(&["apply", "p"]).expect(0);
    let project = Project::new(&spec(101));
    refused(&project, &["plan"], 1, &["nested more than 100 levels deep"]);
}
