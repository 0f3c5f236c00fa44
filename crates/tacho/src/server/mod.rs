//! A server in this process: data directory, store, registry, hub and doors, opened in this order and closed in the
//! other. `tacho serve` and `tacho demo` run one.

mod access;
mod allocator;
mod listener;
mod open_files;
mod retention;
mod signals;
mod store;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::Context;
use gateway::http::HttpOptions;
use gateway::mqtt::{MqttDoor, MqttOptions};
use gateway::postgres::PostgresOptions;
use hub::registry::{ADMIN_LOGIN, ADMIN_PASSWORD_FILE, Registry};
use hub::{Hub, Metrics};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli::output::{Audience, tell};
use crate::client::RuntimeFile;
use crate::config::{Config, PostgresConfig};
use crate::limits::HTTP_WORKERS;
use crate::panics::Essential;

pub(crate) use access::{Use, check as check_access};
pub(crate) use open_files::OpenFiles;
use signals::Signals;
pub(crate) use store::{holder, lock, open};

/// The registry's file in a data directory.
pub(crate) const REGISTRY_FILE: &str = "registry.sqlite";

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    hub: Arc<Hub>,
    runtime: Runtime,
    mqtt: MqttDoor,
    http: AsyncDoor,
    postgres: Option<AsyncDoor>,
    signals: Signals,
    runtime_file: RuntimeFileGuard,
    data: PathBuf,
    audience: Audience,
}

