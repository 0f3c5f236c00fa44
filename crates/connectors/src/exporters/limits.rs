//! Bounds of exporters.

use std::time::Duration;

/// Messages of a broker without their acknowledgement.
pub(super) const MQTT_MESSAGES_MAX: usize = 200;
/// Bytes of a packet of a broker.
pub(super) const MQTT_PACKET_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are read from a broker at once.
pub(super) const MQTT_READ_BYTES: usize = 4 * 1024;
/// How long an exporter waits for the acknowledgements of its messages.
pub(super) const MQTT_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows of one request to an address.
pub(super) const WEBHOOK_ROWS_MAX: usize = 500;
/// Time from the connection to the end of the answer of an address.
pub(super) const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);
