//! Keys of a scenario for devices: `[dataset]`, and the overrides of a phase or a mix.

use load::payload::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, Template};
use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use serde::Deserialize;
use wire::mqtt::QoS;

use super::gateway::GatewaySends;
use super::gateway_options::GatewayOptions;
use super::{Messages, Version, defaults};

/// Keys of the devices of one mix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceOptions {
    #[serde(default = "telemetry")]
    payload: Payload,
    #[serde(default = "defaults::payload_bytes")]
    payload_bytes: usize,
    #[serde(default = "defaults::qos")]
    qos: u8,
    #[serde(default = "defaults::version")]
    version: String,
    #[serde(default = "defaults::token_prefix")]
    pub(super) token_prefix: String,
    #[serde(default = "defaults::device_prefix")]
    pub(super) device_prefix: String,
    pub(super) devices: Option<u32>,
    #[serde(default = "defaults::keep_alive_s")]
    pub(super) keep_alive_s: u16,
    /// The number of devices behind each connection; `None` if connections are devices.
    pub(super) gateway_devices: Option<u32>,
    devices_per_message: Option<u32>,
    gateway_prefix: Option<String>,
    gateway_sends: Option<GatewaySends>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Payload {
    Article,
    Telemetry,
    Meter,
    Vehicle,
}

/// The default of `gateway_prefix`.
const GATEWAY_PREFIX: &str = "gateway-";

fn telemetry() -> Payload {
    Payload::Telemetry
}

/// The common keys of the devices of a phase, and the messages of each mix.
#[derive(Debug)]
pub(super) struct PhaseDevices {
    pub(super) options: DeviceOptions,
    pub(super) groups: Vec<Messages>,
}

impl PhaseDevices {
    pub(super) fn read(scenario: &Scenario, phase: &Phase) -> Result<Self, String> {
        // A separate check of `[dataset]` gives better suggestions.
        typed::<DeviceOptions>(scenario.dataset.clone(), "[dataset]", &[])?;
        Self::of(scenario, phase, &phase.place()).map_err(|what| phase.error(what))
    }

    fn of(scenario: &Scenario, phase: &Phase, place: &str) -> Result<Self, String> {
        if phase.duration.is_none() {
            return Err("it has no `duration` and would never end".to_owned());
        }
        let mut all: Option<DeviceOptions> = None;
        let mut groups = Vec::with_capacity(phase.mixes.len());
        for mix in &phase.mixes {
            let options: DeviceOptions = mix.options(&scenario.dataset, place)?;
            options.check(phase)?;
            groups.push(options.messages(mix, class(scenario, mix)?, phase.connections())?);
            match &all {
                Some(first) if first.of_all() != options.of_all() => {
                    return Err(format!(
                        "mix `{}` has other devices than `{}`: mixes differ in payload, payload_bytes, qos, devices_per_message and \
                         gateway_sends alone",
                        mix.name, phase.mixes[0].name
                    ));
                }
                Some(_) => {}
                None => all = Some(options),
            }
        }
        let options = all.ok_or("it has no mix")?;
        Ok(Self { options, groups })
    }
}

/// The class of a mix's operations: a device carries out one operation.
fn class(scenario: &Scenario, mix: &Mix) -> Result<u16, String> {
    match &mix.operations[..] {
        [name] => Ok(scenario.class_of(name)),
        _ if mix.arrival == Arrival::Idle => Ok(0),
        [] if scenario.operations.is_empty() => Err("the file has no [[operation]]".to_owned()),
        several => Err(format!(
            "mix `{}` has {} operations, and a device does one thing: say which with operations = [\"{}\"], and give others a mix \
             of their own",
            mix.name,
            several.len(),
            several.first().map_or("publish", String::as_str)
        )),
    }
}

impl DeviceOptions {
    /// The protocol version of all devices.
    pub(super) fn version(&self) -> Result<Version, String> {
        self.version.parse()
    }

