//! The start and the end of the service: data folder, lock, key, socket, `serve.json`.

use std::fs::{File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access_log::AccessLog;
use crate::app::App;
use crate::auth::Keys;
use crate::balancer::Balancer;
use crate::billing::meter::{self, Meter};
use crate::faults::Faults;
use crate::jobs::projection::Projection;
use crate::jobs::queue::Queue;
use crate::jobs::rates::Rates;
use crate::jobs::{sweep, webhooks};
use crate::lease::Leases;
use crate::listen::Entrance;
use crate::log::LogLevel;
use crate::metrics::RequestCounts;
use crate::options::{Options, Runtime};
use crate::own_files::{Strange, hide, itself, refuse_strange, write_private};
use crate::pods::runner::{self, PodRunner};
use crate::problem::Problem;
use crate::quirks::Quirks;
use crate::rate::Rate;
use crate::readiness::Readiness;
use crate::store::{Store, StoreError};
use crate::tls::{self, TlsError};
use crate::workers::container::{Engine, EngineError};
use crate::workers::fleet::Fleet;
use crate::workers::logs;
use crate::workers::usage::{self, Usage};
use crate::{ids, listen, routes};

/// The addresses of a running service, and its key.
#[derive(Clone)]
pub struct Addresses {
    /// The REST management API, `http://127.0.0.1:PORT/v1`.
    pub rest: String,
    /// GraphQL, `http://127.0.0.1:PORT/graphql`.
    pub graphql: String,
    /// The job API, `http://127.0.0.1:PORT/v2`.
    pub queue: String,
    /// The account's key.
    pub key: String,
    /// The address at which leases are taken.
    pub lease: String,
}

impl std::fmt::Debug for Addresses {
    /// Writes the addresses without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").field("rest", &self.rest).finish_non_exhaustive()
    }
}

/// The reason for which a service could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another service holds the data folder.
    #[error("another service holds the data folder {}", folder.display())]
    Locked {
        /// The data folder.
        folder: PathBuf,
    },
    /// The data folder contains something under a name of the service that the service did not
    /// make.
    #[error(transparent)]
    Strange(#[from] Strange),
    /// Something in the data folder cannot be read or written.
    #[error("cannot use {}", path.display())]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the store in {}", folder.display())]
    Store {
        /// The data folder.
        folder: PathBuf,
        /// The error of the store.
        source: StoreError,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The jobs in the store cannot be read.
    #[error("cannot read the jobs in {}", folder.display())]
    Recover {
        /// The data folder.
        folder: PathBuf,
        /// The error of the store.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Workers cannot run in containers.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The given key cannot be used in a header.
    #[error("the key must be visible ASCII without spaces, and not empty")]
    Key,
    /// The key in the data folder cannot be used in a header.
    #[error("the key in {} must be visible ASCII without spaces, and not empty", path.display())]
    KeptKey {
        /// The file of the key.
        path: PathBuf,
    },
}

/// The error with which a running service ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// `serve.json` could not be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A service that has its data folder, its socket and its addresses, and waits to be run.
pub struct Server {
    app: Arc<App>,
    entrances: Vec<Entrance>,
    addresses: Addresses,
    serve_json: PathBuf,
    /// The locked file. The system releases the lock even after `kill -9`.
    lock: File,
}

/// Takes the data folder's lock, opens the store, binds, and writes `serve.json`.
pub async fn start(options: Options) -> Result<Server, StartError> {
    let folder = options.data.clone();
    std::fs::create_dir_all(&folder).map_err(data_error(&folder))?;
    refuse_strange(&folder)?;
    let lock = lock(&folder)?;
    hide(&folder).map_err(data_error(&folder))?;
    let serve_json = folder.join("serve.json");
    forget(&serve_json).map_err(data_error(&serve_json))?;
    let engine = engine(&options, &folder).await?;
    let keys = Keys::new(account_key(&options, &folder)?, &folder);
    let store = Store::open(&folder, &options.log)
        .map_err(|source| StartError::Store { folder: folder.clone(), source })?;
    logs::prune(&folder);
    raise_descriptor_limit();
    let sockets = sockets(&options).await?;
    let addresses = addresses(&sockets, keys.account());
    write_private(&serve_json, &describe(&addresses)).map_err(data_error(&serve_json))?;
    let queue = recover(&store).await.map_err(|problem| StartError::Recover {
        folder: folder.clone(),
        source: problem.cause().unwrap_or(&problem.message).into(),
    })?;
    let queue_url = addresses.queue.clone();
    let worker_url = sockets.worker_url.clone().unwrap_or_else(|| queue_url.clone());
    let open = Open { engine, store, keys, queue, queue_url, worker_url };
    let app = app(options, open).map_err(data_error(&folder.join("access.log")))?;
    app.say(&format!("listening on {}, data in {}", sockets.bound, folder.display()));
    Ok(Server { app, entrances: sockets.entrances, addresses, serve_json, lock })
}

impl Server {
    /// Returns the addresses of this service.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Serves until `stop` fires or, with `until_idle`, until no client needs the service. Then
    /// drains, ends the workers, and removes `serve.json` last.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let Server { app, entrances, serve_json, lock, .. } = self;
        app.endpoints_changed();
        let watch = tokio::spawn(watch(Arc::clone(&app), stop));
        let sweep = tokio::spawn(sweep::run(Arc::clone(&app)));
        let webhooks = tokio::spawn(webhooks::run(Arc::clone(&app)));
        let meter = tokio::spawn(meter::run(Arc::clone(&app)));
        let pods = tokio::spawn(runner::run(Arc::clone(&app)));
        let usage = tokio::spawn(usage::run(Arc::clone(&app)));
        let end_workers = async {
            app.draining.cancelled().await;
            // No worker is started any more once the sweep has ended.
            drop(sweep.await);
            app.fleet.end().await;
        };
        tokio::join!(listen::serve(&app, entrances, routes::router(&app)), end_workers);
        watch.abort();
        drop(pods.await);
        // A running webhook would keep the store open.
        drop(webhooks.await);
        drop(meter.await);
        // The store logs a failure of this write; there is no later one.
        drop(app.meter.settle(&app).await);
        usage.abort();
        drop(usage.await);
        app.store.close();
        app.say("stopped");
        let removed = std::fs::remove_file(&serve_json);
        drop(lock);
        match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RunError::Remove { path: serve_json, source })
            }
            _ => Ok(()),
        }
    }
}

