//! A server in this process. It opens data directory, store, registry, hub and doors in this order and closes them in
//! reverse. `tacho serve` and `tacho demo` run one.

mod allocator;
mod cleaning;
mod door_options;
mod door_task;
mod doors;
mod listener;
mod memory_guard;
mod open_files;
mod retention;
mod runtime_file;
mod signals;
mod tls_reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use connectors::Connectors;
use gateway::door::ListenAddress;
use gateway::tls::Tls;
use hub::registry::{ADMIN_LOGIN, ADMIN_PASSWORD_FILE, Registry};
use hub::{Hub, Metrics};
use kv::KeyValueStore;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use virtual_sensors::VirtualSensors;

use crate::client::RuntimeFile;
use crate::config::{Config, SENSORS_DIRECTORY};
use crate::data_directory::{
    create_directory, open_keys, open_registry, open_store_with, report_when_sealed,
};
use crate::limits::{HTTP_WORKERS, LIMITED_BLOCKING_THREADS};
use crate::output::{Audience, tell};
use crate::panics::Essential;
use doors::Doors;
use memory_guard::MemoryGuard;
pub(crate) use open_files::OpenFiles;
use runtime_file::RuntimeFileGuard;
use signals::Signals;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    runtime: Runtime,
    doors: Doors,
    connectors: Connectors,
    signals: Signals,
    runtime_file: RuntimeFileGuard,
    data: PathBuf,
    audience: Audience,
    _memory_guard: MemoryGuard,
}

impl Server {
    /// Starts a server. The first start prints the administrator's password.
    pub(crate) fn start(config: &Config, audience: Audience) -> anyhow::Result<Self> {
        config.memory.check().map_err(anyhow::Error::msg)?;
        // Before the threads start: each chooses its arena with its first allocation.
        allocator::set_up(config.memory.arenas());
        let mut runtime = Builder::new_multi_thread();
        if config.memory.has_resource_limit() {
            runtime.max_blocking_threads(LIMITED_BLOCKING_THREADS);
        }
        let runtime = runtime.worker_threads(HTTP_WORKERS).thread_name("http").enable_all().build();
        let runtime = runtime.context("cannot start the threads of the HTTP door")?;
        let signals = Signals::take(&runtime)?;
        let tls = config.tls.clone().map(Tls::load).transpose()?;
        check_sensors_directory(config)?;
        config.memory.tell();
        let files = OpenFiles::raise();
        create_directory(&config.data)?;
        let metrics = Arc::new(Metrics::new());
        // The store comes first: its lock fails if another server has the directory.
        let store = open_store_with(config, &metrics)?;
        let registry = open_registry(&config.data, audience)?;
        let memory = config.memory.doors;
        let kv: Arc<dyn KeyValueStore> = Arc::new(open_keys(&config.data, memory)?);
        let (rows, keys, limits) = (Arc::clone(&store), Arc::clone(&kv), config.ingest.clone());
        let hub = Hub::start_on(memory, rows, keys, registry, limits, metrics);
        let hub = hub.context("cannot open the broker")?;
        let sensors = VirtualSensors::new(memory, Arc::clone(&hub), store, kv);
        hub.open_sql(config.query.clone()).context("cannot start the threads of queries")?;
        let memory_guard = MemoryGuard::start(&hub, config.memory.bounds.clone());
        let memory_guard = memory_guard.context("cannot start the thread that watches the memory")?;
        report_when_sealed(&hub);
        hub.start_device_states(config.inactivity_timeout);
        resume_package_changes(&hub);
        match Doors::open(config, files, tls.as_ref(), (&hub, &sensors), &runtime) {
            Ok(doors) => {
                sensors.start(config.sensors.clone());
                let connectors = Connectors::start(&hub, &sensors, &config.sensor_targets);
                let connectors = connectors.context("cannot start the threads of connectors")?;
                runtime.spawn(Essential::new(retention::run(Arc::clone(&hub))));
                runtime.spawn(Essential::new(cleaning::run(Arc::clone(&hub))));
                if let Some(tls) = tls {
                    let _guard = runtime.enter();
                    runtime.spawn(Essential::new(tls_reload::run(tls, tls_reload::hangup()?)));
                }
                let runtime_file =
                    RuntimeFileGuard::write(&config.data, &RuntimeFile::of(doors.addresses()))?;
                let data = config.data.clone();
                Ok(Self {
                    hub,
                    sensors,
                    runtime,
                    doors,
                    connectors,
                    signals,
                    runtime_file,
                    data,
                    audience,
                    _memory_guard: memory_guard,
                })
            }
            Err(error) => {
                hub.close().context("while giving up the start")?;
                Err(error)
            }
        }
    }

