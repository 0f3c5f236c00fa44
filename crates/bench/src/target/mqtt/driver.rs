//! Scenarios of driver `mqtt`: devices that publish telemetry.
//!
//! `[dataset]` and phases: `payload` (`article`, `telemetry`, `meter`, `vehicle`), `payload_bytes`, `qos`, `version`,
//! `token_prefix`, `device_prefix`, `devices` (number to create, at least one per connection), `keep_alive_s`. Mixes of
//! a phase differ in the first three. Operations have no keys of their own, and a mix has one operation.
//!
//! `[target]`: without `url` the driver starts a server (on `data` if given), creates the devices, and reads back the
//! acknowledged points. `provision = false` and `verify = false` switch that off. The driver uses only MQTT with a
//! running server, unless `http`, `user` and `password` give access to its HTTP interface.

use std::net::SocketAddr;
use std::time::Duration;

use super::devices::{DeviceOptions, PhaseDevices};
use super::platform::{Fleet, Platform, TargetOptions, leftover_finding, opened_broker};
use super::verify::Verification;
use super::{Config, Messages, Mqtt, Tally};
use crate::engine::{SegmentOutcome, event};
use crate::error::{Error, Result};
use crate::options::Context;
use crate::progress::Progress;
use crate::result::{Check, RunResult};
use crate::sampling::Source;
use crate::scenario::{Phase, Scenario, TARGET_KEYS, typed};
use crate::target::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_EVENTS,
    TargetKind, Verdict,
};
use crate::target::plan::{plan, target_url};
use crate::target_url::MQTT;
use crate::tls::TlsClient;

/// The registration of this driver.
pub(crate) const KIND: TargetKind = TargetKind {
    name: "mqtt",
    new: |scenario| Ok(Box::new(MqttDriver::new(scenario)?)),
    target_keys: true,
    operation_keys: false,
    dataset_keys: true,
};

/// The driver of one scenario.
pub(super) struct MqttDriver {
    scenario: Scenario,
    target: TargetOptions,
    address: Option<SocketAddr>,
    /// TLS of the connections, known since `open`.
    tls: Option<TlsClient>,
    platform: Option<Platform>,
    /// For each mix of the latest phase, the tally of each device by its number.
    tallies: Vec<Vec<(u32, Tally)>>,
    connect_time: Duration,
    /// The first possible timestamp of the next phase.
    floor_ts_ms: u64,
}

impl MqttDriver {
    pub(super) fn new(scenario: &Scenario) -> std::result::Result<Self, String> {
        let has_target = !scenario.target.url.is_empty();
        if has_target {
            target_url(scenario, &MQTT)?;
        }
        let target: TargetOptions = typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
        target.check(has_target)?;
        for phase in &scenario.phases {
            PhaseDevices::read(scenario, phase)?;
        }
        Ok(Self {
            scenario: scenario.clone(),
            target,
            address: None,
            tls: None,
            platform: None,
            tallies: Vec::new(),
            connect_time: Duration::ZERO,
            floor_ts_ms: 0,
        })
    }
}

impl Driver for MqttDriver {
    fn capabilities(&self) -> Capabilities {
        // Each process reads back the points of its own devices.
        Capabilities {
            starts_server: self.starts_server(),
            verifies_parts: true,
            ..Capabilities::of_events(&self.scenario)
        }
    }

    fn phase_capabilities(&self, phase: &Phase) -> PhaseCapabilities {
        PhaseCapabilities::new(phase, &self.scenario, Some(SLICE_MS_EVENTS))
    }

    fn open(&mut self, context: &Context, progress: &Progress) -> Result<Opened> {
        let options = self.of_phase(&self.scenario.phases[0])?.options;
        let started = self.starts_server();
        let mut tls = None;
        let address = if started {
            let (address, platform) =
                Platform::start((&self.target, &self.fleet(&options)), &[], context, progress)?;
            self.platform = Some(platform);
            address
        } else {
            let url = target_url(&self.scenario, &MQTT).map_err(Error::Options)?;
            let address = url.resolve()?;
            (self.tls, tls) = (url.tls_client()?, url.verification());
            self.platform = Platform::running(&url, (&self.target, &self.fleet(&options)), progress)?;
            address
        };
        self.address = Some(address);
        let platform = self.platform.as_ref();
        self.floor_ts_ms = platform.map_or(self.floor_ts_ms, |platform| platform.floor_ts_ms);
        let target_overrides = platform.map(|it| it.target_overrides(&self.broker_url(address)));
        Ok(Opened {
            target_overrides: target_overrides.unwrap_or_default(),
            ..opened_broker(address, tls, platform)
        })
    }

    fn conclusions(&self, _: &RunResult) -> Vec<String> {
        if self.starts_server() {
            return Vec::new();
        }
        let options = self.of_phase(&self.scenario.phases[0]).ok();
        options
            .and_then(|first| leftover_finding(&self.scenario, &self.target, &self.fleet(&first.options)))
            .into_iter()
            .collect()
    }

    fn sources(&self) -> Vec<Box<dyn Source>> {
        // Only Tachograph has this address.
        let platform = self.platform.iter();
        platform.map(|platform| Box::new(platform.metrics()) as Box<dyn Source>).collect()
    }

