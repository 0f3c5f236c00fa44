//! Defaults of keys that drivers with MQTT clients have in common.

/// `payload_bytes`.
pub(crate) fn payload_bytes() -> usize {
    100
}

/// `qos`.
pub(crate) fn qos() -> u8 {
    1
}

/// `version`.
pub(crate) fn version() -> String {
    "3.1.1".to_owned()
}

/// `token_prefix`.
pub(crate) fn token_prefix() -> String {
    "tok".to_owned()
}

/// `device_prefix`.
pub(crate) fn device_prefix() -> String {
    "dev-".to_owned()
}

/// `keep_alive_s`.
pub(crate) fn keep_alive_s() -> u16 {
    60
}