    /// The registry of tenants, users and devices.
    pub(crate) fn registry(&self) -> &Registry {
        self.hub.registry()
    }

    /// The address of connections with this scheme, such as `http`, if a door listens for them.
    pub(crate) fn address(&self, scheme: &str) -> Option<SocketAddr> {
        self.doors.address(scheme)
    }

    /// Prints the addresses of the doors, and that the server is ready. The JSON for programs also has `more`.
    pub(crate) fn announce(&self, more: &[(&str, Value)]) {
        if self.audience == Audience::Programs {
            return tell(self.described(more));
        }
        for ListenAddress { scheme, address } in self.doors.addresses() {
            tell(format_args!("listening {scheme} {address}"));
        }
        tell("ready");
    }

    /// The JSON for programs: how to reach the server.
    fn described(&self, more: &[(&str, Value)]) -> Value {
        let password = self.data.join(ADMIN_PASSWORD_FILE);
        let password = password.exists().then(|| password.to_string_lossy().into_owned());
        let runtime = RuntimeFile::of(self.doors.addresses());
        let mut described = json!({
            "ready": true,
            "pid": runtime.pid,
            "data": self.data.to_string_lossy(),
            "url": runtime.url(),
            "login": ADMIN_LOGIN,
            "passwordFile": password,
        });
        for (scheme, address) in &runtime.addresses {
            described[scheme] = json!(address);
        }
        for (name, value) in more {
            described[*name] = value.clone();
        }
        described
    }

    /// Waits for SIGTERM or SIGINT. A second signal ends the process at once.
    pub(crate) fn wait_for_signal(&mut self) -> anyhow::Result<()> {
        let signal = self.runtime.block_on(self.signals.first())?;
        tracing::info!(signal, "stopping: no new connections, then the last acks, then the log's last sync");
        Ok(())
    }

    /// Stops the server: the doors accept no more connections and send the last acks, then the store makes all data durable.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Self { hub, sensors, runtime, doors, connectors, signals: _signals, runtime_file, .. } = self;
        let served = doors.stop(&runtime);
        connectors.stop();
        // They append rows, which touch devices and which rules read.
        sensors.stop();
        let closed = hub.close().context("cannot close the store cleanly; the next start recovers it");
        drop(runtime_file);
        served?;
        closed?;
        tracing::info!("stopped: everything acknowledged is on disk");
        Ok(())
    }
}

/// A directory of sensors that the configuration names must exist: a misspelt one would look like one without sensors.
fn check_sensors_directory(config: &Config) -> anyhow::Result<()> {
    let directory = &config.sensors;
    ensure!(
        directory.is_dir() || *directory == config.data.join(SENSORS_DIRECTORY),
        "sensors.directory: {} is not a directory; name one that exists, with files of virtual sensors",
        directory.display()
    );
    Ok(())
}

/// Tells devices their packages if the server ended before it had done so.
fn resume_package_changes(hub: &Hub) {
    match hub.resume_package_changes() {
        Ok(0) => {}
        Ok(changes) => tracing::info!(changes, "told devices their packages after a crash"),
        Err(error) => {
            tracing::warn!(%error, "devices do not know their packages yet; the next start tells them")
        }
    }
}
