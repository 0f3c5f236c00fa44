//! Scenarios of driver `mqtt`: devices that publish telemetry.
//!
//! `[dataset]` and phases: `payload` (`article`, `telemetry`, `meter`, `vehicle`), `payload_bytes`, `qos`, `version`,
//! `token_prefix`, `device_prefix`, `devices` (how many are created, at least one per connection), `keep_alive_s`. Operations have no
//! keys of their own; the class of a message is the mix's first operation.
//!
//! `[target]`: without `url` a server is started (on `data` if that is given), its devices are created, and what it
//! acknowledged is read back; `provision = false` and `verify = false` leave that out. A running server is only spoken to by
//! MQTT unless `http`, `user` and `password` say how to log in to it.

mod platform;
mod verify;

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use toml::Table;
use wire::mqtt::QoS;

use super::plan::{Url, plan};
use super::turns::SLICE_MS_EVENTS;
use super::{Counts, Driver};
use crate::driver::mqtt::{Config, Mqtt, Tally, Version};
use crate::engine::{Event, SegmentOutcome, Shared, event};
use crate::error::{Error, Result};
use crate::options::Context;
use crate::payload::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, Template};
use crate::progress::Progress;
use crate::result::{Check, Target};
use crate::scenario::{Phase, Scenario, typed};
use crate::telemetry::{Prometheus, Source};
use platform::{Platform, TargetOwn};
use verify::Verification;

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
    devices: Option<u32>,
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

/// The driver of one scenario.
pub(super) struct MqttDriver {
    scenario: Scenario,
    target: TargetOwn,
    address: Option<SocketAddr>,
    platform: Option<Platform>,
    /// Of the phase that ended last, with the numbers of the devices.
    tallies: Vec<(u32, Tally)>,
    connect_time: Duration,
    /// First possible timestamp of the next phase.
    floor_ts_ms: u64,
}

impl MqttDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let has_target = !scenario.target.url.is_empty();
        if has_target {
            Url::parse(&scenario.target.url, &["mqtt", "tcp"])?;
        }
        let target: TargetOwn = typed(scenario.target.own.clone(), "[target]", &["url", "pid"])?;
        target.check(has_target)?;
        for phase in &scenario.phases {
            own(scenario, phase)?.check(phase).map_err(|what| format!("phase `{}`: {what}", phase.name))?;
        }
        Ok(Self {
            scenario: scenario.clone(),
            target,
            address: None,
            platform: None,
            tallies: Vec::new(),
            connect_time: Duration::ZERO,
            floor_ts_ms: 0,
        })
    }
}