    fn run(&mut self, run: PhaseRun<'_>) -> Result<Vec<SegmentOutcome>> {
        let PhaseRun { phase, part, shared, on_event } = run;
        let PhaseDevices { options, groups } = self.of_phase(phase)?;
        let address = self.address.expect(NOT_OPEN);
        let driver = Mqtt::new(Config {
            version: options.version().map_err(Error::Options)?,
            groups,
            token_prefix: options.token_prefix,
            keep_alive_s: options.keep_alive_s,
            floor_ts_ms: self.floor_ts_ms,
        });
        let plan = plan(phase, &self.scenario, address, part).over(self.tls.clone());
        let outcome = event::run(&driver, &plan, shared, on_event)?;
        self.tallies = vec![Vec::new(); phase.mixes.len()];
        for session in &outcome.sessions {
            self.tallies[session.group()].push((session.device(), session.tally));
        }
        self.connect_time = outcome.connect_time;
        Ok(outcome.segments)
    }

    fn verify(&mut self, end: &PhaseEnd<'_>) -> Result<Verdict> {
        let PhaseEnd { phase, part, segments, .. } = *end;
        let place = match part {
            (_, 1) => phase.name.clone(),
            (number, _) => format!("{}, generator {}", phase.name, number + 1),
        };
        let tallies = std::mem::take(&mut self.tallies);
        let floor_ts_ms = std::mem::take(&mut self.floor_ts_ms);
        let devices = || tallies.iter().flatten();
        let last = devices().map(|(_, tally)| tally.last_ts_ms + 1).max();
        self.floor_ts_ms = last.unwrap_or(0).max(floor_ts_ms);
        let opened = self.connect_time.as_secs_f64();
        let mut findings = vec![format!(
            "{place}: {} connections were opened in {opened:.2} s ({:.0}/s).",
            devices().count(),
            devices().count() as f64 / opened.max(1e-9)
        )];
        let Some(first) = segments.first() else { return Ok(Verdict { findings, ..Verdict::default() }) };
        if devices().all(|(_, tally)| tally.sent == 0) {
            return Ok(Verdict { findings, ..Verdict::default() });
        }
        let base_ts_ms = first.started_ms.max(floor_ts_ms);
        let groups = self.of_phase(phase)?.groups;
        let (verified, unread) = self.read_back(phase, &groups, &tallies, base_ts_ms)?;
        match &unread[..] {
            [] => {}
            _ if verified.is_none() => findings.push(format!("{place}: what was stored was not read back.")),
            some => findings.push(format!("{place}: what {} stored was not read back.", some.join(" and "))),
        }
        findings.extend(verified.as_ref().map(|verified| sentence(&place, verified)));
        let checks = verified.map_or_else(Vec::new, |verified| checks(&place, &verified));
        Ok(Verdict { checks, findings })
    }

    fn close(&mut self) -> Result<()> {
        self.platform.take().map_or(Ok(()), Platform::stop)
    }
}

impl MqttDriver {
    /// The address of the broker for other processes.
    fn broker_url(&self, address: SocketAddr) -> String {
        match self.tls {
            // The name and the files of TLS are parts of it.
            Some(_) => self.scenario.target.url.clone(),
            None => format!("mqtt://{address}"),
        }
    }

    fn starts_server(&self) -> bool {
        self.scenario.target.url.is_empty()
    }

    /// The devices of all phases.
    fn fleet(&self, options: &DeviceOptions) -> Fleet {
        let connected = self.scenario.phases.iter().map(Phase::connections).max().unwrap_or(0);
        Fleet {
            device_prefix: options.device_prefix.clone(),
            token_prefix: options.token_prefix.clone(),
            devices: options.devices.unwrap_or(connected),
            connected,
        }
    }

    fn of_phase(&self, phase: &Phase) -> Result<PhaseDevices> {
        PhaseDevices::read(&self.scenario, phase).map_err(Error::Options)
    }

    /// Reads back the stored points of each mix whose messages can be told apart. Also returns the names of the other
    /// mixes.
    fn read_back(
        &self,
        phase: &Phase,
        groups: &[Messages],
        tallies: &[Vec<(u32, Tally)>],
        base_ts_ms: u64,
    ) -> Result<(Option<Verification>, Vec<String>)> {
        let mut sum: Option<Verification> = None;
        let mut unread = Vec::new();
        for ((mix, Messages { payload, .. }), tallies) in phase.mixes.iter().zip(groups).zip(tallies) {
            if tallies.iter().all(|(_, tally)| tally.sent == 0) {
                continue;
            }
            let verified = match &self.platform {
                Some(platform) if payload.sequence_key().is_some() => {
                    platform.verify(tallies, &payload.keys(), base_ts_ms)?
                }
                _ => None,
            };
            match verified {
                Some(verified) => sum.get_or_insert_default().add(&verified),
                None => unread.push(format!("mix `{}`", mix.name)),
            }
        }
        Ok((sum, unread))
    }
}

fn checks(place: &str, verified: &Verification) -> Vec<Check> {
    let check = |what: &str, found: u64| Check::equal(format!("{what} ({place})"), 0, found);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn devices_that_stay_on_a_running_server_are_named_with_the_command_that_removes_them() {
        let said = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::load("thingsboard", &sets).unwrap();
            MqttDriver::new(&scenario).unwrap().conclusions(&example().result).join("\n")
        };
        assert_eq!(said(&[]), "", "a server of the run is removed");
        assert_eq!(said(&["target.url=mqtt://broker"]), "", "nothing is created there");
        let text = said(&["target.url=mqtt://broker", "target.password=x", "dataset.devices=2000"]);
        assert!(text.starts_with("The run leaves the devices `dev-0` to `dev-1999`"), "{text}");
        assert!(text.contains("seq 0 1999") && text.contains("--url http://broker:8080"), "{text}");
        assert!(!text.contains("password"), "{text}");
    }
}
