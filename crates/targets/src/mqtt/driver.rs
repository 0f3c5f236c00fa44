//! Scenarios of driver `mqtt`: devices that publish telemetry, or gateways that do so for the devices behind them.
//!
//! `[dataset]` and phases: `payload` (`article`, `telemetry`, `meter`, `vehicle`), `payload_bytes`, `qos`, `version`,
//! `token_prefix`, `device_prefix`, `devices` (number to create, at least one per connection), `keep_alive_s`. Mixes of
//! a phase differ in the first three. Operations have no keys of their own, and a mix has one operation.
//!
//! With `gateway_devices` each connection is a gateway with that many devices behind it: `devices_per_message`, `gateway_prefix`,
//! `gateway_sends` (`telemetry`, `connect`). The driver creates gateways, and the server creates the devices when a gateway names them.
//!
//! `[target]`: without `url` the driver starts a server (on `data` if given), creates the devices, and reads back the
//! acknowledged points. `provision = false` and `verify = false` switch that off. The driver uses only MQTT with a
//! running server, unless `http`, `user` and `password` give access to its HTTP interface.

use std::net::SocketAddr;
use std::time::Duration;

use clients::target_url::MQTT;
use clients::tls::TlsClient;
use load::engine::{SegmentOutcome, event};
use load::progress::Progress;
use load::result::RunResult;
use load::sampling::Source;
use load::scenario::{Phase, Scenario, TARGET_KEYS, typed};
use load::{Error, Result};

