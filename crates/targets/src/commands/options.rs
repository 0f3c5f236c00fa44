//! Keys of a scenario for users and devices: `[dataset]`, and the overrides of a phase or a mix.

use load::payload::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use serde::Deserialize;

use super::command::Command;
use crate::mqtt::{Version, defaults};

/// What the connections of a mix are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// Devices, over MQTT.
    Device,
    /// Users, over HTTP.
    User,
}

/// Keys of the connections of one mix.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandOptions {
    pub(super) command: Command,
    role: Option<Role>,
    #[serde(default = "defaults::payload_bytes")]
    pub(super) payload_bytes: usize,
    #[serde(default = "defaults::version")]
    version: String,
    #[serde(default = "defaults::token_prefix")]
    pub(super) token_prefix: String,
    #[serde(default = "defaults::device_prefix")]
    pub(super) device_prefix: String,
    #[serde(default = "defaults::keep_alive_s")]
    pub(super) keep_alive_s: u16,
}

/// The connections of one mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) role: Role,
    pub(super) connections: u32,
    /// The class of its operations: telemetry or commands.
    pub(super) class: u16,
    /// The class of attributes that arrive at devices.
    pub(super) push: u16,
}

/// The mixes of a phase: the devices and the users.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseClients {
    pub(super) options: CommandOptions,
    pub(super) groups: Vec<Group>,
    pub(super) devices: Group,
    pub(super) users: Group,
}

impl PhaseClients {
    pub(super) fn read(scenario: &Scenario, phase: &Phase) -> Result<Self, String> {
        // A separate check of `[dataset]` gives better suggestions.
        typed::<CommandOptions>(scenario.dataset.clone(), "[dataset]", &[])?;
        Self::of(scenario, phase, &phase.place()).map_err(|what| phase.error(what))
    }

    fn of(scenario: &Scenario, phase: &Phase, place: &str) -> Result<Self, String> {
        if phase.duration.is_none() {
            return Err("it has no `duration` and would never end".to_owned());
        }
        let mut all: Vec<CommandOptions> = Vec::new();
        let mut groups = Vec::new();
        for mix in &phase.mixes {
            let options: CommandOptions = mix.options(&scenario.dataset, place)?;
            groups.push(options.group(scenario, mix)?);
            all.push(CommandOptions { role: None, ..options });
        }
        let of_role = |role: Role| groups.iter().copied().find(|group| group.role == role);
        let (Some(devices), Some(users), 2) = (of_role(Role::Device), of_role(Role::User), groups.len())
        else {
            return Err("it needs one mix with role = \"device\" and one with role = \"user\"".to_owned());
        };
        if all.windows(2).any(|two| two[0] != two[1]) {
            return Err(
                "its mixes differ in more than their role: set all other keys in [dataset]".to_owned()
            );
        }
        if users.connections > devices.connections {
            return Err(format!(
                "{} users need as many devices, not {}: each commands its own",
                users.connections, devices.connections
            ));
        }
        let options = all.swap_remove(0);
        Ok(Self { options, groups, devices, users })
    }

    /// The protocol version of the devices.
    pub(super) fn version(&self) -> Result<Version, String> {
        self.options.version.parse()
    }
}

impl CommandOptions {
    fn group(&self, scenario: &Scenario, mix: &Mix) -> Result<Group, String> {
        self.version.parse::<Version>()?;
        let role = self
            .role
            .ok_or_else(|| format!("mix `{}` has no role: use role = \"device\" or \"user\"", mix.name))?;
        if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&self.payload_bytes) {
            return Err(format!(
                "payload_bytes = {}; use {PAYLOAD_BYTES_MIN} to {PAYLOAD_BYTES_MAX}",
                self.payload_bytes
            ));
        }
        let is_possible = mix.arrival.is_open_loop()
            && !matches!(mix.arrival, Arrival::Steps | Arrival::Staircase)
            || mix.arrival == Arrival::Closed
            || mix.arrival == Arrival::Idle && role == Role::Device;
        if !is_possible {
            return Err(format!(
                "mix `{}`: use arrival = \"poisson\", \"fixed\" or \"closed\", and for devices \"idle\"",
                mix.name
            ));
        }
        let class = |name: Option<&String>| name.map_or(0, |name| scenario.class_of(name));
        if mix.operations.is_empty() {
            return Err("the file has no [[operation]]".to_owned());
        }
        let (class, push) = (class(mix.operations.first()), class(mix.operations.last()));
        Ok(Group { role, connections: mix.connections, class, push })
    }
}
