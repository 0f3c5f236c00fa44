//! The forms of wrappers.

use super::external::ExternalWrapper;

/// Where the elements of a source come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrapper {
    /// Rows that devices write into a table of this server.
    Tacho {
        /// The name of the device, or a pattern in which `*` stands for any text.
        device: String,
        /// The table that they write to, if it is given.
        table: Option<String>,
        /// The profile that they have, if it is given.
        profile: Option<String>,
    },
    /// The output of another virtual sensor.
    Local {
        /// The name of the sensor.
        sensor: String,
    },
    /// Something outside of this server's store. A connector makes rows of a device of it.
    External(ExternalWrapper),
}

impl Wrapper {
    /// The wrapper in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Tacho { device, table: Some(table), .. } => format!("device {device:?}, table {table:?}"),
            Self::Tacho { device, profile: Some(profile), .. } => {
                format!("device {device:?}, profile {profile:?}")
            }
            Self::Tacho { device, .. } => format!("device {device:?}"),
            Self::Local { sensor } => format!("virtual sensor {sensor:?}"),
            Self::External(external) => external.describe(),
        }
    }

    /// What is outside, if the elements come from there.
    pub fn external(&self) -> Option<&ExternalWrapper> {
        match self {
            Self::External(external) => Some(external),
            Self::Tacho { .. } | Self::Local { .. } => None,
        }
    }
}
