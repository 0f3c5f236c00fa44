//! Scenarios of driver `mqtt`: devices that publish telemetry.
//!
//! `[dataset]` and phases: `payload` (`article`, `telemetry`, `meter`, `vehicle`), `payload_bytes`, `qos`, `version`,
//! `token_prefix`, `device_prefix`, `keep_alive_s`. Operations have no keys of their own; the class of a message is the
//! mix's first operation. Without `target.url` a server is started, its devices provisioned, and what it stored is read back.

use std::net::SocketAddr;

use serde::Deserialize;
use toml::Table;
use wire::mqtt::QoS;

use super::Driver;
use super::plan::{Url, plan};
use crate::driver::mqtt::{Config, Mqtt, Tally, Version};
use crate::engine::{Event, SegmentOutcome, Shared, event};
use crate::error::{Error, Result};
use crate::http::Client;
use crate::options::Context;
use crate::payload::Template;
use crate::progress::Progress;
use crate::result::{Check, Target};
use crate::scenario::{Phase, Scenario, typed};
use crate::server::{ADMIN, Place, Server};
use crate::telemetry::{Prometheus, Source};
use crate::thingsboard::verify;

const PORT: u16 = 1_883;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default = "telemetry")]
    payload: Payload,
    #[serde(default = "hundred")]
    payload_bytes: usize,
    #[serde(default = "one")]
    qos: u8,
    #[serde(default = "v311")]
    version: String,
    #[serde(default = "tok")]
    token_prefix: String,
    #[serde(default = "dev")]
    device_prefix: String,
    #[serde(default = "minute")]
    keep_alive_s: u16,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Payload {
    Article,
    Telemetry,
    Meter,
    Vehicle,
}

fn telemetry() -> Payload {
    Payload::Telemetry
}

fn hundred() -> usize {
    100
}

fn one() -> u8 {
    1
}

fn v311() -> String {
    "3.1.1".to_owned()
}

fn tok() -> String {
    "tok".to_owned()
}

fn dev() -> String {
    "dev-".to_owned()
}

fn minute() -> u16 {
    60
}

impl Own {
    fn template(&self) -> Template {
        match self.payload {
            Payload::Article => Template::article(),
            Payload::Telemetry => Template::new(self.payload_bytes),
            Payload::Meter => Template::meter(),
            Payload::Vehicle => Template::vehicle(),
        }
    }

    fn qos(&self) -> QoS {
        match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        }
    }
}

/// A server that this run started. Dropping it kills the process and removes its directory.
struct OwnServer {
    server: Server,
    client: Client,
    ids: Vec<String>,
    /// Where it tells its own figures.
    metrics: String,
    _data: tempfile::TempDir,
}

/// The driver of one scenario.
pub(super) struct MqttDriver {
    scenario: Scenario,
    address: Option<SocketAddr>,
    started: Option<OwnServer>,
    /// Of the phase that ended last.
    tallies: Vec<Tally>,
    /// First possible timestamp of the next phase.
    floor_ts_ms: u64,
}

impl MqttDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        if !scenario.target.url.is_empty() {
            Url::parse(&scenario.target.url, &["mqtt", "tcp"])?;
        }
        for phase in &scenario.phases {
            let own = own(scenario, phase)?;
            own.version.parse::<Version>().map_err(|e| format!("phase `{}`: {e}", phase.name))?;
            if own.qos > 2 {
                return Err(format!("phase `{}`: qos = {}; use 0, 1 or 2", phase.name, own.qos));
            }
            if phase.duration.is_none() {
                return Err(format!("phase `{}`: it has no `duration` and would never end", phase.name));
            }
        }
        Ok(Self {
            scenario: scenario.clone(),
            address: None,
            started: None,
            tallies: Vec::new(),
            floor_ts_ms: 0,
        })
    }

    fn start(&mut self, context: &Context, progress: &Progress) -> Result<Target> {
        let data = tempfile::Builder::new()
            .prefix("tacho-bench-")
            .tempdir_in(".")
            .map_err(Error::io("making a data directory"))?;
        let place = Place::new(&context.server_binary, data.path())?;
        progress.step("starting a server on a fresh directory".to_owned());
        let server = Server::start(&place)?;
        let client = Client::login(&place.http_url(), ADMIN, &place.admin_password()?)?;
        let own = own(&self.scenario, &self.scenario.phases[0]).map_err(Error::Options)?;
        let devices = self.scenario.phases.iter().map(Phase::connections).max().unwrap_or(0);
        progress.step(format!("provisioning {devices} devices"));
        client.provision(devices, &own.device_prefix, &own.token_prefix)?;
        let ids = client.device_ids(&own.device_prefix, devices)?;
        let durability = client.status()["durability"].as_str().unwrap_or("unknown").to_owned();
        self.address = Some(place.mqtt);
        self.started = Some(OwnServer {
            server,
            client,
            ids,
            metrics: format!("{}/metrics", place.http_url()),
            _data: data,
        });
        Ok(Target {
            address: place.mqtt.to_string(),
            product: Some(format!("tacho {}", env!("CARGO_PKG_VERSION"))),
            started_by_run: true,
            settings: [("durability".to_owned(), durability)].into(),
        })
    }
}