    /// The keys that are the same for all mixes of a phase.
    fn of_all(&self) -> impl PartialEq + '_ {
        let Self { version, token_prefix, device_prefix, devices, keep_alive_s, .. } = self;
        let gateways = (self.gateway_devices, self.gateway_prefix.as_deref());
        (version, token_prefix, device_prefix, devices, keep_alive_s, gateways)
    }

    /// Gateway n is called by this and n.
    pub(super) fn gateway_prefix(&self) -> &str {
        self.gateway_prefix.as_deref().unwrap_or(GATEWAY_PREFIX)
    }

    fn gateway_options(&self) -> GatewayOptions<'_> {
        GatewayOptions {
            gateway_devices: self.gateway_devices,
            devices_per_message: self.devices_per_message,
            gateway_prefix: self.gateway_prefix.as_deref(),
            gateway_sends: self.gateway_sends,
            devices: self.devices,
            device_prefix: &self.device_prefix,
        }
    }

    /// `connections` is the number of those of all mixes.
    fn messages(&self, mix: &Mix, class: u16, connections: u32) -> Result<Messages, String> {
        let payload = match self.payload {
            Payload::Article => Template::article(),
            Payload::Telemetry => Template::new(self.payload_bytes),
            Payload::Meter => Template::meter(),
            Payload::Vehicle => Template::vehicle(),
        };
        let qos = QoS::from_bits(self.qos).unwrap_or(QoS::ExactlyOnce);
        let gateway = self.gateway_options().gateway(&payload, connections)?;
        Ok(Messages { devices: mix.connections, qos, class, payload, gateway })
    }

    fn check(&self, phase: &Phase) -> Result<(), String> {
        self.version()?;
        if self.qos > 2 {
            return Err(format!("qos = {}; use 0, 1 or 2", self.qos));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of_run(scenario: &str, sets: &[&str]) -> Result<PhaseDevices, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(scenario, &sets).map_err(|error| error.to_string())?;
        PhaseDevices::read(&scenario, scenario.phases.last().unwrap())
    }

    #[test]
    fn each_mix_publishes_what_it_says_and_the_phase_says_the_rest() {
        let mixes = r#"phase.run.mix=[{ name = "meters", connections = 3, qos = 0, payload = "meter" }, { name = "cars", connections = 2 }]"#;
        let read = of_run("thingsboard", &[mixes, "phase.run.qos=2", "dataset.payload_bytes=300"]).unwrap();
        let [meters, cars] = &read.groups[..] else { panic!("{read:?}") };
        assert_eq!(
            (meters.devices, meters.qos, cars.devices, cars.qos),
            (3, QoS::AtMostOnce, 2, QoS::ExactlyOnce)
        );
        assert_eq!((meters.payload.sequence_key(), cars.payload.size_bytes()), (None, 300));
    }

    #[test]
    fn connections_with_devices_behind_them_are_gateways() {
        let read = of_run("gateway", &["phase.most.devices_per_message=7"]).unwrap();
        let [Messages { gateway: Some(gateway), .. }] = &read.groups[..] else { panic!("{read:?}") };
        assert_eq!((gateway.devices, gateway.devices_per_message), (10_000, 7));
        assert_eq!((gateway.sends, gateway.device_prefix.as_str()), (GatewaySends::Telemetry, "dev-"));
        assert_eq!(read.options.gateway_prefix(), "gateway-");
        assert!(of_run("thingsboard", &[]).unwrap().groups[0].gateway.is_none());
    }

    #[test]
    fn what_would_be_published_otherwise_than_said_is_refused() {
        let version = r#"phase.run.mix=[{ name = "a" }, { name = "b", version = "5" }]"#;
        for (scenario, sets, expected) in [
            ("thingsboard", &[version][..], "mix `b` has other devices than `a`"),
            (
                "thingsboard-reconnect",
                &["phase.after.operations=['publish', 'connect']"],
                "a device does one thing",
            ),
            ("thingsboard", &["phase.run.qos=3"], "phase `run`: qos = 3"),
            ("thingsboard", &["dataset.devices=3"], "need as many devices"),
            ("thingsboard", &["dataset.colour=1"], "[dataset]: unknown field"),
            ("thingsboard", &["dataset.devices_per_message=9"], "belongs to gateways"),
            ("gateway", &["dataset.devices=10000"], "gateway_devices says"),
            ("gateway", &["phase.most.devices_per_message=10001"], "use 1 to 10000"),
            ("gateway", &["dataset.gateway_devices=60000", "phase.most.connections=2"], "at most 100000"),
            ("gateway", &["dataset.payload=article"], "payload = \"telemetry\" or \"vehicle\""),
            ("gateway", &["dataset.payload_bytes=1000", "phase.most.devices_per_message=2000"], "bytes"),
        ] {
            let error = of_run(scenario, sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{sets:?}: {error}");
        }
    }
}