impl Own {
    fn check(&self, phase: &Phase) -> std::result::Result<(), String> {
        self.version.parse::<Version>()?;
        if self.qos > 2 {
            return Err(format!("qos = {}; use 0, 1 or 2", self.qos));
        }
        if phase.duration.is_none() {
            return Err("it has no `duration` and would never end".to_owned());
        }
        if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&self.payload_bytes) {
            let range = format!("{PAYLOAD_BYTES_MIN} (timestamp and sequence number) to {PAYLOAD_BYTES_MAX}");
            return Err(format!("payload_bytes = {}; use {range}", self.payload_bytes));
        }
        match self.devices {
            Some(devices) if devices < phase.connections() => {
                Err(format!("{} connections need as many devices, not {devices}", phase.connections()))
            }
            _ => Ok(()),
        }
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
        let own = own(&self.scenario, &self.scenario.phases[0]).map_err(Error::Options)?;
        let (address, started) = if self.scenario.target.url.is_empty() {
            let own = (&self.target, &own);
            let (address, platform) = Platform::start(&self.scenario, own, context, progress)?;
            self.platform = Some(platform);
            (address, true)
        } else {
            let url = Url::parse(&self.scenario.target.url, &["mqtt", "tcp"]).map_err(Error::Options)?;
            let address = url.resolve(PORT)?;
            self.platform = Platform::running(address, &self.scenario, (&self.target, &own), progress)?;
            (address, false)
        };
        self.address = Some(address);
        let mut target =
            Target { address: address.to_string(), started_by_run: started, ..Target::default() };
        if let Some(platform) = &self.platform {
            self.floor_ts_ms = platform.floor_ts_ms;
            target.product = started.then(|| format!("tacho {}", env!("CARGO_PKG_VERSION")));
            target.settings = [("durability".to_owned(), platform.durability.clone())].into();
        }
        Ok(target)
    }

    fn starts_server(&self) -> bool {
        self.scenario.target.url.is_empty()
    }

    fn told(&self) -> Table {
        self.platform.as_ref().zip(self.address).map(|(platform, at)| platform.told(at)).unwrap_or_default()
    }

    fn slice_ms(&self, _: &Phase) -> Option<u32> {
        Some(SLICE_MS_EVENTS)
    }

    fn server_pid(&self) -> Option<u32> {
        Some(self.platform.as_ref()?.server.as_ref()?.sampled().pid())
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        // Another broker has no such address.
        let platform = self.platform.iter();
        platform.map(|platform| Box::new(Prometheus::tacho(&platform.http)) as Box<dyn Source>).collect()
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
        self.tallies = outcome.sessions.iter().map(|session| (session.device(), session.tally)).collect();
        self.connect_time = outcome.connect_time;
        Ok(outcome.segments)
    }

    fn after(
        &mut self,
        phase: &Phase,
        part: (u32, u32),
        segments: &[SegmentOutcome],
        _all_did: &Counts,
    ) -> Result<(Vec<Check>, Vec<String>)> {
        // Each process reads back what its own devices sent.
        let place = match part {
            (_, 1) => phase.name.clone(),
            (number, _) => format!("{}, generator {}", phase.name, number + 1),
        };
        let tallies = std::mem::take(&mut self.tallies);
        let floor_ts_ms = std::mem::take(&mut self.floor_ts_ms);
        let last = tallies.iter().map(|(_, tally)| tally.last_ts_ms + 1).max();
        self.floor_ts_ms = last.unwrap_or(0).max(floor_ts_ms);
        let opened = self.connect_time.as_secs_f64();
        let mut findings = vec![format!(
            "{place}: {} connections were opened in {opened:.2} s ({:.0}/s).",
            tallies.len(),
            tallies.len() as f64 / opened.max(1e-9)
        )];
        let template = own(&self.scenario, phase).map_err(Error::Options)?.template();
        let Some(first) = segments.first() else { return Ok((Vec::new(), findings)) };
        if tallies.iter().all(|(_, tally)| tally.sent == 0) {
            return Ok((Vec::new(), findings));
        }
        let base_ts_ms = first.started_ms.max(floor_ts_ms);
        let verified = match &self.platform {
            Some(platform) if template.sequence_key().is_some() => {
                platform.verify(&tallies, &template.keys(), base_ts_ms)?
            }
            _ => None,
        };
        let Some(verified) = verified else {
            findings.push(format!("{place}: what was stored was not read back."));
            return Ok((Vec::new(), findings));
        };
        findings.push(sentence(&place, &verified));
        Ok((checks(&place, &verified), findings))
    }

    fn close(&mut self) -> Result<()> {
        self.platform.take().map_or(Ok(()), Platform::stop)
    }
}

fn checks(place: &str, verified: &Verification) -> Vec<Check> {
    let check = |what: &str, found: u64| Check {
        what: format!("{what} ({place})"),
        expected: "0".to_owned(),
        found: found.to_string(),
        passed: found == 0,
    };
    vec![
        check("acknowledged messages that are not stored", verified.missing),
        check("points stored that were never sent", verified.surplus),
        check("sampled rows with wrong values", verified.wrong_rows),
    ]
}

fn sentence(place: &str, verified: &Verification) -> String {
    let Verification { devices, acked, sent, stored, sampled_devices, sampled_rows, took_s, .. } = verified;
    let first = verified.first_difference.as_deref().map(|what| format!(" First difference: {what}."));
    format!(
        "{place}: {devices} devices sent {sent} messages, {acked} were acknowledged, {stored} points are stored; {sampled_rows} rows of \
         {sampled_devices} devices were compared value by value ({took_s:.1} s).{}",
        first.unwrap_or_default()
    )
}