/// A door that runs on the threads of this runtime.
#[derive(Debug)]
struct AsyncDoor {
    name: &'static str,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Opens everything and serves. On the first start it prints the administrator's password.
    pub(crate) fn start(config: &Config, audience: Audience) -> anyhow::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(HTTP_WORKERS).thread_name("http").enable_all().build();
        let runtime = runtime.context("cannot start the threads of the HTTP door")?;
        let signals = Signals::take(&runtime)?;
        config.memory.tell();
        if config.memory.is_small() {
            allocator::give_back_large_blocks();
        }
        let files = OpenFiles::raise();
        create_directory(&config.data)?;
        let metrics = Arc::new(Metrics::new());
        // The store comes first: its lock says whether another server has the directory.
        let store = store::open(config, &metrics)?;
        let registry = open_registry(&config.data, audience)?;
        let hub = Hub::start_on(config.memory.doors, store, registry, config.ingest.clone(), metrics);
        hub.open_sql(config.query.clone()).context("cannot start the threads of queries")?;
        store::report_when_sealed(&hub);
        match Self::open_doors(config, files, &hub, &runtime) {
            Ok((mqtt, http, postgres)) => {
                runtime.spawn(Essential::new(retention::run(Arc::clone(&hub))));
                let runtime_file = RuntimeFileGuard::write(&config.data, http.address, mqtt.local_address())?;
                let data = config.data.clone();
                Ok(Self { hub, runtime, mqtt, http, postgres, signals, runtime_file, data, audience })
            }
            Err(error) => {
                hub.close().context("while giving up the start")?;
                Err(error)
            }
        }
    }

    fn open_doors(
        config: &Config,
        files: OpenFiles,
        hub: &Arc<Hub>,
        runtime: &Runtime,
    ) -> anyhow::Result<(MqttDoor, AsyncDoor, Option<AsyncDoor>)> {
        // All ports are taken before anything is served.
        let mqtt = listener::bind("MQTT", "mqtt", config.mqtt.listen)?;
        let http = listener::bind("HTTP", "http", config.http.listen)?;
        let postgres = config
            .postgres
            .as_ref()
            .map(|postgres| listener::bind("PostgreSQL", "postgres", postgres.listen));
        let postgres = postgres.transpose()?;
        let (their_hub, options) = (Arc::clone(hub), http_options(config, files));
        let serve = |listener, stopped| gateway::http::serve(their_hub, listener, options, stopped);
        let http = AsyncDoor::start("HTTP", http, runtime, serve)?;
        let postgres = match (postgres, &config.postgres) {
            (Some(listener), Some(postgres)) => {
                let (their_hub, options) = (Arc::clone(hub), postgres_options(config, postgres));
                let serve =
                    |listener, stopped| gateway::postgres::serve(their_hub, listener, options, stopped);
                Some(AsyncDoor::start("PostgreSQL", listener, runtime, serve)?)
            }
            _ => None,
        };
        let options = mqtt_options(config, files);
        let (workers, connections_max) = (options.workers, options.connections_max);
        tracing::info!(workers, connections_max, open_files_cap = files.cap, "MQTT door");
        let mqtt = MqttDoor::start(Arc::clone(hub), mqtt, options).context("cannot start the MQTT door")?;
        Ok((mqtt, http, postgres))
    }

    /// Tenants, users, devices.
    pub(crate) fn registry(&self) -> &Registry {
        self.hub.registry()
    }

    /// Where the MQTT door listens.
    pub(crate) fn mqtt_address(&self) -> SocketAddr {
        self.mqtt.local_address()
    }

    /// Where the HTTP door listens.
    pub(crate) fn http_address(&self) -> SocketAddr {
        self.http.address
    }

    /// Where the PostgreSQL door listens, if it is open.
    pub(crate) fn postgres_address(&self) -> Option<SocketAddr> {
        self.postgres.as_ref().map(|door| door.address)
    }

    /// Prints where the doors listen, and that they do. Programs are told `more` as well.
    pub(crate) fn announce(&self, more: &[(&str, Value)]) {
        if self.audience == Audience::Programs {
            return tell(self.described(more));
        }
        tell(format_args!("listening mqtt {}", self.mqtt_address()));
        tell(format_args!("listening http {}", self.http_address()));
        if let Some(address) = self.postgres_address() {
            tell(format_args!("listening postgres {address}"));
        }
        tell("ready");
    }

    /// How the server is reached, for programs.
    fn described(&self, more: &[(&str, Value)]) -> Value {
        let password = self.data.join(ADMIN_PASSWORD_FILE);
        let password = password.exists().then(|| password.to_string_lossy().into_owned());
        let runtime = RuntimeFile::of(self.http_address(), self.mqtt_address());
        let mut described = json!({
            "ready": true,
            "pid": runtime.pid,
            "data": self.data.to_string_lossy(),
            "mqtt": runtime.mqtt,
            "http": runtime.http,
            "postgres": self.postgres_address(),
            "url": runtime.url(),
            "login": ADMIN_LOGIN,
            "passwordFile": password,
        });
        for (name, value) in more {
            described[*name] = value.clone();
        }
        described
    }

    /// Waits for SIGTERM or SIGINT. A second one ends the process at once.
    pub(crate) fn wait_for_signal(&mut self) -> anyhow::Result<()> {
        let signal = self.runtime.block_on(self.signals.first())?;
        tracing::info!(signal, "stopping: no new connections, then the last acks, then the log's last sync");
        Ok(())
    }

    /// Stops accepting, lets the doors send the acks of what they have read, makes everything durable.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Self { hub, runtime, mqtt, http, postgres, signals: _signals, runtime_file, .. } = self;
        let ending: Vec<_> = postgres.into_iter().chain([http]).map(AsyncDoor::stop).collect();
        mqtt.stop();
        let served: Vec<_> = ending.into_iter().map(|ending| runtime.block_on(ending)).collect();
        let closed = hub.close().context("cannot close the store cleanly; the next start recovers it");
        drop(runtime_file);
        served.into_iter().collect::<anyhow::Result<()>>()?;
        closed?;
        tracing::info!("stopped: everything acknowledged is on disk");
        Ok(())
    }
}

impl AsyncDoor {
    /// Serves a listener. `serve` runs until the signal it gets.
    fn start<S: Future<Output = io::Result<()>> + Send + 'static>(
        name: &'static str,
        listener: std::net::TcpListener,
        runtime: &Runtime,
        serve: impl FnOnce(tokio::net::TcpListener, Stopped) -> S,
    ) -> anyhow::Result<Self> {
        let address =
            listener.local_addr().with_context(|| format!("cannot learn the port of the {name} door"))?;
        let _guard = runtime.enter();
        let listener =
            listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
        let listener = listener.with_context(|| format!("cannot start the {name} door"))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown: Stopped = Box::pin(async {
            // A sender that is gone asks for the same.
            drop(stopped.await);
        });
        let task = runtime.spawn(Essential::new(serve(listener, shutdown)));
        Ok(Self { name, address, stop, task })
    }

    /// Asks the door to end; the future is its end.
    fn stop(self) -> impl Future<Output = anyhow::Result<()>> {
        let Self { name, stop, task, .. } = self;
        if stop.send(()).is_err() {
            tracing::error!("the {name} door had ended by itself");
        }
        async move {
            let served = task.await.with_context(|| format!("BUG: the {name} door was given up"))?;
            served.with_context(|| format!("the {name} door failed"))
        }
    }
}

