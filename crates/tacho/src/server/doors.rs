//! The doors of the server: the list that the configuration opens, and how they start and stop.
//!
//! A new door needs a module in `gateway`, a section of the configuration, and a line in [`planned`].

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use gateway::door::{Door, ListenAddress};
use gateway::mqtt::{MqttDoor, MqttEntrance};
use gateway::tls::{Listeners, Tls};
use hub::Hub;
use tokio::runtime::Runtime;
use virtual_sensors::VirtualSensors;

use super::door_options::{http_options, mqtt_options, postgres_options, time_series_options};
use super::door_task::{DoorTask, Schemes};
use super::listener::{bind, warn_if_exposed};
use super::open_files::OpenFiles;
use crate::config::{Config, PostgresConfig};

/// The doors that the configuration opens, in the order in which they start.
fn planned<'a>(config: &'a Config, files: OpenFiles, tls: Option<&'a Arc<Tls>>) -> Vec<DoorPlan<'a>> {
    let postgres = config.postgres.as_ref().map(|postgres| postgres_door(config, postgres, tls));
    let main = [Some(mqtt_door(config, files)), Some(http_door(config, files)), postgres];
    main.into_iter().flatten().chain(time_series_doors(config, files)).collect()
}

/// The running doors.
#[derive(Debug)]
pub(super) struct Doors {
    doors: Vec<Box<dyn Door>>,
}

/// What a door needs to start, besides its options.
struct Surroundings<'a> {
    hub: &'a Arc<Hub>,
    sensors: &'a Arc<VirtualSensors>,
    runtime: &'a Runtime,
    /// The entrance of the MQTT door for WebSockets. The door itself sets it.
    mqtt: Option<MqttEntrance>,
}

/// Starts a door on its open ports.
type Start<'a> =
    Box<dyn FnOnce(Listeners<TcpListener>, &mut Surroundings<'_>) -> anyhow::Result<Box<dyn Door>> + 'a>;

/// A door that is not started yet.
struct DoorPlan<'a> {
    /// Its name in messages.
    title: &'static str,
    /// The address without TLS, and the option that sets it.
    plain: (&'static str, SocketAddr),
    /// The address of connections that begin with TLS, and the setting.
    tls: Option<(&'static str, SocketAddr)>,
    /// The plain address does not accept a login without TLS.
    plain_is_safe: bool,
    start: Start<'a>,
}

impl Doors {
    /// Opens the ports of all doors, then serves them. If one fails, it stops the others.
    pub(super) fn open(
        config: &Config,
        files: OpenFiles,
        tls: Option<&Arc<Tls>>,
        (hub, sensors): (&Arc<Hub>, &Arc<VirtualSensors>),
        runtime: &Runtime,
    ) -> anyhow::Result<Self> {
        let bound: Vec<_> = planned(config, files, tls)
            .into_iter()
            .map(|plan| Ok((plan.bind(tls)?, plan.start)))
            .collect::<anyhow::Result<_>>()?;
        let mut surroundings = Surroundings { hub, sensors, runtime, mqtt: None };
        let mut opened = Self { doors: Vec::new() };
        for (listeners, start) in bound {
            match start(listeners, &mut surroundings) {
                Ok(door) => opened.doors.push(door),
                Err(error) => {
                    // The first error is the one that matters.
                    drop(opened.stop(runtime));
                    return Err(error);
                }
            }
        }
        Ok(opened)
    }

    /// The addresses of all doors.
    pub(super) fn addresses(&self) -> impl Iterator<Item = ListenAddress> {
        self.doors.iter().flat_map(|door| door.addresses().iter().copied())
    }

    /// The address of connections with this scheme, if a door listens for them.
    pub(super) fn address(&self, scheme: &str) -> Option<SocketAddr> {
        self.addresses().find(|listens| listens.scheme == scheme).map(|listens| listens.address)
    }

    /// Stops all doors and waits for their ends.
    pub(super) fn stop(self, runtime: &Runtime) -> anyhow::Result<()> {
        // All begin to stop before the server waits for the first.
        let ending: Vec<_> = self.doors.into_iter().map(|door| (door.door(), door.stop())).collect();
        let ended: Vec<_> =
            ending.into_iter().map(|(door, ending)| (door, runtime.block_on(ending))).collect();
        for (door, ended) in ended {
            ended.with_context(|| format!("the door {} failed", door.name()))?;
        }
        Ok(())
    }
}

impl DoorPlan<'_> {
    /// Opens the ports of the door.
    fn bind(&self, tls: Option<&Arc<Tls>>) -> anyhow::Result<Listeners<TcpListener>> {
        let (option, address) = self.plain;
        if !self.plain_is_safe {
            warn_if_exposed(self.title, address);
        }
        let plain = bind(self.title, option, address)?;
        let encrypted = self.tls.zip(tls).map(|((option, address), tls)| {
            Ok::<_, anyhow::Error>((bind(self.title, option, address)?, Arc::clone(tls)))
        });
        Ok(Listeners { plain, tls: encrypted.transpose()? })
    }
}

fn mqtt_door(config: &Config, files: OpenFiles) -> DoorPlan<'_> {
    DoorPlan {
        title: "MQTT",
        plain: ("--mqtt", config.mqtt.listen),
        tls: config.mqtt.tls_listen.map(|address| ("mqtt.tls_listen =", address)),
        plain_is_safe: false,
        start: Box::new(move |listeners, surroundings| {
            let options = mqtt_options(config, files);
            let (workers, connections_max) = (options.workers, options.limits.connections_max);
            tracing::info!(workers, connections_max, open_files_cap = files.cap, "MQTT door");
            let door = MqttDoor::start(Arc::clone(surroundings.hub), listeners, options);
            let door = door.context("cannot start the MQTT door")?;
            surroundings.mqtt = Some(door.entrance());
            Ok(Box::new(door))
        }),
    }
}