/// Waits for one of the two reasons to end: `stop` fires, or no lease arrives in time. Then lets
/// jobs finish, and fires the draining token.
async fn watch(app: Arc<App>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(app.options.timing.first_lease) => app.leases.first_lease_due(),
    }
    stop.cancelled().await;
    finish_jobs(&app).await;
    app.draining.cancel();
}

/// Lets no more jobs begin, and waits for a limited time until the running ones have finished.
async fn finish_jobs(app: &App) {
    app.closing.cancel();
    let limit = app.options.timing.finish;
    let running = running(app);
    if running == 0 || limit.is_zero() {
        return;
    }
    app.say(&format!(
        "stopping; {running} running jobs and requests have {} s to finish",
        limit.as_secs()
    ));
    let finished = async {
        while self::running(app) > 0 {
            tokio::time::sleep(app.options.timing.tick).await;
        }
    };
    drop(tokio::time::timeout(limit, finished).await);
}

/// Returns the engine of the workers' containers, after it has removed the containers of a killed
/// service. Returns `None` if workers are plain processes.
async fn engine(options: &Options, folder: &Path) -> Result<Option<Engine>, StartError> {
    let Runtime::Container(client) = &options.runtime else { return Ok(None) };
    let engine = Engine::connect(client, folder).await?;
    let said = match engine.remove_leftovers().await {
        Ok(0) => return Ok(Some(engine)),
        Ok(count) => format!("{count} containers of a service that was killed are removed"),
        Err(answer) => format!("containers of an earlier service are not removed: {answer}"),
    };
    crate::log::write(&options.log, LogLevel::Info, &said);
    Ok(Some(engine))
}

/// Returns the number of jobs and requests that workers work at.
fn running(app: &App) -> i64 {
    let requests = i64::try_from(app.fleet.requests(None)).unwrap_or(i64::MAX);
    app.queue.projection.running().saturating_add(requests)
}

/// Counts the jobs, and puts the jobs back into the queue whose workers ended with the previous
/// service.
async fn recover(store: &Store) -> Result<Queue, Problem> {
    let projection = store.read(Projection::load).await?;
    let queue = Queue { projection: Arc::new(projection) };
    let recovering = queue.clone();
    store.write(move |tx| recovering.recover(tx)).await?;
    Ok(queue)
}

/// The resources that are opened before the service is put together.
struct Open {
    engine: Option<Engine>,
    store: Store,
    keys: Keys,
    queue: Queue,
    queue_url: String,
    worker_url: String,
}

