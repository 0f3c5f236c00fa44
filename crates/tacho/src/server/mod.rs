//! A server in this process: data directory, store, registry, hub and doors, opened in this order and closed in the
//! other. `tacho serve` and `tacho demo` run one.

mod listener;
mod open_files;
mod retention;
mod signals;
mod store;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gateway::http::HttpOptions;
use gateway::mqtt::{MqttDoor, MqttOptions};
use hub::registry::Registry;
use hub::{Hub, Metrics};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli::output::tell;
use crate::client::RuntimeFile;
use crate::config::{Config, MqttConfig};
use crate::limits::HTTP_WORKERS;

pub(crate) use open_files::OpenFiles;
use signals::Signals;
pub(crate) use store::{lock, open};

/// The registry's file in a data directory.
pub(crate) const REGISTRY_FILE: &str = "registry.sqlite";

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    hub: Arc<Hub>,
    runtime: Runtime,
    mqtt: MqttDoor,
    http: HttpDoor,
    signals: Signals,
    runtime_file: RuntimeFileGuard,
}

#[derive(Debug)]
struct HttpDoor {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Opens everything and serves. On the first start it prints the administrator's password.
    pub(crate) fn start(config: &Config) -> anyhow::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(HTTP_WORKERS).thread_name("http").enable_all().build();
        let runtime = runtime.context("cannot start the threads of the HTTP door")?;
        let signals = Signals::take(&runtime)?;
        let files = OpenFiles::raise();
        create_directory(&config.data)?;
        let metrics = Arc::new(Metrics::new());
        // The store comes first: its lock says whether another server has the directory.
        let store = store::open(config, &metrics)?;
        let registry = open_registry(&config.data)?;
        let hub = Hub::start(store, registry, config.ingest.clone(), metrics);
        store::report_when_sealed(&hub);
        match Self::open_doors(config, files, &hub, &runtime) {
            Ok((mqtt, http)) => {
                runtime.spawn(retention::run(Arc::clone(&hub)));
                let runtime_file = RuntimeFileGuard::write(&config.data, http.address, mqtt.local_address())?;
                Ok(Self { hub, runtime, mqtt, http, signals, runtime_file })
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
    ) -> anyhow::Result<(MqttDoor, HttpDoor)> {
        // Both ports are taken before anything is served.
        let mqtt = listener::bind("MQTT", "mqtt", config.mqtt.listen)?;
        let http = listener::bind("HTTP", "http", config.http.listen)?;
        let http = HttpDoor::start(Arc::clone(hub), http, http_options(config, files), runtime)?;
        let options = mqtt_options(&config.mqtt, files);
        let (workers, connections_max) = (options.workers, options.connections_max);
        tracing::info!(workers, connections_max, open_files_cap = files.cap, "MQTT door");
        let mqtt = MqttDoor::start(Arc::clone(hub), mqtt, options).context("cannot start the MQTT door")?;
        Ok((mqtt, http))
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

    /// Prints where the doors listen, and that they do.
    pub(crate) fn announce(&self) {
        tell(format_args!("listening mqtt {}", self.mqtt_address()));
        tell(format_args!("listening http {}", self.http_address()));
        tell("ready");
    }

    /// Waits for SIGTERM or SIGINT. A second one ends the process at once.
    pub(crate) fn wait_for_signal(&mut self) -> anyhow::Result<()> {
        let signal = self.runtime.block_on(self.signals.first())?;
        tracing::info!(signal, "stopping: no new connections, then the last acks, then the log's last sync");
        Ok(())
    }

    /// Stops accepting, lets the doors send the acks of what they have read, makes everything durable.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Self { hub, runtime, mqtt, http, signals: _signals, runtime_file } = self;
        if http.stop.send(()).is_err() {
            tracing::error!("the HTTP door had ended by itself");
        }
        mqtt.stop();
        let served = runtime.block_on(http.task).context("BUG: the HTTP door panicked")?;
        let closed = hub.close().context("cannot close the store cleanly; the next start recovers it");
        drop(runtime_file);
        served.context("the HTTP door failed")?;
        closed?;
        tracing::info!("stopped: everything acknowledged is on disk");
        Ok(())
    }
}

impl HttpDoor {
    fn start(
        hub: Arc<Hub>,
        listener: std::net::TcpListener,
        options: HttpOptions,
        runtime: &Runtime,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("cannot learn the port of the HTTP door")?;
        let _guard = runtime.enter();
        let listener =
            listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
        let listener = listener.context("cannot start the HTTP door")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            // A sender that is gone asks for the same.
            drop(stopped.await);
        };
        let task = runtime.spawn(gateway::http::serve(hub, listener, options, shutdown));
        Ok(Self { address, stop, task })
    }
}

fn http_options(config: &Config, files: OpenFiles) -> HttpOptions {
    HttpOptions {
        listen: config.http.listen,
        body_bytes_max: config.http.body_bytes_max,
        public_read: config.http.public_read,
        connections_max: files.http_connections_max(),
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn mqtt_options(config: &MqttConfig, files: OpenFiles) -> MqttOptions {
    let possible = files.mqtt_connections_max();
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
        ..MqttOptions::default()
    }
}

/// Creates a data directory that its owner alone may enter; one that is there stays as it is. Refuses one that was not
/// restored to the end.
pub(crate) fn create_directory(data: &Path) -> anyhow::Result<()> {
    if data.join(store_local::backup::RESTORE_MARKER).exists() {
        anyhow::bail!("{} was not restored to the end; remove it and restore again", data.display());
    }
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(data);
    created.with_context(|| format!("cannot create the data directory {}", data.display()))
}

fn open_registry(data: &Path) -> anyhow::Result<Registry> {
    let (registry, first_start) = Registry::open(&data.join(REGISTRY_FILE))?;
    if let Some(first) = first_start {
        let path = first.keep(&registry, data)?;
        tell(format_args!(
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
        let written = RuntimeFile { pid: std::process::id(), http, mqtt }.write(data);
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
