//! The MQTT versions.

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolVersion {
    /// MQTT 3.1, protocol name `MQIsdp` and level 3: the version of GSM modems and old libraries.
    V31,
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}
