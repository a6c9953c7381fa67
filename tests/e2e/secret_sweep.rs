//! The secret sweep: secrets in all possible places, every command, every kind of failure. Then all bytes
//! that were printed, written or sent are searched for the secrets, in every form that a secret may take.

use std::path::{Path, PathBuf};

use crate::harness::{Project, Ran, Service, data};
use crate::recording_proxy::{Mood, Recorder};

/// The key of the account. It has all kinds of characters that encodings change.
const KEY: &str = "canary+key/%&=7f3a9";
const STATE_KEY: &str = "canary passphrase \"41\" of the state";

/// Secrets, each with the variable that gives it.
const SECRETS: [(&str, &str); 5] = [
    ("password", "canary \"env\" é/+ 11a"),
    ("token", "canary-option&=22b"),
    ("blob", "canary\\file\n33c"),
    ("user", "canary-user:44d"),
    ("number", "742187346555"),
];

const SPEC: &str = r#"
[variable.password]
type = "string"
sensitive = true

[variable.token]
type = "string"
sensitive = true

[variable.blob]
type = "string"
sensitive = true

[variable.user]
type = "string"
sensitive = true

[variable.number]
type = "integer"
sensitive = true

[variable.image]
type = "string"
default = "registry.example/worker:1"

[local]
both = "${var.user}/${var.token}"

[resource.registry_auth.registry]
name = "registry"
username = "${var.user}"
password = "${var.password}"

[resource.template.worker]
name = "worker"
image_name = "${var.image}"
is_serverless = true
env = { PASSWORD = "${var.password}", BOTH = "${local.both}", PLAIN = "seen", JSON = '${jsonencode({ blob = var.blob, n = var.number })}' }

[resource.network_volume.models]
name = "models"
size = 100
data_center_id = "EU-RO-1"

[resource.endpoint.chat]
name = "chat"
template_id = "${template.worker.id}"
network_volume_id = "${network_volume.models.id}"
gpu_ids = "ADA_24"
workers_min = 0
workers_max = 1

[resource.value.holder]
input = { token = "${var.token}", list = ["${var.number}"], id = "${endpoint.chat.id}" }

[output.token]
value = "${value.holder.output.token}"
sensitive = true
"#;