/// Ends when the door shall stop.
type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

fn postgres_options(config: &Config, postgres: &PostgresConfig) -> PostgresOptions {
    PostgresOptions {
        public_read: config.http.public_read,
        connections_max: postgres.connections_max,
        connections_per_address_max: share(postgres.connections_per_address_max, postgres.connections_max),
        idle_timeout: postgres.idle_timeout,
        memory: config.memory.doors,
    }
}

fn http_options(config: &Config, files: OpenFiles) -> HttpOptions {
    let connections_max = http_connections_max(config, files);
    HttpOptions {
        listen: config.http.listen,
        body_bytes_max: config.http.body_bytes_max,
        public_read: config.http.public_read,
        connections_max,
        connections_per_address_max: share(config.http.connections_per_address_max, connections_max),
        open_files_max: files.cap,
        memory: config.memory.doors,
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn http_connections_max(config: &Config, files: OpenFiles) -> usize {
    config.http.connections_max.unwrap_or_else(|| files.http_connections_max())
}

/// What one address may have of all connections: three quarters, unless the operator names another number.
fn share(wanted: Option<usize>, connections_max: usize) -> usize {
    wanted.unwrap_or(connections_max - connections_max / 4)
}

fn mqtt_options(config: &Config, files: OpenFiles) -> MqttOptions {
    let postgres = config.postgres.as_ref().map_or(0, |postgres| postgres.connections_max);
    let others = http_connections_max(config, files) + postgres;
    let possible = files.mqtt_connections_max(others);
    if possible < others {
        tracing::warn!(
            possible,
            others,
            cap = files.cap,
            "the open-file limit leaves few connections for MQTT; raise it (ulimit -Hn, LimitNOFILE=) or lower \
             http.connections_max and postgres.connections_max"
        );
    }
    let (memory, config) = (config.memory.doors, &config.mqtt);
    let wanted = config.connections_max.unwrap_or(possible);
    if wanted > possible {
        tracing::warn!(
            wanted,
            possible,
            cap = files.cap,
            "mqtt.connections_max is more than the open-file limit allows; raise it (ulimit -Hn, LimitNOFILE=)"
        );
    }
    MqttOptions {
        workers: config.workers,
        packet_bytes_max: config.packet_bytes_max,
        receive_maximum: config.receive_maximum,
        connect_timeout_s: config.connect_timeout_s,
        keep_alive_max_s: config.keep_alive_max_s,
        connections_max: wanted.min(possible),
        memory,
        ..MqttOptions::default()
    }
}

/// Creates a data directory that its owner alone may enter; one that is there stays as it is. Refuses one that was not
/// restored to the end.
pub(crate) fn create_directory(data: &Path) -> anyhow::Result<()> {
    check_access(data, Use::Read)?;
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    created.with_context(|| format!("cannot create the data directory {}", data.display()))?;
    check_access(data, Use::Change)
}

pub(crate) fn open_registry(data: &Path, audience: Audience) -> anyhow::Result<Registry> {
    let (registry, first_start) = Registry::open(&data.join(REGISTRY_FILE))?;
    if let Some(first) = first_start {
        let path = first.keep(&registry, data)?;
        audience.tell(format_args!(
            "administrator {}  password {}  (kept in {})",
            first.login,
            first.password,
            path.display()
        ));
    }
    Ok(registry)
}

/// The file that tells commands where the server is; removed when the server is gone.
#[derive(Debug)]
struct RuntimeFileGuard {
    path: PathBuf,
}

impl RuntimeFileGuard {
    fn write(data: &Path, http: SocketAddr, mqtt: SocketAddr) -> anyhow::Result<Self> {
        let path = RuntimeFile::path(data);
        let written = RuntimeFile::of(http, mqtt).write(data);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for RuntimeFileGuard {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove; commands find out that nobody serves there");
        }
    }
}
