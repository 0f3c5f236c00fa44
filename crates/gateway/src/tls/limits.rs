//! Fixed bounds of TLS.

use std::time::Duration;

/// From the TCP connection, or from PostgreSQL's SSLRequest, to the end of the handshake. The doors on tokio close slower
/// clients. MQTT's `connect_timeout_s` covers handshake and CONNECT together.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that one connection holds encrypted or waiting for encryption. Above it the door stops writing to the connection.
pub(crate) const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Reads of one MQTT connection's socket in one pass of the event loop. A read takes a few KiB, and a peer can send records
/// without content.
pub(crate) const READS_PER_PASS: usize = 64;
/// Interval at which the server looks for new files.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