fn app(options: Options, open: Open) -> io::Result<Arc<App>> {
    let Open { store, keys, queue, engine, queue_url, worker_url } = open;
    let draining = CancellationToken::new();
    let verbose = options.verbose.then(|| Arc::clone(&options.log));
    Ok(Arc::new(App {
        store,
        keys,
        quirks: Quirks::new(options.quirks.clone()),
        faults: Faults::new(options.faults.clone()),
        rate: Rate::new(options.rate.clone()),
        access: Arc::new(AccessLog::open(&options.data, options.access_log, verbose)?),
        leases: Arc::new(Leases::new(options.until_idle, draining.clone())),
        closing: CancellationToken::new(),
        draining,
        log: Arc::clone(&options.log),
        queue,
        fleet: Fleet::default(),
        engine,
        pod_runner: PodRunner::default(),
        balancer: Balancer::default(),
        meter: Meter::new(),
        usage: Usage::default(),
        requests: RequestCounts::default(),
        readiness: Readiness::default(),
        rates: Rates::default(),
        queue_url,
        worker_url,
        lists: AtomicU64::new(0),
        options,
    }))
}

/// Raises the limit of descriptors to the highest that the system allows: connections and workers
/// need them.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If that fails, new connections wait until others close.
    let _refused = setrlimit(Resource::Nofile, limit);
}

fn lock(folder: &Path) -> Result<File, StartError> {
    let path = folder.join("lock");
    let file = itself().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(data_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::Locked { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(StartError::Data { path, source }),
    }
}

/// Removes `serve.json` of a service that was killed, or that came along in a copied folder. A
/// client that finds the folder's lock held trusts that file.
fn forget(serve_json: &Path) -> io::Result<()> {
    match std::fs::remove_file(serve_json) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the given key, else the one in the data folder, else a new one, which it stores there.
fn account_key(options: &Options, folder: &Path) -> Result<String, StartError> {
    let path = folder.join("key");
    let key = match &options.key {
        Some(key) => key.clone(),
        None => match std::fs::read_to_string(&path) {
            Ok(kept) => kept.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = format!("plumb_{}", ids::secret());
                write_private(&path, &made).map_err(data_error(&path))?;
                made
            }
            // A file that is not text contains no key.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(source) => return Err(StartError::Data { path, source }),
        },
    };
    let is_usable = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    match (is_usable, &options.key) {
        (true, _) => Ok(key),
        (false, Some(_)) => Err(StartError::Key),
        (false, None) => Err(StartError::KeptKey { path }),
    }
}

/// The open sockets of a service.
struct Sockets {
    entrances: Vec<Entrance>,
    /// The address for clients.
    bound: SocketAddr,
    /// True if clients use TLS.
    is_secure: bool,
    /// The address of the job API for workers, if they have a socket of their own; else `None`.
    worker_url: Option<String>,
}

/// Binds the address for clients. With TLS it also binds one for workers, because they know no
/// certificate of the user's.
async fn sockets(options: &Options) -> Result<Sockets, StartError> {
    let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
    let is_secure = tls.is_some();
    let (listener, bound) = bind(options.listen).await?;
    let mut entrances = vec![Entrance { listener, tls }];
    let mut worker_url = None;
    if is_secure {
        let (listener, bound) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        entrances.push(Entrance { listener, tls: None });
        worker_url = Some(format!("http://{bound}/v2"));
    }
    Ok(Sockets { entrances, bound, is_secure, worker_url })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

fn addresses(sockets: &Sockets, key: &str) -> Addresses {
    let bound = sockets.bound;
    let scheme = if sockets.is_secure { "https" } else { "http" };
    // A service that listens on all addresses is reached from this machine over loopback.
    let host = match bound.ip() {
        ip if !ip.is_unspecified() => bound.to_string(),
        std::net::IpAddr::V4(_) => format!("127.0.0.1:{}", bound.port()),
        std::net::IpAddr::V6(_) => format!("[::1]:{}", bound.port()),
    };
    Addresses {
        rest: format!("{scheme}://{host}/v1"),
        graphql: format!("{scheme}://{host}/graphql"),
        queue: format!("{scheme}://{host}/v2"),
        lease: format!("{scheme}://{host}/lease"),
        key: key.to_owned(),
    }
}

fn describe(addresses: &Addresses) -> String {
    let description = json!({
        "rest_url": addresses.rest,
        "graphql_url": addresses.graphql,
        "queue_url": addresses.queue,
        "lease_url": addresses.lease,
        "key": addresses.key,
        "pid": std::process::id(),
    });
    format!("{description:#}\n")
}

fn data_error(path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    move |source| StartError::Data { path, source }
}
