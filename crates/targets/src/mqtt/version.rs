//! The MQTT versions that a device can speak.

use std::str::FromStr;

use wire::mqtt::ProtocolVersion;

/// The protocol version of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Version {
    /// MQTT 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
    /// MQTT 5.
    #[serde(rename = "5")]
    V5,
}

impl Version {
    /// The version for the codec.
    pub(crate) fn on_the_wire(self) -> ProtocolVersion {
        match self {
            Self::V311 => ProtocolVersion::V311,
            Self::V5 => ProtocolVersion::V5,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V311 => "3.1.1",
            Self::V5 => "5",
        })
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "3.1.1" | "311" | "4" => Ok(Self::V311),
            "5" | "5.0" => Ok(Self::V5),
            other => Err(format!("`{other}` is not an MQTT version we speak; use 3.1.1 or 5")),
        }
    }
}