use super::devices::{DeviceOptions, PhaseDevices};
use super::findings::{checks, per_point, sentence};
use super::platform::{Fleet, Platform, TargetOptions, leftover_finding, opened_broker};
use super::verify::Verification;
use super::{Config, GatewaySends, Messages, Mqtt, Tally};
use crate::Context;
use crate::driver::{
    Capabilities, Driver, NOT_OPEN, Opened, PhaseCapabilities, PhaseEnd, PhaseRun, SLICE_MS_EVENTS,
    TargetKind, Verdict,
};
use crate::plan::{plan, target_url};

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
    /// The connections of this process in the latest phase.
    connections: usize,
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
            connections: 0,
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
        self.create_gateways(&options, progress)?;
        let platform = self.platform.as_ref();
        self.floor_ts_ms = platform.map_or(self.floor_ts_ms, |platform| platform.floor_ts_ms);
        let target_overrides = platform.map(|it| it.target_overrides(&self.broker_url(address)));
        Ok(Opened {
            target_overrides: target_overrides.unwrap_or_default(),
            ..opened_broker(address, tls, platform)
        })
    }

    fn conclusions(&self, result: &RunResult) -> Vec<String> {
        let mut findings: Vec<String> =
            self.scenario.phases.iter().filter_map(|phase| self.figures(phase, result)).collect();
        if !self.starts_server()
            && let Ok(first) = self.of_phase(&self.scenario.phases[0])
        {
            let fleets = self.created(&first.options);
            let left =
                fleets.iter().filter_map(|fleet| leftover_finding(&self.scenario, &self.target, fleet));
            findings.extend(left);
        }
        findings
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
            self.tallies[session.group()].extend(session.tallies());
        }
        self.connections = outcome.sessions.len();
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
        let (connections, opened) = (self.connections, self.connect_time.as_secs_f64());
        let mut findings = vec![format!(
            "{place}: {connections} connections were opened in {opened:.2} s ({:.0}/s).",
            connections as f64 / opened.max(1e-9)
        )];
        let Some(first) = segments.first() else { return Ok(Verdict { findings, ..Verdict::default() }) };
        if devices().all(|(_, tally)| tally.sent == 0) {
            return Ok(Verdict { findings, ..Verdict::default() });
        }
        let base_ts_ms = first.started_ms.max(floor_ts_ms);
        let PhaseDevices { options, groups } = self.of_phase(phase)?;
        let what = if options.gateway_devices.is_some() { "points" } else { "messages" };
        self.find_devices_behind(&options, &tallies)?;
        let (verified, unread) = self.read_back(phase, &groups, &tallies, base_ts_ms)?;
        match &unread[..] {
            [] => {}
            _ if verified.is_none() => findings.push(format!("{place}: what was stored was not read back.")),
            some => findings.push(format!("{place}: what {} stored was not read back.", some.join(" and "))),
        }
        findings.extend(verified.as_ref().map(|verified| sentence(&place, what, verified)));
        let checks = verified.map_or_else(Vec::new, |verified| checks(&place, what, &verified));
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
            // The name and the TLS files are parts of it.
            Some(_) => self.scenario.target.url.clone(),
            None => format!("mqtt://{address}"),
        }
    }

    fn starts_server(&self) -> bool {
        self.scenario.target.url.is_empty()
    }

    /// The most connections of a phase.
    fn connected(&self) -> u32 {
        self.scenario.phases.iter().map(Phase::connections).max().unwrap_or(0)
    }

    /// The devices of all phases that exist before the first. Gateways have none: the server creates the devices behind them.
    fn fleet(&self, options: &DeviceOptions) -> Fleet {
        let connected = if options.gateway_devices.is_some() { 0 } else { self.connected() };
        Fleet {
            device_prefix: options.device_prefix.clone(),
            token_prefix: options.token_prefix.clone(),
            devices: options.devices.unwrap_or(connected),
            connected,
        }
    }

    /// The devices that the run creates, also those behind gateways.
    fn created(&self, options: &DeviceOptions) -> Vec<Fleet> {
        let fleet = self.fleet(options);
        let Some(behind_each) = options.gateway_devices else { return vec![fleet] };
        let of = |prefix: &str, devices| Fleet { device_prefix: prefix.to_owned(), devices, ..fleet.clone() };
        let gateways = self.connected();
        let behind = gateways.saturating_mul(behind_each);
        vec![of(options.gateway_prefix(), gateways), of(&options.device_prefix, behind)]
    }

    /// Creates the gateways, unless the server knows them.
    fn create_gateways(&mut self, options: &DeviceOptions, progress: &Progress) -> Result<()> {
        let (gateways, is_running) = (self.connected(), !self.starts_server());
        let (Some(platform), Some(behind_each)) = (&mut self.platform, options.gateway_devices) else {
            return Ok(());
        };
        if self.target.provisions(is_running) {
            progress.step(format!("creating {gateways} gateways"));
            for number in 0..gateways {
                let name = format!("{}{number}", options.gateway_prefix());
                platform.client().create_gateway(&name, &format!("{}{number}", options.token_prefix))?;
            }
        }
        let behind = gateways.saturating_mul(behind_each);
        platform.go_after_earlier_gateways(&options.device_prefix, behind, progress)
    }

    /// Finds the devices behind gateways that the server has created by their names.
    fn find_devices_behind(&mut self, options: &DeviceOptions, tallies: &[Vec<(u32, Tally)>]) -> Result<()> {
        let named = tallies.iter().flatten().filter(|(_, tally)| tally.sent > 0);
        let count = named.map(|(device, _)| device + 1).max().unwrap_or(0);
        match &mut self.platform {
            Some(platform) if options.gateway_devices.is_some() => {
                platform.find_devices(&options.device_prefix, count)
            }
            _ => Ok(()),
        }
    }

    /// The figures of a phase of gateways by point: what they have in a message for one device.
    fn figures(&self, phase: &Phase, result: &RunResult) -> Option<String> {
        let groups = self.of_phase(phase).ok()?.groups;
        let [Messages { gateway: Some(gateway), .. }] = &groups[..] else { return None };
        let measured = result.phases.iter().find(|known| known.name == phase.name && known.measured)?;
        (gateway.sends == GatewaySends::Telemetry).then(|| per_point(measured, gateway.devices_per_message))
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
        for ((mix, Messages { payload, gateway, .. }), tallies) in phase.mixes.iter().zip(groups).zip(tallies)
        {
            if tallies.iter().all(|(_, tally)| tally.sent == 0) {
                continue;
            }
            let verified = match &self.platform {
                Some(platform) if payload.sequence_key().is_some() => {
                    // A device behind a gateway may not exist before a message names it.
                    let exists = |(_, tally): &(u32, Tally)| gateway.is_none() || tally.sent > 0;
                    let known: Vec<_> = tallies.iter().copied().filter(exists).collect();
                    platform.verify(&known, &payload.keys(), base_ts_ms)?
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

#[cfg(test)]
mod tests {
    use super::*;
    use load::result::example::example;

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

    #[test]
    fn gateways_and_the_devices_behind_them_stay_too() {
        let sets = ["target.url=mqtt://broker", "target.password=x", "dataset.gateway_devices=200"]
            .map(str::to_owned);
        let scenario = Scenario::load("gateway", &sets).unwrap();
        let driver = MqttDriver::new(&scenario).unwrap();
        let findings = driver.conclusions(&example().result);
        let [figures, gateways, devices] = &findings[..] else { panic!("{findings:?}") };
        assert!(
            figures.starts_with("run: ") && figures.contains("points/s were acknowledged, 100 in a message")
        );
        assert!(gateways.contains("`gateway-0` to `gateway-0`"), "{gateways}");
        assert!(devices.contains("`dev-0` to `dev-199`"), "{devices}");
        let options = driver.of_phase(&scenario.phases[0]).unwrap().options;
        assert_eq!(driver.fleet(&options).devices, 0, "the server creates them");
    }
}