/// Returns every form in which a secret may appear.
fn forms(secret: &str) -> Vec<String> {
    let json = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let percent = |upper: bool, space: &str| -> String {
        let each = secret.bytes().map(|byte| match byte {
            b' ' => space.to_owned(),
            _ if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                char::from(byte).to_string()
            }
            _ if upper => format!("%{byte:02X}"),
            _ => format!("%{byte:02x}"),
        });
        each.collect()
    };
    let digits = |before: &str, byte: u8| {
        let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or_default();
        [before.to_owned(), digit(byte >> 4).to_string(), digit(byte & 15).to_string()].concat()
    };
    let hex = secret.bytes().map(|byte| digits("", byte)).collect::<Vec<_>>().concat();
    let all_percent = secret.bytes().map(|byte| digits("%", byte)).collect::<Vec<_>>().concat();
    let mut forms = vec![
        secret.to_owned(),
        json(secret),
        json(&json(secret)),
        format!("{secret:?}").trim_matches('"').to_owned(),
        percent(true, "%20"),
        percent(false, "%20"),
        percent(true, "+"),
        all_percent.to_uppercase(),
        all_percent,
        hex.to_uppercase(),
        hex,
    ];
    for skipped in 0..3 {
        forms.extend(base64(&secret.as_bytes()[skipped..]));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// Returns the base64 forms in both alphabets, without the end that depends on the bytes after it.
fn base64(bytes: &[u8]) -> [String; 2] {
    let text = |alphabet: &[u8; 64]| -> String {
        let whole = bytes.chunks_exact(3).flat_map(|three| {
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            [18, 12, 6, 0].map(|shift| char::from(alphabet[(bits >> shift) as usize & 63]))
        });
        whole.collect()
    };
    [
        text(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
        text(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
    ]
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains(&*String::from_utf8_lossy(part))
}

fn all_secrets() -> Vec<&'static str> {
    SECRETS.iter().map(|(_, secret)| *secret).chain([KEY, STATE_KEY]).collect()
}

/// Expects that these bytes have none of the secrets.
#[track_caller]
fn hidden(what: &str, bytes: &[u8], secrets: &[&str]) {
    // Secrets are text, so the bytes between texts do not matter.
    let text = String::from_utf8_lossy(bytes);
    for secret in secrets {
        for form in forms(secret) {
            let shown = || text.chars().take(4_000).collect::<String>();
            assert!(!text.contains(&form), "{what} holds {secret:?} as {form}:\n{}", shown());
        }
    }
}

/// Expects that the log has only lines of Plumb: other crates would log headers and bodies.
#[track_caller]
fn only_own_targets(stderr: &str) {
    for line in stderr.lines() {
        let target = match serde_json::from_str::<serde_json::Value>(line) {
            Ok(line) => line["target"].as_str().map(str::to_owned),
            Err(_) => line
                .split_once(" TRACE ")
                .or_else(|| line.split_once(" DEBUG "))
                .map(|it| it.1.to_owned()),
        };
        assert!(target.is_none_or(|target| target.starts_with("plumb::")), "{line}");
    }
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A service behind a relay, and a project with secrets.
struct World {
    service: Service,
    recorder: Recorder,
    project: Project,
    data: tempfile::TempDir,
    scratch: tempfile::TempDir,
}

impl World {
    fn new(state_key: bool) -> Self {
        let (folder, scratch) = (data(), data());
        let service = Service::logged(&folder.path().join("service"), KEY);
        let recorder = Recorder::of(&service);
        let mut project = Project::new(SPEC);
        for (name, value) in &service.environment {
            project.set(name, &recorder.by_way(value));
        }
        for (name, secret) in SECRETS.iter().filter(|(name, _)| ["password", "user"].contains(name))
        {
            project.set(&format!("PLUMB_VAR_{name}"), secret);
        }
        let blob = serde_json::Value::from(SECRETS[2].1);
        std::fs::write(scratch.path().join("blob.toml"), format!("blob = {blob}\n")).unwrap();
        let temporary = scratch.path().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        project.set("TMPDIR", temporary.to_str().unwrap());
        project.set("HOME", temporary.to_str().unwrap());
        project.set("RUST_LOG", "trace");
        project.set("RUST_BACKTRACE", "full");
        // The log shows as much as it can.
        project.set("PLUMB_LOG", "trace");
        if state_key {
            project.set("PLUMB_STATE_KEY", STATE_KEY);
            project.set("PLUMB_LOG_FORMAT", "json");
        }
        Self { service, recorder, project, data: folder, scratch }
    }

    /// Runs a command with the variables that are given by options and by a file.
    fn run(&self, arguments: &[&str]) -> Ran {
        let file = self.scratch.path().join("blob.toml");
        let mut all = arguments.to_vec();
        let (token, number) =
            (format!("token={}", SECRETS[1].1), format!("number={}", SECRETS[4].1));
        let given = ["--var", &token, "--var", &number, "--var-file", file.to_str().unwrap()];
        let plans = ["validate", "plan", "apply", "destroy", "drift", "import", "check"];
        if plans.contains(&arguments[0]) {
            all.extend(given);
        }
        let ran = self.project.run(&all);
        hidden(&format!("what {arguments:?} printed"), ran.said().as_bytes(), &all_secrets());
        only_own_targets(&ran.stderr);
        ran
    }

    /// Searches all files, except for the place where the service stores its objects.
    #[track_caller]
    fn search_files(&self) {
        for path in files(self.project.path("").as_path()) {
            let bytes = std::fs::read(&path).unwrap();
            hidden(&path.display().to_string(), &bytes, &all_secrets());
        }
        assert_eq!(files(&self.scratch.path().join("tmp")), Vec::<PathBuf>::new());
        for path in files(self.data.path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(&path).unwrap();
            let own = name.starts_with("service.db") || name.starts_with("store");
            let secrets: Vec<&str> = match name.as_str() {
                // The objects are stored here; and these files have the key, for commands that use the
                // service.
                _ if own => vec![STATE_KEY],
                "serve.json" | "key" => all_secrets().into_iter().filter(|s| *s != KEY).collect(),
                _ => all_secrets(),
            };
            hidden(&path.display().to_string(), &bytes, &secrets);
        }
    }

    /// Searches all requests. A secret may be in the body of the request that it belongs to. The key may be
    /// in a header, or in the query of GraphQL, which requires it there.
    #[track_caller]
    fn search_requests(&self) {
        let requests = self.recorder.requests();
        assert!(!requests.is_empty(), "nothing was sent");
        for request in requests {
            let text = String::from_utf8_lossy(&request).into_owned();
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
            let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
            let what = format!("the request {line}");
            let but_key: Vec<&str> = all_secrets().into_iter().filter(|s| *s != KEY).collect();
            let graphql = line.starts_with("POST /graphql?api_key=");
            let in_line = if graphql { but_key.clone() } else { all_secrets() };
            hidden(&what, line.as_bytes(), &in_line);
            let kept: Vec<&str> =
                headers.lines().filter(|line| !line.starts_with("authorization: ")).collect();
            hidden(&what, kept.join("\n").as_bytes(), &all_secrets());
            hidden(&what, headers.as_bytes(), &but_key);
            let takes = ["/v1/templates", "/v1/containerregistryauth", "/graphql"];
            let belongs = takes.iter().any(|path| line.contains(path));
            let in_body = if belongs { vec![KEY, STATE_KEY] } else { all_secrets() };
            hidden(&what, body.as_bytes(), &in_body);
        }
    }
}

/// The commands that are run in every mood. Import and resolve name objects that exist and objects that do
/// not.
const COMMANDS: &[&[&str]] = &[
    &["validate"],
    &["validate", "--json"],
    &["plan", "-v", "-v"],
    &["plan", "--json"],
    &["plan", "--format", "markdown"],
    &["plan", "--steps", "--out", "plan.json"],
    &["show", "plan.json"],
    &["show", "plan.json", "--json"],
    &["show", "plan.json", "--format", "markdown"],
    &["apply", "-y", "--json"],
    &["apply", "-y", "-v"],
    &["apply", "plan.json", "-y"],
    &["show"],
    &["show", "--json"],
    &["output"],
    &["output", "--json"],
    &["output", "token"],
    &["output", "token", "--raw"],
    &["state", "list"],
    &["state", "show", "template.worker"],
    &["state", "show", "registry_auth.registry", "--json"],
    &["state", "history"],
    &["state", "journal"],
    &["state", "pull"],
    &["drift", "--json"],
    &["drift"],
    &["import", "network_volume.models", "nosuchid"],
    &["resolve"],
    &["resolve", "template.worker", "--absent"],
    &["unlock", "nobody"],
    &["check"],
    &["check", "--json"],
    &["job", "submit", "endpoint.chat", "{\"a\":1}"],
    &["job", "health", "endpoint.chat"],
    &["job", "status", "endpoint.chat", "nosuchjob"],
    &["job", "purge", "endpoint.chat", "--yes"],
    &["job", "logs", "endpoint.chat"],
    &["schema", "--type", "template"],
    &["completions", "bash"],
    &["version"],
];

/// Applies, makes all possible changes while the relay is in this mood, and searches.
fn in_mood(mood: &Mood, spare_reads: bool) {
    let world = World::new(false);
    world.run(&["apply", "-y"]).expect(0);
    world.project.write(
        "plumb.toml",
        SPEC.replace("size = 100", "size = 110").replace("PLAIN = \"seen\"", "PLAIN = \"new\""),
    );
    world.recorder.mood(mood.clone(), spare_reads);
    let failed = world.run(&["apply", "-y", "-v"]);
    // If the effect of a call happened and is found, the apply succeeds.
    let done = matches!(mood, Mood::Lose | Mood::Echo(200, ..));
    assert!(done || failed.code != Some(0), "{mood:?}: {}", failed.said());
    for command in COMMANDS {
        world.run(command);
    }
    world.search_files();
    world.search_requests();
    world.recorder.mood(Mood::Pass, false);
    world.run(&["apply", "-y"]).expect(0);
    world.run(&["plan", "--detailed-exitcode"]).expect(0);
    world.run(&["destroy", "-y"]).expect(0);
    world.search_files();
    world.search_requests();
}

#[test]
fn a_good_life_shows_no_secret() {
    for state_key in [false, true] {
        let world = World::new(state_key);
        for command in COMMANDS {
            let ran = world.run(command);
            world.search_files();
            // The plan of a first run is refused after another run, before any call to the API.
            if command.starts_with(&["apply"]) && ran.code != Some(3) {
                for logged in ["sending", "received", "request", "lock taken", "lock released"] {
                    assert!(ran.stderr.contains(logged), "no `{logged}` in {}", ran.stderr);
                }
            }
        }
        let templates = world.service.list("/templates?includeEndpointBoundTemplates=true");
        assert_eq!(templates[0]["env"]["PASSWORD"], SECRETS[0].1, "the template did get it");
        assert_eq!(templates[0]["env"]["BOTH"], "canary-user:44d/canary-option&=22b");
        world.run(&["plan", "--detailed-exitcode"]).expect(0);
        world.run(&["destroy", "-y"]).expect(0);
        world.search_files();
        world.search_requests();
        let log = std::fs::read_to_string(world.data.path().join("service.stderr")).unwrap();
        assert!(log.contains("POST /templates"), "the service was to say what it did: {log}");
    }
}

#[test]
fn a_refusal_that_repeats_everything_shows_no_secret() {
    in_mood(&Mood::Echo(400, "application/json", "{\"error\":{}}"), true);
    in_mood(&Mood::Echo(422, "text/html", "<html>{}</html>"), true);
}

#[test]
fn a_wrong_key_that_is_repeated_is_not_shown() {
    in_mood(&Mood::Echo(401, "application/json", "{\"message\":{}}"), false);
}

#[test]
fn a_failure_that_repeats_everything_shows_no_secret() {
    in_mood(&Mood::Echo(500, "application/json", "{\"errors\":[{\"message\":{}}]}"), true);
    in_mood(
        &Mood::Echo(200, "application/json", "{\"data\":null,\"errors\":[{\"message\":{}}]}"),
        true,
    );
}

#[test]
fn an_answer_that_is_none_shows_no_secret() {
    in_mood(&Mood::Echo(200, "text/plain", "canary {}"), true);
    in_mood(&Mood::Cut, true);
    in_mood(&Mood::Lose, true);
}

#[test]
fn a_redirect_takes_nothing_along() {
    let trap = Recorder::before("127.0.0.1:9".to_owned());
    in_mood(&Mood::Redirect(trap.address()), false);
    assert_eq!(trap.requests().len(), 0, "something was sent elsewhere");
}

/// Mistakes with secrets are found and reported, without showing the secret.
#[test]
fn mistakes_around_secrets_do_not_show_them() {
    let world = World::new(false);
    let add = |text: &str| world.project.write("plumb.toml", format!("{SPEC}\n{text}\n"));
    for (text, words) in [
        (
            "[resource.value.n]\ninput = \"x\"\n[resource.network_volume.n]\nname = \"${var.password}\"\nsize = \"${var.password}\"\ndata_center_id = \"EU-RO-1\"",
            "size",
        ),
        (
            "[resource.network_volume.n]\nname = \"n\"\nsize = 10\ndata_center_id = \"${var.token}\"",
            "data_center_id",
        ),
        (
            "[resource.network_volume.n]\nname = \"n\"\nsize = \"${var.number}\"\ndata_center_id = \"EU-RO-1\"",
            "size",
        ),
        ("[resource.value.n]\nfor_each = [\"${var.token}\"]\ninput = 1", "for_each"),
        ("[resource.value.n]\ninput = \"${var.password + 1}\"", "number"),
        ("[resource.value.n]\ninput = '${tonumber(var.password)}'", ""),
        ("[resource.value.n]\ninput = '${jsondecode(var.blob)}'", "jsondecode"),
        ("[output.open]\nvalue = \"${var.password}\"", "sensitive"),
    ] {
        add(text);
        for command in [&["validate"][..], &["validate", "--json"], &["plan"], &["plan", "--json"]]
        {
            let ran = world.run(command).expect(1);
            let json = command.contains(&"--json");
            assert!(json || ran.said().contains(words), "`{words}` is not in\n{}", ran.said());
        }
    }
    world.project.write("plumb.toml", SPEC);
    for wrong in [
        "nosuch=canary \"env\" é/+ 11a",
        "number=canary \"env\" é/+ 11a",
        "number = [canary-option&=22b",
    ] {
        let ran = world.project.run(&["plan", "--var", wrong]).expect(1);
        hidden(wrong, ran.said().as_bytes(), &all_secrets());
    }
    for text in
        ["password = canary-option&=22b", "number = \"canary-option&=22b\"", "x canary-option&=22b"]
    {
        let file = world.scratch.path().join("wrong.toml");
        std::fs::write(&file, text).unwrap();
        let ran = world.project.run(&["plan", "--var-file", file.to_str().unwrap()]).expect(1);
        hidden(text, ran.said().as_bytes(), &all_secrets());
    }
    world.search_files();
}

/// Keys and passwords in addresses, and keys that are not valid.
#[test]
fn addresses_and_keys_that_cannot_be_used_are_not_shown() {
    let mut world = World::new(false);
    let good = world.service.environment["PLUMB_SERVERLESS_REST_URL"].clone();
    for address in [
        good.replace("http://", "http://me:canary-option&=22b@"),
        format!("{good}?token=canary-option&=22b"),
        format!("{good}#canary-option&=22b"),
        "canary-option&=22b".to_owned(),
        "ftp://canary-option&=22b".to_owned(),
    ] {
        world.project.set("PLUMB_SERVERLESS_REST_URL", &address);
        for command in [
            &["plan"][..],
            &["plan", "--json"],
            &["apply", "-y"],
            &["validate"],
            &["job", "health", "abc123"],
        ] {
            assert_eq!(world.run(command).code, Some(1), "{address} {command:?}");
        }
    }
    let setting =
        "[provider.serverless]\nrest_url = \"http://me:canary-option&=22b@127.0.0.1:9/v1\"\n";
    world.project.set("PLUMB_SERVERLESS_REST_URL", "");
    world.project.write("plumb.toml", format!("{SPEC}\n{setting}"));
    world.run(&["plan"]).expect(1);
    world.project.set("PLUMB_SERVERLESS_REST_URL", &good);
    world.project.write("plumb.toml", SPEC);
    for key in ["canary-option&=22b\n", "canary-option&=22b é", "canary\toption&=22b"] {
        world.project.set("PLUMB_SERVERLESS_API_KEY", key);
        let ran = world.run(&["plan"]).expect(1);
        hidden(key, ran.said().as_bytes(), &[key.trim()]);
    }
    world.search_files();
}

/// A wrong or missing encryption key is reported, and no key is shown.
#[test]
fn keys_of_the_state_are_not_shown() {
    let mut world = World::new(true);
    world.run(&["apply", "-y"]).expect(0);
    world.run(&["plan", "--out", "plan.json"]).expect(0);
    let other = "another canary passphrase";
    world.project.set("PLUMB_STATE_KEY", other);
    for command in COMMANDS.iter().chain([&["destroy", "-y"][..]].iter()) {
        let ran = world.run(command);
        hidden(&format!("{command:?}"), ran.said().as_bytes(), &[other]);
    }
    for path in files(world.project.path("").as_path()) {
        hidden(&path.display().to_string(), &std::fs::read(&path).unwrap(), &[other]);
    }
    world.search_files();
    world.search_requests();
}

/// A secret that is written in the spec does not get into the state or a plan file.
#[test]
fn a_secret_in_the_text_of_a_spec_stays_there() {
    let mut world = World::new(false);
    let literal = "canary-literal-55e";
    let spec = |password: &str| {
        format!(
            "[resource.registry_auth.r]\nname = \"r\"\nusername = \"me\"\npassword = {password}\n"
        )
    };
    world.project.write("plumb.toml", spec(&format!("\"{literal}\"")));
    let search = |world: &World| {
        for path in files(world.project.path("").as_path()) {
            if path.file_name().is_none_or(|name| name != "plumb.toml") {
                hidden(&path.display().to_string(), &std::fs::read(&path).unwrap(), &[literal]);
            }
        }
    };
    for command in [&["plan", "--out", "plan.json"][..], &["plan", "--json", "--out", "plan.json"]]
    {
        let ran = world.project.run(command).expect(1);
        let place = "a secret in clear, `password` of registry_auth.r (plumb.toml:4)";
        assert!(ran.said().contains(place), "{}", ran.said());
        assert!(ran.said().contains("PLUMB_STATE_KEY"), "{}", ran.said());
        hidden("the refusal", ran.said().as_bytes(), &[literal]);
        assert!(!world.project.path("plan.json").exists());
        if command.contains(&"--json") {
            assert_eq!(ran.json()["diagnostics"][0]["severity"], "error");
        }
    }
    let said = world.project.run(&["apply", "-y", "--json"]).expect(0).said();
    hidden("the apply", said.as_bytes(), &[literal]);
    search(&world);
    // An unchanged value is not sent, but a plan file would hold it with the text of the spec.
    let also = "[resource.value.v]\ninput = \"x\"\n";
    world.project.write("plumb.toml", spec(&format!("\"{literal}\"")) + also);
    world.project.run(&["plan", "--out", "plan.json"]).expect(1);
    search(&world);
    // The same holds for values that use it, and each of them is named.
    let uses = "[resource.value.v]\ninput = \"${registry_auth.r.password}\"\n\
                [resource.registry_auth.s]\nname = \"s\"\nusername = \"me\"\npassword = \"swordfish\"\n";
    world.project.write("plumb.toml", spec(&format!("\"{literal}\"")) + uses);
    let said = world.project.run(&["plan", "--out", "other.json"]).expect(1).said();
    for place in ["registry_auth.r (plumb.toml:4)", "registry_auth.s (plumb.toml:10)"] {
        assert!(said.contains(&format!("`password` of {place}")), "{place}: {said}");
    }
    world.project.write("plumb.toml", spec(&format!("\"{literal}\"")));
    world.project.run(&["destroy", "-y"]).expect(0);
    world.project.set("PLUMB_STATE_KEY", STATE_KEY);
    world.project.run(&["plan", "--out", "plan.json"]).expect(0);
    search(&world);
    world.project.run(&["apply", "plan.json", "-y"]).expect(0);
    search(&world);
}

/// All of a sensitive output counts as secret. If it changes, a plan file would hold the values that are
/// written in it.
#[test]
fn an_output_with_something_beside_a_secret_is_not_saved() {
    let project = Project::new(
        "[variable.p]\ntype = \"string\"\nsensitive = true\n\
         [output.o]\nsensitive = true\nvalue = { user = \"admin\", p = \"${var.p}\" }\n",
    );
    let save = |password: &str| {
        project.run(&["plan", "--var", &format!("p={password}"), "--out", "plan.json"])
    };
    let said = save("hunter-two").expect(1).said();
    assert!(said.contains("`user` in the output `o` (plumb.toml:6)"), "{said}");
    assert!(said.contains("show what is none in an output of its own"), "{said}");
    project.run(&["apply", "-y", "--var", "p=hunter-two"]).expect(0);
    save("hunter-two").expect(1);
    let said = project.run(&["output"]).expect(0).said();
    assert!(said.contains("o = (sensitive)"), "{said}");
}

/// A literal secret next to a value that is known only after an apply is not shown: the expression is shown
/// without it.
#[test]
fn a_secret_beside_something_unknown_is_not_shown() {
    let world = World::new(false);
    let literal = "canary-literal-55e";
    let volume =
        "[resource.network_volume.v]\nname = \"v\"\nsize = 10\ndata_center_id = \"EU-RO-1\"\n";
    let auth = "[resource.registry_auth.r]\nname = \"r\"\nusername = \"me\"\n";
    let output = "[output.o]\nsensitive = true\nvalue";
    world.project.write("token.txt", literal);
    for (rest, shown) in [
        (format!("{auth}password = \"{literal}-${{network_volume.v.id}}\"\n"), "…${network"),
        (
            format!("{auth}password = '${{file(\"token.txt\")}}${{network_volume.v.id}}'\n"),
            "…${network",
        ),
        (format!("{output} = \"{literal}@${{network_volume.v.id}}\"\n"), "…${network"),
        (
            format!("{output} = {{ a = \"{literal}\", b = \"${{network_volume.v.id}}\" }}\n"),
            "network_volume.v.id",
        ),
    ] {
        world.project.write("plumb.toml", format!("{volume}{rest}"));
        for command in [
            &["plan"][..],
            &["plan", "--json"],
            &["plan", "--format", "markdown"],
            &["plan", "--format", "json"],
        ] {
            let said = world.project.run(command).expect(0).said();
            hidden(&format!("{command:?} of {rest}"), said.as_bytes(), &[literal]);
            assert!(said.contains(shown), "{command:?} of {rest}: {said}");
        }
        let ran = world.project.run(&["plan", "--out", "plan.json"]).expect(1);
        assert!(ran.said().contains("would hold a secret in clear"), "{rest}: {}", ran.said());
        hidden("the refusal", ran.said().as_bytes(), &[literal]);
        let said = world.project.run(&["apply", "-y", "--json"]).expect(0).said();
        hidden("the apply", said.as_bytes(), &[literal]);
        for path in files(world.project.path(".plumb").as_path()) {
            hidden(&path.display().to_string(), &std::fs::read(&path).unwrap(), &[literal]);
        }
        world.project.run(&["destroy", "-y"]).expect(0);
    }
}

/// A worker gets the environment of its template, and nothing from the environment of the process that
/// started the service.
#[test]
fn workers_do_not_inherit_secrets() {
    let scratch = data();
    let seen = scratch.path().join("seen");
    let command = serde_json::json!([
        "sh",
        "-c",
        format!("env > {0}.new; mv {0}.new {0}; sleep 60", seen.display())
    ]);
    let spec = format!(
        "[resource.template.spy]\nname = \"spy\"\nimage_name = \"i:1\"\nis_serverless = true\n\
         docker_start_cmd = {command}\nenv = {{ MINE = \"mine\" }}\n\
         [resource.endpoint.spy]\nname = \"spy-endpoint\"\ntemplate_id = \"${{template.spy.id}}\"\n\
         gpu_ids = \"ADA_24\"\nworkers_min = 1\nworkers_max = 1\n"
    );
    let mut project = Project::local(&spec);
    project.set("PLUMB_STATE_KEY", STATE_KEY);
    project.set("PLUMB_VAR_other", SECRETS[0].1);
    project.set("AWS_SECRET_ACCESS_KEY", SECRETS[1].1);
    project.run(&["apply", "-y"]).expect(0);
    // The service lives as long as a command needs it, so a command that waits gives the worker time to
    // start.
    let mut waiting = project.spawn(&["job", "run", "endpoint.spy", "{\"a\":1}"]);
    crate::harness::wait_for("the worker", || seen.exists());
    let serve = std::fs::read(project.path(".plumb/service/serve.json")).unwrap();
    let serve: serde_json::Value = serde_json::from_slice(&serve).unwrap();
    // The file exists only where the system shows environments.
    let of_service = std::fs::read(format!("/proc/{}/environ", serve["pid"])).unwrap_or_default();
    hidden("the environment of the service", &of_service, &all_secrets());
    drop(waiting.kill());
    drop(waiting.wait());
    let environment = std::fs::read(&seen).unwrap();
    assert!(holds(&environment, b"MINE=mine"));
    hidden("a worker's environment", &environment, &all_secrets());
}
