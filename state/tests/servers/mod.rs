//! Real servers for tests. Each is started for the test process, listens on loopback, and ends with the
//! process, however that ends. `.ci/servers` installs them; a test whose server is not installed reports that
//! it is skipped.
//!
//! The variable `PLUMB_TEST_SERVERS` names the folder that `.ci/servers` installed into; it is not needed for
//! the default folder.
#![allow(dead_code, reason = "each test binary uses some of it")]
#![allow(clippy::print_stderr, reason = "that a test was skipped is to be seen")]

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const PASSWORD: &str = "canary-password-5d1c";

/// A server that ends when this process does: its shell waits until its standard input is closed.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) dir: tempfile::TempDir,
}

impl Server {
    /// Runs a shell command with the variables `PORT` and `DIR`; the last line of the command is the server.
    fn start(script: &str, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("there is room for a folder");
        let port = free_port();
        let script = format!(
            "set -e\nserve() {{ {script}\n}}\nserve > \"$DIR/log\" 2>&1 < /dev/null &\nserver=$!\n\
             read -r end || true\nkill -QUIT $server 2> /dev/null || true\nsleep 0.2\n\
             kill -KILL $server 2> /dev/null || true\nwait"
        );
        let child = Command::new("bash")
            .args(["-c", &script])
            .env("PORT", port.to_string())
            .env("DIR", dir.path())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        Self { child, port, dir }
    }

