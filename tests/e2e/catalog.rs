//! The descriptors that come with Plumb, each against its real server. A test whose server is not installed says so.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Project;

pub(crate) const PASSWORD: &str = "canary-worker-password";

/// A server for a test, which ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // RabbitMQ is a tree of processes; all of them are in the process group of the first one.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _reaped = self.child.wait();
    }
}

/// Returns a port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Returns the first of these programs that is installed. If none is, says that the test is skipped.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn installed(what: &str, programs: &[&str]) -> Option<PathBuf> {
    let found = programs.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        let required = std::env::var("PLUMB_TEST_SERVERS_REQUIRED").unwrap_or_default();
        assert!(!required.split(' ').any(|word| word == what), "{what} is required, and not here");
        eprintln!("skipped: {what} is not installed");
    }
    found
}

pub(crate) fn start(mut command: Command, folder: tempfile::TempDir, url: String) -> Server {
    use std::os::unix::process::CommandExt as _;
    let log = std::fs::File::create(folder.path().join("output")).expect("a log");
    let child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("the server starts");
    Server { child, folder, url }
}

impl Server {
    /// Waits until the server answers.
    pub(crate) fn ready(self, arguments: &[&str], path: &str) -> Self {
        let deadline = Instant::now() + Duration::from_mins(2);
        while curl(&[arguments, &[&format!("{}{path}", self.url)]].concat()).is_none() {
            let log = std::fs::read_to_string(self.folder.path().join("output"));
            assert!(Instant::now() < deadline, "the server does not answer: {log:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
        self
    }
}

/// Returns the answer to another client than Plumb; `None` after a failure.
pub(crate) fn curl(arguments: &[&str]) -> Option<String> {
    let output = Command::new("curl").args(["-sf", "-m", "10"]).args(arguments).output();
    let output = output.expect("curl runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn example(name: &str) -> Project {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).join("plumb.toml");
    Project::new(&std::fs::read_to_string(path).expect("an example"))
}

pub(crate) fn spec(project: &Project) -> String {
    std::fs::read_to_string(project.path("plumb.toml")).expect("the spec")
}

/// Plans, and expects that nothing is left to do.
#[track_caller]
pub(crate) fn expect_no_change(project: &Project) {
    project.run(&["plan", "--detailed-exitcode"]).expect(0);
}

pub(crate) fn rabbitmq() -> Option<Server> {
    let program = installed("rabbitmq", &["/usr/lib/rabbitmq/bin/rabbitmq-server"])?;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (http, amqp, peers) = (free_port(), free_port(), free_port());
    std::fs::write(path("plugins"), "[rabbitmq_management].").expect("a file");
    let settings = format!(
        "listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http}\n"
    );
    std::fs::write(path("rabbitmq.conf"), settings).expect("a file");
    let mut command = Command::new(program);
    command
        .env("RABBITMQ_NODENAME", format!("plumb{http}@localhost"))
        .env("RABBITMQ_BASE", folder.path())
        .env("RABBITMQ_MNESIA_BASE", path("mnesia"))
        .env("RABBITMQ_LOG_BASE", path("log"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
        .env("RABBITMQ_CONFIG_FILE", path("rabbitmq"))
        .env("RABBITMQ_PID_FILE", path("pid"))
        .env("RABBITMQ_DIST_PORT", peers.to_string())
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("HOME", folder.path());
    let server = start(command, folder, format!("http://127.0.0.1:{http}/api"));
    Some(server.ready(&["-u", "guest:guest"], "/overview"))
}

/// Objects of all types are created, changed, imported, replaced and destroyed, with drift; after each step,
/// a plan is empty.
#[test]
fn rabbitmq_is_managed() {
    let Some(server) = rabbitmq() else { return };
    let mut project = example("rabbitmq");
    project.set("RABBITMQ_URL", &server.url);
    project.set("RABBITMQ_PASSWORD", "guest");
    project.set("PLUMB_VAR_WORKER_PASSWORD", PASSWORD);
    let ask = |method: &str, path: &str, body: &str| {
        let url = format!("{}{path}", server.url);
        let json = "content-type: application/json";
        let head = ["-u", "guest:guest", "-X", method, "-H", json, &url];
        let body: &[&str] = if body.is_empty() { &[] } else { &["-d", body] };
        curl(&[&head, body].concat()).unwrap_or_default()
    };
    let said = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(!said.contains(PASSWORD), "{said}");
    expect_no_change(&project);
    let login = format!("shop-worker:{PASSWORD}");
    assert!(ask("GET", "/bindings/shop", "").contains("order.#"));
    assert!(curl(&["-u", &login, &format!("{}/whoami", server.url)]).is_none(), "it has no tag");

    // The spec changes an object of each type that can be changed.
    let changed = spec(&project)
        .replace(
            "description = \"The shop\"",
            "description = \"The shop\"\ntags = [\"prod\", \"eu\"]",
        )
        .replace("name = \"shop-worker\"", "name = \"shop-worker\"\ntags = [\"management\"]")
        .replace("write = \"^events$\"", "write = \".*\"")
        .replace("max-length = 10000", "max-length = 20000, message-ttl = 60000");
    project.write("plumb.toml", &changed);
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    let who = curl(&["-u", &login, &format!("{}/whoami", server.url)]).expect("the user logs in");
    assert!(who.contains("shop-worker"), "an update of tags keeps the password: {who}");

    // Objects are changed outside, and an apply undoes that.
    ask("PUT", "/permissions/shop/shop-worker", r#"{"configure":".*","write":".*","read":".*"}"#);
    let drift = project.run(&["drift"]).expect(2).said();
    assert!(drift.contains("configure"), "{drift}");
    project.run(&["apply", "--yes"]).expect(0);
    assert!(ask("GET", "/permissions/shop/shop-worker", "").contains(r#""configure":"""#));

    // An object of the default virtual host, whose name is a slash, is taken over.
    ask("PUT", "/queues/%2F/mail", r#"{"durable":true}"#);
    let mail = format!("{changed}\n[resource.queue.mail]\nvhost = \"/\"\nname = \"mail\"\n");
    project.write("plumb.toml", &mail);
    project.run(&["import", "queue.mail", "/|mail"]).expect(0);
    expect_no_change(&project);

    // A replaced queue loses its messages, so the spec must allow the replace.
    let other =
        mail.replace("name = \"mail\"", "name = \"mail\"\narguments = { x-max-length = 5 }");
    project.write("plumb.toml", &other);
    project.run(&["apply", "--yes"]).expect(1);
    let allowed = other.replace(
        "x-max-length = 5 }",
        "x-max-length = 5 }\nlifecycle = { allow_data_loss = true }",
    );
    project.write("plumb.toml", &allowed);
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    assert!(ask("GET", "/queues/%2F/mail", "").contains("\"x-max-length\":5"));

    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(ask("GET", "/queues?columns=name", ""), "[]");
    assert!(!ask("GET", "/vhosts", "").contains("shop"));
    assert!(!ask("GET", "/users", "").contains("shop-worker"));
}

pub(crate) fn powerdns() -> Option<Server> {
    let program = installed("powerdns", &["/usr/sbin/pdns_server"])?;
    let schemas = [
        "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql",
        "/usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql",
    ];
    let schema = installed("powerdns", &schemas)?;
    let sqlite = installed("powerdns", &["/usr/bin/sqlite3"])?;
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("pdns.db");
    let script = std::fs::File::open(schema).expect("the schema");
    let made = Command::new(sqlite).arg(&database).stdin(script).status();
    assert!(made.expect("sqlite3 runs").success());
    let (http, dns) = (free_port(), free_port());
    let mut command = Command::new(program);
    command.args([
        format!("--config-dir={}", folder.path().display()),
        format!("--socket-dir={}", folder.path().display()),
        format!("--gsqlite3-database={}", database.display()),
        format!("--webserver-port={http}"),
        format!("--local-port={dns}"),
    ]);
    command.args([
        "--launch=gsqlite3",
        "--gsqlite3-dnssec=yes",
        "--api=yes",
        "--api-key=canary-dns-key",
        "--webserver=yes",
        "--webserver-address=127.0.0.1",
        "--local-address=127.0.0.1",
        "--daemon=no",
        "--guardian=no",
    ]);
    let url = format!("http://127.0.0.1:{http}/api/v1/servers/localhost");
    let server = start(command, folder, url);
    Some(server.ready(&["-H", "X-API-Key: canary-dns-key"], "/zones"))
}

/// Zones and the objects below them are created, changed, imported, replaced and destroyed, too.
#[test]
fn powerdns_is_managed() {
    let Some(server) = powerdns() else { return };
    let mut project = example("powerdns");
    project.set("POWERDNS_URL", &server.url);
    project.set("POWERDNS_KEY", "canary-dns-key");
    let ask = |method: &str, path: &str, body: &str| {
        let url = format!("{}{path}", server.url);
        let head = ["-H", "X-API-Key: canary-dns-key", "-X", method, &url];
        let body: &[&str] = if body.is_empty() { &[] } else { &["-d", body] };
        curl(&[&head, body].concat()).unwrap_or_default()
    };
    let said = project.run(&["apply", "--yes"]).expect(0).said();
    assert!(!said.contains("canary-dns-key"), "{said}");
    expect_no_change(&project);
    assert!(ask("GET", "/zones/shop.example.", "").contains("192.0.2.11"));

    let key = "\n[resource.cryptokey.main]\nzone = \"${zone.shop.name}\"\n";
    let changed = spec(&project)
        .replace("ttl = 300", "ttl = 600")
        .replace("\"192.0.2.11\"", "\"192.0.2.12\"")
        .replace("\"AUTO-NS\"", "\"AUTO-NS\", \"192.0.2.53\"")
        .replace("nameservers =", "account = \"shop\"\ndnssec = true\nnameservers =");
    project.write("plumb.toml", changed.clone() + key);
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    let zone = ask("GET", "/zones/shop.example.", "");
    assert!(zone.contains("192.0.2.12") && !zone.contains("192.0.2.11"), "{zone}");

    let body = r#"{"rrsets":[{"name":"www.shop.example.","type":"A","ttl":5,"changetype":"REPLACE","records":[{"content":"192.0.2.99"}]}]}"#;
    ask("PATCH", "/zones/shop.example.", body);
    let drift = project.run(&["drift"]).expect(2).said();
    assert!(drift.contains("192.0.2.99") && drift.contains("ttl"), "{drift}");
    project.run(&["apply", "--yes"]).expect(0);
    assert!(!ask("GET", "/zones/shop.example.", "").contains("192.0.2.99"));

    // The record set that the server made with the zone is taken over.
    let names = "\n[resource.record_set.names]\nzone = \"${zone.shop.name}\"\nname = \"shop.example.\"\ntype = \"NS\"\nrecords = [\"ns1.shop.example.\"]\n";
    project.write("plumb.toml", changed.clone() + key + names);
    project.run(&["import", "record_set.names", "shop.example.|shop.example.|NS"]).expect(0);
    expect_no_change(&project);

    let moved =
        changed.replace("name = \"www.${zone.shop.name}\"", "name = \"web.${zone.shop.name}\"");
    project.write("plumb.toml", moved + key);
    project.run(&["apply", "--yes"]).expect(0);
    expect_no_change(&project);
    let zone = ask("GET", "/zones/shop.example.", "");
    assert!(zone.contains("web.shop.example.") && !zone.contains("www.shop.example."), "{zone}");

    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(ask("GET", "/zones", ""), "[]");
}
