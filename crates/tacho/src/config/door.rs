//! The settings that every door has under the same names: limits, and load balancers.

use std::num::NonZeroU32;

use gateway::door::{DoorLimits, Networks};

use super::error::ConfigError;
use super::raw::{RawHttp, RawMqtt, RawPostgres};

/// The common settings of a door, as written.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawDoor<'a> {
    section: &'static str,
    connections_max: usize,
    connections_per_address_max: usize,
    connections_per_second_max: u32,
    requests_per_second_max: u32,
    proxy_protocol: &'a [String],
}

/// The common settings of a door, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct DoorConfig {
    /// `None` means that the server chooses.
    pub connections_max: Option<usize>,
    /// `None` means that the server chooses.
    pub connections_per_address_max: Option<usize>,
    /// `None` means no limit.
    pub connections_per_second_max: Option<NonZeroU32>,
    /// `None` means no limit.
    pub requests_per_second_max: Option<NonZeroU32>,
    /// Load balancers that send a header of the PROXY protocol.
    pub proxies: Networks,
}

impl DoorConfig {
    /// The limits of the door. `connections_max` and `per_address_max` are the numbers that the server chooses.
    pub(crate) fn limits(
        &self,
        connections_max: usize,
        per_address_max: impl FnOnce(usize) -> usize,
    ) -> DoorLimits {
        let connections_max = self.connections_max.unwrap_or(connections_max);
        DoorLimits {
            connections_max,
            connections_per_address_max: self
                .connections_per_address_max
                .unwrap_or_else(|| per_address_max(connections_max)),
            connections_per_second_max: self.connections_per_second_max,
            requests_per_second_max: self.requests_per_second_max,
        }
    }
}

/// Implements the conversion for a section that has all the common settings.
macro_rules! door_section {
    ($raw:ty, $section:literal) => {
        impl<'a> From<&'a $raw> for RawDoor<'a> {
            fn from(raw: &'a $raw) -> Self {
                Self {
                    section: $section,
                    connections_max: raw.connections_max,
                    connections_per_address_max: raw.connections_per_address_max,
                    connections_per_second_max: raw.connections_per_second_max,
                    requests_per_second_max: raw.requests_per_second_max,
                    proxy_protocol: &raw.proxy_protocol,
                }
            }
        }
    };
}

door_section!(RawMqtt, "mqtt");
door_section!(RawHttp, "http");
door_section!(RawPostgres, "postgres");

/// Checks the common settings of a door, which may have up to `connections_most` connections.
pub(super) fn resolve<'a>(
    raw: impl Into<RawDoor<'a>>,
    connections_most: usize,
) -> Result<DoorConfig, ConfigError> {
    let raw = raw.into();
    let key = |name: &str| format!("{}.{name}", raw.section);
    for (name, value) in [
        ("connections_max", raw.connections_max),
        ("connections_per_address_max", raw.connections_per_address_max),
    ] {
        if value > connections_most {
            let reason = format!("a number from 0 to {connections_most} is expected");
            return Err(ConfigError::value(key(name), value, reason));
        }
    }
    let networks = raw.proxy_protocol.iter().map(String::as_str);
    let proxies = Networks::parse(networks).map_err(|(text, error)| {
        ConfigError::value(key("proxy_protocol"), format!("\"{text}\""), error.to_string())
    })?;
    let given = |value: usize| (value > 0).then_some(value);
    Ok(DoorConfig {
        connections_max: given(raw.connections_max),
        connections_per_address_max: given(raw.connections_per_address_max),
        connections_per_second_max: NonZeroU32::new(raw.connections_per_second_max),
        requests_per_second_max: NonZeroU32::new(raw.requests_per_second_max),
        proxies,
    })
}