fn own(scenario: &Scenario, phase: &Phase) -> std::result::Result<Own, String> {
    let mut table: Table = scenario.dataset.clone();
    // All mixes publish the same messages; what differs is how often.
    phase.mixes.iter().for_each(|mix| table.extend(mix.own.clone()));
    typed(
        table,
        &format!("phase `{}`", phase.name),
        &["duration", "warmup", "connections", "arrival", "operations", "threads"],
    )
}

impl Driver for MqttDriver {
    fn classes(&self) -> Vec<String> {
        self.scenario.operations.iter().map(|operation| operation.name.clone()).collect()
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Target> {
        if self.scenario.target.url.is_empty() {
            return self.start(context, progress);
        }
        let url = Url::parse(&self.scenario.target.url, &["mqtt", "tcp"]).map_err(Error::Options)?;
        let address = url.resolve(PORT)?;
        self.address = Some(address);
        Ok(Target { address: address.to_string(), ..Target::default() })
    }

    fn server_pid(&self) -> Option<u32> {
        self.started.as_ref().map(|started| started.server.sampled().pid())
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        let metrics = |started: &OwnServer| -> Box<dyn Source> {
            Box::new(Prometheus::new(&started.metrics, "tacho", None))
        };
        self.started.iter().map(metrics).collect()
    }

    fn run(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        shared: &Shared,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Vec<SegmentOutcome>> {
        let own = own(&self.scenario, phase).map_err(Error::Options)?;
        let address = self.address.ok_or_else(|| Error::Options("BUG: the driver is not open".to_owned()))?;
        let publishing = phase.mixes.iter().find(|mix| mix.arrival != crate::scenario::Arrival::Reopen);
        let class =
            publishing.and_then(|mix| mix.operations.first()).map_or(0, |name| self.scenario.class_of(name));
        let driver = Mqtt::new(Config {
            version: own.version.parse().map_err(Error::Options)?,
            qos: own.qos(),
            class,
            token_prefix: own.token_prefix.clone(),
            keep_alive_s: own.keep_alive_s,
            payload: own.template(),
            floor_ts_ms: self.floor_ts_ms,
        });
        let plan = plan(phase, &self.scenario, address, self.classes(), part);
        let outcome = event::run(&driver, &plan, shared, on_event)?;
        self.tallies = outcome.sessions.iter().map(|session| session.tally).collect();
        Ok(outcome.segments)
    }

    fn after(
        &mut self,
        phase: &Phase,
        _part: (u32, u32),
        segments: &[SegmentOutcome],
    ) -> Result<(Vec<Check>, Vec<String>)> {
        let tallies = std::mem::take(&mut self.tallies);
        let floor_ts_ms = std::mem::take(&mut self.floor_ts_ms);
        self.floor_ts_ms = tallies.iter().map(|tally| tally.last_ts_ms + 1).max().unwrap_or(0);
        let own = own(&self.scenario, phase).map_err(Error::Options)?;
        let template = own.template();
        let (Some(started), Some(first)) = (&self.started, segments.first()) else {
            return Ok((Vec::new(), Vec::new()));
        };
        if template.sequence_key().is_none() || tallies.iter().all(|tally| tally.sent == 0) {
            return Ok((Vec::new(), Vec::new()));
        }
        let verified = verify::verify(&verify::Job {
            client: &started.client,
            ids: &started.ids[..tallies.len()],
            tallies: &tallies,
            keys: &template.keys(),
            base_ts_ms: first.started_ms.max(floor_ts_ms),
        })?;
        let check = |what: &str, found: u64| Check {
            what: format!("{what} ({})", phase.name),
            expected: "0".to_owned(),
            found: found.to_string(),
            passed: found == 0,
        };
        Ok((
            vec![
                check("acknowledged messages that are not stored", verified.missing),
                check("points stored that were never sent", verified.surplus),
                check("sampled rows with wrong values", verified.wrong_rows),
            ],
            vec![format!(
                "{} points stored of {} acknowledged were counted, {} of them compared value by value.",
                verified.stored, verified.acked, verified.sampled_rows
            )],
        ))
    }
}
