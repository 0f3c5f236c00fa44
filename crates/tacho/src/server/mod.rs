//! A server in this process. It opens data directory, store, registry, hub and doors in this order and closes them in
//! reverse. `tacho serve` and `tacho demo` run one.

mod allocator;
mod door_options;
mod door_task;
mod listener;
mod open_files;
mod retention;
mod runtime_file;
mod signals;
mod socket_set;
mod tls_reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use gateway::mqtt::MqttDoor;
use gateway::tls::{Listeners, Tls};
use hub::registry::{ADMIN_LOGIN, ADMIN_PASSWORD_FILE, Registry};
use hub::{Hub, Metrics};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::client::RuntimeFile;
use crate::config::Config;
use crate::data_directory::{create_directory, open_registry, open_store_with, report_when_sealed};
use crate::limits::HTTP_WORKERS;
use crate::output::{Audience, tell};
use crate::panics::Essential;
use door_options::{http_options, mqtt_options, postgres_options};
use door_task::DoorTask;
pub(crate) use open_files::OpenFiles;
use runtime_file::RuntimeFileGuard;
use signals::Signals;
use socket_set::SocketSet;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    hub: Arc<Hub>,
    runtime: Runtime,
    mqtt: MqttDoor,
    http: DoorTask,
    postgres: Option<DoorTask>,
    signals: Signals,
    runtime_file: RuntimeFileGuard,
    data: PathBuf,
    audience: Audience,
}

impl Server {
    /// Starts a server. The first start prints the administrator's password.
    pub(crate) fn start(config: &Config, audience: Audience) -> anyhow::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(HTTP_WORKERS).thread_name("http").enable_all().build();
        let runtime = runtime.context("cannot start the threads of the HTTP door")?;
        let signals = Signals::take(&runtime)?;
        let tls = config.tls.clone().map(Tls::load).transpose()?;
        config.memory.tell();
        if config.memory.is_small() {
            allocator::give_back_large_blocks();
        }
        let files = OpenFiles::raise();
        create_directory(&config.data)?;
        let metrics = Arc::new(Metrics::new());
        // The store comes first: its lock fails if another server has the directory.
        let store = open_store_with(config, &metrics)?;
        let registry = open_registry(&config.data, audience)?;
        let hub = Hub::start_on(config.memory.doors, store, registry, config.ingest.clone(), metrics);
        hub.open_sql(config.query.clone()).context("cannot start the threads of queries")?;
        report_when_sealed(&hub);
        drop_orphans(&hub);
        match Self::open_doors(config, files, tls.as_ref(), &hub, &runtime) {
            Ok((mqtt, http, postgres)) => {
                runtime.spawn(Essential::new(retention::run(Arc::clone(&hub))));
                if let Some(tls) = tls {
                    let _guard = runtime.enter();
                    runtime.spawn(Essential::new(tls_reload::run(tls, tls_reload::hangup()?)));
                }
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
        tls: Option<&Arc<Tls>>,
        hub: &Arc<Hub>,
        runtime: &Runtime,
    ) -> anyhow::Result<(MqttDoor, DoorTask, Option<DoorTask>)> {
        // The server opens all ports before it serves any.
        let SocketSet { mqtt, http, postgres } = SocketSet::bind(config, tls)?;
        let (their_hub, options) = (Arc::clone(hub), http_options(config, files));
        let serve = |listeners, stopped| gateway::http::serve(their_hub, listeners, options, stopped);
        let http = DoorTask::start("HTTP", http, runtime, serve)?;
        let postgres = match (postgres, &config.postgres) {
            (Some(listener), Some(postgres)) => {
                let (their_hub, options) =
                    (Arc::clone(hub), postgres_options(config, postgres, tls.cloned()));
                let serve = |listeners: Listeners<_>, stopped| {
                    gateway::postgres::serve(their_hub, listeners.plain, options, stopped)
                };
                Some(DoorTask::start("PostgreSQL", listener.into(), runtime, serve)?)
            }
            _ => None,
        };
        let options = mqtt_options(config, files);
        let (workers, connections_max) = (options.workers, options.connections_max);
        tracing::info!(workers, connections_max, open_files_cap = files.cap, "MQTT door");
        let mqtt = MqttDoor::start(Arc::clone(hub), mqtt, options).context("cannot start the MQTT door")?;
        Ok((mqtt, http, postgres))
    }

    /// The registry of tenants, users and devices.
    pub(crate) fn registry(&self) -> &Registry {
        self.hub.registry()
    }

    /// The address of the MQTT door.
    pub(crate) fn mqtt_address(&self) -> SocketAddr {
        self.mqtt.local_address()
    }

    /// The address of the HTTP door.
    pub(crate) fn http_address(&self) -> SocketAddr {
        self.http.address
    }

    /// The address of the PostgreSQL door, if it is open.
    pub(crate) fn postgres_address(&self) -> Option<SocketAddr> {
        self.postgres.as_ref().map(|door| door.address)
    }

    /// Prints the addresses of the doors, and that the server is ready. The JSON for programs also has `more`.
    pub(crate) fn announce(&self, more: &[(&str, Value)]) {
        if self.audience == Audience::Programs {
            return tell(self.described(more));
        }
        tell(format_args!("listening mqtt {}", self.mqtt_address()));
        if let Some(address) = self.mqtt.tls_address() {
            tell(format_args!("listening mqtts {address}"));
        }
        tell(format_args!("listening http {}", self.http_address()));
        if let Some(address) = self.http.tls_address {
            tell(format_args!("listening https {address}"));
        }
        if let Some(address) = self.postgres_address() {
            tell(format_args!("listening postgres {address}"));
        }
        tell("ready");
    }

    /// The JSON for programs: how to reach the server.
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
            "mqtts": self.mqtt.tls_address(),
            "https": self.http.tls_address,
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

    /// Waits for SIGTERM or SIGINT. A second signal ends the process at once.
    pub(crate) fn wait_for_signal(&mut self) -> anyhow::Result<()> {
        let signal = self.runtime.block_on(self.signals.first())?;
        tracing::info!(signal, "stopping: no new connections, then the last acks, then the log's last sync");
        Ok(())
    }

    /// Stops the server: the doors accept no more connections and send the last acks, then the store makes all data durable.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        let Self { hub, runtime, mqtt, http, postgres, signals: _signals, runtime_file, .. } = self;
        let ending: Vec<_> = postgres.into_iter().chain([http]).map(DoorTask::stop).collect();
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

/// Drops the tables of deleted tenants. A failure only leaves them on the disk until the next start.
fn drop_orphans(hub: &Hub) {
    match hub.drop_orphans() {
        Ok(0) => {}
        Ok(tables) => tracing::info!(tables, "dropped the tables of deleted tenants"),
        Err(error) => tracing::warn!(%error, "the tables of deleted tenants are still on the disk"),
    }
}