fn http_door(config: &Config, files: OpenFiles) -> DoorPlan<'_> {
    DoorPlan {
        title: "HTTP",
        plain: ("--http", config.http.listen),
        tls: config.http.tls_listen.map(|address| ("http.tls_listen =", address)),
        plain_is_safe: false,
        start: Box::new(move |listeners, Surroundings { hub, sensors, runtime, mqtt }| {
            let (hub, sensors) = (Arc::clone(hub), Arc::clone(sensors));
            let options = http_options(config, files, mqtt.clone());
            let schemes = Schemes { plain: "http", tls: "https" };
            let door = DoorTask::start(hub::Door::Http, schemes, listeners, runtime, |listeners, stopped| {
                gateway::http_door::serve(hub, sensors, listeners, options, stopped)
            });
            Ok(Box::new(door?))
        }),
    }
}

fn postgres_door<'a>(
    config: &'a Config,
    postgres: &'a PostgresConfig,
    tls: Option<&'a Arc<Tls>>,
) -> DoorPlan<'a> {
    DoorPlan {
        title: "PostgreSQL",
        plain: ("--postgres", postgres.listen),
        // Clients ask for TLS on the same port.
        tls: None,
        plain_is_safe: postgres.tls_required,
        start: Box::new(move |listeners, Surroundings { hub, runtime, .. }| {
            let (hub, options) = (Arc::clone(hub), postgres_options(config, postgres, tls.cloned()));
            let schemes = Schemes { plain: "postgres", tls: "postgres" };
            let door =
                DoorTask::start(hub::Door::Postgres, schemes, listeners, runtime, |listeners, stopped| {
                    gateway::postgres::serve(hub, listeners.plain, options, stopped)
                });
            Ok(Box::new(door?))
        }),
    }
}

/// The ports of time-series databases. Each serves the interface of the HTTP door.
fn time_series_doors(config: &Config, files: OpenFiles) -> impl Iterator<Item = DoorPlan<'_>> {
    let time_series = &config.time_series;
    let doors = [
        ("OpenTSDB", "time_series.opentsdb_listen =", time_series.opentsdb, hub::Door::OpenTsdb),
        ("HiTSDB", "time_series.hitsdb_listen =", time_series.hitsdb, hub::Door::HiTsdb),
        ("InfluxDB", "time_series.influx_listen =", time_series.influx, hub::Door::Influx),
        ("GSN", "time_series.gsn_listen =", time_series.gsn, hub::Door::Gsn),
    ];
    let open =
        doors.into_iter().filter_map(|(title, setting, listen, door)| Some((title, setting, listen?, door)));
    open.map(move |(title, setting, listen, door)| DoorPlan {
        title,
        plain: (setting, listen),
        tls: None,
        plain_is_safe: false,
        start: Box::new(move |listeners, Surroundings { hub, sensors, runtime, .. }| {
            let (hub, sensors) = (Arc::clone(hub), Arc::clone(sensors));
            let options = time_series_options(config, files, door);
            let schemes = Schemes { plain: door.name(), tls: door.name() };
            let task = DoorTask::start(door, schemes, listeners, runtime, |listeners, stopped| {
                gateway::http_door::serve(hub, sensors, listeners, options, stopped)
            });
            Ok(Box::new(task?))
        }),
    })
}