    fn wait_until(self, is_ready: impl Fn(&Self) -> bool) -> Self {
        let until = Instant::now() + Duration::from_mins(1);
        while !is_ready(&self) {
            assert!(Instant::now() < until, "the server does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        self
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn listens(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    listener.local_addr().expect("it is bound").port()
}

/// Reports that a test is skipped. Fails if `PLUMB_TEST_SERVERS_REQUIRED` names the server; that variable has
/// the first words of the required servers' names, or `all`.
fn skipped<T>(what: &str) -> Option<T> {
    let required = std::env::var("PLUMB_TEST_SERVERS_REQUIRED").unwrap_or_default();
    assert!(
        !is_required(what, &required),
        "no {what} here, and PLUMB_TEST_SERVERS_REQUIRED is `{required}`"
    );
    eprintln!("skipped: no {what} here");
    None
}

fn is_required(what: &str, required: &str) -> bool {
    let name = what.split(' ').next().unwrap_or_default();
    required.split_whitespace().any(|word| word == "all" || word.eq_ignore_ascii_case(name))
}

#[test]
fn a_server_that_was_installed_is_required() {
    assert!(is_required("PostgreSQL", " postgresql moto"));
    assert!(is_required("moto (S3)", " postgresql moto"));
    assert!(is_required("s3rver (S3)", "all"));
    assert!(!is_required("s3rver (S3)", " postgresql moto"));
    assert!(!is_required("PgBouncer", ""));
}

/// Returns the path of a server that `.ci/servers` installed.
fn installed(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        std::env::var_os("PLUMB_TEST_SERVERS").map(PathBuf::from),
        Some(root.join("target/servers")),
        Some(root.join("../target/servers")),
    ];
    places.into_iter().flatten().map(|folder| folder.join(name)).find(|path| path.exists())
}

/// A database server with a user `plumb` and a password, with TLS.
pub(crate) struct Postgres {
    pub(crate) server: Server,
    bin: PathBuf,
}

impl Postgres {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts the server with additional lines in its configuration.
    pub(crate) fn start_with(lines: &str) -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
        let mut bins: Vec<PathBuf> = versions
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
            .filter(|bin| bin.join("initdb").exists())
            .collect();
        bins.sort();
        let Some(bin) = bins.pop() else { return skipped("PostgreSQL") };
        let script = r#"
            cd "$DIR"
            echo "$PASSWORD" > password
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE
            as=""
            if [ "$(id -u)" = 0 ]; then
                chown -R postgres "$DIR"
                as="setpriv --reuid=postgres --regid=postgres --init-groups"
            fi
            $as "$BIN/initdb" -D "$DIR/data" -U plumb -A scram-sha-256 --pwfile=password -E UTF8 --no-sync
            echo "$LINES_OF_CONFIG" >> data/postgresql.conf
            chmod 600 key.pem
            exec $as "$BIN/postgres" -D "$DIR/data" -p "$PORT" -c listen_addresses=127.0.0.1 \
                -c unix_socket_directories="$DIR" -c max_connections=60 \
                -c ssl=on -c ssl_cert_file="$DIR/cert.pem" -c ssl_key_file="$DIR/key.pem"
        "#;
        let shown = bin.to_str().expect("the path is text");
        let variables = [("BIN", shown), ("PASSWORD", PASSWORD), ("LINES_OF_CONFIG", lines)];
        let server = Server::start(script, &variables);
        let this = Self { server, bin };
        let until = Instant::now() + Duration::from_mins(1);
        while this.try_sql("postgres", "SELECT 1").is_none() {
            assert!(Instant::now() < until, "it does not start: {}", this.server.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(this)
    }

    /// Returns the address of a database, with the password in it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://plumb:{PASSWORD}@127.0.0.1:{}/{database}", self.server.port)
    }

    /// Makes a database and returns its address.
    pub(crate) fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// Runs a statement with `psql`, as a person would, and returns its output.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        self.try_sql(database, statement).expect("the statement is right")
    }

    pub(crate) fn try_sql(&self, database: &str, statement: &str) -> Option<String> {
        let output = Command::new(self.bin.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement])
            .arg(self.url(database))
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }
}

/// Starts a pooler in front of a database server.
pub(crate) fn pgbouncer(postgres: &Postgres, mode: &str) -> Option<Server> {
    let bins = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
    let Some(bin) = bins.into_iter().find(|bin| Path::new(bin).exists()) else {
        return skipped("PgBouncer");
    };
    let script = r#"
        cd "$DIR"
        echo "\"plumb\" \"$PASSWORD\"" > users
        cat > ini <<INI
[databases]
* = host=127.0.0.1 port=$BACK
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $PORT
auth_type = plain
auth_file = $DIR/users
pool_mode = $MODE
unix_socket_dir =
ignore_startup_parameters = extra_float_digits
INI
        as=""
        if [ "$(id -u)" = 0 ]; then
            chown -R postgres "$DIR"
            as="setpriv --reuid=postgres --regid=postgres --init-groups"
        fi
        exec $as "$BIN" ini
    "#;
    let back = postgres.server.port.to_string();
    let variables = [("BIN", bin), ("PASSWORD", PASSWORD), ("BACK", &back), ("MODE", mode)];
    Some(Server::start(script, &variables).wait_until(Server::listens))
}

/// Starts an S3 server that enforces conditional writes.
pub(crate) fn moto() -> Option<Server> {
    let Some(bin) = installed("python/bin/moto_server") else { return skipped("moto (S3)") };
    let bin = bin.to_string_lossy().into_owned();
    let server = Server::start(r#"exec "$BIN" -H 127.0.0.1 -p "$PORT""#, &[("BIN", &bin)]);
    Some(server.wait_until(Server::listens))
}

/// Starts an S3 server that accepts conditions and does not enforce them.
pub(crate) fn s3rver() -> Option<Server> {
    let Some(bin) = installed("node_modules/.bin/s3rver") else { return skipped("s3rver (S3)") };
    let bin = bin.to_string_lossy().into_owned();
    let script = r#"exec "$BIN" -d "$DIR" -a 127.0.0.1 -p "$PORT" --configure-bucket bucket"#;
    Some(Server::start(script, &[("BIN", &bin)]).wait_until(Server::listens))
}

/// A server with the XML API of Google Cloud Storage, in front of an S3 server that stores the objects and
/// enforces conditions.
pub(crate) struct Gcs {
    /// The server with the XML API.
    pub(crate) server: Server,
    _behind: Server,
}

/// Starts the server with one bucket, `bucket`; `options` are options of `gcs.py`.
pub(crate) fn gcs(options: &str) -> Option<Gcs> {
    let behind = moto()?;
    assert_eq!(http(behind.port, "PUT", "/bucket"), 200);
    let python = installed("python/bin/python")?.to_string_lossy().into_owned();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/").to_owned();
    let script = [script.clone() + "tests/servers/gcs.py", script + "state/tests/servers/gcs.py"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .expect("it stands beside this file");
    let back = behind.port.to_string();
    let variables = [("BIN", &*python), ("SCRIPT", &script), ("BACK", &back), ("OPTIONS", options)];
    let server = Server::start(r#"exec "$BIN" "$SCRIPT" "$PORT" "$BACK" $OPTIONS"#, &variables);
    Some(Gcs { server: server.wait_until(Server::listens), _behind: behind })
}

/// Starts a GCS server that accepts conditions and does not enforce them, with one bucket, `bucket`.
pub(crate) fn gcp_storage_emulator() -> Option<Server> {
    let Some(bin) = installed("python/bin/gcp-storage-emulator") else {
        return skipped("gcp-storage-emulator (GCS)");
    };
    let bin = bin.to_string_lossy().into_owned();
    let script = r#"cd "$DIR"
        exec "$BIN" start --host 127.0.0.1 --port "$PORT" --in-memory --default-bucket bucket"#;
    Some(Server::start(script, &[("BIN", &bin)]).wait_until(Server::listens))
}

/// Returns credentials in the form of GCS's own tools, for a server that asks for no token.
pub(crate) fn gcs_account(secret: &str) -> String {
    format!(
        r#"{{"private_key":"{secret}","private_key_id":"{secret}","client_email":"plumb","disable_oauth":true}}"#
    )
}

/// Starts a server with the API of Azure Blob Storage.
pub(crate) fn azurite() -> Option<Server> {
    let Some(bin) = installed("node_modules/.bin/azurite-blob") else {
        return skipped("azurite (Azure)");
    };
    let bin = bin.to_string_lossy().into_owned();
    let script = r#"exec "$BIN" --blobHost 127.0.0.1 --blobPort "$PORT" --silent \
        --skipApiVersionCheck --inMemoryPersistence"#;
    Some(Server::start(script, &[("BIN", &bin)]).wait_until(Server::listens))
}

/// Sends a request without headers of a client library, for tasks that a person would do in a console;
/// returns the status. Tries again for 20 seconds, because a server that has just begun to listen may close
/// the first connections.
pub(crate) fn http(port: u16, method: &str, path: &str) -> u16 {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match try_http(port, method, path) {
            Ok(status) => return status,
            Err(error) if Instant::now() > until => panic!("{method} {path}: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

fn try_http(port: u16, method: &str, path: &str) -> std::io::Result<u16> {
    use std::io::Write as _;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n"
    );
    stream.write_all(format!("{request}\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0))
}
